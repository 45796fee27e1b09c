"""Kernel regression on the engines of the classifiers, with their certificate."""

from widemargin.regression.core_vector_regressor import CoreVectorRegressor
from widemargin.regression.margin_regressor import MarginRegressor
from widemargin.regression.margin_regressor_cv import MarginRegressorCV

__all__ = ["CoreVectorRegressor", "MarginRegressor", "MarginRegressorCV"]
