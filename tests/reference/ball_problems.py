"""Random problems of enclosing balls, what oracles know of them, and core sets for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.reference import balls as reference
from tests.reference import kernels as plain_kernels
from tests.reference import svm
from widemargin.balls import CoreSet, Points, joining
from widemargin.kernels import make_kernel
from widemargin.loop import Limits, run
from widemargin.rows import as_rows

N_PROBLEMS = 105
EPSILONS = [0.1, 0.01, 0.001]
KERNELS = ["rbf", "linear", "poly", "laplacian", "inverse_squared_distance"]


@dataclass(frozen=True)
class Problem:
    """Labelled rows, and everything about their balls that an oracle knows."""

    points: Points
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
    points = Points(
        as_rows(X, memory=10**8, threads=1),
        make_kernel(name, **parameters),
        (y > 0).astype(np.intp),
        np.array([[-1.0], [1.0]]),
        weight,
        C,
        np.arange(size),
        None if P is None else P[None],
    )
    K = plain(X, X)
    return Problem(points, y, K, svm.signed_kernel(K, y, C, weight), P, given)


@cache
def exact_radius2(seed: int, directions: int = 0) -> float:
    p = problem(seed, directions)
    return reference.exact_ball(p.Q, p.delta2, p.signed_P)[1]


@cache
def exact_alpha(seed: int, directions: int = 0, **kwargs: Any) -> np.ndarray:
    return svm.l2svm_dual_exact(problem(seed, directions, **kwargs).deflated)


def exact_value(seed: int, directions: int = 0) -> float:
    return -svm.dual_value(problem(seed, directions).deflated, exact_alpha(seed, directions))


def core_set(points: Points, method: Any, **changes: Any) -> CoreSet:
    options = {
        "growth": "one",
        "sample_size": None,
        "tol": None,
        "capacity": 10_000,
        "capacity_name": "max_vectors=10000",
        "dtype": np.float64,
        "rng": np.random.default_rng(0),
        "threads": 1,
    }
    return CoreSet(points, method, **(options | changes))


def solved(points: Points, method: Any, limits: Limits | None = None, **changes: Any):
    solver = core_set(points, method, **changes)
    return solver, run(solver, limits or Limits(max_iter=5000))


def alpha_of(state: Any, n: int, p: int = 0) -> np.ndarray:
    alpha = np.zeros(n)
    alpha[state.core] = state.alpha()[p]
    return alpha


def primal_of(p: Problem, solver: CoreSet, state: Any) -> float:
    """The SVM's objective of the machine that is handed out, in float64 from scratch."""
    machines, core, beta = solver.machines(state)
    full = np.zeros(len(p.y))
    full[core] = beta[:, 0]
    K = p.K if p.P is None else p.K - p.P @ p.P.T
    weight = p.points.weight
    return svm.l2svm_objective_primal(K, p.y, p.points.C, weight, full, machines.intercept[0])


def small_steps(monkeypatch) -> None:
    """Let batches and samples be smaller than forty rows, as they are on large data."""
    monkeypatch.setattr(joining, "_FIRST", 4)
    monkeypatch.setattr(joining, "_LEAST", 3)
    monkeypatch.setattr(joining, "_SAMPLE", 6)
