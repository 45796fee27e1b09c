"""A metric in rounds: fit a machine, map the rows by the root of its gradient products, fit again.

Recursive Feature Machines of A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin (arXiv
2212.13881), Algorithm 1, with a margin machine for their least squares. With u = Ax, A = M^½, the
gradients in x are Aᵀ∇_u f, so that each round has

    M ← (Aᵀ (Σ ∇_u f ∇_u fᵀ) A)^power,     A ← M^½ √(tr Σ_x / tr(A Σ_x Aᵀ)),

Σ_x the covariance of the rows. The factor keeps the total variance of the mapped rows, and so the
mean squared distance between them: a kernel width means the same in every round.

How many rounds are good, and whether any is, a part of the rows says that is held out. The rounds
are then made again with all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.certificate import Certificate
from widemargin.loop import Ended, Limits, Stop, run
from widemargin.metric.gradient_products import gradient_products
from widemargin.metric.metric_machine import accuracy, fit_machine
from widemargin.metric.metric_root import metric_root
from widemargin.problem import Problem
from widemargin.rows import RowMap, mapped_rows, weighted_moments

# Variances below this share of the largest are nothing but rounding.
_ROUNDING = 1e-12
# Rows that are held out, at the least, for their accuracy to say anything.
_LEAST_HELD = 10


@dataclass(frozen=True, kw_only=True)
class MetricOptions(ChoiceOptions):
    """How a metric is learned, and the machines that it is learned from.

    Attributes
    ----------
    kind : {"full", "diagonal"}
        Whether M is a matrix or has a diagonal only.
    n_rounds : int
        Rounds at the most.
    least_rounds : int
        Rounds at the least, whatever held-out rows say.
    power : float
        The power of the gradient products that M is.
    held_out : float
        Share of the rows that decides how many rounds there are; 0 for all of them.
    exact_rows : int
        Rows up to which the machine is exact, where the engine is left to us.
    gradient_rows : int
        Rows whose gradients are summed, at the most.
    """

    kind: str = "full"
    n_rounds: int = 3
    least_rounds: int = 0
    power: float = 1.0
    held_out: float = 0.2
    exact_rows: int = 5000
    gradient_rows: int = 5000


@dataclass(frozen=True, eq=False)
class LearnedMetric:
    """A metric.

    Attributes
    ----------
    root : ndarray of shape (n_features, n_features) or (n_features,)
        A = M^½, symmetric, or its diagonal.
    n_rounds : int
        Rounds that it took; 0 is no metric, the identity.
    scores : tuple of float
        Accuracy of the held-out rows after 0, 1, 2, ... rounds.
    certificate : Certificate
        What it cost.
    stop : Stop
        How it ended.
    """

    root: NDArray[np.float64]
    n_rounds: int
    scores: tuple[float, ...]
    certificate: Certificate
    stop: Stop

    @property
    def metric(self) -> NDArray[np.float64]:
        """M, or its diagonal."""
        return self.root**2 if self.root.ndim == 1 else self.root @ self.root.T


def learn_metric(problem: Problem, options: MetricOptions) -> LearnedMetric:
    """Return the metric of a problem.

    Parameters
    ----------
    problem : Problem
        Problems of one C on dense rows, whose kernel has the width that machines are to have.
    options : MetricOptions
        How.
    """
    n_rounds = options.n_rounds
    scores: tuple[float, ...] = ()
    held = int(options.held_out * problem.n)
    codes = np.unique(problem.code[held:])
    told_apart = problem.regression is not None or len(codes) == len(problem.table)
    if options.held_out > 0 and held >= _LEAST_HELD and told_apart:
        learn, judge = _parted(problem, held)
        part = replace(options, deadline=options.deadline.part(0.5))
        first = run(MetricRounds(learn, part, judge), _limits(part), options.report)
        scores = first.state.scores
        least = options.least_rounds
        n_rounds = least + int(np.argmax(scores[least:])) if len(scores) > least else 0
        if first.stop.kind.by_user or n_rounds == 0 or not scores:
            root = first.state.roots[n_rounds]
            return LearnedMetric(root, n_rounds, scores, first.certificate, first.stop)
        if first.stop.kind is Ended.MAX_TIME and options.deadline.passed:
            root = first.state.roots[n_rounds]
            return LearnedMetric(root, n_rounds, scores, first.certificate, first.stop)
    solver = MetricRounds(problem, replace(options, n_rounds=n_rounds))
    result = run(solver, _limits(options), options.report)
    roots = result.state.roots
    return LearnedMetric(roots[-1], len(roots) - 1, scores, result.certificate, result.stop)


def next_root(
    problem: Problem, options: MetricOptions, before: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the root after one more round, from that of the rounds before."""
    solver = MetricRounds(problem, replace(options, n_rounds=1), first=before)
    return run(solver, _limits(options)).state.roots[-1]


