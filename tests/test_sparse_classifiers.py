"""The sparse classifiers as a user meets them: W, vectors, growth, weights, limits, odd data."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import eigh, solve_triangular
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from tests.reference import kernels as reference
from widemargin import MarginClassifier
from widemargin.kernels import KERNELS, RBF
from widemargin.sparse import SparseFisherClassifier, SparseMarginClassifier
from widemargin.sparse import classifier as module
from widemargin.sparse.fisher import Fisher
from widemargin.sparse.hinge import Hinge
from widemargin.sparse.squared_hinge import SquaredHinge

# Many fits are cut short, to save time; where one must be warned of, the test says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RIDGE = 1e-8  # of the matrix of the vectors, see sparse/marginal.py
GAMMA = 0.1
WAYS = {
    "hinge": {"loss": "hinge"},
    "squared": {"loss": "squared_hinge"},
    "shared hinge": {"loss": "hinge", "share_vectors": True},
    "shared squared": {"loss": "squared_hinge", "share_vectors": True},
    "fisher": {"coefficients": "fisher"},
    "fisher svm": {"coefficients": "svm"},
}
every_way = pytest.mark.parametrize("way", WAYS)
one_of_each = pytest.mark.parametrize("way", ["hinge", "shared squared", "fisher svm"])


def _moons(n=120):
    return make_moons(n, noise=0.25, random_state=0)


def _wine(step=2):
    X, y = load_wine(return_X_y=True)
    return scale(X)[::step], y[::step]


DATA = {"two": _moons, "three": _wine}
two_and_three = pytest.mark.parametrize("classes", DATA)


def _machine(way="hinge", n_vectors=3, **parameters):
    cls = SparseFisherClassifier if "fisher" in way else SparseMarginClassifier
    return cls(n_vectors, **{"random_state": 0, "gamma": GAMMA} | WAYS[way] | parameters)


def _problems(machine, y):
    """The number of each problem, its signs, and the places of its vectors."""
    shared = getattr(machine, "share_vectors", False)
    for p, label in enumerate(machine.classes_[len(machine.classes_) == 2 :]):
        own = np.flatnonzero(machine.vector_problem_ == (0 if shared else p))
        yield p, np.where(y == label, 1.0, -1.0), own


def _gram(kernel, Z):
    K = kernel(Z, Z)
    return K + RIDGE * np.trace(K) / len(Z) * np.eye(len(Z))


def _objective(machine, X, y, weight, kernel, gram=_gram):
    """The SVM's objective, over all problems."""
    total = 0.0
    for p, sign, own in _problems(machine, y):
        Z, beta, b = machine.expansion_vectors_[own], machine.coef_[p, own], machine.intercept_[p]
        slack = np.maximum(0.0, 1.0 - sign * (kernel(X, Z) @ beta + b))
        total += 0.5 * beta @ gram(kernel, Z) @ beta
        if getattr(machine, "loss", "hinge") == "hinge":
            total += machine.C * (weight @ slack)
        else:
            total += 0.5 * b * b + machine.C * (weight @ slack**2)
    return total


def _quotient(machine, X, y, weight, kernel):
    """Minus the largest generalised eigenvalue of Fisher's matrices, over all problems."""
    total = 0.0
    for _, sign, own in _problems(machine, y):
        Z = machine.expansion_vectors_[own]
        K = kernel(X, Z)
        mean = {s: np.average(K[sign == s], axis=0, weights=weight[sign == s]) for s in (1, -1)}
        rest = K - np.where(sign[:, None] > 0, mean[1], mean[-1])
        within = (rest * weight[:, None]).T @ rest / weight.sum() + machine.mu * _gram(kernel, Z)
        d = mean[1] - mean[-1]
        total -= eigh(np.outer(d, d), within, eigvals_only=True)[-1]
    return total


def _W(machine, X, y, weight=None, kernel=None):
    value = _quotient if isinstance(machine, SparseFisherClassifier) else _objective
    weight = np.ones(len(X)) if weight is None else weight
    return value(machine, X, y, weight, kernel or partial(rbf_kernel, gamma=machine.gamma_))


