"""Estimators that learn where rows lie, and tell those that do not belong."""

from widemargin.outliers.core_vector_description import CoreVectorDescription
from widemargin.outliers.margin_one_class import MarginOneClass

__all__ = ["CoreVectorDescription", "MarginOneClass"]
