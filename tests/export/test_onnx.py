"""ONNX graphs say what the models say, in onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from scipy import sparse
from sklearn.svm import SVC

from tests.reference import classifier_ways, projection_ways
from tests.reference.data import digits, wine
from widemargin import (
    CoreVectorDescription,
    CoreVectorRegressor,
    MarginClassifier,
    MarginClassifierCV,
    MarginMetric,
    MarginOneClass,
    MarginRegressor,
    MarginRegressorCV,
    MaxiMinDA,
    ReducedSetClassifier,
    SpanMap,
    SparseMarginRegressor,
    SparseOneClass,
    export,
)
from widemargin.export.blueprint import blueprint_of
from widemargin.kernels import KERNELS, RBF
from widemargin.rows import RowMap

# Searches for vectors are cut short, which changes nothing here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def asked(graph, X):
    """Return the outputs of a graph by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def agrees(model, X, **options):
    """Compare everything that a model and its graph say."""
    found = asked(export.onnx(model, dtype="float64", **options), X)
    if hasattr(model, "decision_function"):
        np.testing.assert_allclose(found["scores"], model.decision_function(X), **CLOSE)
        assert (found["label"] == model.predict(X)).all()
    elif hasattr(model, "predict"):
        np.testing.assert_allclose(found["prediction"], model.predict(X), **CLOSE)
    else:
        np.testing.assert_allclose(found["features"], model.transform(X), **CLOSE)
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@classifier_ways.every()
def test_a_classifier_in_onnx_says_what_it_says(way, n_classes):
    X, _ = digits(n_classes, 200)
    agrees(classifier_ways.fitted(way, n_classes), X)


@projection_ways.every()
def test_a_projection_in_onnx_says_what_it_says(way):
    X, _ = wine()
    agrees(projection_ways.fitted(way), X)


@pytest.mark.parametrize(
    "model",
    [
        MarginRegressor(),
        MarginRegressor(engine="span", max_vectors=20),
        MarginRegressor(scale="auto"),
        MarginRegressor(scale="auto", engine="cells", cells=40),
        MarginRegressor(scale="auto", metric="diagonal"),
        MarginRegressor(engine="cells", cells=40),
        MarginRegressor(loss="epsilon_insensitive"),
        MarginRegressor(loss="quantile", quantiles=[0.1, 0.9, 0.5]),
        MarginRegressor(loss="quantile", quantiles=[0.1, 0.9], engine="cells", cells=60),
        MarginRegressor(loss="epsilon_insensitive", engine="cells", cells=60),
        MarginRegressorCV([1.0], [0.1], kernels=None, cv=2),
        SparseMarginRegressor(5, max_iter=4),
        CoreVectorRegressor(),
    ],
    ids=lambda model: repr(model)[:60],
)
def test_a_regressor_in_onnx_says_what_it_says(model):
    X, y = wine()
    agrees(model.set_params(random_state=0).fit(X, y + X[:, 0]), X)


@pytest.mark.parametrize("options", [{"quantile": 0.9}, {"quantiles": [0.1, 0.2, 0.9]}], ids=str)
def test_what_a_calibration_adds_is_added(options):
    X, y = wine()
    model = MarginRegressor(10.0, loss="quantile", **options).fit(X[::2], (y + X[:, 0])[::2])
    # Also such that the order of the quantiles changes.
    for offsets in (model.offsets_, np.arange(len(model.offsets_))[::-1] + 0.5):
        model.offsets_ = offsets
        agrees(model, X)


# Columns of all sizes, and values far away.
def unlike():
    X, y = wine()
    X = X * np.logspace(-3, 3, X.shape[1]) + np.arange(X.shape[1])
    X[::20, 3] *= 1e6
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        MarginClassifier(scale="auto"),
        MarginClassifier(scale="auto", metric="full"),
        MarginClassifier(metric="diagonal"),
        MarginClassifier(scale="auto", metric=np.diag(np.arange(13.0))),
        MarginClassifier(scale="auto", metric="diagonal", engine="cells", cells=60),
        MarginClassifier(scale="auto", engine="span", max_vectors=20, kernel="laplacian"),
        MarginClassifierCV([1.0, 10.0], cv=2),
        MarginMetric(),
        MarginMetric(2, scale=None),
        MarginMetric(kind="diagonal"),
    ],
    ids=lambda model: repr(model)[:70],
)
def test_rows_that_a_model_maps_are_mapped_in_onnx(model):
    X, y = unlike()
    model.set_params(random_state=0).fit(X[::2], y[::2])
    assert isinstance(blueprint_of(model).row_map, RowMap)
    agrees(model, X)


