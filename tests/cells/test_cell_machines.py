"""Machines of cells: fitted one by one, and joined at the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize_scalar

from tests.reference import cells as reference
from tests.reference.problems import problem_of
from tests.reference.svm import dual_value, l2svm_dual_exact, signed_kernel
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.cells import CellMachines, CellOptions, CellsFit, Members, Partition, cell_engine
from widemargin.cells.cell_decision import blend_weights
from widemargin.cells.cell_machine import constant_machine, exact_machines, large_machine
from widemargin.cells.partition import Near
from widemargin.expansion import Fitted
from widemargin.kernels import RBF
from widemargin.loop import Deadline, Ended, Limits, Stop, bounds, run
from widemargin.problem import one_vs_one
from widemargin.rows import as_rows


@pytest.fixture(autouse=True)
def one_cell_at_a_time(monkeypatch):
    monkeypatch.setattr(cell_engine, "_RUN", 0)


def _rng():
    return np.random.default_rng(0)


def _rows(X, memory=10**9, threads=1):
    return as_rows(X, memory=memory, threads=threads)


def _gaussian(n=3000, d=3):
    return _rng().normal(size=(n, d))


def _labelled(n=400, n_classes=2, d=2):
    X = _gaussian(n, d)
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [0.0, 1.0][: n_classes - 1])
    return X, y


# The machine of a cell.

KERNELS = {
    "rbf": {"gamma": 0.7},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.5, "coef0": 1.0},
    "laplacian": {"kernel": "laplacian", "gamma": 0.5},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def _exact(problem, index, tol, kinds=(np.float64,)):
    eta = largest_norm2(problem)
    precisions = [Precision.in_type(kind, problem, eta) for kind in kinds]
    return exact_machines(problem, [index], tol, precisions)[0]


def _optimum(problem, index, p=0):
    """The optimum of one problem of a cell and the dual variables there, by an exact solver."""
    X = problem.rows.take(index)
    K = problem.kernel.block(X, X)
    sign = problem.sign(p, index)
    Q = signed_kernel(K, sign, problem.C[p], problem.weight[index])
    alpha = l2svm_dual_exact(Q)
    return -dual_value(Q, alpha), sign * alpha


@every_kernel
def test_the_machine_of_a_cell_is_the_exact_one(kernel):
    X, y = _labelled(60, 3)
    weight = _rng().uniform(0.5, 2.0, size=60)
    problem = problem_of(X, y, weight, C=3.0, **KERNELS[kernel])
    index = np.arange(0, 60, 2)
    machine = _exact(problem, index, 1e-12)
    expected = [_optimum(problem, index, p) for p in range(3)]
    total = sum(value for value, _ in expected)
    assert_allclose([machine.certificate.primal, machine.certificate.dual], total, rtol=1e-9)
    assert machine.certificate.gap <= 1e-12
    assert machine.stop.converged
    assert machine.certificate.n_kernel == 30**2
    coef = np.zeros((60, 3))
    coef[machine.index] = machine.coef
    beta = np.stack([beta for _, beta in expected], axis=1)
    assert_allclose(coef[index], beta, atol=1e-6 * np.abs(beta).max())
    assert_allclose(machine.intercept, beta.sum(axis=0), atol=1e-6)
    assert_array_equal(machine.vectors, problem.rows.take(machine.index))


def test_a_class_that_is_not_in_the_cell_costs_a_constant():
    X, y = _labelled(90, 3)
    problem = problem_of(X, y, C=3.0, gamma=0.7)
    index = np.flatnonzero(problem.code != 2)
    machine = _exact(problem, index, 1e-10)
    rest = 2.0 * problem.C[2] * len(index)
    assert_allclose(machine.intercept[2], -rest / (1.0 + rest))
    assert not machine.coef[:, 2].any()
    assert_allclose(machine.coef[:, 0], -machine.coef[:, 1], atol=1e-6)
    two = _optimum(problem, index)[0]
    absent = _optimum(problem, index, 2)[0]
    assert machine.certificate.dual <= 2 * two + absent <= machine.certificate.primal
    assert_allclose(machine.certificate.primal, 2 * two + 0.5 * rest / (1.0 + rest), rtol=1e-6)


@every_kernel
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bounds_of_constants_hold(kernel, C, weighted):
    X, y = _labelled(40)
    weight = _rng().uniform(0.1, 5.0, size=40) if weighted else None
    problem = problem_of(X, y, weight, C=C, **KERNELS[kernel])
    for side in (0, 1):
        index = np.flatnonzero(problem.code == side)
        machine = _exact(problem, index, 1e-3)
        assert machine.certificate.n_vectors == machine.certificate.gap == 0
        optimum = _optimum(problem, index)[0]
        assert 0.0 < machine.certificate.dual <= optimum <= machine.certificate.primal * (1 + 1e-12)
        # Without kernel values less is known.
        blind = constant_machine(problem, index, problem.rows.take(index[:1]))
        assert 0.0 < blind.certificate.dual <= machine.certificate.dual
        assert_array_equal(blind.intercept, machine.intercept)
        total = problem.weight[index].sum()
        best = minimize_scalar(lambda b, S=total: 0.5 * b**2 + C * S * max(0.0, 1.0 - b) ** 2)
        assert_allclose(machine.intercept, (2 * side - 1) * best.x, rtol=1e-6)
        assert_allclose(machine.certificate.primal, best.fun, rtol=1e-9)


def test_a_constant_for_both_classes_leans_to_the_heavier_one():
    X, y = _labelled(50)
    problem = problem_of(X, y, np.where(y == 1, 2.0, 1.0))
    index = np.arange(50)
    machine = constant_machine(problem, index, problem.rows.take(index[:1]))
    lean = problem.weight @ problem.table[problem.code, 0]
    assert np.sign(machine.intercept[0]) == np.sign(lean)
    optimum = _optimum(problem, index)[0]
    assert machine.certificate.dual == 0.0
    assert machine.certificate.primal >= optimum
    slack = np.maximum(0.0, 1.0 - problem.table[problem.code, 0] * machine.intercept[0])
    objective = 0.5 * machine.intercept[0] ** 2 + problem.weight @ slack**2
    assert_allclose(machine.certificate.primal, objective)


def test_float32_is_enough_for_some_gaps_and_is_left_for_others():
    X, y = _labelled(200, 3)
    problem = problem_of(X, y, C=3.0, gamma=0.7)
    index = np.arange(problem.n)
    kinds = (np.float32, np.float64)
    fine, coarse = (_exact(problem, index, 1e-3, each) for each in ((np.float64,), kinds[:1]))
    assert_array_equal(_exact(problem, index, 1e-3, kinds).coef, coarse.coef)
    assert_allclose(coarse.certificate.primal, fine.certificate.primal, rtol=1e-3)
    # Beyond what float32 shows.
    both = _exact(problem, index, 1e-9, kinds)
    assert_array_equal(both.coef, _exact(problem, index, 1e-9).coef)
    assert both.certificate.gap <= 1e-9
    assert not _exact(problem, index, 1e-9, kinds[:1]).stop.converged


def test_pairs_of_classes_in_a_cell_are_the_machines_of_two_classes():
    X, y = _labelled(150, 3)
    weight = _rng().uniform(0.5, 2.0, size=150)
    problem = problem_of(X, y, weight, C=3.0, gamma=0.7)
    pairs = problem.with_signs(one_vs_one(3))
    index = np.arange(0, problem.n, 2)
    machine = _exact(pairs, index, 1e-11)
    primal = 0.0
    for p in range(3):
        own = index[pairs.table[pairs.code[index], p] != 0]
        value, beta = _optimum(pairs, own, p)
        coef = np.zeros(problem.n)
        coef[machine.index] = machine.coef[:, p]
        assert_allclose(coef[own], beta, atol=1e-6 * np.abs(beta).max())
        assert not coef[np.setdiff1d(np.arange(problem.n), own)].any()
        assert_allclose(machine.intercept[p], beta.sum(), atol=1e-6)
        primal += value
    assert_allclose([machine.certificate.primal, machine.certificate.dual], primal, rtol=1e-9)
    # A pair of which one class is missing, and one of which both are.
    one_class = np.flatnonzero(problem.code == 0)
    alone = _exact(pairs, one_class, 1e-6)
    total = 2.0 * 3.0 * problem.weight[one_class].sum()
    assert_allclose(alone.intercept, [total / (1 + total), total / (1 + total), 0.0])
    assert alone.certificate.n_vectors == 0
    assert 0.0 < alone.certificate.dual <= alone.certificate.primal


def test_another_engine_is_asked_only_for_problems_with_two_sides():
    X, y = _labelled(90, 3)
    problem = problem_of(X, y, C=3.0, gamma=0.7)
    index = np.flatnonzero(problem.code != 0)[::-1].copy()
    asked = []

    def fit(part):
        asked.append((part.n, part.n_problems))
        return _exact(part, np.arange(part.n), 1e-10)

    machine = large_machine(problem, index, fit)
    assert asked == [(len(index), 2)]
    expected = _exact(problem, index, 1e-10)
    for name in ("vectors", "index", "coef", "intercept"):
        assert_allclose(getattr(machine, name), getattr(expected, name), rtol=1e-9, atol=1e-12)
    assert_allclose(machine.certificate.primal, expected.certificate.primal, rtol=1e-9)
    assert machine.certificate.dual <= expected.certificate.dual
    assert_allclose(machine.certificate.dual, expected.certificate.dual, rtol=0.05)
    one_class = np.flatnonzero(problem.code == 1)
    assert large_machine(problem, one_class, fit).certificate.n_vectors == 0
    assert len(asked) == 1


# All cells.


class _Pretended(CellsFit):
    """Cells of some sizes with machines of no meaning; `fit` makes them."""

    def __init__(self, sizes, fit, threads=1, **known):
        sizes = [int(size) for size in sizes]
        index = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        X, y = _labelled(sum(sizes))
        members = Members(Partition(X[: len(sizes)]), index, index, np.arange(len(sizes)))
        super().__init__(problem_of(X, y), members, CellOptions(threads=threads, **known))
        self.fit = fit


def _pretended(primal=1.0, dual=1.0, gap=0.0, full_dual=None, ended=Ended.SOLVED):
    two = np.zeros((2, 2))
    proved = bounds(primal, dual, gap=gap, full_dual=full_dual, n_vectors=2, n_kernel=10)
    return Fitted(two, np.arange(2), two[:, :1], np.zeros(1), proved, Stop(ended, "why"))


@pytest.mark.parametrize("threads", [1, 3])
def test_cells_are_fitted_from_the_largest_and_given_back_in_order(threads):
    sizes = list(1 + _rng().permutation(100))
    begun = []

    def fit(cell):
        begun.append(cell)
        return _pretended(primal=float(cell), dual=0.5 * cell, gap=0.001 * cell)

    solver = _Pretended(sizes, fit, threads)
    result = run(solver, Limits())
    machines = solver.machines(result.state)
    assert [machine.certificate.primal for machine in machines] == list(range(100))
    if threads == 1:
        assert begun == sorted(range(100), key=lambda cell: -sizes[cell])
    certificate = result.certificate
    assert (certificate.primal, certificate.dual) == (4950.0, 2475.0)
    assert certificate.gap == 0.5
    assert (certificate.scope, certificate.full_dual) == ("cells", None)
    assert (certificate.n_vectors, certificate.n_kernel) == (200, 1000)
    assert certificate.stopped == "100 cells of up to 100 rows, the largest gap 9.9e-02 in cell 99"
    assert result.converged


def test_where_time_is_limited_the_smallest_cells_come_first():
    sizes, begun = [30, 10, 20], []
    fit = lambda cell: begun.append(cell) or _pretended()  # noqa: E731
    run(_Pretended(sizes, fit, deadline=Deadline.after(1e6)), Limits())
    assert begun == [1, 2, 0]


def test_one_cell_that_has_not_converged_is_enough():
    kinds = [Ended.SOLVED, Ended.PRECISION, Ended.SOLVED]
    solver = _Pretended([10, 20, 30], lambda cell: _pretended(ended=kinds[cell]))
    assert run(solver, Limits()).stop.kind is Ended.PRECISION


def test_machines_in_spans_have_a_bound_on_the_full_problem_beside_the_others():
    def fit(cell):
        return _pretended(primal=4.0, dual=3.0, full_dual=1.0 if cell == 1 else None)

    certificate = run(_Pretended([10, 20, 30], fit), Limits()).certificate
    assert (certificate.dual, certificate.full_dual) == (9.0, 7.0)


def test_cells_that_were_not_reached_are_constants():
    reached = []
    solver = _Pretended(range(1, 1069), lambda cell: reached.append(cell) or _pretended())
    gaps = []
    result = run(solver, Limits(max_iter=2), lambda known: gaps.append(known.gap))
    assert len(reached) == 1024
    assert gaps == [1.0, 1.0]
    machines = solver.machines(result.state)
    constant = [constant_machine(solver.problem, index, solver.problem.rows.take(index[:1]))
                for index in solver.members.train[:44]]  # fmt: skip
    for machine, expected in zip(machines, constant, strict=False):
        assert_array_equal(machine.intercept, expected.intercept)
        assert machine.certificate == expected.certificate
    assert [machine.certificate.primal for machine in machines[44:]] == [1.0] * 1024
    primal = 1024.0 + sum(machine.certificate.primal for machine in constant)
    assert result.certificate.primal == pytest.approx(primal)
    assert result.certificate.gap == pytest.approx(1 - result.certificate.dual / primal)
    assert result.certificate.stopped == "max_iter=2 reached"
    assert not result.converged


# Their answer.

sorted_distances = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=4).map(sorted)


def _near(*distance):
    return Near(np.arange(len(distance))[None], np.array([distance], dtype=float))


@given(sorted_distances, st.one_of(st.just(0.0), st.floats(1e-3, 5.0)))
@settings(max_examples=100, deadline=None)
def test_blend_weights_are_those_of_the_formula(distance, blend):
    found = blend_weights(_near(*distance[:3]).distance, blend)[0]
    expected = reference.weights(distance[:3], blend)
    assert_allclose(found.sum(), 1.0)
    assert (found >= 0).all()
    assert found[0] == found.max()
    assert_allclose(found, [expected.get(c, 0.0) for c in range(len(found))], atol=1e-12)


def test_at_an_edge_both_cells_have_the_same_weight():
    assert_array_equal(blend_weights(_near(2.0, 2.0).distance, 0.2), [[0.5, 0.5]])
    assert_array_equal(blend_weights(_near(2.0, 2.0, 3.0).distance, 0.2), [[0.5, 0.5]])
    assert_array_equal(blend_weights(_near(2.0, 2.0, 3.0).distance, 0.0), [[1.0]])


@pytest.mark.parametrize(
    "distance",
    [
        (1.0, 1.1, 1.1),  # the second and the third change places
        (1.0, 1.2, 5.0),  # the blend ends
        (0.0, 1e300, 1e300),  # at a centre
        (0.0, 1.0),
        (1.0, 1.0, 1.0),  # where three meet
    ],
)
def test_the_second_cell_has_no_weight(distance):
    assert_allclose(blend_weights(_near(*distance).distance, 0.2), [[1.0, 0.0]], atol=1e-15)


def _machines(n_cells=6, n_problems=2, blend=0.3, widths=None, seed=1):
    """Machines of no meaning, one cell of which has no vector."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=n_cells)
    sizes[n_cells // 2] = 0
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return CellMachines(
        Partition(rng.normal(size=(n_cells, 2))),
        RBF(0.8) if widths is None else [RBF(width) for width in widths],
        rng.normal(size=(offsets[-1], 2)),
        rng.normal(size=(offsets[-1], n_problems)),
        offsets,
        rng.normal(size=(n_cells, n_problems)),
        blend,
    )


def _by_loops(cells, X):
    def machine(cell):
        own = slice(cells.offsets[cell], cells.offsets[cell + 1])
        kernel = cells.kernel[cell] if isinstance(cells.kernel, list) else cells.kernel

        def decide(X):
            square = ((X[:, None] - cells.vectors[own]) ** 2).sum(axis=2)
            return np.exp(-kernel.gamma * square) @ cells.coef[own] + cells.intercept[cell]

        return decide

    machines = [machine(cell) for cell in range(cells.partition.n_cells)]
    return reference.blended(X, cells.partition.centers, machines, cells.blend)


@pytest.mark.parametrize("blend", [0.0, 0.2, 3.0])
@pytest.mark.parametrize("n_cells", [1, 2, 3, 8])
@pytest.mark.parametrize("widths", [False, True])
def test_every_row_is_answered_by_its_own_cells(blend, n_cells, widths):
    cells = _machines(n_cells, blend=blend, widths=np.linspace(0.1, 3, n_cells) if widths else None)
    X = 1.5 * _gaussian(300, 2)
    expected = _by_loops(cells, X)
    assert_allclose(cells.values(_rows(X)), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(cells.values(_rows(sparse.csr_array(X))), expected, rtol=1e-9, atol=1e-12)


def test_answers_do_not_depend_on_threads_and_hardly_on_blocks():
    cells = _machines(8)
    X = _gaussian(3000, 2)
    one = cells.values(_rows(X))
    for threads in (2, 3):
        assert_array_equal(one, cells.values(_rows(X, threads=threads)))
    small = cells.values(_rows(X, memory=10**5), at_a_time=7)
    assert_allclose(small, one, rtol=1e-12, atol=1e-14)


def test_kernel_values_of_an_answer_keep_to_the_memory_budget(monkeypatch):
    rng = _rng()
    cells = CellMachines(
        Partition(np.zeros((1, 2))),
        RBF(),
        rng.normal(size=(2000, 2)),
        rng.normal(size=(2000, 1)),
        np.array([0, 2000]),
        np.zeros((1, 1)),
    )
    shapes, block = [], RBF.block

    def noting(self, X, Z, out=None):
        shapes.append(out.nbytes)
        return block(self, X, Z, out=out)

    monkeypatch.setattr(RBF, "block", noting)
    cells.values(_rows(rng.normal(size=(3000, 2)), memory=16 * 10**6))
    assert max(shapes) <= 10**6
    assert sum(shapes) == 8 * 3000 * 2000


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential", "inverse_distance"])
@pytest.mark.parametrize("stored", [np.float32, np.float64])
def test_cells_in_one_call_are_the_cells_one_by_one_in_float64(kernel, stored):
    X, y = _labelled(300, 3)
    weight = _rng().uniform(0.5, 2.0, size=300)
    problem = problem_of(X.astype(stored), y, weight, C=3.0, kernel=kernel, gamma=0.5)
    only = np.flatnonzero(problem.code == 1)
    cells = [np.arange(0, 120), only[:20], np.arange(120, 300, 2), np.arange(5)]
    eta = largest_norm2(problem)
    coarse, fine = (Precision.in_type(each, problem, eta) for each in (np.float32, np.float64))
    together = exact_machines(problem, cells, 1e-4, [coarse, fine])
    for index, machine in zip(cells, together, strict=True):
        (alone,) = exact_machines(problem, [index], 1e-6, [fine])
        assert machine.stop.converged and machine.certificate.gap <= 1e-4
        assert_allclose(machine.certificate.primal, alone.certificate.primal, rtol=2e-4)
        assert machine.certificate.dual <= alone.certificate.primal * (1 + 1e-6)
        assert_allclose(machine.intercept, alone.intercept, atol=0.05)
        assert_array_equal(machine.vectors, problem.rows.take(machine.index))
        assert set(machine.index) <= set(index)


def test_a_cell_whose_rows_lie_too_far_apart_for_float32_is_solved_in_float64():
    # Two clusters far apart in units of the kernel: products in float32 lose all of it.
    X = np.concatenate([_gaussian(40, 2), 1e5 + _gaussian(40, 2)])
    y = np.arange(80) % 2
    problem = problem_of(X, y, C=3.0, gamma=0.7)
    eta = largest_norm2(problem)
    precisions = [Precision.in_type(each, problem, eta) for each in (np.float32, np.float64)]
    index = np.arange(80)
    (found,) = exact_machines(problem, [index], 1e-6, precisions)
    optimum = _optimum(problem, index)[0]
    assert found.certificate.primal == pytest.approx(optimum, rel=2e-6)
