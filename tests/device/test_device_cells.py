"""Cells on a device are those of this machine, and so are their machines and answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from tests.reference.cell_data import CENTERS, WAYS, board, in_cells_of, three_classes, two_classes
from widemargin.cells import Groups, Members, Partition
from widemargin.cells.device_partition import MembersThere, nearest_there, partition_there
from widemargin.cells.partition import partition_by_kmeans
from widemargin.device import DeviceRows, device_of, to_numpy
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline
from widemargin.problem import Problem, one_vs_one
from widemargin.rows import as_rows
from widemargin.svm.margin_classifier import CellParameters

every_way = pytest.mark.parametrize("way", WAYS)


def _rows(device, X):
    return DeviceRows(device.array(X), device, 10**9, 1), as_rows(X, memory=10**9, threads=1)


def _both(device, X, y, weight=None, **parameters):
    given = {"C": 10.0, "tol": 1e-4} | parameters
    here = in_cells_of(**given).fit(X, y, weight)
    there = in_cells_of(**given).fit(device.array(X), device.array(y), weight)
    return here, there


# The partition.


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nearest_centres_are_those_of_this_machine(device, count):
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(500, 3)) + 100.0, rng.normal(size=(40, 3)) + 100.0
    rows, here = _rows(device, X)
    near = Partition(centers).nearest(here, count)
    cell, distance = nearest_there(rows, device.array(centers), count)
    assert_array_equal(to_numpy(cell), near.cell)
    assert_allclose(to_numpy(distance), near.distance, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 3])
def test_centres_in_groups_are_those_of_this_machine(device, count):
    rng = np.random.default_rng(0)
    X, points = rng.normal(size=(500, 3)), rng.normal(size=(60, 3))
    centers, groups = Groups.of(points, points[:25])
    rows, here = _rows(device, X)
    near = Partition(centers, groups).nearest(here, count)
    cell, distance = nearest_there(rows, device.array(centers), count, groups)
    assert_array_equal(to_numpy(cell), near.cell)
    assert_allclose(to_numpy(distance), near.distance, rtol=1e-12)


def test_fewer_centres_than_are_wanted(device):
    rows, _ = _rows(device, np.random.default_rng(0).normal(size=(20, 2)))
    cell, distance = nearest_there(rows, device.array(np.zeros((1, 2))), 3)
    assert tuple(cell.shape) == tuple(distance.shape) == (20, 1)


def test_k_means_finds_the_centres_of_this_machine(device):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    rows, here = _rows(device, X)
    found, expected = (
        partition_there(rows, 40, Deadline()),
        partition_by_kmeans(here, 40, 1, Deadline()),
    )
    assert_allclose(found.centers, expected.centers, atol=1e-9)


@pytest.mark.parametrize("overlap", [0.0, 0.3, 5.0])
def test_members_are_those_of_this_machine(device, overlap):
    X, y = three_classes(400)
    rows, here = _rows(device, X)
    # One that has no row goes.
    partition = Partition(np.vstack([CENTERS, [[50.0, 50.0]]]))
    problem = Problem.of(rows, make_kernel("rbf"), y, one_vs_one(3), np.ones(400), 1.0)
    found = MembersThere.of(problem, partition, overlap, None)
    expected = Members.of(here, partition, overlap)
    assert_array_equal(found.chosen, expected.chosen)
    assert_array_equal(found.sizes, [len(train) for train in expected.train])
    row = to_numpy(found.row)
    for begins, train in zip(found.begins, expected.train, strict=True):
        assert_array_equal(np.sort(row[begins[0] : begins[-1]]), train)
        for k in range(3):
            assert (y[row[begins[k] : begins[k + 1]]] == k).all()


# Fits.


@every_way
@pytest.mark.parametrize("cells", [40, CENTERS], ids=["by size", "given"])
def test_machines_and_answers_are_those_of_this_machine(device, way, cells):
    data, classes = WAYS[way]
    X, y = data(600)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=600)
    here, there = _both(device, X, y, weight, cells=cells, **classes)
    assert there.engine_ == "cells"
    assert_allclose(there.cell_centers_, here.cell_centers_, atol=1e-9)
    mine, theirs = here.certificate_, there.certificate_
    assert_allclose([theirs.primal, theirs.dual], [mine.primal, mine.dual], rtol=1e-4)
    assert theirs.scope == "cells" and theirs.dual <= mine.primal * (1 + 1e-5)
    assert_allclose(theirs.n_vectors, mine.n_vectors, rtol=0.05)
    X_there = device.array(X)
    found = there.decision_function(X_there)
    assert device_of(found) == device
    assert_allclose(to_numpy(found), here.decision_function(X), atol=0.02)
    assert there.score(X_there, y) == pytest.approx(here.score(X, y), abs=0.005)
    # One machine answers the same here and there.
    assert_allclose(to_numpy(found), there.decision_function(X), atol=1e-10)
    assert_allclose(
        to_numpy(here.decision_function(X_there)), here.decision_function(X), atol=1e-10
    )


@pytest.mark.parametrize("way", ["two classes", "three classes in pairs"])
def test_exact_machines_agree_to_many_digits(device, way):
    data, classes = WAYS[way]
    X, y = data(400)
    here, there = _both(device, X, y, cells=CENTERS, tol=1e-9, **classes)
    assert_allclose(there.certificate_.primal, here.certificate_.primal, rtol=1e-8)
    assert_array_equal(there.cell_offsets_, here.cell_offsets_)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.dual_coef_, here.dual_coef_, atol=1e-4)
    assert_allclose(there.intercept_, here.intercept_, atol=1e-4)


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "inverse_distance", "linear"])
def test_every_kernel(device, kernel):
    X, y = two_classes(200)
    here, there = _both(device, X, y, cells=CENTERS, kernel=kernel, gamma=1.0, C=1.0)
    assert_allclose(there.certificate_.primal, here.certificate_.primal, rtol=1e-3)
    found = to_numpy(there.decision_function(device.array(X)))
    assert_allclose(found, here.decision_function(X), atol=0.02)


def test_cells_of_one_class_are_constants(device):
    X, y = board(500, squares=2)
    here, there = _both(device, X, y, cells=10, overlap=0.0)
    alone = np.diff(here.cell_offsets_) == 0
    assert alone.sum() > 5
    assert_array_equal(np.diff(there.cell_offsets_) == 0, alone)
    assert_allclose(there.intercept_[alone], here.intercept_[alone], rtol=1e-12)
    assert_allclose(there.certificate_.dual, here.certificate_.dual, rtol=1e-4)


def test_one_cell_and_answers_without_a_blend(device):
    X, y = two_classes(200)
    here, there = _both(device, X, y, cells=10_000, blend=0.0)
    assert len(there.cell_centers_) == 1
    found = to_numpy(there.decision_function(device.array(X)))
    assert_allclose(found, here.decision_function(X), atol=0.01)


def test_small_memory_makes_no_difference(device):
    X, y = two_classes(300)
    _, there = _both(device, X, y)
    small = in_cells_of(C=10.0, tol=1e-4, memory=2_000_000).fit(device.array(X), y)
    assert_allclose(small.certificate_.primal, there.certificate_.primal, rtol=1e-4)


def test_numpy_rows_go_to_a_named_device():
    pytest.importorskip("torch")
    X, y = two_classes(300)
    here = in_cells_of(C=10.0).fit(X, y)
    # "cpu" is NumPy; a device of torch's that is this machine has an index.
    there = in_cells_of(C=10.0, device="cpu:0").fit(X, y)
    found = there.decision_function(X)
    assert isinstance(found, np.ndarray)
    assert_allclose(found, here.decision_function(X), atol=0.05)


def test_a_budget_of_vectors_holds(device):
    X, y = board(600)
    machine = in_cells_of(cells=150, C=10.0, max_vectors=60, gamma=20.0)
    machine.fit(device.array(X), y)
    assert machine.certificate_.n_vectors <= 60
    assert machine.score(device.array(X), y) > 0.5


def test_cells_without_time_are_constants(device):
    X, y = board(600)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = in_cells_of(C=10.0, max_time=1e-9).fit(device.array(X), y)
    assert machine.certificate_.gap == 1.0
    assert np.isfinite(to_numpy(machine.decision_function(device.array(X)))).all()


def test_large_cells_get_a_span(device, monkeypatch):
    from widemargin.cells import device_cells

    X, y = two_classes(300)
    here, there = _both(device, X, y, cells=CENTERS)
    usual = device_cells.DeviceCellsFit.__init__

    def small_matrices(self, problem, members, options):
        usual(self, problem, members, device_cells.replace(options, matrix_rows=90))

    monkeypatch.setattr(device_cells.DeviceCellsFit, "__init__", small_matrices)
    _, spans = _both(device, X, y, cells=CENTERS)
    assert_allclose(spans.certificate_.primal, there.certificate_.primal, rtol=0.05)
    found = to_numpy(spans.decision_function(device.array(X)))
    assert (np.sign(found) == np.sign(here.decision_function(X))).mean() > 0.97


def test_cells_with_their_own_parameters_are_refused(device):
    X, y = two_classes(100)
    own = CellParameters(CENTERS, np.full(5, 2.0), np.full(5, 1.0))
    machine = in_cells_of(cells=own)
    with pytest.raises(ValueError, match=r"own are not there.*device='cpu'"):
        machine.fit(device.array(X), y)
    machine.fit(X, y)
    with pytest.raises(ValueError, match=r"own are not there.*device='cpu'"):
        machine.decision_function(device.array(X))
