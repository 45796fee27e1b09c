"""The search for a regressor: against GridSearchCV, weights, samples, limits, bad input."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_pinball_loss, mean_squared_error, r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut

from widemargin import MarginRegressor, MarginRegressorCV
from widemargin.regression import margin_regressor_cv as module

FEW_CS = [0.1, 10.0]
# As many as are solved by an eigendecomposition.
MANY_CS = np.geomspace(1e-3, 1e4, 9).tolist()
FOLDS = KFold(4, shuffle=True, random_state=0)


def data(n=90, seed=0, outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = 50.0 + 3.0 * np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return X, y if outputs is None else np.column_stack([y, -20.0 * X[:, 2] + y])[:, :outputs]


def search(Cs=FEW_CS, gammas=(0.1, 1.0), **parameters):
    return MarginRegressorCV(Cs, gammas, **{"cv": FOLDS, "n_jobs": 1} | parameters)


def agrees(found, X, y, scoring=None, **grid):
    machine = MarginRegressor(
        engine="exact", tol=1e-10, n_jobs=1, loss=found.loss, fit_intercept=found.fit_intercept
    )
    wanted = GridSearchCV(machine, grid, cv=FOLDS, scoring=scoring).fit(X, y)
    key = {tuple(sorted(p.items())): i for i, p in enumerate(wanted.cv_results_["params"])}
    order = [key[tuple(sorted(p.items()))] for p in found.cv_results_["params"]]
    assert sorted(order) == list(range(len(key)))
    for k in range(4):
        name = f"split{k}_test_score"
        assert_allclose(found.cv_results_[name], wanted.cv_results_[name][order], atol=1e-6)
    assert found.best_params_ == wanted.best_params_
    assert found.best_score_ == pytest.approx(wanted.best_score_, abs=1e-6)
    assert_allclose(found.predict(X), wanted.predict(X), atol=1e-4)


@pytest.mark.parametrize("Cs", [FEW_CS, MANY_CS], ids=["newton", "eigenvalues"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [None, 2])
def test_scores_are_those_of_a_grid_search(Cs, fit_intercept, outputs):
    X, y = data(outputs=outputs)
    found = search(Cs, fit_intercept=fit_intercept).fit(X, y)
    agrees(found, X, y, C=Cs, gamma=[0.1, 1.0])


def test_scores_with_an_epsilon_and_kernels_are_those_of_a_grid_search():
    X, y = data()
    loss = "squared_epsilon_insensitive"
    kernels, epsilons = ["rbf", "laplacian"], [0.0, 0.5]
    scoring = "neg_mean_squared_error"
    found = search(loss=loss, epsilons=epsilons, kernels=kernels, scoring=scoring).fit(X, y)
    grid = {"C": FEW_CS, "gamma": [0.1, 1.0], "epsilon": epsilons, "kernel": kernels}
    agrees(found, X, y, scoring, **grid)


def pinball(machine, rows, targets):
    answer = machine.predict(rows)
    levels = (0.1, 0.9)
    return -np.mean(
        [mean_pinball_loss(targets, answer[:, k], alpha=q) for k, q in enumerate(levels)]
    )


def test_quantiles_are_chosen_by_their_loss():
    X, y = data()
    levels = (0.9, 0.1)
    found = search([0.3, 3.0], loss="quantile", quantiles=levels, tol=1e-7).fit(X, y)
    machine = MarginRegressor(
        loss="quantile", quantiles=levels, calibration=None, engine="exact", tol=1e-7
    )
    grid = {"C": [0.3, 3.0], "gamma": [0.1, 1.0]}
    wanted = GridSearchCV(machine, grid, cv=FOLDS, scoring=pinball).fit(X, y)
    assert found.best_params_ == wanted.best_params_
    assert found.best_score_ == pytest.approx(wanted.best_score_, abs=1e-4)
    assert_allclose(
        found.cv_results_["mean_test_score"].reshape(2, 2),
        wanted.cv_results_["mean_test_score"].reshape(2, 2),
        atol=1e-4,
    )
    assert found.set_params(scoring=pinball).score(X, y) == pytest.approx(pinball(found, X, y))
    assert found.best_estimator_.offsets_.any()


@pytest.mark.parametrize(
    ("more", "scoring"),
    [
        ({"loss": "epsilon_insensitive", "epsilon": [0.1, 0.5]}, None),
        (
            {"loss": "quantile", "quantile": 0.8},
            make_scorer(mean_pinball_loss, greater_is_better=False, alpha=0.8),
        ),
    ],
    ids=["epsilon", "one quantile"],
)
@pytest.mark.parametrize("outputs", [None, 2])
def test_scores_of_linear_losses_are_those_of_a_grid_search(more, scoring, outputs):
    X, y = data(60, outputs=outputs)
    given = dict(more)
    epsilons = given.pop("epsilon", None)
    own = {} if epsilons is None else {"epsilons": epsilons}
    found = search([1.0, 10.0], [0.1], tol=1e-8, **given, **own).fit(X, y)
    machine = MarginRegressor(engine="exact", tol=1e-8, gamma=0.1, n_jobs=1, **given)
    grid = {"C": [1.0, 10.0]} | ({} if epsilons is None else {"epsilon": epsilons})
    wanted = GridSearchCV(machine, grid, cv=FOLDS, scoring=scoring).fit(X, y)
    for k in range(4):
        name = f"split{k}_test_score"
        assert_allclose(found.cv_results_[name], wanted.cv_results_[name], atol=1e-4)
    assert_allclose(found.predict(X), wanted.predict(X), atol=1e-3)


def test_values_of_C_beyond_the_best_are_left_out_where_machines_take_long():
    X, y = data()
    found = search(np.geomspace(0.01, 1e3, 12), [1.0], loss="quantile").fit(X, y)
    scores = found.cv_results_["mean_test_score"]
    known = ~np.isnan(scores)
    assert known[: known.sum()].all() and not known.all()
    assert found.best_index_ == known.sum() - 3


@pytest.mark.parametrize("Cs", [FEW_CS, MANY_CS], ids=["newton", "eigenvalues"])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_a_weight_is_as_many_copies(Cs, scoring):
    X, y = data(60)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    fold = np.arange(len(y)) % 3
    copied = np.repeat(np.arange(len(y)), times)

    def splits(fold):
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]

    weighted = search(Cs, cv=splits(fold), scoring=scoring).fit(X, y, sample_weight=times)
    copies = search(Cs, cv=splits(fold[copied]), scoring=scoring).fit(X[copied], y[copied])
    name = "mean_test_score"
    assert_allclose(weighted.cv_results_[name], copies.cv_results_[name], atol=1e-9)
    assert weighted.best_params_ == copies.best_params_
    assert_allclose(weighted.predict(X), copies.predict(X), atol=1e-7)


@pytest.mark.parametrize("loss", ["quantile", "epsilon_insensitive"])
def test_a_weight_is_as_many_copies_with_linear_losses(loss):
    X, y = data(60)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    copied = np.repeat(np.arange(len(y)), times)

    def splits(fold):
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]

    fold = np.arange(len(y)) % 3
    given = {"loss": loss, "epsilons": [0.2], "tol": 1e-8, "gammas": [0.3]}
    given |= {"quantiles": (0.2, 0.8)} if loss == "quantile" else {}
    weighted = search(cv=splits(fold), **given).fit(X, y, sample_weight=times)
    copies = search(cv=splits(fold[copied]), **given).fit(X[copied], y[copied])
    name = "mean_test_score"
    assert_allclose(weighted.cv_results_[name], copies.cv_results_[name], atol=1e-5)
    assert_allclose(weighted.predict(X), copies.predict(X), atol=1e-3)


def test_a_score_of_ones_own_is_used_and_may_know_nothing_of_weights():
    X, y = data()
    pinball = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=0.9)
    agrees(search(scoring=pinball).fit(X, y), X, y, pinball, C=FEW_CS, gamma=[0.1, 1.0])

    def minus_square(machine, rows, targets):
        return -mean_squared_error(targets, machine.predict(rows))

    weight = np.where(np.arange(len(y)) % 2, 1.0, 2.0)
    own = search(scoring=minus_square).fit(X, y, sample_weight=weight)
    assert own.score(X, y) == pytest.approx(-mean_squared_error(y, own.predict(X)))
    for name in ("neg_mean_squared_error", "neg_max_error"):
        assert search(scoring=name).fit(X, y, sample_weight=weight).best_score_ < 0.0


def test_numbers_stand_for_values_around_the_usual():
    X, y = data()
    found = MarginRegressorCV(
        2, 2, loss="squared_epsilon_insensitive", epsilons=2, metrics=None, cv=FOLDS, n_jobs=1
    ).fit(X, y)
    results = found.cv_results_
    # C, epsilon, kernel, width, scale.
    assert len(results["params"]) == 2 * 2 * 2 * 2 * 2
    assert set(results["param_kernel"]) == {"rbf", "laplacian"}
    assert_allclose(sorted(set(results["param_epsilon"])), np.array([0.01, 0.5]) * y.std())
    usual = 1.0 / (3 * X.var(axis=0).mean())
    assert min(results["param_gamma"]) <= usual <= max(results["param_gamma"])
    assert found.best_params_["C"] == found.best_estimator_.C
    assert found.certificate_ is found.best_estimator_.certificate_
    assert found.score(X, y) == pytest.approx(r2_score(y, found.predict(X)))


def test_sparse_rows_and_kernel_matrices_give_the_same():
    X, y = data()
    wanted = search(gammas=[0.3]).fit(X, y)
    for given, more in ((sparse.csr_array(X), {}), (rbf_kernel(X, gamma=0.3), {"gammas": 1})):
        kernel = "precomputed" if more else "rbf"
        found = search(**{"gammas": [0.3]} | more, kernel=kernel).fit(given, y)
        name = "mean_test_score"
        assert_allclose(found.cv_results_[name], wanted.cv_results_[name], atol=1e-8)
        assert_allclose(found.predict(given), wanted.predict(X), atol=1e-6)


def test_many_rows_are_searched_by_a_sample_and_fitted_whole(monkeypatch):
    X, y = data(300)
    whole = search().fit(X, y)
    monkeypatch.setattr(module, "_SEARCHED_ROWS", 100)
    first, again, other = (search(random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert (whole.n_searched_, first.n_searched_) == (300, 100)
    assert first.best_score_ == again.best_score_ != other.best_score_
    assert abs(first.best_score_ - whole.best_score_) < 0.2
    assert len(first.best_estimator_.support_) == 300
    with pytest.raises(ValueError, match="folds of cv have no row in the sample"):
        search(cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y)


def test_a_small_memory_makes_a_smaller_sample():
    X, y = data(300)
    found = search(memory=4 * 2**20).fit(X, y)
    assert 100 < found.n_searched_ <= 300
    assert 8 * 6 * found.n_searched_**2 <= 4 * 2**20


def test_threads_do_not_change_the_scores():
    X, y = data()
    one, two = (search(MANY_CS, n_jobs=n).fit(X, y) for n in (1, 2))
    assert (one.cv_results_["mean_test_score"] == two.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore:MarginRegressor stopped before its rule")
@pytest.mark.parametrize("loss", ["squared", "quantile"])
def test_a_search_without_time_says_so_and_still_answers(loss):
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="search of MarginRegressorCV was cut short"):
        found = search(max_time=1e-9, loss=loss).fit(X, y)
    assert np.isfinite(found.predict(X)).all()
    assert np.isnan(found.best_score_)


def test_an_interrupt_ends_the_search_for_linear_losses_too():
    X, y = data()
    looks = []

    def interrupting(machine, rows, targets):
        looks.append(len(rows))
        if len(looks) > 2 * 4:
            raise KeyboardInterrupt
        return r2_score(targets, machine.predict(rows))

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = search(scoring=interrupting, loss="epsilon_insensitive", epsilons=[0.1]).fit(X, y)
    assert found.best_params_["gamma"] == 0.1
    assert np.isfinite(found.best_score_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_the_search_with_the_best_so_far(monkeypatch, n_jobs):
    X, y = data()
    looks = []

    def interrupting(machine, rows, targets):
        looks.append(len(rows))
        if len(looks) > 2 * 4:
            raise KeyboardInterrupt
        return r2_score(targets, machine.predict(rows))

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = search(scoring=interrupting, n_jobs=n_jobs).fit(X, y)
    assert found.best_params_["gamma"] == 0.1
    assert np.isfinite(found.best_score_)
    assert np.isnan(found.cv_results_["mean_test_score"]).sum() == 2
    with pytest.raises(KeyboardInterrupt):
        search(scoring=interrupting, n_jobs=n_jobs).fit(X, y)


def test_progress_is_shown(capsys):
    X, y = data()
    search(verbose=1).fit(X, y)
    printed = capsys.readouterr().out
    assert "[MarginRegressorCV]" in printed
    assert "best so far" in printed
    assert "[MarginRegressor] step" in printed


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"Cs": []}, ValueError, "Cs is empty"),
        ({"Cs": [-1.0]}, ValueError, "Cs=-1.0 must be positive"),
        ({"gammas": "scale"}, TypeError, "must be a list"),
        ({"gammas": 0}, ValueError, "gammas=0"),
        ({"loss": "pinball"}, ValueError, "loss='pinball' is not known"),
        ({"loss": "quantile", "fit_intercept": False}, ValueError, "free bias"),
        ({"loss": "quantile", "quantile": 1.0}, ValueError, "quantile=1.0"),
        ({"quantiles": (0.1, 0.9)}, ValueError, "are for loss='quantile'"),
        ({"loss": "squared_epsilon_insensitive", "epsilons": [-0.1]}, ValueError, "epsilons=-0.1"),
        ({"cv": 1}, ValueError, "cv=1 must be at least 2"),
        ({"scoring": ["r2"]}, TypeError, "one score chooses"),
        ({"scoring": "no_score"}, ValueError, "no_score"),
        ({"kernels": ["rbf", "precomputed"]}, ValueError, "kernels has 'precomputed'"),
        ({"kernel": "precomputed", "gammas": 1, "engine": "cells"}, ValueError, "engine='cells'"),
    ],
)
def test_bad_parameters_are_named(parameters, error, said):
    X, y = data(20)
    with pytest.raises(error, match=said):
        search(**parameters).fit(X, y)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_a_score_that_is_never_a_number_is_an_error():
    X, y = data(12)
    with pytest.raises(ValueError, match="is not a number for any combination"):
        search(cv=LeaveOneOut()).fit(X, y)


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_extreme_values_are_no_trouble(C, size):
    X, y = data(40)
    X[:, 2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = search([C] * 8, [1.0], scoring=r2_of_scaled(size)).fit(X, size * y)
    assert np.isfinite(found.best_score_)


def r2_of_scaled(size):
    return lambda machine, rows, y: r2_score(y / size, machine.predict(rows) / size)
