"""`MaxMarginDA` as a user meets it: solvers, tables, limits, interrupts, noise and errors."""

import pickle
import re
from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.reference.max_margin_ways import (
    GAMMA,
    KERNEL_SOLVERS,
    WAYS,
    every_way,
)
from tests.reference.max_margin_ways import (
    da as _da,
)
from tests.reference.max_margin_ways import (
    digits as _digits,
)
from tests.reference.max_margin_ways import (
    wine as _wine,
)
from tests.reference.mmda import assert_valid, features_of, objectives_of, signs_of
from widemargin import Certificate, MaxMarginDA
from widemargin.balls import CoreSet
from widemargin.discriminant.deflation import Deflation
from widemargin.discriminant.direct import Direct
from widemargin.discriminant.linear import Linear
from widemargin.span import SpanFit

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


def test_auto_is_exact_for_few_different_rows_and_a_span_beyond(monkeypatch):
    monkeypatch.setattr("widemargin.discriminant.max_margin._EXACT_ROWS", 89)
    X, y = _digits(3, 90)
    assert _da(1, solver="auto").fit(X, y).solver_ == "span"
    copies = np.repeat(np.arange(89), 3)
    assert _da(1, solver="auto").fit(X[copies], y[copies]).solver_ == "deflation"
    assert _da(1, solver="auto").fit(X, y, sample_weight=np.arange(90) > 0).solver_ == "deflation"
    assert _da(1, "linear").fit(X, y).solver_ == "direct"
    assert _da(1, "hinge").fit(X, y).solver_ == "deflation"


# The end of the subspace.


@pytest.mark.parametrize(
    "way",
    [
        {"kernel": "linear", "solver": solver, "loss": loss}
        for solver in ("direct", "deflation", "span", "core")
        for loss in ("squared_hinge", "hinge")
        if loss == "squared_hinge" or solver in ("direct", "deflation")
    ]
    + [
        {"kernel": linear_kernel, "solver": solver, "loss": loss}
        for solver in ("direct", "deflation", "span", "core")
        for loss in ("squared_hinge", "hinge")
        if loss == "squared_hinge" or solver in ("direct", "deflation")
    ],
    ids=lambda way: " ".join(getattr(value, "__name__", value) for value in way.values()),
)
@pytest.mark.parametrize("across", ["problem", "all"])
def test_more_directions_than_dimensions_give_fewer_features_and_a_warning(way, across):
    X, y = _wine()
    model = MaxMarginDA(5, random_state=0, across=across, **way)
    with pytest.warns(UserWarning, match=r"Fewer than n_directions=5 directions.*n_directions"):
        model.fit(X[:, :3], y)
    most = 9 if across == "problem" else 3
    features = model.transform(X[:, :3])
    assert 1 <= features.shape[1] <= most
    assert features.shape[1] == len(model.directions_["order"]) == len(model.intercept_)
    vectors = model.components_ if way["kernel"] == "linear" else model.coef_ @ model.vectors_
    gram = vectors @ vectors.T
    same = np.equal.outer(model.directions_["problem"], model.directions_["problem"])
    related = same if across == "problem" else np.ones_like(same)
    assert np.abs(np.where(related, gram - np.eye(len(gram)), 0.0)).max() <= 1e-8
    if across == "problem" and model.loss == "squared_hinge":
        # In three dimensions there are three of each, if all tell the classes apart.
        assert features.shape[1] >= 6


def test_the_warning_names_the_problems_that_fell_short():
    rng = np.random.default_rng(0)
    # Only the first coordinate tells "far" from the rest; with it gone, means and spreads agree.
    X = np.array([[s, a, b] for s in (0.0, 5.0) for a in (-1, 1) for b in (-1, 1)] * 5)
    y = np.where(X[:, 0] > 0, "far", np.where(rng.uniform(size=len(X)) < 0.5, "left", "right"))
    with pytest.warns(UserWarning, match="separate far") as record:
        _da(2, "linear", tol=1e-6).fit(X, y)
    assert len(record) == 1


def test_the_warning_names_the_code_that_fell_short():
    X, y = np.array([[-5.0], [0.0], [5.0]] * 10), np.arange(30) % 3
    codes = np.array([[-1, -1], [-1, 1], [1, -1]])
    with pytest.warns(UserWarning) as record:
        model = _da(1, "linear", codes=codes, tol=1e-6).fit(X, y)
    # The middle has the mean of the others: problem 1 has no linear direction at all.
    assert_array_equal(model.directions_["problem"], [0])
    assert re.search(r"separate 1 from", str(record[0].message))
    # Of two codes either can fall short; of two classes only the second is named.
    with pytest.warns(UserWarning, match="separate 0 from"):
        _da(1, "linear", codes=codes[:, ::-1], tol=1e-6).fit(X, y)


# Limits and interrupts.


@pytest.mark.parametrize("way", [way for way in WAYS if way != "span"])
def test_hardly_any_time_leaves_a_valid_model_and_a_warning(way):
    X, y = _digits(4, 400)
    model = _da(4, way, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"max_time=.*features and a relative gap of"):
        model.fit(X, y)
    assert "max_time" in model.certificate_.stopped
    assert 1 <= len(model.directions_["order"]) < 16
    assert_valid(model, X, y)


@pytest.mark.parametrize("across", ["problem", "all"])
@pytest.mark.parametrize("max_time", [8, 12, 15, 18, 20, 30, 40])
def test_a_span_stops_in_time_wherever_it_is(monkeypatch, max_time, across):
    # A clock that goes on by a second whenever someone looks at it. The limit also falls on the
    # first step of a round, where w is still zero: that is no end of the subspace.
    clock = count()
    for module in ("deadline", "loop", "discriminant.directions"):
        monkeypatch.setattr(f"widemargin.{module}.perf_counter", lambda: float(next(clock)))
    X, y = _digits(4, 400)
    model = _da(4, "span", C=10.0, max_time=max_time, across=across)
    with pytest.warns(ConvergenceWarning, match=r"max_time=.*features and a relative gap of"):
        model.fit(X, y)
    assert 1 <= len(model.directions_["order"]) < 16
    assert_valid(model, X, y)


