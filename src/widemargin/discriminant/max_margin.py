"""Maximum margin discriminant analysis: the transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from widemargin.arrays import IndexArray
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
from widemargin.base.placing import check_device
from widemargin.base.projection import Projected, projected_there
from widemargin.device import Array, Device, check_on_device
from widemargin.directions.direction_engine import (
    DirectionOptions,
    direction_table,
    find_directions,
    why_nothing,
)
from widemargin.directions.output_codes import code_table
from widemargin.directions.rounds import Direction, Found
from widemargin.discriminant.direction_parameters import truth
from widemargin.discriminant.directions_of_shards import find_directions_of_shards
from widemargin.expansion import Expansion
from widemargin.loop import Resources, Result
from widemargin.places.partitions import is_collection
from widemargin.places.span_of_shards import Statement
from widemargin.problem import Problem, class_factors, encoded
from widemargin.rows import Rows
from widemargin.scatter.class_scatter import DenseColumns
from widemargin.span import Basis, as_strategy

# Distinct rows up to which "auto" is exact.
_EXACT_ROWS = 2000


@parameters
class MaxMarginDA(CallbackSupportMixin, TransformerMixin, KernelEstimator):
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
        the linear kernel, "deflation" for up to 2,000 distinct rows, and "span" beyond and for Dask
        collections.
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
    inner : {"exact", "sor"}, default="exact"
        How ``solver="core"`` finds the ball of a core set: our active sets, or successive
        over-relaxation, which is Algorithm 3 of MMDA-CVM [2]_.
    sample_size : int or None, default=944
        Rows that ``solver="core"`` draws to find one that lies far outside a ball: the furthest of
        944 is with probability 0.95 one of the furthest 0.3 %. MMDA-CVM has 59, for 5 %, which
        leads to more vectors. None looks at all rows.
    fit_intercept : bool, default=True
        Whether the machines have a bias. False is b = 0, as in footnote 4 of MMDA [1]_:
        hyperplanes through the origin of the feature space; "deflation" and "direct" can do that.
    early_end : bool, default=True
        Whether a problem's directions end where the remaining subspace holds none that separates
        better than a constant does. False goes on as long as there are any at all.
    tol : float, default=1e-3
        Relative duality gap at which the other solvers stop.
    max_iter : int, default=10000
        Steps at the most for each direction.
    max_time : float, default=None
        Seconds at the most. Directions that are found by then are kept.
    memory : int or str, default="auto"
        Budget for kernel values and matrices, beside the data.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    device : str, default=None
        Where rows are worked on: "cpu" (NumPy), "cuda", "cuda:1" and so on (needs PyTorch); None is
        where X is. Features are what the rows are: arrays of PyTorch and CuPy stay on their device.
        There ``solver="auto"`` is "span", which is the whole space for the linear kernel.
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

    n_directions: int = positional(1, check.count)
    C: float = keyword(1.0, check.positive)
    kernel: Any = keyword("linear")
    gamma: Any = keyword("scale", check.gamma)
    solver: str = keyword("auto", check.choice("auto", "span", "core", "direct", "deflation"))
    loss: str = keyword("squared_hinge", check.choice("squared_hinge", "hinge"))
    constraint: str = keyword("orthogonal", check.choice("orthogonal", "uncorrelated"))
    across: str = keyword("problem", check.choice("problem", "all"))
    scale: str = keyword("unit", check.choice("unit", "margin"))
    codes: Any = keyword(None)
    vectors: Any = keyword("core", check.landmarks)
    max_vectors: int | str = keyword(1000, check.word_or(("auto",), check.count))
    epsilon: float = keyword(1e-3, check.positive)
    inner: str = keyword("exact", check.choice("exact", "sor"))
    sample_size: int | None = keyword(944, check.count_or_none)
    fit_intercept: bool = keyword(True, truth)
    early_end: bool = keyword(True, truth)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    class_weight: Any = keyword(None)
    verbose: int = keyword(0, check.verbosity)
    device: str | None = keyword(None, check_device)

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
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. Memory-mapped files are read block by block.
        y : array-like or Dask collection of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted transformer.
        """
        if is_collection(X):
            return self._fit_collection(X, y, sample_weight)
        with self._fitting(X) as resources:
            data = self._labelled(X, y, sample_weight)
            distinct = self._distinct(data, resources)
            self.gamma_ = self._resolved_gamma(self.gamma, distinct)
            problem = self._problem(
                data, distinct, C=self.C, gamma=self.gamma_, class_weight=self.class_weight
            )
            self.classes_ = data.classes
            self.codes_ = code_table(self.codes, len(self.classes_), resources.rng)
            problem = problem.with_signs(self.codes_)
            self.solver_ = self._choose_solver(problem, resources.memory)
            with reporting(self, len(data.y), data.X, data.y) as report:
                options = self._options(
                    replace(resources, report=report), self.solver_, self.n_features_in_
                )
                result, basis, problem = find_directions(problem, options)
            self._keep_features(problem, basis, _in_order(result))
        self._keep_certificate(result)
        return self

    def _fit_collection(self, X: Any, y: Any, sample_weight: Any) -> MaxMarginDA:
        """Find the directions in a span of the rows of a Dask collection."""
        with self._fitting() as resources:
            self._check_able("needs rows in memory, but X is a Dask collection", "pass X.compute()")
            opened = self._opened(X, y, sample_weight, resources)
            every = opened.every
            classes, _ = encoded(every.classes, every.weights)
            check_classification_targets(classes)
            gamma = self._gamma_of(self.gamma, every)
            codes = code_table(self.codes, len(classes), resources.rng)
            factor = class_factors(self.class_weight, classes, classes, every.weights)
            stated = Statement(self._kernel(gamma), codes, factor, self.C)
            with reporting(self, every.n) as report:
                options = self._options(
                    replace(resources, report=report), "span", opened.n_features
                )
                result, basis, problem = find_directions_of_shards(opened, stated, options)
            found = _in_order(result)
            # Not before all went well: nothing shall be half fitted.
            self._note_columns(X, reset=True)
            self.classes_, self.codes_, self.gamma_ = classes, codes, gamma
            self.solver_ = "span"
            self._keep_features(problem, basis, found)
        self._keep_certificate(result)
        return self

    def _check_on_device(self, device: Device) -> None:
        self._check_able(f"is not there on the device {str(device)!r}", "use device='cpu'")
        check_on_device(self._kernel(1.0), device)

    def _check_able(self, why: str, remedy: str) -> None:
        """Raise if parameters ask for more than a span."""
        for name, able in (
            ("solver", ("auto", "span")),
            ("loss", ("squared_hinge",)),
            ("fit_intercept", (True,)),
        ):
            if getattr(self, name) not in able:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} {why}; use {name}={able[-1]!r}, or {remedy}."
                )

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Projections onto the directions; a lazy Dask array if X is a Dask collection.
        """
        if is_collection(X):
            lazy: NDArray[np.float64] = self._lazily(type(self)._transformed, X)
            return lazy
        return self._transformed(X)

    def _transformed(self, X: Any) -> NDArray[np.float64]:
        features: NDArray[np.float64] = self._features_of(X, self._here, self._there)
        return features

    def _here(self, rows: Rows) -> NDArray[np.float64]:
        if not self._linear():
            return self._sums().values(rows)
        d = self.components_.shape[1]
        visit = Projected(DenseColumns(d), np.zeros(d), self.components_)
        return rows.gather(visit, width=d)

    def _there(self, rows: Rows) -> Array:
        if not self._linear():
            return self._sums().values_there(rows)
        d = self.components_.shape[1]
        return projected_there(rows, DenseColumns(d), np.zeros(d), self.components_)

    def _sums(self) -> Expansion:
        """Return the features as functions in the span of the vectors."""
        coef = np.ascontiguousarray(self.coef_.T)
        return Expansion(self._kernel(self.gamma_), dense(self.vectors_), coef)

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
        pairs = zip(problems, orders, strict=True)
        return np.array([f"maxmarginda_{prefix}{p}_{q}" for p, q in pairs], dtype=object)

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.codes, str):
            check.check_choice("codes", self.codes, ("random",))
        if self.loss == "hinge" and self.solver in ("span", "core"):
            raise ValueError(
                f"loss='hinge' needs solver='deflation' or 'direct', but solver={self.solver!r}; "
                "change one of them."
            )
        unable = ("core",) if self._linear() else ("span", "core")
        if not self.fit_intercept and self.solver in unable:
            raise ValueError(
                "fit_intercept=False needs solver='deflation' or 'direct', but "
                f"solver={self.solver!r}; change one of them."
            )

    def _linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _in_input_space(self, solver: str) -> bool:
        """Return whether directions are sought in the input space, without kernel values."""
        # Relaxation, which solves the hinge without a bias, needs the matrix.
        relaxed = self.loss == "hinge" and not self.fit_intercept
        return self._linear() and solver != "core" and not relaxed

    def _choose_solver(self, problem: Problem, memory: int) -> str:
        """Return the solver to use, if it fits into the memory."""
        solver = self.solver
        if problem.rows.device is not None:
            return "span"
        if solver == "auto":
            given = not isinstance(self.vectors, str)
            many = given or problem.n > _EXACT_ROWS
            able = self.loss != "hinge" and self.fit_intercept
            solver = "span" if many and able else "deflation"
            if self._linear() and self.loss != "hinge":
                solver = "direct"
        needed = 3 * 8 * problem.n**2
        matrix = solver in ("deflation", "direct") and not self._in_input_space(solver)
        if matrix and needed > memory:
            remedy = "solver='span'" if self.loss != "hinge" else "loss='squared_hinge'"
            remedy = remedy if self.fit_intercept else "fit_intercept=True"
            raise ValueError(
                f"solver={solver!r} keeps all kernel values of {problem.n:,} rows twice: it takes "
                f"{needed / 1e6:,.1f} MB; raise memory={self.memory!r}, or use {remedy}."
            )
        return solver

    def _options(self, resources: Resources, solver: str, n_features: int) -> DirectionOptions:
        return DirectionOptions.with_parameters(
            resources,
            self.get_params(deep=False),
            solver=solver,
            linear=self._in_input_space(solver),
            across=self.across == "all",
            max_vectors=None if isinstance(self.max_vectors, str) else int(self.max_vectors),
            landmarks=as_strategy(self.vectors, n_features),
            each_step=self.verbose != 1,
        )

    def _keep_features(
        self, problem: Problem, basis: Basis | None, found: Sequence[Direction[Any]]
    ) -> None:
        """Set what `transform` needs, and the table of the directions."""
        self.directions_ = direction_table(found, self._problem_names())
        self._drop("components_", "vectors_", "coef_", "support_")
        margin = self.directions_["margin"]
        factor = 1.0 / margin if self.scale == "margin" else np.ones(len(found))
        self.intercept_ = factor * np.array([direction.intercept for direction in found])
        if self._in_input_space(self.solver_):
            units = np.array([direction.function for direction in found])
            # The vectors of a span of the whole space are its unit vectors.
            units = units if basis is None else units @ basis.vectors.values
            self.components_ = factor[:, None] * units
            return
        index: IndexArray | None
        if basis is not None:
            coef = np.array([direction.function for direction in found])
            vectors, index = basis.vectors.values, basis.vectors.index
        else:
            coef = np.array([direction.function.coef for direction in found])
            index = np.flatnonzero(coef.any(axis=0))
            coef, vectors = coef[:, index], problem.rows.take(index)
        coef = factor[:, None] * coef
        self.support_: IndexArray | None = None
        if index is not None:
            order = np.argsort(problem.number[index])
            self.support_ = problem.number[index][order]
            vectors, coef = vectors[order], coef[:, order]
        if self._linear():
            self.components_ = coef @ vectors.astype(np.float64)
        self.vectors_ = as_stored(vectors, problem.rows)
        self.coef_ = np.ascontiguousarray(coef)

    def _problem_names(self) -> NDArray[Any]:
        """Return the class that each problem sets against the rest, or the number of its code."""
        if self.codes is not None:
            return np.arange(self.codes_.shape[1])
        return self.classes_[1:] if len(self.classes_) == 2 else self.classes_

    def _keep_certificate(self, result: Result[Found[Any]]) -> None:
        n_vectors = len(self.components_) if self._linear() else self.coef_.shape[1]
        self.certificate_ = replace(result.certificate, n_vectors=n_vectors)
        self.n_kernel_evaluations_ = result.certificate.n_kernel
        self.n_iter_ = result.certificate.n_iter
        if not result.converged:
            warn_user(
                f"MaxMarginDA stopped early ({result.certificate.stopped}) with "
                f"{len(self.intercept_)} features and a relative gap of "
                f"{result.certificate.gap:.2e}. They are valid; for more or better ones raise the "
                "limit, or loosen tol to accept them.",
            )
        elif result.state.ended:
            short = [str(self._problem_names()[p]) for p in sorted(result.state.ended)]
            warn_user(
                f"Fewer than n_directions={self.n_directions} directions separate "
                f"{', '.join(short)} from the rest: the remaining subspace holds none that does "
                "better than a constant. There are fewer features for it; lower n_directions to "
                "silence this.",
                UserWarning,
            )


def _in_order(result: Result[Found[Any]]) -> list[Direction[Any]]:
    """Return the directions that were found, problem after problem, or say why there are none."""
    found = sorted(result.state.directions, key=lambda d: (d.problem, d.order))
    if not found:
        raise ValueError(why_nothing(result.state))
    return found
