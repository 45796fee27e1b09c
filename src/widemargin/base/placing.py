"""Where a user's array is worked on, and the checks of arrays that are not NumPy's.

scikit-learn checks arrays of other namespaces only where its dispatch is switched on. What it would
ask of them is asked here, on their device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_y, check_consistent_length, validate_data

from widemargin.device import (
    Array,
    Device,
    device_of,
    is_device_array,
    named_device,
    to_numpy,
    worked_on,
)
from widemargin.places.partitions import is_collection

# Types of numbers that every library has.
_TRAVELLING = ("float32", "float64", "int64", "int32", "int16", "uint8")
# The share of a device's memory that rows may take which could also come block by block.
_WHOLE_SHARE = 0.2


def check_device(name: str, value: Any) -> None:
    """Raise unless a value can name a device; whether there is one is asked when it is used."""
    if value is not None and not isinstance(value, str):
        raise TypeError(
            f"{name}={value!r} must be None, 'cpu', 'cuda' or 'cuda:1', not {type(value).__name__}."
        )


def check_no_device(device: str | None) -> None:
    """Raise if rows that come in parts are wanted on a device."""
    if device not in (None, "cpu"):
        raise ValueError(
            f"device={device!r} needs rows in one array, but X comes in parts, such as a Dask "
            "collection; use device=None, or pass X.compute()."
        )


def device_for(setting: str | None, X: Any) -> Device | None:
    """Return the device that rows are worked on; None is this machine, with NumPy.

    Parameters
    ----------
    setting : str or None
        What the user says; None is where the rows are.
    X : array
        The rows.
    """
    if is_collection(X):
        # Each worker has a device of its own.
        return None
    if setting is None:
        return device_of(X) if is_device_array(X) else None
    return None if setting == "cpu" else named_device(setting)


def travels_whole(X: Any, memory: int) -> bool:
    """Return whether rows of this machine go to a device at once, rather than block by block.

    There they are hashed, sorted and put into order far sooner; a file is read as it is needed.
    """
    known = isinstance(X, np.ndarray) and X.dtype.name in _TRAVELLING
    return known and not isinstance(X, np.memmap) and X.nbytes <= _WHOLE_SHARE * memory


def checked_rows(estimator: Any, X: Array, device: Device, reset: bool, least: int = 1) -> Array:
    """Return a matrix of another namespace on a device, or say what is wrong with it.

    Parameters
    ----------
    estimator : estimator
        Its number of features is set, or compared.
    X : array
        Rows.
    device : Device
        Where they are wanted.
    reset : bool
        Whether the estimator is fitted to them.
    least : int, default=1
        Rows at the least.
    """
    name = type(estimator).__name__
    X = worked_on(X)
    if X.ndim != 2:
        raise ValueError(
            f"X of shape {tuple(X.shape)} must be a matrix, with a row for each sample. Reshape "
            "your data."
        )
    if X.shape[0] < least:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) (shape={tuple(X.shape)}) while a minimum of "
            f"{least} is required by {name}."
        )
    if X.shape[1] < 1:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(X.shape)}) while a minimum of 1 is "
            f"required by {name}."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    own = device_of(X)
    if own.xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: X must hold real numbers.")
    if own != device:
        # The user has named another device.
        X = device.array(to_numpy(X))
    xp = device.xp
    if X.dtype not in (xp.float32, xp.float64):
        return xp.astype(X, xp.float64)
    # The sum of finite values may overflow too, but it is quick to look at first.
    if not bool(xp.isfinite(xp.sum(X, dtype=xp.float64))) and not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"Input X contains NaN or infinity, which {name} cannot work on.")
    return X


def checked_labels(X: Array, y: Any, estimator: Any) -> NDArray[Any]:
    """Return the labels of rows as NumPy's, or say what is wrong with them."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    labels: NDArray[Any] = _check_y(to_numpy(y) if is_device_array(y) else y, estimator=estimator)
    check_consistent_length(stand_in(X), labels)
    return labels


def stand_in(X: Any) -> Any:
    """Return something of NumPy's with as many rows, for functions that count them."""
    return np.broadcast_to(np.zeros(1), (X.shape[0], 1)) if is_device_array(X) else X
