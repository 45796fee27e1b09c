"""Newton's method for losses that are quadratic in pieces, for several problems on the same rows.

`Hinge`, `SquaredHinge` and `OneClass` all solve problems of the kind of `Piecewise`. The objective
is quadratic as long as every row stays on the same piece of its loss, so that a full step which
leaves them there ends at the exact optimum.

What a step costs. Only the first one looks at all rows for its derivatives. A step of length λ in a
direction d changes the gradient by λ H d, and then both derivatives by the rows that went to
another piece, which are ever fewer: with α'_i, what α_i would be on its old piece,

    H  +=  Σ ± k_i g_i g_iᵀ,        ∇  +=  λ H d − Σ y_i (α_i − α'_i) g_i.

Where rows are many, time goes into reading them: all problems take their steps together, and one
product with the rows serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from widemargin.sparse.marginal import Matrix, Vector
from widemargin.threads import ordered_map

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# Steps of Newton's method at the most, and tries for a step's length.
_MOST_STEPS, _TRIES = 200, 60
# What a step must promise, relative to the objective.
_TOL = 1e-14
# Rows of a piece of a sum: fixed, so that threads do not change it.
_CHUNK = 4096
# Derivatives are summed anew where more than this share of the rows that bend them has changed:
# what is left after more is taken away than stays would be rounding.
_MOST_CHANGED = 0.5
# Numbers in the matrices and scores of problems that are solved together.
_MOST_NUMBERS = 8_000_000
# Products of a Newton matrix below which nothing is worth a thread, and it is as well summed anew.
_SMALL = 2_000_000


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
        Threads.
    """
    scores = problem.G @ x if scores is None else scores
    return newton_together([problem], [(x, scores)], threads)[0]


def newton_together(
    problems: Sequence[Piecewise], starts: Sequence[tuple[Vector, Vector]], threads: int = 1
) -> list[tuple[Vector, Vector]]:
    """Return the minimisers of problems on the same rows to rounding, and their scores.

    Parameters
    ----------
    problems : sequence of Piecewise
        The problems; all have one G.
    starts : sequence of (x, scores)
        Where to start, with G x.
    threads : int, default=1
        Threads; the answer does not depend on them.
    """
    G = problems[0].G
    small = len(G) * G.shape[1] ** 2 < _SMALL
    threads = 1 if small else threads
    given = zip(problems, starts, strict=True)
    states = [_State(problem, *start, always_stale=small) for problem, start in given]
    for _ in range(_MOST_STEPS):
        going = [state for state in states if not state.done]
        if not going:
            break
        _sum_derivatives(G, [state for state in going if state.stale], threads)
        directions = np.array(_each(_direction, going, threads))
        moved = products(G, directions, threads)
        _each(_step, list(zip(going, directions, moved, strict=True)), threads)
    return [(state.x, state.scores) for state in states]


