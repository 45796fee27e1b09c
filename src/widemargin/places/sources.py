"""Where the partitions of a collection are turned into shards: in this process, or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from widemargin.loop import Resources
from widemargin.places.device_states import device_shard_of
from widemargin.places.loading import (
    Cache,
    Facts,
    Loaded,
    PartitionRows,
    ShardPlan,
    facts_of,
    joined,
    load,
    shard_of,
)
from widemargin.places.on_workers import (
    OnWorkers,
    arguments_are_large,
    first_state,
    loss_is_told,
    named,
    results_of,
)
from widemargin.places.partitions import Partitions
from widemargin.span.shards import Each, Here, Place, arguments_of
from widemargin.span.span_engine import SpanSize

# Shards of this process, about so many: each is loaded as a whole.
_SHARDS = 64
# Bytes of one at the least,
_LEAST_SHARD = 8_000_000
# and at the most, as a share of the memory.
_SHARD_SHARE = 1 / 16
# Share of the memory for partitions that stay once they were loaded.
_CACHE_SHARE = 0.25


class Source(Protocol):
    """Partitions that can become shards.

    Attributes
    ----------
    threads : int
        Threads that work on each shard.
    """

    threads: int

    def facts(self) -> list[Facts]:
        """Return what is to be known of the rows of each shard."""

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function says of the rows of each shard, in their order.

        An argument of the class `Each` is another one for each shard.
        """

    def keep(
        self, name: str, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Each, list[Any]]:
        """Return what a function makes of the rows of each shard, and what it says of them.

        It returns both; the former stay where the shards are.
        """

    def budgets(self) -> list[tuple[int, int]]:
        """Return bytes, and the rows which share them, after `facts`."""

    def rooms(self, size: SpanSize, n_problems: int) -> list[int]:
        """Return the bytes for kernel values of each shard, after `facts`."""

    def place(self, plans: Sequence[ShardPlan], *, last: bool = True) -> Place:
        """Return the shards, where they are; this is the last that is asked if `last`."""

    def made(
        self, name: str, function: Callable[..., Any], plans: Sequence[ShardPlan]
    ) -> list[Any]:
        """Return what a function makes of the rows of each shard and its plan, for `placed`.

        The function takes what was loaded, the plan, and rows that load themselves or None. What
        it makes stays where the rows are.
        """

    def placed(
        self, function: Callable[..., Any], made: Sequence[Any], plans: Sequence[Any]
    ) -> Place:
        """Return the shards that a function makes of such things and other plans."""


def source_of(partitions: Partitions, memory: int | str, resources: Resources) -> Source:
    """Return the source of a collection: the current cluster, or this process if there is none."""
    client = current_client()
    # A mapped file lies where this process is.
    if client is not None and not isinstance(partitions.rows[0], np.ndarray):
        return Cluster(client, partitions, memory)
    return OutOfCore(partitions, resources.memory, resources.threads)


def current_client() -> Any:
    """Return the client of the cluster that is in use, or None."""
    # Who has a client has imported this.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def part_of(pair: Any, k: int) -> Any:
    """Return one of the results of a task."""
    return pair[k]


