"""The contract of scikit-learn, for every estimator, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    CoreVectorDescription,
    CoreVectorRegressor,
    KernelFisherDA,
    LocalFisherDA,
    LocalityPreservingProjection,
    MarginClassifier,
    MarginClassifierCV,
    MarginMetric,
    MarginOneClass,
    MarginRegressor,
    MarginRegressorCV,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SpanMap,
    SparseFisherClassifier,
    SparseMarginClassifier,
    SparseMarginRegressor,
    SparseOneClass,
)

# One thread, except where all parameters are the defaults; no more steps than it takes.
ONE = {"n_jobs": 1}
FEW = {"n_jobs": 1, "max_iter": 2}
ESTIMATORS = [
    CoreVectorClassifier(),
    CoreVectorClassifier(growth="one", tol=1e-1, **ONE),
    CoreVectorClassifier(kernel="linear", stopping="ball", epsilon=1e-4, **ONE),
    BallVectorClassifier(),
    BallVectorClassifier(kernel="laplacian", stopping="ball", epsilon=1e-3, **ONE),
    MarginClassifier(),
    MarginClassifier(engine="span", **ONE),
    MarginClassifier(engine="span", vectors="random", max_vectors=20, kernel="linear", **ONE),
    MarginClassifier(engine="span", vectors="leverage", **ONE),
    MarginClassifier(engine="cells", **ONE),
    MarginClassifier(engine="cells", cells=8, **ONE),
    MarginClassifier(engine="cells", cells=20, overlap=0.0, blend=0.0, kernel="linear", **ONE),
    MarginClassifier(engine="cells", cells=8, max_vectors=40, **ONE),
    MarginClassifier(scale="auto", **ONE),
    MarginClassifier(metric="full", scale="auto", **ONE),
    MarginClassifier(metric="diagonal", kernel="laplacian", **ONE),
    MarginClassifierCV(Cs=2, cv=2),
    MarginClassifierCV(Cs=2, cv=2, kernel="linear", engine="span", vectors="random", **ONE),
    MarginClassifierCV(Cs=2, cv=2, engine="cells", cells=8, **ONE),
    MarginClassifierCV(
        Cs=[1.0], gammas=["scale", 0.1], cv=2, engine="cells", cells=16, per_cell=True, **ONE
    ),
    CoreVectorRegressor(),
    CoreVectorRegressor(growth="one", tol=1e-1, **ONE),
    CoreVectorRegressor(kernel="linear", stopping="ball", fit_intercept=False, **ONE),
    MarginRegressor(),
    MarginRegressor(loss="squared_epsilon_insensitive", fit_intercept=False, **ONE),
    MarginRegressor(loss="epsilon_insensitive", **ONE),
    MarginRegressor(loss="quantile", **ONE),
    MarginRegressor(loss="quantile", engine="span", **ONE),
    MarginRegressor(engine="span", scale="auto", **ONE),
    MarginRegressor(metric="full", scale="auto", **ONE),
    MarginRegressor(engine="span", vectors="kmeans", max_vectors=20, kernel="linear", **ONE),
    MarginRegressor(engine="cells", cells=8, **ONE),
    MarginRegressorCV(Cs=2, gammas=2, cv=2),
    MarginRegressorCV(Cs=2, gammas=1, cv=2, loss="quantile", quantile=0.7),
    MarginRegressorCV(
        (0.1, 10.0),
        1,
        cv=2,
        loss="squared_epsilon_insensitive",
        epsilons=1,
        engine="span",
        **ONE,
    ),
    MarginRegressor(loss="epsilon_insensitive", engine="cells", cells=8, **ONE),
    MarginOneClass(),
    MarginOneClass(0.1, engine="span", scale="robust", **ONE),
    MarginOneClass(engine="cells", cells=8, **ONE),
    SpanMap(),
    SpanMap(20, vectors="leverage", **ONE),
    SpanMap(20, vectors="core", gamma="mean_distance", **ONE),
    MaxMarginDA(),
    MaxMarginDA(kernel="rbf", solver="deflation", **ONE),
    MaxMarginDA(kernel="rbf", solver="direct", constraint="uncorrelated", **ONE),
    MaxMarginDA(kernel="rbf", solver="span", across="all", **ONE),
    MaxMarginDA(kernel="rbf", solver="core", **ONE),
    MaxMarginDA(loss="hinge", **ONE),
    MaxMarginDA(kernel="rbf", loss="hinge", **ONE),
    MaxMarginDA(kernel="rbf", loss="hinge", solver="direct", **ONE),
    MarginMetric(),
    MarginMetric(1, kind="diagonal", kernel="laplacian", validation_fraction=0.0, **ONE),
    LocalFisherDA(),
    LocalFisherDA(1, embedding="orthonormalized", shrinkage=None, **ONE),
    LocalFisherDA(kernel="rbf", n_vectors=20, embedding="plain", **ONE),
    LocalityPreservingProjection(1),
    LocalityPreservingProjection(1, supervised=True, affinity="binary", variance=0.99, **ONE),
    LocalityPreservingProjection(kernel="rbf", n_vectors=20, **ONE),
    PairwiseAccuracyDA(),
    PairwiseAccuracyDA(1, shrinkage="auto", weighting="equal", **ONE),
    PairwiseAccuracyDA(kernel="rbf", n_vectors=20, shrinkage="auto", **ONE),
    KernelFisherDA(),
    KernelFisherDA(solver="span", **ONE),
    KernelFisherDA(kernel="linear", regularization=0.0, **ONE),
    MaxiMinDA(),
    MaxiMinDA(1, kernel="rbf", n_vectors=10, sharpness=1.0, shrinkage=0.1, **ONE),
    MaxiMinDA(1, rounding="eigen", shrinkage=0.1, **ONE),
    MaxiMinDA(1, solver="online", rounding="eigen", n_updates=20, shrinkage="auto", **ONE),
    MaxiMinDA(
        1, sharpness=float("inf"), shrinkage=0.1, C=10.0, loss="squared_hinge", n_init=0, **ONE
    ),
    CoreVectorDescription(),
    CoreVectorDescription(C=1.0, kernel="linear", **ONE),
    SparseMarginClassifier(max_iter=2),
    SparseMarginClassifier(2, loss="squared_hinge", init="random", grow="double", **FEW),
    SparseMarginClassifier(3, share_vectors=True, kernel="linear", **FEW),
    SparseMarginClassifier(3, share_vectors=True, loss="squared_hinge", **FEW),
    SparseFisherClassifier(3, **FEW),
    SparseMarginRegressor(max_iter=2),
    SparseMarginRegressor(3, loss="squared_epsilon_insensitive", fit_intercept=False, **FEW),
    SparseMarginRegressor(3, loss="epsilon_insensitive", init="random", grow="double", **FEW),
    SparseMarginRegressor(3, loss="quantile", kernel="linear", **FEW),
    SparseOneClass(max_iter=2),
    SparseOneClass(3, nu=0.1, scale="robust", init="random", grow="one", **FEW),
    ReducedSetClassifier(n_vectors=2, n_restarts=1, max_iter=2),
    ReducedSetClassifier(method="mrs", refine=False, n_vectors=2, n_restarts=1, **FEW),
    ReducedSetClassifier(
        MarginClassifier(n_jobs=1), method="mrs", n_vectors=2, n_restarts=1, **FEW
    ),
    ReducedSVMClassifier(),
    ReducedSVMClassifier(5, method="mrsvm", share_vectors=True, **ONE),
]


# Some checks give random labels, and there the linear machine of the hinge is a constant.
@pytest.mark.filterwarnings("ignore:Fewer than n_directions=1 directions")
# A few steps are enough here.
@pytest.mark.filterwarnings(r"ignore:Sparse\w+ stopped before its rule.*\(max_iter=\d+ reached")
@parametrize_with_checks(ESTIMATORS)
def test_the_estimator_meets_scikit_learns_contract(estimator, check):
    check(estimator)
