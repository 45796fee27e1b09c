"""The exact machine, on the matrix of kernel values and without one, against the reference dual."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference import svm
from tests.reference.ball_problems import stated_problem
from tests.reference.kernels import block as plain_block
from widemargin.balls import cost_of_exact, fit_exact, fit_on_set
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.balls.exact import ExactMatrix
from widemargin.balls.matrix_free import MatrixFree
from widemargin.expansion import Earlier, MachineOptions
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline, Ended, Limits, run
from widemargin.problem import one_vs_rest
from widemargin.qp.margin_dual import solve_margin_dual

N_ROWS = 96  # whose matrix does not fit into 100 kB
SOLVERS = {"matrix": ExactMatrix, "no matrix": MatrixFree}
PARAMETERS = {"gamma": 0.5, "degree": 2, "coef0": 1.0}


@cache
def data(seed=0, n=N_ROWS, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ rng.normal(size=(4, n_classes)) + 0.7 * rng.normal(size=(n, n_classes))
    code = scores.argmax(axis=1)
    code[:n_classes] = np.arange(n_classes)
    return X, code, rng.uniform(0.2, 3.0, n)


def stated(C, seed=0, n=N_ROWS, n_classes=3, kernel="rbf", memory=10**5, threads=1):
    X, code, weight = data(seed, n, n_classes)
    table = one_vs_rest(n_classes)
    made = make_kernel(kernel, **PARAMETERS)
    return stated_problem(X, code, weight, C, made, table, memory, threads)


@cache
def optimum(C, seed=0, n_classes=3, kernel="rbf"):
    """The least objective of all problems together, and that of each."""
    X, code, weight = data(seed, N_ROWS, n_classes)
    K = plain_block(kernel, X, X, **PARAMETERS)
    values = []
    for sign in one_vs_rest(n_classes)[code].T:
        Q = svm.signed_kernel(K, sign, C, weight)
        values.append(-svm.dual_value(Q, svm.l2svm_dual_exact(Q)))
    return sum(values), values


def primals(problem, index, coef, intercept, kernel="rbf"):
    """The objectives of machines from scratch."""
    X = problem.rows.take(np.arange(problem.n))
    K, found = plain_block(kernel, X, X, **PARAMETERS), []
    for p, sign in enumerate(problem.signs().T):
        beta = np.zeros(problem.n)
        beta[index] = coef[:, p]
        C, weight = problem.C[p], problem.weight
        found.append(svm.l2svm_objective_primal(K, sign, C, weight, beta, intercept[p]))
    return np.array(found)


def solver_of(name, problem, **options):
    given = MachineOptions(**{"memory": 10**5, "tol": 1e-6} | options)
    precision = Precision.of(problem, largest_norm2(problem), given.tol)
    return SOLVERS[name](problem, precision, given)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e3])
def test_the_machines_are_those_of_the_reference_dual(name, C):
    problem, (best, each) = stated(C), optimum(C)
    solver = solver_of(name, problem)
    result = run(solver, Limits(2000))
    assert result.converged and result.stop.reason == "gap within 1e-06"
    certificate = result.certificate
    assert certificate.dual <= best * (1 + 1e-9) and certificate.primal >= best * (1 - 1e-9)
    assert certificate.gap <= 1e-6
    alpha = solver.alpha(result.state)
    coef = (alpha * problem.signs().T).T
    found = primals(problem, np.arange(N_ROWS), coef, coef.sum(axis=0))
    np.testing.assert_allclose(found, each, rtol=1.1e-6)
    assert certificate.primal == pytest.approx(found.sum(), rel=1e-9)
    assert certificate.scope == "full"
    assert certificate.n_vectors == np.count_nonzero(alpha.any(axis=0))


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_both_ways_find_the_same_machine_for_any_kernel_and_number_of_classes(kernel, n_classes):
    problem, (best, _) = (
        stated(1.0, 1, N_ROWS, n_classes, kernel),
        optimum(1.0, 1, n_classes, kernel),
    )
    values = []
    for name in SOLVERS:
        solver = solver_of(name, problem, tol=1e-8)
        result = run(solver, Limits(2000))
        assert result.converged
        assert result.certificate.primal == pytest.approx(best, rel=1e-7)
        values.append((solver.alpha(result.state) * problem.signs().T).sum(axis=1))
    np.testing.assert_allclose(*values, atol=1e-2)


@pytest.mark.parametrize("memory", [10**5, 3 * 10**5, 10**6])
def test_the_memory_that_there_is_does_not_change_the_answer(memory):
    problem = stated(10.0, memory=memory)
    fitted = fit_exact(problem, MachineOptions(tol=1e-6, memory=memory))
    assert fitted.stop.kind is Ended.SOLVED and fitted.certificate.gap <= 1e-6
    found = primals(problem, fitted.index, fitted.coef, fitted.intercept)
    np.testing.assert_allclose(found, optimum(10.0)[1], rtol=1.1e-6)
    np.testing.assert_array_equal(fitted.vectors, problem.rows.take(fitted.index))
    np.testing.assert_allclose(fitted.intercept, fitted.coef.sum(axis=0))


def test_a_certificate_holds_wherever_the_fit_is_cut_off():
    problem, (best, _) = stated(1e2), optimum(1e2)
    for name in SOLVERS:
        for most in (1, 2, 3, 5, 9):
            solver = solver_of(name, problem)
            result = run(solver, Limits(most))
            coef = (solver.alpha(result.state) * problem.signs().T).T
            true = primals(problem, np.arange(N_ROWS), coef, coef.sum(axis=0)).sum()
            assert result.certificate.primal == pytest.approx(true, rel=1e-9)
            assert result.certificate.dual <= best * (1 + 1e-9)
            assert result.certificate.gap >= (true - best) / true - 1e-9


@pytest.mark.parametrize("name", SOLVERS)
def test_an_earlier_solution_needs_no_step_and_a_near_one_few(name):
    problem = stated(10.0)
    solver = solver_of(name, problem)
    result = run(solver, Limits(500))
    alpha = solver.alpha(result.state)
    index = np.flatnonzero(alpha.any(axis=0))
    coef = alpha[:, index].T * problem.signs(index)
    start = Earlier(index, coef, coef.sum(axis=0))
    again = run(solver_of(name, problem, tol=1e-5, earlier=start), Limits(500))
    assert again.converged and again.certificate.n_iter == 1
    near = run(solver_of(name, stated(11.0), earlier=start), Limits(500))
    assert near.converged and near.certificate.n_iter <= result.certificate.n_iter


@pytest.mark.parametrize("name", SOLVERS)
def test_the_number_of_threads_does_not_change_a_bit(name):
    answers = []
    for threads in (1, 3):
        problem = stated(1.0, n=900, threads=threads)
        solver = solver_of(name, problem, tol=1e-3, threads=threads)
        answers.append(solver.alpha(run(solver, Limits(4)).state))
    np.testing.assert_array_equal(*answers)


def test_weight_two_equals_a_repeated_row():
    X, code, weight = data()
    twice = np.repeat(np.arange(N_ROWS), 2)
    kernel, table = make_kernel("rbf", **PARAMETERS), one_vs_rest(3)
    copies = stated_problem(X[twice], code[twice], weight[twice], 3.0, kernel, table)
    heavy = stated_problem(X, code, 2.0 * weight, 3.0, kernel, table)
    for memory in (10**5, 10**8):
        options = MachineOptions(tol=1e-8, memory=memory)
        duals = [fit_exact(each, options).certificate.dual for each in (copies, heavy)]
        assert duals[0] == pytest.approx(duals[1], rel=1e-7)


def test_what_cannot_be_refined_at_this_precision_is_said():
    for name in SOLVERS:
        result = run(solver_of(name, stated(1e3), tol=1e-17), Limits(3000))
        assert result.stop.kind is Ended.PRECISION and not result.converged
        assert result.certificate.gap <= 1e-8


# ---------------------------------------------------------------- the engine


def test_where_few_rows_support_the_machine_their_matrix_is_enough():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    code = (X[:, 0] > 0).astype(np.intp)
    kernel = make_kernel("rbf", gamma=0.5)
    problem = stated_problem(X, code, np.ones(800), 100.0, kernel, memory=10**6)
    small = fit_exact(problem, MachineOptions(tol=1e-4, memory=10**6))
    whole = fit_exact(problem, MachineOptions(tol=1e-4, memory=10**9))
    assert small.stop.kind is whole.stop.kind is Ended.SOLVED
    assert small.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-4)
    # Fewer values than the matrix has, with room for it or not.
    assert max(small.certificate.n_kernel, whole.certificate.n_kernel) < 800**2
    assert len(small.index) <= 1.5 * len(whole.index) < 200


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_a_set_of_rows_is_the_machine_where_few_support_it(kernel, threads):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    code = (X[:, 0] + 0.2 * X[:, 1] ** 2 > 0.3).astype(np.intp)
    weight = rng.uniform(0.5, 2.0, 3000)
    made = make_kernel(kernel, gamma=0.3)
    problem = stated_problem(X, code, weight, 10.0, made, memory=10**9, threads=threads)
    options = MachineOptions(tol=1e-5, memory=10**9, threads=threads)
    found, expected = fit_on_set(problem, options)
    assert found.stop.kind is Ended.SOLVED and found.certificate.gap <= 1e-5
    assert 0.3 * len(found.index) < expected < 3.0 * len(found.index)
    assert found.certificate.n_kernel < 0.6 * 3000**2
    matrix = run(
        ExactMatrix(
            problem, Precision.in_type(np.float64, problem, largest_norm2(problem)), options
        ),
        Limits(100, Deadline()),
    )
    assert found.certificate.primal == pytest.approx(matrix.certificate.primal, rel=2e-5)


def test_a_set_of_too_many_rows_is_given_up_and_says_how_many_it_expects():
    rng = np.random.default_rng(0)
    X, code = rng.normal(size=(2000, 3)), rng.integers(2, size=2000)
    problem = stated_problem(
        X, code, np.ones(2000), 1.0, make_kernel("rbf", gamma=0.5), memory=10**9
    )
    options = MachineOptions(memory=10**9)
    found, expected = fit_on_set(problem, options)
    assert found.stop.kind is Ended.CAPACITY
    assert expected > 1000


@pytest.mark.parametrize(
    ("n_features", "gamma", "C"),
    [(400, 1 / 400, 1.0), (400, 1 / 400, 100.0), (3, 0.5, 1.0), (3, 0.5, 100.0)],
)
def test_a_sample_tells_what_the_exact_machine_will_cost(n_features, gamma, C):
    # Updates alone, or factors of nearly all rows: a hundred times as much work.
    rng = np.random.default_rng(0)
    n = 3000
    X = rng.normal(size=(n, n_features))
    code = (X @ rng.normal(size=n_features) + np.sqrt(n_features) * rng.normal(size=n) > 0) * 1
    kernel = make_kernel("rbf", gamma=gamma)
    problem = stated_problem(X, code, np.ones(n), C, kernel, memory=10**9)
    K = kernel.block(X, X).astype(np.float32)
    taken = solve_margin_dual(K, problem.sign(0), problem.ridge(0), gap=1e-2).cost
    assert taken / 4 < cost_of_exact(problem, 1000) < 4 * taken


def test_kernel_values_count_as_many_as_there_are_support_vectors():
    # Wide rows of two far apart classes: the matrix of all of them is never made.
    rng = np.random.default_rng(0)
    n, n_features = 3000, 2000
    code = rng.integers(2, size=n)
    X = 0.1 * rng.normal(size=(n, n_features)) + code[:, None]
    kernel = make_kernel("rbf", gamma=1 / n_features)
    problem = stated_problem(X, code, np.ones(n), 100.0, kernel, memory=10**9)
    assert cost_of_exact(problem, 1000) < 0.25 * n**2 * n_features


def test_where_too_many_rows_support_it_the_fit_goes_on_without_a_matrix():
    problem, seen = stated(1.0, n=400, memory=10**5), []
    options = MachineOptions(tol=1e-5, memory=10**5, report=seen.append)
    fitted = fit_exact(problem, options)
    assert fitted.stop.kind is Ended.SOLVED and fitted.certificate.gap <= 1e-5
    whole = fit_exact(problem, MachineOptions(tol=1e-5, memory=10**9))
    assert fitted.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-5)
    assert len(fitted.index) > 110  # more than 100 kB have room for
    # Steps and costs are counted on.
    steps = [certificate.n_iter for certificate in seen]
    assert steps == list(range(1, len(seen) + 1)) and fitted.certificate.n_iter == steps[-1]
    values = [certificate.n_kernel for certificate in seen]
    assert values == sorted(values) and fitted.certificate.n_kernel >= values[-1]


@pytest.mark.parametrize("most", [1, 2, 4, 6])
def test_max_iter_counts_the_steps_of_both_ways_together(most):
    problem = stated(1.0, n=400, memory=10**5)
    fitted = fit_exact(problem, MachineOptions(tol=1e-9, memory=10**5, max_iter=most))
    assert fitted.stop.kind is Ended.MAX_ITER
    assert fitted.certificate.stopped == fitted.stop.reason == f"max_iter={most} reached"
    assert fitted.certificate.n_iter == most


@pytest.mark.parametrize("memory", [10**5, 10**9])
def test_a_deadline_or_an_interrupt_leaves_a_machine_with_a_true_certificate(memory, monkeypatch):
    problem, (best, _) = stated(1e2), optimum(1e2)
    ends = {Ended.MAX_TIME: Deadline.after(0.0), Ended.INTERRUPTED: Deadline()}
    ends[Ended.INTERRUPTED].interrupt()
    for kind, deadline in ends.items():
        fitted = fit_exact(problem, MachineOptions(tol=1e-9, memory=memory, deadline=deadline))
        assert fitted.stop.kind is kind
        true = primals(problem, fitted.index, fitted.coef, fitted.intercept).sum()
        assert fitted.certificate.primal == pytest.approx(true, rel=1e-9)
        assert fitted.certificate.dual <= best * (1 + 1e-9)


def test_a_budget_of_vectors_is_kept():
    problem = stated(1.0)
    fitted = fit_exact(problem, MachineOptions(tol=1e-6, memory=10**9, max_vectors=40))
    assert fitted.stop.kind is Ended.CAPACITY and fitted.stop.reason == "max_vectors=40 reached"
    assert len(fitted.index) <= 40
    assert fitted.certificate.dual <= optimum(1.0)[0] <= fitted.certificate.primal


def test_memory_that_holds_no_core_set_still_gives_the_machine():
    problem = stated(1.0, memory=10**4)
    fitted = fit_exact(problem, MachineOptions(tol=1e-4, memory=10**4))
    assert fitted.stop.kind is Ended.SOLVED
    found = primals(problem, fitted.index, fitted.coef, fitted.intercept)
    np.testing.assert_allclose(found, optimum(1.0)[1], rtol=1.1e-4)


def test_a_fit_without_a_matrix_takes_little_more_than_its_memory():
    problem = stated(0.01, n=3000, n_classes=2, memory=10**6)
    solver = solver_of("no matrix", problem, memory=10**6, tol=1e-2)
    tracemalloc.start()
    run(solver, Limits(3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A matrix would take 72 MB; coefficients, scores and what is made of them are a few vectors.
    assert peak < 3_000_000


@pytest.mark.parametrize("C", [10.0, 100.0, 1000.0])
def test_two_features_and_a_large_C_take_a_few_steps(C):
    # A matrix of low rank whose coefficients are so large that float32 hides the gap.
    X, code = make_moons(1500, noise=0.3, random_state=4)
    made = make_kernel("rbf", gamma=0.5, degree=3, coef0=0.0)
    table = np.array([[-1.0], [1.0]])
    problem = stated_problem(X, code, np.ones(1500), C, made, table, 10**9, 1)
    found = fit_exact(problem, MachineOptions(tol=1e-3, memory=10**9))
    assert found.stop.kind is Ended.SOLVED
    assert found.certificate.gap <= 1e-3
    assert found.certificate.n_iter <= 6
    K = rbf_kernel(X, gamma=0.5)
    sign = table[code, 0]
    exact = solve_margin_dual(K, sign, np.full(1500, 0.5 / C), gap=1e-9)
    least = exact.objectives()[0]
    assert least * (1 - 1e-6) <= found.certificate.primal <= least * (1 + 1.1e-3)
