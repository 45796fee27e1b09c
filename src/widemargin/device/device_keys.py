"""Keys of rows on a device: the hash of ``rows.distinct``, bit for bit, in torch's 64-bit integers.

Sums and products of signed numbers have the bits of unsigned ones; only shifts to the right must be
kept from copying the sign. Other namespaces cannot look at the bits of a number, and their rows are
hashed on this machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.device.namespace import Array, Device

# Bytes of the bits of rows that are worked on at a time.
_BYTES_AT_A_TIME = 1 << 28
_SIGN = np.uint64(1 << 63)


def hashed_rows(
    X: Array,
    device: Device,
    index: IndexArray | None,
    constants: NDArray[np.uint64],
    mix: np.uint64,
) -> NDArray[np.uint64]:
    """Return Σ_k constants_k · hash(x_k) of each row, of a torch tensor.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    device : Device
        Where they are.
    index : ndarray of int or None
        Row numbers; None means all rows.
    constants : ndarray of uint64 of shape (d,)
        An odd number for each column.
    mix : uint64
        The factor that spreads bits.
    """
    import torch

    n = int(X.shape[0]) if index is None else len(index)
    step = max(1024, _BYTES_AT_A_TIME // (8 * max(1, int(X.shape[1]))))
    factors = torch.from_numpy(constants.view(np.int64)).to(device.where)
    signed = int(np.asarray(mix).view(np.int64))
    out = torch.empty(n, dtype=torch.int64, device=device.where)
    for begin in range(0, n, step):
        end = min(n, begin + step)
        block = X[begin:end] if index is None else X[device.index(index[begin:end])]
        # Adding zero turns -0.0 into 0.0, which is the same number to every kernel.
        bits = (block.to(torch.float64) + 0.0).view(torch.int64)
        bits = (bits ^ _shifted(bits, 32)) * signed
        bits = bits ^ _shifted(bits, 29)
        out[begin:end] = (bits * factors).sum(dim=1)
    return np.asarray(out.cpu().numpy()).view(np.uint64)


def _shifted(bits: Any, by: int) -> Any:
    return (bits >> by) & ((1 << (64 - by)) - 1)


def sorted_places(keys: NDArray[np.uint64], device: Device) -> IndexArray:
    """Return the order of keys, equal ones in that of their places; torch's devices only."""
    import torch

    there = torch.from_numpy((keys ^ _SIGN).view(np.int64)).to(device.where)
    return np.asarray(torch.sort(there, stable=True).indices.cpu().numpy()).astype(np.intp)
