"""Vectors that start as a reduced set of the exact SVM: clusters of each side, moved by (4)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from tests.reference.sparse import with_sizes
from widemargin.kernels import RBF, make_kernel
from widemargin.sparse import SparseMarginClassifier
from widemargin.sparse import vector_start as module
from widemargin.sparse.pre_image import Combination
from widemargin.sparse.reduced_start import reduced_set
from widemargin.threads import single_threaded_blas

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

GAMMA = 1.0


@pytest.fixture(autouse=True)
def blas_as_in_a_fit():
    with single_threaded_blas():
        yield


def _svm(n=120, C=1.0):
    X, y = make_moons(n, noise=0.25, random_state=0)
    return SVC(C=C, gamma=GAMMA, tol=1e-8).fit(X, y)


def _machine(svm):
    return Combination(RBF(GAMMA), svm.support_vectors_, svm.dual_coef_[0])


def _started(machine, count, seed=0, **ways):
    return reduced_set(machine, count, np.random.default_rng(seed), **ways)


def _clusters(machine, count, seed=0):
    """Where vectors are before they move."""
    return _started(machine, count, seed, max_iter=0)


def _distance(machine, Z):
    """(4) with the best coefficients, relative to ‖w‖²."""
    X, a = machine.vectors, machine.coef
    onto = rbf_kernel(Z, X, gamma=GAMMA) @ a
    taken = onto @ np.linalg.lstsq(rbf_kernel(Z, gamma=GAMMA), onto, rcond=1e-12)[0]
    return 1.0 - taken / (a @ rbf_kernel(X, gamma=GAMMA) @ a)


def test_half_of_the_clusters_are_of_either_side_and_follow_the_coefficients():
    machine = _machine(_svm())
    weight = np.abs(machine.coef)
    for count in (8, 9):
        Z = _clusters(machine, count, seed=1)
        assert Z.shape == (count, 2)
        halves = Z[: (count + 1) // 2], Z[(count + 1) // 2 :]
        for side, own in zip((machine.coef > 0, machine.coef < 0), halves, strict=True):
            X, s = machine.vectors[side], weight[side]
            best = KMeans(len(own), n_init=10, random_state=0).fit(X, sample_weight=s)
            near = euclidean_distances(X, own, squared=True).argmin(axis=1)
            # Each centre is the mean of its cluster with the weights.
            means = [
                np.average(X[near == j], axis=0, weights=s[near == j]) for j in range(len(own))
            ]
            assert_allclose(own, means, atol=1e-12)
            assert s @ ((X - own[near]) ** 2).sum(axis=1) < 1.5 * best.inertia_


def test_a_side_with_few_vectors_leaves_its_share_to_the_other():
    for few, sign in ((1, 1.0), (2, 1.0), (1, -1.0), (2, -1.0)):
        X = np.random.default_rng(0).normal(size=(12, 2)) + np.array([[9.0, 0.0]])
        coef = np.full(12, -sign)
        coef[:few], X[:few, 0] = sign * (12 - few) / few, -9.0
        Z = _clusters(Combination(RBF(0.01), X, coef), 7)
        assert len(Z) == 7
        assert (Z[:, 0] < 0).sum() == few


def test_vectors_move_towards_the_machine():
    machine = _machine(_svm())
    for count in (4, 10):
        Z = _started(machine, count)
        centres = _clusters(machine, count)
        assert Z.shape == centres.shape == (count, 2)
        assert _distance(machine, Z) < 0.5 * _distance(machine, centres)
        # Rows of the machine drawn at random, by far.
        rng, vectors = np.random.default_rng(0), machine.vectors
        drawn = [_distance(machine, rng.permutation(vectors)[:count]) for _ in range(9)]
        assert _distance(machine, Z) < 0.5 * min(drawn)


def test_clusters_stay_where_too_little_of_the_machine_is_in_their_span():
    machine = _machine(_svm())
    centres = _clusters(machine, 4)
    left = _distance(machine, centres)
    for limit, stays in ((0.99 * left, True), (1.01 * left, False)):
        found = _started(machine, 4, most_left=limit)
        assert np.array_equal(found, centres) == stays


def test_a_machine_with_no_more_vectors_is_where_it_starts():
    machine = _machine(_svm())
    for count in (len(machine.coef), len(machine.coef) + 1):
        assert_array_equal(_started(machine, count), machine.vectors)


@pytest.mark.parametrize("kernel", [RBF(GAMMA), make_kernel("sigmoid", gamma=3.0, coef0=-1.0)])
def test_a_machine_without_length_starts_at_its_clusters(kernel):
    # Terms that cancel; and tanh is no Mercer kernel, which gives squared lengths below zero.
    X = np.random.default_rng(0).normal(size=(6, 2))
    Z = _started(Combination(kernel, np.concatenate([X, X]), np.repeat([1.0, -1.0], 6)), 4)
    assert Z.shape == (4, 2)
    assert np.isfinite(Z).all()
    assert (euclidean_distances(Z, X).min(axis=1) < 3.0).all()


def _digits():
    X, y = load_digits(return_X_y=True)
    some = np.isin(y, (3, 8))
    return X[some] / 8.0 - 1.0, y[some]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_W_starts_and_ends_lower_than_from_centres_of_all_rows(loss):
    X, y = _digits()
    ends = {}
    for init in ("kmeans", "reduced_set"):
        machine = SparseMarginClassifier(
            8, loss=loss, C=10.0, gamma=1 / 64, init=init, max_iter=15, random_state=0
        ).fit(X, y)
        assert machine.n_vectors_ == 8
        ends[init] = machine.history_[0][[0, -1]]
    before, after = ends["reduced_set"] / ends["kmeans"]
    assert before < 0.6
    assert after < 0.95


def test_a_share_of_one_starts_at_the_optimum_of_the_exact_machine():
    X, y = make_moons(100, noise=0.25, random_state=0)
    svm = SVC(C=2.0, gamma=GAMMA, tol=1e-8).fit(X, y)
    a, K = svm.dual_coef_[0], rbf_kernel(svm.support_vectors_, gamma=GAMMA)
    machine = SparseMarginClassifier(
        1.0, C=2.0, gamma=GAMMA, init="reduced_set", max_iter=1, random_state=0
    ).fit(X, y)
    assert machine.n_vectors_ == len(a)
    assert_allclose(machine.history_[0][0], np.abs(a).sum() - 0.5 * a @ K @ a, rtol=1e-5)


def test_shared_vectors_come_from_the_machines_of_all_problems(monkeypatch):
    X, y = load_wine(return_X_y=True)
    X = scale(X)[::2]
    y, seen, whole = y[::2], [], module.reduced_set

    def recording(machine, count, rng, **limits):
        seen.append((machine, count))
        return whole(machine, count, rng, **limits)

    monkeypatch.setattr(module, "reduced_set", recording)
    shared = {"share_vectors": True, "gamma": 0.1, "init": "reduced_set", "max_iter": 1}
    for count, parts in ((8, (3, 3, 2)), (2, (1, 1))):
        seen.clear()
        assert SparseMarginClassifier(count, **shared).fit(X, y).n_vectors_ == count
        assert [share for _, share in seen] == list(parts)
        for c, (machine, _) in enumerate(seen):
            svm = SVC(gamma=0.1).fit(X, y == c)
            order = np.lexsort(machine.vectors.T), np.lexsort(svm.support_vectors_.T)
            assert_array_equal(machine.vectors[order[0]], svm.support_vectors_[order[1]])
            assert_allclose(machine.coef[order[0]], svm.dual_coef_[0, order[1]], atol=0.05)


def test_of_too_many_rows_a_sample_has_the_exact_machine():
    X, y = make_moons(400, noise=0.25, random_state=0)
    parameters = {"gamma": GAMMA, "init": "reduced_set", "max_iter": 1, "random_state": 0}
    whole = SparseMarginClassifier(0.2, **parameters).fit(X, y)
    sample = with_sizes(SparseMarginClassifier(0.2, **parameters), exact_rows=100).fit(X, y)
    # A quarter of the rows has about a quarter of the support vectors.
    assert 0.15 * whole.n_vectors_ < sample.n_vectors_ < 0.5 * whole.n_vectors_
    assert sample.score(X, y) > 0.9
    given = with_sizes(SparseMarginClassifier(8, **parameters), exact_rows=100).fit(X, y)
    assert given.n_vectors_ == 8
    # It has begun where the machine is, though that is of a sample: far below centres of all rows.
    centres = SparseMarginClassifier(8, **parameters | {"init": "kmeans"}).fit(X, y)
    assert given.history_[0][0] < 1.1 * centres.history_[0][0]


def test_rows_that_say_nothing_are_survived():
    X, y = np.ones((30, 2)), np.arange(30) % 2
    machine = SparseMarginClassifier(2, gamma=1.0, init="reduced_set").fit(X, y)
    assert np.isfinite(machine.decision_function(X)).all()
