"""What estimators in cells keep of them, and the machines that answer by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.base.estimator import KernelEstimator, dense
from widemargin.cells import CellMachines, FittedCells, Groups, Partition
from widemargin.expansion import Fitted
from widemargin.kernels import Kernel

_OF_CELLS = ("cell_centers_", "cell_offsets_", "cell_middles_", "cell_middle_offsets_")


def keep_cells(estimator: KernelEstimator, fitted: Fitted) -> None:
    """Set what cells have, beside vectors and coefficients; nothing where there are none."""
    for name in _OF_CELLS:
        if hasattr(estimator, name):
            delattr(estimator, name)
    if not isinstance(fitted, FittedCells):
        return
    kept: dict[str, Any] = {"cell_centers_": fitted.centers, "cell_offsets_": fitted.offsets}
    if fitted.groups is not None:
        kept["cell_middles_"] = fitted.groups.middles
        kept["cell_middle_offsets_"] = fitted.groups.offsets
    for name, value in kept.items():
        setattr(estimator, name, value)


def kept_machines(estimator: Any, kernel: Kernel | list[Kernel], intercept: Any) -> CellMachines:
    """Return the machines of all cells of a fitted estimator.

    Parameters
    ----------
    estimator : KernelEstimator
        What `keep_cells` was called for.
    kernel : Kernel or list of Kernel
        Its kernel, or that of each cell.
    intercept : ndarray of shape (n_cells, n_outputs)
        What is added in each cell.
    """
    middles = getattr(estimator, "cell_middles_", None)
    groups = None if middles is None else Groups(middles, estimator.cell_middle_offsets_)
    return CellMachines(
        Partition(estimator.cell_centers_, groups),
        kernel,
        dense(estimator.support_vectors_),
        np.ascontiguousarray(estimator.dual_coef_.T),
        estimator.cell_offsets_,
        intercept,
        float(estimator.blend),
    )
