"""Where the vectors of a span come from: landmarks, as they are called in Nyström's method.

A strategy is a small object with one method, ``begin(rows, kernel, weight, rng)``, that returns a
`Choice`: something that vectors are drawn from. Rows are drawn with probabilities in proportion to
their weights, so that a row of weight k counts as k copies do.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.kernels import Kernel
from widemargin.problem import Problem
from widemargin.rows import Rows
from widemargin.span.basis import Vectors
from widemargin.span.draws import drawn_places, earliest, seed_of_draw

# Bytes of the factor of a pool, at the most.
_POOL_BYTES = 250_000_000


class Felt(Protocol):
    """How much each row is felt by the machine fitted so far, when it is asked for."""

    @property
    def n_rows(self) -> int:
        """Rows that were looked at."""

    def __call__(self) -> Vector:
        """Return it for the rows that are here, in their first order."""


class Choice(ABC):
    """Vectors that can be drawn.

    Attributes
    ----------
    nested : bool
        Whether the first of many vectors are a good choice of a few; else all are drawn at once.
    of_rows : bool
        Whether vectors are training rows.
    available : int or None
        How many there are, if that is no matter of the rows.
    drawn : int
        How many were drawn.
    problem : Problem or None
        The rows that were drawn, with their classes and weights, where the others are elsewhere.
    """

    nested: ClassVar[bool] = False
    of_rows: ClassVar[bool] = False
    available: int | None = None
    drawn: int = 0
    problem: Problem | None = None

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Whether there are no more."""

    def adopt(self, index: IndexArray) -> bool:
        """Count rows as drawn, and return whether that makes sense."""
        return False

    @abstractmethod
    def draw(self, count: int, felt: Felt | None) -> Vectors:
        """Return `count` more vectors, or as many as there are.

        `felt` tells how much each row is felt by the machine fitted so far, None if there is none.
        """


class Strategy(Protocol):
    """A way to choose vectors."""

    def begin(self, rows: Rows, kernel: Kernel, weight: Vector, rng: np.random.Generator) -> Choice:
        """Return what vectors are drawn from."""


class Sampling(Strategy, Protocol):
    """A way to choose vectors that looks at a random sample of the rows only."""

    def sample_size(self, count: int, memory: int) -> int:
        """Return how many rows the sample has, for so many vectors and bytes."""

    def from_sample(
        self,
        rows: Rows,
        kernel: Kernel,
        weight: Vector | None,
        count: int,
        rng: np.random.Generator,
    ) -> Vectors:
        """Return vectors from a sample, in the order of the rows' keys.

        Weights have done their work in the draw; they are given where all rows were drawn.
        """


@dataclass(frozen=True)
class RandomVectors:
    """Rows drawn at random."""

    def begin(self, rows: Rows, kernel: Kernel, weight: Vector, rng: np.random.Generator) -> Choice:
        """Return what vectors are drawn from."""
        return _RandomRows(rows, weight, rng)


@dataclass(frozen=True)
class CoreVectors:
    """Rows that the machine feels: first random ones, then rows inside the margin.

    As a core set grows by rows outside its ball, so the span grows by rows inside the margin of the
    machine fitted so far, drawn in proportion to their dual variables.
    """

    def begin(self, rows: Rows, kernel: Kernel, weight: Vector, rng: np.random.Generator) -> Choice:
        """Return what vectors are drawn from."""
        return _CoreRows(rows, weight, rng)


@dataclass(frozen=True)
class KMeansVectors:
    """Centres of k-means on a sample of the rows.

    Attributes
    ----------
    rows_per_vector : int
        Size of the sample, in multiples of the vectors.
    n_iter : int
        Iterations of Lloyd's method.
    """

    rows_per_vector: int = 20
    n_iter: int = 5

    def begin(self, rows: Rows, kernel: Kernel, weight: Vector, rng: np.random.Generator) -> Choice:
        """Return what vectors are drawn from."""
        _check_not_precomputed(kernel, "vectors='kmeans'")
        return _Centres(rows, weight, rng, kernel, self)

    def sample_size(self, count: int, memory: int) -> int:
        """Return how many rows the sample has."""
        return max(2, self.rows_per_vector) * count

    def from_sample(
        self,
        rows: Rows,
        kernel: Kernel,
        weight: Vector | None,
        count: int,
        rng: np.random.Generator,
    ) -> Vectors:
        """Return the centres."""
        from sklearn.cluster import KMeans

        every = np.arange(rows.shape[0])
        X = rows.take(every)
        first = X[drawn_places(np.ones(len(every)), count, rng)]
        means = KMeans(len(first), init=first, n_init=1, max_iter=self.n_iter, tol=0.0)
        with warnings.catch_warnings():
            # Fewer different rows than centres: the basis leaves the copies out.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(X, sample_weight=weight)
        return Vectors(np.asarray(means.cluster_centers_), None)


