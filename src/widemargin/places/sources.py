"""Where the partitions of a collection are turned into shards: in this process, or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from widemargin.loop import Resources
from widemargin.places.loading import (
    Cache,
    Facts,
    Loaded,
    PartitionRows,
    ShardPlan,
    facts_of,
    load,
    shard_of,
)
from widemargin.places.on_workers import OnWorkers, named
from widemargin.places.partitions import Partitions
from widemargin.span.shards import Here, Place, arguments_of

# Shards of this process at the most: each is loaded as a whole.
_MOST_SHARDS = 64
# Share of the memory for partitions that were loaded lately.
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

        An argument that is an `Each` is another one for each shard.
        """

    def place(self, plans: Sequence[ShardPlan], *, last: bool = True) -> Place:
        """Return the shards, where they are; this is the last that is asked if `last`."""


def source_of(partitions: Partitions, memory: int | str, resources: Resources) -> Source:
    """Return the source of a collection: the current cluster, or this process if there is none."""
    client = current_client()
    if client is not None:
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
        self.groups = partitions.groups(_MOST_SHARDS)
        self._cache = Cache(int(_CACHE_SHARE * memory))
        self._facts: list[Facts] = []

    def facts(self) -> list[Facts]:
        """Return what is to be known of the rows of each shard, after a look at all of them."""
        share = 1.0 / len(self.groups)
        every = range(len(self.groups))
        self._facts = [facts_of(self._loaded(k), self.memory, share) for k in every]
        return self._facts

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function says of the rows of each shard, in their order."""
        every = range(len(self.groups))
        return [function(self._loaded(k), *arguments_of(arguments, k)) for k in every]

    def place(self, plans: Sequence[ShardPlan], *, last: bool = True) -> Place:
        """Return the shards, in this process."""
        return Here([self._shard(k, plan) for k, plan in enumerate(plans)])

    def _shard(self, k: int, plan: ShardPlan) -> Any:
        loaded, facts = self._loaded(k), self._facts[k]
        if facts.sparse:
            return shard_of(loaded, plan)
        shape = (facts.n, loaded.X.shape[1])
        dtype = np.dtype(np.float32 if facts.single else np.float64)
        block = partial(self._block, k)
        rows = PartitionRows(k, shape, dtype, block, self._cache, plan.memory, plan.threads)
        return shard_of(loaded, plan, rows)

    def _loaded(self, k: int) -> Loaded:
        import dask

        group, parts = self.groups[k], self.partitions
        labels = parts.labels or [None] * len(parts)
        weights = parts.weights or [None] * len(parts)
        wanted = [(parts.rows[i], labels[i], weights[i]) for i in group]
        (found,) = dask.compute(wanted, scheduler="threads")
        return load(group[0], parts.n_features, found)

    def _block(self, k: int) -> Any:
        import dask

        group, parts = self.groups[k], self.partitions
        (found,) = dask.compute([parts.rows[i] for i in group], scheduler="threads")
        blocks = [np.asarray(block) for block in found]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


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
            self.client.compute(call, workers=[home], allow_other_workers=True)
            for call, home in zip(calls, self.homes, strict=True)
        ]
        return self._gathered(
            facts_of, [(self.memory, share) for share in self._shares], "facts", gather=True
        )

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function says of the rows of each shard, in their order."""
        of_each = [arguments_of(arguments, k) for k in range(len(self.groups))]
        return self._gathered(function, of_each, name, gather=True)

    def place(self, plans: Sequence[ShardPlan], *, last: bool = True) -> Place:
        """Return the shards, which stay on their workers."""
        states = self._gathered(shard_of, [(plan,) for plan in plans], "shard", gather=False)
        if last:
            self._loaded = []
        return OnWorkers(self.client, states)

    def _gathered(
        self, function: Callable[..., Any], arguments: Sequence[Any], name: str, *, gather: bool
    ) -> list[Any]:
        futures = [
            self.client.submit(
                function,
                loaded,
                *given,
                key=named(name),
                workers=[home],
                allow_other_workers=True,
            )
            for loaded, given, home in zip(self._loaded, arguments, self.homes, strict=True)
        ]
        return list(self.client.gather(futures)) if gather else futures