def _limits(options: MetricOptions) -> Limits:
    return Limits(None, options.deadline, patience=options.n_rounds + 2)


def _parted(problem: Problem, held: int) -> tuple[Problem, Problem]:
    """Return the problem on most rows, and the first ones, which are a sample, to judge by."""
    index = np.arange(problem.n)
    learn, judge = problem.subset(index[held:]), problem.subset(index[:held])
    return learn, judge


@dataclass(frozen=True)
class _Rounds:
    """Roots A of all rounds, the identity first, and the accuracies of those that were judged."""

    roots: tuple[NDArray[np.float64], ...]
    scores: tuple[float, ...] = ()


@dataclass
class MetricRounds:
    """The rounds as a solver; see `loop.run`.

    Attributes
    ----------
    problem : Problem
        What machines learn from.
    options : MetricOptions
        How.
    judge : Problem or None
        Rows that they are judged by after each round.
    first : ndarray of shape (n_features, n_features) or (n_features,), or None
        The root to begin with; None is the identity.
    """

    problem: Problem
    options: MetricOptions
    judge: Problem | None = None
    first: NDArray[np.float64] | None = None
    variance: float = field(init=False)

    def __post_init__(self) -> None:
        moments = weighted_moments(self.problem.rows, self.problem.weight)
        self.variance = float(moments.variance.sum())

    def start(self) -> _Rounds:
        """Return no metric, or the one to begin with."""
        if self.first is not None:
            return _Rounds((self.first,))
        d = self.problem.rows.shape[1]
        return _Rounds((np.ones(d) if self._diagonal else np.eye(d),))

    def step(self, state: _Rounds) -> _Rounds:
        """Return one more round: the machine of the last root is judged, and gives the next."""
        root = state.roots[-1]
        mapped = replace(self.problem, rows=mapped_rows(self.problem.rows, RowMap.linear(root)))
        machine = fit_machine(mapped, self.options, self.options.exact_rows)
        scores = state.scores
        if self.judge is not None:
            rows = mapped_rows(self.judge.rows, RowMap.linear(root))
            scores = (*scores, accuracy(machine.values(rows), self.judge))
            if len(state.roots) > self.options.n_rounds or _falls(scores):
                return _Rounds(state.roots, scores)
        products = gradient_products(
            mapped, machine, diagonal=self._diagonal, most_rows=self.options.gradient_rows
        )
        found = metric_root(products, self.options.power, root)
        return _Rounds((*state.roots, self._normalised(found, root)), scores)

    def _normalised(
        self, root: NDArray[np.float64], before: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return a root with which rows have the variance that they had; `before` if none has."""
        rows = mapped_rows(self.problem.rows, RowMap.linear(root))
        variance = float(weighted_moments(rows, self.problem.weight).variance.sum())
        largest = float((root**2).max(initial=0.0))
        if not np.isfinite(variance) or variance <= _ROUNDING * largest * self.variance:
            return before
        return root * float(np.sqrt(self.variance / variance))

    @property
    def _diagonal(self) -> bool:
        return self.options.kind == "diagonal"

    def certificate(self, state: _Rounds) -> Certificate:
        """Return the errors of held-out rows, where there are any."""
        error = 1.0 - max(state.scores, default=0.0)
        return Certificate(error, 0.0, error, scope="sample")

    def stopped(self, state: _Rounds) -> Stop | None:
        """Return that all rounds are done, or that another would do harm."""
        done = len(state.roots) - 1
        if self.judge is None:
            if done >= self.options.n_rounds:
                return Stop(Ended.SOLVED, f"n_rounds={self.options.n_rounds} rounds")
        elif _falls(state.scores) or len(state.scores) > self.options.n_rounds:
            return Stop(Ended.SOLVED, f"held-out rows, after {len(state.scores) - 1} rounds")
        return None

    def finish(self, state: _Rounds) -> _Rounds:
        """Return the rounds as they are."""
        return state


def _falls(scores: tuple[float, ...]) -> bool:
    """Return whether the last round was worse than the one before."""
    return len(scores) > 1 and scores[-1] < scores[-2]
