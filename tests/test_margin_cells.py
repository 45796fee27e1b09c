"""`MarginClassifier(engine="cells")` against machines fitted by hand, oracles and theorems."""

import contextlib
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

from tests.reference import cells as reference
from tests.reference.svm import dual_value, l2svm_dual_exact, signed_kernel
from widemargin import MarginClassifier, MarginClassifierCV, labelled, loop
from widemargin.cells import Partition, partition, partition_by_kmeans
from widemargin.deadline import Deadline
from widemargin.rows import as_rows
from widemargin.span import SpanFit
from widemargin.svm import (
    ball,
    cell_classifier,
    cell_machine,
    engines,
    folds_in_cells,
    grid,
    in_cells,
    margin,
)
from widemargin.svm.folds import Folds
from widemargin.svm.folds_in_cells import CellChoices

# Data, and machines by hand.

CENTERS = np.array([[-1.0, 0.6], [0.0, -0.6], [0.4, 0.9], [1.6, -0.3], [2.2, 0.6]])


def _moons(n=300, noise=0.25):
    return make_moons(n, noise=noise, random_state=0)


def _three_classes(n=300):
    X, y = _moons(n)
    return X, np.where(X[:, 1] > 0.7, 2, y)


def _board(n=2000, squares=6):
    """A chessboard: a boundary that needs many vectors."""
    X = np.random.default_rng(0).uniform(size=(n, 2))
    return X, (np.floor(squares * X).sum(axis=1) % 2).astype(int)


DATA = {"two classes": _moons, "three classes": _three_classes}
every_data = pytest.mark.parametrize("data", DATA)


def _cells(**parameters):
    defaults = {"engine": "cells", "cells": 40, "gamma": 2.0, "random_state": 0, "n_jobs": 1}
    return MarginClassifier(**defaults | parameters)


def _own(X, centers):
    return reference.distances(X, centers).argmin(axis=1)


def _machine_by_hand(X, y, weight, classes, C, gamma, **parameters):
    """Decision values by an independent machine for the rows of a cell, a column a problem."""
    parameters = {"engine": "exact", "tol": 1e-12, "C": C, "gamma": gamma} | parameters
    present = np.unique(y)
    n_problems = 1 if len(classes) == 2 else len(classes)
    total = 2.0 * C * weight.sum()
    constant = total / (1.0 + total)
    if len(present) == 1:
        signs = np.where(classes == present[0], 1.0, -1.0)
        values = constant * (signs[1:] if n_problems == 1 else signs)
        return lambda A: np.tile(values, (len(A), 1))
    hand = MarginClassifier(**parameters).fit(X, y, weight)

    def decide(A):
        f = hand.decision_function(A)
        if n_problems == 1:
            return f[:, None]
        values = np.full((len(A), n_problems), -constant)
        place = np.searchsorted(classes, present)
        values[:, place] = np.stack([-f, f], axis=1) if f.ndim == 1 else f
        return values

    return decide


def _by_hand(X, y, centers, weight=None, C=1.0, gamma=2.0, overlap=0.0, **parameters):
    weight = np.ones(len(y)) if weight is None else weight
    members = [np.array(sorted(rows)) for rows in reference.members(X, centers, overlap)]
    return [
        _machine_by_hand(X[m], y[m], weight[m], np.unique(y), C, gamma, **parameters)
        for m in members
    ]


def _columns(decision):
    return decision[:, None] if decision.ndim == 1 else decision


# What it equals.


@every_data
@pytest.mark.parametrize("engine", ["exact", "span"])
@pytest.mark.parametrize("cells", [10_000, [[3.0, 4.0]]], ids=["by size", "given"])
def test_one_cell_is_no_cells(data, engine, cells, monkeypatch):
    if engine == "span":
        # As if there were many rows.
        monkeypatch.setattr(engines, "_EXACT_ROWS", 10)
        monkeypatch.setattr(engines, "_EXACT_WORK", 0.0)
    X, y = DATA[data](600)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=600)
    whole = _cells(engine=engine).fit(X, y, weight)
    cut = _cells(cells=cells).fit(X, y, weight)
    assert (whole.engine_, cut.engine_) == (engine, "cells")
    assert_allclose(cut.decision_function(X), whole.decision_function(X), rtol=0, atol=1e-10)
    assert_array_equal(cut.support_, whole.support_)
    assert_allclose(cut.dual_coef_, whole.dual_coef_, atol=1e-10)
    assert_allclose(cut.intercept_, whole.intercept_[None], atol=1e-10)
    for name in ("primal", "dual", "gap", "full_dual", "n_kernel", "n_vectors"):
        mine, theirs = (getattr(m.certificate_, name) for m in (cut, whole))
        assert mine == theirs or mine == pytest.approx(theirs, rel=1e-10)


@every_data
@pytest.mark.parametrize("weighted", [False, True])
def test_given_cells_are_independent_machines(data, weighted):
    X, y = DATA[data]()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y)) if weighted else None
    machine = _cells(cells=CENTERS, overlap=0.0, blend=0.0, C=5.0, tol=1e-12)
    machine.fit(X, y, weight)
    assert_array_equal(machine.cell_centers_, CENTERS)
    new = 1.5 * np.random.default_rng(1).normal(size=(400, 2))
    hands = _by_hand(X, y, CENTERS, weight, C=5.0)
    own = _own(new, CENTERS)
    decision = _columns(machine.decision_function(new))
    for cell, hand in enumerate(hands):
        assert np.count_nonzero(own == cell) > 5
        assert_allclose(decision[own == cell], hand(new[own == cell]), atol=1e-6)


@every_data
def test_overlap_and_blend_are_what_they_are_said_to_be(data):
    X, y = DATA[data]()
    machine = _cells(cells=CENTERS, overlap=0.4, blend=0.3, tol=1e-12).fit(X, y)
    new = np.random.default_rng(1).normal(0.5, 1.0, size=(200, 2))
    hands = _by_hand(X, y, CENTERS, overlap=0.4)
    expected = reference.blended(new, CENTERS, hands, 0.3)
    assert_allclose(_columns(machine.decision_function(new)), expected, atol=1e-6)
    nearest = clone(machine).set_params(blend=0.0).fit(X, y)
    assert_allclose(
        _columns(nearest.decision_function(new)),
        reference.blended(new, CENTERS, hands, 0.0),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "kernel",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "coef0": 1.0, "degree": 2},
        {"kernel": "laplacian"},
        {"kernel": lambda A, B: rbf_kernel(A, B, gamma=0.3)},
    ],
    ids=["linear", "poly", "laplacian", "function"],
)
def test_other_kernels(kernel):
    X, y = _three_classes()
    parameters = {"gamma": 0.5} | kernel
    machine = _cells(cells=CENTERS, overlap=0.0, blend=0.0, tol=1e-12, **parameters).fit(X, y)
    hands = _by_hand(X, y, CENTERS, **parameters)
    expected = reference.blended(X, CENTERS, hands, 0.0)
    scale = np.abs(expected).max()
    assert_allclose(machine.decision_function(X), expected, atol=1e-6 * scale)


