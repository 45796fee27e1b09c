"""Arrays in pages of their own, small ones, which go back to the system with the array.

Machines of all cells are gigabytes where rows are many, and are copied once, in no order. NumPy
asks for huge pages, of which a few scattered vectors would fill all, and the allocator keeps what
was freed between other arrays.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray


def paged_array(shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Return an array of zeros, no page of which takes memory before it is written to."""
    kind = np.dtype(dtype)
    count = int(shape[0]) * int(shape[1])
    pages = mmap.mmap(-1, max(1, count * kind.itemsize))
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        # Systems without huge pages do not know the word.
        with suppress(OSError):
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=kind, count=count).reshape(shape)
