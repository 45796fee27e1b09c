"""Enclosing balls in a kernel's feature space.

``points`` says which points, ``growth`` finds the few that matter (the core set), ``minimum`` is
the smallest ball around those, ``fixed_radius`` a ball of given radius that needs no solver.
"""

from widemargin.balls.fixed_radius import FixedRadiusBall
from widemargin.balls.growth import CoreSet, multipliers, rounding
from widemargin.balls.minimum import MinimumBall
from widemargin.balls.points import Points
from widemargin.balls.state import CoreState

__all__ = [
    "CoreSet",
    "CoreState",
    "FixedRadiusBall",
    "MinimumBall",
    "Points",
    "multipliers",
    "rounding",
]