def _svm_in_span(X, sign, Z, kernel):
    """The least objective of the hinge in the span of vectors, by scikit-learn."""
    F = solve_triangular(np.linalg.cholesky(_gram(kernel, Z)), kernel(Z, X), lower=True).T
    machine = SVC(kernel="linear", tol=1e-8).fit(F, sign)
    slack = np.maximum(0.0, 1.0 - sign * machine.decision_function(F))
    return 0.5 * float(machine.coef_[0] @ machine.coef_[0]) + slack.sum()


def _assert_valid(machine, X, y, weight=None, kernel=None):
    """All that is said about a machine is true of it."""
    certificate = machine.certificate_
    assert_allclose(certificate.primal, _W(machine, X, y, weight, kernel), rtol=1e-6)
    assert certificate.dual <= certificate.primal + 1e-9 * abs(certificate.primal)
    assert np.isfinite(machine.decision_function(X)).all()
    for history in machine.history_:
        assert (np.diff(history) <= 0).all()
    vectors = len(machine.expansion_vectors_)
    assert vectors == machine.n_vectors_ == len(machine.vector_problem_) == certificate.n_vectors


@every_way
@two_and_three
def test_W_never_rises_and_is_that_of_the_certificate(way, classes):
    X, y = DATA[classes]()
    machine = _machine(way).fit(X, y)
    certificate = machine.certificate_
    for history in machine.history_:
        assert len(history) > 3
        assert (np.diff(history) <= 0).all()
        assert history[-1] < history[0]
    assert_allclose(sum(each[-1] for each in machine.history_), certificate.primal)
    assert_allclose(_W(machine, X, y), certificate.primal, rtol=1e-8)
    assert 0 <= certificate.gap <= 1e-8
    assert certificate.scope == "span"
    assert "W" in certificate.stopped  # and not a limit
    assert machine.n_iter_ == certificate.n_iter > 0
    if way in ("hinge", "fisher svm"):
        kernel = partial(rbf_kernel, gamma=GAMMA)
        best = sum(
            _svm_in_span(X, sign, machine.expansion_vectors_[own], kernel)
            for _, sign, own in _problems(machine, y)
        )
        assert_allclose(_objective(machine, X, y, np.ones(len(X)), kernel), best, rtol=1e-6)


def test_W_starts_at_the_span_fit_on_the_same_kmeans_vectors_and_ends_below():
    X, y = _moons(300)
    span = MarginClassifier(
        engine="span", vectors="kmeans", max_vectors=6, tol=1e-9, gamma=1.0, random_state=0
    ).fit(X, y)
    Z = span.support_vectors_
    machine = _machine("squared", init=Z, gamma=1.0).fit(X, y)
    assert_allclose(machine.history_[0][0], span.certificate_.primal, rtol=1e-5)
    assert machine.certificate_.primal < 0.95 * span.certificate_.primal
    machine = _machine("hinge", init=Z, gamma=1.0).fit(X, y)
    start = _svm_in_span(X, np.where(y == 1, 1.0, -1.0), Z, partial(rbf_kernel, gamma=1.0))
    assert_allclose(machine.history_[0][0], start, rtol=1e-6)
    assert machine.certificate_.primal < 0.95 * start


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_from_all_support_vectors_the_objective_is_at_most_the_svms(C):
    # The paper's Example 1.
    X, y = _moons()
    svm = SVC(C=C, gamma=1.0).fit(X, y)
    slack = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * svm.decision_function(X))
    a, kernel = svm.dual_coef_[0], partial(rbf_kernel, gamma=1.0)
    square = a @ kernel(svm.support_vectors_, svm.support_vectors_) @ a
    machine = _machine(init=svm.support_vectors_, C=C, gamma=1.0).fit(X, y)
    assert machine.n_vectors_ == len(svm.support_)
    # Without the ridge, which the SVM has not.
    reached = _objective(machine, X, y, np.ones(len(X)), kernel, lambda k, Z: k(Z, Z))
    assert np.abs(a).sum() - 0.5 * square <= reached <= 0.5 * square + C * slack.sum()