class OutOfCore:
    """Shards of this process, whose rows are loaded again whenever they are looked at.

    What is kept of each row is its class, weight, number and scores: some 60 bytes, and 8 more for
    each problem.

    Parameters
    ----------
    partitions : Partitions
        The collection.
    memory : int
        Budget in bytes.
    threads : int
        Threads.
    """

    def __init__(self, partitions: Partitions, memory: int, threads: int) -> None:
        self.partitions, self.memory, self.threads = partitions, memory, threads
        self.groups = [range(k, k + 1) for k in range(len(partitions))]
        self._cache = Cache(int(_CACHE_SHARE * memory))
        self._facts: list[Facts] = []

    def facts(self) -> list[Facts]:
        """Return what is to be known of the rows of each shard, after a look at all of them."""
        found = []
        for k in range(len(self.partitions)):
            # A shard works alone: all memory is for it.
            found.append(facts_of(self._load(range(k, k + 1)), self.memory, 1.0))
            self.partitions.forget_pages()
        self.groups = groups_of([each.nbytes for each in found], self.memory)
        self._facts = [joined(found[group.start : group.stop]) for group in self.groups]
        return self._facts

    def budgets(self) -> list[tuple[int, int]]:
        """Return bytes, and the rows which share them: all."""
        return [(self.memory, sum(each.n for each in self._facts))]

    def rooms(self, size: SpanSize, n_problems: int) -> list[int]:
        """Return the bytes for kernel values of each shard, in proportion to their rows."""
        rows = [each.n for each in self._facts]
        room = size.room_of_shards(self.memory, sum(rows), n_problems)
        # Partitions that stay have their part of it.
        room = max(0, room - self._cache.budget)
        return [room * n // max(1, sum(rows)) for n in rows]

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function says of the rows of each shard, in their order."""
        return [
            function(self.loaded(k), *arguments_of(arguments, k)) for k in range(len(self.groups))
        ]

    def keep(
        self, name: str, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Each, list[Any]]:
        """Return what a function makes of the rows of each shard, and what it says of them."""
        pairs = self.ask(name, function, *arguments)
        return Each(made for made, _ in pairs), [said for _, said in pairs]

    def place(self, plans: Sequence[ShardPlan], *, last: bool = True) -> Place:
        """Return the shards, in this process."""
        return Here(self.made("shard", _maker(plans), plans))

    def made(
        self, name: str, function: Callable[..., Any], plans: Sequence[ShardPlan]
    ) -> list[Any]:
        """Return what a function makes of the rows of each shard and its plan."""
        return [self._made(k, function, plan) for k, plan in enumerate(plans)]

    def placed(
        self, function: Callable[..., Any], made: Sequence[Any], plans: Sequence[Any]
    ) -> Place:
        """Return the shards that a function makes of such things and other plans."""
        return Here([function(each, plan) for each, plan in zip(made, plans, strict=True)])

    def loaded(self, k: int) -> Loaded:
        """Return the rows of a shard."""
        # Those of others are not needed in the system's memory any more.
        self.partitions.forget_pages()
        return self._load(self.groups[k])

    def _made(self, k: int, function: Callable[..., Any], plan: ShardPlan) -> Any:
        loaded, facts = self.loaded(k), self._facts[k]
        if facts.sparse:
            return function(loaded, plan, None)
        shape = (facts.n, loaded.X.shape[1])
        dtype = np.dtype(np.float32 if facts.single else np.float64)
        block = partial(self._block, k)
        rows = PartitionRows(k, shape, dtype, block, self._cache, plan.memory, plan.threads)
        return function(loaded, plan, rows)

    def _load(self, group: range) -> Loaded:
        parts = self.partitions
        labels = parts.labels or [None] * len(parts)
        weights = parts.weights or [None] * len(parts)
        wanted = [(parts.rows[i], labels[i], weights[i]) for i in group]
        return load(group[0], parts.n_features, parts.computed(wanted))

    def _block(self, k: int) -> Any:
        parts = self.partitions
        blocks = parts.computed([parts.rows[i] for i in self.groups[k]])
        # A copy, also of one part of a mapped file: its pages need not stay.
        block = np.concatenate([np.asarray(each) for each in blocks])
        parts.forget_pages()
        return block


def _maker(plans: Sequence[ShardPlan]) -> Callable[..., Any]:
    """Return what makes the shards of these plans."""
    return device_shard_of if plans and plans[0].device is not None else shard_of


def groups_of(sizes: Sequence[int], memory: int) -> list[range]:
    """Return neighbouring partitions of so many bytes each as groups that are loaded together."""
    total = sum(sizes)
    most = min(max(total / _SHARDS, _LEAST_SHARD), _SHARD_SHARE * memory)
    groups, first, held = [], 0, 0
    for k, size in enumerate(sizes):
        if k > first and held + size > most:
            groups.append(range(first, k))
            first, held = k, 0
        held += size
    return [*groups, range(first, len(sizes))]


class Cluster:
    """Shards on the workers of a Dask cluster, one for each of their threads.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    partitions : Partitions
        The collection.
    memory : int or str
        Budget of a worker; "auto" is half of what is free on its machine, shared by its workers.
    """

    threads = 1

    def __init__(self, client: Any, partitions: Partitions, memory: int | str) -> None:
        self.client, self.partitions, self.memory = client, partitions, memory
        workers = client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ValueError(
                f"The cluster {client!r} has no workers; start some, or close the client to fit "
                "in this process."
            )
        homes = [address for address, each in workers.items() for _ in range(each["nthreads"])]
        self.groups = partitions.groups(len(homes))
        self.homes = homes[: len(self.groups)]
        # What a worker may take is shared by its shards, and "auto" by all of its machine.
        auto = isinstance(memory, str) and memory == "auto"
        hosts = [workers[home]["host"] if auto else home for home in self.homes]
        self._shares = [1.0 / hosts.count(host) for host in hosts]
        self._loaded: list[Any] = []
        self._facts: list[Facts] = []

    def near(self, home: str) -> dict[str, Any]:
        """Return how Dask is told where a task should be done, if it can be."""
        # With one worker it goes without saying, and Dask would not move it to the one after.
        if len(set(self.homes)) == 1:
            return {}
        return {"workers": [home], "allow_other_workers": True}

    def facts(self) -> list[Facts]:
        """Return what is to be known of the rows of each shard."""
        from dask import delayed

        parts, lazy = self.partitions, delayed(load, pure=False)
        labels = parts.labels or [None] * len(parts)
        weights = parts.weights or [None] * len(parts)
        calls = [
            lazy(
                group[0],
                parts.n_features,
                [(parts.rows[i], labels[i], weights[i]) for i in group],
                dask_key_name=named("load"),
            )
            for group in self.groups
        ]
        self._loaded = [
            self.client.compute(call, **self.near(home))
            for call, home in zip(calls, self.homes, strict=True)
        ]
        self._facts = self._gathered(
            facts_of, [(self.memory, share) for share in self._shares], "facts", gather=True
        )
        return self._facts

    def budgets(self) -> list[tuple[int, int]]:
        """Return bytes, and the rows which share them: those of each shard."""
        return [(each.memory, each.n) for each in self._facts]

    def rooms(self, size: SpanSize, n_problems: int) -> list[int]:
        """Return the bytes for kernel values of each shard; all work at a time."""
        return [size.room_of_shards(each.memory, each.n, n_problems) for each in self._facts]

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function says of the rows of each shard, in their order."""
        given = [arguments_of(arguments, k) for k in range(len(self.groups))]
        return self._gathered(function, given, name, gather=True)

    def keep(
        self, name: str, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Each, list[Any]]:
        """Return what a function makes of the rows of each shard, and what it says of them."""
        given = [arguments_of(arguments, k) for k in range(len(self.groups))]
        pairs = self._gathered(function, given, name, gather=False)
        made, said = (
            [self.client.submit(part_of, pair, k, key=named(name)) for pair in pairs]
            for k in (0, 1)
        )
        return Each(made), results_of(self.client, said)

    def each(self, name: str, function: Callable[..., Any], *arguments: Any) -> Each:
        """Return what a function makes of the rows of each shard, which stays there."""
        given = [arguments_of(arguments, k) for k in range(len(self.groups))]
        return Each(self._gathered(function, given, name, gather=False))

    def forget(self) -> None:
        """Let go of the rows that were loaded."""
        self._loaded = []

    def place(self, plans: Sequence[ShardPlan], *, last: bool = True) -> Place:
        """Return the shards, which stay on their workers."""
        given = [(plan, _maker(plans)) for plan in plans]
        states = self._gathered(first_state, given, "shard", gather=False)
        if last:
            self.forget()
        return OnWorkers(self.client, states)

    def made(
        self, name: str, function: Callable[..., Any], plans: Sequence[ShardPlan]
    ) -> list[Any]:
        """Return what a function makes of the rows of each shard and its plan, on the workers."""
        with loss_is_told():
            found = self._gathered(function, [(plan, None) for plan in plans], name, gather=False)
        self.forget()
        return found

    def placed(
        self, function: Callable[..., Any], made: Sequence[Any], plans: Sequence[Any]
    ) -> Place:
        """Return the shards that a function makes of such things and other plans."""
        with loss_is_told():
            given = [(plan, function) for plan in plans]
            states = self._gathered(first_state, given, "shard", gather=False, of=made)
            return OnWorkers(self.client, states)

    def _gathered(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        name: str,
        *,
        gather: bool,
        of: Sequence[Any] | None = None,
    ) -> list[Any]:
        with arguments_are_large():
            futures = [
                self.client.submit(
                    function,
                    each,
                    *given,
                    key=named(name),
                    **self.near(home),
                )
                for each, given, home in zip(of or self._loaded, arguments, self.homes, strict=True)
            ]
        return results_of(self.client, futures) if gather else futures
