"""The margin classifier: the exact machine on few rows, a span or cells on many."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import fit_on_set
from widemargin.base import parameters as check
from widemargin.base.classifier import KernelClassifier
from widemargin.base.estimator import Labelled, dense, reporting
from widemargin.base.parameters import keyword, parameters
from widemargin.base.placing import check_device
from widemargin.base.row_maps import check_scale, keep_map, kept_map, seen, seen_distinct
from widemargin.base.seen_rows import (
    check_map,
    check_mapped_here,
    check_metric,
    given_root,
    is_mapped,
    learned_root,
    rows_for_map,
    scaling_for,
)
from widemargin.cells import (
    CellMachines,
    FittedCells,
    Groups,
    Partition,
    fit_cells,
    fit_cells_there,
    values_there,
)
from widemargin.cells.engine_choice import ChoiceOptions, Decision, choose_engine, of_many_vectors
from widemargin.device import Array, Device
from widemargin.expansion import Earlier, Fitted
from widemargin.loop import Ended, Resources
from widemargin.places.collection import Collection
from widemargin.places.partitions import is_large_map
from widemargin.problem import Problem, one_vs_one
from widemargin.rows import Distinct, Rows
from widemargin.span import as_strategy, fit_span
from widemargin.svm.collection_fit import (
    brought_here,
    explained,
    fit_to_collection,
    rows_here,
)
from widemargin.svm.exact_from_span import fit_exact_from_span
from widemargin.svm.on_device import (
    check_collection_there,
    check_machine_there,
    check_one_kernel,
)

# Bytes that the coefficients of all pairs of classes may take, if pairs are our choice.
_PAIRS_BYTES = 250_000_000
# Share of the work that is allowed for one factor of the support: a set that grows takes several.
_FACTOR_SHARE = 0.25
# What only machines in cells have.
_OF_CELLS = (
    "cell_centers_",
    "cell_offsets_",
    "cell_middles_",
    "cell_middle_offsets_",
    "cell_gamma_",
    "cell_C_",
)


@dataclass(frozen=True, eq=False)
class CellParameters:
    """Centres of cells, and a kernel width and a C for each.

    Attributes
    ----------
    centers : ndarray of shape (n_cells, n_features)
        Centres.
    gamma, C : ndarray of shape (n_cells,)
        Kernel widths and values of C.
    """

    centers: NDArray[np.float64]
    gamma: NDArray[np.float64]
    C: NDArray[np.float64]


def check_cells(name: str, value: Any) -> None:
    """Raise unless a value can say how rows are cut."""
    if not isinstance(value, CellParameters) and not (
        np.iterable(value) and not isinstance(value, str)
    ):
        check.word_or(("auto",), check.at_least(2))(name, value)


def check_cuttable(engine: str, kernel: Any) -> None:
    """Raise if rows shall be cut that are not there."""
    if engine == "cells" and isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "engine='cells' cuts the space of the rows, which kernel='precomputed' does not "
            "tell; give the rows and a kernel by name, or use engine='span'."
        )


def check_loss(loss: str, engine: str, max_vectors: Any, vectors: Any) -> None:
    """Raise if the hinge loss is asked of a span."""
    named = isinstance(max_vectors, str) and isinstance(vectors, str)
    if loss == "hinge" and (engine == "span" or not named):
        raise ValueError(
            "loss='hinge' is there for engine='exact' and engine='cells', with all rows as "
            "vectors; leave max_vectors and vectors at their defaults, or use loss='squared_hinge'."
        )


@parameters
class MarginClassifier(KernelClassifier):
    """Kernel SVM for data of any size: all rows, inside the span of a few vectors.

    It minimises ½‖w‖² + ½b² + C Σ s ξ² (the squared hinge loss, with the bias regularised), one
    problem for two classes and several for more (`multi_class`). On few rows the answer is the
    exact machine. On many, w is sought in the span of a number of vectors (landmarks, as they are
    called in Nyström's method), with every row in the loss; cost and memory are then linear in the
    rows, and `certificate_` says how good the answer is, in the span and against every larger one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors, as in ``LinearSVC(loss="squared_hinge")``.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "normalized_poly", "cosine_power", "rbf", "laplacian", "exponential",
        "sigmoid", "inverse_distance", "inverse_squared_distance", "precomputed", a function of two
        matrices, or a kernel object.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width; "mean_distance" is one over the mean squared distance between training rows.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        The exact machine; the span fit; a machine for each cell of a partition; or, for "auto", the
        first for up to 5,000 different rows of a problem (a pair of classes counts its own rows),
        and for up to 200,000 if it takes no longer than a span, as parts of the rows tell.
        Otherwise held-out rows of a sample decide; the exact machine is then one of the choices
        for up to 40,000 rows. `engine_` tells which it was.
    cells : int, array of shape (n_cells, n_features), `CellParameters` or "auto", default="auto"
        With ``engine="cells"``: about how many rows a cell has, or the centres of the cells (with
        a kernel width and a C for each, if one likes); a row belongs to the nearest centre. "auto"
        chooses the size on held-out rows.
    overlap : float, default=0.3
        Rows from just outside a cell that train its machine too, as a share of its own.
    blend : float, default=0.2
        Where rows are nearly as near to another cell, both cells' decision values are averaged: as
        long as the distance from the second centre exceeds that from the first by less than this
        share of it.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        "hinge" is the machine of ``SVC``: C Σ s ξ, and a bias that is not regularised. It is there
        for the exact machine and in cells.
    multi_class : {"auto", "ovr", "ovo"}, default="auto"
        With more than two classes: a machine for each class against the rest, or one for each pair
        of classes. "auto" takes pairs for the exact machine and in cells, which are cheaper there
        (each has the rows of two classes) and more accurate on most data; in a span, where all
        machines share the vectors, with a budget of vectors, and where the coefficients of all
        pairs would take more than 250 MB, it takes one against the rest.
        `multi_class_` tells.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Columns of `decision_function` for more than two classes: one a class, or one a pair of
        classes. The predicted class is the same.
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Where the vectors of the span come from: rows that the machine feels (random ones first,
        then rows inside its margin), random rows, centres of k-means, rows by their distance from
        the span of the others, an array of vectors, or an object of ``widemargin.span``.
    max_vectors : int or "auto", default="auto"
        Vectors at the most, of all cells together. "auto" doubles them, up to a fifth of the
        rows or 4,096, until the objective falls by less than 1 % for a doubling. Vectors that lie
        in the span of the others are left out, so that there may be fewer.
    tol : float, default=1e-3
        Stop at this relative duality gap.
    max_iter : int, default=10000
        Steps of the outer loop at the most.
    max_time : float, default=None
        Seconds at the most for the whole fit, the choice of the engine and the partition included.
        It is looked at between steps; a last pass over the rows may follow.
    memory : int or str, default="auto"
        Budget for kernel values and matrices, beside the data: bytes, or text such as "1GB"; "auto"
        is half of the memory that is free when a fit begins, three quarters of a GPU's. Kernel
        values that do not fit are computed again in every step.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    metric : {"diagonal", "full"}, array or None, default=None
        In which metric distances are measured: rows are multiplied with the root of M. "diagonal"
        and "full" learn M from the gradients of a machine with these parameters, in up to three
        rounds, as many as held-out rows ask for (`MarginMetric`); an array of shape (n_features,
        n_features), or a diagonal of shape (n_features,), is M itself. Sparse rows become dense.
    scale : {"auto", None}, default=None
        "auto" puts columns on one scale inside the fit: less the median, over the distance of the
        quartiles, outliers bent towards four standard deviations. Sparse rows and kernel matrices
        are taken as they are, and so are all rows with None. Dask collections and arrays on
        devices are refused, here and for `metric`.
    warm_start : bool, default=False
        Start from the previous solution if rows and classes are the same, for a path over `C`; not
        in cells.
    device : str, default=None
        Where the machine is fitted and asked: "cpu" (NumPy), "cuda", "cuda:1" and so on (needs
        PyTorch); None is where X is. Arrays of PyTorch and CuPy stay on their device, and answers
        come back as such; those for NumPy are NumPy's. On a device there are all
        engines ("cells" of 300 rows if `cells` is "auto"), the squared hinge, and every kernel that
        has a name but "precomputed". Of a Dask collection, shards of a span lie on a device of
        their worker each: ``engine="span"``. Fitted attributes are
        NumPy's, and a machine that was fitted on one device answers on any.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    engine_ : {"exact", "span", "cells"}
        How the machine was found.
    support_ : ndarray of shape (n_vectors,) or None
        Training rows that are vectors of the machine; None if vectors are not rows.
    support_vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        The vectors; row numbers if the kernel is precomputed. With `scale` or `metric` they, and
        the centres of cells, are rows as the machine sees them, after both.
    multi_class_ : {"ovr", "ovo"}
        Whether problems are classes against the rest (or two classes), or pairs of classes.
    n_support_ : ndarray of int of shape (n_classes,)
        Vectors of each class, which follow each other; for exact machines of pairs only.
    dual_coef_ : ndarray of shape (n_problems, n_vectors)
        Coefficient of each vector in each problem: one for two classes, else one for each class or
        for each pair of classes, in the order of ``SVC``.
    intercept_ : ndarray of shape (n_problems,)
        Bias of each problem; of shape (n_cells, n_problems) in cells.
    cell_centers_ : ndarray of shape (n_cells, n_features)
        Centres of the cells, in cells only.
    cell_offsets_ : ndarray of int of shape (n_cells + 1,)
        Where the vectors of each cell begin among the vectors, in cells only.
    cell_middles_ : ndarray of shape (n_groups, n_features)
        Middles of groups of centres, in more than 2,048 cells only: a row is answered by the
        nearest centres among those of its eight nearest middles.
    cell_middle_offsets_ : ndarray of int of shape (n_groups + 1,)
        Where the centres of each group begin.
    cell_gamma_, cell_C_ : ndarray of shape (n_cells,)
        Kernel widths and values of C of the cells, where `cells` has one for each.
    gamma_ : float
        The kernel width that was used.
    metric_ : ndarray of shape (n_features, n_features) or (n_features,)
        M, or its diagonal, of the columns after `scale`; where there is a `metric`.
    metric_root_ : ndarray of the same shape
        Its root, which rows are multiplied with.
    column_centers_, column_factors_ : ndarray of shape (n_features,)
        What columns are less, and what they are then multiplied with; where there is `scale` or
        `metric`.
    column_bend_ : float
        b of z / √(1 + (z / b)²), by which outliers are bent.
    n_iter_ : int
        Steps of the outer loop.
    certificate_ : Certificate
        What the fit can prove: primal, dual and relative gap, in the span or in full (`scope`); for
        a span also a lower bound on the full problem; cost, and the reason for stopping.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginClassifierCV : The same with C and gamma chosen by cross-validation.
    SpanMap : The span as a transformer.
    CoreVectorClassifier : The exact machine by core sets, with the paper's rules.

    Notes
    -----
    The span fit solves (24) to (27) of [1]_ with the squared hinge, exactly where a reduced SVM
    approximates, by Newton's method with conjugate gradients. Rows that occur several times are
    merged into one weighted row before the fit. Classes without a row of positive weight are left
    out.

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import MarginClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = MarginClassifier(C=10, gamma="mean_distance").fit(X[:1000], y[:1000])
    >>> machine.engine_, bool(machine.score(X[1000:], y[1000:]) > 0.95)
    ('exact', True)
    >>> small = MarginClassifier(C=10, gamma="mean_distance", engine="span", max_vectors=100)
    >>> small = small.fit(X[:1000], y[:1000])
    >>> small.certificate_.n_vectors, bool(small.score(X[1000:], y[1000:]) > 0.9)
    (100, True)
    """

    engine: str = keyword("auto", check.choice("auto", "exact", "span", "cells"))
    cells: Any = keyword("auto", check_cells)
    overlap: float = keyword(0.3, check.not_negative)
    blend: float = keyword(0.2, check.not_negative)
    loss: str = keyword("squared_hinge", check.choice("squared_hinge", "hinge"))
    multi_class: str = keyword("auto", check.choice("auto", "ovr", "ovo"))
    decision_function_shape: str = keyword("ovr", check.choice("ovr", "ovo"))
    vectors: Any = keyword("core", check.landmarks)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_vectors: int | str = keyword("auto", check.word_or(("auto",), check.count))
    metric: Any = keyword(None, check_metric)
    scale: str | None = keyword(None, check_scale)
    warm_start: bool = keyword(False)
    device: str | None = keyword(None, check_device)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_cuttable(self.engine, self.kernel)
        check_loss(self.loss, self.engine, self.max_vectors, self.vectors)
        if is_mapped(self):
            check_map(self, self._kernel(1.0))

    def _check_on_device(self, device: Device) -> None:
        check_mapped_here(self, f"on the device {str(device)!r}")
        check_machine_there(self, device, ("auto", "exact", "span", "cells"))
        given = self.cells if self.engine == "cells" else None
        check_one_kernel(given if isinstance(given, CellParameters) else None, device)

    def _check_answers_on(self, device: Device) -> None:
        check_mapped_here(self, f"on the device {str(device)!r}")
        check_one_kernel(getattr(self, "cell_gamma_", None), device)
        super()._check_answers_on(device)

    def _seen(self, data: Labelled, resources: Resources) -> tuple[Labelled, Distinct, float]:
        """Return the rows, each different one once as the machine sees them, and the width."""
        data = replace(data, X=rows_for_map(self, data.X, resources.memory))
        distinct = self._distinct(data, resources)
        learns = isinstance(self.metric, str)
        row_map = scaling_for(self, distinct, centred=learns)
        seen_rows = seen_distinct(distinct, row_map)
        # The words for it are those of rows as they are where only a metric is learned.
        gamma = self._resolved_gamma(self.gamma, distinct if self.scale is None else seen_rows)
        if row_map is not None and self.metric is not None:
            if learns:
                # A metric leaves the variance of the rows, and so the width, as they are.
                root = self._learned_root(data, seen_rows, gamma, resources)
                row_map = row_map.then(root)
            else:
                row_map = row_map.then(given_root(self.metric, self.n_features_in_))
            seen_rows = seen_distinct(distinct, row_map)
            gamma = gamma if learns else self._resolved_gamma(self.gamma, seen_rows)
        return data, seen_rows, gamma

    def _learned_root(
        self, data: Labelled, distinct: Distinct, gamma: float, resources: Resources
    ) -> NDArray[np.float64]:
        problem = self._problem(
            data, distinct, C=self.C, gamma=gamma, class_weight=self.class_weight
        )
        return learned_root(self.stated(problem), self.metric, self.options(resources))

    def _fit(self, problem: Problem, resources: Resources, earlier: Earlier | None) -> Fitted:
        elsewhere = self.stated(problem)
        in_span = elsewhere if self.multi_class == "ovo" else problem
        options = replace(self.options(resources), in_span=in_span)
        decision = Decision(self.engine, options.cells)
        if problem.rows.device is not None and self.engine == "cells":
            # There is no trial: cells have the smallest of its sizes, if the user gives none.
            decision = Decision(self.engine, options.trial.cells[0])
        elif self.engine == "auto" or (self.engine == "cells" and isinstance(self.cells, str)):
            decision = choose_engine(elsewhere, options)
        fitted: Fitted | None = None
        if math.isfinite(decision.work):
            fitted, _ = fit_on_set(elsewhere, options, _FACTOR_SHARE * decision.work)
            if fitted.stop.kind is Ended.CAPACITY:
                decision, fitted = of_many_vectors(elsewhere, options, decision.work), None
        stated = in_span if decision.engine == "span" else elsewhere
        if earlier is not None and earlier.coef.shape[1] == stated.n_problems:
            options = replace(options, earlier=earlier)
        fitted = self._fitted(decision, stated, options) if fitted is None else fitted
        self._drop(*_OF_CELLS)
        self.engine_ = decision.engine
        self.multi_class_ = "ovo" if stated.partial else "ovr"
        return explained(fitted, decision)

    def comes_in_parts(self, X: Any) -> bool:
        """Return whether rows are to be looked at in parts, where they lie."""
        can_be = self.engine != "exact" and not self._precomputed() and not is_mapped(self)
        # To a device a file travels block by block.
        can_be = can_be and self.device in (None, "cpu")
        return super().comes_in_parts(X) or (can_be and is_large_map(X, self.memory))

    def _fit_in_parts(self, X: Any, y: Any, sample_weight: Any) -> KernelClassifier:
        """Fit the machine to rows that come in parts, out of core or on the current cluster."""
        check_collection_there(self)
        check_mapped_here(self, "a Dask collection")
        if self._precomputed():
            raise TypeError(
                "X is a Dask collection, but kernel='precomputed' needs all kernel values in "
                "memory; pass X.compute(), or the rows and a kernel by name."
            )
        with self._fitting(X) as resources:
            collection = Collection.of(X, y, sample_weight, self.memory, resources)
            # Not before all rows were found to be good: nothing shall be half fitted.
            self._note_columns(X, reset=True)
            if brought_here(collection.every, self.options(resources)):
                rows = rows_here(collection.source)
                fitted = self._fit_rows(rows.X, rows.y, rows.weight, resources)
                self._note_columns(X, reset=True)
            else:
                fitted = self._fit_elsewhere(collection, resources)
        self._warn(fitted)
        return self

    def _fit_elsewhere(self, collection: Collection, resources: Resources) -> Fitted:
        """Fit a span or cells to rows that stay where they are."""
        gamma, n_classes = collection.gamma(self.gamma), len(collection.classes)
        stated = collection.stated(self._kernel(gamma), "ovr", self.class_weight, self.C)
        stated = replace(stated, device=None if self.device == "cpu" else self.device)
        many = n_classes > 2
        pairs = (many and self.multi_class == "ovo", lambda n: many and self.in_pairs(n, n_classes))
        with reporting(self, collection.n) as report:
            options = self.options(replace(resources, report=report))
            found = fit_to_collection(collection.source, collection.facts, stated, pairs, options)
        self._drop(*_OF_CELLS)
        self.engine_, self.multi_class_ = found.engine, "ovo" if found.problem.partial else "ovr"
        self.classes_, self.gamma_ = collection.classes, gamma
        self._keep(found.problem, found.fitted)
        return found.fitted

    def stated(self, problem: Problem) -> Problem:
        """Return the problems of the exact machine and of cells: pairs of classes, if wanted."""
        n_classes = len(problem.table)
        pairs = n_classes > 2 and self.in_pairs(problem.n, n_classes)
        return problem.with_signs(one_vs_one(n_classes)) if pairs else problem

    def in_pairs(self, n: int, n_classes: int) -> bool:
        """Return whether the exact machine and cells are to be those of pairs of classes."""
        if self.multi_class != "auto" or not isinstance(self.max_vectors, str):
            return self.multi_class == "ovo"
        return 8 * n * n_classes * (n_classes - 1) // 2 <= _PAIRS_BYTES

    def options(self, resources: Resources) -> ChoiceOptions:
        """Return what the engines are to know of the parameters."""
        limit = None if isinstance(self.max_vectors, str) else int(self.max_vectors)
        named = isinstance(self.vectors, str)
        given = self.cells if isinstance(self.cells, CellParameters) else None
        return ChoiceOptions(
            **vars(resources),
            tol=self.tol,
            max_iter=self.max_iter,
            max_vectors=limit,
            loss=self.loss,
            landmarks=as_strategy(self.vectors, self.n_features_in_),
            cells=self.cells if given is None else given.centers,
            kernels=None if given is None else [self._kernel(width) for width in given.gamma],
            Cs=None if given is None else given.C,
            overlap=self.overlap,
            blend=self.blend,
            engine=self.engine,
            size_given=not isinstance(self.cells, str),
            cuttable=named and limit is None and not self._precomputed(),
            in_a_span=not named,
        )

    def _fitted(self, decision: Decision, problem: Problem, options: ChoiceOptions) -> Fitted:
        if decision.engine == "cells":
            size = options.cells if options.size_given else decision.size
            fit = fit_cells if problem.rows.device is None else fit_cells_there
            return fit(problem, replace(options, cells=size))
        if decision.engine == "exact":
            return fit_exact_from_span(problem, options)
        earlier, limit = options.earlier, options.max_vectors
        too_many = earlier is not None and limit is not None and len(earlier.index) > limit
        # Only a span goes on from the coefficients of a span.
        if getattr(self, "engine_", "") != "span" or too_many:
            options = replace(options, earlier=None)
        return fit_span(problem, options)

    def _keep(self, problem: Problem, fitted: Fitted) -> None:
        super()._keep(problem, fitted)
        keep_map(self, problem.rows.row_map)
        if isinstance(fitted, FittedCells):
            self.cell_centers_, self.cell_offsets_ = fitted.centers, fitted.offsets
            if fitted.groups is not None:
                self.cell_middles_ = fitted.groups.middles
                self.cell_middle_offsets_ = fitted.groups.offsets
            if isinstance(self.cells, CellParameters):
                self.cell_gamma_ = self.cells.gamma[fitted.chosen]
                self.cell_C_ = self.cells.C[fitted.chosen]

    def _decision(self, rows: Rows) -> NDArray[np.float64]:
        """Return the decision values of rows, a column for each problem."""
        rows = seen(rows, kept_map(self))
        if self.engine_ != "cells":
            return super()._decision(rows)
        return self._machines().values(rows)

    def _decision_there(self, rows: Rows) -> Array:
        if self.engine_ != "cells":
            return super()._decision_there(rows)
        return values_there(self._machines(), rows)

    def _machines(self) -> CellMachines:
        """Return the machines of all cells."""
        widths, middles = (getattr(self, name, None) for name in ("cell_gamma_", "cell_middles_"))
        groups = None if middles is None else Groups(middles, self.cell_middle_offsets_)
        return CellMachines(
            Partition(self.cell_centers_, groups),
            self._kernel(self.gamma_) if widths is None else [self._kernel(g) for g in widths],
            dense(self.support_vectors_),
            np.ascontiguousarray(self.dual_coef_.T),
            self.cell_offsets_,
            self.intercept_,
            float(self.blend),
        )
