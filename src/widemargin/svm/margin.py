"""The classifier to reach for: exact on few rows, a span fit on many, cells where it pays."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from widemargin.balls import MinimumBall, Points
from widemargin.deadline import NEVER, Deadline
from widemargin.loop import Limits, Result, run
from widemargin.parameters import check_choice, check_count, check_not_negative
from widemargin.progress import Report
from widemargin.rows import parse_memory
from widemargin.span import (
    Earlier,
    Problems,
    SpanFit,
    Strategy,
    as_strategy,
    span_fit,
)
from widemargin.svm.cell_classifier import CellClassifier
from widemargin.svm.cell_machine import CellMachine
from widemargin.svm.engines import SIZES, Trial, cells_or_span, exact_or_span, size_of_cells


class MarginClassifier(CellClassifier):
    """Kernel SVM for data of any size: all rows, inside the span of a few vectors.

    It minimises ½‖w‖² + ½b² + C Σ s ξ² (the squared hinge loss, with the bias regularised), one
    problem for two classes and one-vs-rest for more. On few rows the answer is the exact machine.
    On many, w is sought in the span of a number of vectors, with every row in the loss; cost and
    memory are then linear in the rows, and `certificate_` says how good the answer is, in the span
    and against every larger one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors, as in ``LinearSVC(loss="squared_hinge")``.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "normalized_poly", "cosine_power", "rbf", "laplacian", "sigmoid",
        "inverse_distance", "inverse_squared_distance", "precomputed", a function of two matrices,
        or a kernel object.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width; "mean_distance" is one over the mean squared distance between training rows.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        The exact machine, found by a core set; the span fit; a machine for each cell of a
        partition; or, for "auto", the first for up to 5,000 different rows (10,000 if few of them
        will be support vectors) and one of the others beyond, whichever does better on held-out
        rows of a sample. `engine_` tells which one it was.
    cells : int, array of shape (n_cells, n_features) or "auto", default="auto"
        With ``engine="cells"``: about how many rows a cell has, or the centres of the cells; a row
        belongs to the nearest centre. "auto" chooses the size on held-out rows.
    overlap : float, default=0.3
        Rows from just outside a cell that train its machine too, as a share of its own.
    blend : float, default=0.2
        Where rows are nearly as near to another cell, both cells' decision values are averaged: as
        long as the distance from the second centre exceeds that from the first by less than this
        share of it.
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Where the vectors of the span come from: rows that the machine feels (random ones first,
        then rows inside its margin), random rows, centres of k-means, rows by their distance from
        the span of the others, an array of vectors, or an object of ``widemargin.span``.
    max_vectors : int or "auto", default="auto"
        Vectors at the most, of all cells together. "auto" doubles them until the objective falls by
        less than 1 % for a doubling, or kernel values and matrices would no longer fit into
        `memory`. Vectors that lie in the span of the others are left out, so that there may be
        fewer.
    tol : float, default=1e-3
        Stop at this relative duality gap.
    max_iter : int, default=10000
        Steps of the outer loop at the most.
    max_time : float, default=None
        Seconds at the most for the whole fit, the choice of the engine and the partition included.
        It is looked at between steps; a last pass over the rows may follow.
    memory : int or str, default="1GB"
        Budget for kernel values and matrices, beside the data. Kernel values that do not fit are
        computed again in every step.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    warm_start : bool, default=False
        Start from the previous solution if rows and classes are the same, for a path over `C`; not
        in cells.
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
        The vectors; row numbers if the kernel is precomputed.
    dual_coef_ : ndarray of shape (1 or n_classes, n_vectors)
        Coefficient of each vector in each problem.
    intercept_ : ndarray of shape (1 or n_classes,)
        Bias of each problem; of shape (n_cells, 1 or n_classes) in cells.
    cell_centers_ : ndarray of shape (n_cells, n_features)
        Centres of the cells, in cells only.
    cell_offsets_ : ndarray of int of shape (n_cells + 1,)
        Where the vectors of each cell begin among the vectors, in cells only.
    cell_gamma_, cell_C_ : ndarray of shape (n_cells,)
        Kernel widths and values of C of the cells, where `MarginClassifierCV` chose one for each.
    gamma_ : float
        The kernel width that was used.
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

    # The end of `max_time`, while a fit is under way.
    _deadline = NEVER
    # The exact engine stops by the gap; the papers' rule belongs to the papers' machines.
    stopping = "gap"
    epsilon = 1e-4

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        engine: str = "auto",
        cells: Any = "auto",
        overlap: float = 0.3,
        blend: float = 0.2,
        vectors: Any = "core",
        max_vectors: int | str = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        memory: int | str = "1GB",
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.engine = engine
        self.cells = cells
        self.overlap = overlap
        self.blend = blend
        self.vectors = vectors
        self.max_vectors = max_vectors
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory = memory
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("engine", self.engine, ("auto", "exact", "span", "cells"))
        check_not_negative("overlap", self.overlap)
        check_not_negative("blend", self.blend)
        if isinstance(self.cells, str):
            check_choice("cells", self.cells, ("auto",))
        elif not np.iterable(self.cells):
            check_count("cells", self.cells, least=2)
        if self.engine == "cells" and self._precomputed():
            raise ValueError(
                "engine='cells' cuts the space of the rows, which kernel='precomputed' does not "
                "tell; give the rows and a kernel by name, or use engine='span'."
            )
        if isinstance(self.vectors, str):
            as_strategy(self.vectors, 0)

    def _check_max_vectors(self) -> None:
        if isinstance(self.max_vectors, str):
            check_choice("max_vectors", self.max_vectors, ("auto",))
        else:
            check_count("max_vectors", self.max_vectors)

    def _ball(self) -> MinimumBall:
        return MinimumBall(self.tol, None, "exact")

    def _points(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        threads: int,
        apart: NDArray[np.intp] | None = None,
    ) -> Points:
        # The first thing that takes time.
        self._deadline = Deadline.after(self.max_time)
        return super()._points(X, y, sample_weight, threads, apart)

    def _fit_points(self, points: Points, threads: int, report: Report) -> Result[Any]:
        deadline: Deadline = self.__dict__.pop("_deadline", NEVER)
        # Checked here also for the engines that do not use it.
        strategy = as_strategy(self.vectors, self.n_features_in_)
        limit = self._vector_limit()
        earlier = self._earlier_machine(points, limit)
        for name in ("cell_centers_", "cell_offsets_", "cell_gamma_", "cell_C_"):
            self.__dict__.pop(name, None)
        self.engine_, cells, why = self._choose_engine(points, threads, deadline)
        if self.engine_ == "cells":
            result = self._fit_cells(points, cells, limit, threads, report, deadline)
        elif self.engine_ == "exact":
            limits = Limits(self.max_iter, deadline=deadline)
            result = self._fit_ball(points, threads, report, limit, limits)
        else:
            result = self._fit_span(points, strategy, limit, earlier, threads, report, deadline)
        if not why:
            return result
        stopped = f"{result.certificate.stopped} (engine: {why})"
        return replace(result, certificate=replace(result.certificate, stopped=stopped))

    def _fit_span(
        self,
        points: Points,
        strategy: Strategy,
        limit: int | None,
        earlier: Earlier | None,
        threads: int,
        report: Report,
        deadline: Deadline,
    ) -> Result[Any]:
        """Find the machine in a span, and copy it out."""
        problems = Problems.of(points.code, points.table, points.weight, self.C, threads)
        solver = self._span_fit(points, problems, strategy, limit, earlier)
        result = run(solver, Limits(self.max_iter, deadline=deadline), report)
        beta = result.state.beta
        # A second interrupt may leave vectors that have no coefficients yet.
        vectors = solver.basis.vectors[: len(beta) - 1]
        self._keep_machine(points, vectors.values, vectors.index, beta[:-1], beta[-1])
        return result

    def _whole(
        self,
        points: Points,
        limit: int | None,
        tol: float | None = None,
        deadline: Deadline = NEVER,
        threads: int = 1,
    ) -> CellMachine:
        """Return the machine of points that are not cut further."""
        inner = clone(self).set_params(
            C=points.C,
            engine=self._whole_engine(points) if limit is None else "span",
            warm_start=False,
            max_vectors=limit or "auto",
            n_jobs=threads,
            tol=self.tol if tol is None else tol,
        )
        inner.classes_, inner.gamma_ = self.classes_, self.gamma_
        inner.n_features_in_, inner._earlier_classes = self.n_features_in_, None
        inner._deadline = deadline
        result = inner._fit_points(points, threads, lambda certificate: False)
        index = None
        if inner.support_ is not None:
            order = np.argsort(points.number)
            index = order[np.searchsorted(points.number, inner.support_, sorter=order)]
        return CellMachine(
            inner._dense_vectors(),
            index,
            np.ascontiguousarray(inner.dual_coef_.T),
            inner.intercept_,
            result.certificate.primal,
            result.certificate.dual,
            result.certificate.gap,
            result.certificate.n_kernel,
            result.converged,
            result.certificate.full_dual,
            result.certificate.stopped == "interrupted",
        )

    def _span_fit(
        self,
        points: Points,
        problems: Problems,
        strategy: Strategy,
        limit: int | None,
        earlier: Earlier | None = None,
        bounds: bool = True,
    ) -> SpanFit:
        """Return the solver of problems in a span, with this estimator's parameters."""
        return span_fit(
            points.rows,
            points.kernel,
            problems,
            strategy,
            limit=limit,
            tol=self.tol,
            memory=parse_memory(self.memory),
            rng=self._rng(),
            earlier=earlier,
            bounds=bounds,
        )

    def _choose_engine(
        self, points: Points, threads: int, deadline: Deadline
    ) -> tuple[str, Any, str]:
        """Return the engine, the size or the centres of its cells, and why."""
        auto = isinstance(self.cells, str)
        if self.engine == "cells" and not auto:
            return "cells", self.cells, ""
        engine = self._whole_engine(points) if self.engine == "auto" else self.engine
        plain = isinstance(self.vectors, str) and self.max_vectors == "auto"
        ask = self.engine == "auto" and engine == "span" and plain and not self._precomputed()

        def cells_accuracy(trial: Trial, size: int) -> float | None:
            inner = partial(self._whole, deadline=trial.deadline)
            return trial.of_cells(size, self.overlap, float(self.blend), inner, threads)

        if engine == "cells":
            decision = size_of_cells(points, cells_accuracy, deadline)
        elif ask:
            whole = partial(self._whole, threads=threads)
            decision = cells_or_span(points, whole, cells_accuracy, deadline)
        else:
            return engine, SIZES[0], ""
        return decision.engine, decision.size if auto else self.cells, decision.reason

    def _whole_engine(self, points: Points) -> str:
        """Return the engine for points that are not cut into cells."""
        if not isinstance(self.vectors, str):
            return "span"
        return exact_or_span(points, self._vector_limit(), parse_memory(self.memory))

    def _earlier_machine(self, points: Points, limit: int | None) -> Earlier | None:
        """Return vectors and coefficients of an earlier span fit, if they fit these rows."""
        if not self.warm_start or getattr(self, "engine_", "") != "span":
            return None
        place = self._earlier_rows(points)
        if place is None or (limit is not None and len(place) > limit):
            return None
        return Earlier(place, np.vstack([self.dual_coef_.T, self.intercept_]))
