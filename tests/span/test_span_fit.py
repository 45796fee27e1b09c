"""The span fit against the exact optimum in the span, and what its certificate promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from tests.reference import span as reference
from tests.reference import svm
from tests.reference.problems import problem_of
from tests.reference.span_data import make, random_data, wide_data
from widemargin import MarginClassifier
from widemargin.expansion import Earlier
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.loop import Limits
from widemargin.span import SpanSizes, shard
from widemargin.span.curvature import Curvature
from widemargin.span.losses import LowerBound
from widemargin.span.span_engine import SpanOptions, full_dual, solve_in_span
from widemargin.span.values import KernelValues

N_PROBLEMS = 105


# ---------------------------------------------------------------- the optimum


@pytest.mark.parametrize("C", [1e-3, 1e-1, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("vectors", ["random", "core", "kmeans", "leverage"])
def test_the_objective_is_the_optimum_in_the_span(C, vectors):
    for seed in range(6):
        data = replace(random_data(seed), C=np.full(random_data(seed).n_problems, C))
        solver, result = data.fit(vectors)
        Z = solver.basis.vectors.values
        optimum = data.optima(Z).sum()
        assert result.converged, f"seed {seed}: {result.certificate}"
        assert data.objectives(Z, result.state.beta).sum() <= optimum * (1 + 1e-6)
        assert result.certificate.primal == pytest.approx(optimum, rel=1e-6)
        assert result.certificate.dual == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(("n_features", "largest", "n_folds"), [(3, 10.0, 5), (1, 1e3, 2)])
def test_values_of_c_and_folds_share_a_fit_and_get_their_own_optimum(n_features, largest, n_folds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, n_features))
    code = np.digitize(X[:, 0] + 0.3 * rng.normal(size=80), [-0.5, 0.5])
    grid = [(c, held) for c in (1e-3, 0.1, largest) for held in range(n_folds)]
    C, held = (np.repeat(part, 3) for part in zip(*grid, strict=True))
    counts = (np.arange(n_folds)[:, None] != held).astype(float)
    table = np.tile(2.0 * np.eye(3) - 1.0, len(grid))
    data = make(X, code, table, C=C, fold=rng.integers(0, n_folds, 80), counts=counts)
    solver, result = data.fit("random", limits=Limits(max_iter=300))
    Z = solver.basis.vectors.values
    assert result.converged, str(result.certificate)
    np.testing.assert_allclose(result.state.primal, data.objectives(Z, result.state.beta))
    # Three classes are one machine, and each machine has the gap that was asked for.
    machines = (
        values.reshape(-1, 3).sum(axis=1) for values in (result.state.primal, data.optima(Z))
    )
    primal, optima = machines
    assert (primal <= optima * (1 + 1e-6)).all()


def test_a_weight_of_k_is_k_copies():
    for seed in range(10):
        data = random_data(seed)
        times = np.random.default_rng(seed).integers(1, 4, len(data.X))
        Z = data.X[:8]
        weighted = replace(data, weight=times.astype(float)).fit(Z)[1]
        copies = replace(
            data,
            X=np.repeat(data.X, times, axis=0),
            code=np.repeat(data.code, times),
            weight=np.ones(times.sum()),
            fold=np.zeros(times.sum(), dtype=np.int32),
        ).fit(Z)[1]
        assert weighted.certificate.primal == pytest.approx(copies.certificate.primal, rel=1e-7)


def test_a_fold_that_is_counted_twice_is_two_copies_of_its_rows():
    for seed in range(6):
        data = random_data(seed)
        rng = np.random.default_rng(seed)
        fold = rng.integers(0, 3, len(data.X)).astype(np.int32)
        counts = np.array([[1.0], [2.0], [0.0]]) * np.ones(data.n_problems)
        drawn = replace(data, fold=fold, counts=counts)
        kept = np.repeat(np.arange(len(data.X)), counts[fold, 0].astype(int))
        copies = replace(
            data,
            X=data.X[kept],
            code=data.code[kept],
            weight=data.weight[kept],
            fold=np.zeros(len(kept), dtype=np.int32),
        )
        Z = data.X[:8]
        (one, first), (_, second) = drawn.fit(Z), copies.fit(Z)
        assert first.converged and second.converged
        assert first.certificate.primal == pytest.approx(second.certificate.primal, rel=1e-7)
        optimum = drawn.optima(one.basis.vectors.values).sum()
        assert first.certificate.dual <= optimum * (1 + 1e-9)
        assert first.certificate.primal == pytest.approx(optimum, rel=1e-6)
        assert full_dual(one) <= first.certificate.primal * (1 + 1e-9)


def test_the_default_tolerance_is_reached_where_vectors_are_near_each_other():
    # Well inside the range of C; K_z is as ill-conditioned as the tolerance of a basis lets it be.
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 3000)
    X = rng.normal(size=(3000, 2)) * 0.4 + np.array([[0.0, 0.0], [1.6, 0.0], [9.0, 9.0]])[code]
    for C in (1.0, 100.0):
        data = make(X, code, 2.0 * np.eye(3) - 1.0, C=C, gamma=0.3)
        solver, result = data.fit("random", max_vectors=80, tol=1e-3)
        assert result.converged, str(result.certificate)
        optimum = data.optima(solver.basis.vectors.values).sum()
        assert result.certificate.primal <= optimum * (1 + 1e-3)


def test_vectors_are_added_until_there_are_as_many_as_allowed():
    for vectors in ("random", "core"):
        data = random_data(20, n=600)
        seen = []
        solver, result = data.fit(
            vectors,
            max_vectors=60,
            sizes=SpanSizes(first_vectors=5),
            report=lambda c, seen=seen: seen.append(c.n_vectors),
        )
        assert seen == sorted(seen) and len(set(seen)) > 2 and seen[0] == 5
        assert result.converged and solver.choice.drawn == 60
        optimum = data.optima(solver.basis.vectors.values).sum()
        assert result.certificate.primal == pytest.approx(optimum, rel=1e-6)


def test_doubling_stops_where_it_gains_little():
    sizes = SpanSizes(first_vectors=5)
    data = make(*[(d := random_data(5, n=600)).X, d.code, d.table], gamma=1e-2)
    solver, result = data.fit("random", max_vectors=500, grow=True, tol=1e-4, sizes=sizes)
    assert solver.choice.drawn < 100 and result.converged
    twice = 2 * solver.choice.drawn
    double = data.fit("random", max_vectors=twice, tol=1e-4, sizes=sizes)[1]
    assert double.certificate.primal > 0.95 * result.certificate.primal


def test_rows_that_span_nothing_leave_the_bias():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    data = make(np.zeros((40, 3)), y, np.array([[-1.0], [1.0]]), C=2.0, name="linear")
    solver, result = data.fit("random", limits=Limits(max_iter=200))
    assert solver.basis.size == 0 and result.converged
    expected = reference.best_machine(np.empty((40, 0)), 2.0 * y - 1.0, 2.0)
    assert result.state.beta[-1, 0] == pytest.approx(expected.intercept, rel=1e-6)


def test_an_earlier_solution_is_where_it_starts():
    data = random_data(7, n=300)
    solver, result = data.fit("random", max_vectors=20)
    index, beta = solver.basis.vectors.index, result.state.beta
    earlier = Earlier(index, beta[:-1], beta[-1])
    again, same = data.fit("random", max_vectors=20, earlier=earlier)
    assert same.certificate.n_iter <= 3 < result.certificate.n_iter
    assert same.certificate.primal == pytest.approx(result.certificate.primal, rel=1e-7)
    assert set(again.basis.vectors.index) == set(index)
    # For another C it is a start like any other.
    other = replace(data, C=10.0 * data.C)
    moved, far = other.fit("random", max_vectors=20, earlier=earlier)
    optimum = other.optima(moved.basis.vectors.values).sum()
    assert far.certificate.primal == pytest.approx(optimum, rel=1e-6)


# ---------------------------------------------------------------- the certificate


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_the_printed_gap_is_never_below_the_true_one(dtype, tol):
    rounding = 1e-9 if dtype == np.float64 else 1e-7
    for seed in range(N_PROBLEMS):
        data = random_data(seed)
        # Some are stopped before they are done.
        solver, result = data.fit(dtype=dtype, tol=tol, limits=Limits(max_iter=1 + seed % 7))
        Z = solver.basis.vectors.values
        primal = data.objectives(Z, result.state.beta).sum()
        optimum = data.optima(Z).sum()
        true = (primal - optimum) / primal
        assert true <= result.certificate.gap + rounding, f"seed {seed}"
        assert result.certificate.scope == "span"
        if dtype == np.float64:
            assert result.certificate.primal == pytest.approx(primal, rel=1e-9)
            assert result.certificate.dual <= optimum * (1 + 1e-9)


def test_the_bound_on_the_full_problem_is_one():
    near = 0
    for seed in range(N_PROBLEMS):
        data = random_data(seed)
        for vectors in ("random", "kmeans") if seed % 3 == 0 else ("random",):
            solver, result = data.fit(vectors, max_vectors=20 if seed % 2 else 90, tol=1e-2)
            K = data.plain(data.X, data.X)
            exact = 0.0
            for p in range(data.n_problems):
                y = data.table[data.code, p]
                F = svm.rbf_via_cholesky(K)
                exact += reference.best_machine(F, y, data.C[p], data.weight).value
            bound = full_dual(solver)
            assert 0.0 < bound <= exact * (1 + 1e-9), f"seed {seed}"
            assert exact <= result.certificate.primal * (1 + 1e-6)
            near += bound > 0.9 * exact
    assert near > N_PROBLEMS / 4


def test_every_step_lowers_the_objective_and_raises_the_bound():
    for seed in range(20):
        data = random_data(seed)
        seen = []
        data.fit(report=lambda c, seen=seen: seen.append((c.primal, c.dual)))
        primal, dual = np.array(seen).T
        assert (np.diff(primal) <= 1e-12 * primal[:-1]).all()
        assert (np.diff(dual) >= -1e-12 * dual[1:]).all()
        assert (dual <= primal * (1 + 1e-12)).all()


@pytest.mark.parametrize("C", [1e20, 1e60, 1e100, 1e120])
def test_a_c_that_leaves_no_digits_is_not_said_to_be_solved(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    data = make(X, X[:, 0] > 0.2 * X[:, 1], np.array([[-1.0], [1.0]]), C=C)
    _, outcome = data.fit(tol=1e-2, max_vectors=60, limits=Limits(max_iter=200))
    certificate = outcome.certificate
    assert certificate.gap <= 1e-2 or not outcome.converged
    assert 0.0 <= certificate.dual <= certificate.primal < np.inf


def test_an_infinite_objective_is_not_solved():
    data = random_data(1)
    solver, outcome = data.fit()
    endless = replace(outcome.state, primal=np.full(data.n_problems, np.inf))
    assert not len(solver._live(outcome.state))
    assert len(solver._live(endless)) == data.n_problems


def test_single_precision_goes_on_in_double_where_more_digits_are_asked_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    data = make(X, X[:, 0] + 0.3 * rng.normal(size=400) > 0, np.array([[-1.0], [1.0]]), C=10.0)
    solver, result = data.fit("random", tol=1e-10, dtype=np.float32)
    optimum = data.optima(solver.basis.vectors.values).sum()
    assert result.converged and result.certificate.gap <= 1e-10
    assert result.certificate.primal == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_that_says_it_converged_has_the_gap_that_was_asked_for(dtype):
    for seed in range(0, N_PROBLEMS, 4):
        for tol in (1e-2, 1e-4, 1e-6):
            _, result = random_data(seed).fit(dtype=dtype, tol=tol)
            assert result.certificate.gap <= tol or not result.converged, f"seed {seed}, tol {tol}"


# ---------------------------------------------------------------- threads, memory, rows in front


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_number_of_threads_does_not_change_a_bit(dtype):
    data = random_data(0, n=3000)
    data = replace(data, C=np.full(data.n_problems, 1.0))
    options = {"dtype": dtype, "tol": 1e-4, "sizes": SpanSizes(first_vectors=10)}
    fits = [
        data.fit("core", threads=threads, max_vectors=40, memory=50_000, **options)
        for threads in (1, 2, 3)
    ]
    for solver, result in fits[1:]:
        np.testing.assert_array_equal(result.state.beta, fits[0][1].state.beta)
        np.testing.assert_array_equal(solver.basis.factor, fits[0][0].basis.factor)
        assert replace(result.certificate, seconds=0.0) == replace(
            fits[0][1].certificate, seconds=0.0
        )


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_values_that_are_computed_again_lead_to_the_same_optimum(seed):
    # Steps are others: kept rows judge their length, and problems share matrices.
    data = random_data(seed, n=700)
    data = replace(data, C=np.full(data.n_problems, 1.0))
    primal, n_kernel = [], []
    for room in (10**8, 8 * 12 * 300, 0):
        _, result = data.fit("random", room=room, memory=10_000)
        assert result.converged, f"room {room}: {result.certificate}"
        primal.append(result.certificate.primal)
        n_kernel.append(result.certificate.n_kernel)
    np.testing.assert_allclose(primal, primal[0], rtol=2e-8)
    assert n_kernel[0] <= n_kernel[1] <= n_kernel[2] > n_kernel[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_rows_far_from_the_margin_may_be_left_out_for_a_while(dtype, tol):
    data = wide_data()
    solver, result = data.fit("random", dtype=dtype, tol=tol, memory=40_000, max_vectors=3)
    if tol < 1e-3:
        assert (solver.shards.only.order != np.arange(4000)).any(), (
            "this test is about rows that changed places"
        )
    np.testing.assert_array_equal(np.sort(solver.shards.only.order), np.arange(4000))
    assert result.converged and result.certificate.scope == "span"
    Z = solver.basis.vectors.values
    primal = data.objectives(Z, result.state.beta)
    optimum = data.optima(Z)
    assert primal.sum() <= optimum.sum() * (1 + max(tol, 1e-9))
    assert (primal.sum() - optimum.sum()) / primal.sum() <= result.certificate.gap + 1e-12
    scores = data.plain(data.X, Z) @ result.state.beta[:-1] + result.state.beta[-1]
    close = 1e-9 if solver.descent.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(solver.scores(), scores, atol=close * np.abs(scores).max())


def test_leaving_rows_out_changes_nothing_in_the_answer():
    data = wide_data()
    with_less = data.fit("random", memory=40_000, max_vectors=3)
    never = SpanSizes(near_share=-1.0)
    with_all = data.fit("random", memory=40_000, max_vectors=3, sizes=never)
    assert (with_less[0].shards.only.order != np.arange(4000)).any()
    assert (with_all[0].shards.only.order == np.arange(4000)).all()
    primal = [result.certificate.primal for _, result in (with_less, with_all)]
    assert primal[0] == pytest.approx(primal[1], rel=1e-7)
    duals = [full_dual(solver) for solver, _ in (with_less, with_all)]
    assert duals[0] == pytest.approx(duals[1], rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_problem_that_is_done_may_be_looked_at_again(dtype):
    # Of two problems one is done early, and its matrix is not formed; then rows change places.
    options = {"dtype": dtype, "memory": 30_000, "seed": 3, "sizes": SpanSizes(first_vectors=4)}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * 3.0
    X[:, 1] += np.sign(X[:, 1]) * 3.0
    code = 2 * (X[:, 0] + 0.3 * rng.normal(size=3000) > 0) + (X[:, 1] > 0)
    table = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    for C in (1.0, 10.0):
        for tol in (1e-1, 1e-2, 1e-3):
            data = make(X, code, table, C=C, name="poly", gamma=0.3)
            solver, result = data.fit(max_vectors=16, tol=tol, **options)
            assert result.converged, str(result.certificate)
            optimum = data.optima(solver.basis.vectors.values).sum()
            assert result.certificate.primal <= optimum * (1 + tol + 1e-4)


# ---------------------------------------------------------------- directions


@pytest.mark.parametrize("n_directions", [1, 3])
def test_a_fit_may_be_orthogonal_to_directions(n_directions):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        data = random_data(seed)
        data = replace(data, name="rbf", gamma=1.0, C=np.minimum(data.C, 100.0))
        given = data.X[:12]
        free, _ = data.fit(given)
        Z = free.basis.vectors.values
        # Orthonormal in the span: V K_z Vᵀ = I, in the order of the basis.
        V = np.stack(
            [
                free.basis.coefficients(np.linalg.qr(rng.normal(size=(len(Z), n_directions)))[0]).T
                for _ in range(data.n_problems)
            ]
        )
        solver, result = data.fit(given, directions=V)
        np.testing.assert_array_equal(solver.basis.vectors.values, Z)
        Kz = data.plain(Z, Z)
        for p in range(data.n_problems):
            inner = V[p] @ Kz @ result.state.beta[:-1, p]
            scale = np.sqrt(result.state.primal[p])
            np.testing.assert_allclose(inner, 0.0, atol=1e-6 * max(1.0, scale))
        optimum = data.optima(Z, V).sum()
        assert result.converged
        assert result.certificate.primal == pytest.approx(optimum, rel=1e-6)
        assert result.certificate.dual <= optimum * (1 + 1e-9)
        assert optimum > data.optima(Z).sum() * (1 + 1e-9)


# ---------------------------------------------------------------- interrupts


@dataclass
class Interrupting:
    """A kernel that is interrupted at its n-th block of values."""

    kernel: Any
    at: int
    seen: int = 0

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def block(self, X, Z, out=None):
        self.seen += 1
        if self.seen == self.at:
            raise KeyboardInterrupt
        return self.kernel.block(X, Z, out=out)

    def checked_block(self, X, Z, out):
        return Kernel.checked_block(self, X, Z, out)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("room", [10**8, 0])
def test_an_interrupt_anywhere_leaves_a_machine_with_a_true_certificate(dtype, room):
    data = random_data(25, n=300)
    data = replace(data, C=np.full(1, 1.0))
    options = {"dtype": dtype, "room": room, "memory": 30_000, "max_vectors": 20, "tol": 1e-4}
    options["sizes"] = SpanSizes(first_vectors=5)
    kernel = Interrupting(data.kernel, -1)
    data.fit("core", kernel=kernel, **options)
    interrupted = 0
    for at in np.unique(np.linspace(1, kernel.seen, 12).astype(int)):
        try:
            solver, result = data.fit("core", kernel=Interrupting(data.kernel, at), **options)
        except KeyboardInterrupt:
            continue  # before there was a machine at all
        interrupted += result.certificate.stopped == "interrupted"
        Z, beta = solver.basis.vectors.values, result.state.beta
        assert len(beta) == len(Z) + 1
        # A second look may be interrupted too, and then speaks of a sample.
        if result.certificate.scope == "span":
            primal, optimum = data.objectives(Z, beta).sum(), data.optima(Z).sum()
            assert (primal - optimum) / primal <= result.certificate.gap + 1e-7
            assert result.certificate.primal == pytest.approx(primal, rel=1e-4)
    assert interrupted > 3


def test_an_interrupt_of_any_stage_of_a_step_leaves_a_valid_machine(monkeypatch):
    data = wide_data()
    stages = [
        (shard, "advance"),
        (shard, "along"),
        (shard, "blend"),
        (Curvature, "form"),
        (Curvature, "solve"),
        (LowerBound, "improved"),
        (KernelValues, "swap"),
    ]
    for owner, name in stages:
        for at in (1, 2, 5, 8):
            with monkeypatch.context() as patch:
                plain, calls = getattr(owner, name), []

                def once(*args, plain=plain, calls=calls, at=at, **kwargs):
                    calls.append(1)
                    if len(calls) == at:
                        raise KeyboardInterrupt
                    return plain(*args, **kwargs)

                patch.setattr(owner, name, once)
                try:
                    solver, result = data.fit("random", memory=40_000, max_vectors=3)
                except KeyboardInterrupt:
                    assert at == 1  # at the start, or while the answer was made good
                    continue
            Z, beta = solver.basis.vectors.values, result.state.beta
            if result.certificate.scope != "span":
                continue
            primal, optimum = data.objectives(Z, beta).sum(), data.optima(Z).sum()
            assert result.certificate.primal == pytest.approx(primal, rel=1e-9), (name, at)
            assert (primal - optimum) / primal <= result.certificate.gap + 1e-12, (name, at)


def test_a_sample_that_misjudges_steps_is_not_asked_again():
    # Room for the kernel values of a few rows, which say how long steps are; in some searches
    # every second step rose, for ever.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    folds = Folds(list(StratifiedKFold(3).split(X, y)), np.ones(len(y)))
    problem = problem_of(X, y, gamma=0.5, memory=12_000_000, folds=folds)
    searched = problem.in_folds(folds, np.array([0.1, 1.0]))
    options = SpanOptions(
        memory=12_000_000, prove=False, max_iter=100, patience=100, seed=209652396
    )
    solver, result = solve_in_span(searched, options)
    assert not solver.shards.complete
    assert result.converged


@pytest.mark.parametrize("gamma", [1e-10, 1e-7])
def test_vectors_that_add_no_dimension_change_nothing(gamma):
    # To a kernel as wide as this all rows are nearly one: most draws of vectors add none.
    X = np.random.default_rng(0).standard_normal((600, 3))
    y = (X[:, 0] > 0).astype(int)
    found = MarginClassifier(C=100.0, gamma=gamma, engine="span").fit(X, y)
    assert 1 <= found.certificate_.n_vectors < 30
    assert np.isfinite(found.decision_function(X)).all()
