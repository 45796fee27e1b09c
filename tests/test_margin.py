"""`MarginClassifier` with both engines, against oracles and theorems."""

import pickle
import re
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tests.reference.svm import (
    dual_value,
    l2svm_dual_exact,
    l2svm_objective_primal,
    linear_svc_objective,
    rbf_via_cholesky,
    signed_kernel,
)
from widemargin import Certificate, CoreVectorClassifier, MarginClassifier
from widemargin.balls import CoreSet
from widemargin.kernels import RBF
from widemargin.span import CoreVectors, RandomVectors, SpanFit
from widemargin.span.descent import Descent

ENGINES = ["exact", "span"]
STRATEGIES = ["core", "random", "kmeans", "leverage"]
both_engines = pytest.mark.parametrize("engine", ENGINES)
every_strategy = pytest.mark.parametrize("vectors", STRATEGIES)
in_single_precision = pytest.mark.parametrize("single", [False, True], ids=["double", "single"])


# Data, small enough to be compared with slow oracles.


@cache
def _breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@cache
def _three_or_eight():
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 8))
    return X[chosen] / 16.0, y[chosen]


def _digits(n_classes, n_rows):
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < n_classes)[:n_rows]
    return X[chosen] / 16.0, y[chosen]


def _moons(n_rows, noise=0.2):
    return make_moons(n_rows, noise=noise, random_state=0)


DATA = {"breast cancer": _breast_cancer, "digits 3 and 8": _three_or_eight}


def _margin(**parameters):
    return MarginClassifier(**{"random_state": 0} | parameters)


def _span(**parameters):
    return _margin(engine="span", **parameters)


def _signs(y, positive=None):
    return np.where(y == (np.max(y) if positive is None else positive), 1.0, -1.0)


def _rbf(gamma):
    return lambda A, B: rbf_kernel(A, B, gamma=gamma)


def _dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def _objective(machine, kernel, X, sign, weight=None, problem=0):
    """Primal objective over all rows, from the attributes of a machine alone, in float64."""
    vectors, beta = _dense(machine.support_vectors_), machine.dual_coef_[problem]
    b = machine.intercept_[problem]
    slack = np.maximum(0.0, 1.0 - sign * (kernel(X, vectors) @ beta + b))
    loss = (slack**2 if weight is None else weight * slack**2).sum()
    return 0.5 * beta @ kernel(vectors, vectors) @ beta + 0.5 * b * b + machine.C * loss


def _objectives(machine, kernel, X, y, weight=None):
    """The sum over the problems, as the certificate has it."""
    if len(machine.classes_) == 2:
        return _objective(machine, kernel, X, _signs(y, machine.classes_[1]), weight)
    return sum(
        _objective(machine, kernel, X, _signs(y, label), weight, p)
        for p, label in enumerate(machine.classes_)
    )


def _linear_svc_optimum(F, sign, C):
    oracle = LinearSVC(C=C, loss="squared_hinge", dual=False, tol=1e-10, max_iter=100_000)
    oracle.fit(F, sign)
    return linear_svc_objective(F, sign, C, None, oracle.coef_, oracle.intercept_)


def _exact_optimum(K, sign, C, weight=None):
    Q = signed_kernel(K, sign, C, weight)
    return -dual_value(Q, l2svm_dual_exact(Q))


def _features(kernel, X, vectors):
    """Coordinates of φ(x), projected onto the span of `vectors`, in an orthonormal basis."""
    factor = np.linalg.cholesky(kernel(vectors, vectors))
    return solve_triangular(factor, kernel(vectors, X), lower=True).T


def _span_optimum(kernel, X, vectors, sign, C):
    """Optimum over all rows inside the span of `vectors`: LinearSVC on the features there."""
    return _linear_svc_optimum(_features(kernel, X, vectors), sign, C)


def _in_single_precision(monkeypatch, single):
    """Let kernel values be float32 as they are on large data."""
    if single:
        monkeypatch.setattr("widemargin.span.sizes._FEW_VALUES", 0)


# Which engine.


def test_auto_is_exact_for_few_different_rows_and_a_span_beyond(monkeypatch):
    monkeypatch.setattr("widemargin.svm.engines._EXACT_ROWS", 100)
    monkeypatch.setattr("widemargin.svm.engines._MOST_EXACT_ROWS", 100)
    X, y = _moons(101)
    assert _margin().fit(X[:100], y[:100]).engine_ == "exact"
    assert _margin().fit(X, y).engine_ == "span"
    copies = np.repeat(np.arange(100), 3)
    assert _margin().fit(X[copies], y[copies]).engine_ == "exact"
    assert _margin().fit(X, y, sample_weight=np.arange(101) > 0).engine_ == "exact"


def test_between_few_and_many_rows_auto_is_exact_if_few_of_them_support_the_machine(monkeypatch):
    monkeypatch.setattr("widemargin.svm.engines._EXACT_ROWS", 100)
    monkeypatch.setattr("widemargin.svm.engines._PROBE", (50, 100))
    monkeypatch.setattr("widemargin.svm.engines._EXACT_WORK", 1e6)  # about 140 support vectors
    X, y = _moons(600, noise=0.05)
    apart = _margin(C=100, gamma=1.0).fit(X, y)
    assert (apart.engine_, len(apart.support_) < 140) == ("exact", True)
    mixed = np.random.default_rng(0).integers(0, 2, size=600)
    assert _margin(C=100, gamma=1.0).fit(X, mixed).engine_ == "span"
    support = _margin(C=100, gamma=1.0, engine="exact").fit(X, mixed).support_
    assert len(support) > 300


