"""Small dense quadratic programs with bounds.

``sor`` is the papers' successive over-relaxation, ``active_set`` an exact method that starts warm,
``coordinate`` a greedy ascent on a kernel matrix that many problems share, and ``margin`` puts the
last two together for the dual of the L2-SVM. ``hinge`` is the dual of the hinge-loss SVM with a
free bias, by pairs of variables, with ``box_newton`` and ``interior`` for what is hard for those.
"""

from widemargin.qp.active_set import solve_nonnegative
from widemargin.qp.hinge import HingeDual, polished, solve_hinge_dual
from widemargin.qp.margin import MarginDual, solve_margin_dual
from widemargin.qp.sor import solve_sor

__all__ = [
    "HingeDual",
    "MarginDual",
    "polished",
    "solve_hinge_dual",
    "solve_margin_dual",
    "solve_nonnegative",
    "solve_sor",
]
