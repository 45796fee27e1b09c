"""Metrics that are learned from the gradients of machines.

``gradient_products`` sums ∇f ∇fᵀ over rows and problems, ``metric_rounds`` maps the rows by the
root of that matrix and fits again, and ends where held-out rows say so.
"""

from widemargin.metric.gradient_products import gradient_products
from widemargin.metric.metric_root import metric_root, root_of_given
from widemargin.metric.metric_rounds import (
    LearnedMetric,
    MetricOptions,
    learn_metric,
    next_root,
)

__all__ = [
    "LearnedMetric",
    "MetricOptions",
    "gradient_products",
    "learn_metric",
    "metric_root",
    "next_root",
    "root_of_given",
]
