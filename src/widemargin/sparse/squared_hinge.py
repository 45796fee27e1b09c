"""The marginal function of the L2-SVM: squared hinge, regularised bias.

SLMC (28) with the loss of the rest of this library, for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + ½b² + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b))².

Its dual is that of (37) without the upper bound and with δ_ij/(2C s_i) added to the kernel (40):

    max over α ≥ 0 of  Σ α − ½ ‖Σ_i α_i y_i (φ_z(x_i), 1)‖² − Σ α_i² / (4 C s_i),

attained by α_i = 2 C s_i ξ_i, which is what the gradient needs: r_i = y_i α_i.

How: Newton's method on the whitened features, which `OneClass` shares. The objective is quadratic
as long as the same rows are inside the margin, so that a full step which leaves them the same ends
at the exact optimum; from the solution at vectors nearby this takes two or three steps. A gradient
of W is only as good as the square root of the gap: hence no early stop.
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
class Quadratic:
    """A regularised squared hinge loss of linear scores:

        ½ uᵀDu − aᵀu + c Σ_i s_i max(0, m − y_i g_iᵀu)².

    Attributes
    ----------
    G : ndarray of shape (n, k)
        Rows g.
    sign : ndarray of shape (n,)
        y.
    weight : ndarray of shape (n,)
        c s.
    diagonal : ndarray of shape (k,)
        D.
    linear : ndarray of shape (k,)
        a.
    margin : float
        m.
    """  # noqa: D400

    G: Matrix
    sign: Vector
    weight: Vector
    diagonal: Vector
    linear: Vector
    margin: float

    def slack(self, scores: Vector) -> Vector:
        """Return max(0, m − y f)."""
        return np.maximum(self.margin - self.sign * scores, 0.0)

    def value(self, u: Vector, scores: Vector) -> float:
        """Return the objective."""
        slack = self.slack(scores)
        smooth = 0.5 * float(u @ (self.diagonal * u)) - float(self.linear @ u)
        return smooth + float(self.weight @ (slack * slack))


def newton(
    problem: Quadratic, u: Vector, scores: Vector | None = None, threads: int = 1
) -> tuple[Vector, Vector]:
    """Return the minimiser of a problem to rounding, and its scores G u.

    Parameters
    ----------
    problem : Quadratic
        The problem.
    u : ndarray of shape (k,)
        Where to start.
    scores : ndarray of shape (n,), default=None
        G u, where it is known.
    threads : int, default=1
        Threads for Newton's matrix.
    """
    scores = problem.G @ u if scores is None else scores
    value = problem.value(u, scores)
    active = _active(problem, scores)
    for _ in range(_MOST_STEPS):
        gradient, matrix = _derivatives(problem, u, scores, active, threads)
        direction = _solved(matrix, gradient)
        moved = problem.G @ direction
        length = _length(problem, u, scores, direction, moved)
        after_u, after_scores = u + length * direction, scores + length * moved
        after = problem.value(after_u, after_scores)
        promise = -0.5 * float(gradient @ direction)
        size = abs(value) + 0.5 * float(u @ (problem.diagonal * u))
        # Not even rounding may take a step uphill; what such a step promised is rounding too.
        if after > value and promise <= 1e-10 * size:
            break
        u, scores, value = after_u, after_scores, after
        before, active = active, _active(problem, scores)
        if promise <= _TOL * size or (length == 1.0 and np.array_equal(active, before)):
            break
    return u, scores


def _active(problem: Quadratic, scores: Vector) -> IndexArray:
    """Return the rows inside the margin."""
    return np.flatnonzero((problem.sign * scores < problem.margin) & (problem.weight > 0))


def _derivatives(
    problem: Quadratic, u: Vector, scores: Vector, active: IndexArray, threads: int
) -> tuple[Vector, Matrix]:
    """Return gradient and second derivative."""
    root = np.sqrt(2.0 * problem.weight[active])
    slack = problem.margin * problem.sign[active] - scores[active]

    def part(first: int) -> tuple[Matrix, Vector]:
        where = slice(first, first + _CHUNK)
        some = problem.G[active[where]] * root[where, None]
        return some.T @ some, some.T @ (root[where] * slack[where])

    gradient = problem.diagonal * u - problem.linear
    matrix = np.diag(problem.diagonal)
    for curvature, pull in ordered_map(part, range(0, len(active), _CHUNK), threads):
        matrix += curvature
        gradient -= pull
    if not len(active):
        # Nothing holds what is not regularised: any long step will do, the search cuts it.
        matrix[np.diag_indices(len(u))] += 1e-10
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
    problem: Quadratic, u: Vector, scores: Vector, direction: Vector, moved: Vector
) -> float:
    """Return the root of the slope along a direction, which rises piecewise; 1 where it is 1."""
    slope0 = float((problem.diagonal * u - problem.linear) @ direction)
    curve0 = float(direction @ (problem.diagonal * direction))
    length, low, high = 1.0, 0.0, np.inf
    for _ in range(_TRIES):
        rest = problem.margin * problem.sign - (scores + length * moved)
        inside = problem.sign * rest > 0
        weight, along = 2.0 * problem.weight[inside], moved[inside]
        slope = slope0 + length * curve0 - float((weight * rest[inside]) @ along)
        curve = curve0 + float(weight @ (along * along))
        low, high = (length, high) if slope < 0 else (low, min(high, length))
        better = length - slope / curve if curve > 0 else np.inf
        if abs(better - length) <= 1e-9 * length:
            # Closer than this is for the next step; Newton's own length must stay what it is.
            return length
        if not low < better < high:
            better = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
        length = better
    return length


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
        size = G.shape[1]
        ones = np.ones(size)
        problem = Quadratic(G, sign, self.C * self.weight, ones, np.zeros(size), 1.0)
        u, scores = np.zeros(size), np.zeros(len(G))
        if guess is not None:
            near = np.append(space.factor.T @ guess[0][:, p], guess[1][p])
            near_scores = G @ near
            # Coefficients of vectors that have moved apart or together may be useless.
            if problem.value(near, near_scores) < problem.value(u, scores):
                u, scores = near, near_scores
        u, scores = newton(problem, u, scores, threads)
        alpha = 2.0 * problem.weight * problem.slack(scores)
        pull = sign * alpha
        w = pull @ G
        # Every multiple of α is feasible, and the best is the top of a parabola.
        square = float(w @ w) + float(alpha @ problem.slack(scores))
        dual = 0.5 * float(alpha.sum()) ** 2 / square if square > 0 else 0.0
        return u, pull, problem.value(u, scores), dual
