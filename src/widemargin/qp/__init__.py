"""Small dense quadratic programs with bounds.

``sor`` is the papers' successive over-relaxation, ``active_set`` an exact method that starts warm,
and ``margin_dual`` the dual of the L2-SVM, by the latter and coordinate ascent. ``hinge_dual`` is
the dual of the hinge-loss SVM with a free bias, by pairs of variables, with ``box_newton`` and
``interior_point`` for what is hard for those (``box_ascent``); ``interval_dual`` is the same for
losses that are zero on an interval, of regression and one-class machines; ``hinge_box`` is
the hinge without a bias. ``newton`` minimises losses that are quadratic in pieces from the primal
side, and ``line_search`` finds the length of a step of it.
"""

from widemargin.qp.active_set import solve_nonnegative
from widemargin.qp.hinge_dual import HingeDual, polished, solve_hinge_dual
from widemargin.qp.interval_dual import IntervalDual, solve_interval_dual
from widemargin.qp.margin_dual import MarginDual, solve_margin_dual
from widemargin.qp.sor import solve_sor

__all__ = [
    "HingeDual",
    "IntervalDual",
    "MarginDual",
    "polished",
    "solve_hinge_dual",
    "solve_interval_dual",
    "solve_margin_dual",
    "solve_nonnegative",
    "solve_sor",
]
