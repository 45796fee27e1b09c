"""Maximum margin discriminant analysis: the transformer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.discriminant.codes import given_codes, random_codes
from widemargin.discriminant.core import Core
from widemargin.discriminant.deflation import Deflation
from widemargin.discriminant.direct import Direct
from widemargin.discriminant.directions import Direction, Extraction, Found, constant_objectives
from widemargin.discriminant.in_span import InSpan
from widemargin.discriminant.linear import Linear
from widemargin.discriminant.linear_hinge import LinearHinge
from widemargin.labelled import LabelledEstimator, one_vs_rest
from widemargin.loop import Limits, Result, run
from widemargin.machines import Machines
from widemargin.parameters import check_choice, check_count, check_positive
from widemargin.progress import CallbackSupportMixin, Report, reporting, with_callbacks
from widemargin.rows import parse_memory
from widemargin.rows.base import BlockRows, IndexArray
from widemargin.span import as_strategy
from widemargin.threads import n_threads, single_threaded_blas

# Distinct rows up to which "auto" is exact.
_EXACT_ROWS = 2000
_SOLVERS = "auto", "span", "core", "direct", "deflation"
# Rows that are drawn to find one that lies far outside a ball: with probability 0.95 the furthest
# of them is one of the furthest 0.3 %. The paper's 59 (for 5 %) leads to a fifth more vectors on
# pendigits, and takes no less time.
_SAMPLE_SIZE = 944


class MaxMarginDA(CallbackSupportMixin, TransformerMixin, LabelledEstimator):
    """Discriminant features with the widest margins, linear or kernel, as many as one wants.

    For each class against the rest, the first feature is the projection onto the normal of the
    max-margin hyperplane (an SVM's weight vector, of unit length); the next is the same among the
    hyperplanes orthogonal to it, and so on. Nothing is assumed of the classes' distributions, rows
    far from the boundary have no say, and there is no limit of classes − 1 features, as there is
    in LDA.

    Parameters
    ----------
    n_directions : int, default=1
        Features of each problem: each class against the rest, or the one problem of two classes.
    C : float, default=1.0
        Weight of the errors in ½‖w‖² + ½b² + C Σ s ξ²; half the C of MMDA-CVM.
    kernel : str, callable or Kernel, default="linear"
        As in `MarginClassifier`. With "linear" the directions are in `components_`.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width; "mean_distance" is one over the mean squared distance between training rows.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    solver : {"auto", "span", "core", "direct", "deflation"}, default="auto"
        "span" takes all rows into account, inside the span of vectors that all classes and
        directions share; cost and memory are linear in the rows. "core" is MMDA-CVM [2]_: core
        sets, and a few vectors for each feature. "deflation" and "direct" are the exact methods of
        MMDA [1]_ on the matrix of all kernel values, for small data; with the linear kernel they
        need no such matrix and work in the input space, and so does "span". "auto" is "direct" for
        the linear kernel, "deflation" for up to 2,000 distinct rows, and "span" beyond.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        "hinge" is the loss of MMDA [1]_, with a free bias: ½‖w‖² + C Σ s ξ. Only "direct" and
        "deflation" have it.
    constraint : {"orthogonal", "uncorrelated"}, default="orthogonal"
        Directions of unit length at right angles, or features f, f' with Σ s f(x) f'(x) = 0 over
        the training rows.
    across : {"problem", "all"}, default="problem"
        Whether that holds among the directions of each problem, or of all problems.
    scale : {"unit", "margin"}, default="unit"
        Projections onto directions of unit length, or wᵀφ(x) of the machines themselves: the margin
        is then 1 wide in every feature, and features that separate better weigh more in a distance,
        which nearest neighbours like.
    codes : array of shape (n_classes, n_problems) or "random", default=None
        Signs ±1 that the classes have in each problem, instead of one-vs-rest; "random" draws as
        many problems as there are classes.
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Where the vectors of ``solver="span"`` come from, as in `MarginClassifier`.
    max_vectors : int or "auto", default=1000
        Vectors of ``solver="span"`` at the most, for all features together.
    epsilon : float, default=1e-3
        ``solver="core"`` stops when no row lies outside 1 + epsilon times the radius of its ball.
    tol : float, default=1e-3
        Relative duality gap at which the other solvers stop.
    max_iter : int, default=10000
        Steps at the most for each direction.
    max_time : float, default=None
        Seconds at the most. Directions that are found by then are kept.
    memory : int or str, default="1GB"
        Budget for kernel values and matrices, beside the data.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples and codes.
    verbose : int, default=0
        1 prints a line for each round of directions, 2 also for each step within.

    Attributes
    ----------
    solver_ : str
        The solver that was used.
    components_ : ndarray of shape (n_features_out, n_features)
        The directions, with ``kernel="linear"`` only.
    vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        Expansion vectors that the features share, with other kernels.
    coef_ : ndarray of shape (n_features_out, n_vectors)
        Their coefficients: feature q is Σ_j coef_[q, j] k(vectors_[j], x).
    support_ : ndarray of int of shape (n_vectors,) or None
        The training rows that the vectors are, if they are rows.
    intercept_ : ndarray of shape (n_features_out,)
        Where the separating hyperplanes lie: feature + intercept is zero on them.
    directions_ : dict of arrays
        A table with a line for each feature: "problem" (the class, or the number of a code),
        "order" (from 1), "margin" (distance from the hyperplane to where the loss begins),
        "training_error" (share of the rows on its wrong side), "primal", "dual" and "gap" (the
        certificate), "n_vectors" (of its own machine), "seconds", "stopped".
        ``pandas.DataFrame(directions_)`` shows it.
    certificate_ : Certificate
        Of all directions together.
    n_kernel_evaluations_ : int
        Kernel evaluations of the fit.
    codes_ : ndarray of shape (n_classes, n_problems)
        Signs of the classes in the problems.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    gamma_ : float
        The kernel width that was used.
    n_iter_ : int
        Rounds of directions.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginClassifier : The classifier whose weight vectors the first directions are.

    Notes
    -----
    Where the remaining subspace holds no direction that separates better than a constant does, a
    problem gets fewer features than `n_directions`, and a warning says so.

    References
    ----------
    .. [1] A. Kocsor, K. Kovács, C. Szepesvári, "Margin maximizing discriminant analysis", ECML
       2004.
    .. [2] I. W. Tsang, A. Kocsor, J. T. Kwok, "Large-scale maximum margin discriminant analysis
       using core vector machines", IEEE Transactions on Neural Networks 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import MaxMarginDA
    >>> X, y = load_wine(return_X_y=True)
    >>> features = MaxMarginDA(n_directions=2).fit(scale(X), y)
    >>> features.transform(scale(X)).shape
    (178, 6)
    >>> features.get_feature_names_out()[:2].tolist()
    ['maxmarginda_0_1', 'maxmarginda_0_2']
    """

    def __init__(
        self,
        n_directions: int = 1,
        *,
        C: float = 1.0,
        kernel: Any = "linear",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        solver: str = "auto",
        loss: str = "squared_hinge",
        constraint: str = "orthogonal",
        across: str = "problem",
        scale: str = "unit",
        codes: Any = None,
        vectors: Any = "core",
        max_vectors: int | str = 1000,
        epsilon: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        memory: int | str = "1GB",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_directions = n_directions
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.solver = solver
        self.loss = loss
        self.constraint = constraint
        self.across = across
        self.scale = scale
        self.codes = codes
        self.vectors = vectors
        self.max_vectors = max_vectors
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory = memory
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginDA:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. Memory-mapped files are read block by block.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        X, y = self._validated(X, y, ensure_min_samples=2)
        threads, deadline = n_threads(self.n_jobs), Deadline.after(self.max_time)
        with single_threaded_blas():
            points = self._points(X, y, sample_weight, threads)
            points = replace(points, table=self._code_table())
            with reporting(self, X.shape[0], self.verbose, X, y) as report:
                finder = self._finder(points, threads, report)
                extraction = Extraction(
                    finder,
                    points,
                    constant_objectives(points, self.loss),
                    n_directions=self.n_directions,
                    across=self.across == "all",
                    # A ball within ε says less of the objective than a gap of that size does.
                    tol=0.01 * self.epsilon if self.solver_ == "core" else self.tol,
                    deadline=deadline,
                )
                # Each round is a success of its own: there is no stall.
                limits = Limits(deadline=deadline, patience=len(extraction.rounds) + 1)
                result = run(extraction, limits, report)
            found = sorted(result.state.directions, key=lambda d: (d.problem, d.order))
            self._check_found(result)
            self._keep_features(points, finder, found)
        self._keep_table(found)
        self._keep_certificate(result)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Projections onto the directions.
        """
        check_is_fitted(self)
        rows = self._rows(self._checked(X))
        visit: Any = _Projections(self.components_) if self._linear() else self._machines(rows)
        with single_threaded_blas():
            return np.concatenate(list(rows.scan(visit, width=visit.width)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features: the class, and the order among its directions.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Not used, but checked as in scikit-learn.

        Returns
        -------
        ndarray of str
            Such as "maxmarginda_setosa_1"; with `codes`, "maxmarginda_code0_1".
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        problems, orders = self.directions_["problem"], self.directions_["order"]
        prefix = "code" if self.codes is not None else ""
        names = [
            f"maxmarginda_{prefix}{p}_{order}" for p, order in zip(problems, orders, strict=True)
        ]
        return np.array(names, dtype=object)

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_directions", self.n_directions)
        check_choice("solver", self.solver, _SOLVERS)
        check_choice("loss", self.loss, ("squared_hinge", "hinge"))
        check_choice("constraint", self.constraint, ("orthogonal", "uncorrelated"))
        check_choice("across", self.across, ("problem", "all"))
        check_choice("scale", self.scale, ("unit", "margin"))
        check_positive("epsilon", self.epsilon)
        if isinstance(self.max_vectors, str):
            check_choice("max_vectors", self.max_vectors, ("auto",))
        else:
            check_count("max_vectors", self.max_vectors)
        if isinstance(self.vectors, str):
            as_strategy(self.vectors, 0)
        if self.loss == "hinge" and self.solver in ("span", "core"):
            raise ValueError(
                f"loss='hinge' needs solver='deflation' or 'direct', but solver={self.solver!r}; "
                "change one of them."
            )

    def _linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _code_table(self) -> NDArray[np.float64]:
        """Return the signs of the classes in the problems, and keep them."""
        n_classes = len(self.classes_)
        if self.codes is None:
            table = one_vs_rest(n_classes)
        elif isinstance(self.codes, str):
            check_choice("codes", self.codes, ("random",))
            table = random_codes(n_classes, self._rng())
        else:
            table = given_codes(self.codes, n_classes)
        self.codes_ = table
        return table

    def _finder(self, points: Points, threads: int, report: Report) -> Any:
        """Choose the solver and return what finds the directions."""
        strategy = as_strategy(self.vectors, self.n_features_in_)
        self.solver_ = self._choose_solver(points)
        shared: dict[str, Any] = {"constraint": self.constraint}
        if self._linear() and self.solver_ != "core":
            # All of the input space is spanned by its unit vectors.
            method = "direct" if self.solver_ == "span" else self.solver_
            if self.loss == "hinge":
                memory = parse_memory(self.memory)
                return LinearHinge(points, method=method, tol=self.tol, memory=memory, **shared)
            return Linear(points, method=method, tol=self.tol, **shared)
        if self.solver_ in ("deflation", "direct"):
            self._check_fits(points)
            kind = Deflation if self.solver_ == "deflation" else Direct
            return kind(points, loss=self.loss, tol=self.tol, threads=threads, **shared)
        shared |= {
            "max_iter": self.max_iter,
            "memory": parse_memory(self.memory),
            "rng": self._rng(),
            "threads": threads,
            # Lines of the steps would hide those of the rounds.
            "report": None if self.verbose == 1 else report,
        }
        if self.solver_ == "core":
            return Core(
                points, epsilon=self.epsilon, growth="one", sample_size=_SAMPLE_SIZE, **shared
            )
        limit = None if self.max_vectors == "auto" else int(self.max_vectors)
        return InSpan(points, strategy=strategy, max_vectors=limit, tol=self.tol, **shared)

    def _choose_solver(self, points: Points) -> str:
        if self.solver != "auto":
            return self.solver
        if self.loss == "hinge":
            return "deflation"
        if self._linear():
            return "direct"
        given = not isinstance(self.vectors, str)
        return "span" if given or points.n > _EXACT_ROWS else "deflation"

    def _check_fits(self, points: Points) -> None:
        needed = 3 * 8 * points.n**2
        if needed > parse_memory(self.memory):
            remedy = "solver='span'" if self.loss != "hinge" else "loss='squared_hinge'"
            raise ValueError(
                f"solver={self.solver_!r} keeps all kernel values of {points.n:,} rows twice: "
                f"it takes {needed / 1e6:,.1f} MB; raise memory={self.memory!r}, or use {remedy}."
            )

    def _check_found(self, result: Result[Found[Any]]) -> None:
        """Raise if there is no direction."""
        if result.state.directions:
            return
        if result.state.cut:
            raise ValueError(
                f"MaxMarginDA was stopped before it had found a direction ({result.state.cut}); "
                "give it more time or steps."
            )
        raise ValueError(
            "X holds no direction that separates the classes better than a constant does; are its "
            "rows all equal, or C too small?"
        )

    def _keep_features(self, points: Points, finder: Any, found: Sequence[Direction[Any]]) -> None:
        """Set what `transform` needs."""
        for name in ("components_", "vectors_", "coef_", "support_"):
            # Of an earlier fit with another kernel.
            if hasattr(self, name):
                delattr(self, name)
        norm = np.array([direction.norm for direction in found])
        factor = norm if self.scale == "margin" else np.ones(len(found))
        self.intercept_ = factor * np.array([direction.intercept for direction in found])
        if self._linear() and self.solver_ != "core":
            units = np.array([direction.function for direction in found])
            self.components_ = factor[:, None] * units
            return
        index: IndexArray | None
        if self.solver_ == "span":
            coef = np.array([direction.function for direction in found])
            vectors, index = finder.basis.vectors.values, finder.basis.vectors.index
        else:
            coef = np.array([direction.function.coef for direction in found])
            index = np.flatnonzero(coef.any(axis=0))
            coef, vectors = coef[:, index], points.rows.take(index)
        coef = factor[:, None] * coef
        self.support_: IndexArray | None = None
        if index is not None:
            order = np.argsort(points.number[index])
            self.support_ = points.number[index][order]
            vectors, coef = vectors[order], coef[:, order]
        if self._linear():
            self.components_ = coef @ vectors.astype(np.float64)
        stored = points.rows.block(slice(0, 1))
        self.vectors_ = sparse.csr_array(vectors) if sparse.issparse(stored) else vectors
        self.coef_ = np.ascontiguousarray(coef)

    def _problem_names(self) -> NDArray[Any]:
        """Return the class that each problem sets against the rest, or the number of its code."""
        if self.codes is not None:
            return np.arange(self.codes_.shape[1])
        return self.classes_[1:] if len(self.classes_) == 2 else self.classes_

    def _keep_table(self, found: Sequence[Direction[Any]]) -> None:
        """Set the table of directions."""
        names = self._problem_names()
        primal = np.array([direction.primal for direction in found])
        dual = np.array([direction.dual for direction in found])
        self.directions_: dict[str, NDArray[Any]] = {
            "problem": names[[direction.problem for direction in found]],
            "order": np.array([direction.order for direction in found]),
            "margin": np.array([1.0 / direction.norm for direction in found]),
            "training_error": np.array([direction.error for direction in found]),
            "primal": primal,
            "dual": dual,
            "gap": np.maximum(0.0, primal - dual) / primal,
            "n_vectors": np.array([direction.n_vectors for direction in found]),
            "seconds": np.array([direction.seconds for direction in found]),
            "stopped": np.array([direction.stopped for direction in found]),
        }

    def _keep_certificate(self, result: Result[Found[Any]]) -> None:
        n_vectors = len(self.components_) if self._linear() else self.coef_.shape[1]
        self.certificate_ = replace(result.certificate, n_vectors=n_vectors)
        self.n_kernel_evaluations_ = result.certificate.n_kernel
        self.n_iter_ = result.certificate.n_iter
        if not result.converged:
            warnings.warn(
                f"MaxMarginDA stopped early ({result.certificate.stopped}) with "
                f"{len(self.intercept_)} features and a relative gap of "
                f"{result.certificate.gap:.2e}. They are valid; for more or better ones raise the "
                "limit, or loosen tol to accept them.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif result.state.ended:
            short = [str(self._problem_names()[p]) for p in sorted(result.state.ended)]
            warnings.warn(
                f"Fewer than n_directions={self.n_directions} directions separate "
                f"{', '.join(short)} from the rest: the remaining subspace holds none that does "
                "better than a constant. There are fewer features for it; lower n_directions to "
                "silence this.",
                stacklevel=4,
            )

    def _machines(self, rows: BlockRows) -> Machines:
        vectors: Any = self.vectors_
        dense = vectors.toarray() if sparse.issparse(vectors) else vectors
        kernel, nothing = self._kernel(self.gamma_), np.zeros(len(self.coef_))
        coef = np.ascontiguousarray(self.coef_.T)
        return Machines(kernel, dense, coef, nothing, np.float64, rows.vectors_at_a_time)


@dataclass(frozen=True)
class _Projections:
    """Visitor: products of rows with directions in the input space."""

    components: NDArray[np.float64]

    @property
    def width(self) -> int:
        """Numbers that a row needs while it is visited."""
        return len(self.components)

    def __call__(self, block: Any, where: slice) -> NDArray[np.float64]:
        features: NDArray[np.float64] = block.astype(np.float64, copy=False) @ self.components.T
        return features