@two_and_three
@pytest.mark.parametrize("mu", [1e-3, 1.0])
def test_the_quotient_of_fisher_is_the_generalised_eigenvalue(classes, mu):
    X, y = DATA[classes]()
    weight = 0.5 + np.random.default_rng(0).random(len(X))
    own, svm = (
        _machine(way, mu=mu, C=2.0).fit(X, y, sample_weight=weight)
        for way in ("fisher", "fisher svm")
    )
    assert_allclose(own.certificate_.primal, _W(own, X, y, weight), rtol=1e-8)
    # Both have the same vectors; coefficients and bias are the best of the SVM, or Fisher's own.
    assert_array_equal(own.expansion_vectors_, svm.expansion_vectors_)
    assert svm.certificate_.primal == own.certificate_.primal
    kernel = partial(rbf_kernel, gamma=GAMMA)
    assert _objective(svm, X, y, weight, kernel) < _objective(own, X, y, weight, kernel)
    scores = own.decision_function(X).reshape(len(X), -1)
    for p, sign, _ in _problems(own, y):
        means = [np.average(scores[sign == s, p], weights=weight[sign == s]) for s in (1, -1)]
        assert means[0] > 0
        assert_allclose(means[0], -means[1], rtol=1e-8)


def test_a_share_is_one_of_the_exact_machines_support_vectors(monkeypatch):
    X, y = _moons()
    weight = 0.2 + np.random.default_rng(0).random(len(X))
    for kernel, C, share in (("rbf", 1.0, 0.25), ("poly", 10.0, 1.0), ("laplacian", 5.0, 0.1)):
        parameters = {"gamma": 0.3, "degree": 2, "coef0": 0.5}
        K = reference.block(kernel, X, X, **parameters)
        svm = SVC(C=C, kernel="precomputed").fit(K, y, sample_weight=weight)
        machine = _machine(n_vectors=share, C=C, kernel=kernel, max_iter=1, **parameters)
        machine.fit(X, y, sample_weight=weight)
        assert machine.n_vectors_ == round(share * len(svm.support_))
    monkeypatch.setattr(module, "_MOST_EXACT_ROWS", 100)
    with pytest.raises(ValueError, match=r"n_vectors=0\.1.*120 rows; give a whole number"):
        _machine(n_vectors=0.1).fit(X, y)


def test_a_share_counts_every_copy_of_a_support_vector():
    X, y = make_moons(60, noise=0.4, random_state=0)
    svm = SVC(C=2.0, gamma=1.0).fit(X, y)
    copies = np.repeat(np.arange(60), 3)
    machine = _machine(n_vectors=0.2, C=2.0, gamma=1.0, max_iter=1).fit(X[copies], y[copies])
    # Rows at their bound stay there, and each of their copies is a support vector.
    n_bound = int((np.abs(SVC(C=6.0, gamma=1.0).fit(X, y).dual_coef_) >= 6.0 - 1e-6).sum())
    assert len(svm.support_) < 3 * n_bound
    assert machine.n_vectors_ >= round(0.2 * 3 * n_bound)


def test_a_vector_that_joins_is_of_use():
    # A single draw of newcomers ends at a vector without a coefficient here, which stays.
    X, y = make_blobs(150, centers=6, cluster_std=1.5, random_state=2)
    machine = _machine(n_vectors=7, C=10.0, gamma=2.0, grow="one").fit(X / 4, y % 2)
    W = machine.accuracy_curve_["W"]
    assert (np.diff(W) < -1e-6 * W[0]).all()


def test_a_share_of_several_classes_is_one_of_each_problems_machine_or_of_the_common_one():
    X, y = _wine()
    expected = [round(0.2 * len(SVC(gamma=GAMMA).fit(X, y == c).support_)) for c in range(3)]
    machine = _machine(n_vectors=0.2, max_iter=1).fit(X, y)
    assert_array_equal(np.bincount(machine.vector_problem_), expected)
    assert len(set(expected)) > 1
    machine = _machine("shared hinge", n_vectors=0.2, max_iter=1).fit(X, y)
    assert machine.n_vectors_ == round(0.2 * len(SVC(gamma=GAMMA).fit(X, y).support_))


