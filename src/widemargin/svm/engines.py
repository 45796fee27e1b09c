"""Which engine, and cells of which size: decided on rows that are held out.

A sample of the rows is cut into rows to learn from and rows to judge by. The span fit and cells
learn from the former, and the latter tell which does better. A sample of a tenth of the rows has a
tenth of the cells of a size, and so says too much good of them where classes are spread over the
whole space. So the cells of the sample are made smaller than those of all rows will be: where even
they are as good as the span, cells gain from further rows what a span of a given size does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.cells import CellMachines
from widemargin.loop import Limits, run
from widemargin.machines import Machines
from widemargin.qp import solve_margin_dual
from widemargin.span import Vectors
from widemargin.span.basis import kernel_matrix
from widemargin.svm.cell_machine import CellMachine, Joined
from widemargin.svm.in_cells import Whole, cut_by_size

Matrix = NDArray[np.float64]
CellsAccuracy = Callable[["Trial", int], float]

SIZES = 300, 1000, 3000
"""Sizes of cells to choose from."""

# Rows of the two samples that tell how the support grows.
_PROBE = 250, 500
# Rows of the sample: to learn from, and to judge by. A cell must hold a small part of the former.
_LEARN, _JUDGE, _PARTS = 8000, 8000, 3
# Vectors of the span that is compared, and rows of the cells.
_VECTORS, _SMALL = 1000, 150
# How many times the errors of the span these may make; and the accuracy that a larger size must
# gain over a smaller one.
_ERRORS, _SIZE_GAIN = 1.02, 0.005


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
    """Points to learn from, and points to judge by."""

    learn: Points
    judge: Points

    @classmethod
    def of(cls, points: Points) -> Trial | None:
        """Return a sample of points, or None where they are too few to be told apart."""
        size = min(_LEARN + _JUDGE, points.n)
        learn = size * _LEARN // (_LEARN + _JUDGE)
        # Rows come in the order of a hash: the first ones are a sample.
        trial = cls(_subset(points, slice(learn)), _subset(points, slice(learn, size)))
        return trial if len(np.unique(trial.learn.code)) > 1 and size > learn else None

    def accuracy(self, scores: Matrix) -> float:
        """Return the share of the weight of the rows that are answered right."""
        binary = scores.shape[1] == 1
        answer = (scores[:, 0] > 0).astype(np.intp) if binary else scores.argmax(axis=1)
        weight = self.judge.weight
        return float(weight[answer == self.judge.code].sum() / weight.sum())

    def of_machine(self, machine: CellMachine) -> float:
        """Return the accuracy of one machine for all rows."""
        if machine.interrupted:
            # Half a machine proves nothing, and there is no model yet.
            raise KeyboardInterrupt
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
        self, size: int, overlap: float, blend: float, tol: float, whole: Whole, threads: int
    ) -> float:
        """Return the accuracy of cells of a size."""
        cut = cut_by_size(self.learn, size, overlap, threads)
        solver = cut.solver(tol, np.float64, None, whole, threads)
        result = run(solver, Limits(None))
        if result.certificate.stopped == "interrupted":
            raise KeyboardInterrupt
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


def cells_or_span(trial: Trial, whole: Whole, cells_accuracy: CellsAccuracy) -> Decision:
    """Choose between the span and cells.

    Parameters
    ----------
    trial : Trial
        A sample.
    whole : callable
        Returns a machine in the span of a number of vectors.
    cells_accuracy : callable
        Returns the accuracy of cells of a size in a trial.
    """
    span = trial.of_machine(whole(trial.learn, _VECTORS))
    cells = cells_accuracy(trial, _SMALL)
    reason = (
        f"on held-out rows of a sample {100 * span:.1f} % in a span, {100 * cells:.1f} % in cells"
    )
    return Decision("cells" if 1.0 - cells <= _ERRORS * (1.0 - span) else "span", SIZES[0], reason)


def size_of_cells(trial: Trial, cells_accuracy: CellsAccuracy) -> Decision:
    """Choose the size of cells: the smallest that a larger one does not beat clearly."""
    tried: list[tuple[int, float]] = []
    for size in SIZES:
        if tried and size * _PARTS > trial.learn.n:
            break
        tried.append((size, cells_accuracy(trial, size)))
        if len(tried) > 1 and tried[-1][1] < tried[-2][1] + _SIZE_GAIN:
            break
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
