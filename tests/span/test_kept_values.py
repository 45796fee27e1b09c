"""Kernel values that are kept or computed again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.reference import kernels as plain_kernels
from widemargin.kernels import make_kernel
from widemargin.rows import as_rows
from widemargin.span.values import KernelValues

PARAMETERS = {"gamma": 0.5, "degree": 2, "coef0": 1.0}


def plain(name, A, B, **changes):
    return plain_kernels.block(name, A, B, **(PARAMETERS | changes))


def rows_of(X, memory=10**8, threads=1, precomputed=False):
    return as_rows(X, memory=memory, threads=threads, precomputed=precomputed)


def small_values(kind, room, dtype=np.float64, threads=1):
    """Rows in blocks of 16 against 5 + 4 vectors that join one after the other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    X[rng.random(X.shape) < 0.3] = 0.0
    expected, Z = plain("rbf", X, X[:9]), X[:9]
    stored, kernel = X, make_kernel("rbf", **PARAMETERS)
    if kind == "csr":
        stored = sparse.csr_array(X)
    if kind == "precomputed":
        stored, kernel = plain("rbf", X, X), make_kernel("precomputed")
        Z = np.arange(9.0)[:, None]
    rows = rows_of(stored, 16, threads, kind == "precomputed")
    values = KernelValues(rows, kernel, np.dtype(dtype), room, 9)
    assert values.step == 16
    values.add(Z[:5])
    values.add(Z[5:])
    return values, expected


def scanned(values, first, stop):
    """What a scan shows of the rows from `first` to `stop`, in one matrix."""
    seen = list(values.scan(lambda pieces, where: (where, np.hstack(pieces).copy()), first, stop))
    assert [where.start for where, _ in seen][1:] == [where.stop for where, _ in seen][:-1]
    assert (seen[0][0].start, seen[-1][0].stop) == (first, stop)
    return np.vstack([block for _, block in seen])


# Bytes for nothing, some rows, almost all of them, and everything.
ROOMS = [0, 8 * 9 * 50, 8 * 9 * 148, 10**6]


@pytest.mark.parametrize("kind", ["dense", "csr", "precomputed"])
@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_scan_shows_the_kernel_whether_values_are_kept_or_not(kind, room, threads):
    values, expected = small_values(kind, room, threads=threads)
    for first, stop in [(0, 48), (0, 150), (48, 150), (0, 150)]:
        np.testing.assert_allclose(scanned(values, first, stop), expected[first:stop], atol=1e-14)
    assert values.complete == (room == 10**6)
    assert values.n_passes == 2 and values.size == 9


@pytest.mark.parametrize("room", ROOMS)
def test_a_scan_may_begin_and_end_inside_a_block(room):
    values, expected = small_values("dense", room)
    for first, stop in [(0, 39), (39, 41), (41, 150), (7, 7 + 16), (0, 150), (3, 149)]:
        np.testing.assert_allclose(scanned(values, first, stop), expected[first:stop], atol=1e-14)
    assert list(values.scan(lambda pieces, where: where, 0, 0)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_kernel_values_are_counted_once_if_kept_and_each_time_if_not(room):
    values, _ = small_values("dense", room)
    for n_scans in range(1, 4):
        scanned(values, 0, 150)
        again = 9 * (150 - values.kept_rows)
        assert values.n_kernel == 9 * 150 + (n_scans - 1) * again
    held = sum(panel.kept.nbytes for panel in values._panels)
    assert held == 8 * 9 * values.kept_rows <= room
    # There was no room for another block.
    assert values.kept_rows == 150 or held + 8 * 9 * 16 > room


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("looked_at", [0, 64, 150])
def test_single_rows_are_the_same_before_and_after_a_scan(room, looked_at):
    values, expected = small_values("dense", room)
    if looked_at:
        scanned(values, 0, looked_at)
    index = np.random.default_rng(1).permutation(150)[:90]
    for some in (index, index[:1], index[:0]):
        out = np.full((len(some), 9), np.nan)
        values.take(some, out)
        np.testing.assert_allclose(out, expected[some], atol=1e-14)


def test_single_precision_is_the_kernel_rounded():
    values, expected = small_values("dense", 4 * 9 * 50, np.float32)
    seen = scanned(values, 0, 150)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, expected, atol=1e-6)
    assert np.abs(seen - expected).max() > 1e-12


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_change_places_with_their_values(threads):
    values, expected = small_values("dense", 10**6, threads=threads)
    scanned(values, 0, 150)
    order = np.arange(150)
    for seed in (0, 1):  # the second time on top of the first
        pairs = np.random.default_rng(seed).permutation(150)[:80]
        left, right = pairs[:40], pairs[40:]
        values.swap(left, right)
        order[left], order[right] = order[right], order[left]
    counted = values.n_kernel
    np.testing.assert_allclose(scanned(values, 0, 150), expected[order], atol=1e-14)
    assert values.n_kernel == counted
    fresh = KernelValues(values.rows, values.kernel, np.dtype(np.float64), 0, 9)
    fresh.add(np.vstack([panel.vectors for panel in values._panels]))
    np.testing.assert_allclose(scanned(fresh, 0, 150), expected[order], atol=1e-14)
