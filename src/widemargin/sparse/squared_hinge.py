"""The marginal function of the L2-SVM: squared hinge, regularised bias.

SLMC (28) with the loss of the rest of this library, for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + ½b² + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b))².

Its dual is that of (37) without the upper bound and with δ_ij/(2C s_i) added to the kernel (40):

    max over α ≥ 0 of  Σ α − ½ ‖Σ_i α_i y_i (φ_z(x_i), 1)‖² − Σ α_i² / (4 C s_i),

attained by α_i = 2 C s_i ξ_i, which is what the gradient needs: r_i = y_i α_i.

How: Newton's method on the whitened features, which `Hinge` and `OneClass` share. The objective is
quadratic as long as the same rows are inside the margin, so that a full step which leaves them the
same ends at the exact optimum; from the solution at vectors nearby this takes two or three steps. A
gradient of W is only as good as the square root of the gap: hence no early stop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin.kernels import Kernel
from widemargin.rows.base import IndexArray, Rows
from widemargin.sparse.marginal import Marginal, Matrix, Span, Vector, Whitened, started
from widemargin.threads import ordered_map

# Steps of Newton's method at the most, and tries for a step's length.
_MOST_STEPS, _TRIES = 200, 60
# What a step must promise, relative to the objective.
_TOL = 1e-14
# Rows of a piece of Newton's matrix: fixed, so that threads do not change the sums.
_CHUNK = 4096
# Products of a Newton matrix below which a problem is not worth a thread.
_WORTH_A_THREAD = 2_000_000


@dataclass(frozen=True)
class Piecewise:
    """A regularised loss of linear scores that is quadratic in pieces.

    With the slack u_i = m − y_i g_iᵀx of a row, the objective is

        ½ xᵀDx − lᵀx + Σ_i ψ_i(u_i),     ψ_i'(u) = α_i(u) = min(c_i, max(0, a_i + k_i u)).

    The squared hinge has k = 2C s, a = 0 and no cap; the proximal steps of `hinge` have one.

    Attributes
    ----------
    G : ndarray of shape (n, size)
        Rows g.
    sign : ndarray of shape (n,)
        y.
    stiff, offset, cap : ndarray of shape (n,)
        k, a and c.
    diagonal, linear : ndarray of shape (size,)
        D and l.
    margin : float
        m.
    """

    G: Matrix
    sign: Vector
    stiff: Vector
    offset: Vector
    cap: Vector
    diagonal: Vector
    linear: Vector
    margin: float

    def raw(self, scores: Vector) -> Vector:
        """Return a + k u: α before it is cut."""
        return self.offset + self.stiff * (self.margin - self.sign * scores)

    def alpha(self, scores: Vector) -> Vector:
        """Return the derivatives of the losses by the slacks."""
        return np.clip(self.raw(scores), 0.0, self.cap)

    def value(self, x: Vector, scores: Vector) -> float:
        """Return the objective: ψ(u) = α u − (α − a)²/2k, the conjugate of a cut parabola."""
        alpha = self.alpha(scores)
        apart = alpha - self.offset
        apart *= apart
        np.divide(apart, 2.0 * self.stiff, out=apart, where=self.stiff > 0)
        loss = float(alpha @ (self.margin - self.sign * scores)) - float(apart.sum())
        return 0.5 * float(x @ (self.diagonal * x)) - float(self.linear @ x) + loss


def newton(
    problem: Piecewise, x: Vector, scores: Vector | None = None, threads: int = 1
) -> tuple[Vector, Vector]:
    """Return the minimiser of a problem to rounding, and its scores G x.

    Parameters
    ----------
    problem : Piecewise
        The problem.
    x : ndarray of shape (size,)
        Where to start.
    scores : ndarray of shape (n,), default=None
        G x, where it is known.
    threads : int, default=1
        Threads for Newton's matrix.
    """
    scores = problem.G @ x if scores is None else scores
    value, piece = problem.value(x, scores), _piece(problem, scores)
    for _ in range(_MOST_STEPS):
        gradient, matrix = _derivatives(problem, x, scores, np.flatnonzero(piece == 1), threads)
        direction = _solved(matrix, gradient)
        moved = problem.G @ direction
        length = _length(problem, x, scores, direction, moved)
        after_x, after_scores = x + length * direction, scores + length * moved
        after = problem.value(after_x, after_scores)
        promise = -0.5 * float(gradient @ direction)
        size = abs(value) + 0.5 * float(x @ (problem.diagonal * x))
        # Not even rounding may take a step uphill; what such a step promised is rounding too.
        if after > value and promise <= 1e-10 * size:
            break
        x, scores, value = after_x, after_scores, after
        before, piece = piece, _piece(problem, scores)
        if promise <= _TOL * size or (length == 1.0 and np.array_equal(piece, before)):
            break
    return x, scores


def _piece(problem: Piecewise, scores: Vector) -> NDArray[np.int8]:
    """Return the piece of its loss that each row is on: 0 flat, 1 bent, 2 straight."""
    raw = problem.raw(scores)
    return (raw > 0).astype(np.int8) + ((raw >= problem.cap) & (raw > 0))


def _derivatives(
    problem: Piecewise, x: Vector, scores: Vector, bent: IndexArray, threads: int
) -> tuple[Vector, Matrix]:
    """Return gradient and second derivative."""

    def part(first: int) -> Matrix:
        some = bent[first : first + _CHUNK]
        rows = problem.G[some] * np.sqrt(problem.stiff[some])[:, None]
        return rows.T @ rows

    pull = problem.sign * problem.alpha(scores)
    gradient = problem.diagonal * x - problem.linear - pull @ problem.G
    matrix = np.diag(problem.diagonal)
    for curvature in ordered_map(part, range(0, len(bent), _CHUNK), threads):
        matrix += curvature
    if not len(bent):
        # Nothing holds what is not regularised: any long step will do, the search cuts it.
        matrix[np.diag_indices(len(x))] += 1e-10
    return gradient, matrix


def _solved(matrix: Matrix, gradient: Vector) -> Vector:
    """Return −H⁻¹g."""
    try:
        factor = cho_factor(matrix, lower=True, check_finite=False)
        return np.asarray(-cho_solve(factor, gradient, check_finite=False))
    except LinAlgError:
        # Rounding of huge weights hides the regulariser.
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, 1e-15 * values[-1])
        direction: Vector = -(vectors / values) @ (vectors.T @ gradient)
        return direction


def _length(
    problem: Piecewise, x: Vector, scores: Vector, direction: Vector, moved: Vector
) -> float:
    """Return the root of the slope along a direction, which rises piecewise; 1 where it is 1."""
    slope0 = float((problem.diagonal * x - problem.linear) @ direction)
    curve0 = float(direction @ (problem.diagonal * direction))
    raw0, along = problem.raw(scores), problem.sign * moved
    change = problem.stiff * along
    length, low, high = 1.0, 0.0, np.inf
    for _ in range(_TRIES):
        raw = raw0 - length * change
        alpha = np.clip(raw, 0.0, problem.cap)
        slope = slope0 + length * curve0 - float(alpha @ along)
        curve = curve0 + float(change @ np.where(alpha == raw, along, 0.0))
        low, high = (length, high) if slope < 0 else (low, min(high, length))
        better = length - slope / curve if curve > 0 else np.inf
        if abs(better - length) <= 1e-9 * length:
            # Closer than this is for the next step; Newton's own length must stay what it is.
            return length
        if not low < better < high:
            better = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
        length = better
    return length


def best_start(
    problem: Piecewise, zero: Vector, zero_scores: Vector, near: Vector | None
) -> tuple[Vector, Vector]:
    """Return the better of two points to start from, and its scores.

    Coefficients of vectors that have moved apart or together may be worse than nothing.
    """
    if near is not None:
        scores = problem.G @ near
        if problem.value(near, scores) < problem.value(zero, zero_scores):
            return near, scores
    return zero, zero_scores


class SquaredHinge:
    """W(Z) and ∇W(Z) of the L2-SVM for several columns of labels.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        A kernel with a gradient.
    code : ndarray of int of shape (n,)
        The class of each row.
    table : ndarray of shape (n_classes, n_problems)
        ±1: the label of a class in each problem.
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
        self.weight = np.asarray(weight, dtype=np.float64)
        self.C = float(C)
        self.threads = threads

    @property
    def n_kernel(self) -> int:
        """Kernel values computed until now."""
        return self.span.n_kernel

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z."""
        t, n_problems = len(Z), self.table.shape[1]
        space = self.span.whitened(Z, more=1)
        space.features[:, t] = 1.0
        guess = started(start, t, n_problems)
        # Where problems are many, each is a thread's; where it is one, its rows are shared out.
        large = len(self.code) * t * t >= _WORTH_A_THREAD
        across = self.threads if large and n_problems > 1 else 1
        within = self.threads if large and n_problems == 1 else 1

        def solve(p: int) -> tuple[Vector, Vector, float, float]:
            return self._solve(space, p, guess, within)

        solved = list(ordered_map(solve, range(n_problems), across))
        v = np.stack([u for u, *_ in solved], axis=1)
        pull = np.stack([r for _, r, *_ in solved], axis=1)
        beta = space.root @ v[:t]
        gradient = self.span.gradient(Z, beta, pull)
        value = sum(value for *_, value, _ in solved)
        return Marginal(value, gradient, beta, v[t], sum(dual for *_, dual in solved))

    def _solve(
        self, space: Whitened, p: int, guess: tuple[Matrix, Vector] | None, threads: int
    ) -> tuple[Vector, Vector, float, float]:
        """Return v with the bias behind it, yα, and the values of primal and dual."""
        G, sign = space.features, self.table[self.code, p]
        n, size = G.shape
        stiff = 2.0 * self.C * self.weight
        problem = Piecewise(
            G, sign, stiff, np.zeros(n), np.full(n, np.inf), np.ones(size), np.zeros(size), 1.0
        )
        near = guess and np.append(space.factor.T @ guess[0][:, p], guess[1][p])
        u, scores = best_start(problem, np.zeros(size), np.zeros(n), near)
        u, scores = newton(problem, u, scores, threads)
        alpha = problem.alpha(scores)
        pull = sign * alpha
        w = pull @ G
        # Every multiple of α is feasible, and the best is the top of a parabola.
        square = float(w @ w) + float(alpha @ np.maximum(0.0, 1.0 - sign * scores))
        dual = 0.5 * float(alpha.sum()) ** 2 / square if square > 0 else 0.0
        return u, pull, problem.value(u, scores), dual
