"""scikit-learn's checks of the array API, for all estimators that work on a device.

A pipeline around an estimator leaves out what we do otherwise: fitted attributes are NumPy's on any
device, and a machine that was fitted on one of them answers on all.
"""

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_array_api_input

from widemargin import (
    KernelFisherDA,
    MarginClassifier,
    MarginClassifierCV,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
    SpanMap,
    SparseMarginClassifier,
)

ESTIMATORS = [
    MarginClassifier(),
    MarginClassifier(engine="span"),
    MarginClassifier(engine="cells", cells=8),
    MarginClassifierCV(Cs=2, cv=2),
    SpanMap(10),
    MaxMarginDA(),
    MaxMarginDA(kernel="rbf", max_vectors=10),
    MaxiMinDA(),
    MaxiMinDA(1, kernel="rbf", n_vectors=10, shrinkage=0.1),
    KernelFisherDA(),
    KernelFisherDA(solver="span", n_vectors=10),
    PairwiseAccuracyDA(),
    SparseMarginClassifier(3),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("device_name", ["CPU_DEVICE", "device1"])
def test_methods_answer_in_the_namespace_and_on_the_device_of_the_rows(
    estimator, dtype, device_name, monkeypatch
):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_array_api_input(
        type(estimator).__name__,
        make_pipeline(estimator),
        array_namespace="array_api_strict",
        device_name=device_name,
        dtype_name=dtype,
    )


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_methods_answer_so_in_torch(estimator, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_array_api_input(
        type(estimator).__name__,
        make_pipeline(estimator),
        array_namespace="torch",
        device_name="cuda" if torch.cuda.is_available() else "cpu",
        dtype_name="float64",
    )