def test_a_cell_without_rows_one_row_and_one_class_and_a_class_in_one_cell_only():
    X, y = make_blobs(120, centers=[[0, 0], [10, 0]], cluster_std=1.0, random_state=0)
    # The blob on the left has two classes, that on the right one; a third class and single rows.
    y = np.where(X[:, 0] > 5, 3, (X[:, 1] > 0).astype(int))
    X = np.vstack([X, [[0.0, 30.0], [0.1, 60.0], [0.2, 61.0]]])
    y = np.append(y, [0, 7, 7])
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 30.0], [0.0, 60.0], [99.0, 99.0]])
    machine = _cells(cells=centers, overlap=0.0, blend=0.0, C=10.0, tol=1e-12).fit(X, y)
    assert_array_equal(machine.classes_, [0, 1, 3, 7])
    filled = centers[[0, 3, 2, 1]][np.lexsort(centers[[0, 3, 2, 1]].T[::-1])]
    assert_array_equal(machine.cell_centers_, filled)
    assert machine.score(X, y) > 0.99
    new = np.array([[9.0, 1.0], [0.0, 29.0], [5.0, 70.0], [99.0, 99.0]])
    assert_array_equal(machine.predict(new), [3, 0, 7, 7])
    hands = _by_hand(X, y, filled, C=10.0)
    expected = reference.blended(X, filled, hands, 0.0)
    assert_allclose(machine.decision_function(X), expected, atol=1e-6)
    # With guests too, every cell knows what it is about.
    assert _cells(cells=centers, C=10.0).fit(X, y).score(X, y) > 0.99


def test_more_centres_than_rows():
    X, y = _moons(12)
    machine = _cells(cells=np.random.default_rng(0).normal(size=(500, 2)), blend=0.0, overlap=0.0)
    machine.fit(X, y)
    assert 1 < len(machine.cell_centers_) <= 12
    assert machine.score(X, y) == 1.0
    at_rows = _cells(cells=X, blend=0.0, overlap=0.0).fit(X, y)
    assert len(at_rows.cell_centers_) == 12
    assert at_rows.certificate_.n_vectors == 0
    assert_allclose(at_rows.decision_function(X), np.where(y, 2 / 3, -2 / 3))


def test_identical_rows_in_many_places_are_weights():
    X, y = _moons(80)
    counts = np.random.default_rng(0).integers(1, 6, size=80)
    copied = _cells(cells=CENTERS).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = _cells(cells=CENTERS).fit(X, y, counts)
    assert_array_equal(copied.decision_function(X), weighted.decision_function(X))
    # The same row with either label.
    both = _cells(cells=CENTERS, C=10.0, overlap=0.0).fit(np.vstack([X, X]), np.append(y, 1 - y))
    assert_allclose(both.decision_function(X), 0.0, atol=1e-3)
    # All rows the same.
    same = _cells(cells=2).fit(np.ones((10, 2)), [0] * 7 + [1] * 3)
    assert_array_equal(same.predict(np.ones((2, 2))), [0, 0])


# Edges.


def _jumps(machine, X, n_segments, rng):
    """The largest jump at an edge, closed in on by bisection, over random segments."""
    partition = Partition(machine.cell_centers_)

    def near(points):
        return partition.nearest(as_rows(points, memory=10**9, threads=1), 2).cell

    ends = X[rng.integers(len(X), size=(2, n_segments))]
    t = np.linspace(0.0, 1.0, 65)
    lines = ends[0][:, None] + t[None, :, None] * (ends[1] - ends[0])[:, None]
    cell = near(lines.reshape(-1, X.shape[1])).reshape(n_segments, len(t), 2)
    segment, place = np.nonzero((cell[:, 1:] != cell[:, :-1]).any(axis=2))
    low, high = lines[segment, place].copy(), lines[segment, place + 1].copy()
    before = cell[segment, place]
    for _ in range(40):
        middle = 0.5 * (low + high)
        left = (near(middle) == before).all(axis=1)[:, None]
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    change = machine.decision_function(high) - machine.decision_function(low)
    return float(np.abs(change).max()), len(segment)


@pytest.mark.parametrize("n_features", [2, 5])
def test_with_a_blend_the_decision_function_has_no_jumps(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, n_features))
    y = (np.sin(3 * X[:, 0]) > X[:, 1]).astype(int)
    machine = _cells(cells=50, gamma=0.5, C=10.0).fit(X, y)
    blended, n_edges = _jumps(machine, X, 1000, np.random.default_rng(1))
    plain = clone(machine).set_params(blend=0.0).fit(X, y)
    jump, _ = _jumps(plain, X, 1000, np.random.default_rng(1))
    assert n_edges > 1000
    assert jump > 0.5
    assert blended <= 1e-4 * jump
    new = rng.normal(size=(2000, n_features))
    truth = (np.sin(3 * new[:, 0]) > new[:, 1]).astype(int)
    assert machine.score(new, truth) >= plain.score(new, truth) - 0.002


def test_blend_and_overlap_do_not_lower_the_accuracy():
    X, y = _board()
    learn, judge = slice(0, 1000), slice(1000, None)
    score = {}
    for overlap, blend in ((0.0, 0.0), (0.3, 0.0), (0.3, 0.2)):
        machine = _cells(cells=100, gamma=60.0, C=10.0, overlap=overlap, blend=blend)
        score[overlap, blend] = machine.fit(X[learn], y[learn]).score(X[judge], y[judge])
    assert score[0.3, 0.0] >= score[0.0, 0.0] - 0.005
    assert score[0.3, 0.2] >= score[0.3, 0.0] - 0.005
    assert score[0.3, 0.2] > 0.9


# What it proves.


def _optima(X, y, machine, weight=None):
    """The optimum of each cell, by an exact solver, for two classes."""
    weight = np.ones(len(y)) if weight is None else weight
    optima = []
    for rows in reference.members(X, machine.cell_centers_, machine.overlap):
        m = np.array(sorted(rows))
        K = rbf_kernel(X[m], gamma=machine.gamma_)
        Q = signed_kernel(K, np.where(y[m] == 1, 1.0, -1.0), machine.C, weight[m])
        optima.append(-dual_value(Q, l2svm_dual_exact(Q)))
    return np.array(optima)


@pytest.mark.parametrize("overlap", [0.0, 0.3])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_the_certificate_encloses_the_sum_of_the_optima(overlap, tol):
    X, y = _moons(200, 0.4)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=200)
    machine = _cells(cells=CENTERS, overlap=overlap, tol=tol, C=3.0).fit(X, y, weight)
    found, optima = machine.certificate_, _optima(X, y, machine, weight)
    assert found.dual <= optima.sum() * (1 + 1e-9)
    assert found.primal >= optima.sum() * (1 - 1e-9)
    # All of these cells have both classes.
    assert found.primal - found.dual <= 2 * tol * found.primal
    assert found.gap == pytest.approx((found.primal - found.dual) / found.primal)
    assert (found.scope, found.full_dual) == ("cells", None)
    named = re.fullmatch(
        r"5 cells of up to (\d+) rows, the largest gap (\S+) in cell (\d)", found.stopped
    )
    sizes = [len(rows) for rows in reference.members(X, CENTERS, overlap)]
    assert int(named[1]) == max(sizes)
    # The gap of the sum is a mean of the cells' gaps.
    assert 0.95 * found.gap <= float(named[2]) <= 2 * tol
    if tol > 1e-2:
        worst = int(named[3])
        gaps = [
            _gap_of_cell(machine, X, y, weight, cell, optimum)
            for cell, optimum in enumerate(optima)
        ]
        assert gaps[worst] > 0


def _gap_of_cell(machine, X, y, weight, cell, optimum):
    """How far the machine of a cell is from its optimum."""
    own = slice(machine.cell_offsets_[cell], machine.cell_offsets_[cell + 1])
    rows = sorted(reference.members(X, machine.cell_centers_, machine.overlap)[cell])
    Z, beta, b = (
        machine.support_vectors_[own],
        machine.dual_coef_[0, own],
        machine.intercept_[cell, 0],
    )
    f, w2 = np.full(len(rows), b), 0.0
    if len(beta):
        f += rbf_kernel(X[rows], Z, gamma=machine.gamma_) @ beta
        w2 = beta @ rbf_kernel(Z, gamma=machine.gamma_) @ beta
    slack = np.maximum(0.0, 1.0 - np.where(y[rows] == 1, 1.0, -1.0) * f)
    return 0.5 * w2 + 0.5 * b * b + machine.C * weight[rows] @ slack**2 - optimum