@pytest.mark.parametrize(
    ("parameters", "engine"),
    [
        ({}, "exact"),
        ({"max_vectors": 100}, "exact"),
        ({"max_vectors": 99}, "span"),
        ({"vectors": "random"}, "exact"),
        ({"vectors": np.array([[0.5, 0.2]])}, "span"),
        ({"vectors": RandomVectors()}, "span"),
        ({"memory": 8 * 100 * 100}, "exact"),
        ({"memory": 8 * 100 * 100 - 1}, "span"),
        ({"engine": "exact", "max_vectors": 99}, "exact"),
        ({"engine": "span"}, "span"),
    ],
    ids=str,
)
def test_the_engine_is_the_one_that_the_parameters_ask_for(parameters, engine):
    X, y = _moons(100)
    machine = _margin(gamma=1.0, **parameters)
    machine.fit(X, y)
    assert machine.engine_ == engine
    assert machine.certificate_.scope == {"exact": "full", "span": "span"}[engine]
    if engine == "span" and parameters.get("max_vectors"):
        assert machine.certificate_.n_vectors <= 99


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"engine": "dual"}, r"engine='dual'.*'auto', 'exact', 'span'"),
        ({"engine": None}, r"engine=None.*'auto', 'exact', 'span'"),
        ({"vectors": "centres"}, r"vectors='centres'.*'random', 'core', 'kmeans', 'leverage'"),
        ({"engine": "exact", "vectors": "centres"}, r"vectors='centres'.*'random'"),
        ({"max_vectors": "all"}, r"max_vectors='all'.*'auto'"),
        ({"max_vectors": 0}, r"max_vectors=0.*at least 1"),
        ({"max_vectors": 2.5}, r"max_vectors=2\.5.*whole"),
        ({"vectors": np.zeros((4, 5))}, r"vectors of shape \(4, 5\).*2 features"),
        ({"vectors": np.zeros((0, 2))}, r"vectors of shape \(0, 2\).*at least one row"),
        ({"vectors": np.zeros(2)}, r"vectors of shape \(2,\).*matrix"),
        ({"vectors": np.full((3, 2), np.nan)}, r"vectors hold NaN"),
    ],
    ids=str,
)
def test_an_unknown_engine_or_strategy_is_an_error_that_lists_what_there_is(parameters, remedy):
    X, y = _moons(30)
    with pytest.raises((ValueError, TypeError), match=remedy):
        _margin(**parameters).fit(X, y)


def test_a_bad_name_does_not_harm_a_fitted_machine():
    X, y = _moons(60)
    for bad in ({"vectors": "centres"}, {"engine": "dual"}, {"max_vectors": "all"}):
        machine = _span().fit(X, y)
        before = machine.decision_function(X)
        with pytest.raises(ValueError, match=next(iter(bad))):
            machine.set_params(**bad).fit(X * 3, y)
        assert_array_equal(machine.decision_function(X), before)


# The optimum.


@cache
def _linear_optimum(data, C):
    X, y = DATA[data]()
    return _linear_svc_optimum(X, _signs(y), C)


@both_engines
@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_linear_machine_reaches_the_objective_of_linear_svc(data, C, engine):
    X, y = DATA[data]()
    machine = _margin(engine=engine, C=C, kernel="linear", max_vectors=len(X), tol=1e-8).fit(X, y)
    assert_allclose(
        _objective(machine, linear_kernel, X, _signs(y)), _linear_optimum(data, C), rtol=1e-6
    )


@cache
def _rbf_optimum(data, C):
    X, y = DATA[data]()
    X, sign = X[:250], _signs(y[:250])
    return _linear_svc_optimum(rbf_via_cholesky(rbf_kernel(X, gamma=0.05)), sign, C)


@both_engines
@pytest.mark.parametrize("C", [0.1, 10])
@pytest.mark.parametrize("data", DATA)
def test_the_rbf_machine_reaches_the_objective_of_linear_svc_on_a_factor(data, C, engine):
    X, y = DATA[data]()
    X, y = X[:250], y[:250]
    machine = _margin(engine=engine, C=C, gamma=0.05, max_vectors=250, tol=1e-8).fit(X, y)
    reached = _objective(machine, _rbf(0.05), X, _signs(y))
    assert_allclose(reached, _rbf_optimum(data, C), rtol=1e-6)


@both_engines
def test_several_classes_reach_the_optimum_of_each_against_the_rest(engine):
    X, y = _digits(4, 120)
    K = rbf_kernel(X, gamma=0.02)
    machine = _margin(engine=engine, C=2.0, gamma=0.02, max_vectors=120, tol=1e-9).fit(X, y)
    assert machine.decision_function(X).shape == (120, 4)
    optimum = [_exact_optimum(K, _signs(y, label), 2.0) for label in machine.classes_]
    for p, label in enumerate(machine.classes_):
        reached = _objective(machine, _rbf(0.02), X, _signs(y, label), problem=p)
        assert_allclose(reached, optimum[p], rtol=1e-6)
    assert_allclose(machine.certificate_.primal, sum(optimum), rtol=1e-6)
    assert machine.certificate_.dual <= sum(optimum) * (1 + 1e-9)


@both_engines
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly", "inverse_distance"])
def test_both_engines_find_the_machine_of_every_kernel(engine, kernel):
    X, y = _digits(3, 150)
    parameters = {"kernel": kernel, "gamma": 0.05, "degree": 2, "coef0": 1.0, "tol": 1e-9}
    machine = _margin(engine=engine, max_vectors=150, **parameters).fit(X, y)
    core = CoreVectorClassifier(**parameters).fit(X, y)
    assert_allclose(machine.certificate_.primal, core.certificate_.primal, rtol=1e-7)
    assert_allclose(machine.decision_function(X), core.decision_function(X), atol=1e-3)


# The span of a few vectors.


@in_single_precision
@every_strategy
def test_a_span_fit_is_the_best_machine_over_all_rows_inside_its_span(monkeypatch, vectors, single):
    _in_single_precision(monkeypatch, single)
    X, y = _breast_cancer()
    sign, kernel = _signs(y), _rbf(0.02)
    tol = 1e-4 if single else 1e-8
    machine = _span(C=5.0, gamma=0.02, vectors=vectors, max_vectors=40, tol=tol).fit(X, y)
    best = _span_optimum(kernel, X, machine.support_vectors_, sign, 5.0)
    reached = _objective(machine, kernel, X, sign)
    assert best * (1 - 1e-8) <= reached <= best * (1 + (2e-4 if single else 1e-6))


