"""Shards of a Dask collection that lie on a device of their worker.

What crosses is NumPy's: a client need not have the device. A shard that is told something becomes
another one (``on_workers``), and both share rows and kernel values. These are written once, block
by block and the same ones by whoever comes first, so only a change of their order needs a copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from widemargin.device import named_device, to_numpy
from widemargin.places.loading import Loaded, ShardPlan, most_rows_of_block, problem_of
from widemargin.rows import Rows, as_rows
from widemargin.span.device_shard import DeviceShard
from widemargin.span.shard import Gram, GramPlan

# The part of what is free on a device that a shard may take for kernel values.
_ROOM_SHARE = 0.5


class DeviceState(DeviceShard):
    """A shard on a device, one of several, or one that another process asks."""

    for_others: ClassVar[bool] = True

    def gram(self, plan: GramPlan) -> Gram:
        """Return the sums of a Newton matrix, as NumPy's."""
        found = super().gram(plan)
        return replace(found, sums=[to_numpy(each) for each in found.sums])

    def bring_near(self, limit: float) -> None:
        """Let rows with a margin below a limit change places with the first ones."""
        # They do so where they lie, which other states may look at.
        self.values.part_from_others()
        super().bring_near(limit)


def device_shard_of(loaded: Loaded, plan: ShardPlan, rows: Rows | None = None) -> DeviceState:
    """Return the shard of some rows, on the device that its plan names."""
    assert plan.device is not None
    device = named_device(plan.device)
    stored = rows
    if stored is None:
        stored = as_rows(loaded.X, memory=plan.memory, threads=plan.threads)
    problem = replace(problem_of(loaded, plan, stored.placed(device)), place=None)
    free = device.free_memory()
    room = plan.room if free is None else min(plan.room, int(_ROOM_SHARE * free))
    most = most_rows_of_block(problem.n)
    return DeviceState(problem, device, plan.dtype, room, plan.width, most)
