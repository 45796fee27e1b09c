"""Rows that are drawn at random, in proportion to weights.

Each row gets an exponential time divided by its weight, and the earliest win (Efraimidis and
Spirakis): one random number a row, whatever the count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector

# Shifts and odd factors that spread the bits of a number over all of it (Stafford's variant of the
# finaliser of MurmurHash).
_MIXING = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def seed_of_draw(rng: np.random.Generator) -> int:
    """Return the seed of one draw of rows by their keys."""
    return int(rng.integers(2**63))


def earliest(
    weight: Vector, count: int, keys: NDArray[np.uint64], seed: int
) -> tuple[Vector, IndexArray]:
    """Return the rows that are drawn in proportion to weights, and when; only positive ones.

    The time of a row is made of its key, so that it does not matter where the row lies, and who
    else is there.
    """
    return _first(weight, count, exponential(keys, seed))


def exponential(keys: NDArray[np.uint64], seed: int) -> Vector:
    """Return exponential random numbers that keys and a seed decide."""
    bits = keys ^ np.uint64(seed)
    for shift, factor in _MIXING:
        bits = (bits ^ (bits >> shift)) * factor
    bits ^= bits >> np.uint64(31)
    # 53 bits are a number between 0 and 1, which must not be 0.
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(-np.log(uniform))


def drawn_places(weight: Vector, count: int, rng: np.random.Generator) -> IndexArray:
    """Return different positions, drawn in proportion to weights; only positive ones.

    By their places, for rows that are a sample already.
    """
    return _first(weight, count, rng.exponential(size=len(weight)))[1]


def _first(weight: Vector, count: int, chance: Vector) -> tuple[Vector, IndexArray]:
    """Return the positions whose exponential times, divided by their weights, are the earliest."""
    candidates = np.flatnonzero(weight > 0)
    time = chance[candidates] / weight[candidates]
    if count < len(candidates):
        first = np.argpartition(time, count)[:count]
        candidates, time = candidates[first], time[first]
    order = np.argsort(time, kind="stable")
    return time[order], candidates[order]
