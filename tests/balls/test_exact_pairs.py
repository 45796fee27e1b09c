"""The exact machines of pairs of classes: each is the machine of two classes on their rows."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from tests.reference.problems import problem_of
from tests.reference.svm import leeway, machine_objectives, rbf
from widemargin import MarginClassifier
from widemargin.balls import exact_pairs, growing_set
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.balls.exact_pairs import ExactPairs, fit_exact_pairs
from widemargin.balls.growing_set import GrowingSet
from widemargin.expansion import MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Deadline, Ended
from widemargin.problem import one_vs_one
from widemargin.qp.margin_dual import solve_margin_dual


def _rows(n=240, n_classes=4, n_features=3, spread=1.5, seed=0):
    return make_blobs(n, n_features, centers=n_classes, cluster_std=spread, random_state=seed)


def _pairs(**parameters):
    known = {"engine": "exact", "multi_class": "ovo", "decision_function_shape": "ovo"}
    return MarginClassifier(**known | {"gamma": 0.3, "n_jobs": 1} | parameters)


def _two(**parameters):
    return MarginClassifier(**{"engine": "exact", "gamma": 0.3, "n_jobs": 1} | parameters)


def _assert_two_class_machines(found, X, y, weight=None, given=None, **parameters):
    """Every column is the machine of two classes, up to what the gaps of both allow."""
    values = found.decision_function(X if given is None else given)
    weight = np.ones(len(y)) if weight is None else weight
    names = found.classes_
    assert values.shape == (len(y), len(names) * (len(names) - 1) // 2)
    for p, (a, b) in enumerate(combinations(names, 2)):
        own = np.flatnonzero((y == a) | (y == b))
        # Of two classes the second is positive, of a pair the first.
        if given is None:
            two = _two(**parameters).fit(X[own], y[own] == a, weight[own])
            expected = two.decision_function(X)
        else:
            two = _two(**parameters).fit(given[np.ix_(own, own)], y[own] == a, weight[own])
            expected = two.decision_function(given[:, own])
        # Both are within their gaps of the optimum; see `leeway`.
        close = 4.0 * np.sqrt(parameters["tol"] * two.certificate_.primal) + 1e-6
        assert_allclose(values[:, p], expected, rtol=0, atol=close)


# What it equals.


@pytest.mark.parametrize("n_classes", [3, 4, 5, 6])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_every_pair_is_the_machine_of_two_classes(n_classes, C):
    X, y = _rows(40 * n_classes, n_classes)
    found = _pairs(C=C, tol=1e-6).fit(X, y)
    assert (found.multi_class_, found.engine_) == ("ovo", "exact")
    assert found.certificate_.gap <= 1e-6
    _assert_two_class_machines(found, X, y, C=C, tol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "inverse_distance"])
def test_other_kernels(kernel):
    X, y = _rows(120, 3)
    parameters = {"kernel": kernel, "coef0": 1.0, "degree": 2, "tol": 1e-9}
    found = _pairs(**parameters).fit(X, y)
    values = found.decision_function(X)
    for p, (a, b) in enumerate(combinations(range(3), 2)):
        own = (y == a) | (y == b)
        two = _two(**parameters).fit(X[own], y[own] == a)
        expected = two.decision_function(X)
        # The gap of 1e-9 allows for more where values are large.
        assert_allclose(values[:, p], expected, atol=1e-3 * np.abs(expected).max())


def test_a_linear_machine_is_that_of_liblinear():
    X, y = _rows(150, 3)
    found = _pairs(kernel="linear", tol=1e-11, C=0.3).fit(X, y)
    values = found.decision_function(X)
    for p, (a, b) in enumerate(combinations(range(3), 2)):
        own = (y == a) | (y == b)
        theirs = LinearSVC(C=0.3, dual=False, tol=1e-12).fit(X[own], y[own] == a)
        assert_allclose(values[:, p], theirs.decision_function(X), atol=1e-4)


def test_weights_and_weights_of_classes():
    X, y = _rows(160, 4)
    weight = np.random.default_rng(0).uniform(0.1, 4.0, size=len(y))
    factor = {0: 1.0, 1: 3.0, 2: 0.5, 3: 2.0}
    found = _pairs(class_weight=factor, tol=1e-7).fit(X, y, weight)
    in_all = weight * np.array([factor[label] for label in y])
    _assert_two_class_machines(found, X, y, in_all, tol=1e-7)
    # A weight of k is k copies.
    counts = np.random.default_rng(1).integers(0, 4, size=len(y))
    weighted = _pairs().fit(X, y, counts)
    copied = _pairs().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_array_equal(weighted.decision_function(X), copied.decision_function(X))


def test_sparse_rows_are_rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(150, 12)) < 0.3, rng.normal(size=(150, 12)), 0.0)
    y = np.digitize(X.sum(axis=1), [-0.7, 0.7])
    dense, stored = (_pairs(tol=1e-8).fit(each, y) for each in (X, sparse.csr_array(X)))
    assert sparse.issparse(stored.support_vectors_)
    assert_array_equal(stored.support_, dense.support_)
    assert_allclose(
        stored.decision_function(sparse.csr_array(X)),
        dense.decision_function(X),
        atol=leeway(stored, dense),
    )
    _assert_two_class_machines(dense, X, y, tol=1e-8)


def test_precomputed_kernels():
    X, y = _rows(120, 3)
    K = rbf_kernel(X, gamma=0.3)
    given = _pairs(kernel="precomputed", tol=1e-9).fit(K, y)
    rows = _pairs(tol=1e-9).fit(X, y)
    assert_allclose(given.decision_function(K), rows.decision_function(X), atol=1e-3)
    assert_allclose(given.certificate_.primal, rows.certificate_.primal, rtol=1e-8)


def test_classes_with_one_row():
    X, y = _rows(80, 3)
    X, y = np.vstack([X, [[20.0, 20, 20], [-20, 20, 0]]]), np.append(y, [7, 8])
    found = _pairs(tol=1e-8, C=10.0).fit(X, y)
    assert_array_equal(found.classes_, [0, 1, 2, 7, 8])
    _assert_two_class_machines(found, X, y, C=10.0, tol=1e-8)
    # The pair of two rows alone, in closed form: α(k(x, x) + 1 + 1/2C) = 1, for k(x, x') = 0.
    last = found.decision_function(X[-2:])[:, -1]
    k = rbf_kernel(X[-2:], gamma=0.3)[0, 1]
    assert_allclose(last, np.array([1, -1]) * (1 - k) / (1 - k + 1 / 20), atol=1e-4)


def test_equal_rows_of_different_classes():
    X, y = _rows(60, 3)
    both = _pairs(tol=1e-9).fit(np.vstack([X, X]), np.concatenate([y, (y + 1) % 3]))
    _assert_two_class_machines(both, np.vstack([X, X]), np.concatenate([y, (y + 1) % 3]), tol=1e-9)


# What it keeps and says.


def test_the_attributes_are_the_machine():
    X, y = _rows(200, 4)
    found = _pairs(C=2.0).fit(X, y)
    assert found.dual_coef_.shape == (6, len(found.support_))
    assert found.intercept_.shape == (6,)
    assert_array_equal(found.support_vectors_, X[found.support_])
    assert_array_equal(found.n_support_, np.bincount(y[found.support_], minlength=4))
    assert_array_equal(y[found.support_], np.repeat(np.arange(4), found.n_support_))
    table = one_vs_one(4)
    signs = table[y[found.support_]].T
    assert (found.dual_coef_ * signs >= 0).all()
    assert not found.dual_coef_[signs == 0].any()
    assert_allclose(found.intercept_, found.dual_coef_.sum(axis=1), rtol=1e-12)
    new = np.random.default_rng(3).normal(scale=5.0, size=(50, 3))
    by_hand = rbf_kernel(new, found.support_vectors_, gamma=0.3) @ found.dual_coef_.T
    assert_allclose(found.decision_function(new), by_hand + found.intercept_, atol=1e-10)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
def test_the_certificate_is_that_of_the_sum(tol):
    X, y = _rows(200, 4)
    found = _pairs(C=3.0, tol=tol).fit(X, y)
    proved = found.certificate_
    assert proved.gap <= tol
    reached = machine_objectives(found, rbf(0.3), X, y)
    # Values of the kernel are float32 where that is enough.
    assert_allclose(proved.primal, reached, rtol=max(1e-9, 0.1 * tol))
    finest = _pairs(C=3.0, tol=1e-11).fit(X, y).certificate_
    assert proved.dual <= finest.primal * (1 + 0.1 * tol)
    assert finest.dual <= proved.primal * (1 + 0.1 * tol)


def test_the_bits_do_not_depend_on_threads():
    X, y = _rows(900, 6)
    one = _pairs(C=5.0, n_jobs=1).fit(X, y)
    for n_jobs in (2, 3, 4):
        other = _pairs(C=5.0, n_jobs=n_jobs).fit(X, y)
        assert_array_equal(other.support_, one.support_)
        assert_array_equal(other.dual_coef_, one.dual_coef_)
        assert_array_equal(other.decision_function(X), one.decision_function(X))


def test_warm_starts_end_where_cold_fits_do():
    X, y = _rows(300, 4)
    path = _pairs(warm_start=True, tol=1e-9)
    for C in (0.1, 1.0, 10.0):
        path.set_params(C=C).fit(X, y)
        cold = _pairs(C=C, tol=1e-9).fit(X, y)
        assert_allclose(path.certificate_.primal, cold.certificate_.primal, rtol=1e-8)
        assert_allclose(path.decision_function(X), cold.decision_function(X), atol=1e-3)
    # From classes against the rest, of which there are as many as pairs of three.
    X, y = _rows(150, 3)
    path = _pairs(warm_start=True, tol=1e-9, multi_class="ovr").fit(X, y)
    path.set_params(multi_class="ovo").fit(X, y)
    cold = _pairs(tol=1e-9).fit(X, y)
    assert_allclose(path.decision_function(X), cold.decision_function(X), atol=1e-3)


def test_little_memory_gives_the_same_machines():
    X, y = _rows(600, 4)
    plenty = _pairs(tol=1e-8).fit(X, y)
    # Kernel values inside classes are made again for each pair, or one pair after another is cut.
    for memory in ("6MB", "2MB"):
        little = _pairs(tol=1e-8, memory=memory, n_jobs=2).fit(X, y)
        assert little.certificate_.gap <= 1e-8
        assert_allclose(little.certificate_.primal, plenty.certificate_.primal, rtol=1e-7)
        assert_allclose(little.decision_function(X), plenty.decision_function(X), atol=1e-3)


def test_a_budget_of_vectors_is_shared_out_among_pairs():
    X, y = _rows(600, 3)
    with pytest.warns(ConvergenceWarning, match="max_vectors"):
        found = _pairs(C=10.0, max_vectors=60).fit(X, y)
    assert len(found.support_) <= 60
    assert found.score(X, y) > 0.7
    with pytest.raises(ValueError, match=r"max_vectors=5 is less than 2 for each of 3 pairs"):
        _pairs(max_vectors=5).fit(X, y)


# Limits.


def _stated(X, y, **known):
    problem = problem_of(X, y, gamma=0.3, **known)
    return problem.with_signs(one_vs_one(len(problem.table)))


def test_no_time_is_a_machine_without_vectors():
    X, y = _rows(600, 6)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found = _pairs(max_time=1e-9).fit(X, y)
    assert found.certificate_.gap == 1.0
    assert np.isfinite(found.decision_function(X)).all()
    assert found.predict(X).shape == (600,)


def test_a_deadline_in_between_leaves_the_pairs_that_are_done(monkeypatch):
    X, y = _rows(300, 8)
    problem = _stated(X, y)
    options = MachineOptions(deadline=Deadline.after(1e6), threads=1, memory=10**9)
    monkeypatch.setattr(exact_pairs, "_RUN", 1)
    monkeypatch.setattr(exact_pairs, "_AT_A_TIME", 4)
    solved = ExactPairs._solved_on_whole

    def slow(self, run):
        found = solved(self, run)
        if 5 in run:
            self.options.deadline.interrupt()
        return found

    monkeypatch.setattr(ExactPairs, "_solved_on_whole", slow)
    found = fit_exact_pairs(problem, options)
    assert found.stop.kind in (Ended.MAX_TIME, Ended.INTERRUPTED)
    done = found.coef.any(axis=0)
    assert done[:6].all()
    assert not done.all()
    assert found.certificate.gap > 0.1
    monkeypatch.undo()
    whole = fit_exact_pairs(problem, MachineOptions(threads=1, memory=10**9))
    full = np.zeros((2, problem.n, problem.n_problems))
    full[0, found.index], full[1, whole.index] = found.coef, whole.coef
    assert_array_equal(full[0][:, done], full[1][:, done])
    # The primal value is that of the machines handed out, those without vectors included.
    assert found.certificate.primal >= whole.certificate.primal
    assert found.certificate.dual <= whole.certificate.primal


def test_an_interrupt_is_a_warning_and_a_machine(monkeypatch):
    X, y = _rows(300, 8)
    monkeypatch.setattr(exact_pairs, "_RUN", 1)
    monkeypatch.setattr(exact_pairs, "_AT_A_TIME", 4)
    solved, calls = ExactPairs._solved_on_whole, []

    def interrupted(self, run):
        calls.append(run)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return solved(self, run)

    monkeypatch.setattr(ExactPairs, "_solved_on_whole", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupt"):
        found = _pairs().fit(X, y)
    assert found.dual_coef_[:4].any(axis=1).all()
    assert not found.dual_coef_[10:].any()
    assert np.isfinite(found.decision_function(X)).all()


# Sets that grow.


def _growing(X, y, tol, C=1.0, dtype=np.float64):
    problem = problem_of(X, y, gamma=0.02, C=C)
    precision = Precision.in_type(dtype, problem, largest_norm2(problem))
    index = np.arange(problem.n)
    sign, ridge = problem.sign(0), problem.ridge(0)
    between = KernelBetween.of(problem.kernel, problem.rows, dtype)
    return GrowingSet(between, index, sign, ridge, precision, tol), problem


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_growing_set_is_the_machine_of_the_whole_matrix(tol):
    # Far apart: few rows support the machine.
    X, y = make_blobs(2000, centers=[[0, 0], [6, 0]], cluster_std=1.0, random_state=0)
    growing, problem = _growing(X, y, tol)
    found = growing.solved(None, Deadline())
    assert found.gap <= tol
    # Not many more than the values of the support vectors with all rows.
    n_support = np.count_nonzero(found.alpha)
    assert 0 < growing.n_kernel < 2 * (n_support + 100) * problem.n
    assert growing.n_kernel < problem.n**2
    assert (found.alpha >= 0).all()
    K = rbf_kernel(problem.rows.take(np.arange(problem.n)), gamma=0.02)
    whole = solve_margin_dual(K, problem.sign(0), problem.ridge(0), gap=1e-12)
    best = whole.objectives()[1]
    assert best * (1 - 1e-9) <= found.primal <= best / (1 - tol) * (1 + 1e-9)
    assert best * (1 - tol) * (1 - 1e-9) <= found.dual <= best * (1 + 1e-9)
    # The certificate is that of the point, computed from scratch.
    values = K @ (problem.sign(0) * found.alpha) + (problem.sign(0) * found.alpha).sum()
    slack = np.maximum(0.0, 1.0 - problem.sign(0) * values)
    assert_allclose(growing.margin, problem.sign(0) * values, rtol=1e-9)
    norm2 = (problem.sign(0) * found.alpha) @ values
    primal = 0.5 * norm2 + 0.5 * (slack**2 / problem.ridge(0)).sum()
    assert_allclose(found.primal, primal, rtol=1e-10)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_what_is_proved_is_that_of_the_point_however_early_it_ends(rounds, monkeypatch):
    monkeypatch.setattr(growing_set, "_MOST_ROUNDS", rounds)
    X, y = make_blobs(2000, centers=[[0, 0], [4, 0]], cluster_std=1.0, random_state=0)
    growing, problem = _growing(X, y, 1e-9)
    found = growing.solved(None, Deadline())
    assert found.gap > 1e-9
    sign, ridge = problem.sign(0), problem.ridge(0)
    K = rbf_kernel(problem.rows.take(np.arange(problem.n)), gamma=0.02)
    margin = sign * (K @ (sign * found.alpha) + (sign * found.alpha).sum())
    loss = 0.5 * (np.maximum(0.0, 1.0 - margin) ** 2 / ridge).sum()
    assert_allclose(found.primal, 0.5 * found.alpha @ margin + loss, rtol=1e-9)
    assert_allclose(growing.margin, margin, rtol=1e-7)


def test_a_set_that_would_be_most_rows_is_given_up():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 3)), rng.integers(2, size=1500)
    growing, problem = _growing(X, y, 1e-3)
    assert growing.solved(None, Deadline()).gap > 1e-3
    assert growing.n_kernel < problem.n**2
    few, _ = _growing(X[:50], y[:50], 1e-3)
    assert few.solved(None, Deadline()).gap == 1.0
    assert few.n_kernel == 0


def test_pairs_with_few_support_vectors_are_those_of_whole_matrices(monkeypatch):
    X, y = make_blobs(2400, centers=[[0, 0], [8, 0], [0, 8]], random_state=1)
    whole_matrix = _pairs(tol=1e-7, gamma=0.02).fit(X, y)
    # As if the kernel values of all rows did not fit into memory.
    monkeypatch.setattr(exact_pairs, "_WHOLE_SHARE", 0.0)
    whole = _pairs(tol=1e-7, gamma=0.02).fit(X, y)
    monkeypatch.setattr(exact_pairs, "_WORTH_A_SET", 0)
    grown = _pairs(tol=1e-7, gamma=0.02).fit(X, y)
    assert grown.certificate_.n_kernel < whole.certificate_.n_kernel
    assert grown.certificate_.gap <= 1e-7
    assert_allclose(grown.certificate_.primal, whole.certificate_.primal, rtol=2e-7)
    assert_allclose(grown.decision_function(X), whole.decision_function(X), atol=1e-3)
    assert_allclose(whole_matrix.certificate_.primal, whole.certificate_.primal, rtol=2e-7)
    assert_allclose(whole_matrix.decision_function(X), whole.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("run", [1, 2_000, 10**9])
def test_runs_of_pairs_are_the_pairs_one_by_one(run, monkeypatch):
    X, y = _rows(300, 8)
    one_by_one = _pairs(tol=1e-6).fit(X, y)
    monkeypatch.setattr(exact_pairs, "_RUN", run)
    in_runs = _pairs(tol=1e-6).fit(X, y)
    assert_array_equal(in_runs.dual_coef_, one_by_one.dual_coef_)
    assert in_runs.certificate_.primal == one_by_one.certificate_.primal


def test_inside_a_run_pairs_are_solved_again_where_float32_is_not_enough(monkeypatch):
    X, y = make_blobs(240, centers=[[0, 0], [0.5, 0], [8, 0]], random_state=1)
    again = []
    solved = ExactPairs._solved

    def counted(self, pair, alpha, precisions):
        again.append(pair)
        return solved(self, pair, alpha, precisions)

    monkeypatch.setattr(ExactPairs, "_solved", counted)
    found = _pairs(C=100.0, tol=1e-3).fit(X, y)
    # The first two classes overlap, so that coefficients are large; the third is far away.
    assert again == [0]
    assert found.certificate_.gap <= 1e-3
    _assert_two_class_machines(found, X, y, C=100.0, tol=1e-3)