def test_vectors_start_where_init_says(monkeypatch):
    X, y = _wine()
    seen, minimise = [], module.minimise

    def recording(function, Z, **limits):
        seen.append(np.array(Z))
        return minimise(function, Z, **limits)

    def starts(way="hinge", **parameters):
        seen.clear()
        _machine(way, 5, max_iter=1, **parameters).fit(X, y)
        return np.array(seen)

    monkeypatch.setattr(module, "minimise", recording)
    chosen, centres = starts(init="random"), starts(init="kmeans")
    assert chosen.shape == centres.shape == (3, 5, 13)
    assert all((z == X).all(axis=1).any() for z in chosen.reshape(-1, 13))
    assert not np.array_equal(chosen[0], chosen[1])
    far = [euclidean_distances(X, Z).min(axis=1).sum() for Z in (*centres, *chosen)]
    best = KMeans(5, n_init=5, random_state=0).fit(X).cluster_centers_
    assert max(far[:3]) < 1.1 * euclidean_distances(X, best).min(axis=1).sum() < min(far[3:])
    given = X[:4] + 0.1
    before = given.copy()
    assert_array_equal(starts(init=given), [before] * 3)
    assert_array_equal(starts("shared hinge", init=given.tolist()), [before])
    assert_array_equal(given, before)


@every_way
@two_and_three
def test_the_decision_function_is_the_expansion(way, classes):
    X, y = DATA[classes]()
    machine = _machine(way, 4, max_iter=15).fit(X, y)
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


@pytest.mark.parametrize(("grow", "sizes"), [("one", [1, 2, 3, 4, 5]), ("double", [1, 2, 4, 5])])
@pytest.mark.parametrize("way", ["hinge", "shared squared", "fisher", "fisher svm"])
@two_and_three
def test_growth_tells_what_each_number_of_vectors_is_good_for(way, classes, grow, sizes):
    X, y = DATA[classes]()
    weight = np.where(np.arange(len(X)) % 3 == 0, 2.0, 0.7)
    machine = _machine(way, 5, grow=grow, gamma=0.5, max_iter=15)
    curve = machine.fit(X, y, sample_weight=weight).accuracy_curve_
    assert_array_equal(curve["n_vectors"], len(machine.history_) * np.array(sizes))
    for history in machine.history_:
        # A vector that joins can only help, so W falls all the way.
        assert (np.diff(history) <= 1e-9 * np.abs(history[1:])).all()
    assert_allclose(_W(machine, X, y, weight), machine.certificate_.primal, rtol=1e-7)
    # The last stage is the machine.
    assert machine.n_vectors_ == curve["n_vectors"][-1]
    assert_allclose(curve["training_accuracy"][-1], machine.score(X, y, weight))
    assert_allclose(curve["W"][-1], machine.certificate_.primal, rtol=1e-9)
    assert (np.diff(curve["W"]) < 0).all()


def test_a_fit_without_growth_has_no_curve():
    X, y = _moons()
    machine = _machine(n_vectors=2, grow="one").fit(X, y)
    assert not hasattr(machine.set_params(grow=None).fit(X, y), "accuracy_curve_")


@every_way
@two_and_three
def test_weight_k_is_the_same_as_k_copies_in_any_order_and_zero_as_none(way, classes):
    X, y = DATA[classes]()
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    labels = np.where(k > 0, y, 9)  # a label that only rows without weight have is no class
    machine = _machine(way, gamma="scale", max_iter=15, class_weight={0: 0.5, 1: 2.0})
    copied = clone(machine).fit(X[copies], y[copies])
    machine.fit(X, labels, sample_weight=k)
    assert_array_equal(machine.classes_, np.unique(y))
    assert_allclose(machine.decision_function(X), copied.decision_function(X), atol=1e-6)
    _assert_valid(machine, X, y, k * np.array([0.5, 2.0, 1.0])[y])


@every_way
@pytest.mark.parametrize(
    ("init", "grow"), [("kmeans", None), ("random", "double"), ("reduced_set", None)]
)
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(way, init, grow):
    X, y = _moons(600)  # more than a block of rows
    y = y + (X[:, 0] > 1)
    first, *others, another = (
        _machine(way, 12, init=init, grow=grow, max_iter=3, n_jobs=n, random_state=seed).fit(X, y)
        for n, seed in ((1, 0), (1, 0), (2, 0), (2, 1))
    )
    for other in others:
        for name in ("expansion_vectors_", "coef_", "intercept_"):
            assert_array_equal(getattr(other, name), getattr(first, name))
        assert_array_equal(other.decision_function(X), first.decision_function(X))
    assert not np.array_equal(another.expansion_vectors_, first.expansion_vectors_)


