"""Maximum-margin kernel learning on large data.

Classifiers and discriminant features whose cost is linear in the rows, whose memory does not grow
with them, and which print a certificate of how good the answer is.
"""

from widemargin.base.span_map import SpanMap
from widemargin.certificate import Certificate
from widemargin.discriminant import (
    KernelFisherDA,
    LocalFisherDA,
    LocalityPreservingProjection,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
)
from widemargin.outliers import CoreVectorDescription, MarginOneClass
from widemargin.regression import CoreVectorRegressor, MarginRegressor
from widemargin.sparse import (
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
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
    "MarginOneClass",
    "MarginRegressor",
    "MaxMarginDA",
    "MaxiMinDA",
    "PairwiseAccuracyDA",
    "ReducedSVMClassifier",
    "ReducedSetClassifier",
    "SpanMap",
    "SparseFisherClassifier",
    "SparseMarginClassifier",
]
__version__ = "0.1.0"