@in_single_precision
@pytest.mark.parametrize("tol", [0.3, 1e-3])
@every_strategy
def test_the_certificate_of_a_span_is_true(monkeypatch, vectors, tol, single):
    _in_single_precision(monkeypatch, single)
    X, y = _three_or_eight()
    sign, kernel = _signs(y), _rbf(0.05)
    machine = _span(C=10.0, gamma=0.05, vectors=vectors, max_vectors=50, tol=tol).fit(X, y)
    certificate = machine.certificate_
    assert certificate.scope == "span"
    assert certificate.n_vectors == len(machine.support_vectors_) <= 50
    reached = _objective(machine, kernel, X, sign)
    best = _span_optimum(kernel, X, machine.support_vectors_, sign, 10.0)
    full = _rbf_optimum_of_all_rows(10.0)
    rounding = 1e-4 if single else 1e-9
    assert_allclose(certificate.primal, reached, rtol=rounding)
    assert certificate.gap <= tol * (1 + 1e-9) + rounding
    assert certificate.dual <= best * (1 + rounding)
    assert reached * (1 - certificate.gap) <= best * (1 + 1e-9)
    assert certificate.full_dual <= full * (1 + 1e-9)
    assert full * (1 - 1e-9) <= reached


@cache
def _rbf_optimum_of_all_rows(C):
    X, y = _three_or_eight()
    return _linear_svc_optimum(rbf_via_cholesky(rbf_kernel(X, gamma=0.05)), _signs(y), C)


def test_the_gap_of_several_classes_is_that_of_their_sum():
    X, y = _digits(5, 400)
    machine = _span(C=3.0, gamma=0.05, max_vectors=60, tol=1e-3).fit(X, y)
    certificate = machine.certificate_
    reached = _objectives(machine, _rbf(0.05), X, y)
    best = sum(
        _span_optimum(_rbf(0.05), X, machine.support_vectors_, _signs(y, label), 3.0)
        for label in machine.classes_
    )
    assert_allclose(certificate.primal, reached, rtol=1e-9)
    assert certificate.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= reached <= best / (1 - 1e-3)
    assert certificate.gap <= 1e-3
    assert_allclose(certificate.gap, 1 - certificate.dual / certificate.primal, atol=1e-12)


def test_more_vectors_never_raise_the_objective():
    X, y = _three_or_eight()
    parameters = {"C": 10.0, "gamma": 0.05, "vectors": "random", "tol": 1e-8}
    rows, primal = set(), np.inf
    for m in (10, 30, 90, 200):
        machine = _span(max_vectors=m, **parameters).fit(X, y)
        assert rows <= set(machine.support_)  # one seed draws the same rows first
        assert machine.certificate_.primal <= primal * (1 + 1e-8)
        rows, primal = set(machine.support_), machine.certificate_.primal
    assert primal >= _rbf_optimum_of_all_rows(10.0) * (1 - 1e-8)


def test_all_rows_in_the_loss_beat_a_machine_fitted_to_the_vectors_rows_alone():
    X, y = _three_or_eight()
    sign, kernel = _signs(y), _rbf(0.05)
    machine = _span(C=1.0, gamma=0.05, max_vectors=60, tol=1e-6).fit(X, y)
    rows = machine.support_
    alone = CoreVectorClassifier(C=1.0, gamma=0.05, tol=1e-6).fit(X[rows], y[rows])
    assert _objective(machine, kernel, X, sign) < _objective(alone, kernel, X, sign)


@every_strategy
def test_vectors_grow_from_few_to_many_within_the_budget(vectors):
    # More than one level of vectors, and more rows than the first look takes.
    X, y = _moons(6000, noise=0.25)
    kernel, sign = _rbf(5.0), _signs(y)
    machine = _span(C=1.0, gamma=5.0, vectors=vectors, max_vectors=600, tol=1e-3).fit(X, y)
    certificate = machine.certificate_
    assert certificate.n_vectors == len(machine.support_vectors_) <= 600
    assert certificate.n_vectors > 100
    reached = _objective(machine, kernel, X, sign)
    assert_allclose(certificate.primal, reached, rtol=1e-5)
    assert certificate.dual <= reached
    assert certificate.gap <= 1e-3
    assert certificate.full_dual <= reached


def test_vectors_that_lie_in_the_span_of_the_others_are_left_out():
    # Two columns and a linear kernel: two vectors span everything.
    X, y = _moons(300)
    machine = _span(kernel="linear", max_vectors=100, tol=1e-8).fit(X, y)
    assert machine.certificate_.n_vectors == 2
    best = _linear_svc_optimum(X, _signs(y), 1.0)
    assert_allclose(_objective(machine, linear_kernel, X, _signs(y)), best, rtol=1e-6)


def test_more_copies_than_vectors_still_span_all_different_rows():
    X, y = _moons(12, noise=0.4)
    copies = np.repeat(np.arange(12), 50)
    machine = _span(gamma=1.0, vectors="random", max_vectors=12, tol=1e-8).fit(X[copies], y[copies])
    assert machine.certificate_.n_vectors == 12
    best = _exact_optimum(rbf_kernel(X, gamma=1.0), _signs(y), 1.0, np.full(12, 50.0))
    assert_allclose(machine.certificate_.primal, best, rtol=1e-6)


@pytest.mark.parametrize("m", [1, 7])
@every_strategy
def test_a_very_small_budget_is_kept(vectors, m):
    X, y = _digits(3, 200)
    machine = _span(vectors=vectors, max_vectors=m).fit(X, y)
    assert machine.dual_coef_.shape == (3, m)
    assert machine.certificate_.gap <= 1e-3
    assert machine.certificate_.primal < 3 * 200  # the zero function's


