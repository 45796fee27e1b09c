"""Discriminant features: projections that keep classes apart.

``max_margin`` is the estimator of MMDA; ``directions`` takes one direction after the other, and
``deflation``, ``direct``, ``core``, ``in_span``, ``linear`` and ``linear_hinge`` are the ways to
find one.
"""

from widemargin.discriminant.max_margin import MaxMarginDA

__all__ = ["MaxMarginDA"]
