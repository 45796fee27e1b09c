"""Grids over C, kernels and widths: what they stand for, and which engine goes through them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.datasets import load_iris, make_moons

from tests.reference.ball_problems import stated_problem
from tests.reference.searches import scores_of, stratified
from widemargin import MarginClassifierCV
from widemargin.base.progress import ProgressBar
from widemargin.cells.engine_choice import ChoiceOptions, TrialSizes
from widemargin.kernels import RBF, make_kernel
from widemargin.problem import one_vs_rest
from widemargin.svm.grid import Grid
from widemargin.svm.grid_engine import engine_of_grid

CS = [0.1, 1.0, 10.0]


def moons(n=120):
    return make_moons(n, noise=0.25, random_state=0)


def search(**parameters):
    return MarginClassifierCV(**{"Cs": CS, "cv": stratified(), "n_jobs": 1} | parameters)


# What parameters stand for.


def test_a_number_of_widths_goes_from_a_sixteenth_to_sixteen_times_the_usual():
    variance = np.array([0.5, 1.0, 0.5, 0.0])
    grid = Grid.of([1.0], 5, None, "rbf").on(variance)
    assert_allclose([width.gamma for width in grid.widths], 0.5 * 4.0 ** np.arange(-2, 3))
    assert [width.gamma for width in Grid.of([1.0], 1, None, "rbf").on(variance).widths] == [0.5]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["rbf", "laplacian", "exponential", "inverse_distance"]),
    st.floats(1e-6, 1e6),
    st.integers(1, 60),
    st.integers(0, 10**6),
)
def test_at_the_usual_width_rows_are_neither_alike_nor_strangers(name, size, n_features, seed):
    rng = np.random.default_rng(seed)
    # Columns differ in their means and their deviations.
    X = size * (rng.normal(size=(60, n_features)) + 5.0 * rng.normal(size=n_features))
    X *= rng.uniform(0.1, 3.0, n_features)
    usual = Grid.of([1.0], 1, None, name).on(X.var(axis=0)).widths[0].gamma
    K = make_kernel(name, gamma=usual).block(X, X)
    typical = np.median(K[np.triu_indices(60, 1)])
    assert 0.05 < typical < 0.95
    assert pdist(X).min() > 0


def test_kernels_have_their_widths_and_those_without_one_come_once():
    grid = Grid.of([1.0, 10.0], [0.5, 2.0], ("rbf", "linear"), "poly")
    assert grid.params == [
        {"C": C, **each}
        for C in (1.0, 10.0)
        for each in (
            {"kernel": "rbf", "gamma": 0.5},
            {"kernel": "rbf", "gamma": 2.0},
            {"kernel": "linear"},
        )
    ]
    # What a user asks for without `kernels` is what comes back.
    assert Grid.of([1.0], [0.5, 2.0], None, "linear").params == [
        {"C": 1.0, "gamma": 0.5},
        {"C": 1.0, "gamma": 2.0},
    ]
    assert Grid.of([1.0], 5, None, "linear").params == [{"C": 1.0}]
    given_kernel = RBF(0.3)
    assert Grid.of([1.0], 5, [given_kernel, "rbf"], "rbf").params[0] == {
        "C": 1.0,
        "kernel": given_kernel,
    }


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"kernels": "rbf"}, TypeError, r"kernels='rbf' must be a list"),
        ({"kernel": "laplacain"}, ValueError, r"kernel='laplacain' is not known"),
        ({"kernels": []}, ValueError, r"kernels is empty"),
        ({"kernels": ["rfb"]}, ValueError, r"kernel='rfb' is not known; did you mean 'rbf'"),
        ({"kernels": ["rbf", "precomputed"]}, ValueError, r"'precomputed' among others"),
        ({"gammas": 0}, ValueError, r"gammas=0 must be at least 1"),
        ({"gammas": True}, TypeError, r"gammas=True must be a list"),
        (
            {"kernels": ["rbf", "laplacian"], "engine": "cells", "per_cell": True},
            ValueError,
            r"per_cell=True .* one kernel",
        ),
    ],
)
def test_what_is_no_grid_is_said(parameters, error, said):
    with pytest.raises(error, match=said):
        search(**parameters).fit(*moons(60))


# Searches over kernels.


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_a_search_over_kernels_is_one_search_for_each(engine):
    X, y = moons()
    shared = {"gammas": [0.5, 2.0], "engine": engine, "random_state": 0, "cells": 40}
    both = search(kernels=("rbf", "laplacian"), **shared).fit(X, y)
    apart = [search(kernel=name, **shared).fit(X, y) for name in ("rbf", "laplacian")]
    of_both = scores_of(both).reshape(3, 2, 2, 3)
    for k, one in enumerate(apart):
        assert_array_equal(of_both[:, k], scores_of(one).reshape(3, 2, 3))
    assert both.best_score_ == max(one.best_score_ for one in apart)
    assert both.best_estimator_.kernel == both.best_params_["kernel"]
    assert list(both.cv_results_["param_kernel"][:4]) == ["rbf", "rbf", "laplacian", "laplacian"]


def test_results_of_kernels_without_a_width_are_masked_as_in_grid_search():
    alone = {"scale": None, "metrics": None}
    found = search(kernels=("linear", "rbf"), gammas=2, **alone).fit(*moons(60))
    gammas = found.cv_results_["param_gamma"]
    assert_array_equal(gammas.mask, [True, False, False] * 3)
    assert all("gamma" not in params for params in found.cv_results_["params"][::3])
    assert found.predict(moons(60)[0]).shape == (60,)


def test_without_any_choice_of_the_users_columns_of_any_scale_are_learnt():
    X, y = load_iris(return_X_y=True)
    found = MarginClassifierCV(random_state=0).fit(1e4 * X, y)
    plain = MarginClassifierCV(random_state=0).fit(X, y)
    assert found.best_score_ > 0.95
    # Metrics are those of the best machine, and another may be best by a row.
    for scale in (None, "auto"):
        chosen = [_without_metric(each.cv_results_, scale) for each in (found, plain)]
        kernel = [params["kernel"] for params in chosen[1][0]]
        size = np.where(np.array(kernel) == "laplacian", 1e-4, 1e-8) if scale is None else 1.0
        gammas = [np.array([params["gamma"] for params in each[0]]) for each in chosen]
        assert_allclose(gammas[0], size * gammas[1], rtol=1e-6)
        assert_allclose(chosen[0][1], chosen[1][1], atol=2.01 / len(y))
    assert set(found.cv_results_["param_kernel"]) <= {"rbf", "laplacian", "exponential"}


def _without_metric(results, scale):
    kept = [
        i
        for i, each in enumerate(results["params"])
        if each["metric"] is None and each["scale"] == scale
    ]
    return [results["params"][i] for i in kept], results["mean_test_score"][kept]


def test_who_says_anything_of_the_kernel_or_its_widths_means_that_kernel():
    X, y = moons(60)
    for parameters in (
        {"gammas": ["scale"]},
        {"kernel": "laplacian"},
        {"kernels": None},
        {"engine": "cells", "cells": 30, "per_cell": True},
    ):
        assert "kernel" not in search(**parameters).fit(X, y).best_params_
    wide = np.hstack([X, np.zeros((60, 120))])
    found = search().fit(wide, y)
    assert set(found.cv_results_["param_kernel"]) == {"rbf", "exponential"}
    every = {"rbf", "laplacian", "exponential"}
    assert set(search().fit(X, y).cv_results_["param_kernel"]) == every


def test_a_kernel_matrix_may_be_the_only_kernel():
    X, y = moons()
    K = make_kernel("rbf", gamma=0.5).block(X, X)
    given_one = search(kernel="precomputed").fit(K, y)
    assert_array_equal(given_one.cv_results_["param_C"], CS)
    listed = search(kernels=["precomputed"]).fit(K, y)
    assert_array_equal(scores_of(listed), scores_of(given_one))
    rows = search(gammas=[0.5]).fit(X, y)
    assert_allclose(scores_of(given_one), scores_of(rows), atol=0.03)


# Progress.


def test_a_bar_shows_every_width_and_nothing_without_verbose(capsys):
    X, y = moons(60)
    search(gammas=[0.5, 2.0], verbose=0).fit(X, y)
    assert capsys.readouterr().out == ""
    search(gammas=[0.5, 2.0], engine="span", verbose=1).fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if "MarginClassifierCV" in line]
    assert len(lines) == 2
    said = r"0\.\d+ with rbf gamma 0.5, C [\d.]+; best so far 0\.\d+; "
    assert re.search(r"#+\.+  50% " + said + r".* s, about .* s left", lines[0])
    assert re.search(r"#{24} 100% 0\.\d+ with rbf gamma 2", lines[1])


def test_a_bar_on_a_terminal_writes_over_itself(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    bar = ProgressBar("Search", 4.0)
    bar.advance(1.0, "first")
    bar.advance(0.5)
    bar.advance(9.0, "last")
    bar.close()
    out = capsys.readouterr().out
    assert out.count("\r") == 3
    assert out.endswith("\n")
    assert " 25% first;" in out
    assert " 38% first;" in out
    assert "100% last;" in out


# The engine.


def _chessboard(n, squares, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    y = np.floor(squares * X).sum(axis=1).astype(int) % 2
    return X, y


def _engine(X, y, gammas, **sizes):
    sizes = TrialSizes(least_rows=500, learn=600, judge=800, vectors=30, cell=60, **sizes)
    options = ChoiceOptions(trial=sizes, threads=1, memory=10**9, tol=1e-2)

    def stated(gamma):
        made = make_kernel("rbf", gamma=gamma)
        problem = stated_problem(X, y, np.ones(len(y)), 1.0, made, one_vs_rest(2), 10**9, 1)
        return problem, problem

    each = [lambda gamma=gamma: stated(gamma) for gamma in gammas]
    return engine_of_grid(each, np.array([1.0, 100.0]), options)


def test_a_grid_is_searched_in_cells_where_they_do_better_with_a_width_of_their_own():
    fine = _engine(*_chessboard(3000, 8), gammas=[2.0, 200.0])
    assert fine.engine == "cells"
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    plain = _engine(X, (X[:, 0] + rng.normal(size=3000) > 0).astype(int), gammas=[0.1, 1.0])
    assert plain.engine == "span"
    assert "held-out" in plain.reason
    assert _engine(*_chessboard(300, 4), gammas=[2.0]).engine == "span"


def test_the_final_fit_is_in_the_engine_of_the_search():
    X, y = _chessboard(13_000, 16)
    found = MarginClassifierCV([10.0], [20.0, 2000.0], cv=2, random_state=0).fit(X, y)
    assert found.best_estimator_.engine_ == "cells"
    assert found.best_params_["gamma"] == 2000.0
    assert found.score(X, y) > 0.9
