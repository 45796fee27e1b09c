"""Kernel values that no kernel should give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels.base import Kernel


def check_finite(kernel: Kernel, values: NDArray[Any]) -> None:
    """Raise if a kernel's values, or sums of them, overflow."""
    # The sum of finite values may overflow too, but it is quick to look at first.
    if np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    raise ValueError(
        f"kernel={kernel.name!r} gives infinite or undefined values on this data: scale X (for "
        "example with StandardScaler) or use smaller kernel parameters."
    )


def check_diagonal(kernel: Kernel, diagonal: NDArray[Any]) -> None:
    """Raise if a kernel has negative values k(x, x)."""
    if not (diagonal >= 0).all():
        raise ValueError(
            f"kernel={kernel.name!r} gives negative values k(x, x) on this data, which no "
            "Mercer kernel does; use another kernel or other kernel parameters."
        )