def test_vectors_of_the_users_own_are_the_machines():
    X, y = _digits(3, 200)
    mine = np.random.default_rng(0).uniform(size=(15, 64))
    for given in (mine, mine.tolist(), sparse.csr_array(mine)):
        machine = _span(gamma=0.05, vectors=given, tol=1e-8).fit(X, y)
        assert machine.support_ is None
        assert_allclose(np.sort(machine.support_vectors_, axis=0), np.sort(mine, axis=0))
    for p, label in enumerate(machine.classes_):
        best = _span_optimum(_rbf(0.05), X, mine, _signs(y, label), 1.0)
        reached = _objective(machine, _rbf(0.05), X, _signs(y, label), problem=p)
        assert_allclose(reached, best, rtol=1e-6)


def test_a_strategy_object_equals_its_name():
    X, y = _digits(3, 200)
    for name, strategy in (("core", CoreVectors()), ("random", RandomVectors())):
        named = _span(vectors=name, max_vectors=30).fit(X, y)
        given = _span(vectors=strategy, max_vectors=30).fit(X, y)
        assert_array_equal(given.decision_function(X), named.decision_function(X))


@pytest.mark.parametrize("m", [20, 150])
def test_a_precomputed_kernel_equals_the_named_one(m):
    X, y = _digits(3, 200)
    K = rbf_kernel(X, gamma=0.05)
    given = _span(kernel="precomputed", max_vectors=m, tol=1e-8).fit(K[:150, :150], y[:150])
    rows = given.support_
    assert_array_equal(given.support_vectors_, rows[:, None])
    named = _span(gamma=0.05, vectors=X[rows], tol=1e-8).fit(X[:150], y[:150])
    assert_allclose(given.certificate_.primal, named.certificate_.primal, rtol=1e-7)
    assert_allclose(
        given.decision_function(K[150:, :150]), named.decision_function(X[150:]), atol=1e-3
    )
    stored = _span(kernel="precomputed", max_vectors=m, tol=1e-8)
    stored.fit(sparse.csr_array(K[:150, :150]), y[:150])
    assert_allclose(
        stored.decision_function(sparse.csr_array(K[150:, :150])),
        given.decision_function(K[150:, :150]),
        atol=1e-6,
    )


@every_strategy
def test_a_function_or_a_kernel_object_equals_the_name(vectors):
    X, y = _digits(3, 150)
    parameters = {"vectors": vectors, "max_vectors": 30, "tol": 1e-8}
    named = _span(gamma=0.05, **parameters).fit(X, y).decision_function(X)
    function = _span(kernel=rbf_kernel, kernel_params={"gamma": 0.05}, **parameters).fit(X, y)
    assert_allclose(function.decision_function(X), named, atol=1e-4)
    thing = _span(kernel=RBF(gamma=0.05), **parameters).fit(X, y)
    assert_allclose(thing.decision_function(X), named, atol=1e-9)


def test_a_grid_search_cuts_a_precomputed_kernel_both_ways():
    X, y = _digits(3, 150)
    grid = {"C": [0.001, 1.0]}
    given = GridSearchCV(_span(kernel="precomputed", max_vectors=60), grid, cv=3)
    given.fit(rbf_kernel(X, gamma=0.05), y)
    assert given.best_params_["C"] == 1.0
    assert given.best_score_ > 0.9


# Weights.

SPANS = {
    "exact": {"engine": "exact"},
    "all rows": {"engine": "span", "max_vectors": 1000},
    "core": {"engine": "span", "max_vectors": 30},
    "random": {"engine": "span", "max_vectors": 30, "vectors": "random"},
    "kmeans": {"engine": "span", "max_vectors": 30, "vectors": "kmeans"},
    "leverage": {"engine": "span", "max_vectors": 30, "vectors": "leverage"},
}
every_machine = pytest.mark.parametrize("machine", SPANS)


@every_machine
@pytest.mark.parametrize(
    ("as_stored", "gamma"),
    [(np.asarray, "scale"), (sparse.csr_array, "mean_distance")],
    ids=["dense-scale", "sparse-mean_distance"],
)
def test_weight_k_is_the_same_as_k_copies(machine, as_stored, gamma):
    X, y = _digits(3, 120)
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    parameters = {"C": 2.0, "gamma": gamma, **SPANS[machine]}
    weighted = _margin(**parameters).fit(as_stored(X), y, sample_weight=k)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    copied = _margin(**parameters).fit(as_stored(X[copies]), y[copies])
    assert_allclose(
        weighted.decision_function(as_stored(X)), copied.decision_function(as_stored(X)), atol=1e-7
    )
    plain = _margin(**parameters).fit(as_stored(X), y)
    assert np.abs(weighted.decision_function(X) - plain.decision_function(X)).max() > 1e-2


@both_engines
def test_the_weighted_machine_solves_the_weighted_problem(engine):
    X, y = _breast_cancer()
    X, sign = X[:150], _signs(y[:150])
    weight = np.random.default_rng(0).exponential(size=len(X))
    K = rbf_kernel(X, gamma=0.05)
    best = _exact_optimum(K, sign, 2.0, weight)
    machine = _margin(engine=engine, C=2.0, gamma=0.05, max_vectors=150, tol=1e-8)
    machine.fit(X, sign, sample_weight=weight)
    beta = np.zeros(150)
    beta[machine.support_] = machine.dual_coef_[0]
    reached = l2svm_objective_primal(K, sign, 2.0, weight, beta, float(machine.intercept_[0]))
    assert_allclose(reached, best, rtol=1e-7)


@every_machine
def test_class_weights_are_sample_weights(machine):
    X, y = _digits(3, 150)
    factor = np.array([0.5, 3.0, 1.0])
    parameters = {"gamma": 0.05, "tol": 1e-6, **SPANS[machine]}
    by_class = _margin(class_weight=dict(enumerate(factor)), **parameters).fit(X, y)
    # Vectors are drawn by weights, of classes or of rows: the machine is the same given the same.
    by_row = _margin(**parameters).fit(X, y, sample_weight=factor[y])
    plain = _margin(**parameters).fit(X, y)
    assert_allclose(by_class.certificate_.primal, by_row.certificate_.primal, rtol=1e-5)
    assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-3)
    assert np.abs(by_class.decision_function(X) - plain.decision_function(X)).max() > 1e-2


