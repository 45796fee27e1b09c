"""The sparse classifiers: W, the machine on their vectors, weights, kernels, odd data."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tests.reference import kernels as reference
from tests.reference.sparse import (
    DATA,
    GAMMA,
    WAYS,
    W_of,
    assert_valid,
    every_way,
    half_of_wine,
    problems_of,
    small_moons,
    sparse_machine,
    svm_in_span,
    svm_objective,
    two_and_three,
)
from widemargin import MarginClassifier
from widemargin.kernels import KERNELS

# Many fits are cut short, to save time; where one must be warned of, the test says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
one_of_each = pytest.mark.parametrize("way", ["hinge", "shared squared", "fisher svm"])


@every_way
@two_and_three
def test_W_never_rises_and_is_that_of_the_certificate(way, classes):
    X, y = DATA[classes]()
    machine = sparse_machine(way).fit(X, y)
    certificate = machine.certificate_
    for history in machine.history_:
        assert len(history) > 3
        assert (np.diff(history) <= 0).all()
        assert history[-1] < history[0]
    assert_allclose(sum(each[-1] for each in machine.history_), certificate.primal)
    assert_allclose(W_of(machine, X, y), certificate.primal, rtol=1e-8)
    assert 0 <= certificate.gap <= 1e-8
    assert certificate.scope == "span"
    assert "W" in certificate.stopped  # and not a limit
    assert machine.n_iter_ == certificate.n_iter > 0
    if way in ("hinge", "fisher svm"):
        kernel = partial(rbf_kernel, gamma=GAMMA)
        best = sum(
            svm_in_span(X, sign, machine.expansion_vectors_[own], kernel)
            for _, sign, own in problems_of(machine, y)
        )
        assert_allclose(svm_objective(machine, X, y, np.ones(len(X)), kernel), best, rtol=1e-6)


def test_W_starts_at_the_span_fit_on_the_same_kmeans_vectors_and_ends_below():
    X, y = small_moons(300)
    span = MarginClassifier(
        engine="span", vectors="kmeans", max_vectors=6, tol=1e-9, gamma=1.0, random_state=0
    ).fit(X, y)
    Z = span.support_vectors_
    machine = sparse_machine("squared", init=Z, gamma=1.0).fit(X, y)
    assert_allclose(machine.history_[0][0], span.certificate_.primal, rtol=1e-5)
    assert machine.certificate_.primal < 0.95 * span.certificate_.primal
    machine = sparse_machine("hinge", init=Z, gamma=1.0).fit(X, y)
    start = svm_in_span(X, np.where(y == 1, 1.0, -1.0), Z, partial(rbf_kernel, gamma=1.0))
    assert_allclose(machine.history_[0][0], start, rtol=1e-6)
    assert machine.certificate_.primal < 0.95 * start


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_from_all_support_vectors_the_objective_is_at_most_the_svms(C):
    # The paper's Example 1.
    X, y = small_moons()
    svm = SVC(C=C, gamma=1.0).fit(X, y)
    slack = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * svm.decision_function(X))
    a, kernel = svm.dual_coef_[0], partial(rbf_kernel, gamma=1.0)
    square = a @ kernel(svm.support_vectors_, svm.support_vectors_) @ a
    machine = sparse_machine(init=svm.support_vectors_, C=C, gamma=1.0).fit(X, y)
    assert machine.n_vectors_ == len(svm.support_)
    # Without the ridge, which the SVM has not.
    reached = svm_objective(machine, X, y, np.ones(len(X)), kernel, lambda k, Z: k(Z, Z))
    assert np.abs(a).sum() - 0.5 * square <= reached <= 0.5 * square + C * slack.sum()


@two_and_three
@pytest.mark.parametrize("mu", [1e-3, 1.0])
def test_the_quotient_of_fisher_is_the_generalised_eigenvalue(classes, mu):
    X, y = DATA[classes]()
    weight = 0.5 + np.random.default_rng(0).random(len(X))
    own, svm = (
        sparse_machine(way, mu=mu, C=2.0).fit(X, y, sample_weight=weight)
        for way in ("fisher", "fisher svm")
    )
    assert_allclose(own.certificate_.primal, W_of(own, X, y, weight), rtol=1e-8)
    # Both have the same vectors; coefficients and bias are the best of the SVM, or Fisher's own.
    assert_array_equal(own.expansion_vectors_, svm.expansion_vectors_)
    assert svm.certificate_.primal == own.certificate_.primal
    kernel = partial(rbf_kernel, gamma=GAMMA)
    assert svm_objective(svm, X, y, weight, kernel) < svm_objective(own, X, y, weight, kernel)
    scores = own.decision_function(X).reshape(len(X), -1)
    for p, sign, _ in problems_of(own, y):
        means = [np.average(scores[sign == s, p], weights=weight[sign == s]) for s in (1, -1)]
        assert means[0] > 0
        assert_allclose(means[0], -means[1], rtol=1e-8)


@every_way
@two_and_three
def test_the_decision_function_is_the_expansion(way, classes):
    X, y = DATA[classes]()
    machine = sparse_machine(way, 4, max_iter=15).fit(X, y)
    problems = 1 if classes == "two" else 3
    groups = 1 if "shared" in way else problems
    assert machine.expansion_vectors_.shape == (4 * groups, X.shape[1])
    assert machine.coef_.shape == (problems, 4 * groups)
    assert machine.intercept_.shape == (problems,)
    assert_array_equal(machine.vector_problem_, np.repeat(np.arange(groups), 4))
    assert len(machine.history_) == groups
    if groups > 1:
        own = machine.vector_problem_ == np.arange(problems)[:, None]
        assert_array_equal(machine.coef_ != 0, own)
    new = X + 0.3
    scores = rbf_kernel(new, machine.expansion_vectors_, gamma=GAMMA) @ machine.coef_.T
    scores += machine.intercept_
    expected = scores[:, 0] if problems == 1 else scores
    assert_allclose(machine.decision_function(new), expected, atol=1e-8)
    winner = (scores[:, 0] > 0).astype(int) if problems == 1 else scores.argmax(axis=1)
    assert_array_equal(machine.predict(new), winner)
    assert machine.score(X, y) > 0.8


@every_way
@two_and_three
def test_weights_of_rows_and_classes_enter_W(way, classes):
    X, y = DATA[classes]()
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    machine = sparse_machine(way, gamma="scale", max_iter=15, class_weight={0: 0.5, 1: 2.0})
    machine.fit(X, y, sample_weight=k)
    assert_valid(machine, X, y, k * np.array([0.5, 2.0, 1.0])[y])


@every_way
def test_duplicates_in_the_data_and_in_the_start_are_survived(way):
    X, y = half_of_wine()
    X, y = np.concatenate([X, X[:30], X[:9]]), np.concatenate([y, y[:30], (y[:9] + 1) % 3])
    for Z in (np.concatenate([X[:3], X[:3], X[:3] + 1e-9]), np.tile(X[40], (4, 1))):
        machine = sparse_machine(way, init=Z, max_iter=12).fit(X, y)
        assert_valid(machine, X, y)
        assert machine.history_[0][-1] < machine.history_[0][0]


@every_way
@pytest.mark.parametrize("init", ["kmeans", "random", "reduced_set"])
def test_one_row_a_class_is_enough_and_rows_are_the_most_vectors(way, init):
    X, y = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]), np.array(["a", "b", "c"])
    for few in (2, 3):
        machine = sparse_machine(way, 5, init=init, gamma=0.5, C=10.0).fit(X[:few], y[:few])
        assert np.bincount(machine.vector_problem_).max() == few
        assert_array_equal(machine.predict(X[:few]), y[:few])
        assert_valid(machine, X[:few], y[:few])


@every_way
def test_constant_columns_do_not_move(way):
    X, y = half_of_wine()
    wide = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
    machine = sparse_machine(way, max_iter=20).fit(wide, y)
    assert_allclose(machine.expansion_vectors_[:, [0, -1]], [[7.0, 0.0]] * machine.n_vectors_)
    assert_valid(machine, wide, y)
    flat = sparse_machine(way, 2, gamma=1.0).fit(np.ones((30, 2)), np.arange(30) % 2)
    assert np.isfinite(flat.decision_function(np.ones((2, 2)))).all()


@every_way
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_the_rows_does_not_matter(way, factor):
    X, y = half_of_wine()
    plain = sparse_machine(way, gamma="scale", init=X[:6], max_iter=6).fit(X, y)
    scaled = sparse_machine(way, gamma="scale", init=X[:6] * factor, max_iter=6).fit(X * factor, y)
    assert_valid(scaled, X * factor, y)
    for history, expected in zip(scaled.history_, plain.history_, strict=True):
        assert_allclose(history[:4], expected[:4], rtol=1e-6)  # then rounding parts them


@pytest.mark.parametrize("way", [way for way in WAYS if way != "fisher"])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1e3, 1e6])
def test_any_C_gives_a_valid_machine(way, C):
    X, y = half_of_wine()
    machine = sparse_machine(way, C=C, max_iter=20).fit(X, y)
    assert_valid(machine, X, y)
    assert machine.certificate_.gap <= 1e-6
    assert C < 1 or machine.score(X, y) > 0.95


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"precomputed"}))
@one_of_each
def test_every_kernel_with_a_gradient_moves_its_vectors(way, name):
    X, y = small_moons(60)
    parameters = {"gamma": 0.05, "degree": 2, "coef0": 0.0 if name == "sigmoid" else 0.5}
    # tanh is no Mercer kernel, and two vectors span the plane.
    few = 1 if name in ("linear", "sigmoid") else 2
    machine = sparse_machine(way, few, kernel=name, max_iter=20, **parameters).fit(X, y)
    assert_valid(machine, X, y, None, lambda A, B: reference.block(name, A, B, **parameters))
    assert machine.history_[0][-1] < machine.history_[0][0]


BAD = [
    ({"n_vectors": 0}, r"n_vectors=0 must be at least 1"),
    ({"n_vectors": 1.5}, r"n_vectors=1\.5 must be a whole number, or a share"),
    ({"n_vectors": np.nan}, r"n_vectors=nan must be a whole number, or a share"),
    ({"n_vectors": "many"}, r"n_vectors='many' must be a"),
    ({"n_vectors": True}, r"n_vectors=True must be a"),
    ({"init": "centres"}, r"init='centres'.*one of 'kmeans', 'random'"),
    ({"init": np.ones((3, 5))}, r"\binit\b.*shape \(3, 5\).*2 features"),
    ({"init": np.ones(2)}, r"\binit\b.*shape \(2,\).*matrix"),
    ({"init": None}, r"\binit\b"),
    ({"init": [[0.0, np.nan]]}, r"\binit\b.*(NaN|finite)"),
    ({"init": [["a", "b"]]}, r"\binit\b"),
    ({"grow": "two"}, r"grow='two'.*one of 'one', 'double'"),
    ({"max_iter": 0}, r"max_iter=0 must be at least 1"),
    ({"class_weight": {0: 0.0}}, r"class_weight=.*sample_weight=0"),
    ({"loss": "log"}, r"loss='log' is not known; use one of 'hinge', 'squared_hinge'"),
    ({"mu": 0}, r"mu=0 must be positive"),
    ({"coefficients": "own"}, r"coefficients='own' is not known; use one of 'svm', 'fisher'"),
]


@pytest.mark.parametrize("way", ["hinge", "fisher"])
@pytest.mark.parametrize(("parameters", "message"), BAD, ids=[str(bad[0]) for bad in BAD])
def test_a_bad_parameter_is_named_with_the_remedy(way, parameters, message):
    X, y = small_moons(20)
    machine = sparse_machine(way)
    if set(parameters) <= set(machine.get_params()):
        with pytest.raises((TypeError, ValueError), match=message):
            machine.set_params(**parameters).fit(X, y)
