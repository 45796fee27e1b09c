"""The memory budget: how a user writes it, and what block size follows from it."""

from __future__ import annotations

import re
from numbers import Real

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_memory(memory: int | float | str) -> int:
    """Return the number of bytes that `memory` stands for.

    Parameters
    ----------
    memory : int, float or str
        Bytes, or a number with a unit: "500MB", "1GB", "2.5 GB", "64 MiB".

    Returns
    -------
    int
        Bytes, at least one.

    Examples
    --------
    >>> parse_memory("1GB")
    1000000000
    >>> parse_memory("64 MiB")
    67108864
    """
    if isinstance(memory, str):
        found = re.fullmatch(
            r"\s*([0-9.]+(?:e[0-9]+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.IGNORECASE
        )
        try:
            if found is None:
                raise ValueError
            number = float(found[1])
        except ValueError:
            raise ValueError(
                f"memory={memory!r} is not an amount of memory: give bytes as a number, "
                'or text such as "500MB" or "1GB".'
            ) from None
        unit = _UNITS[found[2].upper()]
        if found[3]:
            unit = 1024 ** list(_UNITS).index(found[2].upper())
        size = number * unit
    elif isinstance(memory, Real) and not isinstance(memory, bool):
        size = float(memory)
    else:
        raise TypeError(f'memory={memory!r} must be a number of bytes, or text such as "1GB".')
    if not (1 <= size < float("inf")):
        raise ValueError(f"memory={memory!r} must be at least one byte, and finite.")
    return int(size)


def rows_per_block(memory: int, bytes_per_row: int, most: int) -> int:
    """Return how many rows one block may hold.

    A block takes at most a sixteenth of the budget and at most 8 MB: a larger one leaves the cache
    and gains nothing. It does not depend on the number of threads, so that sums over blocks are the
    same for any number of them.
    """
    block = min(memory // 16, 8_000_000)
    return int(min(most, max(16, block // max(1, bytes_per_row))))
