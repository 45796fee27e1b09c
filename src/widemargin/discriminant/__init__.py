"""Discriminant features: projections that keep classes apart.

``max_margin`` is the estimator of MMDA; ``directions`` takes one direction after the other, and
``deflation``, ``direct``, ``core``, ``in_span``, ``linear`` and ``linear_hinge`` are the ways to
find one.
"""

from widemargin.discriminant.kernel_fisher import KernelFisherDA
from widemargin.discriminant.local_fisher import LocalFisherDA
from widemargin.discriminant.locality_preserving import LocalityPreservingProjection
from widemargin.discriminant.max_margin import MaxMarginDA
from widemargin.discriminant.pairwise_accuracy import PairwiseAccuracyDA

__all__ = [
    "KernelFisherDA",
    "LocalFisherDA",
    "LocalityPreservingProjection",
    "MaxMarginDA",
    "PairwiseAccuracyDA",
]
