"""How far to go along a direction, where each look is dear and several lengths cost as much as one.

The slope of a convex objective rises along a direction. Slopes at a row of lengths tell between
which two of them it vanishes; the next row lies between these. The slope is linear in pieces, and
between neighbours it is all but straight: the root of the line through both is the answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from widemargin.arrays import Matrix, Vector

LookAtSeveral = Callable[[Matrix], Matrix]
"""Returns slopes at lengths of shape (n_lengths, n_problems)."""

# Lengths that are tried first: those of Newton's steps are about 1, and shorter where rows come
# inside the margin on the way.
FIRST_LENGTHS: Vector = np.concatenate([[0.0], 2.0 ** np.arange(-8.0, 4.0)])
# Lengths of a look between two others.
_BETWEEN = 12
# How far beyond the longest one goes where it is too short.
_LONGER = 8.0


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
        done |= high - low <= width * low
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
    # Rounding may let a slope fall; the first one that is not negative counts.
    above = np.where((slope < 0).all(axis=0), len(slope) - 1, np.argmax(~(slope < 0), axis=0))
    below = np.maximum(above - 1, 0)
    low, high = lengths[below, problems], lengths[above, problems]
    left, right = slope[below, problems], slope[above, problems]
    between = (left < 0) & (right > 0)
    share = np.divide(-left, right - left, out=np.ones(len(low)), where=between)
    found = np.where(between, low + share * (high - low), high)
    low = np.where(between, low, high)
    return low, np.where(right < 0, np.inf, high), found