def test_no_time_at_all_for_a_span_is_not_blamed_on_the_rows():
    # Before its first step a span fit has w = 0, as where there is nothing to separate.
    X, y = _digits(4, 400)
    try:
        _da(1, "span", max_time=1e-6).fit(X, y)
    except ConvergenceWarning as warning:
        assert "max_time" in str(warning)
    except ValueError as error:
        assert "max_time" in str(error)


@pytest.mark.parametrize("way", ["span", "core"])
def test_few_steps_leave_a_valid_model_and_a_warning(way):
    X, y = _digits(4, 400)
    model = _da(2, way, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2.*relative gap of"):
        model.fit(X, y)
    assert len(model.directions_["order"]) == 8
    assert_valid(model, X, y)


@pytest.mark.parametrize(
    ("way", "owner", "method"),
    [
        ("deflation", Deflation, "solve"),
        ("direct", Direct, "solve"),
        ("span", SpanFit, "step"),
        ("core", CoreSet, "step"),
        ("linear", Linear, "_find"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("across", ["problem", "all"])
@pytest.mark.parametrize("calls", [5, 13])
def test_an_interrupt_leaves_a_valid_model(monkeypatch, way, owner, method, calls, across):
    X, y = _digits(4, 200)
    work, made = getattr(owner, method), []

    def interrupted(self, *arguments):
        made.append(1)
        if len(made) == calls:
            raise KeyboardInterrupt
        return work(self, *arguments)

    monkeypatch.setattr(owner, method, interrupted)
    # With "span" and "all", the first of them falls on the fit that chooses the vectors.
    model = _da(4, way, C=10.0, n_jobs=1, across=across)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    assert len(made) == calls
    assert model.certificate_.stopped == "interrupted"
    assert 1 <= len(model.directions_["order"]) < 16
    assert_valid(model, X, y)


@pytest.mark.parametrize("across", ["problem", "all"])
def test_an_interrupt_at_the_first_step_of_a_later_round_is_no_end_of_the_subspace(
    monkeypatch, across
):
    X, y = _digits(4, 300)
    again, step = SpanFit.again, SpanFit.step

    def marked(self, *arguments):
        later = again(self, *arguments)
        later.is_later = arguments[1] is not None
        return later

    def interrupted(self, state):
        if getattr(self, "is_later", False):
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(SpanFit, "again", marked)
    monkeypatch.setattr(SpanFit, "step", interrupted)
    model = _da(2, "span", C=10.0, across=across)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    assert model.certificate_.stopped == "interrupted"
    assert_valid(model, X, y)


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


@every_way
def test_a_stored_model_gives_the_same_bits(way):
    X, y = _wine()
    model = _da(2, way).fit(sparse.csr_array(X), np.array(["a", "b", "c"])[y])
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(X), model.transform(X))
    assert str(copy.certificate_) == str(model.certificate_)
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=stored)
    assert all(name.startswith(("widemargin.", "scipy.sparse.")) for name in unknown)
    copy = skops.loads(stored, trusted=unknown)
    assert_array_equal(copy.transform(X), model.transform(X))
    assert_array_equal(copy.get_feature_names_out(), model.get_feature_names_out())


def test_a_clone_is_unfitted_and_fits_alike():
    X, y = _wine()
    model = _da(2, "span", C=3.0, gamma="mean_distance", constraint="uncorrelated").fit(X, y)
    twin = clone(model)
    with pytest.raises(NotFittedError, match="MaxMarginDA"):
        twin.transform(X)
    assert twin.get_params() == model.get_params()
    assert_array_equal(twin.fit_transform(X, y), model.transform(X))


class _Stopper:
    """A fit callback that asks to stop when some tasks have ended."""

    def __init__(self, stop_after):
        self.stop_after, self.seen = stop_after, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        pass

    def on_fit_task_end(self, estimator, context):
        self.seen += context.task_name == "step"
        return self.seen >= self.stop_after


@pytest.mark.parametrize("way", ["deflation", "span", "core", "linear"])
def test_a_callback_can_stop_the_fit(way):
    pytest.importorskip("sklearn.callback")
    X, y = _wine()
    model = _da(8, way, tol=1e-9).set_callbacks(_Stopper(2))
    with pytest.warns(ConvergenceWarning, match=r"callback.*relative gap of"):
        model.fit(X, y)
    assert 1 <= len(model.directions_["order"]) < 24
    assert_valid(model, X, y)


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


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda X, y: (X, np.zeros_like(y)), "(?i)class"),
        (lambda X, y: (X[:1], y[:1]), "sample"),
        (lambda X, y: (X[:, :0], y), "feature"),
        (lambda X, y: (X, X[:, 0]), "continuous"),
        (lambda X, y: (X, None), "y"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
    ],
)
def test_input_that_is_no_classification_problem_is_refused(change, pattern):
    with pytest.raises(ValueError, match=pattern):
        _da().fit(*change(*_wine()))


def test_transform_needs_a_fit_and_the_same_columns():
    X, y = _wine()
    with pytest.raises(NotFittedError, match="MaxMarginDA"):
        _da().transform(X)
    with pytest.raises(NotFittedError, match="MaxMarginDA"):
        _da().get_feature_names_out()
    with pytest.raises(ValueError, match="features"):
        _da().fit(X, y).transform(X[:, :5])
