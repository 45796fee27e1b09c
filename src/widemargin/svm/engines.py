"""Which engine, and cells of which size: decided on rows that are held out.

A sample of the rows is cut into rows to learn from and rows to judge by. The span fit and cells
learn from the former, and the latter tell which does better. A sample of a tenth of the rows has a
tenth of the cells of a size, and so says too much good of them where classes are spread over the
whole space. So the cells of the sample are made smaller than those of all rows will be: where even
they are as good as the span, cells gain from further rows what a span of a given size does not.
The span of the sample is small too, for the sake of time: what more vectors would give it is less
than what more rows give to cells.

Where time is limited, a choice has a part of it. If that does not last, it is the span, which has a
machine of all rows at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.cells import CellMachines
from widemargin.deadline import Deadline
from widemargin.loop import Limits, run
from widemargin.machines import Machines
from widemargin.qp import solve_margin_dual
from widemargin.span import Vectors
from widemargin.span.basis import kernel_matrix
from widemargin.svm.cell_machine import CellMachine, Joined
from widemargin.svm.in_cells import Whole, cut_by_size

Matrix = NDArray[np.float64]
CellsAccuracy = Callable[["Trial", int], float | None]
TrialMachine = Callable[[Points, int, float, Deadline], CellMachine]
"""Returns the machine of points with so many vectors, to a gap, before a deadline."""

SIZES = 300, 1000, 3000
"""Sizes of cells to choose from."""

# Rows of the two samples that tell how the support grows.
_PROBE = 250, 500
# Distinct rows up to which the exact machine is taken, in any case or if few of them support it, as
# long as their kernel matrix fits; and how much work a factorisation of the support may be.
_EXACT_ROWS, _MOST_EXACT_ROWS, _EXACT_WORK = 5000, 10_000, 2e10
# Distinct rows from which it is asked whether cells are better than a span.
_LEAST_CUT_ROWS = 12_000
# Rows of the sample: to learn from, at the most and as a share of all, and to judge by.
_LEARN, _LEARN_SHARE, _JUDGE = 8000, 0.25, 16_000
# A cell must hold a small part of the rows to learn from.
_PARTS = 3
# Vectors of the span that is compared, and rows of the cells; the gap to which both are fitted.
_VECTORS, _SMALL, _TRIAL_TOL = 500, 150, 1e-2
# How many times the errors of the span these may make; and the accuracy that a larger size must
# gain over a smaller one.
_ERRORS, _SIZE_GAIN = 1.02, 0.005
# Part of the time, where it is limited, for the choice.
_TIME_TO_CHOOSE = 0.25


@dataclass(frozen=True)
class Decision:
    """What was chosen.

    Attributes
    ----------
    engine : {"span", "cells"}
        The engine.
    size : int
        Rows of a cell.
    reason : str
        The accuracies that decided.
    """

    engine: str
    size: int
    reason: str


@dataclass(frozen=True)
class Trial:
    """Points to learn from, and points to judge by.

    Attributes
    ----------
    learn, judge : Points
        The two parts of a sample.
    deadline : Deadline
        When it must have been decided.
    """

    learn: Points
    judge: Points
    deadline: Deadline

    @classmethod
    def of(cls, points: Points, deadline: Deadline, share: float = 1.0) -> Trial | None:
        """Return a sample of points, or None where they are too few to be told apart.

        Parameters
        ----------
        points : Points
            All of them.
        deadline : Deadline
            When the fit must end.
        share : float, default=1.0
            The part of the points that may be learnt from.
        """
        learn = min(_LEARN, int(share * points.n), points.n // 2)
        size = min(learn + _JUDGE, points.n)
        # Rows come in the order of a hash: the first ones are a sample.
        trial = cls(
            _subset(points, slice(learn)),
            _subset(points, slice(learn, size)),
            deadline.part(_TIME_TO_CHOOSE),
        )
        return trial if len(np.unique(trial.learn.code)) > 1 and size > learn else None

    def accuracy(self, scores: Matrix) -> float:
        """Return the share of the weight of the rows that are answered right."""
        binary = scores.shape[1] == 1
        answer = (scores[:, 0] > 0).astype(np.intp) if binary else scores.argmax(axis=1)
        weight = self.judge.weight
        return float(weight[answer == self.judge.code].sum() / weight.sum())

    def of_machine(self, machine: CellMachine) -> float | None:
        """Return the accuracy of one machine for all rows; None if it had too little time."""
        if machine.interrupted:
            # Half a machine proves nothing, and there is no model yet.
            raise KeyboardInterrupt
        if self.deadline.passed:
            return None
        rows = self.judge.rows
        machines = Machines(
            self.judge.kernel,
            machine.vectors,
            machine.coef,
            machine.intercept,
            np.float64,
            rows.vectors_at_a_time,
        )
        return self.accuracy(np.concatenate(list(rows.scan(machines, width=machines.width))))

    def of_cells(
        self, size: int, overlap: float, blend: float, whole: Whole, threads: int
    ) -> float | None:
        """Return the accuracy of cells of a size; None if there was too little time."""
        cut = cut_by_size(self.learn, size, overlap, threads, self.deadline)
        solver = cut.solver(_TRIAL_TOL, np.float64, None, whole, threads, deadline=self.deadline)
        result = run(solver, Limits(deadline=self.deadline))
        if result.certificate.stopped == "interrupted":
            raise KeyboardInterrupt
        if self.deadline.passed:
            return None
        found = Joined.of(solver.machines(result.state))
        cells = CellMachines(
            cut.partition,
            self.learn.kernel,
            found.vectors,
            found.coef,
            found.offsets,
            found.intercept,
            blend,
        )
        return self.accuracy(cells.decision(self.judge.rows, threads))


def exact_or_span(points: Points, limit: int | None, memory: int) -> str:
    """Return the engine for points that are not cut into cells.

    Parameters
    ----------
    points : Points
        The points.
    limit : int or None
        Vectors at the most.
    memory : int
        Budget in bytes.
    """
    n = points.n
    fits = n <= _MOST_EXACT_ROWS and 8 * n * n <= memory
    if not fits or (limit is not None and limit < n):
        return "span"
    return "exact" if n <= _EXACT_ROWS or support_work(points) <= _EXACT_WORK else "span"


def cells_or_span(
    points: Points, whole: TrialMachine, cells_accuracy: CellsAccuracy, deadline: Deadline
) -> Decision:
    """Choose between the span and cells.

    Parameters
    ----------
    points : Points
        All points.
    whole : callable
        Returns a machine in the span of a number of vectors.
    cells_accuracy : callable
        Returns the accuracy of cells of a size in a trial.
    deadline : Deadline
        When the fit must end.
    """
    trial = Trial.of(points, deadline, _LEARN_SHARE) if points.n >= _LEAST_CUT_ROWS else None
    if trial is None:
        return Decision("span", SIZES[0], "")
    # Cells first: they are faster.
    cells = cells_accuracy(trial, _SMALL)
    span = None
    if cells is not None:
        span = trial.of_machine(whole(trial.learn, _VECTORS, _TRIAL_TOL, trial.deadline))
    if cells is None or span is None:
        return Decision("span", SIZES[0], "no time to compare it with cells")
    reason = (
        f"on held-out rows of a sample {100 * span:.1f} % in a span, {100 * cells:.1f} % in cells"
    )
    return Decision("cells" if 1.0 - cells <= _ERRORS * (1.0 - span) else "span", SIZES[0], reason)


def size_of_cells(points: Points, cells_accuracy: CellsAccuracy, deadline: Deadline) -> Decision:
    """Choose the size of cells: the smallest that a larger one does not beat clearly.

    Parameters
    ----------
    points : Points
        All points.
    cells_accuracy : callable
        Returns the accuracy of cells of a size in a trial.
    deadline : Deadline
        When the fit must end.
    """
    trial = Trial.of(points, deadline)
    if trial is None:
        return Decision("cells", SIZES[0], "")
    tried: list[tuple[int, float]] = []
    for size in SIZES:
        if tried and size * _PARTS > trial.learn.n:
            break
        accuracy = cells_accuracy(trial, size)
        if accuracy is None:
            break
        tried.append((size, accuracy))
        if len(tried) > 1 and tried[-1][1] < tried[-2][1] + _SIZE_GAIN:
            break
    if not tried:
        return Decision("cells", SIZES[0], "no time to try sizes of cells")
    size, best = tried[0]
    for other, accuracy in tried[1:]:
        if accuracy >= best + _SIZE_GAIN:
            size, best = other, accuracy
    said = ", ".join(f"{100 * accuracy:.1f} % in cells of {rows}" for rows, accuracy in tried)
    return Decision("cells", size, f"on held-out rows of a sample {said}")


def _subset(points: Points, part: slice) -> Points:
    index = np.arange(points.n)[part]
    return replace(
        points,
        rows=points.rows.subset(index),
        code=points.code[index],
        weight=points.weight[index],
        number=points.number[index],
        place=None,
    )


def support_work(points: Points) -> float:
    """Return an estimate of what it takes to factorise the support of all problems.

    Support vectors of two samples tell with which power of the rows they grow: it is 1 for classes
    that overlap, and less where the margin gets crowded.
    """
    index = np.arange(_PROBE[1])
    sample = Vectors(points.rows.take(index), index)
    gram = kernel_matrix(points.kernel, points.rows, sample, sample)
    work = 0.0
    for p in range(points.n_problems):
        small, large = (_support_size(gram[:m, :m], points, p) for m in _PROBE)
        power = min(1.0, max(0.0, float(np.log2(large / small))))
        work += (large * (points.n / _PROBE[1]) ** power) ** 3 / 3
    return work


def _support_size(gram: NDArray[np.float64], points: Points, problem: int) -> int:
    """Return the number of support vectors among the first rows, at least one."""
    m = len(gram)
    point = solve_margin_dual(
        np.ascontiguousarray(gram), points.sign(problem, slice(m)), points.ridge[:m], gap=1e-2
    )
    return max(1, int(np.count_nonzero(point.alpha)))
