"""Machines whose loss is zero on an interval and linear outside it, stated once.

    min ½‖u‖² + g_p b + Σ_i max(0, q_ip (l_ip − f(x_i)), p_ip (f(x_i) − h_ip)),    f = u + b,

for problems p that share rows and kernel values. ``qp.interval_dual`` has the cases: ε-insensitive
and quantile regression, the ν-one-class machine, the hinge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.kernels import Kernel
from widemargin.rows import Rows


@dataclass(frozen=True)
class IntervalProblem:
    """Rows with intervals, and the problems to be solved on them; the bias is free.

    Attributes
    ----------
    rows : Rows
        The rows, in random order: the first ones are a sample.
    kernel : Kernel
        Their kernel.
    low, high : ndarray of shape (n, n_problems)
        Ends of the intervals on which nothing is paid.
    below, above : ndarray of shape (n, n_problems)
        Slopes of the loss below and above them, weights included.
    pull : ndarray of shape (n_problems,)
        What the bias costs: g.
    number : ndarray of int of shape (n,)
        The rows' numbers in the user's data.
    """

    rows: Rows
    kernel: Kernel
    low: Matrix
    high: Matrix
    below: Matrix
    above: Matrix
    pull: Vector
    number: IndexArray

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.low)

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return len(self.pull)

    @property
    def threads(self) -> int:
        """Threads that work on the rows."""
        return self.rows.threads

    @property
    def weight(self) -> Vector:
        """How much rows count: the largest slope of each."""
        weight: Vector = np.maximum(self.below, self.above).max(axis=1)
        return weight

    def loss(self, values: Matrix) -> float:
        """Return the loss of values at the rows, of all problems together."""
        under, over = np.maximum(self.low - values, 0.0), np.maximum(values - self.high, 0.0)
        lost = np.where(self.below > 0, self.below * under, 0.0)
        return float((lost + np.where(self.above > 0, self.above * over, 0.0)).sum())

    def part(self, index: IndexArray) -> IntervalProblem:
        """Return the problems on some of the rows; slopes and prices of the bias stay."""
        return replace(
            self,
            rows=self.rows.subset(index),
            low=self.low[index],
            high=self.high[index],
            below=self.below[index],
            above=self.above[index],
            number=self.number[index],
        )

    def subset(self, index: IndexArray) -> IntervalProblem:
        """Return the problems on some of the rows, whose slopes count for all of them.

        Prices of the bias stay; slopes grow by a common factor of each problem.
        """
        part = self.part(index)
        total = (self.below + self.above).sum(axis=0)
        kept = (part.below + part.above).sum(axis=0)
        factor = np.divide(total, kept, out=np.ones(len(total)), where=kept > 0)
        return replace(part, below=part.below * factor, above=part.above * factor)


def one_class(rows: Rows, kernel: Kernel, weight: Vector, nu: float) -> IntervalProblem:
    """State the ν-one-class machine in the scale of ``OneClassSVM``: β ≤ weight, Σβ = ν Σ weight.

    Parameters
    ----------
    rows : Rows
        The rows.
    kernel : Kernel
        Their kernel.
    weight : ndarray of shape (n,)
        Their weights.
    nu : float
        Share of the weight below zero at the most, and of the weight of support at the least.
    """
    n = len(weight)
    zero, slopes = np.zeros((n, 1)), weight[:, None]
    pull = np.array([nu * float(weight.sum())])
    return IntervalProblem(rows, kernel, zero, zero, slopes, zero, pull, np.arange(n))
