"""Losses that are linear in pieces, with their kinks rounded.

The loss max(0, q (l − f), p (f − h)) is the largest β (l − f) or β (h − f) for −p ≤ β ≤ q. With
δ β²/(2q) or δ β²/(2p) taken from it (Nesterov 2005, "Smooth minimization of non-smooth functions")
it is quadratic on zones of width δ below l and above h, and its slope −β is a point of the dual,
within its bounds. A row outside the zones pays what its β earns: only rows in a zone contribute to
the duality gap, no more than qδ/4 each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.qp.line_search import line_search

# Looks for the best bias, at the most.
_LOOKS = 60
# The sum of β is right to this share of all slopes.
_SAME_SUM = 1e-13


@dataclass(frozen=True)
class Smoothed:
    """The rows of one problem with a zone width δ.

    Attributes
    ----------
    low, high, below, above : ndarray of shape (n,)
        Ends and slopes.
    pull : float
        g.
    delta : float
        Width of the zones.
    """

    low: Vector
    high: Vector
    below: Vector
    above: Vector
    pull: float
    delta: float

    def beta(self, values: Vector) -> Vector:
        """Return the dual point of decision values."""
        up = np.clip((self.low - values) / self.delta, 0.0, 1.0) * self.below
        down = np.clip((values - self.high) / self.delta, 0.0, 1.0) * self.above
        beta: Vector = up - down
        return beta

    def feasible(self, beta: Vector) -> Vector:
        """Return a dual point that adds up to the pull, as near to `beta` as the sum was.

        Where rounding kept the search for the bias from its end, the point moves towards the end of
        its box that has the sum wanted: it stays in the box.
        """
        over = float(beta.sum()) - self.pull
        end = -self.above if over > 0 else self.below
        way = float((beta - end).sum())
        share = min(1.0, max(0.0, over / way)) if way else 0.0
        moved: Vector = beta + share * (end - beta)
        return moved

    def curvature(self, values: Vector) -> Vector:
        """Return the second derivative of each row's loss."""
        under, over = self.low - values, values - self.high
        in_zone = np.where((under > 0) & (under < self.delta), self.below, 0.0)
        in_zone += np.where((over > 0) & (over < self.delta), self.above, 0.0)
        return in_zone / self.delta

    def loss(self, values: Vector) -> float:
        """Return the loss, kinks and all."""
        under, over = np.maximum(self.low - values, 0.0), np.maximum(values - self.high, 0.0)
        return float(self.below @ under + self.above @ over)

    def earned(self, beta: Vector) -> float:
        """Return what a dual point earns: Σ l β⁺ − h β⁻."""
        return float(self.low @ np.maximum(beta, 0.0) - self.high @ np.maximum(-beta, 0.0))

    def bias(self, scores: Vector, guess: float) -> float:
        """Return the bias at which the dual point adds up to the pull."""
        low = float(min(self.low.min(), self.high.min()) - scores.max()) - self.delta
        high = float(max(self.low.max(), self.high.max()) - scores.min()) + self.delta
        b = min(max(guess, low), high)
        enough = _SAME_SUM * float((self.below + self.above).sum())
        for _ in range(_LOOKS):
            values = scores + b
            slope = self.pull - float(self.beta(values).sum())
            if abs(slope) <= enough:
                break
            low, high = (b, high) if slope < 0 else (low, b)
            bend = float(self.curvature(values).sum())
            newton = b - slope / bend if bend > 0 else np.inf
            b = newton if low < newton < high else 0.5 * (low + high)
        return b

    def step(self, values: Vector, moved: Vector, slope: float, bend: float) -> float:
        """Return how far to go along a direction.

        Parameters
        ----------
        values : ndarray of shape (n,)
            Decision values.
        moved : ndarray of shape (n,)
            How they change along the direction.
        slope, bend : float
            First and second derivative of the objective without the losses.
        """

        def look(length: Vector) -> tuple[Vector, Vector]:
            t = float(length[0])
            at = values + t * moved
            first = slope + t * bend - float(self.beta(at) @ moved)
            second = bend + float(self.curvature(at) @ (moved * moved))
            return np.array([first]), np.array([second])

        return float(line_search(look, np.ones(1), tol=1e-2, max_tries=30)[0])


def column(
    low: Matrix, high: Matrix, below: Matrix, above: Matrix, pull: float, delta: float, p: int
) -> Smoothed:
    """Return one problem; an end beyond which nothing is paid is put at the other one."""
    q, s = below[:, p], above[:, p]
    ends = low[:, p], high[:, p]
    l_end = np.where(q > 0, ends[0], np.where(s > 0, ends[1], 0.0))
    return Smoothed(l_end, np.where(s > 0, ends[1], l_end), q, s, pull, delta)
