"""Enclosing balls in a kernel's feature space, and the exact machine.

``core_set`` finds the few rows that matter, ``minimum`` is the smallest ball around those,
``fixed_radius`` a ball of given radius that needs no solver; ``one_row`` has both as the papers
print them, one row at a time, in compiled code. ``exact_set`` solves the dual where
few rows matter, ``exact`` on the matrix of all kernel values, and ``matrix_free`` without one where
that does not fit into memory; ``device_exact`` is the exact machine on a device.
"""

from widemargin.balls.core_set import CoreSet, fit_core
from widemargin.balls.core_state import BatchSizes, CoreOptions, CoreState
from widemargin.balls.device_exact import exact_fits_there, fit_exact_there
from widemargin.balls.exact import (
    earlier_of,
    factors_take_long,
    fit_exact,
    fit_on_set,
    matrix_fits,
)
from widemargin.balls.exact_cost import cost_of_exact
from widemargin.balls.exact_targets import targets_fit
from widemargin.balls.fixed_radius import FixedRadiusBall
from widemargin.balls.look import Directions
from widemargin.balls.minimum import MinimumBall
from widemargin.balls.one_by_one import fit_one_by_one
from widemargin.balls.one_row import OneRow, fit_one_row

__all__ = [
    "BatchSizes",
    "CoreOptions",
    "CoreSet",
    "CoreState",
    "Directions",
    "FixedRadiusBall",
    "MinimumBall",
    "OneRow",
    "cost_of_exact",
    "earlier_of",
    "exact_fits_there",
    "factors_take_long",
    "fit_core",
    "fit_exact",
    "fit_exact_there",
    "fit_on_set",
    "fit_one_by_one",
    "fit_one_row",
    "matrix_fits",
    "targets_fit",
]
