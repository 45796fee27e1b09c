"""Shards of a span fit on the workers of a Dask cluster.

A shard that is told something becomes another one: each state of it, with its last answer, is the
result of a task, which depends on the state before, the first one on the partitions of the
collection. When a worker dies,
Dask makes the states that were lost again from what it still has, task by task with the same
arguments, and so with the same answer. Nothing is changed in place (`Shard.fork`); what states have
in common, rows and kernel values, they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any
from uuid import uuid4

from widemargin.loop import PlaceLost
from widemargin.places.loading import shard_of
from widemargin.span.shard import Shard
from widemargin.span.shards import arguments_of
from widemargin.threads import single_threaded_blas

# Questions that leave a shard as it is, its kernel values included.
_READING = frozenset(
    (
        "along",
        "below",
        "candidates",
        "complete",
        "decisions",
        "inside",
        "near",
        "outcome",
        "right",
        "rounding",
        "rows_kept",
    )
)
# Seconds without a scheduler after which it is given up, without a worker, and between two looks.
_PATIENCE = 10.0
_IDLE = 30.0
_LOOK = 0.5

Command = tuple[str, list[Any]]
State = tuple[Shard, Any]
"""A shard, and what it answered to what was asked last."""


def named(what: str) -> str:
    """Return the key of a task, which Dask's dashboard shows by its first words."""
    return f"widemargin-{what}-{uuid4().hex}"


@contextmanager
def arguments_are_large() -> Iterator[None]:
    """Let Dask take arguments of any size.

    They must lie with the scheduler, not on a worker, to be there when that has died.
    """
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield


def first_state(rows: Any, plan: Any, function: Callable[..., Shard] = shard_of) -> State:
    """Return the shard that a function makes of some rows, which was asked nothing yet."""
    return function(rows, plan), None


def changed(state: State, commands: Sequence[Command]) -> State:
    """Return the next state of a shard, and what it answers to the last command."""
    after, answer = state[0].fork(), None
    with single_threaded_blas():
        for what, arguments in commands:
            answer = getattr(after, what)(*arguments)
    return after, answer


def answer_of(state: State) -> tuple[Any, int]:
    """Return the answer of a task, and how many kernel values were computed so far."""
    shard, answer = state
    return answer, shard.values.n_kernel


def asked(state: State, what: str, arguments: Sequence[Any]) -> tuple[Any, int]:
    """Return what a shard answers, which stays as it is."""
    shard = state[0]
    with single_threaded_blas():
        return getattr(shard, what)(*arguments), shard.values.n_kernel


def size_of(state: State) -> int:
    """Return how many rows a shard has."""
    return state[0].n


class OnWorkers:
    """The place of shards that live on workers.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    states : sequence of futures
        The first state of each shard.
    """

    def __init__(self, client: Any, states: Sequence[Any]) -> None:
        self.client = client
        self.states = list(states)
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        self._n_kernel = [0] * len(self.states)
        found = self._gathered(self._mapped("size", size_of, self.states))
        self.sizes = tuple(found)

    @property
    def n_kernel(self) -> int:
        """Kernel values that were computed, as far as they were told of."""
        return sum(self._n_kernel)

    def tell(self, what: str, *arguments: Any) -> None:
        """Let every shard do something before the next question."""
        self._told.append((what, arguments))

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what the shards answer, in their order."""
        with loss_is_told():
            return self._asked(what, *arguments)

    def _asked(self, what: str, *arguments: Any) -> list[Any]:
        commands = list(self._told)
        reading = what in _READING
        if not reading:
            commands.append((what, arguments))
        states = self.states
        every = range(len(states))
        if commands:
            told = [self._of(commands, k) for k in every]
            states = self._mapped(commands[-1][0], changed, states, told)
        if reading:
            given = [arguments_of(arguments, k) for k in every]
            answers = self._mapped(what, asked, states, [what for _ in every], given)
        else:
            answers = self._mapped("answer", answer_of, states)
        found = self._gathered(answers)
        # Only now: until all have answered, the states before are the last that are known.
        self.states, self._told = states, []
        self._n_kernel = [count for _, count in found]
        return [answer for answer, _ in found]

    def _of(self, commands: Sequence[tuple[str, tuple[Any, ...]]], k: int) -> list[Command]:
        return [(what, arguments_of(arguments, k)) for what, arguments in commands]

    def _mapped(self, name: str, function: Any, *arguments: Sequence[Any]) -> list[Any]:
        """Let a function be called for every shard, by one message for all of them."""
        keys = [named(name) for _ in self.states]
        with arguments_are_large():
            return list(self.client.map(function, *arguments, key=keys, pure=False))

    def _gathered(self, futures: Sequence[Any]) -> list[Any]:
        return results_of(self.client, futures)


def results_of(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Return the results of tasks, or raise if there is no cluster any more."""
    from distributed import wait

    patience = Patience(client)
    while True:
        try:
            wait(futures, timeout=_LOOK)
            return list(client.gather(futures))
        except TimeoutError:
            patience.look()


class Patience:
    """How long one waits for a cluster that seems to be lost.

    It is lost if its scheduler does not answer, or if nobody works on anything: Dask forgets tasks
    that were to be done by certain workers, and may be done by others, if all workers die at once.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._gone: float | None = None
        self._idle: float | None = None

    def look(self) -> None:
        """Raise if it has been lost for too long."""
        now = monotonic()
        if self.client.status != "running":
            self._gone = now if self._gone is None else self._gone
            if now - self._gone > _PATIENCE or self.client.status == "closed":
                raise PlaceLost("the scheduler of the cluster does not answer any more")
            return
        self._gone = None
        if any(self.client.processing().values()):
            self._idle = None
            return
        self._idle = now if self._idle is None else self._idle
        if now - self._idle > _IDLE:
            raise PlaceLost("no worker of the cluster works on the fit any more")


@contextmanager
def loss_is_told() -> Iterator[None]:
    """Let errors of a cluster that is not there any more be one of ours."""
    from distributed.client import (
        ClosedClientError,
        FutureCancelledError,
        FuturesCancelledError,
    )
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except PlaceLost:
        raise
    except (
        ClosedClientError,
        CommClosedError,
        FutureCancelledError,
        FuturesCancelledError,
        OSError,
    ) as error:
        raise PlaceLost(f"the cluster was lost: {_first_line(error)}") from error
    except KilledWorker as error:
        raise PlaceLost(
            f"workers of the cluster died again and again: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    """Return what an error says, without the list of tasks that Dask puts below it."""
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(":")