def test_a_metric_of_few_columns_is_a_product():
    X, y = unlike()
    model = MarginClassifier(scale="auto", metric="full", random_state=0).fit(X, y)
    # A root with fewer columns than rows, as a metric of low rank has.
    model.metric_root_ = model.metric_root_[:, :4]
    model.support_vectors_ = np.ascontiguousarray(model.support_vectors_[:, :4])
    agrees(model, X)


def test_a_value_beyond_all_is_bent_in_both_precisions():
    X, y = unlike()
    model = MarginClassifier(scale="auto").fit(X, y)
    far = X[:5].copy()
    far[:, 2] = 1e30
    for precision in ("float32", "float64"):
        found = asked(export.onnx(model, dtype="float64", precision=precision), far)
        np.testing.assert_allclose(
            found["scores"], model.decision_function(far), rtol=1e-3, atol=1e-3
        )


def test_a_model_of_data_frames_is_an_error_that_names_what_can_be_exported():
    pandas = pytest.importorskip("pandas")
    X, y = wine()
    frame = pandas.DataFrame(X[:, :4], columns=list("abcd"))
    frame["e"] = np.where(X[:, 4] > 0, "much", "little")
    frame.loc[::7, "a"] = np.nan
    model = MarginClassifierCV([1.0], cv=2, random_state=0).fit(frame, y)
    with pytest.raises(TypeError, match=r"data frame.*best_estimator_.*preprocess_\.transform"):
        export.onnx(model)
    rows = model.preprocess_.transform(frame)
    assert (agrees(model.best_estimator_, rows)["label"] == model.predict(frame)).all()


def test_several_outputs_are_columns():
    X, _ = wine()
    found = agrees(MarginRegressor().fit(X[:, :8], X[:, 8:]), X[:, :8])
    assert found["prediction"].shape == (len(X), 5)


@pytest.mark.parametrize(
    "model",
    [
        MarginOneClass(),
        MarginOneClass(scale="standard", contamination=0.1),
        MarginOneClass(scale="none", engine="span", max_vectors=20),
        MarginOneClass(engine="cells", cells=40),
        MarginOneClass(engine="cells", cells=40, contamination=0.1, scale="none"),
        SparseOneClass(5, max_iter=4, contamination=0.1),
        CoreVectorDescription(),
        CoreVectorDescription(kernel="linear"),
        CoreVectorDescription(kernel="poly", degree=2, coef0=1.0),
        CoreVectorDescription(kernel="cosine_power"),
        CoreVectorDescription(C=0.1),
    ],
    ids=lambda model: repr(model)[:60],
)
def test_a_detector_in_onnx_says_what_it_says(model):
    X, _ = wine()
    found = agrees(model.set_params(random_state=0).fit(X[::2]), np.vstack([X, 9.0 + X[:5]]))
    assert (found["label"] == -1).any()


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"precomputed"}))
@pytest.mark.parametrize("engine", ["exact", "cells"])
def test_every_kernel_with_a_name_can_be_said(kernel, engine):
    X, y = wine()
    options = {"cells": 60} if engine == "cells" else {}
    # With a small C, for the sigmoid kernel is not positive semidefinite.
    model = MarginClassifier(
        0.01,
        engine=engine,
        kernel=kernel,
        gamma=0.1,
        degree=2,
        coef0=0.5,
        random_state=0,
        **options,
    )
    agrees(model.fit(X, y), X)


def test_a_row_of_zeros_has_no_direction():
    X, y = wine()
    model = MarginClassifier(kernel="cosine_power", degree=2).fit(X, y)
    agrees(model, np.vstack([X, np.zeros_like(X[:1])]))


def test_a_precomputed_kernel_takes_kernel_values():
    X, y = wine()
    K = RBF(0.1).block(X, X)
    agrees(MarginClassifier(kernel="precomputed").fit(K, y), K)
    assert asked(
        export.onnx(SpanMap(20, vectors="random", kernel="precomputed").fit(K)), np.float32(K)
    )


