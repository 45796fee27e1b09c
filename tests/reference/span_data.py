"""Problems for span fits, and what oracles know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tests.reference import kernels as plain_kernels
from tests.reference import span as reference
from widemargin.kernels import make_kernel
from widemargin.loop import Limits, run
from widemargin.problem import Problem
from widemargin.rows import as_rows
from widemargin.span import SpanFit, as_strategy
from widemargin.threads import single_threaded_blas

KERNELS = ["rbf", "linear", "poly", "laplacian", "inverse_squared_distance"]


@dataclass(frozen=True)
class Data:
    """Labelled rows with a kernel, and what an oracle knows of them."""

    X: np.ndarray
    code: np.ndarray
    table: np.ndarray
    weight: np.ndarray
    C: np.ndarray
    name: str
    gamma: float
    fold: np.ndarray
    counts: np.ndarray

    def plain(self, A, B):
        """The kernel in float64, by loops where that is quick."""
        if len(A) * len(B) < 4000:
            return plain_kernels.block(self.name, A, B, gamma=self.gamma, degree=2, coef0=1.0)
        return self.kernel.block(A, B)

    @property
    def kernel(self):
        return make_kernel(self.name, gamma=self.gamma, degree=2, coef0=1.0)

    @property
    def n_problems(self):
        return self.table.shape[1]

    def weight_in(self, p):
        """What rows weigh in a problem: nothing where it leaves their fold out."""
        return self.weight * self.counts[self.fold, p]

    def optima(self, Z, directions=None):
        """The exact optima of all problems in the span of Z."""
        Kz, Kxz = self.plain(Z, Z), self.plain(self.X, Z)
        best = []
        for p in range(self.n_problems):
            F = reference.features(Kz, Kxz, None if directions is None else directions[p])
            y, weight = self.table[self.code, p], self.weight_in(p)
            u = weight > 0
            best.append(reference.best_machine(F[u], y[u], self.C[p], weight[u]).value)
        return np.array(best)

    def objectives(self, Z, beta):
        """The objectives of the coefficients, from scratch."""
        scores = self.plain(self.X, Z) @ beta[:-1] + beta[-1]
        slack = np.maximum(0.0, 1.0 - self.table[self.code] * scores)
        norm2 = (beta[:-1] * (self.plain(Z, Z) @ beta[:-1])).sum(axis=0) + beta[-1] ** 2
        weight = self.weight[:, None] * self.counts[self.fold]
        return 0.5 * norm2 + self.C * (weight * slack**2).sum(axis=0)

    def problem(self, memory=10**8, threads=1, kernel=None):
        """The problems as a fit takes them."""
        rows = as_rows(self.X, memory=memory, threads=threads)
        kernel = self.kernel if kernel is None else kernel
        stated = Problem.of(rows, kernel, self.code, self.table, self.weight, 1.0)
        return replace(stated, C=self.C, fold=self.fold, counts=self.counts)

    def fit(self, vectors: Any = "random", *, limits=None, report=None, kernel=None, **changes):
        """Run a fit; what the loop says of it comes second."""
        memory, threads = changes.pop("memory", 10**8), changes.pop("threads", 1)
        problem = self.problem(memory, threads, kernel)
        rng = np.random.default_rng(changes.pop("seed", 0))
        strategy = as_strategy(vectors, self.X.shape[1])
        choice = strategy.begin(problem.rows, problem.kernel, self.weight, rng)
        options = {
            "tol": 1e-8,
            "max_vectors": 12,
            "grow": False,
            "dtype": np.float64,
            "room": 10**8,
        } | changes
        options["dtype"] = np.dtype(options["dtype"])
        solver = SpanFit(problem, choice, **options)
        with single_threaded_blas():
            return solver, run(solver, limits or Limits(max_iter=3000), report)


def make(X, code, table, weight=None, C=1.0, name="rbf", gamma=0.5, fold=None, counts=None):
    n, m = len(X), table.shape[1]
    return Data(
        X,
        np.asarray(code, dtype=np.intp),
        table,
        np.ones(n) if weight is None else weight,
        np.broadcast_to(np.asarray(C, dtype=float), (m,)).copy(),
        name,
        gamma,
        np.zeros(n, dtype=np.int32) if fold is None else fold.astype(np.int32),
        np.ones((1, m)) if counts is None else counts,
    )


@cache
def random_data(seed: int, n: int | None = None) -> Data:
    """A random problem: kernel, classes, weights, noise and C from 1e-3 to 1e4 vary with it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 90)) if n is None else n
    n_classes = 2 if seed % 3 else int(rng.integers(3, 5))
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    angle = X[:, 0] + rng.choice([0.05, 0.5, 5.0]) * rng.normal(size=n)
    code = np.searchsorted(np.quantile(angle, np.linspace(0, 1, n_classes + 1)[1:-1]), angle)
    table = np.array([[-1.0], [1.0]]) if n_classes == 2 else 2.0 * np.eye(n_classes) - 1.0
    weight = rng.uniform(0.2, 3.0, n) if seed % 2 else None
    C, gamma = 10.0 ** rng.uniform(-3, 4), 10.0 ** rng.uniform(-1, 0.7)
    return make(X, code, table, weight, C, KERNELS[seed % len(KERNELS)], gamma)


def wide_data(n=4000, C=100.0, noise=0.3):
    """Two easy problems, one easier than the other, whose margins most rows are far away from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) * 3.0
    X[:, 1] += np.sign(X[:, 1]) * 2.0
    code = 2 * (X[:, 0] + noise * rng.normal(size=n) > 0) + (X[:, 1] > 0)
    table = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    return make(X, code, table, C=C, name="linear")
