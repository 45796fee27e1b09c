"""Rows of some partitions, checked; what is to be known of them; and the shard that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.kernels import Kernel
from widemargin.problem import Problem, check_prices, codes_among, distinct_labels
from widemargin.rows import ArrayRows, Rows, as_rows, distinct_rows, parse_memory, weighted_moments
from widemargin.span.shard import Shard
from widemargin.span.values import MOST_ROWS

# Blocks that a shard has at the least, if they are not too small.
_BLOCKS = 16
_LEAST_BLOCK = 256


@dataclass(frozen=True)
class Loaded:
    """Checked rows of neighbouring partitions.

    Attributes
    ----------
    X : ndarray or CSR matrix
        The rows.
    y : ndarray
        Their labels.
    weight : ndarray of shape (n,)
        Their weights.
    """

    X: Any
    y: NDArray[Any]
    weight: Vector

    def __sizeof__(self) -> int:
        """Return the bytes that they take: Dask would see three small objects."""
        return sum(bytes_of(value) for value in (self.X, self.y, self.weight))


def load(first: int, n_features: int, parts: Sequence[tuple[Any, Any, Any]]) -> Loaded:
    """Return the rows of partitions, or raise an error that names the one that is at fault.

    Parameters
    ----------
    first : int
        Number of the first partition.
    n_features : int
        Columns that each must have.
    parts : sequence of (rows, labels or None, weights or None)
        The partitions; rows without labels are all of one class.
    """
    return together([_checked(first + k, n_features, *part) for k, part in enumerate(parts)])


def together(parts: Sequence[Loaded]) -> Loaded:
    """Return rows of several places as those of one."""
    return Loaded(
        stacked([each.X for each in parts]),
        np.concatenate([each.y for each in parts]),
        np.concatenate([each.weight for each in parts]),
    )


def stacked(blocks: Sequence[Any]) -> Any:
    """Return blocks of rows below each other, CSR if one of them is."""
    if len(blocks) == 1:
        return blocks[0]
    if any(sparse.issparse(block) for block in blocks):
        return sparse.vstack(blocks, format="csr")
    return np.concatenate(blocks)


def _checked(number: int, n_features: int, X: Any, y: Any, weight: Any) -> Loaded:
    """Return one partition as arrays."""
    name = f"partition {number} of X"
    try:
        X = check_array(
            X, dtype="numeric", accept_sparse="csr", ensure_min_samples=0, input_name=name
        )
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    labels = np.zeros(X.shape[0], dtype=np.intp) if y is None else np.asarray(y)
    weights = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
    if X.shape[1] != n_features:
        raise ValueError(f"{name} has {X.shape[1]} columns, but {n_features} are expected.")
    for what, values in (("y", labels), ("sample_weight", weights)):
        if values.shape != (X.shape[0],):
            raise ValueError(
                f"{name} has {X.shape[0]} rows, but that of {what} has the shape {values.shape}: "
                "they must be cut alike."
            )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"partition {number} of y contains NaN or infinity.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"partition {number} of sample_weight must be finite and not negative.")
    return Loaded(X, labels, weights)


# What is to be known of all rows before the fit begins.


@dataclass(frozen=True)
class Facts:
    """What a fit must know of some rows.

    Attributes
    ----------
    n : int
        Rows.
    classes : ndarray
        Labels of the rows with a weight.
    weights : ndarray of shape (n_classes,)
        Weight of each class.
    weight : float
        Weight of all rows.
    mean, variance : ndarray of shape (n_features,)
        Moments of the columns.
    memory : int
        Bytes that a shard of these rows may take beside them.
    single, sparse : bool
        Whether rows are float32, and whether they are CSR.
    nbytes : int
        Bytes that the rows take.
    """

    n: int
    classes: NDArray[Any]
    weights: Vector
    weight: float
    mean: Vector
    variance: Vector
    memory: int
    single: bool
    sparse: bool
    nbytes: int = 0


def facts_of(loaded: Loaded, memory: int | str, share: float) -> Facts:
    """Return what is to be known of rows; `share` of the memory here is for them."""
    budget = int(parse_memory(memory) * share)
    used = loaded.weight > 0
    classes = distinct_labels(loaded.y[used])
    code = np.searchsorted(classes, loaded.y[used])
    weights: Vector = np.bincount(code, loaded.weight[used], len(classes)).astype(np.float64)
    n, d = loaded.X.shape
    rows = as_rows(loaded.X, memory=budget, threads=1)
    total = float(loaded.weight.sum())
    mean = variance = np.zeros(d)
    if total > 0:
        moments = weighted_moments(rows, loaded.weight)
        mean, variance = moments.mean, moments.variance
    single = loaded.X.dtype == np.float32
    kinds = (bool(single), bool(sparse.issparse(loaded.X)))
    return Facts(n, classes, weights, total, mean, variance, budget, *kinds, bytes_of(loaded.X))


def bytes_of(X: Any) -> int:
    """Return the bytes that rows take, dense or CSR."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return sum(int(part.nbytes) for part in parts)


