"""Losses of scores: slopes, line searches, lower bounds, and what rounding hides.

Scores f of all rows in all problems are a matrix, a column for each problem. The loops over them
are compiled (``qp.margin_loops``), and run over parts of the rows in threads.

Every α ≥ 0 bounds the optimum from below: D(α) = Σα − ½ q(α) with the quadratic form
q(α) = ‖Σ α_i y_i φ_z(x_i)‖² + (Σ α_i y_i)² + Σ α_i²/(2 C s_i), and with its best factor
D = (Σα)² / (2q). The α of one step and the mixture of those before it span a segment of such points
on which D has a closed form; its best point is the next mixture. It bounds more tightly than either
end, because the errors of successive steps have different directions.

With intervals [l, h] in the place of labels (``problem``), α has both signs, and Σα becomes
Σ (α⁺ l − α⁻ h), which is concave: along the segment it is at least what is computed here, between
its ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Values, Vector
from widemargin.expansion import Expansion
from widemargin.problem import Problem
from widemargin.span.values import product
from widemargin.threads import Compiled, ordered_map

margin_loops = Compiled("widemargin.qp.margin_loops")
interval_loops = Compiled("widemargin.qp.interval_loops")
Answer = TypeVar("Answer")

# Scores that a thread takes at a time where no kernel values are involved.
_SCORES_AT_A_TIME = 1 << 16
# Points of the segment that are tried: a finer grid gains nothing that a user would see.
_GRID = np.linspace(0.0, 1.0, 65)[:, None]
# Multiplications that are spent on measuring rounding.
_MULTIPLICATIONS = 2e9
# Rows on which it is measured, at the least.
_LEAST_MEASURED = 1024
# And at the most.
_MOST_MEASURED = 8192


def inside_margin(problem: Problem, scores: Values, p: int) -> IndexArray:
    """Return the rows inside the margin, those that the loss of a problem feels."""
    n = len(scores)
    margin = _margin(problem, scores, p)
    felt = np.ones(n, dtype=bool) if problem.feels_all else margin < 1.0
    return np.flatnonzero(felt & (problem.counts[problem.fold[:n], p] > 0))


def _margin(problem: Problem, scores: Values, p: int) -> Vector:
    """Return y f of the first rows in a problem; what is as much to an interval, below 1 outside.

    It is then 1 at the ends of the interval and 2 in its middle.
    """
    n, targets = len(scores), problem.regression
    if targets is None:
        margin: Vector = problem.table[problem.code[:n], p] * scores[:, p]
        return margin
    distance = np.abs(targets.values[:n, targets.output[p]] - scores[:, p])
    epsilon = float(targets.epsilon[p])
    return np.asarray(2.0 - distance / epsilon if epsilon else np.zeros(n))


def nearest_margin(problem: Problem, scores: Values) -> Vector:
    """Return the smallest margin y f of each row over the problems that feel it."""
    nearest = np.full(problem.n, np.inf)
    for p in range(problem.n_problems):
        margin = _margin(problem, scores, p)
        margin[problem.counts[problem.fold, p] == 0] = np.inf
        np.minimum(nearest, margin, out=nearest)
    return nearest


def slopes(
    problem: Problem,
    scores: Values,
    where: slice,
    live: IndexArray,
    mixture: Values | None = None,
) -> tuple[Values, Vector]:
    """Return A = 2 C s y ξ of some rows, and sums: the loss, Σ A, Σ y A, Σ A·mixture/(2Cs)."""
    A = np.empty((where.stop - where.start, len(live)), dtype=scores.dtype)
    sums = np.zeros((4, len(live)))
    part = columns_of(problem, scores[where], live)
    # Without a mixture any array does in its place, and its sum means nothing.
    mixed = part if mixture is None else columns_of(problem, mixture[where], live)
    _loops(problem).slopes(part, *_typed(problem, scores, where, live), mixed, A, sums)
    return A, sums


def blend(
    problem: Problem, scores: Values, live: IndexArray, share: Vector, mixture: Values
) -> None:
    """Move the mixture towards A by a share that each problem has."""
    everything = np.arange(problem.n_problems)
    shares, loops = share.astype(scores.dtype), _loops(problem)

    def move(where: slice) -> None:
        typed = _typed(problem, scores, where, everything)
        loops.blend(scores[where], *typed, live, shares, mixture[where])

    _in_threads(problem, move, len(scores))


def along(
    problem: Problem, scores: Values, direction: Values, live: IndexArray, steps: Matrix
) -> NDArray[np.float64]:
    """Return slope and curvature of the losses at scores + step · direction.

    `scores` and `direction` have the columns of the live problems only, and so have `steps`, of
    shape (n_steps, len(live)); the answer is of shape (n_steps, 2, len(live)).
    """
    lengths, loops = steps.astype(scores.dtype), _loops(problem)

    def look(where: slice) -> NDArray[np.float64]:
        sums = np.zeros((len(steps), 2, len(live)))
        rows = (scores[where], direction[where], *_typed(problem, scores, where, live))
        if len(steps) == 1:
            loops.along(*rows, lengths[0], sums[0])
        else:
            loops.along_several(*rows, lengths, sums)
        return sums

    total = np.zeros((len(steps), 2, len(live)))
    for sums in _in_threads(problem, look, len(scores)):
        total += sums
    return total


def advance(
    problem: Problem, scores: Values, direction: Values, live: IndexArray, step: Vector
) -> None:
    """Add step · direction to the scores of the live problems."""
    lengths = step.astype(scores.dtype)

    def move(where: slice) -> None:
        margin_loops.advance(scores[where], direction[where], live, lengths)

    _in_threads(problem, move, len(scores))


def felt(problem: Problem, scores: Values, order: IndexArray, n_rows: int) -> Vector:
    """Return how much each of the first rows is felt by the problems: Σ_p |2 C s ξ| / C.

    `order` tells which row stands in each place; the answer is in the rows' own order.
    """
    everything = np.arange(problem.n_problems)

    def look(where: slice) -> Vector:
        A, _ = slopes(problem, scores, where, everything)
        return np.asarray(np.abs(A / problem.C).sum(axis=1))

    total = np.zeros(problem.n)
    total[order[:n_rows]] = np.concatenate(_in_threads(problem, look, n_rows))
    return total


def _loops(problem: Problem) -> Compiled:
    """Return the compiled loops of a problem's losses: of labels, or of intervals."""
    return margin_loops if problem.regression is None else interval_loops


