"""A cluster of worker processes on this machine, and where the time of its workers goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.places.files import edges_of


@contextmanager
def local_cluster(workers: int, threads: int = 1) -> Iterator[Any]:
    """A client, the current one, of so many worker processes."""
    import dask
    from distributed import Client, LocalCluster

    settings = {
        # A busy machine takes its time to start an interpreter.
        "distributed.comm.timeouts.connect": "60s",
        # As docs/scale.md says: a shard that changes its worker takes its kernel values along.
        "distributed.scheduler.work-stealing": False,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            processes=True,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def pids_of(client: Any) -> list[int]:
    """The processes of the workers, in the order of their addresses."""
    found = client.run(os.getpid)
    return [found[address] for address in sorted(found)]


def on_every_worker(client: Any, work: Callable[..., Any], *given: Any) -> None:
    """Do it in the process of each worker, not in a task of the scheduler's choice."""
    client.run(work, *given)


def busy_seconds(stream: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds of all workers together by what they did, and by the name of the task."""
    actions: dict[str, float] = {}
    names: dict[str, float] = {}
    for task in stream:
        for step in task.get("startstops") or ():
            seconds = float(step["stop"] - step["start"])
            actions[step["action"]] = actions.get(step["action"], 0.0) + seconds
            if step["action"] == "compute":
                name = task_name(task["key"])
                names[name] = names.get(name, 0.0) + seconds
    return {"n_tasks": len(stream), "actions": actions, "tasks": names}


def task_name(key: Any) -> str:
    """What Dask's dashboard calls a task."""
    from dask.utils import key_split

    return str(key_split(key))


def chunks_for(rows: int, wanted: int) -> int:
    """Chunks of which none is empty."""
    return len({*edges_of(rows, wanted)}) - 1