@pytest.mark.parametrize(
    "names", [["x", "z", "y"], [-7, 0, 3], [2**40, 2**42, 2**41], [-1.0, 0.0, 1.0], [False, True]]
)
def test_labels_of_any_kind_give_the_machine_of_their_numbers(names):
    X, y = _wine() if len(names) == 3 else _moons()
    names = np.array(names, dtype=object if names[0] == "x" else None)
    machine = _machine("shared squared").fit(X, names[y])
    expected = _machine("shared squared").fit(X, np.argsort(np.argsort(names))[y])
    assert_array_equal(machine.decision_function(X), expected.decision_function(X))
    assert_array_equal(machine.classes_, np.sort(names))
    assert machine.predict(X).dtype == names.dtype
    assert machine.score(X, names[y]) > 0.8


@one_of_each
def test_any_storage_gives_the_same_machine(way, tmp_path):
    X, y = _wine()
    X = np.round(X * 8)  # so that every type holds the same numbers
    machine = _machine(way, gamma="scale", max_iter=5)
    expected = clone(machine).fit(X, y)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for stored in (np.asfortranarray(X), mapped, np.repeat(X, 2, axis=0)[::2]):
        machine.fit(stored, y)
        assert_array_equal(machine.decision_function(stored), expected.decision_function(X))
    for stored in (*(X.astype(t) for t in (np.int8, np.float16, np.float32)), sparse.csr_array(X)):
        machine.fit(stored, y)
        assert isinstance(machine.expansion_vectors_, np.ndarray)
        assert machine.expansion_vectors_.dtype == np.float64
        _assert_valid(machine, X, y)
        assert_allclose(machine.decision_function(stored), machine.decision_function(X), atol=1e-4)


@every_way
def test_duplicates_in_the_data_and_in_the_start_are_survived(way):
    X, y = _wine()
    X, y = np.concatenate([X, X[:30], X[:9]]), np.concatenate([y, y[:30], (y[:9] + 1) % 3])
    for Z in (np.concatenate([X[:3], X[:3], X[:3] + 1e-9]), np.tile(X[40], (4, 1))):
        machine = _machine(way, init=Z, max_iter=12).fit(X, y)
        _assert_valid(machine, X, y)
        assert machine.history_[0][-1] < machine.history_[0][0]


@every_way
@pytest.mark.parametrize("init", ["kmeans", "random", "reduced_set"])
def test_one_row_a_class_is_enough_and_rows_are_the_most_vectors(way, init):
    X, y = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]), np.array(["a", "b", "c"])
    for few in (2, 3):
        machine = _machine(way, 5, init=init, gamma=0.5, C=10.0).fit(X[:few], y[:few])
        assert np.bincount(machine.vector_problem_).max() == few
        assert_array_equal(machine.predict(X[:few]), y[:few])
        _assert_valid(machine, X[:few], y[:few])


@every_way
def test_constant_columns_do_not_move(way):
    X, y = _wine()
    wide = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
    machine = _machine(way, max_iter=20).fit(wide, y)
    assert_allclose(machine.expansion_vectors_[:, [0, -1]], [[7.0, 0.0]] * machine.n_vectors_)
    _assert_valid(machine, wide, y)
    flat = _machine(way, 2, gamma=1.0).fit(np.ones((30, 2)), np.arange(30) % 2)
    assert np.isfinite(flat.decision_function(np.ones((2, 2)))).all()


@every_way
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_the_rows_does_not_matter(way, factor):
    X, y = _wine()
    plain = _machine(way, gamma="scale", init=X[:6], max_iter=6).fit(X, y)
    scaled = _machine(way, gamma="scale", init=X[:6] * factor, max_iter=6).fit(X * factor, y)
    _assert_valid(scaled, X * factor, y)
    for history, expected in zip(scaled.history_, plain.history_, strict=True):
        assert_allclose(history[:4], expected[:4], rtol=1e-6)  # then rounding parts them


