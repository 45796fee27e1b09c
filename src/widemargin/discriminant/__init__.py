"""Discriminant features: projections that keep classes apart.

Six projections, with mathematics in ``directions`` (MaxMarginDA), ``pairs`` (MaxiMinDA and aPAC)
and ``scatter`` (all but the first), and a metric (``metric``).
"""

from widemargin.discriminant.kernel_fisher import KernelFisherDA
from widemargin.discriminant.local_fisher import LocalFisherDA
from widemargin.discriminant.locality_preserving import LocalityPreservingProjection
from widemargin.discriminant.margin_metric import MarginMetric
from widemargin.discriminant.max_margin import MaxMarginDA
from widemargin.discriminant.maxi_min import MaxiMinDA
from widemargin.discriminant.pairwise_accuracy import PairwiseAccuracyDA

__all__ = [
    "KernelFisherDA",
    "LocalFisherDA",
    "LocalityPreservingProjection",
    "MarginMetric",
    "MaxMarginDA",
    "MaxiMinDA",
    "PairwiseAccuracyDA",
]
