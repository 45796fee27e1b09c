"""How many vectors a sparse machine has, and where they start."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from widemargin.arrays import Matrix
from widemargin.kernel_between import kernel_values
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.qp import solve_hinge_dual
from widemargin.rows import distinct_rows
from widemargin.span import RandomVectors, as_strategy
from widemargin.sparse.pre_image import Combination
from widemargin.sparse.reduced_start import reduced_set
from widemargin.sparse.sparse_options import SparseOptions

# Rows of each class in a sample, at the least.
_LEAST_OF_A_CLASS = 20
# Share of the memory budget for the kernel matrix of the exact machine.
_MATRIX_SHARE = 0.4
# Gap of the exact machine whose support vectors are counted.
_EXACT_GAP = 1e-6


def first_vectors(problem: Problem, options: SparseOptions, rng: np.random.Generator) -> Matrix:
    """Return the vectors that the problems share to start from."""
    init, n_vectors = options.init, options.n_vectors
    if not isinstance(init, str):
        return np.asarray(init)
    count = int(n_vectors)
    machines: list[Combination] = []
    if init == "reduced_set" or not isinstance(n_vectors, Integral):
        most = int(np.sqrt(_MATRIX_SHARE * options.memory / 4))
        sample = sample_of(problem, min(options.sizes.exact_rows, max(2, most)))
        machines, n_support = _exact_machines(sample, options.deadline)
        if not isinstance(n_vectors, Integral):
            count = max(1, round(n_vectors * n_support))
    count = min(count, problem.n)
    if init == "reduced_set":
        return _reduced_sets(machines, count, rng, options.deadline)
    if init == "distinct":
        return _distinct_rows(problem, count, rng)
    strategy = as_strategy(init, problem.rows.shape[1])
    choice = strategy.begin(problem.rows, problem.kernel, problem.weight, rng)
    return choice.draw(count, None).values.astype(np.float64)


def sample_of(problem: Problem, size: int) -> Problem:
    """Return the problems on a sample of the rows where there are more, some of every class."""
    if problem.n <= size:
        return problem
    n_classes = len(problem.table)
    each = max(1, min(_LEAST_OF_A_CLASS, size // n_classes))
    chosen = np.concatenate([np.flatnonzero(problem.code == c)[:each] for c in range(n_classes)])
    # Rows come in the order of a hash, so that the first ones are a sample.
    others = np.setdiff1d(np.arange(size), chosen)[: max(0, size - len(chosen))]
    return problem.subset(np.sort(np.concatenate([chosen, others])))


def _distinct_rows(problem: Problem, count: int, rng: np.random.Generator) -> Matrix:
    """Return random rows, no two of them equal, whatever their labels."""
    distinct = distinct_rows(problem.rows, np.zeros_like(problem.code), problem.weight)
    choice = RandomVectors().begin(distinct.rows, problem.kernel, distinct.weight, rng)
    return choice.draw(count, None).values.astype(np.float64)


def _reduced_sets(
    machines: list[Combination], count: int, rng: np.random.Generator, deadline: Deadline
) -> Matrix:
    """Return reduced sets of machines, of each of them its part."""
    parts = []
    for p, machine in enumerate(machines):
        share = (count + len(machines) - 1 - p) // len(machines)
        if share:
            parts.append(reduced_set(machine, share, rng, deadline=deadline.part(0.5)))
    return np.concatenate(parts)


def _exact_machines(problem: Problem, deadline: Deadline) -> tuple[list[Combination], int]:
    """Return the hinge-loss SVMs of all problems, and their support vectors together."""
    X = problem.rows.take(np.arange(problem.n)).astype(np.float64)
    K = np.empty((problem.n, problem.n), dtype=np.float32)
    kernel_values(problem.kernel, problem.rows, X, K)
    machines, copies = [], np.zeros(problem.n)
    for p, C in enumerate(problem.C):
        sign = problem.sign(p)
        part = deadline.part(0.5 / (problem.n_problems - p))
        exact = solve_hinge_dual(K, sign, C * problem.weight, tol=_EXACT_GAP, deadline=part)
        support = np.flatnonzero(exact.alpha)
        alpha = exact.alpha[support]
        machines.append(Combination(problem.kernel, X[support], sign[support] * alpha))
        # Equal rows are one row here, with a bound on α of C for each copy.
        of_this = np.maximum(1.0, np.floor(alpha / C + _EXACT_GAP))
        copies[support] = np.maximum(copies[support], of_this)
    return machines, int(copies.sum())