def at_a_time(n: int, size: int) -> int:
    """Return how many problems with rows of shape (n, size) there is room for together."""
    return max(1, _MOST_NUMBERS // (size * size + n))


def best_start(
    problem: Piecewise, zero: Vector, zero_scores: Vector, near: Vector, near_scores: Vector
) -> tuple[Vector, Vector]:
    """Return the better of two points to start from, and its scores.

    Coefficients of vectors that have moved apart or together may be worse than nothing.
    """
    if problem.value(near, near_scores) < problem.value(zero, zero_scores):
        return near, near_scores
    return zero, zero_scores


def products(G: Matrix, X: Matrix, threads: int = 1) -> Matrix:
    """Return the scores of several points, X Gᵀ, a row for each row of X."""
    if len(G) <= _CHUNK:
        return X @ G.T
    scores = np.empty((len(X), len(G)))
    columns = np.ascontiguousarray(X.T)

    def part(first: int) -> None:
        where = slice(first, first + _CHUNK)
        scores[:, where] = (G[where] @ columns).T

    for _ in ordered_map(part, range(0, len(G), _CHUNK), threads):
        pass
    return scores


def sums(G: Matrix, weight: Matrix, threads: int = 1) -> Matrix:
    """Return weighted sums of the rows, `weight` G, a row for each row of weights."""

    def part(first: int) -> Matrix:
        where = slice(first, first + _CHUNK)
        return weight[:, where] @ G[where]

    total = np.zeros((len(weight), G.shape[1]))
    for some in ordered_map(part, range(0, len(G), _CHUNK), threads):
        total += some
    return total


class _State:
    """A problem on its way: where it is, the pieces of its rows, and its derivatives."""

    gradient: Vector
    matrix: Matrix

    def __init__(
        self, problem: Piecewise, x: Vector, scores: Vector, *, always_stale: bool
    ) -> None:
        self.problem, self.x, self.scores = problem, x, scores
        self.always_stale = always_stale
        self.value = problem.value(x, scores)
        self.piece = _piece(problem, scores)
        # Whether the optimum is reached, and whether the derivatives must be summed anew.
        self.done, self.stale = False, True

    def step(self, direction: Vector, moved: Vector) -> None:
        """Take the best step in a direction, of which `moved` is the product with the rows."""
        problem = self.problem
        length = _length(problem, self.x, self.scores, direction, moved)
        x, scores = self.x + length * direction, self.scores + length * moved
        value = problem.value(x, scores)
        promise = -0.5 * float(self.gradient @ direction)
        size = abs(self.value) + 0.5 * float(self.x @ (problem.diagonal * self.x))
        # Not even rounding may take a step uphill; what such a step promised is rounding too.
        if value > self.value and promise <= 1e-10 * size:
            self.done = True
            return
        before, old_scores = self.piece, self.scores
        self.x, self.scores, self.value = x, scores, value
        self.piece = _piece(problem, scores)
        changed = np.flatnonzero(self.piece != before)
        if promise <= _TOL * size or (length == 1.0 and not len(changed)):
            self.done = True
            return
        if self.always_stale:
            return
        self.stale = len(changed) > _MOST_CHANGED * int(np.count_nonzero(self.piece == 1))
        if not self.stale:
            self.gradient = self.gradient + length * (self.matrix @ direction)
            self._change(changed, before[changed], old_scores[changed])

    def _change(
        self, changed: NDArray[np.intp], before: NDArray[np.int8], old_scores: Vector
    ) -> None:
        """Add to the derivatives what rows make of it that went to another piece."""
        problem = self.problem
        rows, stiff = problem.G[changed], problem.stiff[changed]
        sign, offset, cap = problem.sign[changed], problem.offset[changed], problem.cap[changed]

        def raw(scores: Vector) -> Vector:
            return np.asarray(offset + stiff * (problem.margin - sign * scores))

        scores = self.scores[changed]
        # On its old piece α would have gone on in a straight line.
        straight = np.where(before == 1, raw(scores), np.clip(raw(old_scores), 0.0, cap))
        apart = np.clip(raw(scores), 0.0, cap) - straight
        self.gradient -= (sign * apart) @ rows
        rows *= np.sqrt(stiff)[:, None]
        # Apart, for the product of a matrix with itself costs half of another.
        left, joined = rows[before == 1], rows[self.piece[changed] == 1]
        self.matrix += joined.T @ joined - left.T @ left


def _each(function: Callable[[Item], Answer], items: Sequence[Item], threads: int) -> list[Answer]:
    """Return the answers for all items; where they are small, the machinery of threads is not."""
    if threads <= 1:
        return [function(item) for item in items]
    return list(ordered_map(function, items, threads))


def _step(task: tuple[_State, Vector, Vector]) -> None:
    state, direction, moved = task
    state.step(direction, moved)


def _piece(problem: Piecewise, scores: Vector) -> NDArray[np.int8]:
    """Return the piece of its loss that each row is on: 0 flat, 1 bent, 2 straight."""
    raw = problem.raw(scores)
    return (raw > 0).astype(np.int8) + ((raw >= problem.cap) & (raw > 0))


def _sum_derivatives(G: Matrix, states: Sequence[_State], threads: int) -> None:
    """Sum up the gradients and second derivatives of problems, in one pass over the rows."""
    if not states:
        return
    pull = np.array([s.problem.sign * s.problem.alpha(s.scores) for s in states])

    def part(first: int) -> tuple[Matrix, list[Matrix]]:
        where = slice(first, first + _CHUNK)
        block = G[where]
        curvatures = []
        for state in states:
            bent = np.flatnonzero(state.piece[where] == 1)
            rows = block[bent] * np.sqrt(state.problem.stiff[where][bent])[:, None]
            curvatures.append(rows.T @ rows)
        return pull[:, where] @ block, curvatures

    for state in states:
        problem = state.problem
        state.gradient = problem.diagonal * state.x - problem.linear
        state.matrix = np.diag(problem.diagonal)
    firsts = range(0, len(G), _CHUNK)
    parts = map(part, firsts) if threads <= 1 else ordered_map(part, firsts, threads)
    for slopes, curvatures in parts:
        for state, slope, curvature in zip(states, slopes, curvatures, strict=True):
            state.gradient -= slope
            state.matrix += curvature


def _direction(state: _State) -> Vector:
    """Return −H⁻¹∇."""
    matrix, gradient = state.matrix, state.gradient
    if not (state.piece == 1).any():
        # Nothing holds what is not regularised: any long step will do, the search cuts it.
        matrix = matrix + 1e-10 * np.eye(len(matrix))
    _, solution, failed = dposv(matrix, gradient, lower=1)
    if not failed:
        return np.asarray(-solution)
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
