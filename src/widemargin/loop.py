"""The only loop a user can wait on, and the clock that it looks at.

A solver is ``start``, ``step``, ``certificate``, ``stopped`` and ``finish``; everything users ask
of an iteration (progress, limits on steps and time, stall detection, an interrupt that leaves a
valid model, a reason for stopping) is here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from math import isfinite
from time import perf_counter
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from widemargin.certificate import Certificate

State = TypeVar("State")
Report = Callable[[Certificate], bool | None]


class Ended(Enum):
    """Why a loop ended."""

    SOLVED = "the solver's own rule was met"
    PRECISION = "nothing is left to gain at this precision"
    CAPACITY = "a budget of vectors or memory is used up"
    MAX_ITER = "the limit on steps"
    MAX_TIME = "the limit on time"
    STALLED = "no progress"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted"
    LOST = "the place where the rows are was lost"

    @property
    def by_user(self) -> bool:
        """Whether somebody asked to end now: whatever would come next must not begin."""
        return self in (Ended.CALLBACK, Ended.INTERRUPTED)


@dataclass(frozen=True)
class Stop:
    """How a loop ended, with a sentence for the user."""

    kind: Ended
    reason: str

    @property
    def converged(self) -> bool:
        """Whether the solver's own rule was met."""
        return self.kind is Ended.SOLVED


class PlaceLost(ConnectionError):
    """Rows that a solver works on cannot be reached any more."""


@dataclass
class _Interrupt:
    """Whether the user has interrupted; shared by a deadline and its parts."""

    came: bool = False


@dataclass(frozen=True)
class Deadline:
    """The end of the time that a user allows, which an interrupt brings about at once.

    Attributes
    ----------
    max_time : float or None
        Seconds that were allowed at the beginning; None for no limit.
    at : float
        When they are over, on the clock of `time.perf_counter`.

    Examples
    --------
    >>> deadline = Deadline.after(60.0)
    >>> deadline.passed, deadline.left() <= 60.0, deadline.part(0.5).left() <= 30.0
    (False, True, True)
    >>> Deadline().passed, Deadline().left()
    (False, None)
    """

    max_time: float | None = None
    at: float = float("inf")
    _interrupt: _Interrupt = field(default_factory=_Interrupt, compare=False, repr=False)

    @classmethod
    def after(cls, max_time: float | None) -> Deadline:
        """Return the deadline so many seconds from now."""
        return cls() if max_time is None else cls(max_time, perf_counter() + max_time)

    def left(self) -> float | None:
        """Return the seconds that are left, if time is limited."""
        return None if self.max_time is None else max(0.0, self.at - perf_counter())

    @property
    def passed(self) -> bool:
        """Whether the time is over, or the user has interrupted."""
        return self._interrupt.came or perf_counter() >= self.at

    @property
    def interrupted(self) -> bool:
        """Whether the user has interrupted."""
        return self._interrupt.came

    def interrupt(self) -> None:
        """Let the time be over now, for all who look at this deadline or a part of it."""
        self._interrupt.came = True

    @contextmanager
    def ends_on_interrupt(self) -> Iterator[None]:
        """Let an interrupt inside the block end the time, and nothing else."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupt()

    def part(self, share: float) -> Deadline:
        """Return the end of the first part of what is left."""
        left = self.left()
        return self if left is None else replace(self, at=perf_counter() + share * left)

    @property
    def stop(self) -> Stop:
        """How a loop ends at this deadline."""
        if self._interrupt.came:
            return Stop(Ended.INTERRUPTED, "interrupted")
        return Stop(Ended.MAX_TIME, f"max_time={self.max_time:g} reached")


def bounds(primal: float, dual: float, **known: Any) -> Certificate:
    """Return the certificate of two bounds on an optimum; the loop fills in steps and seconds.

    Rounding may put the lower bound above the upper one, which is a lower bound then as well.
    """
    dual = min(dual, primal)
    return Certificate(primal, dual, **({"gap": relative_gap(primal, dual)} | known))


def relative_gap(primal: float, dual: float) -> float:
    """Return (primal − dual) / primal, from 0 to 1; 0 when both vanish, 1 when not finite."""
    if not isfinite(primal - dual):
        return 1.0
    if primal <= 0.0:
        return 0.0
    return min(1.0, max(0.0, (primal - dual) / primal))


def signed_gap(primal: float, dual: float) -> float:
    """Return primal − dual relative to the larger modulus, from 0 to 1: optima may be negative."""
    if not isfinite(primal - dual):
        return 1.0
    size = max(abs(primal), abs(dual))
    return min(1.0, max(0.0, (primal - dual) / size)) if size > 0.0 else 0.0


class Solver(Protocol[State]):
    """What the loop needs of an algorithm.

    ``step`` returns a new state and leaves the old one valid, so that an interrupt in the middle
    of a step costs only that step.
    """

    def start(self) -> State:
        """Return the first state."""

    def step(self, state: State) -> State:
        """Return the next state."""

    def certificate(self, state: State) -> Certificate:
        """Return what is known of `state`; the loop fills in steps, seconds and reason."""

    def stopped(self, state: State) -> Stop | None:
        """Return why the solver is done with `state`, or None."""

    def finish(self, state: State) -> State:
        """Return `state` ready to be handed out, its certificate made good over all rows."""
        return state


@dataclass(frozen=True)
class Limits:
    """When to stop a solver that has not stopped by itself.

    Attributes
    ----------
    max_iter : int or None
        Steps at the most.
    deadline : Deadline
        The end of the time, looked at between steps.
    patience : int
        Steps without progress (in the gap or in the dual) that count as a stall.
    """

    max_iter: int | None = None
    deadline: Deadline = field(default_factory=Deadline)
    patience: int = 50


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a fit may use, from its first line to its last; engines add options of their own.

    Attributes
    ----------
    deadline : Deadline
        The end of `max_time`.
    threads : int
        Threads; the answer does not depend on them.
    memory : int
        Budget in bytes.
    seed : int
        Decided by `random_state`; every part of a fit begins with it.
    report : callable or None
        Told of each step.
    """

    deadline: Deadline = field(default_factory=Deadline)
    threads: int = 1
    memory: int = 10**9
    seed: int = 0
    report: Report | None = None

    @property
    def rng(self) -> np.random.Generator:
        """A generator at its beginning."""
        return np.random.default_rng(self.seed)

    @classmethod
    def with_parameters(
        cls, resources: Resources, parameters: Mapping[str, Any], **others: Any
    ) -> Self:
        """Return options: resources, parameters of an estimator with their names, and others."""
        wanted = {each.name for each in fields(cls)} - {each.name for each in fields(Resources)}
        given = {name: value for name, value in parameters.items() if name in wanted}
        return cls(**vars(resources) | given | others)


