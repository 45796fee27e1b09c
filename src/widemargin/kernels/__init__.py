"""Kernels: k(x, z) for a block of rows against a few vectors, its diagonal, and its gradient in z.

`make_kernel` turns the `kernel` parameter of an estimator, a name, a function or a `Kernel`, into a
`Kernel`. Formulas are in `widemargin.kernels.products`, `widemargin.kernels.distances` and
`widemargin.kernels.given`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from typing import Any

from widemargin.kernels.base import Kernel
from widemargin.kernels.distances import RBF, InverseDistance, InverseSquaredDistance, Laplacian
from widemargin.kernels.given import CallableKernel, Precomputed
from widemargin.kernels.products import (
    CosinePower,
    Linear,
    NormalizedPolynomial,
    Polynomial,
    Sigmoid,
)

__all__ = [
    "KERNELS",
    "RBF",
    "CallableKernel",
    "CosinePower",
    "InverseDistance",
    "InverseSquaredDistance",
    "Kernel",
    "Laplacian",
    "Linear",
    "NormalizedPolynomial",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "make_kernel",
]

KERNELS: dict[str, type[Kernel]] = {
    cls.name: cls
    for cls in (
        Linear,
        Polynomial,
        NormalizedPolynomial,
        CosinePower,
        RBF,
        Laplacian,
        Sigmoid,
        InverseDistance,
        InverseSquaredDistance,
        Precomputed,
    )
}
"""The kernels that have a name."""


def make_kernel(
    kernel: str | Kernel | Callable[..., Any],
    *,
    gamma: float = 1.0,
    degree: float = 3,
    coef0: float = 0.0,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the kernel that an estimator's parameters describe.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name of `KERNELS`, a kernel, which is returned as it is, or a function ``k(X, Z,
        **kernel_params)`` that returns a matrix.
    gamma : float, default=1.0
        γ of the kernels that have one.
    degree : float, default=3
        The exponent of ``"poly"``, ``"normalized_poly"`` and ``"cosine_power"``.
    coef0 : float, default=0.0
        The constant term of ``"poly"``, ``"normalized_poly"`` and ``"sigmoid"``.
    kernel_params : mapping, optional
        Keyword arguments for a callable.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> from widemargin.kernels import make_kernel
    >>> make_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    >>> make_kernel("rfb")
    Traceback (most recent call last):
    ...
    ValueError: kernel='rfb' is not known; did you mean 'rbf'? Valid names: 'linear', ...
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel, dict(kernel_params or {}))
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(_unknown(kernel))
    if kernel_params:
        raise ValueError(
            f"kernel_params={dict(kernel_params)!r} is only for a callable kernel, and "
            f"kernel={kernel!r} is a name; set gamma, degree or coef0 instead."
        )
    cls = KERNELS[kernel]
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    wanted = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in given.items() if name in wanted})


def _unknown(kernel: object) -> str:
    close = difflib.get_close_matches(kernel, KERNELS, n=1) if isinstance(kernel, str) else []
    hint = f"; did you mean {close[0]!r}?" if close else "."
    names = ", ".join(repr(name) for name in KERNELS)
    return (
        f"kernel={kernel!r} is not known{hint} Valid names: {names}; "
        "or give a Kernel object or a callable k(X, Z)."
    )
