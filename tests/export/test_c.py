"""C source compiles without a warning, says what the models say, and is small."""

import re

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.travel.compiled import GCC, Compiled
from tests.export.test_onnx import unlike
from tests.reference.data import digits, wine
from widemargin import (
    CoreVectorDescription,
    KernelFisherDA,
    MarginClassifier,
    MarginMetric,
    MarginOneClass,
    MarginRegressor,
    MarginRegressorCV,
    MaxiMinDA,
    ReducedSetClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
    SparseMarginRegressor,
    SparseOneClass,
    export,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no gcc")


def of(expected):
    return expected[:, None] if expected.ndim == 1 else expected


CLASSIFIERS = [
    SparseMarginClassifier(5, max_iter=10),
    SparseMarginClassifier(5, share_vectors=True, max_iter=10),
    SparseFisherClassifier(5, max_iter=10),
    MarginClassifier(engine="span", max_vectors=20),
    MarginClassifier(engine="exact", multi_class="ovo"),
    MarginClassifier(engine="exact", multi_class="ovr"),
    ReducedSetClassifier(SVC(), 5, n_restarts=2),
    ReducedSetClassifier(SVC(break_ties=True, decision_function_shape="ovr"), 5, n_restarts=2),
]


@needs_gcc
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: repr(model)[:70])
def test_a_classifier_in_c_predicts_what_it_predicts(model, n_classes, tmp_path):
    X, y = digits(n_classes, 100 * n_classes)
    model.set_params(random_state=0).fit(X[::2], y[::2])
    made = Compiled(export.c(model), tmp_path)
    # In single precision, as the rows of C are.
    clear = np.sort(of(made.values(X)), axis=1)
    assert (model.classes_[made.places(X)] == model.predict(X)).all()
    if clear.shape[1] == 1:
        np.testing.assert_allclose(clear[:, 0], model.decision_function(X), rtol=1e-4, atol=1e-4)
    assert made.sizes()["code"] < 2048 and made.sizes()["memory"] == 0


KERNELS = [
    "linear", "poly", "normalized_poly", "cosine_power", "rbf", "laplacian", "exponential",
    "sigmoid", "inverse_distance", "inverse_squared_distance",
]  # fmt: skip


@needs_gcc
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_has_the_values_that_it_has(kernel, tmp_path):
    X, y = wine()
    model = MarginClassifier(0.01, kernel=kernel, gamma=0.1, degree=2, coef0=0.5).fit(X, y == 1)
    made = Compiled(export.c(model), tmp_path)
    X = np.vstack([X, np.zeros_like(X[:1])])
    np.testing.assert_allclose(
        made.values(X)[:, 0], model.decision_function(X), rtol=1e-4, atol=1e-4
    )
    assert made.sizes()["code"] < 2048
    assert ("expf" in made.source) == (kernel in ("rbf", "laplacian", "exponential", "sigmoid"))


@needs_gcc
@pytest.mark.parametrize(
    "model",
    [
        MarginRegressor(engine="span", max_vectors=20, scale="auto"),
        MarginRegressor(loss="quantile", quantiles=[0.9, 0.1]),
        MarginRegressor(loss="quantile", quantile=0.9),
        MarginRegressorCV([1.0], [0.1], kernels=None, cv=2),
        SparseMarginRegressor(5, max_iter=4),
        MarginMetric(3),
        KernelFisherDA(2, solver="span", n_vectors=20),
        MaxiMinDA(2),
    ],
    ids=lambda model: repr(model)[:60],
)
def test_numbers_in_c_are_those_of_the_model(model, tmp_path):
    X, y = wine()
    model.set_params(random_state=0).fit(X, y)
    expected = model.predict(X) if hasattr(model, "predict") else model.transform(X)
    found = Compiled(export.c(model), tmp_path).values(X)
    np.testing.assert_allclose(found, of(expected), rtol=1e-3, atol=1e-4)


