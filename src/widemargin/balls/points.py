"""The points whose ball is the SVM.

Row i with label y_i = ±1 and weight s_i is the point φ̃(z_i) = (y_i φ(x_i), y_i, e_i √ridge_i) of
(3) and (4) of BVM and (7) of MMDA-CVM, here with several label columns at once:

    Q_ij = y_i y_j (k(x_i, x_j) + 1 − p_iᵀp_j) + δ_ij ridge_i,   ridge_i = 1 / (2 C s_i),

p_i = Uᵀφ(x_i) for unit directions U that the centre must be orthogonal to. Distances are those of
the centre-constrained ball, (16) and (19) of MMDA-CVM: every point carries an extra coordinate
that makes its squared norm η, the largest of all, so that

    distance²_i = η + ‖c‖² − 2 (Qλ)_i,    radius² = η − ‖c‖²    for a centre c = Σ λ_i φ̃(z_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.kernels import Kernel
from widemargin.rows import BlockRows, weighted_moments
from widemargin.rows.base import IndexArray
from widemargin.threads import scratch

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Directions:
    """Unit directions u_q = Σ_j coef[p, q, j] φ(vectors_j), orthonormal for each problem p.

    Attributes
    ----------
    vectors : ndarray of shape (k, n_features)
        Expansion vectors that all directions share.
    coef : ndarray of shape (n_problems, n_directions, k)
        Their coefficients.
    """

    vectors: NDArray[Any]
    coef: NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Labelled rows as points of several enclosing balls.

    Attributes
    ----------
    rows : BlockRows
        The rows, each different one once.
    kernel : Kernel
        Their kernel.
    code : ndarray of int of shape (n,)
        Class of each row.
    table : ndarray of shape (n_classes, n_problems)
        Sign of each class in each problem, ±1.
    weight : ndarray of shape (n,)
        Weight s of each row.
    C : float
        As in ``LinearSVC(loss="squared_hinge")``.
    number : ndarray of int of shape (n,)
        The rows' numbers in the user's data (columns of a precomputed kernel).
    directions : Directions or None
        What the centres must be orthogonal to.
    """

    rows: BlockRows
    kernel: Kernel
    code: NDArray[np.intp]
    table: NDArray[np.float64]
    weight: Vector
    C: float
    number: IndexArray
    directions: Directions | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return self.rows.shape[0]

    @property
    def n_problems(self) -> int:
        """Number of balls."""
        n_problems: int = self.table.shape[1]
        return n_problems

    @cached_property
    def ridge(self) -> Vector:
        """1 / (2 C s) of every row."""
        return 1.0 / (2.0 * self.C * self.weight)

    def sign(self, problem: int, index: IndexArray | slice) -> Vector:
        """Return the labels ±1 of rows in one problem."""
        return np.ascontiguousarray(self.table[self.code[index], problem])

    @cached_property
    def eta(self) -> float:
        """η: the largest squared norm of a point."""
        constant = self.kernel.constant_diagonal
        if constant is not None:
            return constant + 1.0 + float(self.ridge.max())
        blocks = self.rows.scan(_Diagonal(self.kernel, self.number, self.ridge))
        return 1.0 + max(blocks)

    @cached_property
    def roundoff(self) -> float:
        """Error of a kernel value in units of the roundoff."""
        spread = float(weighted_moments(self.rows, self.weight).variance.sum())
        return self.kernel.roundoff(spread)

    def projections(self, index: IndexArray) -> NDArray[np.float64] | None:
        """Return p_i = Uᵀφ(x_i) of a few rows, of shape (n_problems, len(index), n_directions)."""
        if self.directions is None:
            return None
        visit = KernelBlocks(self.kernel, self.directions.vectors, np.float64)
        values = np.concatenate(list(self.rows.scan(visit, index)))
        projections: NDArray[np.float64] = np.einsum("ij,pqj->piq", values, self.directions.coef)
        return projections


def check_finite(kernel: Kernel, values: NDArray[Any]) -> None:
    """Raise if a kernel's values, or sums of them, overflow."""
    # The sum of finite values may overflow too, but it is quick to look at first.
    if np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    raise ValueError(
        f"kernel={kernel.name!r} gives infinite or undefined values on this data: scale X (for "
        "example with StandardScaler) or use smaller kernel parameters."
    )


@dataclass(frozen=True)
class _Diagonal:
    """Visitor: the largest k(x_i, x_i) + ridge_i of a block."""

    kernel: Kernel
    number: IndexArray
    ridge: Vector

    def __call__(self, block: Any, where: slice) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.kernel.diagonal(block, self.number[where])
            check_finite(self.kernel, diagonal)
        if not (diagonal >= 0).all():
            raise ValueError(
                f"kernel={self.kernel.name!r} gives negative values k(x, x) on this data, which no "
                "Mercer kernel does; use another kernel or other kernel parameters."
            )
        return float((diagonal + self.ridge[where]).max())


@dataclass(frozen=True)
class KernelBlocks:
    """Visitor: k(block, vectors)."""

    kernel: Kernel
    vectors: NDArray[Any]
    dtype: DTypeLike

    def __call__(self, block: Any, where: slice) -> NDArray[Any]:
        """Return the values of a block."""
        values = np.empty((block.shape[0], len(self.vectors)), dtype=self.dtype)
        self.kernel.block(block, self.vectors, out=values)
        return values


@dataclass(frozen=True)
class _KernelInto:
    """Visitor: k(block, vectors) written where it belongs, for rows in this process."""

    kernel: Kernel
    vectors: NDArray[Any]
    out: NDArray[Any]

    def __call__(self, block: Any, where: slice) -> None:
        values = self.out[where]
        with np.errstate(over="ignore", invalid="ignore"):
            self.kernel.block(block, self.vectors, out=values)
            check_finite(self.kernel, values)


