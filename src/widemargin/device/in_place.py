"""Operations that write where they read, or have a faster form in torch; one function each.

The array API knows neither, so that other namespaces make a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.device.namespace import Array, Device, to_numpy

# Rows from which the systems of a batch are solved one by one.
_LARGE = 1024
# Rows that change places at a time.
_ROWS_AT_A_TIME = 65_536


def replaced(device: Device, function: str, values: Array, *arguments: Any) -> Array:
    """Return a function of values, elementwise, written over them where that is possible."""
    if device.is_torch:
        return getattr(values, f"{function}_")(*arguments)
    return getattr(device.xp, function)(values, *arguments)


def product(device: Device, left: Array, right: Array, out: Array | None = None) -> Array:
    """Return a matrix product, written into `out` if there is one."""
    if out is None:
        return device.xp.matmul(left, right)
    if device.is_torch:
        import torch

        return torch.matmul(left, right, out=out)
    out[...] = device.xp.matmul(left, right)
    return out


def distances_l1(device: Device, X: Array, Z: Array) -> Array:
    """Return ‖x_i − z_j‖₁."""
    if device.is_torch:
        import torch

        return torch.cdist(X, Z, p=1.0)
    shape = (*X.shape[:-1], Z.shape[-2])
    total = device.xp.zeros(shape, dtype=X.dtype, device=device.where)
    for feature in range(X.shape[-1]):
        total += device.xp.abs(X[..., :, None, feature] - Z[..., None, :, feature])
    return total


def written(device: Device, target: Array, places: Array, values: Array) -> Array:
    """Return an array with rows written to places; torch's is changed itself."""
    if device.is_torch:
        target[places] = values
        return target
    here = np.array(to_numpy(target))
    here[to_numpy(places)] = to_numpy(values)
    return device.array(here)


def largest_places(device: Device, values: Array, count: int) -> Array:
    """Return where the largest values of each row of a matrix are, `count` of them."""
    if device.is_torch:
        import torch

        return torch.topk(values, count, dim=1, sorted=False).indices
    xp = device.xp
    columns, found = xp.arange(values.shape[1], device=device.where)[None, :], []
    for _ in range(count):
        found.append(xp.argmax(values, axis=1, keepdims=True))
        values = xp.where(columns == found[-1], -np.inf, values)
    return xp.concat(found, axis=1)


def swap_rows(device: Device, values: Array, left: NDArray[Any], right: NDArray[Any]) -> Array:
    """Return an array in which rows have changed places, in pairs; torch's is changed itself."""
    if not device.is_torch:
        order = np.arange(values.shape[0])
        order[left], order[right] = right, left
        return device.xp.take(values, device.index(order), axis=0)
    for begin in range(0, len(left), _ROWS_AT_A_TIME):
        a = device.index(left[begin : begin + _ROWS_AT_A_TIME])
        b = device.index(right[begin : begin + _ROWS_AT_A_TIME])
        kept = values[a]
        values[a] = values[b]
        values[b] = kept
    return values


def cholesky(device: Device, matrix: Array) -> Array | None:
    """Return the lower Cholesky factor of a matrix, None if there is none."""
    if device.is_torch:
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix)
        return None if int(info) else factor
    try:
        factor = device.xp.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    return factor if np.isfinite(to_numpy(factor)).all() else None


def choleskys(device: Device, matrices: Array) -> list[Array | None]:
    """Return the lower Cholesky factors of a batch of matrices, None where there is none."""
    if not device.is_torch:
        return [cholesky(device, matrices[j, :, :]) for j in range(matrices.shape[0])]
    import torch

    factors, info = torch.linalg.cholesky_ex(matrices)
    failed = info.tolist()
    return [None if bad else factor for factor, bad in zip(factors, failed, strict=True)]


def solve_lower(device: Device, factor: Array, right: Array) -> Array:
    """Return L⁻¹ B for a lower triangular L."""
    if device.is_torch:
        import torch

        return torch.linalg.solve_triangular(factor, right, upper=False)
    return device.xp.linalg.solve(factor, right)


def solve_upper(device: Device, factor: Array, right: Array) -> Array:
    """Return L⁻ᵀ B for a lower triangular L."""
    if device.is_torch:
        import torch

        return torch.linalg.solve_triangular(factor.mT, right, upper=True)
    return device.xp.linalg.solve(factor.mT, right)


def solve_spd(device: Device, matrices: Array, right: Array) -> Array:
    """Return the solutions of a batch of positive definite systems.

    Where one of them is not, to its rounding, all are solved in float64.
    """
    xp = device.xp
    if device.is_torch:
        import torch

        factor, info = torch.linalg.cholesky_ex(matrices)
        if matrices.dtype == torch.float64 or not bool(info.any()):
            if matrices.shape[-1] < _LARGE:
                return torch.cholesky_solve(right, factor)
            # One right-hand side of a large factor takes no longer than it is read.
            each = [
                solve_upper(device, L, solve_lower(device, L, column))
                for L, column in zip(factor, right, strict=True)
            ]
            return torch.stack(each)
    else:
        try:
            factor = xp.linalg.cholesky(matrices)
            return xp.linalg.solve(xp.matrix_transpose(factor), xp.linalg.solve(factor, right))
        except np.linalg.LinAlgError:
            pass
    return xp.astype(
        xp.linalg.solve(xp.astype(matrices, xp.float64), xp.astype(right, xp.float64)), right.dtype
    )


def square_of(device: Device, matrix: Array, places: Array) -> Array:
    """Return the entries of a matrix in some rows and the columns of the same numbers."""
    if device.is_torch:
        return matrix[places[..., :, None], places[..., None, :]]
    xp = device.xp
    if places.ndim == 1:
        return xp.take(xp.take(matrix, places, axis=0), places, axis=1)
    return xp.stack([square_of(device, matrix, places[b, :]) for b in range(places.shape[0])])


def squares_of(device: Device, matrices: Array, number: Array, places: Array) -> Array:
    """Return such entries of several matrices: of which ones, and in which rows and columns."""
    if device.is_torch:
        return matrices[number[:, None, None], places[:, :, None], places[:, None, :]]
    which = to_numpy(number).tolist()
    pairs = [(matrices[c, :, :], places[b, :]) for b, c in enumerate(which)]
    return device.xp.stack([square_of(device, matrix, own) for matrix, own in pairs])


def scale_to_unit(device: Device, matrices: Array, scale: Array) -> Array:
    """Return matrices with rows and columns times factors, and ones on the diagonal.

    They are written over where that is possible.
    """
    xp = device.xp
    if device.is_torch:
        matrices.mul_(scale[:, :, None]).mul_(scale[:, None, :])
        matrices.diagonal(dim1=1, dim2=2).fill_(1.0)
        return matrices
    eye = xp.eye(matrices.shape[1], dtype=matrices.dtype, device=device.where)
    return matrices * scale[:, :, None] * scale[:, None, :] * (1.0 - eye) + eye
