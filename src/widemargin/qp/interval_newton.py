"""Squared losses of intervals on a kernel matrix: Newton's method on the primal, in kernel space.

For targets t, with G = K + bias and ridge = 1/(2 C s),

    min over α of  ½ αᵀGα + ½ Σ r_i² / ridge_i,   f = Gα,   r = sign(t − f) max(0, |t − f| − ε).

With the rows A that lie outside their intervals, (G_AA + ridge) α_A = t_A ∓ ε is solved by a
Cholesky factor (``ridge_systems``), and an exact line search leads there (Chapelle, "Training a
support vector machine in the primal", Neural Computation 2007). At ε = 0 every row is outside: one
factor serves all outputs, and one step ends it (kernel ridge regression).

Every α is feasible for the dual, D(α) = Σ (α t − ε|α|) − ½ αᵀGα − ½ Σ ridge α², so that the gap of
each point is known without a further product. A point times its best factor is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.qp.line_search import line_search
from widemargin.qp.ridge_systems import FEW, RidgeSystems

# Accuracy of a step's length, and looks at the losses for it.
_LENGTH_TOL = 1e-10
_TRIES = 60
# Lengths that are one but for rounding.
_WHOLE = 1e-8
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
    systems: RidgeSystems = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found = RidgeSystems(self.K, self.ridge, self.bias, self.threads)
        object.__setattr__(self, "systems", found)

    def start(self) -> IntervalPoint:
        """Return the zero function, or a machine of all rows where few are likely to be inside.

        Each row is then outside on the side where it would be at ε = 0.
        """
        zero = np.zeros_like(self.target)
        inside = np.abs(self.target) <= self.epsilon
        if not self.epsilon.any() or inside.mean(axis=0).max() > FEW:
            return IntervalPoint(zero, zero)
        found = self.systems.of_all(self.target)
        if found is not None:
            found = self.systems.of_all(self.target - self.epsilon * np.sign(found))
        return IntervalPoint(zero, zero) if found is None else self.at(found)

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
        """Return (G + ridge)⁻¹ right on some rows, and whether there is a factor."""
        found = self.systems.solved(index, right)
        return (np.zeros_like(right), False) if found is None else (found, True)

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
