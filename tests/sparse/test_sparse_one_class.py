"""SparseOneClass: the exact machine as its limit, better vectors, limits, odd data."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from tests.reference.sparse import gram_with_ridge
from widemargin import MarginOneClass, SparseOneClass
from widemargin.qp.newton import Newton
from widemargin.sparse.marginal import VectorSpan

# Many fits are cut short, to save time; where one must be warned of, the test says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_nu = pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])


def data(n=200, seed=0):
    """Two clouds of different size and shape."""
    rng = np.random.default_rng(seed)
    small = np.array([6.0, 0.0]) + rng.normal(size=(n // 3, 2)) * [0.3, 2.0]
    return np.concatenate([rng.normal(size=(n - n // 3, 2)), small])


def detector_of(n_vectors=6, **parameters):
    return SparseOneClass(n_vectors, **{"random_state": 0, "n_jobs": 1} | parameters)


def objective(detector, X, weight=None):
    """½‖w‖² − ν n ρ + Σ s max(0, ρ − wᵀφ), from the scores and the vectors."""
    weight = np.ones(len(X)) if weight is None else weight
    kernel = detector._kernel(detector.gamma_)
    gram = gram_with_ridge(kernel.block, detector.expansion_vectors_)
    rho = -detector.intercept_[0]
    slack = np.maximum(0.0, rho - detector.score_samples(X))
    own = 0.5 * detector.coef_[0] @ gram @ detector.coef_[0]
    return own - detector.nu * weight.sum() * rho + weight @ slack


def assert_valid(detector, X, weight=None):
    certificate, found = detector.certificate_, objective(detector, X, weight)
    # The terms of the objective nearly cancel where ν is small.
    assert abs(certificate.primal - found) <= 1e-6 * max(abs(found), abs(detector.offset_))
    assert certificate.dual <= certificate.primal
    assert certificate.scope == "span"
    (history,) = detector.history_
    assert (np.diff(history) <= 0).all()
    assert len(detector.expansion_vectors_) == detector.n_vectors_ == certificate.n_vectors


# What it is.


@every_nu
def test_with_all_rows_as_vectors_it_starts_at_the_exact_machine(nu):
    X = data(60)
    exact = MarginOneClass(nu, engine="exact", tol=1e-10).fit(X)
    found = detector_of(nu=nu, init=X, max_iter=1).fit(X)
    assert found.gamma_ == exact.gamma_
    assert_allclose(found.history_[0][0], exact.certificate_.primal, rtol=1e-6)
    scale = np.ptp(exact.score_samples(X))
    assert_allclose(found.score_samples(X), exact.score_samples(X), atol=1e-3 * scale)
    assert_allclose(found.offset_, exact.offset_, atol=1e-3 * scale)


@every_nu
def test_W_never_rises_and_is_that_of_the_machine(nu):
    X = data()
    detector = detector_of(nu=nu, max_iter=50).fit(X)
    assert_valid(detector, X)
    assert detector.certificate_.gap < 1e-8
    assert detector.history_[0][-1] < detector.history_[0][0] < 0.0
    exact = MarginOneClass(nu, engine="exact", tol=1e-8).fit(X)
    assert exact.certificate_.dual <= detector.certificate_.primal


def clouds():
    return data(600), 8, {}


def digits():
    X = load_digits(return_X_y=True)[0]
    return X[:900] / 16.0, 15, {"scale": "none"}


@pytest.mark.parametrize("load", [clouds, digits])
def test_vectors_that_are_placed_are_better_than_vectors_that_are_not(load):
    X, n_vectors, given = load()
    exact = MarginOneClass(engine="exact", **given).fit(X)
    placed = detector_of(n_vectors, max_iter=100, **given).fit(X)
    for vectors in ("random", "kmeans"):
        other = MarginOneClass(
            engine="span", vectors=vectors, max_vectors=n_vectors, random_state=0, **given
        ).fit(X)
        # How far each is from the best machine of all.
        missing = placed.certificate_.primal - exact.certificate_.primal
        assert missing < 0.8 * (other.certificate_.primal - exact.certificate_.primal)


def test_few_vectors_find_the_outliers_that_the_exact_machine_finds():
    rng = np.random.default_rng(3)
    X = np.concatenate([data(500), rng.uniform(-12.0, 12.0, size=(40, 2))])
    outside = np.repeat([0, 1], [500, 40])
    exact = MarginOneClass(engine="exact").fit(X)
    few = detector_of(10, max_iter=100).fit(X)
    best = roc_auc_score(outside, -exact.score_samples(X))
    assert roc_auc_score(outside, -few.score_samples(X)) > best - 0.02 > 0.85


@every_nu
def test_a_weight_is_a_number_of_copies(nu):
    X = data(60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    weighted = detector_of(nu=nu, max_iter=5).fit(X, sample_weight=times)
    copied = detector_of(nu=nu, max_iter=5).fit(np.repeat(X, times, axis=0))
    assert_allclose(weighted.score_samples(X), copied.score_samples(X), rtol=1e-4, atol=1e-4)
    assert_allclose(weighted.offset_, copied.offset_, rtol=1e-5)
    assert_valid(weighted, X, times.astype(float))


def test_nu_bounds_the_share_of_outliers_and_contamination_is_it():
    X = data(400)
    for nu in (0.1, 0.4):
        detector = detector_of(nu=nu, max_iter=30).fit(X)
        assert (detector.predict(X) < 0).mean() <= nu + 1e-9
    detector = detector_of(contamination=0.1, max_iter=30).fit(X)
    assert (detector.predict(X) < 0).mean() == pytest.approx(0.1)
    assert_array_equal(detector.decision_function(X), detector.score_samples(X) - detector.offset_)


def test_the_units_of_columns_do_not_matter():
    X = data()
    factor = np.array([1e-8, 1e8])
    one, two = (detector_of(init=X[:6] * f, max_iter=10).fit(X * f) for f in (1.0, factor))
    assert_allclose(two.score_samples(X * factor), one.score_samples(X), rtol=1e-5)


@pytest.mark.parametrize("grow", ["one", "double"])
def test_growth_tells_what_each_number_of_vectors_is_good_for(grow):
    X = data()
    detector = detector_of(5, grow=grow, max_iter=10).fit(X)
    curve = detector.objective_curve_
    assert curve["n_vectors"].tolist() == ([1, 2, 3, 4, 5] if grow == "one" else [1, 2, 4, 5])
    assert (np.diff(curve["W"]) <= 0).all()
    assert_allclose(curve["W"][-1], detector.certificate_.primal, rtol=1e-9)


# Odd data.


def test_constant_columns_equal_rows_and_two_rows_are_no_harm():
    X = data(50)
    constant = detector_of(max_iter=5).fit(np.column_stack([X, np.ones(50)]))
    assert_allclose(np.ptp(constant.expansion_vectors_[:, 2]), 0.0)
    equal = detector_of().fit(np.repeat(X[:2], 20, axis=0))
    assert equal.n_vectors_ == 2
    assert detector_of().fit(X[[0, 0]]).n_vectors_ == 1


@pytest.mark.parametrize("gamma", [1e-9, 1e5])
def test_widths_far_from_the_rows_are_no_harm(gamma):
    X = data(50)
    detector = detector_of(50, gamma=gamma, nu=0.2).fit(X)
    assert np.isfinite(detector.score_samples(X)).all()
    assert detector.certificate_.gap < 1e-6


def test_a_kernel_of_both_signs_may_have_no_machine_and_says_so():
    # The origin is among the rows: the best machine is zero, and nothing is proved of it.
    X = np.random.default_rng(0).normal(size=(200, 3))
    detector = detector_of(3, kernel="linear").fit(X)
    assert abs(detector.certificate_.primal) < 1e-8
    assert np.isfinite(detector.score_samples(X)).all()


def test_vectors_where_no_row_has_a_kernel_value_are_no_harm():
    X = data(60)
    detector = detector_of(init=1e3 + X[:3], scale="none", gamma=1.0, max_iter=5).fit(X)
    assert detector.certificate_.primal == 0.0
    assert np.isfinite(detector.score_samples(X)).all()


def test_sparse_rows_are_taken_as_they_are():
    X = np.maximum(data(), 0.0)
    given = {"scale": "none", "init": X[:6], "max_iter": 5}
    expected = detector_of(**given).fit(X).score_samples(X)
    found = detector_of(**given | {"scale": "auto"}).fit(sparse.csr_array(X))
    assert_allclose(found.score_samples(sparse.csr_array(X)), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_vectors": 0.1}, "n_vectors=0.1 must be a whole number"),
        ({"nu": 0.0}, "nu=0.0 must be a share"),
        ({"contamination": 0.7}, "contamination=0.7 must be 'auto', or a share"),
        ({"gamma": "median"}, "gamma='median' is not known"),
        ({"init": "reduced_set"}, "init='reduced_set' is not known"),
        ({"init": np.zeros((2, 5))}, "a column for each of the 2 features"),
        ({"kernel": "precomputed"}, "kernel='precomputed' has no gradient"),
    ],
)
def test_a_bad_parameter_is_named_with_the_remedy(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        detector_of().set_params(**parameters).fit(data(20))


# Limits.


@every_nu
def test_time_that_is_over_leaves_a_valid_machine_and_a_warning(nu):
    X = data()
    detector = detector_of(nu=nu, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_time=1e-06 reached"):
        detector.fit(X)
    assert_valid(detector, X)
    exact = MarginOneClass(nu, engine="exact", tol=1e-8).fit(X)
    assert exact.certificate_.dual <= detector.certificate_.primal


@pytest.mark.parametrize("where", ["whitened", "step", "gradient"])
def test_an_interrupt_leaves_a_valid_machine(monkeypatch, where):
    X = data()
    owner = Newton if where == "step" else VectorSpan
    work, calls = getattr(owner, where), []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return work(*arguments, **options)

    monkeypatch.setattr(owner, where, interrupted)
    detector = detector_of()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        detector.fit(X)
    assert detector.certificate_.stopped == "interrupted"
    assert_valid(detector, X)


def test_little_memory_gives_the_same_answer():
    X = data(900)
    detector = detector_of(init=X[:10], max_iter=2)
    plain = detector.fit(X).score_samples(X)
    small = detector.set_params(memory="100kB").fit(X)
    assert_allclose(small.score_samples(X), plain, rtol=1e-5)


def test_many_rows_are_placed_on_a_sample_first():
    X = data(20_500)
    detector = detector_of(8, max_iter=5).fit(X)
    assert_valid(detector, X)
    assert (detector.predict(X) < 0).mean() == pytest.approx(0.5, abs=0.01)


def test_threads_change_no_bit_and_pickles_keep_all():
    X = data(3000)
    one, three = (detector_of(20, max_iter=2, n_jobs=jobs).fit(X) for jobs in (1, 3))
    assert_array_equal(one.score_samples(X), three.score_samples(X))
    again = pickle.loads(pickle.dumps(one))
    assert_array_equal(one.decision_function(X), again.decision_function(X))


def test_skops_keeps_a_machine():
    io = pytest.importorskip("skops.io")
    X = data(60)
    detector = detector_of(max_iter=2).fit(X)
    stored = io.dumps(detector)
    again = io.loads(stored, trusted=io.get_untrusted_types(data=stored))
    assert_array_equal(detector.decision_function(X), again.decision_function(X))


def test_a_vector_far_away_from_all_rows_is_no_fault():
    # The first step of this seed ends where squares of kernel values are no numbers.
    X = np.array([[a, b] for a in (1.0, 2.0, 3.0) for b in (1.0, 2.0, 3.0, 4.0)])
    given = {"grow": "one", "init": "random", "max_iter": 2, "nu": 0.1, "scale": "robust"}
    with pytest.warns(ConvergenceWarning):
        machine = SparseOneClass(3, random_state=42, **given).fit(X)
    assert np.isfinite(machine.decision_function(X)).all()
