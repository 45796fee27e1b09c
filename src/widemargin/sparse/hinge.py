"""The marginal function of the L1-SVM: the paper's, with hinge loss and a free bias.

SLMC (28)–(30), for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b)).

Its dual (37)–(39) is that of an SVM with the kernel (40), the linear kernel of the whitened
features F of (41). With its solution α, (45) is

    β  =  K_z⁻¹ K_zx Y α  =  T (Fᵀ Y α),

and the gradient is (46), with r = Yα. α is kept: it starts the next solution.

How: rows are many and the span has few dimensions, so the dual is solved from the primal side. A
proximal step on the dual from α',

    max over 0 ≤ α ≤ Cs, yᵀα = 0 of  Σα − ½‖FᵀYα‖² − ½ δ Σ (α_i − α'_i)² / (C s_i),

has as its own dual a smooth problem in v and b, the hinge with a rounded corner of width δ, which
Newton's method of `newton` solves exactly: its matrix has only the rows near the margin. The
steps end at the optimum itself, not near it, the sooner the smaller δ is; from a solution nearby a
few steps do. Where rounding ends them too early, the solver of ``qp.hinge`` takes over.

W is differentiable (Corollary 2), but its gradient bends where a row reaches a bound of (39).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import relative_gap
from widemargin.kernels import Kernel
from widemargin.qp.hinge import solve_hinge_dual
from widemargin.rows.base import Rows
from widemargin.sparse.marginal import Marginal, Matrix, Span, Vector
from widemargin.sparse.newton import Piecewise, newton
from widemargin.threads import ordered_map

# The width δ of the corner at the first step, without and with a start; how much smaller it gets
# from step to step, and how small: below, rounding of the scores would show in α.
_COLD, _WARM, _SHRINK, _LEAST = 2.0, 1.0, 0.3, 1e-7
# Proximal steps at the most.
_MOST_STEPS = 40
# How exactly rows on the margin must be there, and can be; and the gap above which the other solver
# is asked: a gradient of W is as good as the root of the gap.
_TOL, _ROUNDING, _GAP = 1e-11, 1e-14, 1e-10
# Numbers in the features below which a problem is not worth a thread.
_WORTH_A_THREAD = 50_000


@dataclass(frozen=True)
class HingeMarginal(Marginal):
    """The marginal function with the dual variables that attain it.

    Attributes
    ----------
    alpha : ndarray of shape (n, n_problems)
        α of (37).
    """

    alpha: Matrix


@dataclass(frozen=True)
class _Solution:
    """A solution of one problem: α, v with the bias behind it, and primal and dual."""

    alpha: Vector
    machine: Vector
    primal: float
    dual: float


class Hinge:
    """W(Z) and ∇W(Z) of the L1-SVM for several columns of labels.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        A kernel with a gradient.
    code : ndarray of int of shape (n,)
        The class of each row.
    table : ndarray of shape (n_classes, n_problems)
        ±1: the label of a class in each problem. Both must occur among rows of positive weight.
    weight : ndarray of shape (n,)
        s.
    C : float
        C.
    threads : int, default=1
        Threads; BLAS is expected to use one.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        code: NDArray[np.intp],
        table: Matrix,
        weight: Vector,
        C: float,
        threads: int = 1,
    ) -> None:
        self.span = Span(rows, kernel)
        self.code = code
        self.table = np.asarray(table, dtype=np.float64)
        self.upper = float(C) * np.asarray(weight, dtype=np.float64)
        self.threads = threads

    @property
    def n_kernel(self) -> int:
        """Kernel values computed until now."""
        return self.span.n_kernel

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> HingeMarginal:
        """Return W and ∇W at Z."""
        t, n_problems = len(Z), self.table.shape[1]
        space = self.span.whitened(Z, more=1)
        G = space.features
        G[:, t] = 1.0
        # α belongs to rows, not to vectors: it fits whatever the number of vectors was.
        before = start if isinstance(start, HingeMarginal) else None
        if before is not None and before.alpha.shape != (len(G), n_problems):
            before = None

        def solve(p: int) -> _Solution:
            first = None if before is None else (before.alpha[:, p], float(before.intercept[p]))
            return _solved(G, self.table[self.code, p], self.upper, first)

        threads = self.threads if G.size >= _WORTH_A_THREAD else 1
        solved = list(ordered_map(solve, range(n_problems), threads))
        alpha = np.stack([each.alpha for each in solved], axis=1)
        machine = np.stack([each.machine for each in solved], axis=1)
        pull = self.table[self.code] * alpha
        beta = space.root @ machine[:t]
        return HingeMarginal(
            value=sum(each.primal for each in solved),
            gradient=self.span.gradient(Z, beta, pull, space=space),
            beta=beta,
            intercept=machine[t],
            dual=sum(each.dual for each in solved),
            alpha=alpha,
        )