def test_the_primal_is_the_objective_of_the_machines_handed_out():
    X, y = _moons(250, 0.35)
    ones = np.ones(250)
    machine = _cells(cells=30, C=2.0).fit(X, y)
    optima = _optima(X, y, machine)
    above = [
        _gap_of_cell(machine, X, y, ones, cell, optimum) for cell, optimum in enumerate(optima)
    ]
    assert min(above) >= -1e-9
    assert_allclose(machine.certificate_.primal, sum(above) + optima.sum(), rtol=1e-6)
    assert machine.certificate_.dual <= optima.sum()
    assert machine.certificate_.n_vectors == len(machine.support_) == machine.cell_offsets_[-1]


def test_cells_of_one_class_do_not_hide_in_the_gap():
    X, y = make_blobs(200, centers=[[-20, 0], [20, 0]], random_state=0)
    machine = _cells(cells=20).fit(X, y)
    found = machine.certificate_
    assert found.n_vectors == 0
    assert found.stopped.endswith("the largest gap 0.0e+00 in cell 0") or "gap 0.0" in found.stopped
    optima = _optima(X, y, machine)
    assert found.dual <= optima.sum() <= found.primal
    assert 0.1 < found.gap < 1.0


@every_data
def test_max_vectors_is_a_budget_over_all_cells(data):
    X, y = DATA[data](600)
    free = _cells(cells=60, C=10.0).fit(X, y)
    budget = free.certificate_.n_vectors // 2
    machine = _cells(cells=60, C=10.0, max_vectors=budget).fit(X, y)
    found = machine.certificate_
    assert len(machine.cell_centers_) == len(free.cell_centers_) > 5
    assert len(machine.support_vectors_) == found.n_vectors <= budget
    assert machine.score(X, y) > 0.8
    # The span of fewer vectors can do no better, and the full problem has its bound.
    assert found.primal >= free.certificate_.dual
    assert found.full_dual <= free.certificate_.primal
    assert found.full_dual <= found.dual
    # A budget for few cells makes few cells; given ones are as many as they are.
    small = _cells(cells=60, C=10.0, max_vectors=10).fit(X, y)
    assert len(small.cell_centers_) < len(free.cell_centers_)
    assert len(small.support_vectors_) <= 10
    with pytest.raises(ValueError, match=r"max_vectors=3 is less than one for each problem in"):
        _cells(cells=X[:8], C=10.0, max_vectors=3).fit(X, y)
    plenty = _cells(cells=60, C=10.0, max_vectors=10**6).fit(X, y)
    assert_array_equal(plenty.decision_function(X), free.decision_function(X))


# Robustness.


@every_data
def test_the_bits_do_not_depend_on_threads_and_the_answer_not_on_the_order_of_rows(data):
    X, y = DATA[data](500)
    machine = _cells().fit(X, y)
    assert len(machine.cell_centers_) > 5
    for n_jobs in (2, 3):
        other = _cells(n_jobs=n_jobs).fit(X, y)
        assert_array_equal(other.cell_centers_, machine.cell_centers_)
        assert_array_equal(other.dual_coef_, machine.dual_coef_)
        assert_array_equal(other.decision_function(X), machine.decision_function(X))
    order = np.random.default_rng(0).permutation(500)
    shuffled = _cells().fit(X[order], y[order])
    assert_array_equal(shuffled.cell_centers_, machine.cell_centers_)
    assert_array_equal(order[shuffled.support_], machine.support_)
    assert_array_equal(shuffled.decision_function(X), machine.decision_function(X))


@pytest.mark.parametrize("cells", [30, CENTERS, "auto"], ids=["size", "given", "auto"])
def test_a_weight_of_k_is_k_copies(cells):
    X, y = _three_classes(200)
    counts = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = _cells(cells=cells).fit(X, y, counts)
    copied = _cells(cells=cells).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_array_equal(weighted.cell_centers_, copied.cell_centers_)
    assert_array_equal(weighted.decision_function(X), copied.decision_function(X))


@pytest.mark.parametrize("engine_of_cell", ["exact", "span"])
def test_rows_in_every_form(engine_of_cell, tmp_path):
    X, y = _three_classes(300)
    X = np.round(8 * X)
    parameters = {"max_vectors": 60} if engine_of_cell == "span" else {}
    plain = _cells(gamma=0.05, **parameters).fit(X, y)
    expected = plain.decision_function(X)
    np.save(tmp_path / "rows.npy", X)
    forms = {
        "csr matrix": sparse.csr_matrix(X),
        "csr array": sparse.csr_array(X),
        "mapped": np.load(tmp_path / "rows.npy", mmap_mode="r"),
        "fortran": np.asfortranarray(X),
        "single": X.astype(np.float32),
        "bytes": X.astype(np.int8),
        "list": X.tolist(),
    }
    for name, form in forms.items():
        machine = _cells(gamma=0.05, **parameters).fit(form, y)
        assert_array_equal(machine.cell_centers_, plain.cell_centers_)
        loose = {"rtol": 1e-6, "atol": 1e-6} if sparse.issparse(form) or name == "single" else {}
        loose = {"atol": 5e-3} if engine_of_cell == "span" and loose else loose
        assert_allclose(machine.decision_function(form), expected, **loose, err_msg=name)
        assert sparse.issparse(machine.support_vectors_) == sparse.issparse(form)


def test_sparse_rows_with_wide_indices():
    X, y = _moons(100)
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    machine = _cells(cells=CENTERS).fit(stored, y)
    assert_allclose(
        machine.decision_function(stored),
        _cells(cells=CENTERS).fit(X, y).decision_function(X),
        atol=1e-4,
    )


def test_a_small_memory_changes_nothing_but_blocks():
    X, y = _moons(1500)
    machine = _cells(cells=100).fit(X, y)
    small = _cells(cells=100, memory="200KB").fit(X, y)
    assert_array_equal(small.cell_centers_, machine.cell_centers_)
    assert_allclose(small.decision_function(X), machine.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("scale", [1e-100, 1e-10, 1e10, 1e100])
def test_scales(scale):
    X, y = _moons()
    parameters = {"gamma": "scale", "tol": 1e-10}
    machine = _cells(cells=scale * CENTERS, **parameters).fit(scale * X, y)
    plain = _cells(cells=CENTERS, **parameters).fit(X, y)
    assert_allclose(
        machine.decision_function(scale * X), plain.decision_function(X), rtol=1e-4, atol=1e-4
    )
    # Other rows have another hash, and so other cells.
    machine = _cells(**parameters).fit(scale * X, y)
    assert len(machine.cell_centers_) > 3
    assert machine.score(scale * X, y) > 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e100])
def test_values_beyond_single_precision_are_named(scale):
    X, y = _moons()
    with pytest.raises(ValueError, match="infinite or undefined values on this data: scale X"):
        _cells(gamma="scale").fit(scale * X, y)


def test_rows_far_from_everything_get_an_answer():
    X, y = _moons()
    machine = _cells().fit(X, y)
    values = machine.decision_function([[1e200, 0.0], [-1e300, 1e10], [1e20, -1e20]])
    assert np.isfinite(values).all()


