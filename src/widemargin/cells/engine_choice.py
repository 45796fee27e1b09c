"""Which engine, and cells of which size: decided on rows that are held out.

A sample of the rows is cut into rows to learn from and rows to judge by. The span fit and cells
learn from the former, and the latter tell which does better. A sample of a tenth of the rows has a
tenth of the cells of a size, and so says too much good of them where classes are spread over the
whole space. So the cells of the sample are made smaller than those of all rows will be: where even
they are as good as the span, cells gain from further rows what a span of a given size does not.
The span of the sample is small too, for the sake of time: what more vectors would give it is less
than what more rows give to cells. Where both are equally good, cells that do not gain from more
rows are not worth their many vectors.

Then larger cells are tried: where rows have little noise, each is worth more the more others there
are beside it, and no span is large enough. If larger cells do much better, the largest are taken,
or the exact machine, if it is not too dear.

Where the span wins, the exact machine of a smaller sample is set beside a span with as many vectors
as stand for those that the span of all rows may have. Some kernels have no small span: rows of many
features that have little to do with each other, as those of texts. The exact machine is then taken
if it is clearly better, and not too large.

Where time is limited, a choice has a part of it. If that does not last, it is the span, which has a
machine of all rows at any time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from widemargin.arrays import Matrix
from widemargin.balls import (
    cost_of_exact,
    exact_fits_there,
    fit_exact,
    fit_exact_there,
    targets_fit,
)
from widemargin.cells.cell_decision import CellMachines
from widemargin.cells.cell_engine import CellOptions, fit_cells
from widemargin.cells.device_cells import fit_cells_there
from widemargin.cells.device_decision import values_there
from widemargin.cells.partition import Partition
from widemargin.cells.uncut import exact_is_cheap, work_allowed
from widemargin.device import to_numpy
from widemargin.expansion import Expansion, Fitted
from widemargin.loop import Deadline
from widemargin.problem import Problem, class_scores, winners
from widemargin.span import fit_span, most_vectors

# A cell must hold a small part of the rows to learn from.
_PARTS = 3
# The gap to which the machines of a trial are fitted.
_TRIAL_TOL = 1e-2
# How many times the errors of the span those of cells may be,
_ERRORS = 1.02
# and below which cells, or an exact machine, are clearly better: a span has far fewer vectors.
_CLEARLY = 0.95
# Between the two, cells are taken if twice the rows leave them no more than this many of their
# errors: they will gain from all rows what a span will not.
_GAINING = 0.95
# The part of the errors that larger cells leave where still larger ones are better.
_MUCH = 0.85
# The power of the rows with which the vectors of a span grow, where a sample stands for all rows.
_VECTORS_POWER = 0.75
# The accuracy that a larger size must gain over a smaller one.
_SIZE_GAIN = 0.005
# Part of the time, where it is limited, for the choice.
_TIME_TO_CHOOSE = 0.25


@dataclass(frozen=True)
class TrialSizes:
    """Sizes of a trial, and those that it chooses from.

    Attributes
    ----------
    least_rows : int
        Distinct rows from which it is asked whether cells are better than a span.
    learn : int
        Rows to learn from, at the most.
    learn_share : float
        The same as a share of all, where cells are compared with a span.
    judge : int
        Rows to judge by.
    vectors : int
        Vectors of the span that cells are compared with.
    cell : int
        Rows of these cells.
    cells : tuple of int
        Sizes of cells to choose from.
    exact_learn : int
        Rows to learn from, at the most, where the exact machine is compared with a span.
    exact_share : float
        The same as a share of all.
    """

    least_rows: int = 12_000
    learn: int = 8000
    learn_share: float = 0.25
    judge: int = 16_000
    vectors: int = 500
    cell: int = 150
    cells: tuple[int, ...] = (300, 1000, 3000)
    exact_learn: int = 2000
    exact_share: float = 0.25


@dataclass(frozen=True, kw_only=True)
class ChoiceOptions(CellOptions):
    """What the engine is chosen for.

    Attributes
    ----------
    engine : {"auto", "exact", "span", "cells"}
        What the user wants.
    size_given : bool
        Whether `cells` are the user's own, or their size is to be chosen.
    cuttable : bool
        Whether cells may be chosen at all: there are rows, and nothing is said of vectors.
    in_a_span : bool
        Whether the user has said which vectors: then there is no exact machine.
    blend : float
        How far from an edge two cells are averaged.
    in_span : Problem or None
        The problems of a span, where they are others than those of the exact machine and of cells.
    n_rows : int or None
        Rows that those of the problem are the first of; None where they are all.
    trial : TrialSizes
        Sizes of trials.
    """

    engine: str = "auto"
    size_given: bool = False
    cuttable: bool = True
    in_a_span: bool = False
    blend: float = 0.2
    in_span: Problem | None = None
    n_rows: int | None = None
    trial: TrialSizes = field(default_factory=TrialSizes)


@dataclass(frozen=True)
class Decision:
    """What was chosen.

    Attributes
    ----------
    engine : {"exact", "span", "cells"}
        The engine.
    size : int
        Rows of a cell.
    reason : str
        The accuracies that decided.
    work : float
        Multiplications that the exact machine may take: where it turns out that it would take
        more, `of_many_vectors` decides.
    """

    engine: str
    size: int
    reason: str = ""
    work: float = math.inf


def choose_engine(problem: Problem, options: ChoiceOptions) -> Decision:
    """Return the engine for a problem, and the size of its cells."""
    engine, size = options.engine, options.trial.cells[0]
    if engine == "auto":
        in_span = None if options.in_span is None else options.in_span.n_problems
        sizes = options.exact_sizes
        span = Decision("span", size)
        if options.in_a_span:
            return span
        there = problem.rows.device is not None
        if there and not exact_fits_there(problem, options.memory):
            return cells_or_span(problem, _in_time(options)) if options.cuttable else span
        if _one_of_many(problem, options):
            work = work_allowed(problem, sizes, in_span)
            if there:
                # There a machine does not end by itself where it takes too long.
                return of_many_vectors(problem, options, work)
            return Decision("exact", size, work=work)
        if exact_is_cheap(problem, options, n_in_span=in_span):
            return Decision("exact", size)
        return by_trial(problem, options)
    if engine == "cells" and not options.size_given:
        return size_of_cells(problem, _in_time(options))
    return Decision(engine, size)


def choose_on_sample(problem: Problem, options: ChoiceOptions) -> Decision:
    """Return the engine for rows that are too many to be here: a span or cells.

    Parameters
    ----------
    problem : Problem
        The problems on the first `sample_rows(options.trial)` of the rows.
    options : ChoiceOptions
        What the engine is chosen for; `n_rows` are all rows.
    """
    if options.engine == "cells" or (options.loss == "hinge" and options.cuttable):
        return size_of_cells(problem, _in_time(options))
    if options.in_a_span or not options.cuttable:
        return Decision("span", options.trial.cells[0])
    return cells_or_span(problem, _in_time(options))


def sample_rows(sizes: TrialSizes) -> int:
    """Return how many rows a trial looks at, at the most."""
    return sizes.learn + sizes.judge


def _one_of_many(problem: Problem, options: ChoiceOptions) -> bool:
    """Return whether the exact machine is tried, and tells itself if it takes too long."""
    limit, sizes = options.max_vectors, options.exact_sizes
    limited = limit is not None and limit < problem.n
    labelled = problem.regression is None and options.loss == "squared_hinge"
    one = problem.n_problems == 1 and labelled and not limited
    return one and sizes.always < problem.n <= sizes.most


def of_many_vectors(problem: Problem, options: ChoiceOptions, work: float) -> Decision:
    """Return the engine for a problem whose exact machine has many support vectors.

    Parameters
    ----------
    problem : Problem
        One problem.
    options : ChoiceOptions
        What the engine is chosen for.
    work : float
        Multiplications that the exact machine may take without being compared.
    """
    if cost_of_exact(problem, options.exact_sizes.probe) <= work:
        return Decision("exact", options.trial.cells[0])
    return by_trial(problem, options)


def by_trial(problem: Problem, options: ChoiceOptions) -> Decision:
    """Return the engine for a problem whose exact machine is not cheap."""
    size = options.trial.cells[0]
    if options.loss == "hinge":
        # A span knows the squared hinge only.
        timed = _in_time(options)
        return size_of_cells(problem, timed) if options.cuttable else Decision("exact", size)
    if not options.cuttable:
        return Decision("span", size)
    options = _in_time(options)
    decision = cells_or_span(problem, options)
    if options.deadline.passed:
        return decision
    if decision.engine == "span":
        return exact_or_span(problem, options, decision)
    largest = decision.size > size and decision.size == options.trial.cells[-1]
    if largest and not options.size_given and _affordable_if_better(problem, options):
        # What larger cells gain, all rows together gain more.
        return replace(decision, engine="exact")
    return decision


def _in_time(options: ChoiceOptions) -> ChoiceOptions:
    """Return options whose deadline is when it must have been decided."""
    return replace(options, deadline=options.deadline.part(_TIME_TO_CHOOSE))


@dataclass(frozen=True)
class Trial:
    """Rows to learn from, and rows to judge by.

    Attributes
    ----------
    learn, judge : Problem
        The two parts of a sample.
    in_span : Problem
        The first of them, as a span is to solve it.
    options : ChoiceOptions
        How machines are fitted; their deadline is when it must have been decided.
    """

    learn: Problem
    judge: Problem
    in_span: Problem
    options: ChoiceOptions

    @classmethod
    def of(
        cls,
        problem: Problem,
        options: ChoiceOptions,
        share: float = 1.0,
        learn: int | None = None,
    ) -> Trial | None:
        """Return a sample of the rows, or None where they are too few to be told apart.

        Parameters
        ----------
        problem : Problem
            All rows.
        options : ChoiceOptions
            How machines are to be fitted; their deadline is when it must have been decided.
        share : float, default=1.0
            The part of the rows that may be learnt from,
        learn : int, default=None
            and their number; None for that of `options`.
        """
        most, n = options.trial.learn if learn is None else learn, rows_of(problem, options)
        learn = min(most, int(share * n), n // 2)
        size = min(learn + options.trial.judge, problem.n)
        # Rows come in the order of a hash: the first ones are a sample.
        trial = cls(
            problem.subset(np.arange(learn)),
            problem.subset(np.arange(learn, size)),
            (options.in_span or problem).subset(np.arange(learn)),
            replace(
                options,
                tol=_TRIAL_TOL,
                max_vectors=None,
                earlier=None,
                report=None,
            ),
        )
        told_apart = problem.regression is not None or len(np.unique(trial.learn.code)) > 1
        return trial if told_apart and learn and size > learn else None

    def halved(self) -> Trial:
        """Return the trial with half of the rows to learn from."""
        index = np.arange(self.learn.n // 2)
        return replace(self, learn=self.learn.subset(index), in_span=self.in_span.subset(index))

    @property
    def deadline(self) -> Deadline:
        """When it must have been decided."""
        return self.options.deadline

    def accuracy(self, scores: Matrix, stated: Problem) -> float:
        """Return the share of the weight of the rows that are answered right; R² of targets.

        `stated` has the problems that the scores are values of.
        """
        if self.judge.regression is not None:
            return self.judge.regression.explained(scores, self.judge.weight)
        n_classes = len(self.judge.table)
        if stated.partial:
            scores = class_scores(scores, n_classes)
        answer = winners(np.arange(n_classes), scores[:, 0] if scores.shape[1] == 1 else scores)
        weight = self.judge.weight
        return float(weight[answer == self.judge.code].sum() / weight.sum())

    def of_span(self, n_vectors: int) -> float | None:
        """Return the accuracy of a span; None if there was too little time."""
        fitted = fit_span(self.in_span, replace(self.options, max_vectors=n_vectors))
        return self._of_expansion(fitted, self.in_span)

    def of_exact(self) -> float | None:
        """Return the accuracy of the exact machine; None if there was too little time."""
        fit = fit_exact if self.learn.rows.device is None else fit_exact_there
        return self._of_expansion(fit(self.learn, self.options), self.learn)

    def _of_expansion(self, fitted: Fitted, stated: Problem) -> float | None:
        if self._cut_short():
            return None
        kernel = self.judge.kernel
        machine = Expansion(kernel, fitted.vectors, fitted.coef, fitted.intercept)
        rows = self.judge.rows
        there = rows.device is not None
        return self.accuracy(
            to_numpy(machine.values_there(rows)) if there else machine.values(rows), stated
        )

    def of_cells(self, size: int) -> float | None:
        """Return the accuracy of cells of a size; None if there was too little time."""
        there = self.learn.rows.device is not None
        fit = fit_cells_there if there else fit_cells
        fitted = fit(self.learn, replace(self.options, cells=size))
        if self._cut_short():
            return None
        machine = CellMachines(
            Partition(fitted.centers, fitted.groups),
            self.learn.kernel,
            fitted.vectors,
            fitted.coef,
            fitted.offsets,
            fitted.intercept,
            self.options.blend,
        )
        rows = self.judge.rows
        return self.accuracy(
            to_numpy(values_there(machine, rows)) if there else machine.values(rows), self.learn
        )

    def _cut_short(self) -> bool:
        """Return whether time was too short for a machine that could be judged."""
        if self.deadline.interrupted:
            # Half a machine proves nothing, and there is no model yet.
            raise KeyboardInterrupt
        return self.deadline.passed


def rows_of(problem: Problem, options: ChoiceOptions) -> int:
    """Return how many rows there are."""
    return problem.n if options.n_rows is None else options.n_rows


def cells_or_span(problem: Problem, options: ChoiceOptions) -> Decision:
    """Choose between the span and cells on held-out rows."""
    sizes = options.trial
    many = rows_of(problem, options) >= sizes.least_rows
    trial = Trial.of(problem, options, sizes.learn_share) if many else None
    if trial is None:
        return Decision("span", sizes.cells[0])
    # Cells first: they are faster.
    cells = trial.of_cells(sizes.cell)
    span = None if cells is None else trial.of_span(sizes.vectors)
    if cells is None or span is None:
        return Decision("span", sizes.cells[0], "no time to compare it with cells")
    decision = decided(span, cells, lambda: trial.halved().of_cells(sizes.cell), sizes)
    return larger_cells(trial, decision, cells if decision.engine == "cells" else span)


def larger_cells(trial: Trial, decision: Decision, accuracy: float) -> Decision:
    """Return the decision, or larger cells if those are clearly better.

    Where rows have little noise, each of them is worth more the more others there are beside it,
    and no span is large enough for what they tell.

    Parameters
    ----------
    trial : Trial
        A sample.
    decision : Decision
        The decision so far, for a span or for the smallest cells,
    accuracy : float
        and what that has reached.
    """
    sizes = trial.options.trial.cells
    size = sizes[min(1, len(sizes) - 1)]
    if trial.options.size_given or _PARTS * size > trial.learn.n or accuracy >= 1.0:
        return decision
    found = trial.of_cells(size)
    if found is None or 1.0 - found > _CLEARLY * (1.0 - accuracy):
        return decision
    said = f"{decision.reason}, {100 * found:.1f} % in cells of {size}"
    if decision.engine == "span" or 1.0 - found <= _MUCH * (1.0 - accuracy):
        # All rows are some times as many as those of the sample, and so are those of a cell.
        size = sizes[-1]
    return Decision("cells", size, said)


def decided(
    span: float, cells: float, half: Callable[[], float | None], sizes: TrialSizes
) -> Decision:
    """Return what two accuracies on held-out rows speak for.

    Parameters
    ----------
    span, cells : float
        Of a span and of cells.
    half : callable
        Gives that of cells which have learnt from half of the rows; None if there was no time.
    sizes : TrialSizes
        Sizes of the trial.
    """
    reason = (
        f"on held-out rows of a sample {100 * span:.1f} % in a span, {100 * cells:.1f} % in cells"
    )
    better = 1.0 - cells <= _ERRORS * (1.0 - span)
    if better and 1.0 - cells > _CLEARLY * (1.0 - span):
        of_half = half()
        if of_half is None:
            return Decision("span", sizes.cells[0], reason)
        better = 1.0 - cells <= _GAINING * (1.0 - of_half)
        reason += f" ({100 * of_half:.1f} % with half of the rows)"
    return Decision("cells" if better else "span", sizes.cells[0], reason)


def exact_or_span(problem: Problem, options: ChoiceOptions, span: Decision) -> Decision:
    """Choose between the exact machine and a span, which is the decision so far."""
    trial = options.trial
    if not _affordable_if_better(problem, options):
        return span
    sample = Trial.of(problem, options, trial.exact_share, trial.exact_learn)
    if sample is None:
        return span
    by_span = sample.of_span(_vectors_for(sample.learn.n, problem.n))
    by_exact = None if by_span is None else sample.of_exact()
    if by_span is None or by_exact is None or 1.0 - by_exact > _CLEARLY * (1.0 - by_span):
        return span
    reason = (
        f"on held-out rows of a sample {100 * by_span:.1f} % in a span, "
        f"{100 * by_exact:.1f} % by the exact machine"
    )
    return Decision("exact", span.size, reason)


def _affordable_if_better(problem: Problem, options: ChoiceOptions) -> bool:
    """Return whether the exact machine is one to take where it does clearly better."""
    sizes = options.exact_sizes
    if problem.regression is not None:
        return problem.n <= sizes.targets_if_better and targets_fit(problem.n, options.memory)
    if problem.n > sizes.most_if_better:
        return False
    return cost_of_exact(problem, sizes.probe) <= sizes.work_if_better


def _vectors_for(n_sample: int, n: int) -> int:
    """Return how many vectors a span of a sample has that stands for one of all rows.

    Where rows have nothing to do with each other, as large a share of the rows; where a kernel is
    smooth, more, for the vectors that it needs grow more slowly than the rows.
    """
    return max(1, int(most_vectors(n) * (n_sample / n) ** _VECTORS_POWER))


def size_of_cells(problem: Problem, options: ChoiceOptions) -> Decision:
    """Choose the size of cells: the smallest that a larger one does not beat clearly."""
    sizes = options.trial.cells
    trial = Trial.of(problem, options)
    if trial is None:
        return Decision("cells", sizes[0])
    tried: list[tuple[int, float]] = []
    for size in sizes:
        if tried and size * _PARTS > trial.learn.n:
            break
        accuracy = trial.of_cells(size)
        if accuracy is None:
            break
        tried.append((size, accuracy))
        if len(tried) > 1 and tried[-1][1] < tried[-2][1] + _SIZE_GAIN:
            break
    if not tried:
        return Decision("cells", sizes[0], "no time to try sizes of cells")
    size, best = tried[0]
    for other, accuracy in tried[1:]:
        if accuracy >= best + _SIZE_GAIN:
            size, best = other, accuracy
    said = ", ".join(f"{100 * accuracy:.1f} % in cells of {rows}" for rows, accuracy in tried)
    return Decision("cells", size, f"on held-out rows of a sample {said}")
