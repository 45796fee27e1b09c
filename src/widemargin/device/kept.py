"""Copies on a device of arrays that are used again and again, such as a machine's vectors.

A copy is kept as long as the array of NumPy's that it is made of. Fitted attributes can so be plain
arrays, which any machine can load, and yet move only once. Such arrays are not written to.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.device.device_kernels import DeviceKernel
from widemargin.device.namespace import Array, Device
from widemargin.kernels import Kernel

_copies: dict[tuple[Any, ...], tuple[DeviceKernel, Array]] = {}


def kernel_with(
    kernel: Kernel, device: Device, vectors: NDArray[Any]
) -> tuple[DeviceKernel, Array]:
    """Return a kernel on a device for float64 values with vectors, and their operand."""
    key = (id(vectors), kernel, str(device), device.xp.__name__)
    if key not in _copies:
        there = DeviceKernel.about(kernel, device, vectors, np.float64)
        _copies[key] = there, there.vectors(vectors)
        weakref.finalize(vectors, _copies.pop, key, None)
    return _copies[key]
