"""Kernels: k(x, z) for a block of rows against a few vectors, its diagonal, and its gradient in z.

`make_kernel` turns the `kernel` parameter of an estimator, a name, a function or a `Kernel`, into a
`Kernel`, and `resolve_gamma` its `gamma` into a number. Formulas are in
`widemargin.kernels.products`, `widemargin.kernels.distances` and `widemargin.kernels.given`.
"""

from widemargin.kernels.distances import (
    RBF,
    Exponential,
    InverseDistance,
    InverseSquaredDistance,
    Laplacian,
)
from widemargin.kernels.given import CallableKernel, Precomputed
from widemargin.kernels.kernel import KERNELS, Kernel, make_kernel, resolve_gamma
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
    "Exponential",
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
    "resolve_gamma",
]

for _kernel in (
    Linear,
    Polynomial,
    NormalizedPolynomial,
    CosinePower,
    RBF,
    Laplacian,
    Exponential,
    Sigmoid,
    InverseDistance,
    InverseSquaredDistance,
    Precomputed,
):
    KERNELS[_kernel.name] = _kernel