def test_one_feature_and_constant_columns():
    X = np.random.default_rng(0).uniform(-3, 3, size=(300, 1))
    y = (np.sin(4 * X[:, 0]) > 0).astype(int)
    machine = _cells(gamma=10.0, C=10.0).fit(X, y)
    assert machine.score(X, y) > 0.95
    wide = np.column_stack([X, np.full(300, 1e6), np.zeros(300)])
    wider = _cells(gamma=10.0, C=10.0).fit(wide, y)
    assert len(wider.cell_centers_) == pytest.approx(len(machine.cell_centers_), abs=3)
    assert wider.score(wide, y) > 0.95


def test_labels_of_any_type_and_weights_of_classes():
    X, y = _three_classes()
    names = np.array(["κόκκινο", "синий", "緑"])
    machine = _cells().fit(X, names[y])
    assert_array_equal(machine.classes_, np.sort(names))
    assert machine.score(X, names[y]) > 0.85
    numbers = _cells().fit(X, np.argsort(np.argsort(names))[y])
    assert_array_equal(machine.decision_function(X), numbers.decision_function(X))
    factors = {0: 1.0, 1: 5.0, 2: 0.5}
    by_class = _cells(cells=CENTERS, class_weight=factors).fit(X, y)
    by_row = _cells(cells=CENTERS).fit(X, y, np.array([1.0, 5.0, 0.5])[y])
    assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))
    balanced = _cells(cells=CENTERS, class_weight="balanced").fit(X, y)
    expected = _cells(cells=CENTERS).fit(X, y, (len(y) / (3 * np.bincount(y)))[y])
    assert_allclose(balanced.decision_function(X), expected.decision_function(X), atol=1e-9)


def test_pickles_clones_and_parameters():
    X, y = _moons()
    machine = _cells(cells=CENTERS, blend=0.1).fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    assert_array_equal(again.decision_function(X), machine.decision_function(X))
    copy = clone(machine)
    assert_array_equal(copy.get_params()["cells"], CENTERS)
    assert (copy.get_params()["blend"], copy.get_params()["overlap"]) == (0.1, 0.3)
    assert_array_equal(copy.fit(X, y).decision_function(X), machine.decision_function(X))
    other = machine.set_params(engine="exact").fit(X, y)
    assert other.engine_ == "exact"
    for name in ("cell_centers_", "cell_offsets_", "cell_gamma_"):
        assert not hasattr(other, name)
    assert other.decision_function(X).shape == (300,)


def test_warm_starts_begin_anew_in_cells():
    X, y = _moons()
    machine = _cells(warm_start=True, tol=1e-8).fit(X, y)
    machine.set_params(C=5.0).fit(X, y)
    cold = _cells(C=5.0, tol=1e-8).fit(X, y)
    assert_array_equal(machine.decision_function(X), cold.decision_function(X))
    # And after cells, where rows are vectors of several.
    for engine in ("exact", "span"):
        warm = _cells(warm_start=True, tol=1e-8).fit(X, y).set_params(engine=engine).fit(X, y)
        cold = _cells(engine=engine, tol=1e-8).fit(X, y)
        assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"cells": "many"}, ValueError, "cells='many' is not known"),
        ({"cells": 1}, ValueError, "cells=1 must be at least 2"),
        ({"cells": 2.5}, TypeError, "cells=2.5"),
        ({"cells": None}, TypeError, "cells=None"),
        ({"cells": True}, TypeError, "cells=True"),
        ({"cells": [1.0, 2.0]}, ValueError, "cells must be"),
        ({"cells": [[1.0], [1.0, 2.0]]}, ValueError, "table of centres"),
        ({"cells": [[1.0, 2.0, 3.0]]}, ValueError, "centres of 2 features"),
        ({"cells": [[np.inf, 2.0]]}, ValueError, "not finite"),
        ({"overlap": -0.1}, ValueError, "overlap=-0.1 must not be negative"),
        ({"overlap": np.nan}, ValueError, "overlap=nan"),
        ({"overlap": "some"}, TypeError, "overlap='some' must be a number"),
        ({"blend": -1}, ValueError, "blend=-1 must not be negative"),
        ({"blend": np.inf}, ValueError, "blend=inf"),
        ({"blend": None}, TypeError, "blend=None must be a number"),
        ({"engine": "cell"}, ValueError, "engine='cell' is not known"),
        ({"kernel": "precomputed"}, ValueError, "kernel='precomputed'.*engine='span'"),
    ],
)
@pytest.mark.parametrize("search", [False, True], ids=["fit", "search"])
def test_parameters_that_are_wrong_are_named(parameters, error, message, search):
    X, y = _moons(40)
    if search:
        machine = MarginClassifierCV([1.0], [1.0], **{"engine": "cells"} | parameters)
    else:
        machine = _cells(**parameters)
    with pytest.raises(error, match=message):
        machine.fit(X, y)


# Limits, interrupts, progress.