@both_engines
def test_balanced_class_weights_follow_the_formula(engine):
    X, y = _digits(3, 150)
    kept = (y != 1) | (np.arange(len(y)) % 3 == 0)
    X, y = X[kept], y[kept]
    parameters = {"engine": engine, "gamma": 0.05, "max_vectors": len(y), "tol": 1e-8}
    for weight in (np.ones(len(y)), np.random.default_rng(0).integers(1, 4, size=len(y))):
        share = weight.sum() / (3 * np.bincount(y, weights=weight))
        balanced = _margin(class_weight="balanced", **parameters).fit(X, y, sample_weight=weight)
        written = _margin(**parameters).fit(X, y, sample_weight=weight * share[y])
        assert_allclose(balanced.decision_function(X), written.decision_function(X), atol=1e-4)


@every_machine
def test_rows_of_weight_zero_are_as_good_as_absent(machine):
    X, y = _digits(4, 200)
    kept = (np.arange(200) % 5 > 0) & (y != 3)
    parameters = {"gamma": 0.05, **SPANS[machine]}
    with_zeros = _margin(**parameters).fit(X, y, sample_weight=kept.astype(float))
    without = _margin(**parameters).fit(X[kept], y[kept])
    assert_array_equal(with_zeros.classes_, [0, 1, 2])
    assert_allclose(with_zeros.decision_function(X), without.decision_function(X), atol=1e-9)
    if with_zeros.support_ is not None:
        assert kept[with_zeros.support_].all()
        assert_array_equal(with_zeros.support_, np.flatnonzero(kept)[without.support_])


# Labels.


@both_engines
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["zwei", "eins", "drei"]),
        np.array(["β", "α", "大"]),
        np.array(["b", "a", "c"], dtype=object),
        np.array([7, -3, 100]),
    ],
)
def test_labels_of_any_type_come_back_as_they_were(engine, labels):
    X, y = _digits(3, 150)
    parameters = {"engine": engine, "max_vectors": 150, "tol": 1e-6}
    plain = _margin(**parameters).fit(X, y)
    named = _margin(**parameters).fit(X, labels[y])
    assert_array_equal(named.classes_, np.sort(labels))
    assert named.predict(X).dtype == named.classes_.dtype
    assert_array_equal(named.predict(X), labels[plain.predict(X)])


@both_engines
def test_a_positive_value_means_the_second_of_two_sorted_labels(engine):
    X, y = _three_or_eight()
    parameters = {"engine": engine, "gamma": 0.05, "max_vectors": len(X)}
    number = _margin(**parameters).fit(X, y)
    assert_array_equal(number.classes_, [3, 8])
    assert (number.decision_function(X[y == 8]) > 0).mean() > 0.95
    flag = _margin(**parameters).fit(X, y == 8)
    assert flag.classes_.dtype == bool
    assert_array_equal(flag.decision_function(X), number.decision_function(X))
    word = _margin(**parameters).fit(X, np.where(y == 8, "a", "b"))
    assert ((word.predict(X) == "a") == (number.predict(X) == 8)).mean() > 0.95


@every_machine
@pytest.mark.parametrize("n_classes", [2, 5])
def test_predict_is_exactly_the_sign_or_argmax_of_the_decision_function(machine, n_classes):
    X, y = _digits(n_classes, 300)
    fitted = _margin(**SPANS[machine]).fit(X[:200], y[:200])
    scores = fitted.decision_function(X)
    assert scores.shape == ((300,) if n_classes == 2 else (300, 5))
    winner = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert_array_equal(fitted.predict(X), fitted.classes_[winner])
    assert len(np.unique(fitted.predict(X))) == n_classes


@every_machine
@pytest.mark.parametrize(
    ("as_stored", "n_classes"),
    [(np.asarray, 2), (sparse.csr_array, 4)],
    ids=["dense-2", "sparse-4"],
)
def test_the_attributes_are_the_machine(machine, n_classes, as_stored):
    X, y = _digits(n_classes, 200)
    fitted = _margin(C=2.0, **SPANS[machine]).fit(as_stored(X[:150]), y[:150])
    vectors = _dense(fitted.support_vectors_)
    assert sparse.issparse(fitted.support_vectors_) == (as_stored is sparse.csr_array)
    if machine == "kmeans":
        assert fitted.support_ is None
    else:
        assert_array_equal(vectors, X[fitted.support_])
        assert (np.diff(fitted.support_) > 0).all()
    n_problems = 1 if n_classes == 2 else n_classes
    assert fitted.dual_coef_.shape == (n_problems, len(vectors))
    assert fitted.intercept_.shape == (n_problems,)
    by_hand = rbf_kernel(X[150:], vectors, gamma=fitted.gamma_) @ fitted.dual_coef_.T
    by_hand += fitted.intercept_
    scores = fitted.decision_function(as_stored(X[150:])).reshape(50, -1)
    assert_allclose(scores, by_hand, rtol=1e-9, atol=1e-9)


# Reproducibility.

REGIMES = {
    "exact": (_digits, (3, 300), {"engine": "exact"}),
    "all rows": (_digits, (3, 300), {"engine": "span", "max_vectors": 300}),
    "core": (_digits, (3, 300), {"engine": "span", "max_vectors": 60}),
    "kmeans": (_digits, (3, 300), {"engine": "span", "max_vectors": 60, "vectors": "kmeans"}),
    "leverage": (_digits, (3, 300), {"engine": "span", "max_vectors": 60, "vectors": "leverage"}),
    "growing": (_moons, (12_000, 0.25), {"engine": "span", "max_vectors": 400}),
    "little memory": (_moons, (3000, 0.2), {"engine": "span", "memory": "2MB", "max_vectors": 200}),
}
every_regime = pytest.mark.parametrize("regime", REGIMES)


def _fitted(regime, **parameters):
    make, size, own = REGIMES[regime]
    X, y = make(*size)
    return _margin(**{"gamma": 1.0, "random_state": 3} | own | parameters).fit(X, y), X


