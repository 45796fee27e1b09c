"""The functions of a model in as few numbers as they need.

Planes where the kernel is linear, one coefficient and the number of its function where each vector
serves one function only, and no vector whose coefficients are zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.cells.cell_decision import CellMachines
from widemargin.export.blueprint import Blueprint, Classes, Numbers
from widemargin.kernels import Kernel


@dataclass(frozen=True)
class Sums:
    """The functions of a model as they are stored.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray of shape (m, n_features)
        Those with a coefficient.
    coef : ndarray of shape (m, p) or (m,)
        Coefficients; one for each vector where `function` says of which function.
    function : ndarray of int of shape (m,) or None
        The function of each vector, where it has one only.
    intercept : ndarray of shape (p,)
        What is added.
    """

    kernel: Kernel
    vectors: Matrix
    coef: NDArray[np.float64]
    function: IndexArray | None
    intercept: Vector

    @property
    def n_functions(self) -> int:
        """How many functions there are."""
        return len(self.intercept)


def stored(blueprint: Blueprint, known: Iterable[str]) -> Sums:
    """Return the functions of a model in as few numbers as they need, or say why it cannot be.

    `known` are the names of the kernels that can be said.
    """
    machine = blueprint.machine
    if isinstance(machine, CellMachines):
        raise TypeError(
            f"this {blueprint.name} is one of {machine.partition.n_cells} cells, which is no model "
            f"for C; fit it with engine='span' and max_vectors, or use {_small(blueprint)}."
        )
    kernel, intercept = machine.kernel, np.broadcast_to(machine.intercept, machine.coef.shape[1:])
    _check_kernel(kernel, list(known))
    vectors, coef = machine.vectors.astype(np.float64), machine.coef
    if kernel.name == "linear":
        # The functions are planes.
        planes = (vectors.T @ coef).T
        return Sums(kernel, planes, np.ones(len(planes)), np.arange(len(planes)), intercept)
    used = np.flatnonzero(coef.any(axis=1))
    vectors, coef = vectors[used], coef[used]
    if not len(used):
        vectors, coef = np.zeros((1, vectors.shape[1])), np.zeros((1, coef.shape[1]))
    if ((coef != 0).sum(axis=1) <= 1).all():
        function = np.abs(coef).argmax(axis=1)
        return Sums(kernel, vectors, coef[np.arange(len(coef)), function], function, intercept)
    return Sums(kernel, vectors, coef, None, intercept)


def _small(blueprint: Blueprint) -> str:
    """Return the name of the estimator that has few vectors and answers of the same kind."""
    if isinstance(blueprint.answer, Classes):
        return "SparseMarginClassifier"
    return "SparseMarginRegressor" if isinstance(blueprint.answer, Numbers) else "SparseOneClass"


def _check_kernel(kernel: Kernel, known: list[str]) -> None:
    own = type(kernel).__module__.startswith("widemargin.kernels.")
    degree = getattr(kernel, "degree", 1)
    if not own or kernel.name not in known:
        given = getattr(kernel, "function", kernel.name)
        names = ", ".join(repr(each) for each in known)
        raise TypeError(f"kernel={given!r} cannot be said in C; use one of {names}.")
    if degree != int(degree):
        raise TypeError(
            f"degree={degree!r} is no whole number, and C is to need no library for powers; use a "
            "whole degree."
        )
