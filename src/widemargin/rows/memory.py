"""How much memory a fit may take, and what fits into it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from numbers import Real
from pathlib import Path
from time import monotonic

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
# The part of the free memory that "auto" stands for.
_SHARE_OF_FREE = 0.5
# What "auto" is at the least, and where nothing tells how much is free.
_LEAST_AUTO = 256_000_000
_UNKNOWN_AUTO = 1_000_000_000
# Files of a control group of Linux, and of its first version: the limit, what is taken, and the
# line of its statistics that counts files which were read.
_FILES = ("memory.max", "memory.current", "inactive_file")
_OLD_FILES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
# A block takes at most this share of the memory budget, and at most so many bytes: a larger one
# leaves the cache and gains nothing.
_BLOCK_SHARE = 1 / 16
_MOST_BLOCK_BYTES = 8_000_000
# Rows of a block at the least, however small the budget is.
_LEAST_ROWS = 16
# Seconds in which what is free is looked at once.
_LATELY = 0.5
# Share of the budget for all blocks that threads work on at a time.
_BLOCKS_SHARE = 0.25


def parse_memory(memory: int | float | str) -> int:
    """Return the number of bytes that `memory` stands for.

    Parameters
    ----------
    memory : int, float or str
        Bytes, or a number with a unit: "500MB", "1GB", "2.5 GB", "64 MiB". "auto" is half of what
        is free now, and at least 256 MB.

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
    if isinstance(memory, str) and memory == "auto":
        free = _free_lately(int(monotonic() / _LATELY))
        return _UNKNOWN_AUTO if free is None else max(_LEAST_AUTO, int(_SHARE_OF_FREE * free))
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
                'text such as "500MB" or "1GB", or "auto".'
            ) from None
        unit = _UNITS[found[2].upper()]
        if found[3]:
            unit = 1024 ** list(_UNITS).index(found[2].upper())
        size = number * unit
    elif isinstance(memory, Real) and not isinstance(memory, bool):
        size = float(memory)
    else:
        raise TypeError(
            f'memory={memory!r} must be a number of bytes, or text such as "1GB" or "auto".'
        )
    if not (1 <= size < float("inf")):
        raise ValueError(f"memory={memory!r} must be at least one byte, and finite.")
    return int(size)


def check_memory(memory: int | float | str) -> None:
    """Raise unless `memory` is an amount of memory; how much is free is not looked at."""
    if not (isinstance(memory, str) and memory == "auto"):
        parse_memory(memory)


@lru_cache(maxsize=1)
def _free_lately(moment: int) -> int | None:
    """Return what is free; to ask takes a millisecond, as long as a small fit."""
    return free_memory()


def free_memory(system: Path = Path("/")) -> int | None:
    """Return the bytes that can be taken before something must be swapped, or None if unknown.

    On Linux: what the system calls available, within the limits of the containers and jobs that
    the process is in. Elsewhere half of what is built in stands for it.
    """
    try:
        lines = (system / "proc/meminfo").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        free = 1024 * int(sizes["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return _half_of_what_is_built_in()
    return min([free, *_left_in_groups(system)])


def _left_in_groups(system: Path) -> Iterator[int]:
    """Yield what is left in each control group with a limit that the process belongs to."""
    try:
        lines = (system / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        controllers, place = line.split(":", 2)[1:]
        if controllers and "memory" not in controllers.split(","):
            continue
        top = system / "sys/fs/cgroup" / ("memory" if controllers else "")
        own = top / place.lstrip("/")
        for group in (own, *own.parents):
            left = _left_in(group, *(_OLD_FILES if controllers else _FILES))
            if left is not None:
                yield left
            if group == top:
                break


def _left_in(group: Path, limit: str, used: str, cache: str) -> int | None:
    try:
        most, taken = int((group / limit).read_text()), int((group / used).read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        # There is no such file, or it says "max".
        return None
    # Files that were read stay in memory only as long as nobody needs the room.
    return max(0, most - taken + int(counts.get(cache, 0)))


def _half_of_what_is_built_in() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return None


def rows_per_block(
    memory: int, bytes_per_row: int, most: int, most_bytes: int = _MOST_BLOCK_BYTES
) -> int:
    """Return how many rows one block may hold.

    It does not depend on the number of threads, so that sums over blocks are the same for any
    number of them.
    """
    block = int(min(_BLOCK_SHARE * memory, most_bytes))
    return min(most, max(_LEAST_ROWS, block // max(1, bytes_per_row)))


def threads_within(memory: int, bytes_each: int, threads: int) -> int:
    """Return how many threads, of those there are, may hold so many bytes each."""
    return max(1, min(threads, int(_BLOCKS_SHARE * memory / max(1, bytes_each))))
