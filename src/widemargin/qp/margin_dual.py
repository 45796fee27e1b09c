"""The dual of the L2-SVM on a kernel matrix: the small machine.

    min ½ αᵀQα − 1ᵀα,   α ≥ 0,   Q = yyᵀ ∘ (K + 1) + diag(ridge),

and the primal of the function f = Σ y α (k + 1) that α stands for,

    ½ αᵀ(Q − diag(ridge))α + ½ Σ max(0, 1 − y f)² / ridge.

One compiled call, in which Python's lock is not held (``small_loops``), so that calls of several
threads run beside each other (``newton_loops`` has its last part):

* every second, fourth, ... row is solved first, and shows the next larger part where to begin;
* greedy coordinate ascent, Algorithm 3 of MMDA-CVM with ω = 1, in turn with steps to the solution
  on the support and the worst violators, whose coefficients are held at zero where they would
  become negative: a Schur complement in the Cholesky factor that the step has;
* where that does not do, Newton's method on the primal, in kernel space (``newton_loops``). With
  the rows A inside the margin, (K_AA + 1 + ridge) β = y is solved by a Cholesky factor, and an
  exact line search leads there. Factors are float32 where K is and the solution leaves little of
  the residual: the next step refines it.

The point without the rows of A that have left the margin is feasible for both problems; its gap is
the one that counts.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.factors import lapack_address
from widemargin.loop import Deadline, relative_gap
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.margin_loops")
small = Compiled("widemargin.qp.small_loops")
sets = Compiled("widemargin.qp.set_loops")

# Multiplications of the Newton steps of one call: about a quarter of a second.
_WORK = 2e10
# KKT residual that is rounding.
NO_KKT = 1e-10


@cache
def lapack_addresses() -> NDArray[np.uint64]:
    """Return where LAPACK's Cholesky functions are, as the compiled machine wants them."""
    kinds = (np.float32, np.float64)
    found = [lapack_address(name, kind) for kind in kinds for name in ("potrf", "potrs")]
    return np.array(found, dtype=np.uint64)


@dataclass
class MarginDual:
    """A point of one dual problem, kept with what follows from it.

    Attributes
    ----------
    K : ndarray of shape (n, n) or wider
        Kernel matrix without labels; columns beyond the square are not looked at.
    sign : ndarray of shape (n,)
        Labels ±1, as float64.
    ridge : ndarray of shape (n,)
        1 / (2 C s).
    alpha : ndarray of shape (n,)
        The dual variables. Some may be negative where the solution was cut short.
    residual : ndarray of shape (n,)
        1 − Qα: how far each row is inside its margin.
    cost : float
        What it took to come here, in multiplications of a factorisation.
    """

    K: NDArray[Any]
    sign: Vector
    ridge: Vector
    alpha: Vector
    residual: Vector
    cost: float = 0.0

    @classmethod
    def at(
        cls, K: NDArray[Any], sign: Vector, ridge: Vector, alpha: Vector | None = None
    ) -> MarginDual:
        """Return the problem at `alpha` (zero if None); `alpha` is copied."""
        point = cls(K, sign, ridge, np.zeros(len(sign)), np.ones(len(sign)))
        if alpha is not None and alpha.any():
            point.move_to(alpha)
        return point

    def move_to(self, alpha: Vector) -> None:
        """Set α and compute the residual from scratch."""
        support = np.flatnonzero(alpha)
        beta = (alpha * self.sign)[support]
        product = loops.combine(self.K, support, beta) + beta.sum()
        self.alpha = np.array(alpha)
        self.residual = 1.0 - self.sign * product - self.ridge * alpha

    def margin(self) -> Vector:
        """Return y f of every row."""
        return 1.0 - self.residual - self.ridge * self.alpha

    def objectives(self) -> tuple[float, float]:
        """Return the primal and the dual value, over the rows of K."""
        margin = self.margin()
        slack = np.maximum(0.0, 1.0 - margin)
        norm2 = float(self.alpha @ margin)
        primal = 0.5 * norm2 + 0.5 * float((slack * slack / self.ridge).sum())
        # In this order: α² may vanish where α does not.
        spread = float((self.alpha * (self.alpha * self.ridge)).sum())
        dual = float(self.alpha.sum()) - 0.5 * (norm2 + spread)
        return primal, dual if (self.alpha >= 0).all() else 0.0

    def gap(self) -> float:
        """Return the relative duality gap."""
        return relative_gap(*self.objectives())

    def kkt_residual(self) -> float:
        """Return the largest violation of the KKT conditions."""
        violation = np.where(self.alpha > 0, np.abs(self.residual), np.maximum(self.residual, 0))
        return float(violation.max(initial=0.0))

    def solved(self, gap: float, tol: float) -> bool:
        """Return whether the gap or the KKT residual is small enough."""
        return self.gap() <= gap or self.kkt_residual() <= tol


