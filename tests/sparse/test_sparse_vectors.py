"""How many vectors, where they start, how they grow, and when the search for them ends."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from tests.reference import kernels as reference
from tests.reference.data import wine
from tests.reference.sparse import (
    DATA,
    GAMMA,
    W_of,
    assert_valid,
    every_way,
    half_of_wine,
    small_moons,
    sparse_machine,
    two_and_three,
    with_sizes,
)
from widemargin.sparse import placement as module
from widemargin.sparse.fisher_marginal import Fisher
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.sparse_options import PlacementSizes
from widemargin.sparse.squared_marginal import Squared

# Many fits are cut short, to save time; where one must be warned of, the test says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
one_of_each = pytest.mark.parametrize("way", ["hinge", "shared squared", "fisher svm"])


def test_a_share_is_one_of_the_exact_machines_support_vectors():
    X, y = small_moons()
    weight = 0.2 + np.random.default_rng(0).random(len(X))
    for kernel, C, share in (("rbf", 1.0, 0.25), ("poly", 10.0, 1.0), ("laplacian", 5.0, 0.1)):
        parameters = {"gamma": 0.3, "degree": 2, "coef0": 0.5}
        K = reference.block(kernel, X, X, **parameters)
        svm = SVC(C=C, kernel="precomputed").fit(K, y, sample_weight=weight)
        machine = sparse_machine(n_vectors=share, C=C, kernel=kernel, max_iter=1, **parameters)
        machine.fit(X, y, sample_weight=weight)
        assert machine.n_vectors_ == round(share * len(svm.support_))


def test_a_share_counts_every_copy_of_a_support_vector():
    X, y = make_moons(60, noise=0.4, random_state=0)
    svm = SVC(C=2.0, gamma=1.0).fit(X, y)
    copies = np.repeat(np.arange(60), 3)
    machine = sparse_machine(n_vectors=0.2, C=2.0, gamma=1.0, max_iter=1).fit(X[copies], y[copies])
    # Rows at their bound stay there, and each of their copies is a support vector.
    n_bound = int((np.abs(SVC(C=6.0, gamma=1.0).fit(X, y).dual_coef_) >= 6.0 - 1e-6).sum())
    assert len(svm.support_) < 3 * n_bound
    assert machine.n_vectors_ >= round(0.2 * 3 * n_bound)


def test_a_vector_that_joins_is_of_use():
    # A single draw of newcomers ends at a vector without a coefficient here, which stays.
    X, y = make_blobs(150, centers=6, cluster_std=1.5, random_state=2)
    machine = sparse_machine(n_vectors=7, C=10.0, gamma=2.0, grow="one").fit(X / 4, y % 2)
    W = machine.accuracy_curve_["W"]
    assert (np.diff(W) < -1e-6 * W[0]).all()


def test_a_share_of_several_classes_is_one_of_each_problems_machine_or_of_the_common_one():
    X, y = half_of_wine()
    expected = [round(0.2 * len(SVC(gamma=GAMMA).fit(X, y == c).support_)) for c in range(3)]
    machine = sparse_machine(n_vectors=0.2, max_iter=1).fit(X, y)
    assert_array_equal(np.bincount(machine.vector_problem_), expected)
    assert len(set(expected)) > 1
    machine = sparse_machine("shared hinge", n_vectors=0.2, max_iter=1).fit(X, y)
    # All vectors of the three machines, each once.
    support = [SVC(gamma=GAMMA).fit(X, y == c).support_ for c in range(3)]
    assert machine.n_vectors_ == round(0.2 * len(np.unique(np.concatenate(support))))


def test_vectors_start_where_init_says(monkeypatch):
    X, y = half_of_wine()
    seen, minimise = [], module.minimise

    def recording(function, Z, **limits):
        seen.append(np.array(Z))
        return minimise(function, Z, **limits)

    def starts(way="hinge", **parameters):
        seen.clear()
        sparse_machine(way, 5, max_iter=1, **parameters).fit(X, y)
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


@pytest.mark.parametrize(("grow", "sizes"), [("one", [1, 2, 3, 4, 5]), ("double", [1, 2, 4, 5])])
@pytest.mark.parametrize("way", ["hinge", "shared squared", "fisher", "fisher svm"])
@two_and_three
def test_growth_tells_what_each_number_of_vectors_is_good_for(way, classes, grow, sizes):
    X, y = DATA[classes]()
    weight = np.where(np.arange(len(X)) % 3 == 0, 2.0, 0.7)
    machine = sparse_machine(way, 5, grow=grow, gamma=0.5, max_iter=15)
    curve = machine.fit(X, y, sample_weight=weight).accuracy_curve_
    assert_array_equal(curve["n_vectors"], len(machine.history_) * np.array(sizes))
    for history in machine.history_:
        # A vector that joins can only help, so W falls all the way.
        assert (np.diff(history) <= 1e-9 * np.abs(history[1:])).all()
    assert_allclose(W_of(machine, X, y, weight), machine.certificate_.primal, rtol=1e-7)
    # The last stage is the machine.
    assert machine.n_vectors_ == curve["n_vectors"][-1]
    assert_allclose(curve["training_accuracy"][-1], machine.score(X, y, weight))
    assert_allclose(curve["W"][-1], machine.certificate_.primal, rtol=1e-9)
    assert (np.diff(curve["W"]) < 0).all()


def test_a_fit_without_growth_has_no_curve():
    X, y = small_moons()
    machine = sparse_machine(n_vectors=2, grow="one").fit(X, y)
    assert not hasattr(machine.set_params(grow=None).fit(X, y), "accuracy_curve_")


@one_of_each
@pytest.mark.parametrize(
    ("init", "grow"), [("kmeans", None), ("random", "double"), ("reduced_set", None)]
)
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(way, init, grow):
    X, y = small_moons(600)  # more than a block of rows
    y = y + (X[:, 0] > 1)
    first, other, another = (
        sparse_machine(way, 6, init=init, grow=grow, max_iter=3, n_jobs=n, random_state=seed).fit(
            X, y
        )
        for n, seed in ((1, 0), (2, 0), (2, 1))
    )
    for name in ("expansion_vectors_", "coef_", "intercept_"):
        assert_array_equal(getattr(other, name), getattr(first, name))
    assert_array_equal(other.decision_function(X), first.decision_function(X))
    assert not np.array_equal(another.expansion_vectors_, first.expansion_vectors_)


@every_way
@two_and_three
@pytest.mark.parametrize(("limit", "value"), [("max_time", 1e-9), ("max_iter", 1)])
def test_a_limit_leaves_a_valid_machine_and_a_warning(way, classes, limit, value):
    X, y = DATA[classes]()
    machine = sparse_machine(way, tol=0.0, **{limit: value})
    with pytest.warns(ConvergenceWarning, match=rf"{limit}=.* reached.*valid"):
        machine.fit(X, y)
    assert_valid(machine, X, y)
    assert machine.n_iter_ <= len(machine.history_)


def _watched(patch, way, before=lambda seen: None):
    """Call `before` with the numbers of rows of all evaluations of W until then."""
    cls = Fisher if "fisher" in way else Hinge if "hinge" in way else Squared
    seen, evaluate = [], cls.__call__

    def watched(self, Z, start=None):
        seen.append(self.rows.shape[0])
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

    machine = sparse_machine(way, grow="one" if grow == "one" else None, tol=0.0, max_iter=10)
    if grow == "sample":
        machine = with_sizes(machine, first_rows=40)
    with monkeypatch.context() as patch:
        seen = _watched(patch, way, interrupt)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            machine.fit(X, y)
    assert machine.certificate_.stopped == "interrupted"
    assert_valid(machine, X, y)
    # Searches that have not begun may look at where they would start.
    assert len(seen) <= 4 + 3 * 3


@every_way
def test_many_rows_are_searched_on_a_sample_first_and_end_with_W_of_all(monkeypatch, way):
    X, y = wine()
    plain = sparse_machine(way, max_iter=40).fit(X, y)
    with monkeypatch.context() as patch:
        seen = _watched(patch, way)
        machine = with_sizes(sparse_machine(way, max_iter=40), first_rows=60).fit(X, y)
    assert 60 <= seen[0] < 90
    assert set(seen) == {seen[0], len(X)}
    assert_valid(machine, X, y)
    # What the sample began is worth something: the search over all rows starts lower.
    assert machine.history_[0][0] < plain.history_[0][0]
    expected = plain.certificate_.primal
    assert machine.certificate_.primal <= expected + 0.1 * abs(expected)


def test_a_sample_is_left_where_it_gains_little_and_its_cost_is_told(monkeypatch):
    X, y = wine()
    evaluations = []
    for rough in (PlacementSizes().rough, 0.0):
        machine = sparse_machine("shared squared", n_vectors=4, max_iter=60)
        with monkeypatch.context() as patch:
            seen = _watched(patch, "shared squared")
            machine = with_sizes(machine, first_rows=60, rough=rough).fit(X, y)
        evaluations.append(seen.count(seen[0]))
        # An evaluation takes the rows against the vectors, and these against themselves twice.
        assert machine.certificate_.n_kernel == sum(4 * n + 2 * 4 * 4 for n in seen)
        assert machine.certificate_.n_passes == 2 * seen.count(len(X))
    assert evaluations[0] < 0.7 * evaluations[1]


@every_way
def test_a_class_that_the_sample_misses_is_learnt_all_the_same(way):
    X, y = small_moons(300)
    y[np.flatnonzero(X[:, 0] > 1.9)[:2]] = 2
    machine = with_sizes(sparse_machine(way, gamma=1.0, max_iter=20), first_rows=20)
    assert_valid(machine.fit(X, y), X, y)


def test_the_time_holds_for_the_sample_and_all_rows_together(monkeypatch):
    X, y = small_moons()
    seen = _watched(monkeypatch, "hinge")
    # A clock by which an evaluation takes a second.
    monkeypatch.setattr("widemargin.loop.perf_counter", lambda: float(len(seen)))
    machine = sparse_machine(n_vectors=8, gamma=1.0, tol=0.0, max_time=10.0)
    machine = with_sizes(machine, first_rows=40)
    with pytest.warns(ConvergenceWarning, match="max_time=10 reached"):
        machine.fit(X, y)
    assert 8 <= len(seen) <= 12


@one_of_each
def test_a_stored_machine_and_a_clone_give_the_same_bits(way):
    X, y = half_of_wine()
    machine = sparse_machine(way, 2, grow="one", max_iter=6).fit(X, y)
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
    machine = sparse_machine("squared", gamma=1.0, C=10.0, max_iter=50)
    search = GridSearchCV(machine, {"n_vectors": [1, 6]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_vectors": 6}
    assert search.best_score_ > 0.05 + search.cv_results_["mean_test_score"][0]
