"""Discriminant features: projections that keep classes apart.

Six estimators; the mathematics is in ``directions`` (MaxMarginDA), ``pairs`` (MaxiMinDA and aPAC)
and ``scatter`` (all but the first).
"""

from widemargin.discriminant.kernel_fisher import KernelFisherDA
from widemargin.discriminant.local_fisher import LocalFisherDA
from widemargin.discriminant.locality_preserving import LocalityPreservingProjection
from widemargin.discriminant.max_margin import MaxMarginDA
from widemargin.discriminant.maxi_min import MaxiMinDA
from widemargin.discriminant.pairwise_accuracy import PairwiseAccuracyDA

__all__ = [
    "KernelFisherDA",
    "LocalFisherDA",
    "LocalityPreservingProjection",
    "MaxMarginDA",
    "MaxiMinDA",
    "PairwiseAccuracyDA",
]
