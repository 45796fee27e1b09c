"""The only loop a user can wait on.

A solver is ``start``, ``step``, ``certificate`` and ``stopped``; everything users ask of an
iteration (progress, limits on steps and time, stall detection, an interrupt that leaves a valid
model, a reason for stopping) is here, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from widemargin.certificate import Certificate
from widemargin.deadline import NEVER, Deadline

State = TypeVar("State")


@dataclass(frozen=True)
class Stop:
    """Why a solver is done, and whether its own rule was met."""

    reason: str
    converged: bool


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


@dataclass(frozen=True)
class Limits:
    """When to stop a solver that has not stopped by itself.

    Attributes
    ----------
    max_iter : int or None
        Steps at the most.
    max_time : float or None
        Seconds at the most, looked at between steps.
    deadline : Deadline
        The end of a time that began before this loop did.
    patience : int
        Steps without progress (in the gap or in the dual) that count as a stall.
    """

    max_iter: int | None = None
    max_time: float | None = None
    deadline: Deadline = NEVER
    patience: int = 50


@dataclass(frozen=True)
class Result(Generic[State]):
    """The last state, its certificate, and whether the solver's own rule was met."""

    state: State
    certificate: Certificate
    converged: bool


def run(
    solver: Solver[State],
    limits: Limits,
    report: Callable[[Certificate], bool | None] | None = None,
) -> Result[State]:
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
    begun = perf_counter()
    state = solver.start()
    stall = _Stall(limits.patience)
    n_iter = 1

    def known() -> Certificate:
        seconds = perf_counter() - begun
        return replace(solver.certificate(state), n_iter=n_iter, seconds=seconds)

    while True:
        certificate = known()
        asked = bool(report(certificate)) if report is not None else False
        stop = solver.stopped(state)
        if stop is None:
            reason = _limit_reached(limits, certificate)
            if asked:
                reason = "a callback asked to stop"
            elif reason is None and stall.seen(certificate):
                reason = f"no progress in {limits.patience} steps"
            stop = None if reason is None else Stop(reason, converged=False)
        if stop is None:
            try:
                state = solver.step(state)
                n_iter += 1
                continue
            except KeyboardInterrupt:
                stop = Stop("interrupted", converged=False)
        try:
            state = solver.finish(state)
        except KeyboardInterrupt:
            stop = Stop("interrupted", converged=False)
        return Result(state, replace(known(), stopped=stop.reason), stop.converged)


def _limit_reached(limits: Limits, certificate: Certificate) -> str | None:
    if limits.max_iter is not None and certificate.n_iter >= limits.max_iter:
        return f"max_iter={limits.max_iter} reached"
    if limits.max_time is not None and certificate.seconds >= limits.max_time:
        return f"max_time={limits.max_time:g} reached"
    if limits.deadline.passed:
        return limits.deadline.reached
    return None


class _Stall:
    """Notice when neither the gap nor the dual has moved for some steps."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.waited = 0
        self.gap = float("inf")
        self.dual = -float("inf")

    def seen(self, certificate: Certificate) -> bool:
        better_gap = certificate.gap < self.gap * (1 - 1e-4)
        better_dual = certificate.dual > self.dual + 1e-10 * abs(certificate.dual)
        self.gap = min(self.gap, certificate.gap)
        self.dual = max(self.dual, certificate.dual)
        self.waited = 0 if better_gap or better_dual else self.waited + 1
        return self.waited >= self.patience
