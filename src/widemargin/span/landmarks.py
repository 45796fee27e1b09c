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

# Shifts and odd factors that spread the bits of a number over all of it (Stafford's variant of the
# finaliser of MurmurHash).
_MIXING = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


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
        return _Centres(rows, weight, rng, self.rows_per_vector, self.n_iter)


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
        return _Leverage(rows, weight, rng, kernel, self.pool)


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


# Bytes of the factor of a pool, at the most.
_POOL_BYTES = 250_000_000


@dataclass(eq=False)
class _Leverage(_RandomRows):
    """Rows drawn from a pool by their distance from the span of the ones before."""

    kernel: Kernel
    pool: int
    nested: ClassVar[bool] = False
    _covered: bool = False

    @property
    def exhausted(self) -> bool:
        return self._covered or super().exhausted

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        # The factor of the pool is a matrix of float64, to which a quarter of the memory may go.
        room = min(_POOL_BYTES, self.rows.memory // 4) // (8 * count)
        size = max(2 * count, min(self.pool * count, room))
        pool = np.sort(_draw(self.weight * self._left, size, self.rng))
        if len(pool) <= count:
            return self._take(pool)
        block = self.rows.block(pool)
        diagonal = self.kernel.diagonal(block, self.rows.stored_at(pool))
        residual = np.maximum(0.0, diagonal)
        least = 1e-12 * residual.max(initial=0.0)
        factor = np.empty((len(pool), count))
        chosen = np.empty(0, dtype=np.intp)
        while len(chosen) < count and residual.max() > least:
            room = min(count - len(chosen), max(1, count // 8))
            batch = _draw(np.where(residual > least, residual, 0.0), room, self.rng)
            done = len(chosen)
            values = np.empty((len(pool), len(batch)))
            self.kernel.block(block, self.rows.take(pool[batch]), out=values)
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
        # Those that were drawn span the pool, and so all rows but for chance.
        self._covered = len(chosen) < count
        return self._take(pool[chosen])


@dataclass(eq=False)
class _Centres(Choice):
    """Centres of k-means."""

    rows: Rows
    weight: Vector
    rng: np.random.Generator
    rows_per_vector: int
    n_iter: int

    @property
    def exhausted(self) -> bool:
        return self.drawn > 0

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        from sklearn.cluster import KMeans

        count = min(count, self.rows.shape[0])
        sample = np.sort(_draw(self.weight, max(2, self.rows_per_vector) * count, self.rng))
        X = self.rows.take(sample)
        # Weights have done their work in the draw, unless all rows were drawn.
        weight = self.weight[sample] if len(sample) == self.rows.shape[0] else None
        first = X[_draw(np.ones(len(sample)), count, self.rng)]
        means = KMeans(len(first), init=first, n_init=1, max_iter=self.n_iter, tol=0.0)
        with warnings.catch_warnings():
            # Fewer different rows than centres: the basis leaves the copies out.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(X, sample_weight=weight)
        self.drawn = len(first)
        return Vectors(np.asarray(means.cluster_centers_), None)


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


def seed_of_draw(rng: np.random.Generator) -> int:
    """Return the seed of one draw of rows by their keys."""
    return int(rng.integers(2**63))


def earliest(
    weight: Vector, count: int, keys: NDArray[np.uint64], seed: int
) -> tuple[Vector, IndexArray]:
    """Return the rows that are drawn in proportion to weights, and when; only positive ones.

    Each row gets an exponential time divided by its weight, and the earliest win (Efraimidis and
    Spirakis): one random number a row, whatever the count. It is made of the row's key, so that it
    does not matter where the row lies, and who else is there.
    """
    return _first(weight, count, exponential(keys, seed))


def exponential(keys: NDArray[np.uint64], seed: int) -> Vector:
    """Return exponential random numbers that keys and a seed decide."""
    bits = keys ^ np.uint64(seed)
    for shift, factor in _MIXING:
        bits = (bits ^ (bits >> shift)) * factor
    bits ^= bits >> np.uint64(31)
    # 53 bits are a number between 0 and 1, which must not be 0.
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(-np.log(uniform))


def _draw(weight: Vector, count: int, rng: np.random.Generator) -> IndexArray:
    """Return different positions, drawn in proportion to weights; only positive ones."""
    return _first(weight, count, rng.exponential(size=len(weight)))[1]


def _first(weight: Vector, count: int, chance: Vector) -> tuple[Vector, IndexArray]:
    """Return the positions whose exponential times, divided by their weights, are the earliest."""
    candidates = np.flatnonzero(weight > 0)
    time = chance[candidates] / weight[candidates]
    if count < len(candidates):
        first = np.argpartition(time, count)[:count]
        candidates, time = candidates[first], time[first]
    order = np.argsort(time, kind="stable")
    return time[order], candidates[order]