def joined(parts: Sequence[Facts]) -> Facts:
    """Return the facts of all rows: moments by the formula of Chan, Golub and LeVeque."""
    labels = [part.classes for part in parts if len(part.classes)]
    classes = distinct_labels(np.concatenate(labels)) if labels else parts[0].classes
    weights = np.zeros(len(classes))
    total, mean, square = 0.0, np.zeros_like(parts[0].mean), np.zeros_like(parts[0].mean)
    for part in parts:
        weights[np.searchsorted(classes, part.classes)] += part.weights
        if not part.weight:
            continue
        both = total + part.weight
        away = part.mean - mean
        square += part.weight * part.variance + away * away * (total * part.weight / both)
        mean = mean + away * (part.weight / both)
        total = both
    n, memory = sum(part.n for part in parts), min(part.memory for part in parts)
    variance = square / max(total, np.finfo(float).tiny)
    single, csr = all(part.single for part in parts), any(part.sparse for part in parts)
    nbytes = sum(part.nbytes for part in parts)
    return Facts(n, classes, weights, total, mean, variance, memory, single, csr, nbytes)


# Shards.


@dataclass(frozen=True)
class ShardPlan:
    """What a shard must know beside its rows.

    Attributes
    ----------
    kernel : Kernel
        k.
    classes : ndarray
        Labels of all rows.
    table : ndarray of shape (n_classes, n_problems)
        Sign of each class in each problem.
    factor : ndarray of shape (n_classes,)
        Factors on the weights of the classes' rows.
    C : float
        C.
    first : int
        Number of the first row among all rows.
    dtype : dtype
        Precision of kernel values.
    room : int
        Bytes for kernel values.
    width : int
        Vectors at the most.
    memory, threads : int
        Bytes beside the rows, and threads.
    kind : ndarray of int or None
        A number for each of its rows: equal rows with other numbers stay apart.
    device : str or None
        The device of its worker that it lies on; None is the worker itself.
    """

    kernel: Kernel
    classes: NDArray[Any]
    table: Matrix
    factor: Vector
    C: float
    first: int
    dtype: np.dtype[Any]
    room: int
    width: int
    memory: int
    threads: int
    kind: NDArray[Any] | None = None
    device: str | None = None


def problem_of(loaded: Loaded, plan: ShardPlan, rows: Rows | None = None) -> Problem:
    """Return the problems of a shard, on each of its different rows once."""
    stored = rows
    if stored is None:
        stored = as_rows(loaded.X, memory=plan.memory, threads=plan.threads)
    code = codes_among(plan.classes, loaded.y, loaded.weight, "which is no class of the others.")
    apart = code
    if plan.kind is not None:
        apart = code + len(plan.classes) * plan.kind.astype(np.intp)
    distinct = distinct_rows(stored, apart, loaded.weight)
    code = code[distinct.index]
    weight = distinct.weight * plan.factor[code]
    if len(weight):
        check_prices(plan.C, weight)
    number = plan.first + distinct.index
    return Problem.of(
        distinct.rows, plan.kernel, code, plan.table, weight, plan.C, number, distinct.place
    ).with_signs(plan.table)


def shard_of(loaded: Loaded, plan: ShardPlan, rows: Rows | None = None) -> Shard:
    """Return the shard of some rows."""
    problem = replace(problem_of(loaded, plan, rows), place=None)
    return Shard(problem, plan.dtype, plan.room, plan.width, most_rows_of_block(problem.n))


def most_rows_of_block(n: int) -> int:
    """Return the rows of a block at the most in a shard of n rows.

    The first rows of all and those near a margin are some of each shard, and values are kept by
    whole blocks.
    """
    return min(MOST_ROWS, max(_LEAST_BLOCK, n // _BLOCKS))


class Cache:
    """Blocks of rows that stay once they were loaded, within a budget, and the last other one.

    Blocks are looked at in turn, again and again: the one that was not used for longest is needed
    next, so that none goes for another one's sake.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: dict[int, Any] = {}
        self._last: tuple[int, Any] = (-1, None)
        self._lock = Lock()

    def get(self, number: int, load_block: Callable[[], Any]) -> Any:
        """Return a block, which is loaded if it is not here."""
        with self._lock:
            if number in self._kept:
                return self._kept[number]
            if self._last[0] == number:
                return self._last[1]
            # The one before goes before the next one comes.
            self._last = (-1, None)
            block = load_block()
            if block.nbytes <= self.budget:
                self.budget -= block.nbytes
                self._kept[number] = block
            else:
                self._last = (number, block)
            return block


class PartitionRows(ArrayRows):
    """Rows of a partition that is loaded when it is looked at, and may be forgotten."""

    def __init__(
        self,
        number: int,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        load_block: Callable[[], NDArray[Any]],
        cache: Cache,
        memory: int,
        threads: int,
    ) -> None:
        self._number, self._stored, self._kind = number, shape, dtype
        self._load, self._cache = load_block, cache
        super().__init__(None, memory, threads)

    @property
    def X(self) -> Any:  # noqa: D102
        return self._cache.get(self._number, self._load)

    @X.setter
    def X(self, value: Any) -> None:
        assert value is None

    @property
    def dtype(self) -> np.dtype[Any]:  # noqa: D102
        return self._kind

    @property
    def sparse(self) -> bool:  # noqa: D102
        return False

    @property
    def values_per_row(self) -> float:  # noqa: D102
        return float(self._stored[1])

    @property
    def shape(self) -> tuple[int, int]:  # noqa: D102
        return (self._stored[0] if self._order is None else len(self._order)), self._stored[1]

    def _row_bytes(self) -> int:
        return int(self._kind.itemsize * self._stored[1])

    def _read(self, index: IndexArray | slice) -> NDArray[Any]:
        return np.asarray(self.X[index], dtype=self._kind, order="C")
