"""SparseMarginRegressor: the exact machine as its limit, better vectors, limits, odd data."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from tests.reference.sparse import gram_with_ridge
from widemargin import MarginRegressor, SparseMarginRegressor
from widemargin.qp.newton import Newton
from widemargin.sparse.marginal import VectorSpan

# Many fits are cut short, to save time; where one must be warned of, the test says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LOSSES = ["squared", "squared_epsilon_insensitive", "epsilon_insensitive", "quantile"]
every_loss = pytest.mark.parametrize("loss", LOSSES)


def data(n=150, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 5.0 + np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def machine_of(loss="squared", n_vectors=6, **parameters):
    given = {"C": 3.0, "gamma": 0.3, "epsilon": 0.2, "quantile": 0.3, "random_state": 0}
    return SparseMarginRegressor(n_vectors, loss=loss, **given | {"n_jobs": 1} | parameters)


def losses_of(machine, residual):
    """What the loss makes of t − f."""
    over = np.maximum(0.0, np.abs(residual) - machine.epsilon)
    q = machine.quantile
    return {
        "squared": residual**2,
        "squared_epsilon_insensitive": over**2,
        "epsilon_insensitive": over,
        "quantile": np.maximum(q * residual, (q - 1.0) * residual),
    }[machine.loss]


def objective(machine, X, y, weight=None):
    """W from the machine's own predictions and its vectors."""
    weight = np.ones(len(X)) if weight is None else weight
    y = y.reshape(len(y), -1)
    kernel = machine._kernel(machine.gamma_)
    gram = gram_with_ridge(kernel.block, machine.expansion_vectors_)
    total = 0.5 * np.einsum("pi,ij,pj->", machine.coef_, gram, machine.coef_)
    if "squared" in machine.loss:
        mean = np.average(y, axis=0, weights=weight)
        total += 0.5 * ((machine.intercept_ - mean) ** 2).sum()
    residual = y - machine.predict(X).reshape(len(y), -1)
    return total + machine.C * (weight @ losses_of(machine, residual)).sum()


def assert_valid(machine, X, y, weight=None):
    certificate = machine.certificate_
    assert_allclose(certificate.primal, objective(machine, X, y, weight), rtol=1e-6)
    assert certificate.dual <= certificate.primal
    assert certificate.scope == "span"
    (history,) = machine.history_
    assert (np.diff(history) <= 0).all()
    assert len(machine.expansion_vectors_) == machine.n_vectors_ == certificate.n_vectors


# What it is.


@every_loss
def test_with_all_rows_as_vectors_it_starts_at_the_exact_machine(loss):
    X, y = data(60)
    given = {"loss": loss, "C": 3.0, "gamma": 0.3, "epsilon": 0.2, "quantile": 0.3}
    exact = MarginRegressor(engine="exact", tol=1e-9, **given).fit(X, y)
    found = machine_of(loss, init=X, max_iter=1).fit(X, y)
    assert_allclose(found.history_[0][0], exact.certificate_.primal, rtol=1e-6)
    assert_allclose(found.predict(X), exact.predict(X), atol=2e-3)


@every_loss
@pytest.mark.parametrize("outputs", [1, 2])
def test_W_never_rises_and_is_that_of_the_machine(loss, outputs):
    X, y = data()
    y = np.column_stack([y, X[:, 0] ** 2])[:, :outputs]
    machine = machine_of(loss, max_iter=30).fit(X, y)
    assert_valid(machine, X, y)
    assert machine.certificate_.gap < 1e-8
    assert machine.history_[0][-1] < 0.9 * machine.history_[0][0]
    assert machine.coef_.shape == (outputs, 6)
    assert machine.predict(X).shape == (len(X), outputs)


@every_loss
def test_vectors_that_are_placed_are_better_than_vectors_that_are_not(loss):
    X, y = data(600)
    inside, outside = slice(0, 400), slice(400, 600)
    given = {"loss": loss, "C": 3.0, "gamma": 0.3, "epsilon": 0.2, "quantile": 0.5}
    placed = machine_of(loss, 10, quantile=0.5, max_iter=100).fit(X[inside], y[inside])
    for vectors in ("random", "kmeans"):
        other = MarginRegressor(
            engine="span", vectors=vectors, max_vectors=10, random_state=0, **given
        ).fit(X[inside], y[inside])
        assert placed.certificate_.primal < 0.6 * other.certificate_.primal
        assert placed.score(X[outside], y[outside]) > other.score(X[outside], y[outside]) + 0.2


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), scale(y)


