"""How far to go along a direction, where each look is dear and several lengths cost as much as one.

The slope of a convex objective rises along a direction. Slopes at a row of lengths tell between
which two of them it vanishes; the next row lies between these. The slope is linear in pieces, and
between neighbours it is all but straight: the root of the line through both is the answer. Near an
optimum it is straight over more than one bracket: if the lines through the brackets before and
behind have the same root, the first look is the last.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector

LookAtSeveral = Callable[[Matrix], Matrix]
"""Returns slopes at lengths of shape (n_lengths, n_problems)."""

# Lengths that are tried first: those of Newton's steps are about 1, and shorter where rows come
# inside the margin on the way.
FIRST_LENGTHS: Vector = np.concatenate([[0.0], 2.0 ** np.arange(-8.0, 4.0)])
# Lengths of a look between two others.
_BETWEEN = 12
# How far beyond the longest one goes where it is too short.
_LONGER = 8.0
# How far apart, relative to it, the roots of neighbouring lines may lie that are taken for one.
_SAME_ROOT = 0.01


def search_in_brackets(
    look: LookAtSeveral, lengths: Matrix, slope: Matrix, *, width: float, max_looks: int
) -> Vector:
    """Return the lengths at which the slopes vanish.

    Parameters
    ----------
    look : callable
        Slopes at several lengths.
    lengths : ndarray of shape (n_lengths, n_problems)
        Ascending lengths that were looked at, the first of them 0.
    slope : ndarray of shape (n_lengths, n_problems)
        Slopes there.
    width : float
        How wide a bracket may be, relative to its lower end, in which the slope is taken for a
        straight line.
    max_looks : int
        Looks at the most.

    Examples
    --------
    >>> import numpy as np
    >>> look = lambda t: 2.0 * t - np.array([1.0, 3.0])
    >>> first = np.repeat(FIRST_LENGTHS[:, None], 2, axis=1)
    >>> search_in_brackets(look, first, look(first), width=0.1, max_looks=10)
    array([0.5, 1.5])
    """
    answer = np.zeros(lengths.shape[1])
    done = np.zeros(lengths.shape[1], dtype=bool)
    share = np.linspace(0.0, 1.0, _BETWEEN)[:, None]
    for looks_left in range(max_looks, -1, -1):
        low, high, found = _brackets(lengths, slope)
        answer = np.where(done, answer, found)
        done |= (high - low <= width * low) | _straight(lengths, slope, found)
        if done.all() or not looks_left:
            break
        last = np.where(np.isfinite(high), high, _LONGER * low)
        lengths = np.where(done, answer, low + share * (last - low))
        slope = look(lengths)
    return answer


def _brackets(lengths: Matrix, slope: Matrix) -> tuple[Vector, Vector, Vector]:
    """Return between which lengths the slopes vanish, and where a straight line would.

    The upper end is infinite where all slopes are negative; both ends are the same where a slope
    is zero, or none is negative.
    """
    problems = np.arange(lengths.shape[1])
    above = _first_not_negative(slope)
    below = np.maximum(above - 1, 0)
    low, high = lengths[below, problems], lengths[above, problems]
    left, right = slope[below, problems], slope[above, problems]
    between = (left < 0) & (right > 0)
    share = np.divide(-left, right - left, out=np.ones(len(low)), where=between)
    found = np.where(between, low + share * (high - low), high)
    low = np.where(between, low, high)
    return low, np.where(right < 0, np.inf, high), found


def _first_not_negative(slope: Matrix) -> IndexArray:
    """Return where slopes begin that are not negative; the last place if all are."""
    # Rounding may let a slope fall; the first one that is not negative counts.
    return np.where((slope < 0).all(axis=0), len(slope) - 1, np.argmax(~(slope < 0), axis=0))


def _straight(lengths: Matrix, slope: Matrix, found: Vector) -> NDArray[np.bool_]:
    """Return for which problems the neighbours of a bracket lead to the root that was found."""
    above = _first_not_negative(slope)
    problems = np.arange(lengths.shape[1])
    agree = (above >= 2) & (above + 1 < len(slope))
    for first in (above - 2, above):
        pair = np.clip(np.stack([first, first + 1]), 0, len(slope) - 1)
        at, value = lengths[pair, problems], slope[pair, problems]
        rise, run = value[1] - value[0], at[1] - at[0]
        root = np.divide(-value[0] * run, rise, out=np.full(len(rise), np.inf), where=rise > 0)
        agree &= np.abs(at[0] + root - found) <= _SAME_ROOT * found
    return agree
