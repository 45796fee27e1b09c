"""Maximum-margin kernel learning on large data.

Classifiers and discriminant features whose cost is linear in the rows, whose memory does not grow
with them, and which print a certificate of how good the answer is.
"""

from importlib import import_module
from typing import Any

from widemargin.base.span_map import SpanMap
from widemargin.certificate import Certificate
from widemargin.discriminant import (
    KernelFisherDA,
    LocalFisherDA,
    LocalityPreservingProjection,
    MarginMetric,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
)
from widemargin.model_files import load, save
from widemargin.outliers import CoreVectorDescription, MarginOneClass
from widemargin.regression import CoreVectorRegressor, MarginRegressor, MarginRegressorCV
from widemargin.reporting import report
from widemargin.sparse import (
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
    SparseMarginRegressor,
    SparseOneClass,
)
from widemargin.svm import (
    BallVectorClassifier,
    CoreVectorClassifier,
    MarginClassifier,
    MarginClassifierCV,
)

__all__ = [
    "BallVectorClassifier",
    "Certificate",
    "CoreVectorClassifier",
    "CoreVectorDescription",
    "CoreVectorRegressor",
    "KernelFisherDA",
    "LocalFisherDA",
    "LocalityPreservingProjection",
    "MarginClassifier",
    "MarginClassifierCV",
    "MarginMetric",
    "MarginOneClass",
    "MarginRegressor",
    "MarginRegressorCV",
    "MaxMarginDA",
    "MaxiMinDA",
    "PairwiseAccuracyDA",
    "ReducedSVMClassifier",
    "ReducedSetClassifier",
    "SpanMap",
    "SparseFisherClassifier",
    "SparseMarginClassifier",
    "SparseMarginRegressor",
    "SparseOneClass",
    "load",
    "report",
    "save",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Return `widemargin.export`, which is imported when it is first used."""
    if name == "export":
        return import_module("widemargin.export")
    raise AttributeError(f"module 'widemargin' has no attribute {name!r}")