def digits():
    """The number that an image shows, as a number."""
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16.0, y[:900].astype(float)


@pytest.mark.parametrize(("load", "n_vectors"), [(diabetes, 4), (digits, 15)])
def test_on_real_rows_placed_vectors_are_better_than_centres(load, n_vectors):
    X, y = load()
    given = {"C": 1.0, "gamma": "scale"}
    placed = machine_of("squared", n_vectors, max_iter=60, **given).fit(X, y)
    for vectors in ("random", "kmeans"):
        other = MarginRegressor(
            engine="span", vectors=vectors, max_vectors=n_vectors, random_state=0, **given
        ).fit(X, y)
        assert placed.certificate_.primal < 0.95 * other.certificate_.primal
        assert placed.score(X, y) > other.score(X, y) + 0.02


@every_loss
def test_a_weight_is_a_number_of_copies(loss):
    X, y = data(60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    weighted = machine_of(loss, max_iter=5).fit(X, y, sample_weight=times)
    copies = np.repeat(np.arange(60), times)
    copied = machine_of(loss, max_iter=5).fit(X[copies], y[copies])
    assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-4, atol=1e-4)
    assert_valid(weighted, X, y, times.astype(float))


@every_loss
def test_targets_that_are_shifted_shift_the_predictions(loss):
    X, y = data(80)
    one, two = (machine_of(loss, max_iter=5).fit(X, y + shift) for shift in (0.0, 1e6))
    assert_allclose(two.predict(X) - 1e6, one.predict(X), atol=1e-4)
    assert_allclose(one.certificate_.primal, two.certificate_.primal, rtol=1e-5)


@pytest.mark.parametrize("factor", [1e-30, 1e3, 1e30])
@every_loss
def test_predictions_have_the_scale_of_the_targets(loss, factor):
    X, y = data(80)
    grown = factor if loss in ("epsilon_insensitive", "quantile") else 1.0
    one = machine_of(loss, max_iter=5).fit(X, y)
    two = machine_of(loss, max_iter=5, C=3.0 * grown, epsilon=0.2 * factor).fit(X, factor * y)
    assert_allclose(two.predict(X), factor * one.predict(X), rtol=1e-5)
    assert_allclose(two.history_[0], factor**2 * one.history_[0], rtol=1e-5)


def test_without_an_intercept_there_is_none():
    X, y = data(80)
    machine = machine_of(fit_intercept=False, max_iter=5).fit(X, y)
    assert_array_equal(machine.intercept_, [0.0])
    exact = MarginRegressor(C=3.0, gamma=0.3, fit_intercept=False, engine="exact").fit(X, y)
    whole = machine_of(init=X, fit_intercept=False, max_iter=1).fit(X, y)
    assert_allclose(whole.history_[0][0], exact.certificate_.primal, rtol=1e-5)


@pytest.mark.parametrize("grow", ["one", "double"])
@every_loss
def test_growth_tells_what_each_number_of_vectors_is_good_for(loss, grow):
    X, y = data()
    machine = machine_of(loss, 5, grow=grow, max_iter=10).fit(X, y)
    curve = machine.score_curve_
    expected = [1, 2, 3, 4, 5] if grow == "one" else [1, 2, 4, 5]
    assert curve["n_vectors"].tolist() == expected
    assert (np.diff(curve["W"]) <= 0).all()
    assert_allclose(curve["W"][-1], machine.certificate_.primal, rtol=1e-9)
    assert_allclose(curve["training_score"][-1], machine.score(X, y), rtol=1e-6)
    assert not hasattr(machine.set_params(grow=None, max_iter=1).fit(X, y), "score_curve_")


# Odd data.


@every_loss
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_any_C_gives_a_valid_machine(loss, C):
    X, y = data(60)
    machine = machine_of(loss, C=C, max_iter=20).fit(X, y)
    assert np.isfinite(machine.predict(X)).all()
    assert machine.certificate_.gap < 1e-6


@every_loss
def test_constant_targets_are_met_by_the_bias_alone(loss):
    X, _ = data(40)
    machine = machine_of(loss).fit(X, np.full(40, 7.0))
    assert_allclose(machine.predict(X), 7.0)
    assert machine.certificate_.primal == 0.0


@every_loss
@pytest.mark.parametrize("init", ["kmeans", "random"])
def test_few_rows_and_equal_rows_are_no_harm(loss, init):
    X, y = data(50)
    one = machine_of(loss, init=init).fit(X[:1], y[:1])
    assert_allclose(one.predict(X[:1]), y[:1])
    assert one.n_vectors_ == 1
    equal = machine_of(loss, init=init).fit(np.repeat(X[:3], 10, axis=0), np.arange(30.0))
    assert np.isfinite(equal.predict(X)).all()
    if init == "random":
        assert equal.n_vectors_ == 3