@pytest.mark.parametrize("limit", [{"max_time": 1e-9}, {"max_iter": 1}])
def test_a_fit_without_time_is_a_valid_model(limit):
    X, y = _three_classes()
    with pytest.warns(ConvergenceWarning, match="reached"):
        machine = _cells(**limit).fit(X, y)
    assert machine.certificate_.n_vectors == 0
    assert machine.certificate_.dual <= machine.certificate_.primal
    assert machine.certificate_.gap > 0.5
    # Better than one constant for all rows.
    assert machine.score(X, y) > np.bincount(y).max() / len(y) + 0.1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_the_cells_that_were_done(n_jobs, monkeypatch):
    X, y = _moons(1200, 0.3)
    whole = _cells(cells=15, overlap=0.0).fit(X, y)
    n_cells = len(whole.cell_centers_)
    assert n_cells > 64
    fitted, exact = [], in_cells.exact_machine

    def interrupted(*arguments):
        fitted.append(None)
        if len(fitted) == 70:
            raise KeyboardInterrupt
        return exact(*arguments)

    monkeypatch.setattr(in_cells, "exact_machine", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = _cells(cells=15, overlap=0.0, n_jobs=n_jobs).fit(X, y)
    assert 70 <= len(fitted) <= 75
    sizes = np.bincount(_own(X, whole.cell_centers_))
    done = sorted(range(n_cells), key=lambda c: (-sizes[c], c))[:64]
    for cell in range(n_cells):
        parts = [
            (m.intercept_[cell], m.dual_coef_[:, m.cell_offsets_[cell] : m.cell_offsets_[cell + 1]])
            for m in (machine, whole)
        ]
        if cell in done:
            assert_array_equal(parts[0][0], parts[1][0])
            assert_array_equal(parts[0][1], parts[1][1])
        else:
            assert parts[0][1].size == 0
    assert machine.score(X, y) > 0.8


def test_an_interrupt_inside_the_machine_of_a_cell_ends_the_fit(monkeypatch):
    X, y = _moons(600)
    steps, step = [], SpanFit.step

    def interrupted(self, state):
        steps.append(None)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(SpanFit, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = _cells(cells=100, max_vectors=40).fit(X, y)
    assert len(steps) == 3
    assert np.isfinite(machine.decision_function(X)).all()


@pytest.mark.parametrize("where", ["span", "cells"])
def test_an_interrupt_while_the_engine_is_chosen_ends_the_fit(where, quickly, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    if where == "span":
        monkeypatch.setattr(SpanFit, "step", interrupted)
    else:
        monkeypatch.setattr(in_cells, "exact_machine", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MarginClassifier(gamma=60.0, random_state=0, n_jobs=1).fit(*_board(800))


def test_progress_is_told_in_cells_too(capsys):
    X, y = _moons(1200)
    machine = _cells(cells=15, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == machine.n_iter_ >= 3
    assert all(line.startswith("[MarginClassifier] step ") for line in lines)
    assert "(cells)" in lines[-1]
    assert f"{machine.certificate_.n_vectors:,} vectors" in lines[-1]


# The choice of an engine.


@pytest.fixture
def quickly(monkeypatch):
    """As if 500 rows were many, and 100 vectors a lot."""
    for name, value in {
        "_EXACT_ROWS": 300,
        "_MOST_EXACT_ROWS": 400,
        "_LEAST_CUT_ROWS": 500,
        "_LEARN": 600,
        "_JUDGE": 600,
        "_VECTORS": 40,
        "_SMALL": 40,
        "SIZES": (60, 200),
    }.items():
        monkeypatch.setattr(engines, name, value)


def _said(machine):
    named = re.search(
        r"\(engine: on held-out rows of a sample (\S+) % in a span, (\S+) % in cells\)$",
        machine.certificate_.stopped,
    )
    return float(named[1]), float(named[2])


def test_auto_takes_cells_where_a_span_cannot_hold_the_boundary(quickly):
    X, y = _board(2400)
    machine = MarginClassifier(C=10.0, gamma=60.0, random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "cells"
    assert machine.certificate_.scope == "cells"
    span, cells = _said(machine)
    assert cells > span + 5
    assert len(machine.cell_centers_) == pytest.approx(2400 / 60, rel=0.5)
    given = MarginClassifier(
        C=10.0, gamma=60.0, random_state=0, cells=[[0.25, 0.5], [0.75, 0.5]], n_jobs=1
    )
    assert_array_equal(given.fit(X, y).cell_centers_, [[0.25, 0.5], [0.75, 0.5]])


def _plane(n=1500, n_features=30):
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X.sum(axis=1) > 0).astype(int)


def test_auto_takes_a_span_where_cells_are_too_small_to_see_the_boundary(quickly):
    X, y = _plane()
    machine = MarginClassifier(kernel="linear", random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "span"
    span, cells = _said(machine)
    assert span > cells + 5
    assert not hasattr(machine, "cell_centers_")
    forced = MarginClassifier(kernel="linear", random_state=0, n_jobs=1, engine="span").fit(X, y)
    assert_array_equal(machine.decision_function(X), forced.decision_function(X))


def test_the_choice_learns_from_a_quarter_of_the_rows_at_most(quickly, monkeypatch):
    trials, accuracy = [], engines.Trial.of_cells

    def noting(trial, *arguments):
        trials.append(trial)
        return accuracy(trial, *arguments)

    monkeypatch.setattr(engines.Trial, "of_cells", noting)
    X, y = _board(4000)
    for n in (1000, 4000):
        MarginClassifier(gamma=60.0, random_state=0, n_jobs=1).fit(X[:n], y[:n])
    assert [(trial.learn.n, trial.judge.n) for trial in trials] == [(250, 600), (600, 600)]
    for trial in trials:
        assert not set(trial.learn.number) & set(trial.judge.number)


def test_auto_does_not_ask_where_a_user_has_decided_or_rows_are_few(quickly):
    X, y = _board(2400)
    for parameters in ({"max_vectors": 30}, {"vectors": X[:20]}, {"engine": "span"}):
        machine = MarginClassifier(gamma=60.0, random_state=0, **parameters).fit(X, y)
        assert machine.engine_ == "span"
        assert "held-out" not in machine.certificate_.stopped
    small = MarginClassifier(gamma=60.0, random_state=0).fit(X[:250], y[:250])
    exact = MarginClassifier(gamma=60.0, random_state=0, engine="exact").fit(X[:250], y[:250])
    assert small.engine_ == "exact"
    assert "held-out" not in small.certificate_.stopped
    assert_array_equal(small.decision_function(X), exact.decision_function(X))


def test_auto_is_not_confused_by_a_class_that_the_sample_does_not_hold(quickly):
    X, y = _board(2400)
    y[:2] = 2
    X[:2] += 5.0
    machine = MarginClassifier(C=10.0, gamma=60.0, random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "cells"
    assert_array_equal(machine.predict(X[:2]), [2, 2])


def test_the_size_of_cells_is_chosen_on_held_out_rows(quickly):
    small = _cells(cells="auto").fit(*_moons(2400))
    X, y = _plane()
    large = _cells(cells="auto", kernel="linear").fit(X, y)
    for machine, n in ((small, 2400), (large, 1500)):
        named = re.search(
            r"held-out rows of a sample (\S+) % in cells of 60, (\S+) % in cells of 200\)$",
            machine.certificate_.stopped,
        )
        size = 60 if machine is small else 200
        assert (float(named[2]) >= float(named[1]) + 0.5) == (size == 200)
        assert n / size / 2 <= len(machine.cell_centers_) <= 3 * n / size


def test_few_rows_are_one_cell_where_the_size_is_left_to_it():
    X, y = _moons(30)
    machine = _cells(cells="auto", tol=1e-10).fit(X, y)
    assert len(machine.cell_centers_) == 1
    exact = _cells(engine="exact", tol=1e-10).fit(X, y)
    assert_allclose(machine.decision_function(X), exact.decision_function(X), atol=1e-10)
    two = _cells(cells="auto").fit([[0.0], [1.0]], [0, 1])
    assert_array_equal(two.predict([[0.0], [1.0]]), [0, 1])


# Cross-validation in cells.

CS = [0.1, 1.0, 20.0]


class _Recorder:
    """A score that keeps the decision values it is asked to judge."""

    def __init__(self):
        self.seen = []

    def __call__(self, estimator, X, y):
        self.seen.append(estimator.decision_function(X))
        return np.mean(estimator.predict(X) == y)


def _search(Cs=CS, gammas=(0.5, 5.0), **parameters):
    defaults = {
        "engine": "cells",
        "cells": CENTERS,
        "cv": StratifiedKFold(3, shuffle=True, random_state=0),
        "random_state": 0,
        "n_jobs": 1,
    }
    return MarginClassifierCV(Cs, gammas, **defaults | parameters)


@every_data
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_a_search_are_those_of_fits_to_the_other_rows(data, weighted, monkeypatch):
    monkeypatch.setattr("widemargin.svm.grid._CELLS_TOL", 1e-11)
    X, y = DATA[data]()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y)) if weighted else np.ones(300)
    recorder = _Recorder()
    search = _search(overlap=0.0, scoring=recorder).fit(X, y, weight)
    plain = _search(overlap=0.0).fit(X, y, weight)
    seen = iter(recorder.seen)
    splits = list(search.cv.split(X, y))
    scores = np.empty((2, 3, 3))
    for g, gamma in enumerate((0.5, 5.0)):
        for c, C in enumerate(CS):
            for k, (train, test) in enumerate(splits):
                machine = _cells(
                    cells=CENTERS, overlap=0.0, blend=0.0, C=C, gamma=gamma, tol=1e-11
                ).fit(X[train], y[train], weight[train])
                expected = machine.decision_function(X[test])
                assert_allclose(next(seen), expected, atol=1e-4 * np.abs(expected).max())
                scores[g, c, k] = machine.score(X[test], y[test], weight[test])
    flat = scores.swapaxes(0, 1).reshape(6, 3)
    for k in range(3):
        assert_allclose(plain.cv_results_[f"split{k}_test_score"], flat[:, k], atol=1.5 / 100)
    best = plain.cv_results_["mean_test_score"].argmax()
    assert plain.best_params_ == plain.cv_results_["params"][best]
    assert plain.best_score_ >= flat.mean(axis=1).max() - 0.01
    final = _cells(cells=CENTERS, overlap=0.0, **plain.best_params_).fit(X, y, weight)
    assert_array_equal(plain.decision_function(X), final.decision_function(X))
    assert plain.certificate_.scope == "cells"


def test_a_search_in_cells_by_size_finds_a_good_pair():
    X, y = _board(1200)
    search = _search([0.1, 10.0], [0.5, 60.0], cells=100).fit(X[:900], y[:900])
    assert search.best_params_ == {"C": 10.0, "gamma": 60.0}
    assert search.score(X[900:], y[900:]) == pytest.approx(search.best_score_, abs=0.06)
    for n_jobs in (2, 3):
        other = _search([0.1, 10.0], [0.5, 60.0], cells=100, n_jobs=n_jobs).fit(X[:900], y[:900])
        for name, values in search.cv_results_.items():
            if name.endswith("score"):
                assert_array_equal(other.cv_results_[name], values)


def _two_halves(n=600):
    """A chessboard on the left, a noisy line on the right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    fine = (np.floor(5 * X).sum(axis=1) % 2).astype(int)
    line = (X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X + np.where(X[:, :1] < 0, [-5.0, 0.0], [5.0, 0.0]), np.where(X[:, 0] < 0, fine, line)


HALVES = np.array([[-5.5, 0.0], [5.5, 0.0]])


def test_every_cell_gets_the_pair_that_is_best_for_it(monkeypatch):
    pairs, best = [], CellChoices.best

    def noting(self, *scores):
        pairs.extend(zip(*best(self, *scores), strict=True))
        return best(self, *scores)

    monkeypatch.setattr(CellChoices, "best", noting)
    X, y = _two_halves()
    grid = {"Cs": [0.1, 10.0], "gammas": [0.2, 30.0]}
    search = _search(**grid, cells=HALVES, per_cell=True, overlap=0.0, tol=1e-10).fit(X, y)
    machine = search.best_estimator_
    assert_array_equal(machine.cell_gamma_, [30.0, 0.2])
    decision = search.decision_function(X)
    splits = list(search.cv.split(X, y))
    for side, pair in zip((X[:, 0] < 0, X[:, 0] > 0), pairs, strict=True):
        hand = MarginClassifier(engine="exact", tol=1e-10, gamma=pair[0], C=pair[1])
        hand.fit(X[side], y[side])
        assert_allclose(decision[side], hand.decision_function(X[side]), atol=1e-4)
        # No other pair answers more of the rows of this cell right when they are held out.
        right = {}
        for gamma in grid["gammas"]:
            for C in grid["Cs"]:
                other = MarginClassifier(C, engine="exact", gamma=gamma)
                right[gamma, C] = sum(
                    other.fit(X[train][side[train]], y[train][side[train]]).score(
                        X[test][side[test]], y[test][side[test]]
                    )
                    * side[test].sum()
                    for train, test in splits
                )
        assert right[pair] >= max(right.values()) - 2
    shared = _search(**grid, cells=HALVES, overlap=0.0).fit(X, y)
    assert not hasattr(shared.best_estimator_, "cell_gamma_")
    assert search.score(X, y) != shared.score(X, y)
    # A machine of its own, that can be fitted anew.
    again = machine.set_params(cells=40).fit(X, y)
    assert not hasattr(again, "cell_gamma_")


def test_a_pair_of_its_own_also_where_a_cell_is_not_exact(monkeypatch):
    X, y = _two_halves()
    grid = {"Cs": [0.1, 10.0], "gammas": [0.2, 30.0]}
    exact = _search(**grid, cells=HALVES, per_cell=True, overlap=0.0, tol=1e-8).fit(X, y)
    # After the search, that cells are too large for a matrix.
    best = CellChoices.best

    def large_from_now_on(self, *scores):
        monkeypatch.setattr(in_cells, "MATRIX_ROWS", 10)
        return best(self, *scores)

    monkeypatch.setattr(CellChoices, "best", large_from_now_on)
    search = _search(**grid, cells=HALVES, per_cell=True, overlap=0.0, tol=1e-8).fit(X, y)
    assert_array_equal(search.best_estimator_.cell_gamma_, [30.0, 0.2])
    assert len(search.best_estimator_.cell_C_) == 2
    assert_allclose(search.decision_function(X), exact.decision_function(X), atol=1e-3)
    assert search.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-6)


def test_a_pair_of_its_own_also_in_the_span_of_fewer_vectors(monkeypatch):
    gammas, Cs = np.array([5.0, 0.2]), np.array([50.0, 0.1])
    monkeypatch.setattr(CellChoices, "best", lambda self, *_: (gammas, Cs))
    X, y = _two_halves()
    search = _search([1.0], [1.0], cells=HALVES, per_cell=True, overlap=0.0, max_vectors=60)
    machine = search.fit(X, y).best_estimator_
    assert len(machine.support_vectors_) <= 60
    total = 0.0
    for cell, side in enumerate((X[:, 0] < 0, X[:, 0] > 0)):
        own = slice(machine.cell_offsets_[cell], machine.cell_offsets_[cell + 1])
        Z, beta = machine.support_vectors_[own], machine.dual_coef_[0, own]
        b = machine.intercept_[cell, 0]
        f = rbf_kernel(X[side], Z, gamma=gammas[cell]) @ beta + b
        slack = np.maximum(0.0, 1.0 - (2 * y[side] - 1) * f)
        w2 = beta @ rbf_kernel(Z, gamma=gammas[cell]) @ beta
        total += 0.5 * (w2 + b * b) + Cs[cell] * slack @ slack
        assert_allclose(machine.decision_function(X[side]), f, atol=1e-8)
    assert_allclose(machine.certificate_.primal, total, rtol=1e-6)
    exact = [
        MarginClassifier(C, gamma=gamma, engine="exact", tol=1e-8).fit(X[side], y[side])
        for gamma, C, side in zip(gammas, Cs, (X[:, 0] < 0, X[:, 0] > 0), strict=True)
    ]
    optimum = sum(m.certificate_.dual for m in exact)
    assert machine.certificate_.full_dual <= optimum <= machine.certificate_.primal


def test_the_choice_for_a_cell_does_not_depend_on_the_unit_of_weights():
    X, y = _two_halves()
    plain = _search([0.1, 10.0], [0.2, 30.0], cells=30, per_cell=True).fit(X, y)
    light = _search([1e2, 1e4], [0.2, 30.0], cells=30, per_cell=True)
    light.fit(X, y, np.full(len(y), 1e-3))
    assert len(set(plain.best_estimator_.cell_gamma_)) == 2
    assert_array_equal(plain.best_estimator_.cell_gamma_, light.best_estimator_.cell_gamma_)


def test_searches_can_be_kept_and_copied():
    X, y = _two_halves()
    search = _search([1.0, 10.0], [0.2, 30.0], cells=HALVES, per_cell=True).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(X), search.decision_function(X))
    copy = clone(search)
    assert copy.get_params()["per_cell"] is True
    assert_array_equal(copy.fit(X, y).decision_function(X), search.decision_function(X))
    sparse_search = clone(search).fit(sparse.csr_array(X), y)
    assert_array_equal(sparse_search.best_estimator_.cell_gamma_, [30.0, 0.2])


def test_a_search_says_which_cells_are_too_large_for_it(monkeypatch):
    X, y = _moons()
    monkeypatch.setattr(folds_in_cells, "MATRIX_ROWS", 50)
    with pytest.raises(ValueError, match=r"A cell has .* rows.*cells of at most 50 rows"):
        _search().fit(X, y)


# Whether the time is enough for the final fit is not sure.
@pytest.mark.filterwarnings("ignore:MarginClassifier stopped before its rule was met")
@pytest.mark.parametrize("per_cell", [False, True])
def test_a_search_without_time_is_a_valid_model(per_cell, monkeypatch):
    X, y = _three_classes(600)
    asked, scores = [], folds_in_cells._cell_values

    def noting(points, members, *arguments):
        asked.append(len(members))
        return scores(points, members, *arguments)

    monkeypatch.setattr(folds_in_cells, "_cell_values", noting)
    search = _search(cells=8, max_time=1e-6, per_cell=per_cell).fit(X, y)
    assert 2 <= len(asked) < len(search.best_estimator_.cell_centers_)
    assert search.best_params_ in search.cv_results_["params"]
    assert set(search.predict(X)) <= {0, 1, 2}


def test_words_for_gamma_and_balanced_classes_work_in_a_search():
    X, y = _three_classes()
    search = _search(gammas=["scale", "mean_distance"], class_weight="balanced", per_cell=True)
    search.fit(X, y)
    assert search.score(X, y) > 0.85
    widths = [_cells(gamma=word).fit(X, y).gamma_ for word in ("scale", "mean_distance")]
    for width in search.best_estimator_.cell_gamma_:
        assert np.isclose(width, widths, rtol=1e-9).any()


# The time that a user allows.


class _Clock:
    """A clock that moves only when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in ("deadline", "loop", "cells.partition"):
            monkeypatch.setattr(f"widemargin.{module}.perf_counter", lambda: self.now)
        self.patch = monkeypatch

    def costs(self, owner, name, seconds):
        """Let every call take so many seconds; return the list of calls."""
        calls, original = [], getattr(owner, name)

        def call(*arguments, **named):
            calls.append(arguments)
            self.now += seconds
            return original(*arguments, **named)

        self.patch.setattr(owner, name, call)
        return calls


@pytest.fixture
def clock(monkeypatch):
    return _Clock(monkeypatch)


@pytest.fixture
def limits(monkeypatch):
    """The seconds that are left for the loop each time that one is run."""
    given = []

    def run(solver, limits, *arguments):
        given.append(limits.deadline.left())
        return loop.run(solver, limits, *arguments)

    for module in (ball, cell_classifier, engines, margin):
        monkeypatch.setattr(module, "run", run)
    return given


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_looking_for_equal_rows_counts(engine, clock, limits):
    clock.costs(labelled, "distinct_rows", 4.0)
    _cells(engine=engine, max_time=100.0).fit(*_moons())
    assert limits == [96.0]


def test_the_partition_counts_and_leaves_time_for_machines(clock, limits):
    X, y = _board(1200)
    steps = clock.costs(partition, "_moved", 1.0)
    whole = _cells(cells=40).fit(X, y)
    assert len(steps) > 4
    assert limits == [None]
    steps.clear(), limits.clear()
    assigned = clock.costs(Partition, "nearest", 2.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=8 reached\)"):
        # Two steps are a quarter of the time; a cell takes a second, and four are left.
        fitted = clock.costs(in_cells, "exact_machine", 1.0)
        machine = _cells(cells=40, max_time=8.0).fit(X, y)
    assert (len(steps), len(assigned), len(fitted)) == (2, 1, 4)
    assert limits == [4.0]
    assert 0.5 < machine.certificate_.gap < 1.0
    assert machine.certificate_.dual <= whole.certificate_.primal
    # The smallest, of which the last was given up, and some may have one class only.
    done = np.flatnonzero(np.diff(machine.cell_offsets_))
    assert 1 <= len(done) <= 3
    sizes = np.array([len(m) for m in reference.members(X, machine.cell_centers_, 0.3)])
    assert sizes[done].max() <= np.sort(sizes)[3]
    # The rest are constants: better than one for all rows.
    assert 0.55 < machine.score(X, y) < whole.score(X, y)


def test_there_are_no_more_cells_than_rows_can_be_assigned_to_in_time(clock):
    X, _ = _board(4000)
    # To compare 1,000 rows of the sample with 200 centres: 8 s, and 64 s for all rows.
    nearest = partition._nearest_centers

    def slow(points, centers, count):
        clock.now += 4e-5 * len(points) * len(centers)
        return nearest(points, centers, count)

    clock.patch.setattr(partition, "_nearest_centers", slow)
    clock.patch.setattr(partition, "_CHUNK", 1000)
    rows = as_rows(X, memory=10**9, threads=1)
    found = {}
    for seconds in (1e-3, 108.0, 1e6):
        found[seconds] = partition_by_kmeans(rows, 20, 1, Deadline.after(seconds))
        own = found[seconds].nearest(rows).cell
        assert len(np.unique(own)) == found[seconds].n_cells
    # A quarter of 100 s are 25, for 64 with all centres.
    assert found[108.0].n_cells == pytest.approx(200 * 25 / 64, rel=0.3)
    assert found[1e-3].n_cells == 16
    unlimited = partition_by_kmeans(rows, 20, 1)
    assert_array_equal(found[1e6].centers, unlimited.centers)


@pytest.mark.parametrize("slow", ["cells", "span"])
def test_where_there_is_no_time_to_choose_it_is_a_span(slow, quickly, clock, limits):
    X, y = _board(2400)
    if slow == "cells":
        calls = clock.costs(in_cells, "exact_machine", 3.0)
    else:
        calls = clock.costs(SpanFit, "step", 3.0)
    with (
        pytest.warns(ConvergenceWarning, match="max_time=20 reached")
        if slow == "span"
        else (contextlib.nullcontext())
    ):
        machine = MarginClassifier(gamma=60.0, random_state=0, n_jobs=1, max_time=20.0).fit(X, y)
    assert machine.engine_ == "span"
    assert machine.certificate_.stopped.endswith("(engine: no time to compare it with cells)")
    # The trial has a quarter of the time, and the fit what is left.
    if slow == "cells":
        assert len(calls) == 2
    assert limits[0] == 5.0
    assert limits[-1] == 14.0
    assert set(machine.predict(X)) <= {0, 1}


def test_where_there_is_no_time_to_try_sizes_it_is_the_smallest(quickly, clock, limits):
    clock.costs(in_cells, "exact_machine", 1.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=16 reached \(engine: no time to try"):
        machine = _cells(cells="auto", max_time=16.0).fit(*_moons(2400))
    assert limits == [4.0, 12.0]
    assert len(machine.cell_centers_) == pytest.approx(2400 / 60, rel=0.5)
    assert np.count_nonzero(np.diff(machine.cell_offsets_)) <= 12


def test_the_machine_of_a_cell_that_is_not_exact_has_what_is_left(clock, monkeypatch):
    X, y = _moons(600)
    monkeypatch.setattr(in_cells, "MATRIX_ROWS", 10)
    monkeypatch.setattr(engines, "_EXACT_ROWS", 10)
    monkeypatch.setattr(engines, "_MOST_EXACT_ROWS", 10)
    steps = clock.costs(SpanFit, "step", 1.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=5 reached"):
        machine = _cells(cells=[[0.0, 0.0], [1.0, 0.0]], max_time=5.0, tol=1e-9).fit(X, y)
    assert len(steps) == 5
    assert machine.certificate_.gap > 0
    assert machine.score(X, y) > 0.4
    steps.clear()
    with pytest.warns(ConvergenceWarning, match=r"max_time=3 reached, 1 cells"):
        _cells(cells=[[0.0, 0.0]], max_time=3.0, tol=1e-9).fit(X, y)
    assert len(steps) == 3


def test_many_classes_in_a_cell_stop_in_between(clock):
    X, y = _moons(600)
    y = np.arange(600) % 20
    solved = clock.costs(cell_machine, "solve_margin_dual", 1.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=30 reached"):
        machine = _cells(cells=[[0.0, 0.0], [1.0, 0.0]], max_time=30.0).fit(X, y)
    assert len(solved) == 30
    # All of the first cell, and nothing of the second.
    assert np.count_nonzero(np.diff(machine.cell_offsets_)) == 1


def test_the_partition_counts_in_a_search_too(clock, limits):
    X, y = _board(1200)
    moves = clock.costs(partition, "_moved", 1.0)
    cells = clock.costs(folds_in_cells, "_cell_values", 1.0)
    fits = clock.costs(in_cells, "exact_machine", 1.0)
    search = _search([1.0, 10.0], [5.0, 60.0], cells=40, max_time=60.0)
    with pytest.warns(ConvergenceWarning, match="max_time=20 reached"):
        search.fit(X, y)
    # A third of the time for each width, with the cells of the first, and for the final fit.
    first = [points.kernel.gamma == 5.0 for points, *_ in cells]
    assert 15 <= sum(first) < 20
    assert len(cells) - sum(first) == 20
    assert len(fits) == limits[0] < 20
    assert len(moves) + len(cells) + len(fits) == 60
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_cells_of_a_search_are_the_same_for_all_widths_where_time_is_short(clock):
    X, y = _board(1200)
    moves = clock.costs(partition, "_moved", 1.0)
    search = _search([1.0], [5.0, 60.0], cells=40, max_time=12.0, per_cell=True).fit(X, y)
    assert len(moves) == 1
    assert len(search.best_estimator_.cell_gamma_) == len(search.best_estimator_.cell_centers_)


# The memory of a search, and its score in each cell.


def _many_classes(n=900, n_classes=30):
    y = np.arange(n) % n_classes
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X + 8.0 * np.stack([y % 6, y // 6], axis=1), y


def test_a_search_keeps_to_its_memory_budget(monkeypatch):
    X, y = _many_classes()
    Cs = np.logspace(-1, 1, 8)
    # The final fit has a budget of its own.
    monkeypatch.setattr(MarginClassifier, "fit", _predicts_nothing)
    peaks, found = [], []
    for memory in ("1GB", "1MB"):
        search = _search(Cs, [0.5], cells=20, memory=memory, overlap=0.0)
        tracemalloc.start()
        search.fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        found.append(search.cv_results_["mean_test_score"])
    # All decision values of rows that are held out are more than that.
    values = 8 * len(y) * 30 * len(Cs)
    assert peaks[1] < 1e6 < values < peaks[0]
    assert_allclose(*found, atol=2 / 900)


def _predicts_nothing(self, X, y, weight=None):
    self.classes_, self.certificate_, self.n_iter_ = np.unique(y), None, 1
    return self


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (10**9, [([0, 1, 2], [0, 1, 2, 3, 4])]),
        # A quarter of it is for 12, 7, 2 or no pairs of a fold and a C.
        (4 * 8 * 12 * 100 * 3, [([0, 1], [0, 1, 2, 3, 4]), ([2], [0, 1, 2, 3, 4])]),
        (4 * 8 * 7 * 100 * 3, [([k], [0, 1, 2, 3, 4]) for k in range(3)]),
        (4 * 8 * 2 * 100 * 3, [([k], Cs) for k in range(3) for Cs in ([0, 1], [2, 3], [4])]),
        (1, [([k], [c]) for k in range(3) for c in range(5)]),
    ],
)
def test_batches_are_of_folds_first(memory, expected):
    X, y = _three_classes(300)
    splits = list(StratifiedKFold(3).split(X, y))
    folds = Folds(splits, np.ones(300))
    points = MarginClassifier()._points(X, y, None, 1, folds.kind)
    assert list(folds_in_cells.batches(points, 5, folds, memory)) == expected


def test_large_cells_are_searched_one_at_a_time_where_memory_is_little(monkeypatch):
    asked, ordered_map = [], folds_in_cells.ordered_map

    def noting(function, items, threads):
        asked.append(threads)
        return ordered_map(function, items, threads)

    monkeypatch.setattr(folds_in_cells, "ordered_map", noting)
    X, y = _moons(300)
    for memory in ("1GB", "1MB"):
        _search([1.0], [0.5], cells=HALVES, overlap=0.0, memory=memory, n_jobs=4).fit(X, y)
    assert asked == [4, 1]


def _rare(n=500):
    """Few rows of the second class, among many on the left and beside them on the right."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(n, 2))
    share = np.where(X[:, 1] > 0.4, 0.4, 0.05)
    y = (rng.uniform(size=n) < share).astype(int)
    return X + np.where(X[:, :1] < 0, [-5.0, 0.0], [5.0, 0.0]), y


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc"])
def test_every_cell_gets_the_pair_that_its_score_likes_best(scoring, monkeypatch):
    monkeypatch.setattr(grid, "_CELLS_TOL", 1e-9)
    X, y = _rare()
    Cs, gammas = [0.01, 10.0], [0.1, 30.0]
    search = _search(Cs, gammas, cells=HALVES, per_cell=True, overlap=0.0, scoring=scoring)
    machine = search.fit(X, y).best_estimator_
    score, splits = get_scorer(scoring), list(search.cv.split(X, y))
    for cell, side in enumerate((X[:, 0] < 0, X[:, 0] > 0)):
        by_hand = {}
        for gamma in gammas:
            for C in Cs:
                found, rows = [], []
                for train, test in splits:
                    train, test = train[side[train]], test[side[test]]
                    hand = MarginClassifier(C, gamma=gamma, engine="exact", tol=1e-9)
                    found.append(score(hand.fit(X[train], y[train]), X[test], y[test]))
                    rows.append(len(test))
                by_hand[gamma, C] = np.average(found, weights=rows)
        chosen = machine.cell_gamma_[cell], machine.cell_C_[cell]
        assert by_hand[chosen] == pytest.approx(max(by_hand.values()), abs=1e-3)


def test_a_score_of_cells_is_not_the_accuracy():
    X, y = _rare()
    grid_of = {"Cs": [0.01, 1.0, 100.0], "gammas": [0.1, 30.0], "cells": HALVES, "per_cell": True}
    plain = _search(**grid_of).fit(X, y)
    other = _search(**grid_of, scoring="balanced_accuracy").fit(X, y)
    pairs = [(m.best_estimator_.cell_gamma_, m.best_estimator_.cell_C_) for m in (plain, other)]
    assert not np.array_equal(*pairs)


def test_a_cell_of_one_class_gets_the_pair_that_is_best_everywhere():
    X, y = _two_halves()
    y[X[:, 0] > 0] = 0
    search = _search([0.1, 10.0], [0.2, 30.0], cells=HALVES, per_cell=True, scoring="roc_auc")
    machine = search.fit(X, y).best_estimator_
    best = search.best_params_
    assert (machine.cell_gamma_[1], machine.cell_C_[1]) == (best["gamma"], best["C"])


def test_a_score_that_cells_cannot_have_is_named():
    def all_classes(estimator, X, y):
        if len(set(y)) < 3:
            raise ValueError("There must be three classes.")
        return 0.5

    X, y = _three_classes()
    with pytest.raises(ValueError, match=r"per_cell=True .*scoring=.*There must be three classes"):
        _search(per_cell=True, scoring=all_classes).fit(X, y)
    assert _search(scoring=all_classes).fit(X, y).best_score_ == 0.5


def test_a_search_fits_the_size_of_cells_that_it_scored():
    X, y = _board(1200)
    search = _search([1.0], [60.0], cells="auto").fit(X, y)
    assert search.best_estimator_.cells == 300
    assert "held-out" not in search.certificate_.stopped
