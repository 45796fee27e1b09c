"""A report is true of its model, complete in itself, and escapes what is in the data."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from tests.reference.html_pages import Page
from widemargin import (
    CoreVectorDescription,
    KernelFisherDA,
    MarginClassifier,
    MarginClassifierCV,
    MarginOneClass,
    MarginRegressor,
    ReducedSetClassifier,
    SparseMarginClassifier,
)
from widemargin.reporting.certificate_words import certificate_words
from widemargin.reporting.class_sections import _confusions, _wilson
from widemargin.reporting.evidence import gather
from widemargin.reporting.growth_curve import growth_curve
from widemargin.reporting.importance import importances


def _evidence(model, X, y=None, **more):
    return gather(model, X, y, **({"names": None, "picture": None, "random_state": 0} | more))


def _cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["malignant", "benign"])[y]


def _wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def _numbers():
    return load_diabetes(return_X_y=True)


# Every kind of model: how it is made, its rows, and sections that its page has.
KINDS = {
    "two classes": (lambda: MarginClassifier(), _cancer, {"confusions", "margins", "calibration"}),
    "pairs of classes": (lambda: MarginClassifier(), _wine, {"closest", "importances", "rows"}),
    "against the rest": (lambda: MarginClassifier(multi_class="ovr"), _wine, {"margins"}),
    "a span": (lambda: MarginClassifier(engine="span", max_vectors=30), _wine, {"certificate"}),
    "cells": (lambda: MarginClassifier(engine="cells", cells=60), _wine, {"margins"}),
    "a search": (lambda: MarginClassifierCV(Cs=2, gammas=1, cv=2), _wine, {"margins", "costs"}),
    "few vectors": (lambda: SparseMarginClassifier(3), _cancer, {"margins"}),
    "a reduced set": (lambda: ReducedSetClassifier(n_vectors=3), _wine, {"certificate", "rows"}),
    "numbers": (lambda: MarginRegressor(), _numbers, {"predictions", "errors", "rows"}),
    "outliers": (lambda: MarginOneClass(contamination=0.1), _wine, {"scores", "labels", "rows"}),
    "a ball": (lambda: CoreVectorDescription(), _wine, {"scores", "rows"}),
    "a pipeline": (lambda: make_pipeline(StandardScaler(), MarginClassifier()), _wine, {"margins"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_page_that_is_complete_in_itself(kind):
    made, rows, expected = KINDS[kind]
    X, y = rows()
    model = made().fit(X, y)
    text = widemargin.report(model, X, y, learning_curve=True, max_time=2.0)
    page = Page(text)
    assert expected <= set(page.ids())
    assert len(page.ids()) == len(set(page.ids()))
    assert all(each.startswith(("#", "data:image/png;base64,")) for each in page.references)
    assert page.count("script") == 1
    assert page.handlers == []
    assert "http://" not in text and "https://" not in text
    assert "nan" not in " ".join(page.texts).lower().split()


def test_every_chart_is_well_formed_and_has_words_for_those_who_do_not_see_it():
    X, y = _wine()
    text = widemargin.report(MarginClassifier().fit(X, y), X, y, learning_curve=True)
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(charts) >= 5
    for chart in charts:
        root = ET.fromstring(chart)
        assert root.get("role") == "img"
        assert root.find("title").text
        assert len(root.find("desc").text) > 20
        assert root.find("title").text in root.get("aria-label")


def test_the_confusions_are_those_of_scikit_learn():
    X, y = _wine()
    model = MarginClassifier(C=0.01).fit(X[::3], y[::3])
    found = _confusions(_evidence(model, X, y))
    assert_array_equal(found, confusion_matrix(y, model.predict(X)))
    assert found.sum() > np.trace(found)


def test_margins_of_classes_against_the_rest_are_differences_of_scores():
    X, y = _wine()
    model = MarginClassifier(multi_class="ovr").fit(X, y)
    scores = model.decision_function(X)
    expected = [s[c] - max(np.delete(s, c)) for s, c in zip(scores, y, strict=True)]
    assert_allclose(_evidence(model, X, y).margins(), expected)


def test_margins_of_pairs_are_the_least_of_the_values_of_the_pairs():
    X, y = _wine()
    model = MarginClassifier(multi_class="ovo").fit(X, y)
    pairs = model.set_params(decision_function_shape="ovo").decision_function(X)
    signed = {(0, 1): pairs[:, 0], (0, 2): pairs[:, 1], (1, 2): pairs[:, 2]}
    signed |= {(j, i): -values for (i, j), values in signed.items()}
    expected = [
        min(values[row] for (i, _), values in signed.items() if i == c) for row, c in enumerate(y)
    ]
    assert_allclose(_evidence(model, X, y).margins(), expected)
    assert model.decision_function_shape == "ovo"


def test_margins_of_two_classes_are_signed_scores():
    X, y = _cancer()
    model = MarginClassifier().fit(X, y)
    sign = np.where(y == model.classes_[1], 1, -1)
    assert_allclose(_evidence(model, X, y).margins(), sign * model.decision_function(X))


def test_intervals_are_those_of_wilson():
    share, n = np.array([0.0, 0.3, 1.0]), np.array([20, 50, 7])
    low, high = _wilson(share, n)
    for a, b, s, m in zip(low, high, share, n, strict=True):
        expected = stats.binomtest(round(s * m), int(m)).proportion_ci(method="wilson")
        assert_allclose((a, b), expected, atol=1e-6)


def test_importances_agree_with_those_of_scikit_learn():
    X, y = _cancer()
    X = X[:, :8]
    model = MarginClassifier().fit(X, y)
    tried, losses = importances(_evidence(model, X, y), 60.0, 0)
    assert sorted(tried) == list(range(8))
    theirs = permutation_importance(model, X, y, n_repeats=10, random_state=0).importances_mean
    assert_allclose(losses[np.argsort(tried)], theirs, atol=0.03)


def test_importances_keep_to_their_time():
    X, y = _wine()
    model = MarginClassifier().fit(X, y)
    tried, losses = importances(_evidence(model, X, y), -1.0, 0)
    assert len(tried) == len(losses) == 0
    assert "importances" not in Page(widemargin.report(model, X, y, max_time=1e-9)).ids()


def test_the_learning_curve_holds_out_what_it_scores_on():
    X, y = _cancer()
    model = MarginClassifier().fit(X, y)
    curve = growth_curve(_evidence(model, X, y), 60.0, 0)
    assert curve.complete
    assert curve.rows[-1] == len(y) - len(y) // 4
    assert (np.diff(curve.rows) > 0).all()
    assert (curve.held_out > 0.85).all()
    short = growth_curve(_evidence(model, X, y), 1e-9, 0)
    assert not short.complete
    assert len(short.rows) == 0


def test_pictures_and_vectors_of_images_are_shown():
    X, y = load_digits(return_X_y=True)
    model = MarginClassifier().fit(X[:300], y[:300])
    text = widemargin.report(model, X[300:600], y[300:600], image_shape=(8, 8))
    page = Page(text)
    assert "vectors" in page.ids()
    assert page.count("img") >= 24 + 12
    assert all(attrs["alt"] for tag, attrs in page.tags if tag == "img")


def test_texts_of_the_data_are_escaped():
    X, y = _wine()
    evil = "<script>window.hacked=1</script>"
    frame = pd.DataFrame(X, columns=[f'"><img src=x onerror=alert({i})>' for i in range(13)])
    labels = np.array([evil, "$title ${x}", "' onload='x"])[y]
    model = MarginClassifier().fit(frame, labels)
    text = widemargin.report(model, frame, labels, title=evil, learning_curve=True)
    page = Page(text)
    assert page.count("script") == 1
    assert page.handlers == []
    assert page.count("img") == 0
    assert evil in page.texts
    assert "$title ${x}" in " ".join(page.texts)


def test_the_page_is_written_where_one_says(tmp_path):
    X, y = _wine()
    path = tmp_path / "report.html"
    text = widemargin.report(MarginClassifier().fit(X, y), X, y, path=path, title="Wein & Käse")
    assert path.read_text(encoding="utf-8") == text
    assert "<h1>Wein &amp; Käse</h1>" in text


def test_the_same_seed_gives_the_same_page():
    X, y = _wine()
    model = MarginClassifier(random_state=0).fit(X, y)
    texts = [widemargin.report(model, X, y) for _ in range(2)]
    timeless = [re.sub(r"[0-9.e+-]+ µs", "", text) for text in texts]
    assert timeless[0] == timeless[1]


def test_sparse_rows_and_many_classes_have_a_page():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 40), density=0.3, random_state=rng, format="csr")
    y = np.arange(300) % 30
    page = Page(widemargin.report(MarginClassifier().fit(X, y), X, y, max_time=1.0))
    assert "confusions" in page.ids()


def test_a_sample_of_very_many_rows_is_looked_at(monkeypatch):
    monkeypatch.setattr("widemargin.reporting.evidence._MOST_ROWS", 50)
    X, y = _wine()
    model = MarginClassifier().fit(X, y)
    found = _evidence(model, X, y)
    assert (found.n, found.n_given) == (50, 178)
    assert_array_equal(found.predicted, model.predict(X[found.number]))
    assert "50 of the 178 rows" in widemargin.report(model, X, y)


def test_classes_that_the_model_does_not_know_are_left_out():
    X, y = _wine()
    model = MarginClassifier().fit(X[y < 2], y[y < 2])
    assert _evidence(model, X, y).n == (y < 2).sum()


def test_one_row_and_one_column_are_enough():
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    Page(widemargin.report(MarginClassifier().fit(X, y), X[:1], y[:1], learning_curve=True))
    Page(widemargin.report(MarginRegressor().fit(X, y), X[:1], y[:1], learning_curve=True))
    Page(widemargin.report(MarginOneClass().fit(X), X[:1]))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y": None}, ValueError, "needs the truth"),
        ({"y": [1, 2]}, ValueError, "y has the shape"),
        ({"X": np.empty((0, 13)), "y": []}, ValueError, "no rows"),
        ({"image_shape": (5, 5)}, ValueError, "image_shape=.* has 25 values"),
        ({"feature_names": ["a"]}, ValueError, "feature_names has 1 names"),
        ({"y": np.full(178, 9)}, ValueError, "no class that the model knows"),
    ],
)
def test_bad_arguments_are_named(change, error, said):
    X, y = _wine()
    arguments = {"model": MarginClassifier().fit(X, y), "X": X, "y": y} | change
    with pytest.raises(error, match=said):
        widemargin.report(**arguments)


def test_projections_and_models_that_are_not_fitted_are_refused():
    X, y = _wine()
    with pytest.raises(TypeError, match="not a classifier, regressor or outlier detector"):
        widemargin.report(KernelFisherDA().fit(X, y), X, y)
    with pytest.raises(Exception, match="not fitted"):
        widemargin.report(MarginClassifier(), X, y)


def test_a_classifier_of_others_has_a_page_too():
    X, y = _wine()
    page = Page(widemargin.report(LogisticRegression().fit(X, y), X, y, max_time=1.0))
    assert "margins" in page.ids()


def test_the_words_say_what_is_proved():
    X, y = _cancer()
    exact = certificate_words(MarginClassifier().fit(X, y).certificate_)
    span = certificate_words(MarginClassifier(engine="span", max_vectors=20).fit(X, y).certificate_)
    assert "best machine that there is" in exact[0]
    assert "inside the span" in span[0]
    assert "No machine with more vectors" in span[1]