def test_sparse_rows_and_small_types_give_the_same():
    X, y = data(80)
    X = np.round(3.0 * X).astype(np.int8)
    given = {"gamma": 0.1, "max_iter": 5, "init": X[:6]}
    expected = machine_of(**given).fit(X.astype(float), y).predict(X)
    for rows in (X, X.astype(np.float32), sparse.csr_array(X.astype(float))):
        found = machine_of(**given).fit(rows, y).predict(rows)
        assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_vectors": 0.1}, "n_vectors=0.1 must be a whole number"),
        ({"n_vectors": 0}, "n_vectors=0 must be at least 1"),
        ({"loss": "huber"}, "loss='huber' is not known"),
        ({"quantile": 1.0}, "quantile=1.0 must lie between 0 and 1"),
        ({"epsilon": -1.0}, "epsilon=-1.0 must not be negative"),
        ({"init": "reduced_set"}, "init='reduced_set' is not known"),
        ({"init": np.zeros((2, 5))}, "a column for each of the 3 features"),
        ({"kernel": "precomputed"}, "kernel='precomputed' has no gradient"),
        ({"loss": "quantile", "fit_intercept": False}, "loss='quantile' has a free bias"),
    ],
)
def test_a_bad_parameter_is_named_with_the_remedy(parameters, message):
    X, y = data(20)
    with pytest.raises((ValueError, TypeError), match=message):
        machine_of().set_params(**parameters).fit(X, y)


@pytest.mark.parametrize("kind", [SparseMarginRegressor, MarginRegressor])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile"])
def test_targets_too_small_for_C_are_refused(kind, loss):
    X, y = data(20)
    with pytest.raises(ValueError, match=r"C=1 and targets .* too far apart in size"):
        kind(loss=loss).fit(X, 1e-150 * y)


# Limits.


@every_loss
def test_time_that_is_over_leaves_a_valid_machine_and_a_warning(loss):
    X, y = data()
    machine = machine_of(loss, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_time=1e-06 reached"):
        machine.fit(X, y)
    assert_valid(machine, X, y)
    best = machine_of(loss, init=machine.expansion_vectors_, max_iter=1).fit(X, y)
    assert machine.certificate_.dual <= best.history_[0][0]


@every_loss
@pytest.mark.parametrize("where", ["whitened", "step", "gradient"])
def test_an_interrupt_leaves_a_valid_machine(monkeypatch, loss, where):
    X, y = data()
    owner = Newton if where == "step" else VectorSpan
    work, calls = getattr(owner, where), []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return work(*arguments, **options)

    monkeypatch.setattr(owner, where, interrupted)
    machine = machine_of(loss)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.fit(X, y)
    assert machine.certificate_.stopped == "interrupted"
    assert machine.coef_.any()
    assert_valid(machine, X, y)


@every_loss
def test_little_memory_gives_the_same_answer(loss):
    X, y = data(900)
    machine = machine_of(loss, init=X[:10], max_iter=2)
    plain = machine.fit(X, y).predict(X)
    small = machine.set_params(memory="100kB").fit(X, y)
    assert_allclose(small.predict(X), plain, rtol=1e-5, atol=1e-5)


def test_many_rows_are_placed_on_a_sample_first():
    X, y = data(20_500)
    machine = machine_of("squared", 8, max_iter=5).fit(X, y)
    assert_valid(machine, X, y)
    assert machine.score(X, y) > 0.5


@every_loss
def test_threads_change_no_bit_and_pickles_keep_all(loss):
    X, y = data(3000)
    y = np.column_stack([y, X[:, 0]])
    one, three = (machine_of(loss, 20, max_iter=2, n_jobs=jobs).fit(X, y) for jobs in (1, 3))
    assert_array_equal(one.predict(X), three.predict(X))
    again = pickle.loads(pickle.dumps(one))
    assert_array_equal(one.predict(X), again.predict(X))
    assert clone(one).get_params() == one.get_params()


def test_skops_keeps_a_machine():
    io = pytest.importorskip("skops.io")
    X, y = data(60)
    machine = machine_of(max_iter=2).fit(X, y)
    stored = io.dumps(machine)
    again = io.loads(stored, trusted=io.get_untrusted_types(data=stored))
    assert_array_equal(machine.predict(X), again.predict(X))
