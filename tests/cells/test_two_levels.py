"""Cells in groups: the nearest centres of a few groups, everywhere by the same rule."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import MarginClassifier
from widemargin.cells import Groups, Members, Partition
from widemargin.cells.nearest_centers import PROBED
from widemargin.cells.partition import partition_by_kmeans
from widemargin.loop import Deadline
from widemargin.rows import as_rows

CELLS = {"engine": "cells", "cells": 30, "gamma": 1.0, "C": 2.0, "random_state": 0, "n_jobs": 2}


@pytest.fixture
def two_levels(monkeypatch):
    """Let every partition that k-means finds have two levels."""
    options = MarginClassifier.options
    monkeypatch.setattr(
        MarginClassifier, "options", lambda *given: replace(options(*given), one_level=1)
    )


def _rows(X, threads=1):
    return as_rows(X, memory=10**9, threads=threads)


def _classes(n=2400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def slow_nearest(X, centers, groups, count):
    """The definition, row by row."""
    cells, distances = [], []
    for x in X:
        to_middles = np.sqrt(((groups.middles - x) ** 2).sum(axis=1))
        candidates = np.concatenate(
            [
                np.arange(groups.offsets[g], groups.offsets[g + 1])
                for g in np.sort(np.argsort(to_middles, kind="stable")[:PROBED])
            ]
        )
        distance = np.sqrt(((centers[candidates] - x) ** 2).sum(axis=1))
        order = np.argsort(distance, kind="stable")[:count]
        cells.append(candidates[order])
        distances.append(distance[order])
    return np.array(cells), np.array(distances)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("d", "shift"), [(2, 0.0), (12, 1e4)])
def test_nearest_centres_are_those_of_the_definition(count, d, shift):
    rng = np.random.default_rng(0)
    X, points = rng.normal(size=(400, d)) + shift, rng.normal(size=(300, d)) + shift
    centers, groups = Groups.of(points, points[:40])
    near = Partition(centers, groups).nearest(_rows(X), count)
    cell, distance = slow_nearest(X, centers, groups, count)
    assert_array_equal(near.cell, cell)
    assert_allclose(near.distance, distance, rtol=1e-10)


def test_groups_hold_the_centres_nearest_to_their_middles_and_are_never_empty():
    rng = np.random.default_rng(1)
    points, middles = rng.normal(size=(200, 3)), rng.normal(size=(30, 3))
    middles = np.vstack([middles, [[50.0, 50.0, 50.0]]])
    centers, groups = Groups.of(points, middles)
    assert_array_equal(np.unique(centers, axis=0), np.unique(points, axis=0))
    own = np.repeat(np.arange(len(groups.middles)), np.diff(groups.offsets))
    distance = np.linalg.norm(centers[:, None] - groups.middles[None], axis=2)
    assert_array_equal(own, distance.argmin(axis=1))
    assert np.diff(groups.offsets).min() > 0 and len(groups.middles) <= 30
    few = np.arange(0, 200, 7)
    some = Partition(centers, groups).subset(few)
    assert_array_equal(some.centers, centers[few])
    left = np.repeat(some.groups.middles, np.diff(some.groups.offsets), axis=0)
    assert_array_equal(left, groups.middles[own[few]])


def test_with_few_groups_two_levels_are_one():
    rng = np.random.default_rng(2)
    X, points = rng.normal(size=(500, 4)), rng.normal(size=(60, 4))
    centers, groups = Groups.of(points, points[:PROBED])
    one, two = (Partition(centers, each).nearest(_rows(X), 3) for each in (None, groups))
    assert_array_equal(two.cell, one.cell)
    assert_array_equal(two.distance, one.distance)


def test_of_equally_near_centres_the_first_is_taken():
    # Mean and unit are 8: nothing is rounded.
    grid = np.array([[i, j] for i in range(17) for j in range(17)], dtype=float)
    centers, groups = Groups.of(grid, np.random.default_rng(0).uniform(0.0, 16.0, size=(30, 2)))
    X = grid[:-1] + 0.5
    near = Partition(centers, groups).nearest(_rows(X), 2)
    assert_array_equal(near.cell, slow_nearest(X, centers, groups, 2)[0])


@pytest.mark.parametrize("threads", [1, 2])
def test_k_means_cuts_rows_into_cells_of_about_the_size(threads):
    X = np.random.default_rng(3).normal(size=(6000, 3))
    found = partition_by_kmeans(_rows(X, threads), 20, threads, Deadline(), one_level=100)
    assert found.groups is not None and 200 < found.n_cells < 450
    sizes = np.bincount(found.nearest(_rows(X)).cell[:, 0], minlength=found.n_cells)
    assert sizes.max() < 80
    again = partition_by_kmeans(_rows(X), 20, 1, Deadline(), one_level=100)
    assert_array_equal(found.centers, again.centers)
    assert_array_equal(found.groups.middles, again.groups.middles)


def test_up_to_a_number_of_cells_nothing_is_grouped():
    X = np.random.default_rng(4).normal(size=(3000, 2))
    one = partition_by_kmeans(_rows(X), 30, 1, Deadline())
    assert one.groups is None
    assert partition_by_kmeans(_rows(X), 30, 1, Deadline(), one_level=100).groups is None
    assert partition_by_kmeans(_rows(X), 30, 1, Deadline(), one_level=99).groups is not None


@pytest.mark.parametrize("n", [2, 5, 40])
def test_few_rows_and_one_cell(n):
    X = np.random.default_rng(5).normal(size=(n, 2))
    for size in (1, 2, n):
        found = partition_by_kmeans(_rows(X), size, 1, Deadline(), one_level=1)
        near = found.nearest(_rows(X), 3)
        assert near.cell.shape == (n, min(3, found.n_cells))
        members = Members.of(_rows(X), found, 0.3)
        assert sum(map(len, members.inside)) == n


def test_there_are_as_many_cells_as_time_allows():
    X = np.random.default_rng(6).normal(size=(3000, 2))
    found = partition_by_kmeans(_rows(X), 20, 1, Deadline.after(1e-6), one_level=50)
    assert 1 <= found.n_cells <= 50 and found.groups is None


def test_a_machine_answers_by_the_cells_that_it_was_fitted_in(two_levels):
    X, y = _classes()
    machine = MarginClassifier(**CELLS, blend=0.0).fit(X, y)
    groups = Groups(machine.cell_middles_, machine.cell_middle_offsets_)
    assert machine.cell_middle_offsets_[-1] == len(machine.cell_centers_)
    own, _ = slow_nearest(X[:200], machine.cell_centers_, groups, 1)
    expected = []
    for x, cell in zip(X[:200], own[:, 0], strict=True):
        part = slice(machine.cell_offsets_[cell], machine.cell_offsets_[cell + 1])
        squared = ((machine.support_vectors_[part] - x) ** 2).sum(axis=1)
        value = machine.dual_coef_[0, part] @ np.exp(-squared)
        expected.append(value + machine.intercept_[cell, 0])
    assert_allclose(machine.decision_function(X[:200]), expected, atol=1e-5)


def test_another_fit_forgets_the_groups(two_levels):
    X, y = _classes(600)
    machine = MarginClassifier(**CELLS).fit(X, y)
    assert hasattr(machine, "cell_middles_")
    centers = machine.cell_centers_
    machine.set_params(cells=centers).fit(X, y)
    # A user's centres are all looked at.
    assert not hasattr(machine, "cell_middles_") and not hasattr(machine, "cell_middle_offsets_")
    assert_array_equal(machine.predict(X[:50]), machine.predict(X)[:50])


@pytest.mark.parametrize("repeated", [False, True])
def test_collections_and_mapped_files_give_the_machines_of_memory(two_levels, repeated, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = _classes()
    if repeated:
        X, y = np.repeat(X[:800], 3, axis=0), np.repeat(y[:800], 3)
    here = MarginClassifier(**CELLS).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    there = [
        MarginClassifier(**CELLS).fit(da.from_array(X, chunks=(510, 3)), da.from_array(y, 510)),
        MarginClassifier(**CELLS, memory=200_000).fit(mapped, y),
    ]
    assert here.certificate_.n_passes != there[1].certificate_.n_passes
    names = ("cell_centers_", "cell_middles_", "cell_middle_offsets_", "cell_offsets_", "support_")
    for other in there:
        for name in (*names, "support_vectors_", "dual_coef_", "intercept_"):
            assert_array_equal(getattr(other, name), getattr(here, name), err_msg=name)
        assert_array_equal(other.decision_function(X[:100]), here.decision_function(X[:100]))