@pytest.mark.parametrize("way", [way for way in WAYS if way != "fisher"])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1e3, 1e6])
def test_any_C_gives_a_valid_machine(way, C):
    X, y = _wine()
    machine = _machine(way, C=C, max_iter=20).fit(X, y)
    _assert_valid(machine, X, y)
    assert machine.certificate_.gap <= 1e-6
    assert C < 1 or machine.score(X, y) > 0.95


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"precomputed"}))
@one_of_each
def test_every_kernel_with_a_gradient_moves_its_vectors(way, name):
    X, y = _moons(60)
    parameters = {"gamma": 0.05, "degree": 2, "coef0": 0.0 if name == "sigmoid" else 0.5}
    # tanh is no Mercer kernel, and two vectors span the plane.
    few = 1 if name in ("linear", "sigmoid") else 2
    machine = _machine(way, few, kernel=name, max_iter=20, **parameters).fit(X, y)
    _assert_valid(machine, X, y, None, lambda A, B: reference.block(name, A, B, **parameters))
    assert machine.history_[0][-1] < machine.history_[0][0]


@every_way
def test_a_kernel_object_equals_its_name_and_one_without_a_gradient_is_an_error(way):
    X, y = _moons(60)
    named, given = (_machine(way, kernel=kernel).fit(X, y) for kernel in ("rbf", RBF(GAMMA)))
    assert_allclose(given.decision_function(X), named.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"kernel=.*rbf_kernel.*no gradient.*use a kernel"):
        _machine(way, kernel=rbf_kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"kernel='precomputed'.*kernel with a gradient"):
        _machine(way, kernel="precomputed").fit(rbf_kernel(X), y)


@every_way
@two_and_three
@pytest.mark.parametrize(("limit", "value"), [("max_time", 1e-9), ("max_iter", 1)])
def test_a_limit_leaves_a_valid_machine_and_a_warning(way, classes, limit, value):
    X, y = DATA[classes]()
    machine = _machine(way, tol=0.0, **{limit: value})
    with pytest.warns(ConvergenceWarning, match=rf"{limit}=.* reached.*valid"):
        machine.fit(X, y)
    _assert_valid(machine, X, y)
    assert machine.n_iter_ <= len(machine.history_)


def _watched(patch, way, before=lambda seen: None):
    """Call `before` with the numbers of rows of all evaluations of W until then."""
    cls = Fisher if "fisher" in way else Hinge if "hinge" in way else SquaredHinge
    seen, evaluate = [], cls.__call__

    def watched(self, Z, start=None):
        seen.append(len(self.weight if cls is not Hinge else self.upper))
        before(seen)
        return evaluate(self, Z, start)

    patch.setattr(cls, "__call__", watched)
    return seen


@pytest.mark.parametrize("way", ["hinge", "shared squared", "fisher"])
@pytest.mark.parametrize("grow", [None, "one", "sample"])
@two_and_three
def test_an_interrupt_ends_the_fit_with_a_valid_machine(monkeypatch, way, grow, classes):
    X, y = DATA[classes]()

    def interrupt(seen):
        if len(seen) == 4:
            raise KeyboardInterrupt

    if grow == "sample":
        monkeypatch.setattr(module, "_FIRST_ROWS", 40)
    machine = _machine(way, grow="one" if grow == "one" else None, tol=0.0, max_iter=10)
    with monkeypatch.context() as patch:
        seen = _watched(patch, way, interrupt)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            machine.fit(X, y)
    assert machine.certificate_.stopped == "interrupted"
    _assert_valid(machine, X, y)
    # Searches that have not begun may look at where they would start.
    assert len(seen) <= 4 + 3 * 3


@every_way
def test_many_rows_are_searched_on_a_sample_first_and_end_with_W_of_all(monkeypatch, way):
    X, y = _wine(1)
    plain = _machine(way, max_iter=40).fit(X, y)
    monkeypatch.setattr(module, "_FIRST_ROWS", 60)
    with monkeypatch.context() as patch:
        seen = _watched(patch, way)
        machine = _machine(way, max_iter=40).fit(X, y)
    assert 60 <= seen[0] < 90
    assert set(seen) == {seen[0], len(X)}
    _assert_valid(machine, X, y)
    # What the sample began is worth something: the search over all rows starts lower.
    assert machine.history_[0][0] < plain.history_[0][0]
    expected = plain.certificate_.primal
    assert machine.certificate_.primal <= expected + 0.1 * abs(expected)