@every_regime
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(regime):
    first, X = _fitted(regime, n_jobs=1)
    for n_jobs in (1, 2):
        again, _ = _fitted(regime, n_jobs=n_jobs)
        for name in ("support_", "dual_coef_", "intercept_", "support_vectors_"):
            assert_array_equal(getattr(again, name), getattr(first, name))
        assert_array_equal(again.decision_function(X), first.decision_function(X))


def test_single_precision_has_the_same_bits_for_any_number_of_threads(monkeypatch):
    _in_single_precision(monkeypatch, True)
    one, X = _fitted("growing", n_jobs=1)
    two, _ = _fitted("growing", n_jobs=2)
    assert_array_equal(two.decision_function(X), one.decision_function(X))


@pytest.mark.parametrize("vectors", ["core", "random", "kmeans", "leverage"])
def test_another_seed_draws_other_vectors(vectors):
    X, y = _digits(3, 300)
    fits = [_span(max_vectors=10, vectors=vectors, random_state=s).fit(X, y) for s in (0, 1)]
    assert not np.array_equal(fits[0].support_vectors_, fits[1].support_vectors_)


@every_regime
def test_the_order_of_the_rows_does_not_matter(regime):
    make, size, own = REGIMES[regime]
    X, y = make(*size)
    order = np.random.default_rng(5).permutation(len(X))
    straight = _margin(gamma=1.0, **own).fit(X, y)
    shuffled = _margin(gamma=1.0, **own).fit(X[order], y[order])
    if straight.support_ is not None:
        assert set(order[shuffled.support_]) == set(straight.support_)
    assert_allclose(shuffled.decision_function(X), straight.decision_function(X), atol=1e-8)


@in_single_precision
@pytest.mark.parametrize("vectors", ["core", "kmeans"])
def test_kernel_values_that_are_computed_again_give_the_same_machine(monkeypatch, vectors, single):
    _in_single_precision(monkeypatch, single)
    X, y = _moons(8000)
    parameters = {"gamma": 2.0, "vectors": vectors, "max_vectors": 200}
    kept = _span(memory="1GB", **parameters).fit(X, y)
    again = _span(memory="2MB", **parameters).fit(X, y)
    assert again.certificate_.n_kernel > kept.certificate_.n_kernel
    assert again.certificate_.gap <= 1e-3
    assert_allclose(again.certificate_.primal, kept.certificate_.primal, rtol=2e-3)
    assert (again.predict(X) == kept.predict(X)).mean() > 0.998


# Limits and interrupts.


def _assert_usable(machine, X, y, least=0.7):
    """A fit that was stopped is a machine whose certificate is true."""
    assert machine.score(X, y) >= least
    assert machine.dual_coef_.shape[1] == len(machine.support_vectors_)
    certificate = machine.certificate_
    assert certificate.n_vectors == len(machine.support_vectors_)
    reached = _objectives(machine, _rbf(machine.gamma_), X, y)
    assert_allclose(certificate.primal, reached, rtol=1e-4)
    assert certificate.scope == {"exact": "full", "span": "span"}[machine.engine_]
    assert certificate.dual <= reached * (1 + 1e-9)
    if machine.engine_ == "span":
        assert certificate.full_dual <= reached


@both_engines
@pytest.mark.parametrize(
    ("limit", "value"), [("max_iter", 1), ("max_iter", 3), ("max_time", 1e-9)], ids=str
)
def test_a_limit_stops_the_fit_with_a_warning_that_states_the_gap(engine, limit, value):
    X, y = _moons(1500 if engine == "exact" else 8000)
    budget = {"exact": 1000, "span": 500}[engine]
    machine = _margin(
        engine=engine, C=10, gamma=2.0, tol=1e-9, max_vectors=budget, **{limit: value}
    )
    with pytest.warns(ConvergenceWarning, match=f"{limit}.*gap of ") as caught:
        machine.fit(X, y)
    certificate = machine.certificate_
    assert f"{certificate.gap:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert limit in certificate.stopped
    assert certificate.gap > 1e-9
    assert certificate.n_iter == machine.n_iter_ <= (value if limit == "max_iter" else 2)
    _assert_usable(machine, X, y, least=0.4 if value in (1, 1e-9) else 0.7)


@pytest.mark.parametrize("calls", range(0, 14, 3))
def test_an_interrupt_in_the_middle_of_a_step_leaves_a_valid_machine(monkeypatch, calls):
    X, y = _moons(8000)
    step, made = SpanFit.step, []

    def interrupted_step(self, state):
        made.append(1)
        after = step(self, state)
        if len(made) > calls:
            raise KeyboardInterrupt
        return after

    monkeypatch.setattr(SpanFit, "step", interrupted_step)
    machine = _span(C=10, gamma=2.0, tol=1e-12, max_vectors=1000)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*gap of"):
        machine.fit(X, y)
    assert len(made) == calls + 1
    assert machine.certificate_.stopped == "interrupted"
    _assert_usable(machine, X, y, least=0.4 if calls == 0 else 0.7)


