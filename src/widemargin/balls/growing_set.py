"""One problem with few support vectors, on a set of rows that grows until no other row matters.

The small machine (``qp.margin_dual``) solves the dual on the set; its function tells of all rows
which ones are inside their margin, and these join. Kernel values are made of the rows in the set
with all rows, once. The gap is that of the problem on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import Precision
from widemargin.loop import Deadline, relative_gap
from widemargin.problem import Problem, vectors_for
from widemargin.qp.margin_dual import loops, solve_margin_dual

# Rows below which all kernel values are made at once.
_FEW = 400
# Share of the rows that the first set has.
_FIRST_SHARE = 0.0625
# Rows of the first set at the least.
_FIRST_LEAST = 96
# Share of the rows up to which the set is worth it.
_MOST_SHARE = 0.4
# The gap on the first set, and how much finer than that of all rows the gap on a set is.
_FIRST_GAP = 1e-2
_FINER = 0.1
# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5
# Sets at the most.
_MOST_ROUNDS = 12


@dataclass(frozen=True)
class GapOf:
    """Dual variables, and what is proved of them.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        Dual variables.
    primal, dual : float
        Objectives over all rows.
    gap : float
        The relative gap, with what rounding may hide of it.
    """

    alpha: Vector
    primal: float
    dual: float
    gap: float

    @classmethod
    def of(cls, alpha: Vector, primal: float, dual: float, rounding: float) -> GapOf:
        """Return what two objectives prove."""
        hidden = rounding * float(np.linalg.norm(alpha))
        return cls(alpha, primal, dual, min(1.0, relative_gap(primal, dual) + hidden))


class GrowingSet:
    """A problem on some of the rows of a larger one.

    Parameters
    ----------
    problem : Problem
        Its rows and kernel.
    index : ndarray of int of shape (n,)
        The rows of this problem.
    sign, ridge : ndarray of shape (n,)
        Labels ±1, and 1 / (2 C s).
    precision : Precision
        Of the kernel values.
    tol : float
        Relative gap.

    Attributes
    ----------
    n_kernel : int
        Kernel values that were made.
    margin : ndarray of shape (n,)
        y f of all rows, at the last point.
    """

    def __init__(
        self,
        problem: Problem,
        index: IndexArray,
        sign: Vector,
        ridge: Vector,
        precision: Precision,
        tol: float,
    ) -> None:
        self.problem = problem
        self.index = index
        self.sign = sign
        self.ridge = ridge
        self.precision = precision
        self.tol = tol
        self.n_kernel = 0
        self.vectors: Any = None
        self.members = np.zeros(0, dtype=np.intp)
        self.margin = np.zeros(len(index))
        self.most = int(_MOST_SHARE * len(index))

    def solved(self, start: Vector | None, deadline: Deadline) -> GapOf:
        """Return the solution; with a gap above `tol` where too many rows matter, or time is over.

        Parameters
        ----------
        start : ndarray of shape (n,) or None
            Where to start.
        deadline : Deadline
            When to stop, looked at between sets.
        """
        n = len(self.index)
        alpha = np.zeros(n) if start is None else start
        found = GapOf(alpha, float("inf"), 0.0, 1.0)
        if n < _FEW or np.count_nonzero(alpha) > self.most:
            return found
        self.vectors = vectors_for(self.problem.kernel, self.problem.rows, self.index)
        # The system hands out pages when they are first used.
        self.values = np.empty((self.most, n), dtype=self.precision.dtype)
        gap = _FIRST_GAP
        if alpha.any():
            # Whether an earlier solution is good enough is soon told, and where it is not, what it
            # lacks.
            self._join(np.flatnonzero(alpha))
            found = self._at_all_rows(alpha)
            joining = self._violators(self.margin)
            gap = self._finer(gap, found)
        else:
            size = max(_FIRST_LEAST, int(_FIRST_SHARE * n))
            joining = np.arange(0, n, max(1, n // size))
        for _ in range(_MOST_ROUNDS):
            if self._proved(found) or deadline.passed:
                break
            if len(self.members) + len(joining) > self.most:
                break
            first = not len(self.members)
            if len(joining):
                self._join(joining)
            fewer = self._support_of_half(gap, deadline) if first else 0
            alpha = self._on_members(alpha, gap, deadline)
            if first and self._most_will_matter(fewer, int(np.count_nonzero(alpha))):
                # All rows are better solved from the beginning.
                return found
            found = self._at_all_rows(alpha)
            joining = self._violators(self.margin)
            gap = self._finer(gap, found)
            if not len(joining):
                gap *= _FINER
        return found

    def _proved(self, found: GapOf) -> bool:
        """Return whether the gap is met; whether rounding hides more is another question."""
        return relative_gap(found.primal, found.dual) <= _SHARE_OF_GAP * self.tol

    def _finer(self, gap: float, found: GapOf) -> float:
        """Return the gap on the next set."""
        return min(gap, max(_FINER * found.gap, _SHARE_OF_GAP * self.tol))

    def _join(self, joining: IndexArray) -> None:
        """Let rows join, and make their kernel values."""
        before, after = len(self.members), len(self.members) + len(joining)
        block = self.problem.rows.block(self.index[joining])
        self.problem.kernel.checked_block(block, self.vectors, self.values[before:after])
        self.n_kernel += len(joining) * len(self.index)
        self.members = np.concatenate([self.members, joining])

    def _on_members(self, alpha: Vector, gap: float, deadline: Deadline) -> Vector:
        """Return the solution on the set."""
        members = self.members
        K = loops.pick(self.values, len(members), members)
        start = alpha[members]
        point = solve_margin_dual(
            K, self.sign[members], self.ridge[members], start=start, gap=gap, deadline=deadline
        )
        after = np.zeros(len(alpha))
        after[members] = point.alpha
        return after

    def _support_of_half(self, gap: float, deadline: Deadline) -> int:
        """Return how many of every second row of the set support its machine."""
        half = self.members[::2]
        K = np.ascontiguousarray(self.values[: len(self.members) : 2, half])
        sign, ridge = self.sign[half], self.ridge[half]
        point = solve_margin_dual(K, sign, ridge, gap=gap, deadline=deadline)
        return int(np.count_nonzero(point.alpha))

    def _most_will_matter(self, of_half: int, of_set: int) -> bool:
        """Return whether the set would become too large, as support vectors grow with the rows.

        Those of half of the set and of the set tell with which power they do.
        """
        power = float(np.clip(np.log2(of_set / max(1, of_half)), 0.0, 1.0)) if of_set else 0.0
        expected = of_set * (len(self.index) / len(self.members)) ** power
        return bool(expected > self.most)

    def _at_all_rows(self, alpha: Vector) -> GapOf:
        """Return what α proves over all rows, and keep their margins."""
        coef = (alpha * self.sign)[self.members]
        used = np.flatnonzero(coef)
        values = loops.mix(self.values, used, coef[used], len(self.index))
        self.margin = margin = self.sign * (values + coef.sum())
        slack = np.maximum(0.0, 1.0 - margin)
        norm2 = float(alpha @ margin)
        primal = 0.5 * norm2 + 0.5 * float((slack * (slack / self.ridge)).sum())
        dual = float(alpha.sum()) - 0.5 * (norm2 + float((alpha * (alpha * self.ridge)).sum()))
        return GapOf.of(alpha, primal, dual, self.precision.rounding)

    def _violators(self, margin: Vector) -> IndexArray:
        """Return the rows inside their margin that have not joined, the worst if they are many."""
        inside = margin < 1.0
        inside[self.members] = False
        found = np.flatnonzero(inside)
        most = max(_FIRST_LEAST, len(self.members))
        if len(found) > most:
            found = np.sort(found[np.argpartition(margin[found], most - 1)[:most]])
        return found