def solve_margin_dual(
    K: NDArray[Any],
    sign: Vector,
    ridge: Vector,
    *,
    start: Vector | None = None,
    gap: float = 0.0,
    tol: float = 1e-10,
    max_rounds: int = 200,
    deadline: Deadline | None = None,
    work: float = _WORK,
) -> MarginDual:
    """Solve the dual of the L2-SVM on K.

    Parameters
    ----------
    K : ndarray of shape (n, n) or wider
        Kernel matrix, float32 or float64, C-contiguous for speed.
    sign : ndarray of shape (n,)
        ±1.
    ridge : ndarray of shape (n,)
        1 / (2 C s), positive.
    start : ndarray of shape (n,), default=None
        Where to start.
    gap : float, default=0
        Stop when the relative duality gap is at most this,
    tol : float, default=1e-10
        or when the KKT residual is.
    max_rounds : int, default=200
        Compiled calls at the most; a small problem needs one.
    deadline : Deadline, default=None
        When to stop all the same, looked at between calls; an interrupt then brings it about.
    work : float, optional
        Multiplications of a call, roughly.

    Returns
    -------
    MarginDual
        The problem at its solution, with no α negative.
    """
    point = MarginDual.at(K, sign, ridge, start)
    for _ in range(max_rounds):
        if deadline is not None and deadline.passed:
            break
        with nullcontext() if deadline is None else deadline.ends_on_interrupt():
            point, finished = next_round(point, gap, tol, work)
            if finished:
                break
    if (point.alpha < 0.0).any():
        point.move_to(np.maximum(point.alpha, 0.0))
    return point


def next_round(
    point: MarginDual, gap: float, tol: float, work: float = _WORK
) -> tuple[MarginDual, bool]:
    """Return the point after one compiled call, and whether nothing is left to do.

    `point` stays as it is.

    Parameters
    ----------
    point : MarginDual
        Where the solution stands.
    gap, tol : float
        What it is to reach: the relative gap, or the KKT residual.
    work : float, optional
        Multiplications of Newton steps after which the call returns.
    """
    after = replace(point, alpha=point.alpha.copy(), residual=point.residual.copy())
    fresh, cost = not point.alpha.any(), np.zeros(1)
    ended = small.solve(
        lapack_addresses(),
        np.ascontiguousarray(point.K),
        point.sign,
        point.ridge,
        after.alpha,
        after.residual,
        gap,
        tol,
        work,
        fresh,
        cost,
    )
    _check_positive(ended)
    after.cost += float(cost[0])
    return after, ended != small.UNFINISHED