@pytest.mark.parametrize("method", ["_pull", "extend", "score", "_multiply", "swap"])
def test_an_interrupt_inside_a_pass_over_the_rows_leaves_a_valid_machine(monkeypatch, method):
    X, y = _moons(8000, noise=0.1)
    work = getattr(Descent, method)
    for stop_at in (2, 7, 15):
        calls = []

        def interrupted(self, *arguments, calls=calls, stop_at=stop_at):
            calls.append(1)
            if len(calls) == stop_at:
                raise KeyboardInterrupt
            return work(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(Descent, method, interrupted)
            machine = _span(C=10, gamma=2.0, tol=1e-6, max_vectors=1000, vectors="random")
            try:
                machine.fit(X, y)
            except ConvergenceWarning as warning:
                assert "interrupted" in str(warning)
            assert (machine.certificate_.stopped == "interrupted") == (len(calls) >= stop_at)
        _assert_usable(machine, X, y, least=0.4)


def test_an_interrupt_of_the_exact_engine_leaves_a_valid_machine(monkeypatch):
    X, y = _moons(1500)

    def interrupted_step(self, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(CoreSet, "step", interrupted_step)
    machine = _margin(engine="exact", C=10, gamma=2.0, tol=1e-9, max_vectors=1400)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*gap of"):
        machine.fit(X, y)
    _assert_usable(machine, X, y)


def test_a_gap_of_zero_ends_at_the_optimum_with_or_without_a_warning():
    X, y = _breast_cancer()
    X, sign = X[:120], _signs(y[:120])
    best = _exact_optimum(rbf_kernel(X, gamma=0.05), sign, 1.0)
    machine = _span(gamma=0.05, tol=0.0, max_time=20.0)
    try:
        machine.fit(X, sign)
    except ConvergenceWarning as warning:
        assert "gap" in str(warning)
    assert_allclose(_objective(machine, _rbf(0.05), X, sign), best, rtol=1e-9)


@pytest.mark.parametrize("C", [1e-6, 1e3, 1e6])
def test_any_C_is_solved_to_the_gap_in_a_span_of_few_vectors(C):
    X, y = _three_or_eight()
    X, y = X[:150], y[:150]
    machine = _span(C=C, gamma=0.05, max_vectors=60).fit(X, y)
    assert machine.certificate_.gap <= 1e-3
    features = _features(_rbf(0.05), X, machine.support_vectors_)
    best = _exact_optimum(features @ features.T, _signs(y), C)
    reached = _objective(machine, _rbf(0.05), X, _signs(y))
    assert best * (1 - 1e-6) <= reached <= best / (1 - 1e-3) * (1 + 1e-6)


# Warm starts.


@every_machine
def test_a_warm_path_over_C_ends_where_cold_fits_do_in_fewer_steps(machine):
    X, y = _digits(3, 200)
    parameters = {"gamma": 0.05, "tol": 1e-7, **SPANS[machine]}
    path = _margin(warm_start=True, **parameters)
    warm_steps = cold_steps = 0
    for C in (0.3, 1, 3):
        path.set_params(C=C).fit(X, y)
        given = parameters
        if path.support_ is not None and path.engine_ == "span":
            # The same span, cold; it is the objective in it that must be the same.
            given = parameters | {"vectors": X[path.support_]}
        cold = _margin(C=C, **given).fit(X, y)
        assert_allclose(path.certificate_.primal, cold.certificate_.primal, rtol=1e-6)
        assert path.certificate_.n_vectors == cold.certificate_.n_vectors or machine == "exact"
        warm_steps += path.n_iter_
        cold_steps += cold.n_iter_
    if machine in ("all rows", "core", "random", "leverage"):
        assert warm_steps < cold_steps
    else:  # centres are drawn anew, and few rows are solved at once
        assert warm_steps <= cold_steps


def test_a_warm_start_at_the_solution_is_done_at_once():
    X, y = _digits(3, 300)
    machine = _span(C=2.0, gamma=0.05, max_vectors=60, warm_start=True).fit(X, y)
    first = machine.certificate_
    again = machine.fit(X, y).certificate_
    assert again.n_iter < first.n_iter / 2
    assert again.primal <= first.primal * (1 + 1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"max_vectors": 20},
        {"max_vectors": 120},
        {"vectors": "random"},
        {"vectors": "kmeans"},
        {"engine": "exact", "max_vectors": "auto"},
        {"gamma": 0.5},
        {"kernel": "linear"},
        {"memory": "1MB"},
    ],
    ids=str,
)
def test_a_warm_start_with_changed_parameters_keeps_its_promises(change):
    X, y = _digits(3, 300)
    machine = _span(C=2.0, gamma=0.05, max_vectors=60, warm_start=True).fit(X, y)
    machine.set_params(**change).fit(X, y)
    kernel = linear_kernel if machine.kernel == "linear" else _rbf(machine.gamma_)
    assert machine.certificate_.gap <= 1e-3
    assert machine.engine_ == change.get("engine", "span")
    if machine.engine_ == "span":
        assert machine.certificate_.n_vectors <= change.get("max_vectors", 60)
        if "max_vectors" in change:
            assert machine.certificate_.n_vectors == change["max_vectors"]
    assert_allclose(machine.certificate_.primal, _objectives(machine, kernel, X, y), rtol=1e-6)
    assert machine.score(X, y) > 0.97


def _other_rows(X, y):
    return X[::-1] * 0.5 + 0.1, y[::-1], None


def _fewer_rows(X, y):
    return X[:90], y[:90], None


def _other_classes(X, y):
    return X, y + 1, None


def _one_class_more(X, y):
    return X, np.where(np.arange(len(y)) % 7 == 0, 9, y), None


def _other_weights(X, y):
    return X, y, np.linspace(0.0, 3.0, len(y))


def _sparse(X, y):
    return sparse.csr_array(X), y, None


@both_engines
@pytest.mark.parametrize(
    "change", [_other_rows, _fewer_rows, _other_classes, _one_class_more, _other_weights, _sparse]
)
def test_a_warm_start_on_changed_data_gives_the_cold_answer(engine, change):
    X, y = _digits(3, 150)
    X2, y2, weight = change(X, y)
    parameters = {"engine": engine, "gamma": 0.05, "tol": 1e-9, "max_vectors": 150}
    warm = _margin(warm_start=True, **parameters).fit(X, y)
    warm.fit(X2, y2, sample_weight=weight)
    cold = _margin(**parameters).fit(X2, y2, sample_weight=weight)
    assert_allclose(warm.decision_function(X2), cold.decision_function(X2), atol=1e-3)
    assert_allclose(warm.certificate_.primal, cold.certificate_.primal, rtol=1e-7)


# Ways to store the rows.


@both_engines
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float16, np.float64])
def test_integers_and_half_precision_give_the_answer_of_the_same_numbers(engine, dtype):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:150], y[:150]
    expected = _margin(engine=engine, max_vectors=150).fit(X, y)
    machine = _margin(engine=engine, max_vectors=150).fit(X.astype(dtype), y)
    assert_array_equal(machine.support_, expected.support_)
    assert_allclose(
        machine.decision_function(X.astype(dtype)), expected.decision_function(X), atol=1e-12
    )


