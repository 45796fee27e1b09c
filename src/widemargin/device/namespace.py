"""Where an array lies and whose it is: NumPy's, torch's, CuPy's, or another of the array API.

Inside, arrays are worked on in their own namespace (``array_api_compat``), and those of CuPy as
torch tensors of the same memory (DLPack). Answers are given back as what the user passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np
from array_api_compat import (
    is_array_api_obj,
    is_cupy_array,
    is_dask_array,
    is_jax_array,
    is_ndonnx_array,
    is_numpy_array,
    is_pydata_sparse_array,
    is_torch_array,
)
from numpy.typing import DTypeLike, NDArray

Array = Any
"""An array of any namespace."""

# Namespaces whose arrays cannot be written to, or are not dense.
_OTHERS = (is_dask_array, is_jax_array, is_ndonnx_array, is_pydata_sparse_array)
# Bytes of an array from which it is pinned before it travels to a GPU, and to which.
_PINNED_FROM = 1 << 20
_PINNED_TO = 1 << 29
# The part of a device's free memory that "auto" stands for.
_SHARE_OF_FREE = 0.75


@dataclass(frozen=True)
class Device:
    """A namespace of arrays, and a place for them.

    Attributes
    ----------
    xp : module
        The namespace, as ``array_api_compat`` wraps it.
    where : object
        The device, as the namespace knows it.
    """

    xp: Any
    where: Any

    @property
    def is_torch(self) -> bool:
        """Whether arrays are torch tensors."""
        return bool(array_api_compat.is_torch_namespace(self.xp))

    @property
    def is_cuda(self) -> bool:
        """Whether arrays are torch tensors on a GPU."""
        return self.is_torch and self.where.type == "cuda"

    def __str__(self) -> str:
        return str(self.where)

    def dtype(self, dtype: DTypeLike) -> Any:
        """Return the namespace's name for a type of NumPy's."""
        return getattr(self.xp, np.dtype(dtype).name)

    def array(self, values: NDArray[Any], dtype: DTypeLike | None = None) -> Array:
        """Return a copy of an array of NumPy's, of another type if asked, on the device."""
        wanted = np.dtype(values.dtype if dtype is None else dtype)
        # The smaller of two types travels.
        small = values if values.dtype.itemsize <= wanted.itemsize else values.astype(wanted)
        there = self._moved(small)
        if there.dtype != self.dtype(wanted):
            there = self.xp.astype(there, self.dtype(wanted))
        return there

    def _moved(self, values: NDArray[Any]) -> Array:
        if not self.is_torch:
            return self.xp.asarray(np.ascontiguousarray(values), device=self.where, copy=True)
        import torch

        plain = np.ascontiguousarray(values)
        if not plain.flags.writeable or (not self.is_cuda and plain is values):
            plain = plain.copy()
        tensor = torch.from_numpy(plain)
        if self.is_cuda and _PINNED_FROM <= plain.nbytes <= _PINNED_TO:
            # From pinned memory, in which torch keeps room, a copy goes on while others work.
            return tensor.pin_memory().to(self.where, non_blocking=True)
        return tensor.to(self.where)

    def rounded(self, values: Array, dtype: DTypeLike) -> Array:
        """Return an array of the device in another precision."""
        return self.xp.astype(values, self.dtype(dtype), copy=False)

    def index(self, positions: NDArray[Any]) -> Array:
        """Return positions on the device."""
        return self.array(positions, np.int64)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return room on the device."""
        return self.xp.empty(shape, dtype=self.dtype(dtype), device=self.where)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return zeros on the device."""
        return self.xp.zeros(shape, dtype=self.dtype(dtype), device=self.where)

    def ones(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return ones on the device."""
        return self.xp.ones(shape, dtype=self.dtype(dtype), device=self.where)

    def free_memory(self) -> int | None:
        """Return how many bytes are free there; None where it is this machine's memory."""
        if not self.is_cuda:
            return None
        import torch

        free, _ = torch.cuda.mem_get_info(self.where)
        kept = torch.cuda.memory_reserved(self.where) - torch.cuda.memory_allocated(self.where)
        return int(_SHARE_OF_FREE * (free + kept))


def is_device_array(X: Any) -> bool:
    """Return whether an array is of another namespace than NumPy's."""
    if isinstance(X, np.ndarray | np.generic) or not is_array_api_obj(X):
        return False
    return not is_numpy_array(X) and not any(is_other(X) for is_other in _OTHERS)


def device_of(X: Array) -> Device:
    """Return where an array is worked on: where it lies."""
    if is_cupy_array(X):
        return named_device(f"cuda:{X.device.id}")
    xp = array_api_compat.array_namespace(X)
    return Device(xp, array_api_compat.device(X))


def named_device(name: str) -> Device:
    """Return the device that a user names: one of torch's."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device={name!r} needs PyTorch: pip install 'widemargin[gpu]', or use device='cpu'."
        ) from None
    import array_api_compat.torch as xp

    try:
        where = torch.device(name)
    except RuntimeError:
        raise ValueError(
            f"device={name!r} is not known; use 'cpu', 'cuda', 'cuda:1' and so on, or None for "
            "where X is."
        ) from None
    if where.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r}: PyTorch finds no GPU here; use device='cpu'.")
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={name!r}: there are {torch.cuda.device_count()} GPUs here, numbered from 0."
        )
    if where.type not in ("cuda", "cpu"):
        # Sums are in float64, which the others do not have.
        raise ValueError(f"device={name!r} has no float64; use 'cuda' or 'cpu'.")
    if where.type == "cuda" and where.index is None:
        where = torch.device("cuda", torch.cuda.current_device())
    return Device(xp, where)


def worked_on(X: Array) -> Array:
    """Return an array as it is worked on: itself, or CuPy's as a tensor of the same memory."""
    if not is_cupy_array(X):
        return X.detach() if is_torch_array(X) else X
    import torch

    return torch.from_dlpack(X)


def to_numpy(array: Any) -> NDArray[Any]:
    """Return an array of any namespace as NumPy's."""
    if isinstance(array, np.ndarray):
        return array
    if is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    if is_cupy_array(array):
        return np.asarray(array.get())
    if is_device_array(array):
        xp = array_api_compat.array_namespace(array)
        if hasattr(xp, "Device"):
            array = xp.asarray(array, device=xp.Device("CPU_DEVICE"))
    return np.asarray(array)


def given_back(answer: Array, like: Array) -> Array:
    """Return an answer as an array of the namespace and the device of another one."""
    if not is_device_array(like):
        return to_numpy(answer)
    if is_cupy_array(like):
        import cupy

        with like.device:
            if is_torch_array(answer) and answer.device.type == "cuda":
                return cupy.from_dlpack(answer.contiguous())
            return cupy.asarray(to_numpy(answer))
    device = device_of(like)
    if is_device_array(answer) and device_of(answer) == device:
        return answer
    return device.array(to_numpy(answer))


@contextmanager
def exact_products(device: Device | None) -> Iterator[None]:
    """Let float32 products be those of float32 numbers, whatever is set elsewhere."""
    if device is None or not device.is_cuda:
        yield
        return
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
