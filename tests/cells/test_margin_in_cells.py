"""`MarginClassifier(engine="cells")` against machines fitted by hand, oracles and theorems."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference import cells as reference
from tests.reference.cell_data import (
    AGAINST_REST,
    CENTERS,
    DATA,
    WAYS,
    board,
    in_cells_of,
    machines_by_hand,
    own_cell,
    three_classes,
    two_classes,
)
from tests.reference.classifier_ways import sized
from tests.reference.svm import dual_value, l2svm_dual_exact, signed_kernel
from widemargin import MarginClassifierCV
from widemargin.cells import ExactSizes, Partition, cell_engine
from widemargin.rows import as_rows
from widemargin.span import SpanFit

every_data = pytest.mark.parametrize("data", DATA)
every_way = pytest.mark.parametrize("way", WAYS)


def _columns(decision):
    return decision[:, None] if decision.ndim == 1 else decision


# What it equals.


@every_way
@pytest.mark.parametrize("engine", ["exact", "span"])
@pytest.mark.parametrize("cells", [10_000, [[3.0, 4.0]]], ids=["by size", "given"])
def test_one_cell_is_no_cells(way, engine, cells):
    # As if there were many rows, for a span.
    kind = sized(exact_sizes=ExactSizes(always=10 if engine == "span" else 600, work=0.0))
    data, classes = WAYS[way]
    X, y = data(600)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=600)
    whole = in_cells_of(engine=engine, **classes).fit(X, y, weight)
    cut = in_cells_of(kind, cells=cells, **classes).fit(X, y, weight)
    assert (whole.engine_, cut.engine_) == (engine, "cells")
    assert_allclose(cut.decision_function(X), whole.decision_function(X), rtol=0, atol=1e-10)
    # Exact machines of pairs have their vectors class after class.
    order, other = np.argsort(cut.support_), np.argsort(whole.support_)
    assert_array_equal(cut.support_[order], whole.support_[other])
    assert_allclose(cut.dual_coef_[:, order], whole.dual_coef_[:, other], atol=1e-10)
    assert_allclose(cut.intercept_, whole.intercept_[None], atol=1e-10)
    # Exact machines add to their gap what rounding may hide of it; cells say how far the sums of
    # their primal and dual values are apart.
    assert 0.0 <= cut.certificate_.gap <= whole.certificate_.gap + 1e-12
    assert whole.certificate_.gap <= (1e-3 if engine == "exact" else 1.0)
    for name in ("primal", "dual", "full_dual", "n_kernel", "n_vectors"):
        mine, theirs = (getattr(m.certificate_, name) for m in (cut, whole))
        assert mine == theirs or mine == pytest.approx(theirs, rel=1e-10)


@every_way
@pytest.mark.parametrize("weighted", [False, True])
def test_given_cells_are_independent_machines(way, weighted):
    data, classes = WAYS[way]
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y)) if weighted else None
    machine = in_cells_of(cells=CENTERS, overlap=0.0, blend=0.0, C=5.0, tol=1e-11, **classes)
    machine.fit(X, y, weight)
    assert_array_equal(machine.cell_centers_, CENTERS)
    new = 1.5 * np.random.default_rng(1).normal(size=(400, 2))
    hands = machines_by_hand(X, y, CENTERS, weight, C=5.0, **classes)
    own = own_cell(new, CENTERS)
    decision = _columns(machine.decision_function(new))
    for cell, hand in enumerate(hands):
        assert np.count_nonzero(own == cell) > 5
        assert_allclose(decision[own == cell], hand(new[own == cell]), atol=1e-6)


@every_way
def test_overlap_and_blend_are_what_they_are_said_to_be(way):
    data, classes = WAYS[way]
    X, y = data()
    machine = in_cells_of(cells=CENTERS, overlap=0.4, blend=0.3, tol=1e-12, **classes).fit(X, y)
    new = np.random.default_rng(1).normal(0.5, 1.0, size=(200, 2))
    hands = machines_by_hand(X, y, CENTERS, overlap=0.4, **classes)
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
    X, y = three_classes()
    parameters = {"gamma": 0.5} | kernel | AGAINST_REST
    machine = in_cells_of(cells=CENTERS, overlap=0.0, blend=0.0, tol=1e-12, **parameters).fit(X, y)
    hands = machines_by_hand(X, y, CENTERS, **parameters)
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
    # A gap of 1e-12 is less than half of what rounding may hide at this C.
    machine = in_cells_of(
        cells=centers, overlap=0.0, blend=0.0, C=10.0, tol=2e-12, **AGAINST_REST
    ).fit(X, y)
    assert_array_equal(machine.classes_, [0, 1, 3, 7])
    filled = centers[[0, 3, 2, 1]][np.lexsort(centers[[0, 3, 2, 1]].T[::-1])]
    assert_array_equal(machine.cell_centers_, filled)
    assert machine.score(X, y) > 0.99
    new = np.array([[9.0, 1.0], [0.0, 29.0], [5.0, 70.0], [99.0, 99.0]])
    assert_array_equal(machine.predict(new), [3, 0, 7, 7])
    hands = machines_by_hand(X, y, filled, C=10.0, **AGAINST_REST)
    expected = reference.blended(X, filled, hands, 0.0)
    assert_allclose(machine.decision_function(X), expected, atol=1e-6)
    # With guests too, every cell knows what it is about.
    assert in_cells_of(cells=centers, C=10.0).fit(X, y).score(X, y) > 0.99


def test_more_centres_than_rows():
    X, y = two_classes(12)
    machine = in_cells_of(
        cells=np.random.default_rng(0).normal(size=(500, 2)), blend=0.0, overlap=0.0
    )
    machine.fit(X, y)
    assert 1 < len(machine.cell_centers_) <= 12
    assert machine.score(X, y) == 1.0
    at_rows = in_cells_of(cells=X, blend=0.0, overlap=0.0).fit(X, y)
    assert len(at_rows.cell_centers_) == 12
    assert at_rows.certificate_.n_vectors == 0
    assert_allclose(at_rows.decision_function(X), np.where(y, 2 / 3, -2 / 3))


def test_identical_rows_in_many_places_are_weights():
    X, y = two_classes(80)
    counts = np.random.default_rng(0).integers(1, 6, size=80)
    copied = in_cells_of(cells=CENTERS).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = in_cells_of(cells=CENTERS).fit(X, y, counts)
    assert_array_equal(copied.decision_function(X), weighted.decision_function(X))
    # The same row with either label.
    both = in_cells_of(cells=CENTERS, C=10.0, overlap=0.0).fit(
        np.vstack([X, X]), np.append(y, 1 - y)
    )
    assert_allclose(both.decision_function(X), 0.0, atol=1e-3)
    # All rows the same.
    same = in_cells_of(cells=2).fit(np.ones((10, 2)), [0] * 7 + [1] * 3)
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
    machine = in_cells_of(cells=50, gamma=0.5, C=10.0).fit(X, y)
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
    X, y = board()
    learn, judge = slice(0, 1000), slice(1000, None)
    score = {}
    for overlap, blend in ((0.0, 0.0), (0.3, 0.0), (0.3, 0.2)):
        machine = in_cells_of(cells=100, gamma=60.0, C=10.0, overlap=overlap, blend=blend)
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
    X, y = two_classes(200, 0.4)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=200)
    machine = in_cells_of(cells=CENTERS, overlap=overlap, tol=tol, C=3.0).fit(X, y, weight)
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
    X, y = two_classes(250, 0.35)
    ones = np.ones(250)
    machine = in_cells_of(cells=30, C=2.0).fit(X, y)
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
    machine = in_cells_of(cells=20).fit(X, y)
    found = machine.certificate_
    assert found.n_vectors == 0
    assert found.stopped.endswith("the largest gap 0.0e+00 in cell 0") or "gap 0.0" in found.stopped
    optima = _optima(X, y, machine)
    assert found.dual <= optima.sum() <= found.primal
    assert 0.1 < found.gap < 1.0


@every_data
def test_max_vectors_is_a_budget_over_all_cells(data):
    X, y = DATA[data](600)
    # A budget of vectors is one against the rest by itself.
    free = in_cells_of(cells=60, C=10.0, multi_class="ovr").fit(X, y)
    budget = free.certificate_.n_vectors // 2
    machine = in_cells_of(cells=60, C=10.0, max_vectors=budget).fit(X, y)
    found = machine.certificate_
    assert len(machine.cell_centers_) == len(free.cell_centers_) > 5
    assert len(machine.support_vectors_) == found.n_vectors <= budget
    assert machine.score(X, y) > 0.8
    # The span of fewer vectors can do no better, and the full problem has its bound.
    assert found.primal >= free.certificate_.dual
    assert found.full_dual <= free.certificate_.primal
    assert found.full_dual <= found.dual
    # A budget for few cells makes few cells; given ones are as many as they are.
    small = in_cells_of(cells=60, C=10.0, max_vectors=10).fit(X, y)
    assert len(small.cell_centers_) < len(free.cell_centers_)
    assert len(small.support_vectors_) <= 10
    with pytest.raises(ValueError, match=r"max_vectors=3 is less than one for each problem in"):
        in_cells_of(cells=X[:8], C=10.0, max_vectors=3).fit(X, y)
    plenty = in_cells_of(cells=60, C=10.0, max_vectors=10**6).fit(X, y)
    assert_array_equal(plenty.decision_function(X), free.decision_function(X))


@pytest.mark.parametrize("classes", [2, 4])
def test_the_smallest_budgets_of_vectors_are_kept(classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(classes, size=400)
    for budget in (2, 3, 5, 8, 40):
        machine = in_cells_of(cells=20, max_vectors=budget).fit(X, y)
        assert len(machine.support_vectors_) == machine.certificate_.n_vectors <= budget


# Robustness.


@every_data
def test_the_bits_do_not_depend_on_threads_and_the_answer_not_on_the_order_of_rows(data):
    X, y = DATA[data](500)
    machine = in_cells_of().fit(X, y)
    assert len(machine.cell_centers_) > 5
    for n_jobs in (2, 3):
        other = in_cells_of(n_jobs=n_jobs).fit(X, y)
        assert_array_equal(other.cell_centers_, machine.cell_centers_)
        assert_array_equal(other.dual_coef_, machine.dual_coef_)
        assert_array_equal(other.decision_function(X), machine.decision_function(X))
    order = np.random.default_rng(0).permutation(500)
    shuffled = in_cells_of().fit(X[order], y[order])
    assert_array_equal(shuffled.cell_centers_, machine.cell_centers_)
    assert_array_equal(order[shuffled.support_], machine.support_)
    assert_array_equal(shuffled.decision_function(X), machine.decision_function(X))


@pytest.mark.parametrize("cells", [30, CENTERS, "auto"], ids=["size", "given", "auto"])
def test_a_weight_of_k_is_k_copies(cells):
    X, y = three_classes(200)
    counts = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = in_cells_of(cells=cells).fit(X, y, counts)
    copied = in_cells_of(cells=cells).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_array_equal(weighted.cell_centers_, copied.cell_centers_)
    assert_array_equal(weighted.decision_function(X), copied.decision_function(X))


def test_a_small_memory_changes_nothing_but_blocks():
    X, y = two_classes(1500)
    machine = in_cells_of(cells=100).fit(X, y)
    small = in_cells_of(cells=100, memory="2MB").fit(X, y)
    assert_array_equal(small.cell_centers_, machine.cell_centers_)
    assert_allclose(small.decision_function(X), machine.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("scale", [1e-100, 1e-10, 1e10, 1e100])
def test_scales(scale):
    X, y = two_classes()
    parameters = {"gamma": "scale", "tol": 1e-10}
    machine = in_cells_of(cells=scale * CENTERS, **parameters).fit(scale * X, y)
    plain = in_cells_of(cells=CENTERS, **parameters).fit(X, y)
    assert_allclose(
        machine.decision_function(scale * X), plain.decision_function(X), rtol=1e-4, atol=1e-4
    )
    # Other rows have another hash, and so other cells.
    machine = in_cells_of(**parameters).fit(scale * X, y)
    assert len(machine.cell_centers_) > 3
    assert machine.score(scale * X, y) > 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e100])
def test_rows_beyond_single_precision_are_measured_by_the_width_of_the_kernel(scale):
    X, y = two_classes()
    machine = in_cells_of(cells=scale * CENTERS, gamma="scale", tol=1e-7).fit(scale * X, y)
    plain = in_cells_of(cells=CENTERS, gamma="scale", tol=1e-7).fit(X, y)
    assert_allclose(
        machine.decision_function(scale * X), plain.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_rows_far_from_everything_get_an_answer():
    X, y = two_classes()
    machine = in_cells_of().fit(X, y)
    values = machine.decision_function([[1e200, 0.0], [-1e300, 1e10], [1e20, -1e20]])
    assert np.isfinite(values).all()


def test_one_feature_and_constant_columns():
    X = np.random.default_rng(0).uniform(-3, 3, size=(300, 1))
    y = (np.sin(4 * X[:, 0]) > 0).astype(int)
    machine = in_cells_of(gamma=10.0, C=10.0).fit(X, y)
    assert machine.score(X, y) > 0.95
    wide = np.column_stack([X, np.full(300, 1e6), np.zeros(300)])
    wider = in_cells_of(gamma=10.0, C=10.0).fit(wide, y)
    assert len(wider.cell_centers_) == pytest.approx(len(machine.cell_centers_), abs=3)
    assert wider.score(wide, y) > 0.95


def test_another_engine_leaves_nothing_of_the_cells_behind():
    X, y = two_classes()
    machine = in_cells_of(cells=CENTERS, blend=0.1).fit(X, y)
    assert_array_equal(clone(machine).get_params()["cells"], CENTERS)
    other = machine.set_params(engine="exact").fit(X, y)
    assert other.engine_ == "exact"
    for name in ("cell_centers_", "cell_offsets_", "cell_gamma_"):
        assert not hasattr(other, name)
    assert other.decision_function(X).shape == (300,)


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
    X, y = two_classes(40)
    if search:
        machine = MarginClassifierCV([1.0], [1.0], **{"engine": "cells"} | parameters)
    else:
        machine = in_cells_of(**parameters)
    with pytest.raises(error, match=message):
        machine.fit(X, y)


# Limits and interrupts.


@pytest.mark.parametrize("limit", [{"max_time": 1e-9}, {"max_iter": 1}])
def test_a_fit_without_time_is_a_valid_model(limit):
    X, y = three_classes()
    with pytest.warns(ConvergenceWarning, match="reached"):
        machine = in_cells_of(**limit).fit(X, y)
    assert machine.certificate_.n_vectors == 0
    assert machine.certificate_.dual <= machine.certificate_.primal
    assert machine.certificate_.gap > 0.5
    # Better than one constant for all rows.
    assert machine.score(X, y) > np.bincount(y).max() / len(y) + 0.1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_the_cells_that_were_done(n_jobs, monkeypatch):
    X, y = two_classes(1200, 0.3)
    whole = in_cells_of(cells=15, overlap=0.0).fit(X, y)
    n_cells = len(whole.cell_centers_)
    assert n_cells > 64
    fitted, exact = [], cell_engine.exact_machines
    # A cell at a time.
    monkeypatch.setattr(cell_engine, "_RUN", 0)

    def interrupted(*arguments):
        fitted.append(None)
        if len(fitted) == 70:
            raise KeyboardInterrupt
        return exact(*arguments)

    monkeypatch.setattr(cell_engine, "exact_machines", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = in_cells_of(cells=15, overlap=0.0, n_jobs=n_jobs).fit(X, y)
    assert 70 <= len(fitted) <= 75
    sizes = np.bincount(own_cell(X, whole.cell_centers_))
    # All before the one that was interrupted; another thread may have been a little behind.
    done = sorted(range(n_cells), key=lambda c: (-sizes[c], c))[: 69 if n_jobs == 1 else 64]
    late = sorted(range(n_cells), key=lambda c: (-sizes[c], c))[70:]
    for cell in range(n_cells):
        parts = [
            (m.intercept_[cell], m.dual_coef_[:, m.cell_offsets_[cell] : m.cell_offsets_[cell + 1]])
            for m in (machine, whole)
        ]
        if cell in done:
            assert_array_equal(parts[0][0], parts[1][0])
            assert_array_equal(parts[0][1], parts[1][1])
        elif cell in late:
            assert parts[0][1].size == 0
    assert machine.score(X, y) > 0.8


def test_an_interrupt_inside_the_machine_of_a_cell_ends_the_fit(monkeypatch):
    X, y = two_classes(600)
    steps, step = [], SpanFit.step

    def interrupted(self, state):
        steps.append(None)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(SpanFit, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = in_cells_of(cells=100, max_vectors=40).fit(X, y)
    assert len(steps) == 3
    assert np.isfinite(machine.decision_function(X)).all()
