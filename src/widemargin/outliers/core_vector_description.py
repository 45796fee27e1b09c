"""The smallest enclosing ball of the rows, as an outlier detector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball_cover import BallCover, extended
from widemargin.balls.enclosing import (
    EnclosingOptions,
    fit_enclosing,
)
from widemargin.balls.squared_distances import SquaredDistances, in_input_space
from widemargin.base import parameters as check
from widemargin.base.estimator import (
    CallbackSupportMixin,
    KernelEstimator,
    as_stored,
    dense,
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.certificate import Certificate
from widemargin.loop import Ended, Resources, Stop, bounds
from widemargin.problem import Problem, check_prices
from widemargin.rows import distinct_rows


def _follows_streams(estimator: Any) -> bool:
    """Return whether an estimator has `partial_fit`, or say why it has not."""
    if estimator.C is not None or estimator.kernel == "precomputed":
        raise AttributeError(
            f"partial_fit needs C=None and a kernel that is not precomputed, but C={estimator.C!r} "
            f"and kernel={estimator.kernel!r}: the ball of a stream is a hard one; use fit."
        )
    return True


@parameters
class CoreVectorDescription(OutlierMixin, CallbackSupportMixin, KernelEstimator):
    """The smallest ball around the rows in a kernel's feature space.

    Hard, it holds all rows; soft, it minimises R² + C Σ s ξ² with ξ = max(0, ‖φ(x) − c‖² − R²), the
    data description of Tax and Duin with squared slacks. A core set of few rows holds the ball, so
    that the cost grows linearly with the rows; the certificate proves that the radius is within
    1 + `epsilon` of the smallest one.

    Parameters
    ----------
    C : float or None, default=1.0
        Price of rows outside; None is the hard ball, which holds all rows and alone can follow a
        stream. It is in units of one over a squared distance: the larger those, the smaller C.
    kernel : str, callable or Kernel, default="rbf"
        As in `CoreVectorClassifier`. Its diagonal need not be constant.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width. `partial_fit` resolves a word on the first block.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    epsilon : float, default=1e-3
        Stop when the squared radius (soft: the objective) is within (1 + epsilon)² of the smallest.
    max_iter : int, default=10000
        Steps at the most.
    max_vectors : int, default=None
        Core vectors at the most; None leaves it to `memory`.
    max_time : float, default=None
        Seconds at the most, looked at between steps.
    memory : int or str, default="auto"
        Budget for kernel values and blocks of rows, beside the data.
    n_jobs : int, default=None
        Threads; the answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Not used: rows are put in the order of a hash. Here for the sake of its siblings.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_vectors,) or None
        Training rows that hold the ball; None after `partial_fit`.
    support_vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        Those rows.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Their shares of the centre: Σ αφ(x) with Σ α = 1.
    center_ : ndarray of shape (n_features,)
        The centre itself, if the kernel is "linear".
    radius_ : float
        R.
    offset_ : float
        −R²: `decision_function` is `score_samples` − `offset_`.
    certificate_ : Certificate
        Squared radius (soft: objective), its lower bound, and `eps`: R ≤ (1 + eps) R*.
    gamma_ : float
        The kernel width that was used.
    n_iter_ : int
        Steps.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    A hard ball knows no multiplicity: `sample_weight` only says whether a row counts, which it does
    with any positive weight. In a soft one a row of weight k is the same as k copies.

    References
    ----------
    .. [1] I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls",
       ICML 2007.
    .. [2] D. Tax, R. Duin, "Support vector data description", Machine Learning, 2004.
    .. [3] P. Agarwal, R. Sharathkumar, "Streaming algorithms for extent problems in high
       dimensions", SODA 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import CoreVectorDescription
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])
    >>> ball = CoreVectorDescription(C=None, kernel="linear").fit(X)
    >>> ball.center_.round(6).tolist(), round(ball.radius_, 6)
    ([1.0, 0.0], 1.0)
    >>> ball.predict([[1.0, 0.9], [1.0, 1.1]]).tolist()
    [1, -1]
    """

    C: float | None = positional(1.0, check.none_or(check.positive))
    gamma: Any = keyword("scale", check.gamma)
    epsilon: float = keyword(1e-3, check.positive)
    max_iter: int = keyword(10_000, check.count)
    max_vectors: int | None = keyword(None, check.at_least(2, none=True))
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CoreVectorDescription:
        """Find the ball around rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; a kernel matrix if ``kernel="precomputed"``.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; see the notes.

        Returns
        -------
        self
            The fitted ball.
        """
        with self._fitting() as resources:
            X = self._validated(X)
            problem, gamma = self._stated(X, sample_weight, resources, None)
            with reporting(self, problem.n, X) as report:
                options = self._options(replace(resources, report=report))
                ball = fit_enclosing(problem, options)
        self._drop(
            "cover_vectors_", "cover_shares_", "cover_radius_", "cover_reach_", "cover_rows_"
        )
        self._drop("cover_furthest_")
        self.gamma_ = gamma
        self.support_: IndexArray | None = problem.number[ball.index]
        stored = as_stored(ball.vectors, problem.rows)
        self._keep(stored, ball.vectors, ball.alpha, ball.norm2, ball.radius2, ball.certificate)
        self._warn(ball.stop)
        return self

    @available_if(_follows_streams)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Let the ball hold another block of rows, in memory that does not grow.

        Only the hard ball can: a soft one depends on all rows. `certificate_` holds for all blocks
        so far, those of an earlier `fit` included; ``docs/core_vectors.md`` states the bound.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Rows of weight zero do not count.

        Returns
        -------
        self
            The ball of all blocks.
        """
        with self._fitting() as resources:
            known = hasattr(self, "radius_")
            X = self._validated(X, reset=not known)
            problem, gamma = self._stated(
                X, sample_weight, resources, self.gamma_ if known else None
            )
            before = self._cover() if known else None
            cover, n_kernel, stop = extended(before, problem, self._options(resources))
            weight, radius = cover.around(problem.kernel)
        self.gamma_, self.support_ = gamma, None
        self._keep_cover(cover, weight, radius, problem, n_kernel)
        if stop is not None and not stop.converged:
            self._keep_stopped(stop)
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return minus the squared distance of each row from the centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The larger, the more a row belongs.
        """
        check_is_fitted(self)
        if self._precomputed():
            raise ValueError(
                "kernel='precomputed' has no k(x, x) of new rows, and so no distances of them; use "
                "a kernel by name or a callable."
            )
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            rows = self._rows(X, resources)
            kernel, vectors = self._kernel(self.gamma_), dense(self.support_vectors_)
            visit = SquaredDistances(
                kernel,
                vectors,
                np.ascontiguousarray(self.dual_coef_.T),
                np.array([self.center_norm2_]),
                np.arange(rows.shape[0]),
                rows.vectors_at_a_time,
            )
            width = min(len(vectors), rows.vectors_at_a_time) + 2
            scores: NDArray[np.float64] = -rows.gather(visit, width=width)[:, 0]
        return scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return R² − ‖φ(x) − c‖²: not negative inside the ball.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decision values.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for rows inside the ball and −1 for those outside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            ±1.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    # The first and the last steps of a fit.

    def _stated(
        self, X: Any, sample_weight: Any, resources: Resources, gamma: float | None
    ) -> tuple[Problem, float]:
        weight = self._weights(X, sample_weight)
        if not weight.any():
            raise ValueError(
                "sample_weight is zero for every row; give at least one row a positive weight."
            )
        nothing = np.zeros(len(weight), dtype=np.intp)
        distinct = distinct_rows(self._rows(X, resources), nothing, weight)
        found = self._resolved_gamma(self.gamma, distinct) if gamma is None else gamma
        C = 1.0 if self.C is None else self.C
        counted = np.ones(len(distinct.weight)) if self.C is None else distinct.weight
        check_prices(C, counted)
        problem = Problem.of(
            distinct.rows,
            self._kernel(found),
            distinct.code,
            np.ones((1, 1)),
            counted,
            C,
            distinct.index,
            distinct.place,
        )
        return problem, found

    def _options(self, resources: Resources) -> EnclosingOptions:
        return EnclosingOptions(
            **vars(resources),
            epsilon=self.epsilon,
            soft=self.C is not None,
            max_iter=self.max_iter,
            max_vectors=self.max_vectors,
        )

    def _keep(
        self,
        stored: Any,
        vectors: NDArray[Any],
        alpha: Vector,
        norm2: float,
        radius2: float,
        certificate: Certificate,
    ) -> None:
        """Set the attributes of the ball."""
        self._drop("center_")
        kernel = self._kernel(self.gamma_)
        if kernel.name == "linear":
            self.center_ = alpha @ vectors.astype(np.float64)
        self.support_vectors_, self.dual_coef_ = stored, alpha[None]
        self.center_norm2_ = norm2
        # Rows on the surface are inside, whichever block they come in.
        longest = 0.0 if in_input_space(kernel, vectors) else norm2
        self.radius_ = float(np.sqrt(max(radius2, 0.0)))
        self.offset_ = -(radius2 + 1e-12 * (abs(radius2) + longest))
        self.certificate_ = certificate
        self.n_iter_ = certificate.n_iter

    def _cover(self) -> BallCover:
        """Return the balls of the stream so far; that of `fit` is the first."""
        if hasattr(self, "cover_radius_"):
            return BallCover(
                self.cover_vectors_,
                self.cover_shares_,
                self.cover_radius_,
                self.cover_reach_,
                self.cover_rows_,
                self.cover_furthest_,
            )
        vectors = dense(self.support_vectors_)
        lower = np.array([np.sqrt(max(self.certificate_.dual, 0.0))])
        reach = np.array([np.sqrt(-self.offset_)])
        return BallCover(vectors, self.dual_coef_, lower, reach, vectors[:0], float(reach[0]))

    def _keep_cover(
        self, cover: BallCover, weight: Vector, radius: float, problem: Problem, n_kernel: int
    ) -> None:
        self.cover_vectors_, self.cover_shares_ = cover.vectors, cover.shares
        self.cover_radius_, self.cover_reach_ = cover.radius, cover.reach
        self.cover_rows_, self.cover_furthest_ = cover.buffer, cover.furthest
        alpha = weight @ cover.shares
        used = np.flatnonzero(alpha)
        centre = replace(cover, shares=alpha[None], radius=np.zeros(1))
        norm2 = float(centre.norms2(problem.kernel)[0])
        lower = float(cover.radius.max())
        eps = radius / lower - 1.0 if lower > 0 else (0.0 if radius == 0 else float("inf"))
        certificate = bounds(
            radius**2,
            lower**2,
            eps=max(0.0, eps),
            scope="full",
            n_vectors=len(used),
            n_iter=1,
            n_passes=1,
            n_kernel=n_kernel,
            stopped="a block of a stream",
        )
        stored = as_stored(cover.vectors[used], problem.rows)
        self._keep(stored, cover.vectors[used], alpha[used], norm2, radius**2, certificate)

    def _keep_stopped(self, stop: Stop) -> None:
        """Say that the ball of a block was not solved; the certificate holds all the same."""
        self.certificate_ = replace(self.certificate_, stopped=stop.reason)
        self._warn(stop)

    def _warn(self, stop: Stop) -> None:
        if not stop.converged:
            reached = self.certificate_
            remedy = "raise the limit, or epsilon to accept it."
            if self.C is not None and stop.kind is Ended.CAPACITY:
                remedy = "raise epsilon or C (fewer rows outside), or use MarginOneClass."
            warn_user(
                f"CoreVectorDescription stopped before its rule was met ({reached.stopped}), with "
                f"a relative gap of {reached.gap:.2e}. The ball is valid; {remedy}"
            )