class CoreMatrix:
    """Kernel values among the core rows, a matrix that grows in place.

    The whole capacity is reserved at once, but the system hands out its pages only when they are
    first used; copies to larger and larger matrices would cost more.
    """

    def __init__(self, points: Points, capacity: int, dtype: DTypeLike) -> None:
        self.points = points
        self.capacity = capacity
        self._values = np.empty((capacity, capacity), dtype=dtype)

    def extend(self, core: IndexArray, n_old: int) -> int:
        """Compute the values of the rows core[n_old:]; return how many were computed."""
        rows, new = self.points.rows, core[n_old:]
        into = self._values[n_old : len(core)]
        step = rows.vectors_at_a_time
        for begin in range(0, len(core), step):
            end = min(len(core), begin + step)
            visit = _KernelInto(self.points.kernel, rows.take(core[begin:end]), into[:, begin:end])
            for _ in rows.scan(visit, new, width=end - begin):
                pass
        if n_old:
            from widemargin.qp import _compiled

            _compiled.mirror(self._values, n_old, len(core))
        return len(new) * len(core)

    def keep(self, index: IndexArray) -> None:
        """Keep only the values among the core rows at `index`, which ascends."""
        if len(index) and index[-1] != len(index) - 1:
            from widemargin.qp import _compiled

            _compiled.compress(self._values, index)

    def values(self, size: int) -> NDArray[Any]:
        """Return the values among the first `size` core rows, the first columns of a wider array.

        Whole rows are contiguous, which compiled loops over them need to be fast.
        """
        return self._values[:size]


@dataclass(frozen=True)
class Machines:
    """Decision functions f_p(x) = Σ_j coef[j, p] k(x, v_j) + intercept_p, one a problem.

    Attributes
    ----------
    kernel : Kernel
        k.
    vectors : ndarray of shape (n_vectors, n_features)
        v_j.
    coef : ndarray of shape (n_vectors, n_problems)
        Their coefficients.
    intercept : ndarray of shape (n_problems,)
        Biases.
    dtype : dtype
        Precision of the kernel values.
    at_a_time : int
        Vectors to set against a block of rows at a time.
    """

    kernel: Kernel
    vectors: NDArray[Any]
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    dtype: DTypeLike
    at_a_time: int

    @property
    def width(self) -> int:
        """Numbers that a row needs while it is visited."""
        return min(self.at_a_time, len(self.vectors))

    def __call__(self, block: Any, where: slice) -> NDArray[np.float64]:
        """Return f of a block of rows, of shape (rows, problems)."""
        decision = np.tile(self.intercept, (block.shape[0], 1))
        with np.errstate(over="ignore", invalid="ignore"):
            self._add_values(block, decision)
            check_finite(self.kernel, decision)
        return decision

    def _add_values(self, block: Any, decision: NDArray[np.float64]) -> None:
        for first in range(0, len(self.vectors), self.at_a_time):
            vectors = self.vectors[first : first + self.at_a_time]
            coef = self.coef[first : first + self.at_a_time]
            values = scratch((block.shape[0], len(vectors)), self.dtype)
            self.kernel.block(block, vectors, out=values)
            decision += values @ coef.astype(self.dtype, copy=False)


@dataclass(frozen=True)
class MarginScan:
    """Visitor: what a pass over the rows must know of the margins, problem by problem.

    Attributes
    ----------
    machines : Machines
        The decision functions.
    points : Points
        Labels and weights.
    row : ndarray of int or None
        Row numbers behind the positions of the scan; None if they are the same.
    core : ndarray of int of shape (n_core,)
        The core rows.
    inside : ndarray of bool of shape (n_problems, n_core)
        Which of them are in the core set of which problem.
    threshold : ndarray of shape (n_problems,)
        A row whose 1 − y f exceeds this in some problem is a candidate.
    keep : int
        Candidates of a block at the most.
    """

    machines: Machines
    points: Points
    row: IndexArray | None
    core: IndexArray
    inside: NDArray[np.bool_]
    threshold: Vector
    keep: int

    def __call__(self, block: Any, where: slice) -> BlockMargins:
        """Return losses, the worst residuals and the candidates of a block."""
        number = np.arange(where.start, where.stop) if self.row is None else self.row[where]
        sign = self.points.table[self.points.code[number]]
        residual = 1.0 - sign * self.machines(block, where)
        slack = np.maximum(0.0, residual)
        loss = self.points.C * (self.points.weight[number] @ (slack * slack))
        self._hide_core(residual, number)
        top = residual.argmax(axis=0)
        worst = residual[top, np.arange(len(top))]
        furthest = np.where(worst > -np.inf, number[top], -1)
        # Rows come in the order of a hash, so that the first ones are a random choice. The worst
        # ones would be a poor choice: where classes overlap, those are the outliers.
        candidate = np.flatnonzero((residual > self.threshold).any(axis=1))[: self.keep]
        return BlockMargins(loss, worst, furthest, number[candidate], residual[candidate])

    def _hide_core(self, residual: NDArray[np.float64], number: IndexArray) -> None:
        """Set the residual of a problem's own core rows, which the solver has seen to, to −∞."""
        order = np.argsort(self.core, kind="stable")
        place = np.searchsorted(self.core, number, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        hit = self.core[place] == number
        residual[hit] = np.where(self.inside[:, place[hit]].T, -np.inf, residual[hit])


@dataclass(frozen=True)
class BlockMargins:
    """Losses and worst residuals of the problems, and candidates for the core set."""

    loss: Vector
    worst: Vector
    furthest: IndexArray
    candidate: IndexArray
    residual: NDArray[np.float64]
