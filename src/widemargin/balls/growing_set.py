"""One problem with few support vectors, on a set of rows that grows until no other row matters.

The small machine (``qp.margin_dual``) solves the dual on the set; its function tells of other rows
which ones are inside their margin, and these join. Rows without a coefficient leave again. A part
of the rows is looked at first, then one four times as large, and all in the end, so that few join
that do not stay.

Kernel values are made of the rows in the set with each other, and of those with a coefficient with
all rows, once: about as many values as support vectors times rows. The gap is that of the problem
on all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import Precision
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Deadline, relative_gap
from widemargin.qp.margin_dual import loops, solve_margin_dual
from widemargin.threads import Compiled, ordered_map, scratch

copies = Compiled("widemargin.kernels.mirror_loops")

# Rows below which all kernel values are made at once.
FEW = 400
# How much larger the next part of the rows is.
_LARGER = 4
# Rows of the first part at the least, of many rows.
_FIRST_LEAST = 200
# Share of the rows that may support the machine: there is room for their values with all rows.
_MOST_SHARE = 0.5
# The share that may be expected to.
_EXPECTED_SHARE = 0.4
# What a kernel value costs beside its features, in multiplications.
_VALUE_COST = 64
# The gap on parts of the rows, and how much finer than that of all rows the gap on a set is.
_PART_GAP = 1e-2
_FINER = 0.1
# Share of the support vectors of rough machines that are left in the end.
_FEWER = 0.8
# How much less work there is for a factor, for each part of the diagonal that the ridge is.
_EASIER = 10.0
# Rows that join in a round at the least; at the most as many as there are.
_LEAST_JOINING = 96
# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5
# Rounds on each part of the rows at the most.
_MOST_ROUNDS = 12
# Columns of a piece of a sum over kernel values, the work of one thread, and kernel values from
# which more than one is worth it.
_PIECE = 4096
_WORTH_THREADS = 2e6


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
    between : KernelBetween
        Kernel values of all rows.
    index : ndarray of int of shape (n,)
        The rows of this problem.
    sign, ridge : ndarray of shape (n,)
        Labels ±1, and 1 / (2 C s).
    precision : Precision
        Of the kernel values.
    tol : float
        Relative gap.
    threads : int, default=1
        Threads that may share the work.
    most : int, default=None
        Support vectors that there is room for.
    work : float, default=inf
        Multiplications that a factor of the support may take.
    beside : bool, default=False
        Whether other sets grow in other threads: memory is then kept for the next set of this one.

    Attributes
    ----------
    expected : float
        How many support vectors there are or will be, as far as one could tell last.
    n_kernel : int
        Kernel values that were made.
    margin : ndarray of shape (n,)
        y f of all rows, at the last point.
    """

    def __init__(
        self,
        between: KernelBetween,
        index: IndexArray,
        sign: Vector,
        ridge: Vector,
        precision: Precision,
        tol: float,
        threads: int = 1,
        most: int | None = None,
        work: float = math.inf,
        beside: bool = False,
    ) -> None:
        n = len(index)
        self.n = n
        self.precision = precision
        self.tol = tol
        self.threads = threads
        self.n_kernel = 0
        self.most = int(_MOST_SHARE * n) if most is None else min(most, int(_MOST_SHARE * n))
        self.margin = np.zeros(n)
        self.work = work
        self.beside = beside
        self.expected = float(n)
        # Parts of the rows are the first ones in this order: every 16th, every fourth, all.
        self.parts = [n]
        while len(self.parts) < 2 or self.parts[0] >= _LARGER * _FIRST_LEAST:
            self.parts.insert(0, -(-self.parts[0] // _LARGER))
        self._order = _strided(n, len(self.parts))
        self._sign, self._ridge = sign[self._order], ridge[self._order]
        self._between, self._index = between, index

    def solved(self, start: Vector | None, deadline: Deadline) -> GapOf:
        """Return the solution; with a gap above `tol` where too many rows matter, or time is over.

        Parameters
        ----------
        start : ndarray of shape (n,) or None
            Where to start.
        deadline : Deadline
            When to stop, looked at between sets.
        """
        begin = GapOf(np.zeros(self.n) if start is None else start, float("inf"), 0.0, 1.0)
        if self.n < FEW or np.count_nonzero(begin.alpha) > self.most:
            return begin
        self._between = self._between.subset(self._index[self._order], lasting=not self.beside)
        # The system hands out pages when they are first used, and takes its time if many threads
        # ask for them.
        shape, dtype = (self.most, self.n), self.precision.dtype
        self._values = scratch(shape, dtype, "of a set") if self.beside else np.empty(shape, dtype)
        # Where the values of a row are, if they are there, and with how many of the first rows.
        self._place, self._n_known, self._width = np.full(self.n, -1), 0, 0
        self._gap = max(_PART_GAP, _SHARE_OF_GAP * self.tol)
        alpha, parts = begin.alpha[self._order], self.parts[1:]
        if alpha.any():
            # Whether an earlier solution is good enough is soon told, and where it is not, what it
            # lacks.
            parts = self.parts[-1:]
            self._members, self._K = np.zeros(0, dtype=np.intp), np.empty((0, 0))
            self._join(alpha, np.flatnonzero(alpha))
        elif self._most_will_matter(*self._on_first_part(alpha, deadline), 2, self.parts[0]):
            # All rows are better solved from the beginning.
            return begin
        return self._grown(alpha, parts, deadline) or begin

    def _grown(self, alpha: Vector, parts: list[int], deadline: Deadline) -> GapOf | None:
        """Solve larger and larger parts of the rows, α in place; None if that is given up."""
        before = int(np.count_nonzero(alpha))
        for size in parts:
            proved = self._on_part(alpha, size, deadline)
            support = int(np.count_nonzero(alpha))
            if proved is None or deadline.passed:
                break
            if size < self.n and self._most_will_matter(before, support, _LARGER, size):
                return None
            before = support
            self.expected = float(support)
        return None if proved is None or len(proved.alpha) < self.n else self._of_all(proved)

    def _on_first_part(self, alpha: Vector, deadline: Deadline) -> tuple[int, int]:
        """Solve the first part, in place; return the support of its half and of all of it."""
        size = self.parts[0]
        self._members = np.arange(size)
        self._K = np.empty((size, size), dtype=self.precision.dtype)
        self._between.values(slice(0, size), slice(0, size), self._K, self.threads)
        self.n_kernel += self._K.size
        counts = []
        for part in (size // 2, size):
            rows = slice(0, part)
            K = np.ascontiguousarray(self._K[rows, rows])
            alpha[rows] = self._machine(K, rows, alpha[rows], deadline)
            counts.append(int(np.count_nonzero(alpha)))
        return counts[0], counts[1]

    def _most_will_matter(self, before: int, now: int, larger: int, size: int) -> bool:
        """Return whether all rows are better solved at once, as support vectors grow with them.

        Those of a part and of one so many times larger, of a size, tell with which power they do. A
        set saves kernel values, and costs another factor of the support, unless its ridge is so
        large that coordinate ascent does without.
        """
        n, n_features = self.n, self._between.rows.shape[1]
        power = float(np.log(max(1, now) / max(1, before)) / np.log(larger))
        self.expected = expected = _FEWER * now * (n / size) ** min(max(power, 0.0), 1.0)
        saved = (float(n) ** 2 - expected * (n + expected)) * (n_features + _VALUE_COST)
        factor = expected**3 / 3.0
        ridge = float(self._ridge.min()) / float(self._K.diagonal().mean() or 1.0)
        another = factor / (1.0 + _EASIER * ridge)
        too_many = expected > min(self.most, _EXPECTED_SHARE * n)
        return bool(too_many or factor > self.work or another > saved)

    def _on_part(self, alpha: Vector, size: int, deadline: Deadline) -> GapOf | None:
        """Solve a part of the rows, α in place; return what is proved of it in the end.

        None where too many rows matter, or time is over, before there is anything new.
        """
        last = size == self.n
        wanted = _SHARE_OF_GAP * self.tol if last else self._gap
        proved: GapOf | None = None
        for _ in range(_MOST_ROUNDS):
            if not self._let_know(np.flatnonzero(alpha), size):
                break
            proved = self._proved(alpha, size)
            # Whether rounding hides more is another question.
            now = relative_gap(proved.primal, proved.dual)
            if now <= wanted or deadline.passed:
                break
            self._gap = min(self._gap, max(_FINER * now, _SHARE_OF_GAP * self.tol))
            joining = self._violators(size)
            if not len(joining):
                self._gap *= _FINER
            self._join(alpha, joining)
            alpha[self._members] = self._machine(
                self._K, self._members, alpha[self._members], deadline
            )
        return proved

    def _of_all(self, found: GapOf) -> GapOf:
        """Return what was proved in the order of the rows."""
        alpha, self.margin = np.empty(self.n), np.empty(self.n)
        alpha[self._order], self.margin[self._order] = found.alpha, self._margin
        return replace(found, alpha=alpha)

    def _machine(
        self, K: NDArray[Any], rows: IndexArray | slice, start: Vector, deadline: Deadline
    ) -> Vector:
        """Return the solution on some rows."""
        sign, ridge = self._sign[rows], self._ridge[rows]
        point = solve_margin_dual(K, sign, ridge, start=start, gap=self._gap, deadline=deadline)
        return point.alpha

    def _join(self, alpha: Vector, joining: IndexArray) -> None:
        """Let rows join the set, and those without a coefficient leave it."""
        stays = np.flatnonzero(alpha[self._members])
        kept, m = len(stays), len(stays) + len(joining)
        K = np.empty((m, m), dtype=self.precision.dtype)
        K[:kept, :kept] = loops.gather(self._K, stays)
        self._members = np.concatenate([self._members[stays], joining])
        if len(joining):
            self._between.values(joining, self._members, K[kept:], self.threads)
            copies.mirror(K, kept, m)
            self.n_kernel += len(joining) * m
        self._K = K

    def _let_know(self, support: IndexArray, size: int) -> bool:
        """Make the values of the support with the first rows; return whether there is room."""
        if size > self._width:
            # Only those that are still needed go on.
            still = support[self._place[support] >= 0]
            if len(still):
                self._values[: len(still), : self._width] = self._values[
                    self._place[still], : self._width
                ]
                wider = self._values[: len(still), self._width : size]
                self._between.values(still, slice(self._width, size), wider, self.threads)
                self.n_kernel += wider.size
            self._place[:] = -1
            self._place[still] = np.arange(len(still))
            self._n_known, self._width = len(still), size
        new = support[self._place[support] < 0]
        first, last = self._n_known, self._n_known + len(new)
        if last > self.most:
            return False
        if len(new):
            values = self._values[first:last, :size]
            self._between.values(new, slice(0, size), values, self.threads)
            self.n_kernel += values.size
            self._place[new] = np.arange(first, last)
            self._n_known = last
        return True

    def _proved(self, alpha: Vector, size: int) -> GapOf:
        """Return what α proves over the first rows, and keep their margins."""
        used = np.flatnonzero(alpha)
        coef, place = alpha[used] * self._sign[used], self._place[used]

        def sums(first: int) -> Vector:
            part: Vector = loops.mix(self._values, place, coef, first, min(_PIECE, size - first))
            return part

        threads = self.threads if size * len(used) > _WORTH_THREADS else 1
        values = np.concatenate(list(ordered_map(sums, range(0, size, _PIECE), threads)))
        sign, ridge, alpha = self._sign[:size], self._ridge[:size], alpha[:size]
        self._margin = margin = sign * (values + coef.sum())
        slack = np.maximum(0.0, 1.0 - margin)
        norm2 = float(alpha @ margin)
        primal = 0.5 * norm2 + 0.5 * float((slack * (slack / ridge)).sum())
        dual = float(alpha.sum()) - 0.5 * (norm2 + float((alpha * (alpha * ridge)).sum()))
        # A copy: the next round changes α.
        return GapOf.of(alpha.copy(), primal, dual, self.precision.rounding)

    def _violators(self, size: int) -> IndexArray:
        """Return the rows inside their margin that are not in the set, the worst if many are."""
        inside = self._margin < 1.0
        inside[self._members[self._members < size]] = False
        found = np.flatnonzero(inside)
        most = max(_LEAST_JOINING, len(self._members))
        if len(found) > most:
            found = np.sort(found[np.argpartition(self._margin[found], most - 1)[:most]])
        return found


def _strided(n: int, n_parts: int) -> IndexArray:
    """Return an order in which every k-th row comes first, k a power of what parts grow by."""
    step = np.arange(n)
    level = np.full(n, n_parts)
    for power in range(n_parts):
        level[:: _LARGER**power] = n_parts - power
    order: IndexArray = np.lexsort((step, level))
    return order
