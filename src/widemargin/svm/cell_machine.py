"""The machine of one cell: exact on its kernel matrix, a constant where there is one class.

A cell has hundreds of rows. Its kernel matrix costs next to nothing, all classes share it, and the
dual of each (``qp.margin``) is solved on it directly. In a problem for which all rows of the cell
are on one side, the answer is a constant, the best bias:

    min over b of ½b² + C S (1 − b)²,     S = Σ s,     b = 2CS / (1 + 2CS),

with the lower bound  ½ S² / (sᵀKs + S² + S/(2C)),  that of α ∝ s. (A narrow kernel cannot do better
than the bias; a wide one could, with a machine that tells nothing apart.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.balls import Points
from widemargin.certificate import relative_gap
from widemargin.deadline import NEVER, Deadline
from widemargin.kernels.finite import check_finite
from widemargin.qp import solve_margin_dual
from widemargin.rows.base import IndexArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class CellMachine:
    """The machines of all problems in one cell.

    Attributes
    ----------
    vectors : ndarray of shape (n_vectors, n_features)
        Its vectors.
    index : ndarray of int of shape (n_vectors,) or None
        The rows that they are, if they are rows.
    coef : ndarray of shape (n_vectors, n_problems)
        Their coefficients.
    intercept : ndarray of shape (n_problems,)
        Biases.
    primal, dual : float
        Sums over the problems.
    gap : float
        The largest relative gap of a problem with rows on both sides.
    n_kernel : int
        Kernel values that it took.
    converged : bool
        Whether the gap was reached.
    full_dual : float or None
        A lower bound without the limit to a span, if there is one.
    interrupted : bool
        Whether it is what there was when a user interrupted.
    """

    vectors: NDArray[Any]
    index: IndexArray | None
    coef: Matrix
    intercept: NDArray[np.float64]
    primal: float
    dual: float
    gap: float
    n_kernel: int
    converged: bool
    full_dual: float | None = None
    interrupted: bool = False

    @property
    def n_vectors(self) -> int:
        """Number of vectors."""
        return len(self.vectors)


@dataclass(frozen=True)
class Joined:
    """The machines of all cells, one after another, as `CellMachines` wants them."""

    vectors: NDArray[Any]
    coef: Matrix
    offsets: IndexArray
    intercept: Matrix

    @classmethod
    def of(cls, machines: list[CellMachine]) -> Joined:
        """Join machines in their order."""
        sizes = [machine.n_vectors for machine in machines]
        return cls(
            np.concatenate([machine.vectors for machine in machines]),
            np.concatenate([machine.coef for machine in machines]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
            np.stack([machine.intercept for machine in machines]),
        )


def exact_machine(
    points: Points,
    index: IndexArray,
    X: NDArray[Any],
    tol: float,
    dtype: DTypeLike,
    deadline: Deadline = NEVER,
) -> CellMachine | None:
    """Return the exact machines of a cell, or None if there was no time for all of them.

    Parameters
    ----------
    points : Points
        All rows, and the problems.
    index : ndarray of int of shape (m,)
        Rows of the cell.
    X : ndarray of shape (m, n_features)
        Their values.
    tol : float
        Relative gap.
    dtype : dtype
        Precision of the kernel values.
    deadline : Deadline, default=NEVER
        Looked at between the problems.
    """
    signs = points.table[points.code[index]]
    mixed = np.flatnonzero(np.abs(signs.sum(axis=0)) < len(index))
    K = np.empty((len(index), len(index)), dtype=dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        points.kernel.block(X, X, out=K)
        check_finite(points.kernel, K)
    machine = constant_machine(points, index, X, K)
    if not len(mixed):
        return machine
    ridge = 1.0 / (2.0 * points.C * points.weight[index])
    beta = np.zeros(signs.shape)
    intercept = machine.intercept.copy()
    primal, dual = _constant_bounds(
        points, index, np.setdiff1d(np.arange(signs.shape[1]), mixed), K
    )
    worst = 0.0
    for p in mixed:
        if deadline.passed:
            return None
        sign = np.ascontiguousarray(signs[:, p])
        solved = solve_margin_dual(K, sign, ridge, gap=tol)
        beta[:, p] = sign * solved.alpha
        intercept[p] = beta[:, p].sum()
        upper, lower = solved.objectives()
        primal, dual = primal + upper, dual + lower
        worst = max(worst, relative_gap(upper, lower))
    used = np.flatnonzero(beta.any(axis=1))
    return CellMachine(
        X[used],
        index[used],
        beta[used],
        intercept,
        primal,
        dual,
        worst,
        len(index) ** 2,
        worst <= 2.0 * tol,
    )


def constant_machine(
    points: Points, index: IndexArray, X: NDArray[Any], K: NDArray[Any] | None = None
) -> CellMachine:
    """Return the best constants of a cell; X tells how vectors look, and K what they could do."""
    signs, weight = points.table[points.code[index]], points.weight[index]
    n_problems = points.n_problems
    total = float(weight.sum())
    # ±Σ s where all rows are on one side, and between for cells that the fit did not get to.
    lean = weight @ signs
    intercept = 2.0 * points.C * lean / (1.0 + 2.0 * points.C * total)
    primal, dual = _constant_bounds(points, index, np.arange(n_problems), K)
    nothing = np.zeros((0, n_problems))
    n_kernel = 0 if K is None else K.size
    return CellMachine(X[:0], index[:0], nothing, intercept, primal, dual, 0.0, n_kernel, True)


def _constant_bounds(
    points: Points, index: IndexArray, problems: IndexArray, K: NDArray[Any] | None
) -> tuple[float, float]:
    """Return the objective of the best constants, and a lower bound; zero for no rows."""
    if not len(index) or not len(problems):
        return 0.0, 0.0
    signs = points.table[points.code[index]][:, problems]
    weight, C = points.weight[index], points.C
    total = float(weight.sum())
    b = 2.0 * C * (weight @ signs) / (1.0 + 2.0 * C * total)
    slack = np.maximum(0.0, 1.0 - signs * b)
    primal = 0.5 * float(b @ b) + C * float(weight @ (slack * slack).sum(axis=1))
    # sᵀKs + S²; η is the largest k(x, x) + 1 + ridge, and no k(x, x') is larger than the former.
    spread = points.eta * total**2 if K is None else float(weight @ (K @ weight)) + total**2
    bound = 0.5 * total**2 / (spread + total / (2.0 * C))
    one_sided = np.abs(signs.sum(axis=0)) == len(index)
    return primal, bound * float(one_sided.sum())
