"""`MaxMarginDA` as a user meets it: solvers, features, the table, noise and errors."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.reference.max_margin_ways import GAMMA, KERNEL_SOLVERS, every_way
from tests.reference.max_margin_ways import da as _da
from tests.reference.max_margin_ways import digits as _digits
from tests.reference.max_margin_ways import wine as _wine
from tests.reference.mmda import features_of, objectives_of, signs_of
from widemargin import Certificate, MaxMarginDA

# Kernel evaluations.


@pytest.mark.parametrize("solver", KERNEL_SOLVERS)
def test_kernel_evaluations_are_counted(solver):
    X, y = _digits(3, 90)
    counted = []

    def counting(A, B):
        counted.append(len(A) * len(B))
        return rbf_kernel(A, B, gamma=GAMMA)

    model = _da(3, kernel=counting, solver=solver, max_vectors=20).fit(X, y)
    seen = sum(counted)
    assert 0.7 * seen <= model.n_kernel_evaluations_ <= seen
    assert model.n_kernel_evaluations_ == model.certificate_.n_kernel
    if solver in ("deflation", "direct"):
        assert model.n_kernel_evaluations_ == 90 * 90


@pytest.mark.parametrize("solver", ["deflation", "direct", "span"])
def test_more_directions_and_classes_need_no_more_kernel_values(solver):
    # All rows, all classes and all directions are served by the same values.
    X, y = make_moons(400, noise=0.2, random_state=0)
    y = y + 2 * (X[:, 0] > 1.0)
    parameters = {"gamma": 2.0, "solver": solver, "vectors": "random", "max_vectors": 30}
    one = _da(1, **parameters).fit(X, y > 0)
    many = _da(4, **parameters).fit(X, y)
    assert len(many.directions_["order"]) == 16
    assert many.n_kernel_evaluations_ <= 1.01 * one.n_kernel_evaluations_


def test_the_linear_kernel_is_never_evaluated():
    X, y = _digits(3, 90)
    assert _da(2, kernel="linear").fit(X, y).n_kernel_evaluations_ == 0


# Which solver.


@pytest.mark.parametrize(
    ("parameters", "solver"),
    [
        ({}, "deflation"),
        ({"kernel": "linear"}, "direct"),
        ({"kernel": "linear", "loss": "hinge"}, "deflation"),
        ({"loss": "hinge"}, "deflation"),
        ({"vectors": np.zeros((3, 64)) + np.arange(3)[:, None]}, "span"),
        *(({"solver": solver}, solver) for solver in KERNEL_SOLVERS),
        *(({"solver": solver, "kernel": "linear"}, solver) for solver in KERNEL_SOLVERS),
    ],
    ids=str,
)
def test_the_solver_is_the_one_that_the_parameters_ask_for(parameters, solver):
    X, y = _digits(3, 90)
    assert _da(1, **{"solver": "auto"} | parameters).fit(X, y).solver_ == solver


def test_auto_is_exact_for_up_to_2000_different_rows_and_a_span_beyond():
    X = np.random.default_rng(0).normal(size=(2001, 2))
    y = (X[:, 0] > 0).astype(int)

    def chosen(way="deflation", rows=slice(None), **fit):
        model = _da(1, way, max_vectors=5, tol=0.5).set_params(solver="auto")
        return model.fit(X[rows], y[rows], **fit).solver_

    assert chosen() == "span"
    assert chosen(rows=np.arange(2000)) == "deflation"
    assert chosen(rows=np.repeat(np.arange(1000), 3)) == "deflation"
    assert chosen(sample_weight=np.arange(2001) > 0) == "deflation"
    assert chosen("linear") == "direct"
    assert chosen("hinge", np.arange(200)) == "deflation"


# Features, names and the table.


@every_way
def test_features_in_blocks_are_the_formula(way):
    X, y = _digits(3, 700)
    model = _da(2, way).fit(X[:150], y[:150])
    expected = features_of(model, X)
    assert_allclose(model.transform(X), expected, atol=1e-8)
    small = model.set_params(memory="10kB").transform(X)
    assert small.dtype == np.float64
    assert_allclose(small, expected, atol=1e-8)


@every_way
def test_the_table_says_what_the_directions_are(way):
    X, y = _wine()
    weight = np.random.default_rng(0).integers(1, 4, size=len(X))
    model = _da(3, way).fit(X, y, sample_weight=weight)
    table = model.directions_
    assert list(table) == [
        "problem", "order", "margin", "training_error", "primal", "dual", "gap", "n_vectors",
        "seconds", "stopped",
    ]  # fmt: skip
    assert all(len(column) == 9 for column in table.values())
    assert_array_equal(table["problem"], np.repeat([0, 1, 2], 3))
    assert_array_equal(table["order"], np.tile([1, 2, 3], 3))
    assert_allclose(table["primal"], objectives_of(model, X, y, weight), rtol=1e-8)
    assert_allclose(table["gap"], 1 - table["dual"] / table["primal"], atol=1e-12)
    sides = model.transform(X) + model.intercept_
    wrong = signs_of(model, y) * sides <= 0
    assert_allclose(table["training_error"], weight @ wrong / weight.sum(), atol=1e-12)
    assert table["training_error"][::3].max() < 0.1
    if "core" not in way:
        # What is left over separates less and less; a rough ball says little of the primal.
        assert (np.diff(table["primal"].reshape(3, 3), axis=1) > 0).all()
    assert (table["seconds"] >= 0).all()
    assert (table["n_vectors"] >= 1).all()
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(table).shape == (9, 10)


@every_way
def test_the_attributes_are_there_and_plain(way):
    X, y = _wine()
    model = _da(2, way).fit(X, y)
    assert isinstance(model.certificate_, Certificate)
    assert model.certificate_.stopped == "all directions found"
    assert model.n_iter_ == 2
    assert model.n_features_in_ == 13
    if model.kernel == "linear":
        assert model.components_.shape == (6, 13)
        assert_allclose(np.linalg.norm(model.components_, axis=1), 1.0, atol=1e-9)
        assert model.certificate_.n_vectors == 6
    else:
        assert model.n_kernel_evaluations_ > 0
        assert model.coef_.shape == (6, len(model.vectors_))
        assert model.certificate_.n_vectors == len(model.vectors_)
        assert_array_equal(model.vectors_, X[model.support_])
        assert (np.diff(model.support_) > 0).all()
        assert not hasattr(model, "components_")
    plain = (np.ndarray, np.generic, int, float, str, bool, dict, type(None), Certificate)
    state = {name: value for name, value in vars(model).items() if name not in model.get_params()}
    for name, value in state.items():
        assert isinstance(value, plain), name


def test_a_second_fit_leaves_nothing_of_the_first_behind():
    X, y = _wine()
    model = _da(2, "linear").fit(X, y)
    model.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "components_")
    assert_array_equal(model.transform(X), _da(2, solver="auto").fit_transform(X, y))
    model.set_params(kernel="linear").fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "vectors_")


def test_feature_names_of_the_input_are_checked_and_the_output_can_be_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = _da(2, "linear").set_output(transform="pandas")
    table = model.fit(X, y).transform(X)
    assert isinstance(table, pandas.DataFrame)
    expected = [f"maxmarginda_{label}_{order}" for label in (0, 1, 2) for order in (1, 2)]
    assert list(table.columns) == list(model.get_feature_names_out()) == expected
    assert_array_equal(table.index, X.index)
    assert_array_equal(table.to_numpy(), _da(2, "linear").fit_transform(X.to_numpy(), y))
    assert_array_equal(model.get_feature_names_out(X.columns), expected)
    with pytest.raises(ValueError, match="input_features"):
        model.get_feature_names_out(["one", "two"])
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X[X.columns[::-1]])


# Noise.


@pytest.mark.parametrize("way", ["deflation", "span", "core", "linear"])
def test_random_labels_are_not_separated_on_rows_held_out(way):
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    train, test = np.arange(500), np.arange(500, len(X))
    right = []
    for seed in range(3):
        mixed = np.random.default_rng(seed).permutation(y)
        model = _da(3, way, gamma="scale", max_vectors=100, epsilon=1e-2)
        neighbours = KNeighborsClassifier(1).fit(
            model.fit_transform(X[train], mixed[train]), mixed[train]
        )
        right.append(neighbours.score(model.transform(X[test]), mixed[test]))
    assert abs(np.mean(right) - 0.1) <= 0.03
    # The same with the true labels: it is not that the features say nothing.
    model = _da(3, way, gamma="scale", max_vectors=100, epsilon=1e-2)
    neighbours = KNeighborsClassifier(1).fit(model.fit_transform(X[train], y[train]), y[train])
    assert neighbours.score(model.transform(X[test]), y[test]) > 0.85


# With the rest of scikit-learn.


def test_a_grid_search_over_a_pipeline_works_with_pandas_output():
    pandas = pytest.importorskip("pandas")
    X, y = load_wine(return_X_y=True, as_frame=True)
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("features", MaxMarginDA(random_state=0)),
            ("neighbours", KNeighborsClassifier()),
        ]
    ).set_output(transform="pandas")
    grid = {
        "features__n_directions": [1, 3],
        "features__kernel": ["linear", "rbf"],
        "features__C": [0.1, 1.0],
        "neighbours__n_neighbors": [1, 5],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.95
    features = search.best_estimator_[:-1].transform(X)
    assert isinstance(features, pandas.DataFrame)
    assert features.columns[0] == "maxmarginda_0_1"
    assert features.shape[1] == 3 * search.best_params_["features__n_directions"]


def test_a_grid_search_cuts_a_precomputed_kernel_both_ways():
    X, y = _wine()
    K = rbf_kernel(X, gamma=GAMMA)
    pipeline = make_pipeline(_da(2, kernel="precomputed"), KNeighborsClassifier(1))
    search = GridSearchCV(pipeline, {"maxmarginda__C": [0.1, 1.0]}, cv=3, error_score="raise")
    assert search.fit(K, y).best_score_ > 0.9


def test_verbose_prints_a_line_for_each_round(capsys):
    X, y = _wine()
    _da(3, "span").fit(X, y)
    assert capsys.readouterr().out == ""
    for way in ("deflation", "span", "core", "linear"):
        _da(3, way, verbose=1).fit(X, y)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3
        assert all(re.match(r"\[MaxMarginDA\] step \d: 89 rows", line) for line in lines)


# Errors.


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"n_directions": 0}, r"n_directions=0.*at least 1"),
        ({"n_directions": 2.5}, r"n_directions=2\.5.*whole"),
        ({"n_directions": None}, r"n_directions=None.*whole"),
        ({"solver": "dual"}, r"solver='dual'.*'auto', 'span', 'core', 'direct', 'deflation'"),
        ({"solver": None}, r"solver=None.*'auto'"),
        ({"loss": "log"}, r"loss='log'.*'squared_hinge', 'hinge'"),
        ({"loss": "hinge", "solver": "span"}, r"loss='hinge'.*'deflation' or 'direct'.*'span'"),
        ({"loss": "hinge", "solver": "core"}, r"loss='hinge'.*'deflation' or 'direct'.*'core'"),
        ({"constraint": "free"}, r"constraint='free'.*'orthogonal', 'uncorrelated'"),
        ({"across": "classes"}, r"across='classes'.*'problem', 'all'"),
        ({"vectors": "centres", "solver": "span"}, r"vectors='centres'.*'random'"),
        ({"vectors": "centres"}, r"vectors='centres'.*'random'"),
        ({"vectors": np.zeros((4, 5)), "solver": "span"}, r"vectors of shape \(4, 5\).*13"),
        ({"max_vectors": 0}, r"max_vectors=0.*at least 1"),
        ({"max_vectors": "all"}, r"max_vectors='all'.*'auto'"),
        ({"epsilon": 0.0}, r"epsilon=0\.0.*positive"),
        ({"epsilon": "small"}, r"epsilon='small'.*number"),
        ({"tol": -1.0}, r"tol=-1\.0.*negative"),
        ({"C": 0}, r"C=0.*positive"),
        ({"C": "1"}, r"C='1'.*number"),
        ({"kernel": "rfb"}, r"kernel='rfb'.*did you mean 'rbf'"),
        ({"gamma": "wide"}, r"gamma='wide'"),
        ({"max_iter": 0}, r"max_iter=0"),
        ({"max_time": 0}, r"max_time=0"),
        ({"memory": "lots"}, r"memory"),
        ({"n_jobs": 0}, r"n_jobs"),
        ({"class_weight": {0: 0.0, 1: 1.0, 2: 1.0}}, r"class_weight"),
        ({"verbose": "loud"}, r"verbose"),
        ({"random_state": "lucky", "solver": "span"}, r"seed"),
        (
            {"solver": "deflation", "memory": "100kB"},
            r"solver='deflation'.*89 rows.*memory='100kB'.*solver='span'",
        ),
        (
            {"solver": "direct", "memory": "100kB"},
            r"solver='direct'.*89 rows.*memory='100kB'.*solver='span'",
        ),
        ({"loss": "hinge", "memory": "100kB"}, r"89 rows.*memory='100kB'.*loss='squared_hinge'"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_an_error_that_names_it_and_the_remedy(parameters, remedy):
    X, y = _wine()
    with pytest.raises((ValueError, TypeError), match=remedy):
        MaxMarginDA(**{"kernel": "rbf"} | parameters).fit(X, y)


def test_a_bad_parameter_does_not_harm_a_fitted_model():
    X, y = _wine()
    for bad in ({"solver": "dual"}, {"C": -1.0}, {"loss": "log"}, {"n_directions": 0}):
        model = _da(2).fit(X, y)
        before = model.transform(X)
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.set_params(**bad).fit(X * 3, y)
        assert_array_equal(model.transform(X), before)
