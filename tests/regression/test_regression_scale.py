"""Regressors on columns of different units: one scale, the choice of it, data frames."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from widemargin import MarginRegressor, MarginRegressorCV, load, save
from widemargin.regression import target_search

UNITS = np.array([1e4, 1.0, 1e-5])
ENGINES = {
    "exact": {},
    "span": {"engine": "span", "max_vectors": 40},
    "cells": {"engine": "cells", "cells": 60},
    "pieces": {"loss": "epsilon_insensitive"},
    "pieces in a span": {"loss": "quantile", "engine": "span"},
}
every_engine = pytest.mark.parametrize("given", ENGINES.values(), ids=ENGINES)


def data(n=200, seed=0):
    """Rows whose columns all count, in units that are far apart."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    y = np.sin(2.0 * Z[:, 0]) + np.cos(2.0 * Z[:, 1]) + np.sin(2.0 * Z[:, 2])
    return Z, Z * UNITS + 3.0 * UNITS, y + 0.05 * rng.normal(size=n)


def on_one_scale(X):
    """The scale written out: medians, quartiles that are values, outliers bent."""
    ordered = np.sort(X, axis=0)
    low, median, high = (ordered[int(np.ceil(q * len(X))) - 1] for q in (0.25, 0.5, 0.75))
    Z = (X - median) / ((high - low) / 1.349)
    return Z / np.sqrt(1.0 + (Z / 4.0) ** 2)


@pytest.mark.parametrize("loss", ["squared", "squared_epsilon_insensitive", "epsilon_insensitive"])
def test_a_scaled_machine_is_the_machine_of_scaled_rows(loss):
    _, X, y = data()
    common = {"C": 10.0, "gamma": 0.5, "n_jobs": 1, "tol": 1e-8, "loss": loss}
    found = MarginRegressor(scale="auto", **common).fit(X, y)
    wanted = MarginRegressor(**common).fit(on_one_scale(X), y)
    assert_allclose(found.predict(X), wanted.predict(on_one_scale(X)), atol=1e-5)


def test_the_vectors_of_a_scaled_span_are_scaled_rows():
    _, X, y = data()
    found = MarginRegressor(gamma=0.5, scale="auto", engine="span", max_vectors=40).fit(X, y)
    assert_allclose(found.support_vectors_, on_one_scale(X)[found.support_], rtol=1e-6)
    values = rbf_kernel(on_one_scale(X), found.support_vectors_, gamma=0.5) @ found.dual_coef_[0]
    assert_allclose(found.predict(X), values + found.intercept_, atol=1e-6)


@every_engine
def test_units_do_not_matter_to_a_scaled_machine(given):
    Z, X, y = data()
    common = {"scale": "auto", "C": 10.0, "random_state": 0, "n_jobs": 1} | given
    one, two = (MarginRegressor(**common).fit(rows, y).score(rows, y) for rows in (Z, X))
    assert_allclose(one, two, atol=0.02)
    assert two > 0.8
    assert MarginRegressor(**common | {"scale": None}).fit(X, y).score(X, y) < 0.6


def test_sparse_rows_and_kernel_matrices_are_taken_as_they_are():
    Z, _, y = data(60)
    thin = sparse.csr_array(Z)
    one, two = (MarginRegressor(scale=scale).fit(thin, y) for scale in ("auto", None))
    assert_array_equal(one.predict(thin), two.predict(thin))
    K = Z @ Z.T
    one, two = (
        MarginRegressor(kernel="precomputed", scale=scale).fit(K, y) for scale in ("auto", None)
    )
    assert_array_equal(one.predict(K), two.predict(K))


@pytest.mark.parametrize("name", ["vectors", "cells"])
def test_rows_among_the_parameters_are_refused_beside_a_scale(name):
    Z, _, y = data(60)
    with pytest.raises(ValueError, match=f"{name} are rows"):
        MarginRegressor(scale="auto", **{name: Z[:5]}).fit(Z, y)


