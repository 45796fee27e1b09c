"""The contract of scikit-learn, for every estimator, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    KernelFisherDA,
    LocalFisherDA,
    LocalityPreservingProjection,
    MarginClassifier,
    MarginClassifierCV,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
    SpanMap,
)
from widemargin.sparse import SparseFisherClassifier, SparseMarginClassifier

ESTIMATORS = [
    CoreVectorClassifier(),
    CoreVectorClassifier(growth="one"),
    CoreVectorClassifier(kernel="linear", stopping="ball", epsilon=1e-4),
    BallVectorClassifier(),
    BallVectorClassifier(kernel="laplacian", stopping="ball", epsilon=1e-3),
    MarginClassifier(),
    MarginClassifier(engine="span"),
    MarginClassifier(engine="span", vectors="random", max_vectors=20, kernel="linear"),
    MarginClassifier(engine="span", vectors="leverage"),
    MarginClassifier(engine="cells"),
    MarginClassifier(engine="cells", cells=8),
    MarginClassifier(engine="cells", cells=20, overlap=0.0, blend=0.0, kernel="linear"),
    MarginClassifier(engine="cells", cells=8, max_vectors=40),
    MarginClassifierCV(Cs=3, cv=3),
    MarginClassifierCV(Cs=3, cv=3, kernel="linear", engine="span", vectors="random"),
    MarginClassifierCV(Cs=3, cv=3, engine="cells", cells=8),
    MarginClassifierCV(Cs=2, gammas=["scale", 0.1], cv=3, engine="cells", cells=8, per_cell=True),
    SpanMap(),
    SpanMap(20, vectors="leverage"),
    SpanMap(20, vectors="core", gamma="mean_distance"),
    MaxMarginDA(),
    MaxMarginDA(kernel="rbf", solver="deflation"),
    MaxMarginDA(kernel="rbf", solver="direct", constraint="uncorrelated"),
    MaxMarginDA(kernel="rbf", solver="span", across="all"),
    MaxMarginDA(kernel="rbf", solver="core"),
    MaxMarginDA(loss="hinge"),
    MaxMarginDA(kernel="rbf", loss="hinge"),
    MaxMarginDA(kernel="rbf", loss="hinge", solver="direct"),
    LocalFisherDA(),
    LocalFisherDA(1, embedding="orthonormalized", shrinkage=None),
    LocalFisherDA(kernel="rbf", n_vectors=20, embedding="plain"),
    LocalityPreservingProjection(1),
    LocalityPreservingProjection(1, supervised=True, affinity="binary", variance=0.99),
    LocalityPreservingProjection(kernel="rbf", n_vectors=20),
    PairwiseAccuracyDA(),
    PairwiseAccuracyDA(1, shrinkage="auto", weighting="equal"),
    PairwiseAccuracyDA(kernel="rbf", n_vectors=20, shrinkage="auto"),
    KernelFisherDA(),
    KernelFisherDA(solver="span"),
    KernelFisherDA(kernel="linear", regularization=0.0),
    MaxiMinDA(),
    MaxiMinDA(1, kernel="rbf", n_vectors=20, n_init=1),
    MaxiMinDA(1, rounding="eigen", shrinkage=0.1),
    MaxiMinDA(1, solver="online", rounding="eigen", n_updates=100, shrinkage="auto"),
    MaxiMinDA(1, sharpness=float("inf"), shrinkage="auto", C=10.0, loss="squared_hinge", n_init=1),
    SparseMarginClassifier(max_iter=10),
    SparseMarginClassifier(3, loss="squared_hinge", init="random", grow="double", max_iter=10),
    SparseMarginClassifier(4, share_vectors=True, kernel="linear", max_iter=10),
    SparseMarginClassifier(4, share_vectors=True, loss="squared_hinge", max_iter=10),
    SparseFisherClassifier(3, max_iter=10),
]


# Some checks give random labels, and there the linear machine of the hinge is a constant.
@pytest.mark.filterwarnings("ignore:Fewer than n_directions=1 directions")
# A few steps are enough here.
@pytest.mark.filterwarnings(r"ignore:Sparse\w+ stopped before its rule.*\(max_iter=\d+ reached")
@parametrize_with_checks(ESTIMATORS)
def test_the_estimator_meets_scikit_learns_contract(estimator, check):
    check(estimator)
