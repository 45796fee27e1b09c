"""Discriminant features: projections that keep classes apart.

``max_margin`` is the estimator of MMDA; ``directions`` takes one direction after the other, and
``deflation``, ``direct``, ``core``, ``in_span``, ``linear`` and ``linear_hinge`` are the ways to
find one.

``maxi_min`` is the estimator of the Maxi-Min criterion. ``scatter`` and ``stream`` are what it
knows of the rows, ``whitening`` the space it works in, ``pairs`` its pairs of classes;
``pair_program``, ``online`` and ``semidefinite`` solve the relaxation, ``refine`` the criterion
itself, ``relaxation`` bounds it, and ``sharpness`` chooses what is to be chosen.

``pairwise_accuracy``, ``kernel_fisher``, ``local_fisher`` and ``locality_preserving`` are the
discriminants it is measured against; ``projection`` is what all of these share. ``neighbours``,
``local_scatter`` and ``neighbour_graph`` are what the last two know of near rows, and
``eigenproblem`` solves theirs.
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
