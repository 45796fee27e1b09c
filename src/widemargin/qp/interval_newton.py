"""Squared losses of intervals on a kernel matrix: Newton's method on the primal, in kernel space.

For targets t, with G = K + bias and ridge = 1/(2 C s),

    min over α of  ½ αᵀGα + ½ Σ r_i² / ridge_i,   f = Gα,   r = sign(t − f) max(0, |t − f| − ε).

With the rows A that lie outside their intervals, (G_AA + ridge) α_A = t_A ∓ ε is solved by a
Cholesky factor, and an exact line search leads there (Chapelle, "Training a support vector machine
in the primal", Neural Computation 2007). At ε = 0 every row is outside: one factor serves all
outputs, and one step ends it (kernel ridge regression). Where few rows D are inside, the factor of
all rows, M = G + ridge, serves all steps: the coefficients of D are zero if it is solved for
(t ∓ ε, −s), where (M⁻¹)_DD s are what they would be otherwise.

Every α is feasible for the dual, D(α) = Σ (α t − ε|α|) − ½ αᵀGα − ½ Σ ridge α², so that the gap of
each point is known without a further product. A point times its best factor is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.factors import cholesky_in_place, solve_cholesky
from widemargin.qp.line_search import line_search
from widemargin.threads import ordered_map

# What is added to the diagonal of a matrix without a factor, for each row, over its largest value.
_LEAST_JITTER = 1e-16
_MOST_JITTER = 1e-8
# Accuracy of a step's length, and looks at the losses for it.
_LENGTH_TOL = 1e-10
_TRIES = 60
# Lengths that are one but for rounding.
_WHOLE = 1e-8
# Columns that a thread solves for at a time.
_COLUMNS = 64
# The part of the rows inside their intervals up to which the factor of all rows serves the others.
_FEW_INSIDE = 1 / 8
# Scores that change by less than this, over what rounding may make of a product, do not change.
_ROUNDING = 8.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class IntervalPoint:
    """Coefficients of all problems, and the scores of all rows by them.

    Attributes
    ----------
    alpha, scores : ndarray of shape (n, n_problems)
        α, and Gα.
    solvable : bool
        Whether the last matrix had a factor.
    """

    alpha: Matrix
    scores: Matrix
    solvable: bool = True


@dataclass(frozen=True)
class IntervalProgram:
    """Problems that share a kernel matrix and prices.

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Kernel values.
    target : ndarray of shape (n, n_problems)
        Targets.
    epsilon : ndarray of shape (n_problems,)
        ε.
    ridge : ndarray of shape (n,)
        1 / (2 C s).
    bias : float
        1, or 0 for machines without a bias.
    threads : int, default=1
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> program = IntervalProgram(np.eye(2), np.array([[2.0], [4.0]]), np.zeros(1), np.ones(2), 0.0)
    >>> program.step(program.start()).alpha.ravel()
    array([1., 2.])
    """

    K: Matrix
    target: Matrix
    epsilon: Vector
    ridge: Vector
    bias: float
    threads: int = 1
    # The factor of all rows, once it is there.
    _whole: list[WholeFactor] = field(default_factory=list, init=False, repr=False)

    def start(self) -> IntervalPoint:
        """Return the zero function, or a machine of all rows where few are likely to be inside.

        Each row is then outside on the side where it would be at ε = 0.
        """
        zero = np.zeros_like(self.target)
        inside = np.abs(self.target) <= self.epsilon
        if not self.epsilon.any() or inside.mean(axis=0).max() > _FEW_INSIDE:
            return IntervalPoint(zero, zero)
        factor = self._factor_of_all()
        if factor is None:
            return IntervalPoint(zero, zero)
        side = np.sign(factor.solved(self.target))
        return self.at(factor.solved(self.target - self.epsilon * side))

    def at(self, alpha: Matrix) -> IntervalPoint:
        """Return the point of given coefficients."""
        return IntervalPoint(alpha, self._times(alpha))

    def residuals(self, scores: Matrix) -> Matrix:
        """Return r."""
        distance = self.target - scores
        found: Matrix = np.sign(distance) * np.maximum(0.0, np.abs(distance) - self.epsilon)
        return found

    def objectives(self, point: IntervalPoint) -> tuple[Vector, Vector]:
        """Return the primal and the dual value of each problem."""
        alpha, residual = point.alpha, self.residuals(point.scores)
        norm2 = (alpha * point.scores).sum(axis=0)
        loss = (residual * residual / self.ridge[:, None]).sum(axis=0)
        linear = (alpha * self.target - self.epsilon * np.abs(alpha)).sum(axis=0)
        quadratic = norm2 + (self.ridge[:, None] * alpha * alpha).sum(axis=0)
        dual = np.zeros(len(linear))
        # The best factor is 1 at the optimum, and where it is not, more is proved.
        np.divide(np.maximum(0.0, linear) ** 2, 2.0 * quadratic, out=dual, where=quadratic > 0)
        return 0.5 * (norm2 + loss), dual

    def gap(self, point: IntervalPoint) -> float:
        """Return the relative gap of all problems together."""
        primal, dual = (float(each.sum()) for each in self.objectives(point))
        return max(0.0, primal - dual) / primal if primal > 0 else 0.0

    def step(self, point: IntervalPoint) -> IntervalPoint:
        """Return the point after Newton's step in every problem, cut to its best length."""
        wanted, solvable = self._newton(point)
        direction = wanted - point.alpha
        change = self._times(direction)
        # Coefficients may differ where scores do not (rows that depend on each other): the primal
        # is the same all along such a step, and the dual is best at its end.
        largest = float(np.abs(self.K.diagonal()).max(initial=0.0)) + self.bias
        noise = _ROUNDING * largest * (np.abs(wanted) + np.abs(point.alpha)).sum(axis=0)
        still = np.abs(change).max(axis=0, initial=0.0) <= noise
        length = self._length(point, direction, change)
        # A step to the end is taken to the end: coefficients of rows inside are zero there.
        length = np.where(still | (np.abs(length - 1.0) <= _WHOLE), 1.0, length)
        alpha = point.alpha + length * direction
        # Anew where the step was a whole one: sums of many steps would add up their rounding.
        whole = bool((length == 1.0).all())
        scores = self._times(alpha) if whole else point.scores + length * change
        return IntervalPoint(alpha, scores, solvable)

    def _times(self, alpha: Matrix) -> Matrix:
        found: Matrix = self.K @ alpha + self.bias * alpha.sum(axis=0)
        return found

    def _newton(self, point: IntervalPoint) -> tuple[Matrix, bool]:
        """Return the best coefficients as long as the same rows are outside their intervals."""
        if not self.epsilon.any():
            return self._solved(np.arange(len(self.K)), self.target)
        wanted, solvable = np.zeros_like(point.alpha), True
        residual = self.residuals(point.scores)
        for p in range(self.target.shape[1]):
            outside = np.flatnonzero(residual[:, p])
            if not len(outside):
                continue
            end = self.target[:, p] - self.epsilon[p] * np.sign(residual[:, p])
            found, good = self._solved(outside, end[outside, None])
            wanted[outside, p] = found[:, 0]
            solvable = solvable and good
        return wanted, solvable

    def _solved(self, index: IndexArray, right: Matrix) -> tuple[Matrix, bool]:
        """Return (G + ridge)⁻¹ right on some rows, refined once, and whether there is a factor."""
        n = len(self.K)
        if len(index) < n and n - len(index) <= _FEW_INSIDE * n:
            whole = self._factor_of_all()
            if whole is not None:
                return self._by_all(whole, index, right), True
        self._whole.clear()
        every = len(index) == n
        matrix = self.K + self.bias if every else self.K[np.ix_(index, index)] + self.bias
        factor = self._factorised(matrix, self.ridge[index])
        if factor is None:
            return np.zeros_like(right), False
        found = solve_cholesky(factor, right)
        return found + solve_cholesky(factor, right - matrix @ found), True

    def _factorised(self, matrix: Matrix, ridge: Vector) -> Matrix | None:
        """Add the ridge to a matrix, and return its factor; None if it has none."""
        diagonal = np.arange(len(matrix))
        matrix[diagonal, diagonal] += ridge
        largest = float(np.abs(matrix[diagonal, diagonal]).max(initial=1.0))
        jitter = 0.0
        while jitter <= _MOST_JITTER * len(matrix) * largest:
            factor = matrix.copy()
            factor[diagonal, diagonal] += jitter
            if cholesky_in_place(factor, self.threads):
                return factor
            jitter = max(_LEAST_JITTER * len(matrix) * largest, 100.0 * jitter)
        return None

    def _factor_of_all(self) -> WholeFactor | None:
        """Return the factor of all rows, which is kept."""
        if not self._whole:
            found = self._factorised(self.K + self.bias, self.ridge)
            if found is not None:
                self._whole.append(WholeFactor(found, self.threads))
        return self._whole[0] if self._whole else None

    def _by_all(self, whole: WholeFactor, index: IndexArray, right: Matrix) -> Matrix:
        """Return (G + ridge)⁻¹ right on most rows, by the factor of all of them; refined once."""
        n = len(self.K)
        inside = np.setdiff1d(np.arange(n), index)
        columns = whole.inverse(inside)

        def solved(values: Matrix) -> Matrix:
            found = np.zeros((n, values.shape[1]))
            found[index] = values
            found = whole.solved(found)
            found -= columns @ np.linalg.solve(columns[inside], found[inside])
            found[inside] = 0.0
            return found

        found = solved(right)
        left = self._times(found) + self.ridge[:, None] * found
        answer: Matrix = (found + solved(right - left[index]))[index]
        return answer

    def _length(self, point: IntervalPoint, direction: Matrix, change: Matrix) -> Vector:
        """Return how far to go in each problem."""
        slope0 = (direction * point.scores).sum(axis=0)
        # A kernel bends nothing downwards; rounding does.
        curve0 = np.maximum(0.0, (direction * change).sum(axis=0))
        pull = change / self.ridge[:, None]

        def look(length: Vector) -> tuple[Vector, Vector]:
            residual = self.residuals(point.scores + length * change)
            slope = slope0 + length * curve0 - (residual * pull).sum(axis=0)
            felt = (residual != 0.0) | (self.epsilon == 0.0)
            return slope, curve0 + (felt * pull * change).sum(axis=0)

        start = np.ones(len(slope0))
        return line_search(look, start, tol=_LENGTH_TOL, max_tries=_TRIES)


