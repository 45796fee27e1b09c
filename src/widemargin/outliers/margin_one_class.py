"""`MarginOneClass`: the ν-one-class machine, for few rows and for many.

Schölkopf, Platt, Shawe-Taylor, Smola and Williamson (2001), "Estimating the support of a
high-dimensional distribution": the hyperplane that separates most rows from the origin of the
feature space with the largest margin,

    min ½‖w‖² − ν n ρ + Σ_i s_i max(0, ρ − wᵀφ(x_i)),        n = Σ s.

It is solved exactly on the kernel matrix (``qp.interval_dual``), or for all rows inside the span of
a few (``span.interval_fit``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.balls.exact_intervals import fit_exact_intervals, fits_matrix
from widemargin.base import parameters as check
from widemargin.base.detector import KernelDetector
from widemargin.base.kept_cells import keep_cells, kept_machines
from widemargin.base.parameters import keyword, parameters
from widemargin.cells import CellOptions
from widemargin.cells.one_class_cells import fit_one_class_cells
from widemargin.expansion import Fitted, MachineOptions
from widemargin.intervals import one_class
from widemargin.loop import Resources
from widemargin.rows import Distinct, Rows
from widemargin.span.interval_fit import IntervalSpanOptions, fit_interval_span
from widemargin.span.landmarks import as_strategy

# Rows up to which engine="auto" is exact.
_EXACT_ROWS = 3000
# Vectors of a span, where nobody says how many: scores hardly change with more.
_VECTORS = 512


@parameters
class MarginOneClass(KernelDetector):
    """Detect outliers by the ν-one-class machine, on few rows or on millions.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is outside, and at least this share supports the machine. A
        large one makes an average over many rows of the score; `contamination` then decides how
        many are called outliers.
    kernel : str, callable or Kernel, default="rbf"
        The kernel.
    gamma : str or float, default="median_distance"
        Its width: a number, "scale", "auto", "mean_distance", or "median_distance", which is 4 / m
        with m the median squared distance between rows after `scale`: at half the median distance
        the kernel falls to 1/e.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    scale : {"auto", "robust", "standard", "none"}, default="auto"
        What is done to columns first: medians and quartiles, with values cut at ten of them
        ("robust"), means and standard deviations ("standard"), or nothing. "auto" is "robust"
        for arrays, and nothing for sparse rows and kernel matrices.
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        "exact" needs the kernel matrix, "span" fits all rows in the span of `max_vectors` of them,
        and "cells" cuts the space into cells that share the offset, for kernels that are narrow
        beside a cell. "auto" is exact up to 3,000 different rows, and then a span.
    cells : int or array of shape (n_cells, n_features), default=300
        With ``engine="cells"``: about how many rows a cell has, or the centres of the cells, in
        the scale of the data.
    overlap : float, default=1.0
        Rows from just outside a cell that count in it, too, as a share of its own.
    blend : float, default=0.2
        Where rows are nearly as near to another cell, both cells' scores are averaged: as long as
        the distance from the second centre exceeds that from the first by less than this share.
    contamination : "auto" or float, default="auto"
        Share of the training rows that are outliers. "auto" leaves the offset to the machine: with
        a large `nu` most training rows are outside then, and only their order tells something.
    vectors : str, array or strategy, default="random"
        Where the vectors of the span come from.
    max_vectors : int, default=None
        Vectors of the span at the most; None is 512, or as many as `vectors` has.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=10000
        Steps at the most.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="auto"
        Budget for arrays.
    n_jobs : int, default=None
        Threads; the answer does not depend on them.
    random_state : int, RandomState or None, default=None
        Decides which rows the vectors of a span are.
    verbose : int, default=0
        Whether to print a line a step.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``.
    support_vectors_ : ndarray or CSR matrix of shape (n_vectors, n_features)
        Vectors of the machine, scaled.
    support_ : ndarray of int or None
        The training rows that they are.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (1,) or (n_cells, 1)
        −ρ, the offset of the machine itself, the same in all cells.
    cell_centers_ : ndarray of shape (n_cells, n_features)
        Centres of the cells, in the scale of the machine, in cells only.
    cell_offsets_ : ndarray of int of shape (n_cells + 1,)
        Where the vectors of each cell begin among the vectors, in cells only.
    cell_middles_, cell_middle_offsets_ : ndarray
        Middles of groups of centres, and where their centres begin, in more than 2,048 cells only.
    center_, spread_ : ndarray of shape (n_features,) or None
        What columns are scaled by.
    clip_ : float or None
        Where scaled values end.
    gamma_ : float
        The kernel's width.
    engine_ : str
        The engine that was used.
    certificate_ : Certificate
        What was proved. The optimum is negative: the gap is relative to its modulus.
    n_iter_ : int
        Steps.

    See Also
    --------
    sklearn.svm.OneClassSVM : the same machine up to the number of rows that it can take.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MarginOneClass
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> detector = MarginOneClass(contamination=0.05).fit(X)
    >>> detector.predict([[0.0, 0.0], [6.0, -6.0]])
    array([ 1, -1])
    """

    engine: str = keyword("auto", check.choice("auto", "exact", "span", "cells"))
    cells: Any = keyword(300, check.size_or_rows)
    overlap: float = keyword(1.0, check.not_negative)
    blend: float = keyword(0.2, check.not_negative)
    vectors: Any = keyword("random", check.landmarks)
    max_vectors: int | None = keyword(None, check.count_or_none)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.engine == "cells" and self._precomputed():
            raise ValueError(
                "engine='cells' cuts the space of the rows, which kernel='precomputed' does not "
                "tell; give the rows and a kernel by name, or use engine='span'."
            )

    def _fit(self, rows: Rows, distinct: Distinct, resources: Resources) -> Fitted:
        problem = one_class(rows, self._kernel(self.gamma_), distinct.weight, self.nu)
        parameters = self.get_params(deep=False)
        few = problem.n <= _EXACT_ROWS and fits_matrix(problem.n, resources.memory)
        budget = self.max_vectors is not None and self.max_vectors < problem.n
        exact = self.engine == "exact" or (self.engine == "auto" and few and not budget)
        self.engine_ = "exact" if exact else "cells" if self.engine == "cells" else "span"
        if exact:
            return fit_exact_intervals(
                problem, MachineOptions.with_parameters(resources, parameters)
            )
        if self.engine_ == "cells":
            centres = self._to_scale(self.cells) if np.iterable(self.cells) else self.cells
            told = CellOptions.with_parameters(resources, parameters | {"cells": centres})
            return fit_one_class_cells(problem, told)
        strategy = as_strategy(self.vectors, problem.rows.shape[1])
        if self.max_vectors is None and isinstance(self.vectors, str):
            # The order of scores gains from vectors that the objective hardly feels.
            parameters |= {"max_vectors": _VECTORS}
        options = IntervalSpanOptions.with_parameters(resources, parameters, landmarks=strategy)
        return fit_interval_span(problem, options)

    def _keep(self, rows: Rows, distinct: Distinct, fitted: Fitted) -> None:
        """Set the attributes of the decision function, those of cells too."""
        keep_cells(self, fitted)
        super()._keep(rows, distinct, fitted)

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        if self.engine_ != "cells":
            return super()._scores(rows)
        # All cells have the same offset, which is not part of a score.
        nothing = np.zeros((len(self.cell_centers_), 1))
        return kept_machines(self, self._kernel(self.gamma_), nothing).values(rows)[:, 0]