def solve_pairs(
    K: NDArray[Any],
    begins: IndexArray,
    pairs: NDArray[np.intp],
    weight: Vector,
    C: Vector,
    gap: float,
    alpha: Vector,
    coef: Vector,
    place: IndexArray,
) -> Matrix:
    """Solve pairs of classes on one matrix, in one compiled call.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix, C-contiguous, class after class.
    begins : ndarray of int of shape (n_classes + 1,)
        Where classes begin, and n.
    pairs : ndarray of int of shape (n_pairs, 2)
        The classes of each pair: the one with the label +1, and that with −1.
    weight, C : ndarray of shape (n,) and (n_pairs,)
        Of rows, and of pairs.
    gap : float
        Relative gap.
    alpha : ndarray of shape (total,)
        Dual variables of the rows of all pairs, one after another: where to start, and the
        solution.
    coef, place : ndarray of shape (total,)
        Where y α and the places of these rows in K are written.

    Returns
    -------
    ndarray of shape (n_pairs, 3)
        Primal and dual objectives, and how it ended.
    """
    proved = np.zeros((len(pairs), 3))
    addresses = lapack_addresses()
    sets.solve_pairs(
        addresses, K, begins, pairs, weight, C, gap, NO_KKT, alpha, coef, place, proved
    )
    _check_positive(proved[:, 2])
    return proved


def solve_all(
    K: NDArray[Any],
    signs: Matrix,
    weight: Vector,
    C: Vector,
    gap: float,
    beta: Matrix,
    intercept: Vector,
    proved: Matrix,
) -> None:
    """Solve several problems on one matrix, in one compiled call.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix, C-contiguous.
    signs : ndarray of shape (n, n_problems)
        Labels ±1, and 0 for rows that take no part.
    weight, C : ndarray of shape (n,) and (n_problems,)
        Of rows, and of problems.
    gap : float
        Relative gap.
    beta : ndarray of shape (n, n_problems)
        Where y α is written; zero where all rows of a problem are on one side.
    intercept : ndarray of shape (n_problems,)
        Where biases are written: the best constant where all rows are on one side.
    proved : ndarray of shape (n_problems, 4)
        Where primal, dual, ‖α‖ and how it ended are written.
    """
    addresses = lapack_addresses()
    sets.solve_all(addresses, K, signs, weight, C, gap, NO_KKT, beta, intercept, proved)
    _check_positive(proved[:, 3])


def path_coefficients(
    K: NDArray[Any], train: IndexArray, sign: Vector, weight: Vector, Cs: Vector, gap: float
) -> Matrix:
    """Return the coefficients y α of one problem for every C.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of all rows.
    train : ndarray of int of shape (m,)
        Rows to learn from, of both signs.
    sign, weight : ndarray of shape (n,)
        Labels ±1 and weights of all rows.
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending.
    gap : float
        Relative gap.

    Returns
    -------
    ndarray of shape (m, n_Cs)
        Coefficients; their sums are the biases.
    """
    beta = np.zeros((len(train), len(Cs)))
    addresses = lapack_addresses()
    sets.solve_path(addresses, K, train, sign[train], weight[train], Cs, gap, beta)
    return beta


def path_values(
    K: NDArray[Any],
    train: IndexArray,
    held: IndexArray,
    sign: Vector,
    weight: Vector,
    Cs: Vector,
    gap: float,
) -> Matrix:
    """Return the values of one problem for every C at rows that it has not learnt from.

    Parameters
    ----------
    K, train, sign, weight, Cs, gap
        As in `path_coefficients`.
    held : ndarray of int
        Rows whose values are wanted.

    Returns
    -------
    ndarray of shape (n_held, n_Cs)
        Decision values.
    """
    beta = path_coefficients(K, train, sign, weight, Cs, gap)
    used = np.flatnonzero(beta.any(axis=1))
    values = sets.corner(K, held, train[used]) @ beta[used].astype(K.dtype)
    return np.asarray(values + beta.sum(axis=0), dtype=np.float64)


def all_positive(ended: Any) -> bool:
    """Return whether problems ended otherwise than without a factor."""
    return not np.any(np.equal(ended, small.NOT_POSITIVE))


def _check_positive(ended: Any) -> None:
    if not all_positive(ended):
        raise ValueError(
            "The dual has no unique solution: the kernel is not positive semidefinite, and the "
            "ridge 1 / (2 C) is too small to make up for it. Use another kernel, or a smaller C "
            "or smaller weights."
        )
