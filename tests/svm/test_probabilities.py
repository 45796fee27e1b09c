"""Probabilities from the decision values of held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import log_loss

from widemargin import MarginClassifier, MarginClassifierCV
from widemargin.svm.probabilities import calibrated


def calibration_error(probability, hit, bins=10):
    """Return the expected calibration error of the largest probabilities."""
    top = probability.max(axis=1)
    place = np.minimum((bins * top).astype(int), bins - 1)
    total = 0.0
    for b in np.unique(place):
        chosen = place == b
        total += chosen.mean() * abs(top[chosen].mean() - hit[chosen].mean())
    return total


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_probabilities_are_calibrated(engine, n_classes):
    X, y = make_classification(
        3000, 8, n_informative=5, n_classes=n_classes, flip_y=0.1, random_state=0
    )
    search = MarginClassifierCV(
        Cs=3, gammas=[0.05, 0.2], probability=True, engine=engine, random_state=0
    ).fit(X[:1500], y[:1500])
    found = search.predict_proba(X[1500:])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    hit = search.classes_[found.argmax(axis=1)] == y[1500:]
    # Final machines in cells are blended at their edges, and those of the folds are not.
    assert calibration_error(found, hit) < (0.05 if engine == "cells" else 0.035)


def test_probabilities_are_as_good_as_those_of_a_second_cross_validation():
    X, y = make_classification(900, 8, n_informative=5, flip_y=0.1, random_state=1)
    search = MarginClassifierCV([1.0], [0.1], probability=True).fit(X[:500], y[:500])
    again = CalibratedClassifierCV(MarginClassifier(1.0, gamma=0.1), ensemble=False)
    again.fit(X[:500], y[:500])
    ours, theirs = (log_loss(y[500:], each.predict_proba(X[500:])) for each in (search, again))
    assert ours < theirs + 0.02


def test_probabilities_of_the_default_search_agree_with_its_predictions():
    X, y = load_digits(n_class=4, return_X_y=True)
    search = MarginClassifierCV(Cs=3, probability=True, random_state=0).fit(X[:400], y[:400])
    found = search.predict_proba(X[400:])
    same = search.classes_[found.argmax(axis=1)] == search.predict(X[400:])
    assert same.mean() > 0.98
    assert search.set_params(decision_function_shape="ovo").predict_proba(X[:5]).shape == (5, 4)


def test_there_are_none_unless_they_are_asked_for():
    X, y = load_digits(n_class=2, return_X_y=True)
    search = MarginClassifierCV([1.0], [0.01]).fit(X, y)
    assert not hasattr(search, "predict_proba")
    with pytest.raises(ValueError, match="squared_hinge"):
        MarginClassifierCV([1.0], [0.01], probability=True, loss="hinge").fit(X, y)


@pytest.mark.parametrize("n", [500, 4000])
def test_scores_that_tell_nothing_give_the_shares_of_the_classes(n):
    rng = np.random.default_rng(0)
    scores, code = rng.standard_normal(n), rng.integers(0, 2, n)
    found = calibrated(scores, code, np.ones(n))(rng.standard_normal(1000))
    np.testing.assert_allclose(found.mean(axis=0), 0.5, atol=0.05)
    assert found.std() < 0.1


@pytest.mark.parametrize("n", [500, 4000])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_counts_as_a_row_that_is_there_twice(n, n_classes):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(n) if n_classes == 2 else rng.standard_normal((n, 3))
    code, weight = rng.integers(0, n_classes, n), rng.integers(1, 3, n)
    one = calibrated(scores, code, weight.astype(float))
    copies = np.repeat(np.arange(n), weight)
    other = calibrated(scores[copies], code[copies], np.ones(len(copies)))
    np.testing.assert_allclose(one(scores), other(scores), atol=2e-3)


def test_the_function_rises_and_its_values_are_probabilities():
    rng = np.random.default_rng(0)
    for n in (200, 2000):
        scores = rng.standard_normal(n)
        code = (scores + rng.standard_normal(n) > 0).astype(int)
        found = calibrated(scores, code, np.ones(n))(np.linspace(-9, 9, 50))[:, 1]
        assert (np.diff(found) >= 0).all()
        assert 0 < found[0] < found[-1] < 1