@dataclass(frozen=True)
class Result(Generic[State]):
    """The last state, its certificate, and how the loop ended."""

    state: State
    certificate: Certificate
    stop: Stop

    @property
    def converged(self) -> bool:
        """Whether the solver's own rule was met."""
        return self.stop.converged


def run(solver: Solver[State], limits: Limits, report: Report | None = None) -> Result[State]:
    """Step `solver` until it is done or a limit is reached.

    Parameters
    ----------
    solver : Solver
        The algorithm.
    limits : Limits
        When to stop it all the same.
    report : callable, default=None
        Called with the certificate after every step; a true answer stops the loop.

    Returns
    -------
    Result
        With ``certificate.stopped`` set to a sentence.
    """
    begun, deadline = perf_counter(), limits.deadline
    state = solver.start()
    stall = _Stall(limits.patience)
    n_iter = 1

    def known() -> Certificate:
        seconds = perf_counter() - begun
        return replace(solver.certificate(state), n_iter=n_iter, seconds=seconds)

    while True:
        certificate = known()
        asked = bool(report(certificate)) if report is not None else False
        stop = solver.stopped(state) or _limit_reached(limits, certificate, asked, stall)
        try:
            if stop is None:
                with deadline.ends_on_interrupt():
                    state = solver.step(state)
                    n_iter += 1
                    continue
                stop = deadline.stop
            with deadline.ends_on_interrupt():
                state = solver.finish(state)
        except PlaceLost as lost:
            # What the last step has found is all that there will be.
            stop = Stop(Ended.LOST, str(lost))
        if deadline.interrupted:
            stop = deadline.stop
        return Result(state, replace(known(), stopped=stop.reason), stop)


def _limit_reached(
    limits: Limits, certificate: Certificate, asked: bool, stall: _Stall
) -> Stop | None:
    if asked:
        return Stop(Ended.CALLBACK, "a callback asked to stop")
    if limits.max_iter is not None and certificate.n_iter >= limits.max_iter:
        return Stop(Ended.MAX_ITER, f"max_iter={limits.max_iter} reached")
    if limits.deadline.passed:
        return limits.deadline.stop
    if stall.seen(certificate):
        return Stop(Ended.STALLED, f"no progress in {limits.patience} steps")
    return None


class _Stall:
    """Notice when neither the gap nor an objective has moved for some steps.

    More vectors lower the primal, and enlarge the gap at first. Sums over a sample of the rows say
    nothing of those over all rows.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.waited = 0
        self.best: Certificate | None = None

    def seen(self, certificate: Certificate) -> bool:
        best = self.best
        if best is None or best.scope != certificate.scope:
            self.best, self.waited = certificate, 0
            return self.patience <= 0
        better_gap = certificate.gap < best.gap * (1 - 1e-4)
        better_dual = certificate.dual > best.dual + 1e-10 * abs(certificate.dual)
        better_primal = certificate.primal < best.primal - 1e-4 * abs(best.primal)
        self.best = replace(
            best,
            gap=min(best.gap, certificate.gap),
            dual=max(best.dual, certificate.dual),
            primal=min(best.primal, certificate.primal),
        )
        self.waited = 0 if better_gap or better_dual or better_primal else self.waited + 1
        return self.waited >= self.patience
