"""Blocks of rows on their way to a GPU, while it works on those before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.device.namespace import Array, Device


class Copies:
    """Copies to a GPU on a stream of their own, from pinned memory.

    The one who asks works on a block before asking for the next one. When the latter is asked for,
    all work on the former has been ordered, and goes on while this machine reads and pins the new
    block and while that travels. The block before the former must be done: no more than two are
    there at a time, whatever the speeds.

    Parameters
    ----------
    device : Device
        The GPU.
    """

    def __init__(self, device: Device) -> None:
        import torch

        self.where, self.stream = device.where, torch.cuda.Stream(device.where)
        self.before: Any = None

    def sent(self, values: NDArray[Any]) -> Array:
        """Return a block there; what is told to the GPU next waits until it has come."""
        import torch

        working = torch.cuda.current_stream(self.where)
        ordered = torch.cuda.Event()
        ordered.record(working)
        with torch.cuda.stream(self.stream):
            there = torch.from_numpy(values).pin_memory().to(self.where, non_blocking=True)
        if self.before is not None:
            self.before.synchronize()
        self.before = ordered
        working.wait_stream(self.stream)
        # Its memory is used again only after the work that follows.
        there.record_stream(working)
        return there


_COPIES: dict[str, Copies] = {}


def block_sent(device: Device, values: NDArray[Any]) -> Array:
    """Return a block of rows of this machine on a device."""
    if not device.is_cuda:
        return device.array(values)
    if str(device) not in _COPIES:
        _COPIES[str(device)] = Copies(device)
    plain = values.flags.writeable and values.flags.c_contiguous
    return _COPIES[str(device)].sent(values if plain else np.array(values, order="C"))