def test_a_kernel_that_is_a_function_is_an_error_with_the_names_that_can_be_used():
    X, y = wine()
    model = MarginClassifier(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(TypeError, match=r"kernel=<function .* cannot be said .*'rbf'"):
        export.onnx(model)


def test_a_kernel_of_ones_own_class_is_an_error():
    class Own(RBF):
        name = "rbf"

    X, y = wine()
    with pytest.raises(TypeError, match="cannot be said in operators of ONNX"):
        export.onnx(MarginClassifier(kernel=Own(0.1)).fit(X, y))


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_scores_have_the_shape_that_was_asked_for(multi_class, shape):
    X, y = digits(4, 200)
    model = MarginClassifier(multi_class=multi_class, decision_function_shape=shape).fit(X, y)
    found = agrees(model, X)
    assert found["scores"].shape == (len(X), 4 if shape == "ovr" else 6)


@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_of_a_reduced_set_are_counted_as_it_does(break_ties):
    X, y = digits(4, 200)
    svm = SVC(break_ties=break_ties, decision_function_shape="ovr").fit(X, y)
    agrees(ReducedSetClassifier(svm, 3, n_restarts=2, random_state=0).fit(X, y), X)


@pytest.mark.parametrize(
    "names",
    [["ä", "bee", "c"], [-1, 5, 70], [1.0, 2.0, 5.0], np.array(["x", "y", "z"], dtype=object)],
    ids=str,
)
def test_labels_keep_their_kind(names):
    X, y = wine()
    found = agrees(MarginClassifier().fit(X, np.asarray(names)[y]), X)
    assert set(found["label"]) == set(names)


def test_two_booleans_are_labels():
    X, y = wine()
    assert agrees(MarginClassifier().fit(X, y == 1), X)["label"].dtype == bool


def test_two_levels_of_cells_are_looked_at_as_the_machine_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.sin(3 * X).prod(axis=1) > 0
    model = MarginClassifier(engine="cells", cells=2, gamma=1.0, random_state=0).fit(X, y)
    assert hasattr(model, "cell_middles_")
    agrees(model, rng.normal(size=(200, 3)))


def test_cells_of_several_widths_have_one_each():
    X, y = digits(2, 300)
    search = classifier_ways.machine("search in cells").set_params(Cs=[1.0, 10.0]).fit(X, y)
    agrees(search, X)


def test_rows_far_from_the_origin_are_no_worse():
    X, y = wine()
    X = X + 1e5
    agrees(MarginClassifier(gamma=0.1).fit(X, y), X)
    agrees(MarginClassifier(gamma=0.1, kernel="laplacian").fit(X, y), X)


def test_float32_rows_and_arithmetic_are_close():
    X, y = wine()
    X = X.astype(np.float32)
    model = MarginClassifier().fit(X, y)
    for precision, tolerance in (("float64", 1e-5), ("float32", 1e-3)):
        graph = export.onnx(model, precision=precision)
        found = asked(graph, X)
        assert found["scores"].dtype == np.float32
        np.testing.assert_allclose(
            found["scores"], model.decision_function(X), rtol=tolerance, atol=tolerance
        )


def test_a_single_row_and_no_rows_are_answered():
    X, y = wine()
    for options in ({}, {"engine": "cells", "cells": 50}, {"kernel": "laplacian"}):
        graph = export.onnx(MarginClassifier(**options).fit(X, y), dtype="float64")
        assert asked(graph, X[:1])["label"].shape == (1,)
        # onnxruntime has no loop over no rows.
        if "cells" not in options:
            assert asked(graph, X[:0])["label"].shape == (0,)


def test_a_machine_of_sparse_rows_takes_dense_ones():
    X, y = digits(3, 150)
    for options in ({}, {"engine": "cells", "cells": 40}):
        model = MarginClassifier(random_state=0, **options).fit(sparse.csr_array(X), y)
        agrees(model, X)


def test_a_stream_is_finished_first():
    X, y = wine()
    model = MaxiMinDA(2, random_state=0).partial_fit(X, y)
    agrees(model, X)


@pytest.mark.parametrize("options", [{"dtype": "float16"}, {"precision": "half"}])
def test_another_type_is_an_error(options):
    X, y = wine()
    with pytest.raises(ValueError, match=r"must be 'float32' or 'float64'"):
        export.onnx(MarginClassifier().fit(X, y), **options)


def test_a_model_of_others_is_an_error_that_names_a_way():
    with pytest.raises(
        TypeError, match=r"SVC is not an estimator of widemargin.*register_skl2onnx"
    ):
        export.onnx(SVC())


def test_a_model_that_is_not_fitted_is_an_error():
    with pytest.raises(ValueError, match="not fitted"):
        export.onnx(MarginClassifier())
