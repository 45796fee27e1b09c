"""Outlier detectors: machines of one class."""

from widemargin.outliers.margin_one_class import MarginOneClass

__all__ = ["MarginOneClass"]
