"""Each different row once, with its multiplicity as a weight; and weighted moments.

A row that is given k times and a row of weight k are then the same problem, bit for bit, and so
are two orders of the same rows: distinct rows are put in the order of a hash of their content,
their key, which is also as good as a random shuffle for everything that visits rows in turn. Keys
are the source of chance for draws, too, so that those do not depend on where the rows lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import IndexArray
from widemargin.rows.rows import TALL, Rows
from widemargin.threads import Compiled

loops = Compiled("widemargin.rows.hash_loops")

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Distinct:
    """Distinct rows.

    Attributes
    ----------
    rows : Rows
        A view with each different pair of row and label once, which knows their keys.
    index : ndarray of int
        Where each of them first stands among the original rows.
    code : ndarray of int
        Its label.
    weight : ndarray of float
        The summed weight of its copies.
    place : ndarray of int
        Which of them each original row is; −1 for rows that are left out.
    """

    rows: Rows
    index: IndexArray
    code: NDArray[np.intp]
    weight: NDArray[np.float64]
    place: IndexArray


def distinct_rows(rows: Rows, code: NDArray[np.intp], weight: NDArray[np.float64]) -> Distinct:
    """Merge equal rows with equal labels; rows of weight zero are left out.

    Parameters
    ----------
    rows : Rows
        All rows.
    code : ndarray of int of shape (n,)
        Their labels, as numbers from 0.
    weight : ndarray of shape (n,)
        Their weights.

    Returns
    -------
    Distinct
        The different rows in an order that depends on their content only.
    """
    kept = np.flatnonzero(weight > 0)
    if not len(kept):
        nothing, nowhere = rows.subset(kept).keyed(kept.astype(np.uint64)), np.full(len(weight), -1)
        return Distinct(nothing, kept, code[kept], np.zeros(0), nowhere)
    # Blocks of neighbours are read faster than rows by their numbers.
    key = row_keys(rows, code[kept], None if len(kept) == len(weight) else kept)
    order = rows.sorting(key)
    first = np.ones(len(kept), dtype=bool)
    first[1:] = np.diff(key[order]) != 0
    if not first.all():
        # A stable sort, which takes longer, puts the first occurrence of a row before its copies.
        order = np.argsort(key, kind="stable")
    kept = kept[order]
    _separate_collisions(rows, kept, code, first)
    group = np.cumsum(first) - 1
    leader = kept[first]
    merged = np.zeros(len(leader))
    np.add.at(merged, group, weight[kept])
    place = np.full(len(weight), -1, dtype=np.intp)
    place[kept] = group
    distinct = rows.subset(leader).keyed(key[order][first])
    return Distinct(distinct, leader, code[leader], merged, place)


def row_keys(
    rows: Rows, code: NDArray[np.intp], index: IndexArray | None = None
) -> NDArray[np.uint64]:
    """Return a 64-bit number for each row and its label: the same for copies, random otherwise.

    Parameters
    ----------
    rows : Rows
        All rows.
    code : ndarray of int
        Labels of the rows at `index`.
    index : ndarray of int, default=None
        Row numbers; None means all rows.
    """
    if not len(code):
        return np.empty(0, dtype=np.uint64)
    constants = _column_constants(rows.shape[1])
    key = rows.hashed(constants, _MIX, index)
    if key is None:
        key = rows.gather(_RowHash(constants), index, most_rows=TALL)
    return _mix(key + _mix((code + 1).astype(np.uint64)))


@dataclass(frozen=True)
class _RowHash:
    """Visitor: a 64-bit hash of each row.

    It is a sum over the columns in which zeros count nothing, so that dense and sparse forms of
    the same rows hash alike.
    """

    constants: NDArray[np.uint64]

    def __call__(self, block: Any, where: slice) -> NDArray[np.uint64]:
        if sparse.issparse(block):
            block = block.tocsr()
            block.sum_duplicates()
            terms = _value_bits(block.data) * self.constants[block.indices]
            sums: NDArray[np.uint64] = np.zeros(block.shape[0], dtype=np.uint64)
            filled = np.flatnonzero(np.diff(block.indptr))
            if len(filled):
                sums[filled] = np.add.reduceat(terms, block.indptr[filled])
            return sums
        sums = np.empty(len(block), dtype=np.uint64)
        bits = np.ascontiguousarray(block, dtype=np.float64).view(np.uint64)
        loops.row_hashes(bits, self.constants, _MIX, sums)
        return sums


def _column_constants(n_columns: int) -> NDArray[np.uint64]:
    rng = np.random.default_rng(20040920)
    odd: NDArray[np.uint64] = rng.integers(2**63, size=n_columns, dtype=np.uint64) | np.uint64(1)
    return odd


def _value_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    # Adding zero turns -0.0 into 0.0, which is the same number to every kernel.
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    return _mix(bits)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits: floats of round numbers differ in few of them. Zero stays zero."""
    bits = (bits ^ (bits >> np.uint64(32))) * _MIX
    return bits ^ (bits >> np.uint64(29))