@dataclass(frozen=True)
class LeverageVectors:
    """Rows drawn by how far they lie outside the span of those drawn before.

    Randomly pivoted Cholesky [1]_ on a pool of random rows, a batch of rows at a time: close to the
    best low-rank approximation of the kernel matrix, and as a sampling scheme close to leverage
    scores.

    Attributes
    ----------
    pool : int
        Size of the pool, in multiples of the vectors.

    References
    ----------
    .. [1] Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, "Randomly pivoted Cholesky", 2022.
    """

    pool: int = 8

    def begin(self, rows: Rows, kernel: Kernel, weight: Vector, rng: np.random.Generator) -> Choice:
        """Return what vectors are drawn from."""
        return _Leverage(rows, weight, rng, kernel, self)

    def sample_size(self, count: int, memory: int) -> int:
        """Return how many rows the pool has."""
        # Its factor is a matrix of float64, to which a quarter of the memory may go.
        room = min(_POOL_BYTES, memory // 4) // (8 * count)
        return max(2 * count, min(self.pool * count, room))

    def from_sample(
        self,
        rows: Rows,
        kernel: Kernel,
        weight: Vector | None,
        count: int,
        rng: np.random.Generator,
    ) -> Vectors:
        """Return rows of the pool, or all of it if it has no more."""
        pool = np.arange(rows.shape[0])
        if len(pool) <= count:
            return Vectors(rows.take(pool), pool)
        block = rows.block(pool)
        residual = np.maximum(0.0, kernel.diagonal(block, rows.stored_at(pool)))
        least = 1e-12 * residual.max(initial=0.0)
        factor = np.empty((len(pool), count))
        chosen = np.empty(0, dtype=np.intp)
        while len(chosen) < count and residual.max() > least:
            room = min(count - len(chosen), max(1, count // 8))
            batch = drawn_places(np.where(residual > least, residual, 0.0), room, rng)
            done = len(chosen)
            values = np.empty((len(pool), len(batch)))
            kernel.block(block, rows.take(batch), out=values)
            values -= factor[:, :done] @ factor[batch, :done].T
            # Rows of a batch may be redundant among themselves: whiten by eigenvectors.
            level, axes = np.linalg.eigh(values[batch])
            solid = level > max(least, 1e-10 * level[-1])
            new = values @ (axes[:, solid] / np.sqrt(level[solid]))
            factor[:, done : done + new.shape[1]] = new
            # Columns without content keep the numbering of rows and columns alike.
            factor[:, done + new.shape[1] : done + len(batch)] = 0.0
            residual = np.maximum(0.0, residual - (new * new).sum(axis=1))
            residual[batch] = 0.0
            chosen = np.concatenate([chosen, batch])
        return Vectors(rows.take(chosen), chosen)


@dataclass(frozen=True, eq=False)
class GivenVectors:
    """Vectors of the user's own."""

    vectors: NDArray[Any]

    def begin(self, rows: Rows, kernel: Kernel, weight: Vector, rng: np.random.Generator) -> Choice:
        """Return what vectors are drawn from."""
        _check_not_precomputed(kernel, "an array of vectors")
        return _Given(self.vectors)


def _check_not_precomputed(kernel: Kernel, what: str) -> None:
    if kernel.name == "precomputed":
        raise ValueError(
            f"{what} needs the rows themselves, not kernel='precomputed'; use vectors='random', "
            "'core' or 'leverage'."
        )


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "random": RandomVectors,
    "core": CoreVectors,
    "kmeans": KMeansVectors,
    "leverage": LeverageVectors,
}
"""The strategies that have a name."""


def as_strategy(vectors: Any, n_features: int) -> Strategy:
    """Return what the `vectors` parameter of an estimator stands for."""
    if isinstance(vectors, str):
        if vectors not in STRATEGIES:
            known = ", ".join(map(repr, STRATEGIES))
            raise ValueError(
                f"vectors={vectors!r} is not known; use one of {known}, an array of vectors, or "
                "an object with a method begin(rows, kernel, weight, rng)."
            )
        return STRATEGIES[vectors]()
    if hasattr(vectors, "begin"):
        strategy: Strategy = vectors
        return strategy
    return GivenVectors(given_vectors("vectors", vectors, n_features))


def given_vectors(name: str, vectors: Any, n_features: int) -> Matrix:
    """Return the vectors that a parameter holds, or say what is wrong with them."""
    dense = vectors.toarray() if sparse.issparse(vectors) else np.asarray(vectors)
    if dense.ndim != 2 or not len(dense) or dense.shape[1] != n_features:
        raise ValueError(
            f"{name}: vectors of shape {dense.shape} must be a matrix with a column for each of "
            f"the {n_features} features, and at least one row."
        )
    if not (np.issubdtype(dense.dtype, np.number) or dense.dtype == bool) or np.iscomplexobj(dense):
        raise TypeError(f"{name}: vectors of type {dense.dtype} must be real numbers.")
    dense = dense.astype(np.float64)
    if not np.isfinite(dense).all():
        raise ValueError(f"{name}: vectors hold NaN or infinite values; clean or impute them.")
    return dense


@dataclass(eq=False)
class _RandomRows(Choice):
    """Rows in a random order, heavier ones earlier."""

    rows: Rows
    weight: Vector
    rng: np.random.Generator
    nested: ClassVar[bool] = True
    of_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._left = np.ones(self.rows.shape[0], dtype=bool)

    @property
    def exhausted(self) -> bool:
        return self.drawn >= len(self._left)

    def adopt(self, index: IndexArray) -> bool:
        self._left[index] = False
        self.drawn += len(index)
        return True

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        return self._take(self._drawn(self.weight * self._left, count))

    def _drawn(self, weight: Vector, count: int) -> IndexArray:
        return earliest(weight, count, self.rows.keys, seed_of_draw(self.rng))[1]

    def _take(self, index: IndexArray) -> Vectors:
        self.adopt(index)
        return Vectors(self.rows.take(index), index)


class _CoreRows(_RandomRows):
    def draw(self, count: int, felt: Felt | None) -> Vectors:
        weight = self.weight if felt is None else felt()
        index = self._drawn(weight * self._left, count)
        if len(index) < count:
            rest = self.weight * self._left
            rest[index] = 0.0
            index = np.concatenate([index, self._drawn(rest, count - len(index))])
        return self._take(index)


@dataclass(eq=False)
class _Leverage(_RandomRows):
    """Rows drawn from a pool by their distance from the span of the ones before."""

    kernel: Kernel
    strategy: Sampling
    nested: ClassVar[bool] = False
    _covered: bool = False

    @property
    def exhausted(self) -> bool:
        return self._covered or super().exhausted

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        size = self.strategy.sample_size(count, self.rows.memory)
        pool = np.sort(self._drawn(self.weight * self._left, size))
        rows = self.rows.subset(pool)
        chosen = self.strategy.from_sample(rows, self.kernel, None, count, self.rng).index
        assert chosen is not None
        # Those that were drawn span the pool, and so all rows but for chance.
        self._covered = len(chosen) < min(count, len(pool))
        return self._take(pool[chosen])


@dataclass(eq=False)
class _Centres(Choice):
    """Centres of k-means."""

    rows: Rows
    weight: Vector
    rng: np.random.Generator
    kernel: Kernel
    strategy: Sampling

    @property
    def exhausted(self) -> bool:
        return self.drawn > 0

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        n = self.rows.shape[0]
        size = self.strategy.sample_size(min(count, n), self.rows.memory)
        seed = seed_of_draw(self.rng)
        sample = np.sort(earliest(self.weight, size, self.rows.keys, seed)[1])
        weight = self.weight[sample] if len(sample) == n else None
        rows = self.rows.subset(sample)
        vectors = self.strategy.from_sample(rows, self.kernel, weight, count, self.rng)
        self.drawn = len(vectors)
        return vectors


class _Given(Choice):
    """Vectors that a user gives, in their order."""

    def __init__(self, vectors: NDArray[Any]) -> None:
        self.vectors = vectors
        self.available = len(vectors)

    @property
    def exhausted(self) -> bool:
        return self.drawn >= len(self.vectors)

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        new = self.vectors[self.drawn : self.drawn + count]
        self.drawn += len(new)
        return Vectors(new, None)