class WholeFactor:
    """The factor of M = G + ridge of all rows, and columns of its inverse.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        The factor.
    threads : int
        Threads that solve with it.
    """

    def __init__(self, factor: Matrix, threads: int) -> None:
        self.factor, self.threads = factor, threads
        self._index: IndexArray = np.zeros(0, dtype=np.intp)
        self._columns: Matrix = np.zeros((len(factor), 0))

    def solved(self, right: Matrix) -> Matrix:
        """Return M⁻¹ right."""
        parts = [right[:, k : k + _COLUMNS] for k in range(0, right.shape[1], _COLUMNS)]
        each = partial(solve_cholesky, self.factor)
        return np.hstack([right[:, :0], *ordered_map(each, parts, self.threads)])

    def inverse(self, index: IndexArray) -> Matrix:
        """Return columns of M⁻¹; those that were asked for last are known."""
        known = np.isin(self._index, index)
        new = np.setdiff1d(index, self._index)
        unit = np.zeros((len(self.factor), len(new)))
        unit[new, np.arange(len(new))] = 1.0
        every = np.concatenate([self._index[known], new])
        columns = np.hstack([self._columns[:, known], self.solved(unit)])
        order = np.argsort(every)
        self._index, self._columns = every[order], columns[:, order]
        return self._columns