def _separate_collisions(
    rows: Rows, kept: IndexArray, code: NDArray[np.intp], first: NDArray[np.bool_]
) -> None:
    """Take apart, in place, the rows that share a hash by chance (one in 10^19 pairs)."""
    copies = np.flatnonzero(~first)
    if not len(copies):
        return
    start = np.flatnonzero(first)
    group = np.searchsorted(start, copies) - 1
    leaders = kept[start[group]]
    same = rows.gather(_SameAs(rows, leaders), kept[copies], most_rows=TALL)
    same &= code[leaders] == code[kept[copies]]
    # Who is equal to whom in such a group does not matter: unmerged copies are correct too.
    first[copies[np.isin(group, group[~same])]] = True


@dataclass(frozen=True)
class _SameAs:
    """Visitor: whether each row equals its counterpart."""

    rows: Rows
    others: IndexArray

    def __call__(self, block: Any, where: slice) -> NDArray[np.bool_]:
        other = self.rows.block(self.others[where])
        if sparse.issparse(block):
            same: NDArray[np.bool_] = np.diff((block != other).tocsr().indptr) == 0
        else:
            same = (block == other).all(axis=1)
        return same


@dataclass(frozen=True)
class Moments:
    """Weighted first and second moments of the columns.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    mean : ndarray of shape (n_features,)
        Weighted mean of each column.
    variance : ndarray of shape (n_features,)
        Weighted variance of each column (divided by the sum of weights).
    """

    weight: float
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


@dataclass(frozen=True)
class _Sums:
    """Visitor: Σ w (x − origin) and Σ w (x − origin)² of a block."""

    weight: NDArray[np.float64]
    origin: NDArray[np.float64]

    def __call__(self, block: Any, where: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        w = self.weight[where]
        if sparse.issparse(block):
            block = block.astype(np.float64)
            return w @ block, w @ block.multiply(block)
        centred = block.astype(np.float64) - self.origin
        return w @ centred, w @ (centred * centred)


def weighted_moments(rows: Rows, weight: NDArray[np.float64]) -> Moments:
    """Return the moments of the rows.

    Dense sums are taken about the first row, so that a large common offset costs no digits;
    sparse rows lie near the origin by nature.
    """
    d = rows.shape[1]
    first = rows.block(slice(0, 1))
    origin = np.zeros(d) if sparse.issparse(first) else np.asarray(first[0], dtype=np.float64)
    total = float(weight.sum())
    s1, s2 = np.zeros(d), np.zeros(d)
    with np.errstate(over="ignore", invalid="ignore"):
        for b1, b2 in rows.scan(_Sums(weight, origin), most_rows=TALL):
            s1 += np.asarray(b1).ravel()
            s2 += np.asarray(b2).ravel()
        offset = s1 / total
        variance = np.maximum(0.0, s2 / total - offset**2)
    return Moments(total, origin + offset, variance)