def _solved(
    G: Matrix, sign: Vector, upper: Vector, start: tuple[Vector, float] | None
) -> _Solution:
    """Solve one problem on features with a column of ones behind them."""
    found = _proximal(G, sign, upper, start)
    if relative_gap(found.primal, found.dual) <= _GAP:
        return found
    F = np.ascontiguousarray(G[:, :-1])
    other = solve_hinge_dual(F, sign, upper, start=found.alpha, tol=1e-12, factored=True)
    machine = np.append((sign * other.alpha) @ F, other.intercept)
    return _Solution(other.alpha, machine, other.primal, other.dual)


def _proximal(
    G: Matrix, sign: Vector, upper: Vector, start: tuple[Vector, float] | None
) -> _Solution:
    """Take proximal steps until the rows on the margin are exactly there."""
    n, size = G.shape
    diagonal = np.ones(size)
    diagonal[-1] = 0.0
    x, scores, width = np.zeros(size), np.zeros(n), _COLD
    alpha, apart = np.zeros(n), np.inf
    if start is not None:
        alpha, width = np.clip(start[0], 0.0, upper), _WARM
        x = (sign * alpha) @ G
        x[-1] = start[1]
        scores = G @ x
    for _ in range(_MOST_STEPS):
        problem = Piecewise(G, sign, upper / width, alpha, upper, diagonal, np.zeros(size), 1.0)
        x, scores = newton(problem, x, scores)
        alpha = problem.alpha(scores)
        between = (alpha > 0) & (alpha < upper)
        before, apart = apart, float(np.abs(1.0 - (sign * scores)[between]).max(initial=0.0))
        # Below the first number only rounding is left, and perhaps already above it.
        if apart <= _ROUNDING or (apart <= _TOL and apart > 0.5 * before):
            break
        exact = _on_margin(G, sign, upper, alpha)
        if exact is not None:
            alpha, x = exact
            break
        width = max(_SHRINK * width, _LEAST)
    return _values(G, sign, upper, alpha, x)


def _on_margin(
    G: Matrix, sign: Vector, upper: Vector, near: Vector
) -> tuple[Vector, Vector] | None:
    """Return the optimum, α and (v, b), if the rows between bounds at `near` are so there too.

    These rows are then exactly on the margin and the others are where they are, which is a linear
    system for the former's α and the bias.
    """
    free = np.flatnonzero((near > 0) & (near < upper))
    size = len(free)
    if not 0 < size <= G.shape[1]:
        return None
    alpha = np.where(near < upper, 0.0, upper)
    rows = G[free, :-1]
    x = (sign * alpha) @ G
    matrix = np.ones((size + 1, size + 1))
    matrix[:size, :size] = rows @ rows.T
    matrix[size, size] = 0.0
    try:
        solution = np.linalg.solve(matrix, np.append(sign[free] - rows @ x[:-1], -x[-1]))
    except np.linalg.LinAlgError:
        return None
    own = sign[free] * solution[:size]
    if not ((own >= 0.0) & (own <= upper[free])).all():
        return None
    alpha[free] = own
    x[:-1] += solution[:size] @ rows
    x[-1] = solution[size]
    slack = 1.0 - sign * (G @ x)
    slack[free] = 0.0
    inside = alpha >= upper
    right = np.where(inside, slack >= -_TOL, slack <= _TOL) | (upper == 0.0)
    return (alpha, x) if right.all() else None


def _values(G: Matrix, sign: Vector, upper: Vector, alpha: Vector, x: Vector) -> _Solution:
    """Return a solution with the values of both problems."""
    loss = float(upper @ np.maximum(0.0, 1.0 - sign * (G @ x)))
    primal = 0.5 * float(x[:-1] @ x[:-1]) + loss
    w = (sign * alpha) @ G
    # The last number is yᵀα, zero but for rounding, which the bias turns into a loss.
    dual = float(alpha.sum()) - 0.5 * float(w[:-1] @ w[:-1]) - abs(float(x[-1] * w[-1]))
    return _Solution(alpha, x, primal, dual)