@needs_gcc
@pytest.mark.parametrize(
    "model",
    [
        MarginOneClass(),
        MarginOneClass(scale="none", engine="span", max_vectors=10),
        MarginOneClass(kernel="cosine_power", degree=2),
        SparseOneClass(5, max_iter=4),
        CoreVectorDescription(),
        CoreVectorDescription(kernel="linear"),
        CoreVectorDescription(kernel="poly", degree=2, coef0=1.0),
        CoreVectorDescription(kernel="cosine_power"),
    ],
    ids=lambda model: repr(model)[:60],
)
def test_detectors_in_c_find_the_same_outliers(model, tmp_path):
    X, _ = wine()
    model.set_params(random_state=0).fit(X)
    made = Compiled(export.c(model), tmp_path)
    X = np.vstack([X, 9.0 + X[:5]])
    expected = model.decision_function(X)
    np.testing.assert_allclose(made.values(X)[:, 0], expected, rtol=1e-3, atol=1e-4)
    clear = np.abs(expected) > 1e-4
    assert (made.places(X) == model.predict(X))[clear].all()


@needs_gcc
@pytest.mark.parametrize(
    "options",
    [
        {"scale": "auto"},
        {"scale": "auto", "metric": "full"},
        {"scale": "auto", "metric": "diagonal"},
        {"scale": "auto", "metric": "diagonal", "kernel": "linear"},
        {"scale": "auto", "kernel": "normalized_poly", "degree": 2, "coef0": 1.0},
    ],
    ids=str,
)
def test_rows_that_a_model_maps_are_mapped_in_c(options, tmp_path):
    X, y = unlike()
    X = X.astype(np.float32).astype(np.float64)
    model = MarginClassifier(engine="exact", random_state=0, **options).fit(X, y == 1)
    X[0, 2] = 1e30
    made = Compiled(export.c(model), tmp_path)
    np.testing.assert_allclose(
        made.values(X)[:, 0], model.decision_function(X), rtol=1e-3, atol=1e-3
    )
    assert made.sizes()["code"] < 2048 and made.sizes()["memory"] == 0


@needs_gcc
def test_a_metric_of_few_columns_is_a_product_in_c(tmp_path):
    X, y = wine()
    model = MarginClassifier(metric="full", random_state=0).fit(X, y == 1)
    model.metric_root_ = model.metric_root_[:, :4]
    model.support_vectors_ = np.ascontiguousarray(model.support_vectors_[:, :4])
    made = Compiled(export.c(model), tmp_path)
    np.testing.assert_allclose(
        made.values(X)[:, 0], model.decision_function(X), rtol=1e-3, atol=1e-3
    )


@needs_gcc
@pytest.mark.parametrize("fixed_point", [False, True])
def test_offsets_that_change_the_order_are_added_between_two_sorts(fixed_point, tmp_path):
    X, y = wine()
    model = MarginRegressor(loss="quantile", quantiles=[0.2, 0.8], gamma=0.05).fit(X, y)
    model.offsets_ = np.array([0.7, -0.2])
    made = Compiled(export.c(model, fixed_point=fixed_point), tmp_path)
    np.testing.assert_allclose(made.values(X), model.predict(X), atol=2e-2 if fixed_point else 1e-4)


@needs_gcc
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "inverse_squared_distance", "linear"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_whole_numbers_predict_the_same_where_the_margin_is_clear(kernel, n_classes, tmp_path):
    X, y = digits(n_classes, 100 * n_classes)
    gamma = {"laplacian": 0.02}.get(kernel, 0.03)
    model = SparseMarginClassifier(
        8, kernel=kernel, gamma=gamma, share_vectors=n_classes > 2, max_iter=10, random_state=0
    ).fit(X[::2], y[::2])
    made = Compiled(export.c(model, fixed_point=True), tmp_path)
    scores = model.decision_function(X)
    error = np.abs(made.values(X) - of(scores)).max() / np.abs(scores).max()
    assert error < 5e-3
    same = model.classes_[made.places(X)] == model.predict(X)
    ordered = np.sort(of(scores), axis=1)
    margin = np.abs(scores) if n_classes == 2 else ordered[:, -1] - ordered[:, -2]
    assert same[margin > 2 * error * np.abs(scores).max()].all() and same.mean() > 0.98
    assert "float" not in made.source.partition("*/")[2] and "expf" not in made.source
    assert made.sizes()["code"] < 2048 and made.sizes()["memory"] == 0