def test_a_second_fit_without_a_scale_forgets_it():
    Z, X, y = data(60)
    machine = MarginRegressor(scale="auto").fit(X, y).set_params(scale=None).fit(Z, y)
    assert not hasattr(machine, "column_centers_")
    assert_array_equal(machine.predict(Z), MarginRegressor().fit(Z, y).predict(Z))


# The search.


def search(**parameters):
    return MarginRegressorCV(**{"Cs": 4, "random_state": 0, "n_jobs": 1} | parameters)


def test_the_search_puts_columns_on_one_scale_where_that_is_better():
    _, X, y = data()
    found = search().fit(X, y)
    assert found.best_params_["scale"] == "auto"
    assert found.best_score_ > search(scale=None).fit(X, y).best_score_ + 0.2
    assert set(found.cv_results_["param_scale"].data) <= {None, "auto"}


def test_columns_that_are_right_as_they_are_stay_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4)) * [1.0, 1.0, 1e-3, 1e-3]
    y = np.sin(2.0 * X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.normal(size=240)
    assert search().fit(X, y).best_params_["scale"] is None


@pytest.mark.parametrize(
    "given", [{"gammas": [0.5]}, {"scale": None}, {"kernel": "linear"}, {"cells": np.eye(3)}]
)
def test_what_a_user_gives_is_for_rows_as_they_are(given):
    Z, _, y = data(80)
    engine = "cells" if "cells" in given else "auto"
    found = search(engine=engine, **given).fit(Z, y)
    assert "scale" not in found.best_params_
    assert found.best_estimator_.scale is None


def mean_scores(found):
    results = found.cv_results_
    return dict(zip(map(str, results["params"]), results["mean_test_score"], strict=True))


def test_what_goes_on_from_a_sample_has_the_scores_of_a_search_of_everything(monkeypatch):
    _, X, y = data(400)
    given = {"cv": KFold(4), "gammas": 3, "metrics": None}
    some = search(**given).fit(X, y)
    monkeypatch.setattr(target_search, "_FEW", len(X))
    every = search(**given).fit(X, y)
    assert len(some.cv_results_["params"]) < len(every.cv_results_["params"])
    means = mean_scores(every)
    for params, score in mean_scores(some).items():
        assert_allclose(score, means[params], atol=1e-9)
    assert some.best_score_ >= every.best_score_ - 0.01


@pytest.mark.parametrize("loss", ["quantile", "squared_epsilon_insensitive"])
def test_other_losses_go_on_from_a_sample_too(loss):
    _, X, y = data(300)
    found = search(Cs=2, gammas=3, epsilons=1, cv=3, loss=loss, metrics=None).fit(X, y)
    assert found.best_params_["scale"] == "auto"
    assert len(found.cv_results_["params"]) <= 2 * 2 * 3


# Data frames.


def houses(n=240, seed=0):
    """A frame in which a category and a number decide, and some numbers are missing."""
    rng = np.random.default_rng(seed)
    city, area = rng.choice(["Oslo", "Rome"], n), rng.uniform(2e4, 2e5, n)
    y = np.where(city == "Rome", 3.0, 0.0) + area / 1e5 + 0.05 * rng.normal(size=n)
    frame = pd.DataFrame({"city": pd.Categorical(city), "area": area})
    return frame.mask(rng.random((n, 2)) < 0.02), y


def test_a_frame_with_categories_and_missing_values_is_taken():
    frame, y = houses()
    found = search().fit(frame[:160], y[:160])
    assert found.score(frame[160:], y[160:]) > 0.8
    assert found.feature_names_in_.tolist() == ["city", "area"]
    turned = frame[["area", "city"]]
    assert_array_equal(found.predict(turned), found.predict(frame))
    with pytest.raises(ValueError, match=r"lacks the columns \['city'\]"):
        found.predict(frame[["area"]])


def test_a_model_of_a_frame_travels(tmp_path):
    frame, y = houses()
    found = search(Cs=2, gammas=2).fit(frame, y)
    save(found, tmp_path / "houses.skops")
    again = load(tmp_path / "houses.skops")
    assert_array_equal(again.predict(frame), found.predict(frame))
