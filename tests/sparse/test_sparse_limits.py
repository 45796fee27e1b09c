"""Sparse machines within limits: time that is kept, interrupts, many rows, little memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from tests.reference.data import moons
from tests.reference.sparse import (
    DATA,
    assert_valid,
    every_way,
    half_of_wine,
    small_moons,
    sparse_machine,
    two_and_three,
    with_sizes,
)
from widemargin import ReducedSVMClassifier, SparseFisherClassifier, SparseMarginClassifier
from widemargin.kernels import RBF, Linear
from widemargin.loop import Deadline
from widemargin.problem import Problem, one_vs_rest
from widemargin.qp import box_ascent
from widemargin.qp.newton import DenseFeatures, Newton
from widemargin.rows import as_rows
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.marginal import VectorSpan, features_of
from widemargin.sparse.placement import fit_sparse
from widemargin.sparse.sparse_options import PlacementSizes, SparseOptions
from widemargin.sparse.squared_marginal import Squared

# Many fits are cut short, to save time; where one must be warned of, the test says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
both_losses = pytest.mark.parametrize("loss", [Hinge, Squared])


def _work_as_clock(monkeypatch, owner, name):
    """Let each call of what works take a second, and return the list of calls."""
    work, made = getattr(owner, name), []

    def counted(*arguments, **options):
        made.append(1)
        return work(*arguments, **options)

    monkeypatch.setattr(owner, name, counted)
    monkeypatch.setattr("widemargin.loop.perf_counter", lambda: float(len(made)))
    return made


# Time.


@pytest.mark.parametrize("way", ["hinge", "squared"])
def test_the_first_evaluations_of_several_classes_end_in_time(monkeypatch, way):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = (X[:, :4] + 0.5 * rng.normal(size=(600, 4))).argmax(axis=1)
    steps = _work_as_clock(monkeypatch, Newton, "step")
    machine = sparse_machine(way, 20, max_time=8)
    with pytest.warns(ConvergenceWarning, match="max_time=8 reached"):
        machine.fit(X, y)
    # Each class has a step of its own, and no more than that when the time is over.
    assert 8 <= len(steps) <= 8 + 4
    assert machine.n_vectors_ == 80
    assert machine.certificate_.gap > 1e-6
    assert_valid(machine, X, y)


def test_the_machine_whose_support_vectors_are_counted_ends_in_time(monkeypatch):
    # Rows that are far from each other, and a large C: no exact machine would ever be there.
    rng = np.random.default_rng(0)
    X = 100.0 * rng.normal(size=(300, 10))
    y = X[:, 0] + 50.0 * rng.normal(size=300) > 0
    spells = _work_as_clock(monkeypatch, box_ascent.BoxAscent, "_advance")
    machine = SparseMarginClassifier(C=1000.0, kernel="linear", max_time=2, random_state=0)
    machine.fit(X, y)
    assert 1 <= len(spells) <= 4
    kernel = Linear()
    assert_valid(machine, X, y, kernel=lambda A, B: np.asarray(kernel.block(A, B)))
    assert machine.score(X, y) > 0.8


@pytest.mark.parametrize("method", ["rsvm", "mrsvm"])
def test_a_reduced_svm_ends_in_time(monkeypatch, method):
    X, y = small_moons(300)
    steps = _work_as_clock(monkeypatch, Newton, "step")
    machine = ReducedSVMClassifier(
        20, method=method, C=1e4, gamma=1.0, max_time=2, random_state=0, n_jobs=1
    )
    with pytest.warns(ConvergenceWarning, match="max_time=2 reached"):
        machine.fit(X, y)
    assert len(steps) <= 3
    assert 1e-6 < machine.certificate_.gap <= 1.0
    assert np.isfinite(machine.decision_function(X)).all()
    free = ReducedSVMClassifier(
        20, method=method, C=1e4, gamma=1.0, max_time=1e9, random_state=0, n_jobs=1
    ).fit(X, y)
    assert_array_equal(free.expansion_vectors_, machine.expansion_vectors_)
    assert free.certificate_.dual <= machine.certificate_.primal
    assert machine.certificate_.dual <= free.certificate_.primal


@both_losses
def test_W_without_time_is_above_the_optimum_and_its_bound_below(loss):
    X, y = moons(200, noise=0.3)
    problem = Problem.of(
        as_rows(X, memory=10**8, threads=1), RBF(1.0), y, one_vs_rest(2), np.ones(200), 100.0
    )
    Z = X[:12]
    best = loss(problem)(Z)
    over = loss(problem, Deadline.after(0.0))(Z)
    assert over.dual < best.dual
    assert best.value < over.value
    assert best.value == pytest.approx(best.dual, rel=1e-9)
    assert np.isfinite(over.gradient).all()
    # The value is that of the machine.
    slack = np.maximum(
        0.0, 1.0 - problem.sign(0) * (RBF(1.0).block(X, Z) @ over.beta[:, 0] + over.intercept)
    )
    gram = RBF(1.0).block(Z, Z) + 1e-8 * np.eye(12)
    own = 0.5 * over.beta[:, 0] @ gram @ over.beta[:, 0]
    own += 100.0 * slack.sum() if loss is Hinge else 100.0 * slack @ slack
    own += 0.0 if loss is Hinge else 0.5 * over.intercept[0] ** 2
    assert over.value == pytest.approx(own, rel=1e-9)


def test_growth_ends_with_the_time_and_not_with_more_vectors(monkeypatch):
    X, y = small_moons(200)
    steps = _work_as_clock(monkeypatch, Newton, "step")
    limits = {"grow": "one", "max_time": 150, "tol": 1e-4}
    machine = sparse_machine("squared", 12, gamma=1.0, random_state=8, **limits)
    with pytest.warns(ConvergenceWarning, match="max_time=150 reached"):
        machine.fit(X, y)
    assert len(steps) <= 152
    assert 1 < machine.n_vectors_ < 12
    assert_array_equal(machine.accuracy_curve_["n_vectors"], np.arange(1, machine.n_vectors_ + 1))
    assert_valid(machine, X, y)


# Interrupts.


def _interrupt(monkeypatch, owner, name):
    """Raise an interrupt in the first call of a method."""
    work, made = getattr(owner, name), []

    def interrupted(*arguments, **options):
        made.append(1)
        if len(made) == 1:
            raise KeyboardInterrupt
        return work(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)
    return made


@two_and_three
@every_way
@pytest.mark.parametrize("where", ["kernel values", "machine", "gradient"])
def test_an_interrupt_in_the_first_evaluation_leaves_a_valid_machine(
    monkeypatch, way, classes, where
):
    X, y = DATA[classes]()
    owner, name = {
        "kernel values": (VectorSpan, "whitened"),
        "machine": (Newton, "step"),
        "gradient": (VectorSpan, "gradient"),
    }[where]
    made = _interrupt(monkeypatch, owner, name)
    machine = sparse_machine(way, 4, tol=0.0)
    if (way, where) == ("fisher", "machine"):
        # A direct solution: nothing of the kind happens in it.
        machine.set_params(max_iter=1).fit(X, y)
        assert not made
        return
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.fit(X, y)
    assert machine.certificate_.stopped == "interrupted"
    assert machine.n_vectors_ == 4 * len(machine.history_)
    assert_valid(machine, X, y)
    # It is more than nothing: a step is taken in any case.
    assert machine.coef_.any()
    if (way, where) != ("fisher svm", "machine"):
        assert machine.n_iter_ == 0


@pytest.mark.parametrize("method", ["rsvm", "mrsvm"])
@pytest.mark.parametrize("classes", ["two", "three"])
def test_an_interrupt_of_a_reduced_svm_leaves_a_machine(monkeypatch, method, classes):
    X, y = DATA[classes]()
    _interrupt(monkeypatch, Newton, "step")
    machine = ReducedSVMClassifier(6, method=method, random_state=0, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.fit(X, y)
    assert machine.certificate_.stopped == "interrupted"
    assert machine.n_vectors_ == 6 * (1 if classes == "two" else 3)
    assert np.isfinite(machine.decision_function(X)).all()


# Many rows.


def _engine(X, y, **options):
    n_classes = int(y.max()) + 1
    rows = as_rows(X, memory=10**8, threads=1)
    table = one_vs_rest(n_classes)
    problem = Problem.of(rows, RBF(0.5), y, table, np.ones(len(y)), 1.0)
    return fit_sparse(problem, SparseOptions(function=Hinge, **options))


def test_the_engine_counts_the_support_vectors_of_a_sample():
    X, y = small_moons(400)
    whole = _engine(X, y, n_vectors=0.5, max_iter=1)
    for rows in (50, 100):
        sizes = PlacementSizes(exact_rows=rows)
        part = _engine(X, y, n_vectors=0.5, max_iter=1, sizes=sizes)
        # Fewer rows have fewer of them, and about as many of theirs.
        share = len(part.vectors) / len(whole.vectors)
        assert 0.5 * rows / 400 < share < 3.0 * rows / 400
        assert part.certificate.primal < 1.5 * whole.certificate.primal
    # Little memory has the same effect.
    little = _engine(X, y, n_vectors=0.5, max_iter=1, memory=10**5)
    assert len(little.vectors) < len(whole.vectors)


@pytest.mark.parametrize(
    "machine",
    [
        sparse_machine("hinge", 0.1, max_iter=3),
        sparse_machine("squared", 0.1, max_iter=3),
        sparse_machine("shared hinge", 0.1, max_iter=3),
        sparse_machine("fisher svm", 0.1, max_iter=3),
        sparse_machine("hinge", 0.1, init="reduced_set", max_iter=3),
    ],
    ids=str,
)
def test_sizes_that_few_rows_exceed_give_a_valid_machine(machine):
    X, y = half_of_wine()
    machine = with_sizes(machine, first_rows=30, exact_rows=20).fit(X, y)
    assert_valid(machine, X, y)
    assert machine.score(X, y) > 0.7


@pytest.mark.parametrize(
    "kind", [SparseMarginClassifier, SparseFisherClassifier, ReducedSVMClassifier]
)
def test_the_defaults_work_for_more_than_20_000_rows(kind):
    # Far apart, so that there are few support vectors, and few vectors to move.
    X, y = make_blobs(20_500, centers=2, n_features=2, cluster_std=0.4, random_state=0)
    machine = kind(gamma=0.1, random_state=0).fit(X, y)
    assert 1 <= machine.n_vectors_ < 40
    assert machine.score(X, y) > 0.99


# Little memory.


@every_way
def test_features_that_do_not_fit_are_computed_again_with_the_same_answer(way):
    X, y = small_moons(900)
    y = y + (X[:, 0] > 1)
    machine = sparse_machine(way, 10, gamma=1.0, init=X[:10], max_iter=2)
    plain = machine.fit(X, y)
    scores, W = plain.decision_function(X), plain.certificate_.primal
    small = machine.set_params(memory="100kB").fit(X, y)
    assert small.certificate_.primal == pytest.approx(W, rel=1e-9)
    assert_allclose(small.decision_function(X), scores, rtol=1e-5, atol=1e-6)
    assert_valid(small, X, y)


def test_features_are_kept_where_there_is_room_and_else_made_when_needed():
    X = small_moons(500)[0]
    Z, root = X[:7], np.random.default_rng(0).normal(size=(7, 7))
    weight, points = np.random.default_rng(1).normal(size=(2, 500)), np.eye(8)[:3]
    kept, made = (
        features_of(as_rows(X, memory=memory, threads=2), RBF(1.0), Z, root, True)
        for memory in (10**6, 10**4)
    )
    assert isinstance(kept, DenseFeatures)
    assert not isinstance(made, DenseFeatures)
    assert kept.shape == made.shape == (500, 8)
    assert_allclose(made.block(slice(0, 500)), kept.G, atol=1e-12)
    assert_allclose(made.block(np.array([3, 499])), kept.G[[3, 499]], atol=1e-12)
    assert_allclose(made.products(points), kept.products(points), atol=1e-12)
    assert_allclose(made.sums(weight), kept.sums(weight), atol=1e-11)
    assert_allclose(kept.G[:, -1], 1.0)


@pytest.mark.parametrize(
    "machine",
    [
        SparseMarginClassifier(100, max_iter=1, random_state=0, init="random"),
        SparseMarginClassifier(
            100, loss="squared_hinge", max_iter=1, random_state=0, init="random"
        ),
        SparseFisherClassifier(
            100, coefficients="fisher", max_iter=1, random_state=0, init="random"
        ),
        ReducedSVMClassifier(100, random_state=0),
        ReducedSVMClassifier(100, method="mrsvm", random_state=0),
    ],
    ids=str,
)
def test_features_keep_to_the_memory(machine):
    X, y = moons(6000, noise=0.3)
    machine.set_params(gamma=1.0, n_jobs=1, C=0.01).fit(X[:300], y[:300])  # what is imported first
    peaks = []
    for memory in ("1GB", "1MB"):
        tracemalloc.start()
        machine.set_params(memory=memory).fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # All features take 4.8 MB; a number for each row takes 0.05 MB, and there are some of these.
    assert peaks[0] > 4.8e6
    assert peaks[1] < 3e6
