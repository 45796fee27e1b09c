"""Estimators that learn where rows lie, and tell those that do not belong."""

from widemargin.outliers.core_vector_description import CoreVectorDescription

__all__ = ["CoreVectorDescription"]