@every_strategy
def test_single_precision_rows_give_nearly_the_values_of_double(vectors):
    X, y = _digits(3, 150)  # sixteenths: the same numbers in both
    parameters = {"gamma": 0.05, "vectors": vectors, "max_vectors": 30, "tol": 1e-6}
    double = _span(**parameters).fit(X, y)
    single = _span(**parameters).fit(X.astype(np.float32), y)
    values = single.decision_function(X.astype(np.float32))
    assert values.dtype == np.float64
    assert_allclose(values, double.decision_function(X), atol=1e-2)


@every_machine
def test_fortran_order_lists_and_files_on_disk_give_the_same_answer(machine, tmp_path):
    X, y = _digits(3, 150)
    expected = _margin(**SPANS[machine]).fit(X, y).decision_function(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    frozen = X.copy()
    frozen.setflags(write=False)
    strided = np.repeat(X, 2, axis=0)[::2]
    for stored in (np.asfortranarray(X), mapped, frozen, strided, X.tolist()):
        fitted = _margin(**SPANS[machine]).fit(stored, y)
        assert_array_equal(fitted.decision_function(stored), expected)


@pytest.mark.parametrize(
    ("vectors", "kernel", "index"),
    [
        ("core", "rbf", np.int64),
        ("core", "linear", np.int32),
        ("random", "laplacian", np.int64),
        ("kmeans", "rbf", np.int32),
        ("leverage", "poly", np.int64),
    ],
)
def test_sparse_rows_equal_dense_ones(vectors, kernel, index):
    X, y = _digits(3, 150)
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(index), stored.indptr.astype(index)
    parameters = {"kernel": kernel, "gamma": 0.05, "vectors": vectors, "max_vectors": 30}
    dense = _span(tol=1e-8, **parameters).fit(X, y)
    machine = _span(tol=1e-8, **parameters).fit(stored, y)
    assert_allclose(machine.decision_function(stored), dense.decision_function(X), atol=1e-3)
    assert_allclose(machine.decision_function(X), machine.decision_function(stored), atol=1e-9)
    assert_allclose(machine.certificate_.primal, dense.certificate_.primal, rtol=1e-7)
    assert sparse.issparse(machine.support_vectors_)


# Progress.


@both_engines
def test_verbose_prints_rows_vectors_gap_and_seconds_for_each_step(engine, capsys):
    X, y = _moons(1500)
    machine = _margin(engine=engine, verbose=1, max_vectors=1400, gamma=1.0, tol=1e-2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == machine.n_iter_ > 1
    pattern = (
        r"\[MarginClassifier\] step (\d+): 1,500 rows, ([\d,]+) vectors, "
        r"gap (\S+) \((full|span|sample)\), (\S+) s"
    )
    found = [re.fullmatch(pattern, line) for line in lines]
    assert all(found)
    assert [int(match[1]) for match in found] == list(range(1, len(lines) + 1))
    assert int(found[-1][2].replace(",", "")) == len(machine.support_)
    assert float(found[-1][3]) == pytest.approx(machine.certificate_.gap, rel=0.01)
    assert found[-1][4] == machine.certificate_.scope
    assert float(found[0][3]) > 1e-2 >= float(found[-1][3])


@both_engines
def test_without_verbose_nothing_is_printed(engine, capsys):
    _margin(engine=engine).fit(*_moons(200))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


# Storing machines.


@every_machine
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_pickled_machine_gives_the_same_bits(machine, as_stored):
    X, y = _digits(3, 150)
    fitted = _margin(**SPANS[machine]).fit(as_stored(X), y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(copy.decision_function(X), fitted.decision_function(X))
    assert copy.certificate_ == fitted.certificate_
    assert copy.engine_ == fitted.engine_


@every_machine
def test_a_machine_stored_with_skops_gives_the_same_bits(machine):
    skops = pytest.importorskip("skops.io")
    X, y = _digits(3, 150)
    fitted = _margin(**SPANS[machine]).fit(X, np.array(["a", "b", "c"])[y])
    stored = skops.dumps(fitted)
    unknown = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("widemargin.") for name in unknown)
    copy = skops.loads(stored, trusted=unknown)
    assert_array_equal(copy.decision_function(X), fitted.decision_function(X))
    assert str(copy.certificate_) == str(fitted.certificate_)


@every_machine
def test_the_fitted_state_is_plain_arrays_numbers_and_strings(machine):
    X, y = _digits(3, 150)
    fitted = _margin(**SPANS[machine]).fit(X, y)
    plain = (np.ndarray, np.generic, int, float, str, bool, type(None), Certificate)
    state = {name: value for name, value in vars(fitted).items() if name not in fitted.get_params()}
    assert {"engine_", "support_", "dual_coef_", "classes_", "gamma_", "certificate_"} <= set(state)
    for name, value in state.items():
        assert isinstance(value, plain), name
        assert not (isinstance(value, np.ndarray) and value.dtype == object), name


@every_machine
def test_a_clone_is_unfitted_and_fits_alike(machine):
    X, y = _digits(3, 150)
    fitted = _margin(C=3.0, gamma="mean_distance", **SPANS[machine]).fit(X, y)
    twin = clone(fitted)
    assert not hasattr(twin, "support_")
    assert twin.get_params() == fitted.get_params()
    assert_array_equal(twin.fit(X, y).decision_function(X), fitted.decision_function(X))


def test_parameters_can_be_set_after_a_fit():
    X, y = _digits(3, 150)
    machine = _margin().fit(X, y)
    machine.set_params(engine="span", max_vectors=20, C=3.0).fit(X, y)
    fresh = _span(max_vectors=20, C=3.0).fit(X, y)
    assert_array_equal(machine.decision_function(X), fresh.decision_function(X))


def test_a_span_machine_does_not_hold_the_training_rows():
    X, y = np.random.default_rng(0).normal(size=(5000, 30)), np.arange(5000) % 2
    machine = _span(gamma=0.01, max_vectors=50, tol=1e-1).fit(X, y)
    assert len(pickle.dumps(machine)) < 50 * 34 * 8 + 20_000
