"""Gradients of kernel values in their vectors, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.device.device_kernels import DeviceKernel
from widemargin.device.device_rows import block_on_device
from widemargin.device.namespace import Array, Device, to_numpy
from widemargin.kernels import RBF, InverseSquaredDistance, Kernel, Linear, Polynomial, Sigmoid
from widemargin.rows import Rows

# Bytes of what is made of a block of rows.
_BLOCK_BYTES = 1 << 28
_KNOWN = (RBF, InverseSquaredDistance, Linear, Polynomial, Sigmoid)


def check_moved_on_device(kernel: Kernel, device: Device) -> None:
    """Raise if a kernel has no gradient on a device."""
    if not isinstance(kernel, _KNOWN):
        raise ValueError(
            f"kernel={kernel.name!r} has no gradient on the device {str(device)!r} yet; use "
            "device='cpu', or a kernel such as 'rbf'."
        )


def pulled_there(
    rows: Rows, kernel: Kernel, Z: Matrix, beta: Matrix, pull: NDArray[Any], active: IndexArray
) -> Matrix:
    """Return Σ_i Σ_p r_ip β_up ∂k(x_i, z_u)/∂z_u over some rows.

    Parameters
    ----------
    rows : Rows
        Rows that are worked on on a device.
    kernel : Kernel
        k.
    Z : ndarray of shape (t, d)
        The vectors z.
    beta : ndarray of shape (t, n_problems)
        β.
    pull : ndarray of shape (n, n_problems)
        r.
    active : ndarray of int
        Rows whose r is not zero.
    """
    device, xp = rows.device, rows.device.xp
    there = DeviceKernel.about(kernel, device, Z, np.float64)
    vectors, weight = device.array(Z) - there.centre, device.array(np.ascontiguousarray(beta.T))
    total = device.zeros(Z.shape, np.float64)
    step = max(256, min(_BLOCK_BYTES, rows.memory // 16) // (8 * (3 * len(Z) + Z.shape[1])))
    for begin in range(0, len(active), step):
        index = active[begin : begin + step]
        X = xp.astype(block_on_device(rows, device, index), xp.float64) - there.centre
        total += _gradient(there, X, vectors, xp.matmul(device.array(pull[index]), weight))
    return to_numpy(total)


def _gradient(there: DeviceKernel, X: Array, Z: Array, weight: Array) -> Array:
    """Return Σ_i weight_ij ∂k(x_i, z_j)/∂z_j of rows and vectors about the kernel's point."""
    xp, kernel = there.device.xp, there.kernel
    if isinstance(kernel, RBF | InverseSquaredDistance):
        moved, other = X + there.centre, Z + there.centre
        values = there.values(there.rows(moved), there.vectors_there(other))
        slope = values if isinstance(kernel, RBF) else values * values
        pull = slope * weight * (2.0 * kernel.gamma)
        return xp.matmul(pull.mT, X) - xp.sum(pull, axis=0)[:, None] * Z
    gamma = 1.0 if isinstance(kernel, Linear) else kernel.gamma
    slope = xp.ones_like(weight)
    if not isinstance(kernel, Linear):
        argument = xp.matmul(X, Z.mT) * gamma + kernel.coef0
        if isinstance(kernel, Sigmoid):
            slope = 1.0 - xp.tanh(argument) ** 2
        else:
            power = argument ** (kernel.degree - 1) if kernel.degree else xp.zeros_like(argument)
            slope = kernel.degree * power
    return xp.matmul((slope * weight).mT, X) * gamma
