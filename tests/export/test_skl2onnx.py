"""Pipelines with our estimators convert by skl2onnx."""

import numpy as np
import onnxruntime
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.reference.data import wine
from widemargin import (
    KernelFisherDA,
    MarginClassifier,
    MarginOneClass,
    MarginRegressor,
    SpanMap,
    SparseOneClass,
    export,
)

skl2onnx = pytest.importorskip("skl2onnx")


def asked(pipeline, X):
    export.register_skl2onnx()
    graph = skl2onnx.to_onnx(pipeline, X[:1], target_opset=17)
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": X})


@pytest.mark.parametrize(
    "machine",
    [
        MarginClassifier(),
        MarginClassifier(engine="cells", cells=60),
        MarginClassifier(scale="auto", metric="diagonal"),
        MarginOneClass(),
        SparseOneClass(5, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pipeline_that_ends_in_a_machine_of_ours_converts(machine, dtype):
    X, y = wine()
    X = (X * [*range(1, 14)]).astype(dtype)
    pipeline = make_pipeline(StandardScaler(), machine).fit(X, y)
    label, scores = asked(pipeline, X)
    expected = pipeline.decision_function(X)
    # Rows on the border of a detector fall on either side by the rounding of the scaler.
    clear = np.abs(expected.reshape(len(X), -1)).max(axis=1) > 1e-5
    assert clear.mean() > 0.9 and (label == pipeline.predict(X))[clear].all()
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    assert scores.dtype == dtype


@pytest.mark.parametrize("features", [SpanMap(30), KernelFisherDA()], ids=repr)
def test_a_pipeline_through_features_of_ours_converts(features):
    X, y = wine()
    X = X.astype(np.float32)  # skl2onnx's own classifier has no other
    pipeline = make_pipeline(StandardScaler(), features, LogisticRegression()).fit(X, y)
    label, _ = asked(pipeline, X)
    assert (label == pipeline.predict(X)).all()


def test_a_regressor_in_a_pipeline_converts():
    X, y = wine()
    pipeline = make_pipeline(StandardScaler(), MarginRegressor()).fit(X, X[:, 0] * y)
    (found,) = asked(pipeline, X)
    np.testing.assert_allclose(found, pipeline.predict(X), rtol=1e-5, atol=1e-5)


def test_two_machines_in_one_pipeline_have_names_of_their_own():
    X, y = wine()
    pipeline = make_pipeline(SpanMap(30), SpanMap(10), MarginClassifier()).fit(X, y)
    label, _ = asked(pipeline, X)
    assert (label == pipeline.predict(X)).all()