def test_a_sample_is_left_where_it_gains_little_and_its_cost_is_told(monkeypatch):
    X, y = _wine(1)
    monkeypatch.setattr(module, "_FIRST_ROWS", 60)
    evaluations = []
    for rough in (module._ROUGH, 0.0):
        monkeypatch.setattr(module, "_ROUGH", rough)
        with monkeypatch.context() as patch:
            seen = _watched(patch, "shared squared")
            machine = _machine("shared squared", n_vectors=4, max_iter=60).fit(X, y)
        evaluations.append(seen.count(seen[0]))
        # An evaluation takes the rows against the vectors, and these against themselves twice.
        assert machine.certificate_.n_kernel == sum(4 * n + 2 * 4 * 4 for n in seen)
        assert machine.certificate_.n_passes == 2 * seen.count(len(X))
    assert evaluations[0] < 0.7 * evaluations[1]


@every_way
def test_a_class_that_the_sample_misses_is_learnt_all_the_same(monkeypatch, way):
    X, y = _moons(300)
    y[np.flatnonzero(X[:, 0] > 1.9)[:2]] = 2
    monkeypatch.setattr(module, "_FIRST_ROWS", 20)
    _assert_valid(_machine(way, gamma=1.0, max_iter=20).fit(X, y), X, y)


def test_the_time_holds_for_the_sample_and_all_rows_together(monkeypatch):
    X, y = _moons()
    seen = _watched(monkeypatch, "hinge")
    monkeypatch.setattr(module, "_FIRST_ROWS", 40)
    # A clock by which an evaluation takes a second.
    monkeypatch.setattr("widemargin.deadline.perf_counter", lambda: float(len(seen)))
    machine = _machine(n_vectors=8, gamma=1.0, tol=0.0, max_time=10.0)
    with pytest.warns(ConvergenceWarning, match="max_time=10 reached"):
        machine.fit(X, y)
    assert 8 <= len(seen) <= 12


BAD = [
    ({"n_vectors": 0}, r"n_vectors=0 must be at least 1"),
    ({"n_vectors": 1.5}, r"n_vectors=1\.5 must be a whole number, or a share"),
    ({"n_vectors": np.nan}, r"n_vectors=nan must be a whole number, or a share"),
    ({"n_vectors": "many"}, r"n_vectors='many' must be a"),
    ({"n_vectors": True}, r"n_vectors=True must be a"),
    ({"init": "centres"}, r"init='centres'.*one of 'kmeans', 'random'"),
    ({"init": np.ones((3, 5))}, r"init must be .*2 features.*\(3, 5\)"),
    ({"init": np.ones(2)}, r"init must be .*shape \(2,\)"),
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
    X, y = _moons(20)
    machine = _machine(way)
    if set(parameters) <= set(machine.get_params()):
        with pytest.raises((TypeError, ValueError), match=message):
            machine.set_params(**parameters).fit(X, y)


@one_of_each
def test_a_stored_machine_and_a_clone_give_the_same_bits(way):
    X, y = _wine()
    machine = _machine(way, 2, grow="one", max_iter=6).fit(X, y)
    scores = machine.decision_function(X)
    copy = pickle.loads(pickle.dumps(machine))
    assert_array_equal(copy.decision_function(X), scores)
    assert str(copy.certificate_) == str(machine.certificate_)
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(machine)
    unknown = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("widemargin.") for name in unknown)
    assert_array_equal(skops.loads(stored, trusted=unknown).decision_function(X), scores)
    twin = clone(machine)
    assert twin.get_params() == machine.get_params()
    assert not hasattr(twin, "coef_")
    assert_array_equal(twin.fit(X, y).decision_function(X), scores)


def test_a_grid_search_chooses_the_number_of_vectors():
    X, y = make_moons(200, noise=0.1, random_state=0)
    machine = _machine("squared", gamma=1.0, C=10.0, max_iter=50)
    search = GridSearchCV(machine, {"n_vectors": [1, 6]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_vectors": 6}
    assert search.best_score_ > 0.05 + search.cv_results_["mean_test_score"][0]