@needs_gcc
def test_detectors_and_regressors_come_in_whole_numbers(tmp_path):
    X, y = wine()
    for i, model in enumerate(
        [
            MarginOneClass(scale="none", gamma=0.05),
            CoreVectorDescription(gamma=0.05),
            MarginRegressor(gamma=0.05, engine="span", max_vectors=20),
        ]
    ):
        model.set_params(random_state=0).fit(X, y)
        (tmp_path / str(i)).mkdir()
        made = Compiled(export.c(model, fixed_point=True), tmp_path / str(i))
        answer = getattr(model, "decision_function", model.predict)(X)
        np.testing.assert_allclose(made.values(X)[:, 0], answer, atol=5e-3 * np.abs(answer).max())


@needs_gcc
def test_rows_far_away_do_not_overflow_in_whole_numbers(tmp_path):
    X, y = wine()
    model = MarginClassifier(gamma=50.0).fit(X, y == 1)
    made = Compiled(export.c(model, fixed_point=True), tmp_path)
    far = np.full_like(X[:1], 32767 / made.unit)
    bias = model.decision_function(far)
    np.testing.assert_allclose(made.values(far)[:, 0], bias, atol=1e-3)


@needs_gcc
def test_a_dozen_vectors_take_little_flash_and_no_memory(tmp_path):
    X, y = digits(10, None)
    model = SparseMarginClassifier(
        12, share_vectors=True, loss="squared_hinge", max_iter=30, random_state=0
    ).fit(X[:1000], y[:1000])
    made = Compiled(export.c(model), tmp_path)
    sizes = made.sizes()
    # Vectors and coefficients in four bytes each, and hardly anything beside them.
    assert sizes["constants"] <= 4 * 12 * (64 + 10) + 4 * 10 + 64
    assert sizes["code"] < 1024 and sizes["memory"] == 0
    assert (made.places(X) == model.predict(X)).mean() > 0.999


def test_nothing_is_allocated_and_no_library_is_called_but_expf():
    X, y = wine()
    source = export.c(SparseMarginClassifier(3, max_iter=4, random_state=0).fit(X, y))
    assert "malloc" not in source and re.findall(r"#include \S+", source) == ["#include <math.h>"]
    assert set(re.findall(r"(\w+f)\(", source)) == {"expf"}


def test_a_label_cannot_end_the_comment():
    X, y = wine()
    names = np.array(["a*/int x;/*", "b\\", "c"])
    source = export.c(MarginClassifier(engine="span", max_vectors=5).fit(X, names[y]))
    assert source.partition("*/")[0].count("int x") == 1


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (MarginClassifier(engine="cells", cells=60), {}, r"cells, which is no model for C"),
        (MarginClassifier(kernel=lambda A, B: A @ B.T), {}, r"cannot be said in C"),
        (
            MarginClassifier(kernel="poly"),
            {"fixed_point": True},
            r"fixed_point=True is not there for kernel='poly'",
        ),
        (MarginOneClass(), {"fixed_point": True}, r"fit it with scale='none'"),
        (MarginClassifier(scale="auto"), {"fixed_point": True}, r"rows that are scaled before"),
        (MarginRegressor(engine="cells", cells=60), {}, r"or use SparseMarginRegressor"),
        (MarginOneClass(engine="cells", cells=60), {}, r"or use SparseOneClass"),
    ],
    ids=["cells", "function", "poly", "scaled", "mapped", "cells of numbers", "cells of one class"],
)
def test_what_c_cannot_say_is_an_error_with_a_remedy(model, options, said):
    X, y = wine()
    with pytest.raises(TypeError, match=said):
        export.c(model.fit(X, y), **options)


@pytest.mark.parametrize("name", ["1st", "a b", "", "ä", "x;"])
def test_a_name_that_c_does_not_know_is_an_error(name):
    X, y = wine()
    with pytest.raises(ValueError, match=r"name=.* is no name in C"):
        export.c(MarginClassifier().fit(X, y), name=name)
