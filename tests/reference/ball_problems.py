"""Random problems of enclosing balls, what oracles know of them, and core sets for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.reference import balls as reference
from tests.reference import kernels as plain_kernels
from tests.reference import svm
from widemargin.balls import BatchSizes, CoreOptions, CoreSet, Directions
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.expansion import Earlier
from widemargin.kernels import make_kernel
from widemargin.loop import Limits, run
from widemargin.problem import Problem
from widemargin.rows import as_rows

N_PROBLEMS = 105
EPSILONS = [0.1, 0.01, 0.001]
KERNELS = ["rbf", "linear", "poly", "laplacian", "inverse_squared_distance"]
TWO_CLASSES = np.array([[-1.0], [1.0]])
# Batches and samples smaller than forty rows, as they are on large data.
SMALL_STEPS = BatchSizes(first=4, least=3, sample=6)


@dataclass(frozen=True)
class Case:
    """Labelled rows, and everything about their balls that an oracle knows."""

    problem: Problem
    y: np.ndarray
    K: np.ndarray
    Q: np.ndarray
    P: np.ndarray | None
    # The directions: vectors, and the coefficients of each direction.
    directions: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def eta(self) -> float:
        """The largest squared norm of a point, without regard to the directions."""
        return float(np.diag(self.Q).max())

    @property
    def delta2(self) -> np.ndarray:
        return self.eta - np.diag(self.Q)

    @property
    def signed_P(self) -> np.ndarray | None:
        return None if self.P is None else self.y[:, None] * self.P

    @property
    def deflated(self) -> np.ndarray:
        """Q without the directions."""
        return self.Q if self.P is None else self.Q - self.signed_P @ self.signed_P.T

    def distance(self, alpha: np.ndarray) -> np.ndarray:
        """Distance of every point from the centre with those dual variables."""
        weights = alpha / alpha.sum()
        return np.sqrt(reference.squared_distances(self.Q, weights, self.delta2, self.signed_P))


@cache
def problem(seed: int, directions: int = 0, kernel: str | None = None, n: int | None = None):
    """A random problem: kernel, C, weights, noise and dimension all vary with the seed."""
    rng = np.random.default_rng(seed)
    name = KERNELS[seed % len(KERNELS)] if kernel is None else kernel
    size = int(rng.integers(10, 31)) if n is None else n
    X = rng.normal(size=(size, int(rng.integers(1, 5))))
    y = np.where(X[:, 0] + rng.choice([0.0, 0.5, 5.0]) * rng.normal(size=size) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = rng.uniform(0.2, 3.0, size) if seed % 2 else np.ones(size)
    C = float(10.0 ** rng.uniform(-1.5, 1.5))
    parameters = {"gamma": float(10.0 ** rng.uniform(-1, 0.7)), "degree": 2, "coef0": 1.0}

    def plain(A, B):
        return plain_kernels.block(name, A, B, **parameters)

    given, P = None, None
    if directions:
        vectors = rng.normal(size=(directions + 3, X.shape[1])) * 2.0
        values, basis = np.linalg.eigh(plain(vectors, vectors))
        # The best conditioned directions of the span, in a random rotation. The linear kernel of
        # few features has fewer than were asked for.
        rank = min(directions, int((values > 1e-3 * values[-1]).sum()))
        top = basis[:, -rank:] / np.sqrt(values[-rank:])
        rotation = np.linalg.qr(rng.normal(size=(rank, rank)))[0]
        coef = rotation @ top.T
        given = vectors, coef
        P = plain(X, vectors) @ coef.T
    stated = stated_problem(X, (y > 0).astype(np.intp), weight, C, make_kernel(name, **parameters))
    K = plain(X, X)
    return Case(stated, y, K, svm.signed_kernel(K, y, C, weight), P, given)


def stated_problem(X, code, weight, C, kernel, table=TWO_CLASSES, memory=10**8, threads=1):
    """The problem of dense rows as core sets take it."""
    rows = as_rows(X, memory=memory, threads=threads)
    return Problem.of(rows, kernel, code, table, weight, C)


@cache
def exact_radius2(seed: int, directions: int = 0) -> float:
    p = problem(seed, directions)
    return reference.exact_ball(p.Q, p.delta2, p.signed_P)[1]


@cache
def exact_alpha(seed: int, directions: int = 0, **kwargs: Any) -> np.ndarray:
    return svm.l2svm_dual_exact(problem(seed, directions, **kwargs).deflated)


def exact_value(seed: int, directions: int = 0) -> float:
    return -svm.dual_value(problem(seed, directions).deflated, exact_alpha(seed, directions))


def core_set(
    given: Case | Problem, method: Any, dtype: Any = np.float64, **changes: Any
) -> CoreSet:
    """A core set in float64 that stops by ball unless a gap is asked for."""
    stated = given.problem if isinstance(given, Case) else given
    options = {"growth": "one", "sample_size": None, "by_ball": "tol" not in changes}
    if isinstance(given, Case) and given.P is not None:
        options["directions"] = Directions(np.array([given.P]))
    precision = Precision.in_type(dtype, stated, largest_norm2(stated))
    return CoreSet(stated, method, CoreOptions(**(options | changes)), precision)


def solved(given: Case | Problem, method: Any, limits: Limits | None = None, **changes: Any):
    solver = core_set(given, method, **changes)
    return solver, run(solver, limits or Limits(max_iter=5000))


def earlier(case: Case, index: np.ndarray, alpha: np.ndarray) -> Earlier:
    """Dual variables of some rows as an earlier solution."""
    coef = (alpha * case.y[index])[:, None]
    return Earlier(index, coef, coef.sum(axis=0))


def alpha_of(state: Any, n: int, p: int = 0) -> np.ndarray:
    alpha = np.zeros(n)
    alpha[state.core] = state.alpha()[p]
    return alpha


def primal_of(case: Case, solver: CoreSet, state: Any) -> float:
    """The SVM's objective of the machine that is handed out, in float64 from scratch."""
    machines = solver.machines(state)
    full = np.zeros(len(case.y))
    full[machines.index] = machines.expansion.coef[:, 0]
    K = case.K if case.P is None else case.K - case.P @ case.P.T
    C, weight, bias = case.problem.C[0], case.problem.weight, machines.expansion.intercept[0]
    return svm.l2svm_objective_primal(K, case.y, C, weight, full, bias)
