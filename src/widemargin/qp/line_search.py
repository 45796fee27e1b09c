"""How far to go along a direction, for several problems at once.

The objectives are convex and quadratic in pieces, so that their slope along a direction is a rising
function of the step's length, linear in pieces. Newton's method for its root ends with the exact
one; where a step of it leaves the bracket that is known, the bracket is halved instead, and where
nothing bends there is no step of it, and the length is doubled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from widemargin.arrays import Vector

Look = Callable[[Vector], tuple[Vector, Vector]]
"""Returns slope and curvature of each problem at the given lengths."""

# Lengths that differ by less are the same: Newton's own length of 1 must stay what it is.
_SAME = 1e-9


def line_search(look: Look, start: Vector, *, tol: float, max_tries: int) -> Vector:
    """Return the lengths at which the slopes vanish.

    Parameters
    ----------
    look : callable
        Slopes and curvatures at some lengths.
    start : ndarray of shape (n_problems,)
        Lengths to begin with.
    tol : float
        Relative accuracy.
    max_tries : int
        Looks at the most.

    Examples
    --------
    >>> import numpy as np
    >>> slope_of_two_parabolas = lambda t: (2.0 * t - np.array([1.0, 3.0]), np.full(2, 2.0))
    >>> line_search(slope_of_two_parabolas, np.zeros(2), tol=1e-2, max_tries=10)
    array([0.5, 1.5])
    """
    length = start
    low, high = np.zeros(len(start)), np.full(len(start), np.inf)
    for _ in range(max_tries):
        slope, curve = look(length)
        low = np.where(slope < 0, length, low)
        high = np.where(slope > 0, np.minimum(high, length), high)
        change = np.where(slope == 0, 0.0, np.inf)
        with np.errstate(over="ignore"):
            np.divide(slope, curve, out=change, where=curve > 0)
        better = length - change
        same = np.abs(change) <= _SAME * np.abs(length)
        longer = np.where(length > 0, 2.0 * length, 1.0)
        middle = np.where(np.isfinite(high), 0.5 * (low + high), longer)
        inside = (better > low) & (better < high)
        better = np.where(same, length, np.where(inside, better, middle))
        change, length = np.abs(better - length), better
        if (change <= tol * np.abs(length)).all():
            break
    return length