def columns_of(problem: Problem, scores: Values, live: IndexArray) -> Values:
    """Return the columns of the live problems, the array itself if they are all."""
    return scores if len(live) == problem.n_problems else scores[:, live]


def _typed(
    problem: Problem, scores: Values, where: slice, live: IndexArray
) -> tuple[NDArray[Any], ...]:
    """Return code, weight, fold, table, C and counts as the compiled loops want them.

    Those of intervals have targets in the place of the code, and ε in that of the table.
    """
    kind, targets = scores.dtype, problem.regression
    return (
        problem.code[where] if targets is None else targets.of(live, where).astype(kind),
        problem.weight[where].astype(kind),
        problem.fold[where],
        (problem.table[:, live] if targets is None else targets.epsilon[live]).astype(kind),
        problem.C[live].astype(kind),
        problem.counts[:, live].astype(kind),
    )


def _in_threads(problem: Problem, work: Callable[[slice], Answer], n: int) -> list[Answer]:
    """Return the answers for spans of the first n rows, in their order."""
    size = max(1024, _SCORES_AT_A_TIME // problem.n_problems)
    spans = (slice(first, min(n, first + size)) for first in range(0, n, size))
    return list(ordered_map(work, spans, problem.threads))


@dataclass(frozen=True)
class Slopes:
    """Visitor: Σ_i A_i k_z(x_i) and the sums of `slopes`."""

    problem: Problem
    scores: Values
    live: IndexArray
    mixture: Values | None
    change: Values | None

    def __call__(self, values: list[Values], where: slice) -> tuple[Any, Vector]:
        """Return the sums over a block."""
        if self.change is not None:
            moved = product(values, self.change[:-1]) + self.change[-1]
            self.scores[where.start : where.stop, self.live] += moved
        A, sums = slopes(self.problem, self.scores, where, self.live, self.mixture)
        return np.concatenate([piece.T @ A for piece in values]), sums


class LowerBound:
    """The value of the mixture of dual points so far; the points themselves stay with the rows."""

    def __init__(self, n_problems: int) -> None:
        self._linear = np.zeros(n_problems)
        self._quadratic = np.zeros(n_problems)
        self._whitened: Matrix | None = None

    def improved(self, live: IndexArray, whitened: Matrix, sums: Matrix) -> tuple[Vector, Vector]:
        """Take in new dual points, and return the bounds and their share in the mixture.

        Parameters
        ----------
        live : ndarray of int
            The problems that have moved.
        whitened : ndarray of shape (r + 1, len(live))
            Σ α y φ_z(x) and Σ α y of their dual points, in an orthonormal basis.
        sums : ndarray of shape (4, len(live))
            What `slopes` added up.

        Returns
        -------
        bounds, shares : ndarray of shape (len(live),)
            Lower bounds on the optima, and how far the mixture moves towards the new points.
        """
        linear, cross_rows = sums[2], sums[3]
        # Σ α²/(2Cs) = Σ 2 C s ξ², twice the loss.
        quadratic = (whitened * whitened).sum(axis=0) + 2.0 * sums[0]
        if self._whitened is None or len(self._whitened) != len(whitened):
            share = np.ones(len(live))
            self._whitened = np.zeros((len(whitened), len(self._linear)))
            cross = np.zeros(len(live))
        else:
            cross = (self._whitened[:, live] * whitened).sum(axis=0) + cross_rows
            share = self._best_share(live, linear, quadratic, cross)
        rest = 1.0 - share
        self._quadratic[live] = (
            rest**2 * self._quadratic[live] + 2 * rest * share * cross + share**2 * quadratic
        )
        self._linear[live] = rest * self._linear[live] + share * linear
        self._whitened[:, live] += share * (whitened - self._whitened[:, live])
        return _value(self._linear[live], self._quadratic[live]), share

    def _best_share(
        self, live: IndexArray, linear: Vector, quadratic: Vector, cross: Vector
    ) -> Vector:
        rest = 1.0 - _GRID
        values = _value(
            rest * self._linear[live] + _GRID * linear,
            rest**2 * self._quadratic[live] + 2 * rest * _GRID * cross + _GRID**2 * quadratic,
        )
        best: Vector = _GRID[values.argmax(axis=0), 0]
        return best


def _value(linear: Vector, quadratic: Vector) -> Vector:
    """Return the largest Dual of a point times a factor ≥ 0: linear² / (2 quadratic)."""
    value = np.zeros(np.broadcast(linear, quadratic).shape)
    linear = np.maximum(0.0, linear)
    np.divide(linear * linear, 2.0 * quadratic, out=value, where=quadratic > 0)
    return value


def rows_to_measure(n: int, vectors: NDArray[Any]) -> int:
    """Return on how many of all rows rounding is measured."""
    affordable = int(_MULTIPLICATIONS / max(1, vectors.size))
    return min(n, max(_LEAST_MEASURED, min(_MOST_MEASURED, affordable)))


def rounding_errors(
    problem: Problem, vectors: NDArray[Any], beta: Matrix, scores: Values, size: int
) -> Matrix:
    """Return sums over some rows of what rounded kernel values do to the losses.

    If scores are off by e, the loss C Σ s ξ² moves by 2C Σ s ξ y e + C Σ s e² at the most, and so
    does the dual, whose slope is the same.

    Returns
    -------
    ndarray of shape (5, n_problems)
        Sums of the first term, its square, its absolute value, and the second term; and how many
        rows there are.
    """
    index = rows_measured(problem.n, size)
    exact = Expansion(problem.kernel, vectors, beta[:-1], beta[-1])
    return error_sums(problem, index, scores[index], exact.values(problem.rows, index))


def rows_measured(n: int, size: int) -> IndexArray:
    """Return the rows on which rounding is measured."""
    return np.unique(np.linspace(0, n - 1, min(size, n)).astype(np.intp))


def error_sums(problem: Problem, index: IndexArray, scores: Values, exact: Matrix) -> Matrix:
    """Return the sums of `rounding_errors` from the scores of some rows, and the exact ones."""
    error = scores - exact
    weight = problem.weight[index, None] * problem.C * problem.counts[problem.fold[index]]
    slope = 2.0 * weight * problem.residuals(scores, index) * error
    terms = (slope, slope * slope, np.abs(slope), weight * error * error, np.ones_like(slope))
    return np.array([term.sum(axis=0) for term in terms])


def hidden_by_rounding(sums: Matrix, n: int) -> float:
    """Return how far rounded kernel values may move primal − dual of n rows.

    Errors have both signs and all but cancel, so the sum of slopes is what it is on a sample
    (`rounding_errors`), and three standard errors more.
    """
    count = sums[4]
    slope, square, size, second = sums[:4] / count
    deviation = np.sqrt(np.maximum(0.0, square - slope * slope))
    most = np.abs(slope) + 3.0 * deviation / np.sqrt(count)
    # Never more than if no errors cancelled.
    moved = np.minimum(most, size) + second
    return 2.0 * n * float(moved.sum())
