"""A partition of the rows, and which rows train in which cell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from tests.reference import cells as reference
from tests.reference.problems import problem_of
from widemargin.cells import CellOptions, Members, Partition, cut
from widemargin.cells import partition as partition_module
from widemargin.cells.partition import given_partition, partition_by_kmeans
from widemargin.loop import Deadline
from widemargin.rows import as_rows


def _rng():
    return np.random.default_rng(0)


def _rows(X, memory=10**9, threads=1):
    return as_rows(X, memory=memory, threads=threads)


def _partition(rows, size, threads=1):
    return partition_by_kmeans(rows, size, threads, Deadline())


def _gaussian(n=3000, d=3):
    return _rng().normal(size=(n, d))


def _tight(spread):
    """Half of the rows in a small place far from the others."""
    X = _gaussian()
    X[::2] = 5.0 + spread * X[::2]
    return X


DATA = {
    "gaussian": _gaussian,
    "one feature": lambda: _gaussian(d=1),
    "far from the origin": lambda: _gaussian() + 1e6,
    "columns of different scale": lambda: _gaussian() * [1.0, 1e3, 1e6],
    "a constant column": lambda: np.column_stack([_gaussian(), np.full(3000, 7.0)]),
    "skewed": lambda: _rng().lognormal(0, 2, size=(3000, 4)),
    "heavy tails": lambda: _rng().standard_cauchy(size=(3000, 2)),
    "many features": lambda: _gaussian(1500, 50),
    "more features than a cell has rows": lambda: _gaussian(3000, 200),
    "skewed in many features": lambda: _rng().lognormal(0, 2, size=(3000, 20)),
    "dense and thin places": lambda: _tight(1e-2),
    "a very dense place": lambda: _tight(1e-5),
    "whole numbers": lambda: np.unique(_rng().integers(8, size=(3000, 4)), axis=0)[
        _rng().permutation(2109)
    ].astype(float),
    "tiny": lambda: _gaussian() * 1e-100,
    "huge": lambda: _gaussian() * 1e100,
}
every_data = pytest.mark.parametrize("data", DATA)


# The partition.


@every_data
@pytest.mark.parametrize("count", [1, 3])
def test_every_row_goes_to_its_nearest_centres(data, count):
    X = DATA[data]()
    partition = _partition(_rows(X), 100)
    near = partition.nearest(_rows(X), count)
    assert near.cell.shape == near.distance.shape == (len(X), count)
    expected = reference.distances(X, partition.centers)
    rounding = {"rtol": 1e-6, "atol": 1e-14 * np.abs(X).max()}
    # Whichever of equals it is.
    assert_allclose(near.distance, np.sort(expected, axis=1)[:, :count], **rounding)
    assert_allclose(np.take_along_axis(expected, near.cell, axis=1), near.distance, **rounding)
    assert (np.diff(near.distance, axis=1) >= 0).all()
    assert (np.diff(np.sort(near.cell, axis=1), axis=1) > 0).all()


@every_data
@pytest.mark.parametrize("size", [50, 200])
def test_cells_are_of_about_the_size_that_is_asked_for(data, size):
    X = DATA[data]()
    partition = _partition(_rows(X), size)
    count = np.bincount(partition.nearest(_rows(X)).cell[:, 0], minlength=partition.n_cells)
    # Skewed rows have outliers, which cells of their own are made for.
    assert count.max() <= (6 if data == "skewed in many features" else 3.5) * size
    assert len(X) / size / 2 <= partition.n_cells <= 4 * len(X) / size


def test_a_partition_has_the_same_bits_every_time_and_for_any_number_of_threads():
    X = _gaussian(20_000, 4)
    one = _partition(_rows(X), 100)
    for threads in (1, 2, 3):
        other = _partition(_rows(X, threads=threads), 100, threads)
        assert_array_equal(one.centers, other.centers)
        near, same = one.nearest(_rows(X), 3), other.nearest(_rows(X, threads=threads), 3)
        assert_array_equal(near.cell, same.cell)
        assert_array_equal(near.distance, same.distance)


def test_few_rows_are_one_cell_about_their_mean():
    X = _gaussian(20)
    partition = _partition(_rows(X), 100)
    assert_allclose(partition.centers, X.mean(axis=0)[None])
    near = partition.nearest(_rows(X), 3)
    assert_array_equal(near.cell, np.zeros((20, 1)))
    assert_allclose(near.distance[:, 0], np.linalg.norm(X - X.mean(axis=0), axis=1))


@pytest.mark.parametrize("spread", [0.0, 1e-300, 1e-17])
def test_rows_that_are_nearly_the_same_are_no_trouble(spread):
    X = 1.0 + spread * _gaussian(500)
    partition = _partition(_rows(X), 50)
    near = partition.nearest(_rows(X), 2)
    assert np.isfinite(partition.centers).all()
    assert (near.cell < partition.n_cells).all()
    assert np.isfinite(near.distance).all()


def test_sparse_rows_lie_in_the_same_cells():
    X = _rng().normal(size=(2000, 30)) * (_rng().random((2000, 30)) < 0.1)
    for stored in (sparse.csr_matrix(X), sparse.csr_array(X)):
        dense, sparse_rows = _rows(X), _rows(stored)
        partition = _partition(dense, 100)
        assert_array_equal(partition.centers, _partition(sparse_rows, 100).centers)
        for of_dense, of_sparse in zip(
            vars(partition.nearest(dense, 2)).values(),
            vars(partition.nearest(sparse_rows, 2)).values(),
            strict=True,
        ):
            assert_array_equal(of_dense, of_sparse)


def test_single_precision_rows_are_the_same_rows():
    X = _gaussian().astype(np.float32)
    single, double = _rows(X), _rows(X.astype(np.float64))
    partition = _partition(single, 100)
    assert_array_equal(partition.centers, _partition(double, 100).centers)
    assert_array_equal(partition.nearest(single).cell, partition.nearest(double).cell)


def _blocks(monkeypatch):
    """Note the shape of every block that is assigned."""
    seen, call = [], partition_module._Nearest.__call__

    def noting(self, block, where):
        seen.append(block.shape)
        return call(self, block, where)

    monkeypatch.setattr(partition_module._Nearest, "__call__", noting)
    return seen


def test_a_memory_mapped_file_is_read_block_by_block(tmp_path, monkeypatch):
    X = _gaussian(5000, 4)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    partition = _partition(_rows(mapped), 250)
    seen = _blocks(monkeypatch)
    near = partition.nearest(_rows(mapped, memory=10**6))
    assert max(n for n, _ in seen) < 1000
    assert_array_equal(near.cell, partition.nearest(_rows(X)).cell)


def test_wide_sparse_rows_are_made_dense_a_few_at_a_time(monkeypatch):
    X = sparse.random_array((600, 20_000), density=1e-3, format="csr", rng=_rng())
    partition = Partition(X[:5].toarray())
    seen = _blocks(monkeypatch)
    partition.nearest(_rows(X, memory=10**8))
    assert max(8 * n * d for n, d in seen) <= 10**7
    assert sum(n for n, _ in seen) == 600


def test_rows_beyond_all_bounds_have_a_nearest_centre_too():
    partition = Partition(np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]))
    X = np.array([[-1e200, 0.0], [1e300, 1.0], [0.0, 1e40], [np.finfo(float).max, 0.0]])
    near = partition.nearest(_rows(X), 2)
    assert_array_equal(near.cell[:, 0], [0, 1, 2, 1])
    assert not np.isnan(near.distance).any()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1.0, 2.0], r"centres of 2 features, but has shape \(2,\)"),
        (np.zeros((0, 2)), "centres of 2 features"),
        (np.zeros((3, 4)), r"centres of 2 features, but has shape \(3, 4\)"),
        ([[1.0, 2.0], [np.nan, 0.0]], "not finite"),
        ([["a", "b"]], "table of centres"),
        ([[1.0], [1.0, 2.0]], "table of centres"),
    ],
)
def test_centres_that_are_none_are_refused(cells, message):
    with pytest.raises(ValueError, match=message):
        given_partition(cells, 2)


def test_centres_given_twice_count_once():
    partition, number = given_partition([[1, 2], [0, 1], [1, 2]], 2)
    assert_array_equal(partition.centers, [[0.0, 1.0], [1.0, 2.0]])
    assert_array_equal(number, [1, 0])
    assert partition.centers.dtype == np.float64


# Which rows train in which cell.


def _labelled(n=400, n_classes=2, d=2):
    X = _gaussian(n, d)
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [0.0, 1.0][: n_classes - 1])
    return X, y


def _cut(problem, overlap):
    return cut(problem, CellOptions(cells=40, overlap=overlap))


def _numbers(problem, cells):
    return [set(problem.number[index]) for index in cells]


def test_without_overlap_the_members_are_a_partition():
    X, y = _labelled()
    problem = problem_of(X, y)
    members = _cut(problem, 0.0)
    assert_array_equal(np.sort(np.concatenate(members.train)), np.arange(len(X)))
    expected = reference.members(X, members.partition.centers, 0.0)
    assert _numbers(problem, members.train) == expected
    assert members.inside is members.train


@pytest.mark.parametrize("overlap", [0.1, 0.5, 2.0, 1e200])
def test_guests_are_the_rows_nearest_to_the_edge(overlap):
    X, y = _labelled()
    problem = problem_of(X, y)
    members, without = _cut(problem, overlap), _cut(problem, 0.0)
    expected = reference.members(X, members.partition.centers, overlap)
    assert _numbers(problem, members.train) == expected
    for inside, plain, train in zip(members.inside, without.train, members.train, strict=True):
        assert_array_equal(inside, plain)
        assert set(inside) <= set(train)
        assert len(train) - len(inside) <= round(overlap * len(inside))
        assert (np.diff(train) > 0).all()


def test_cells_without_rows_go_and_their_neighbours_are_neighbours():
    X = np.array([[-3.0], [-2.0], [-1.5], [1.5], [2.0], [3.0]])
    problem = problem_of(X, np.array([0, 1, 0, 1, 0, 1]))
    # The cells amid the others are the second nearest of most rows, and have no row.
    centers = np.array([[-2.0], [-0.01], [0.01], [2.0], [50.0]])
    members = Members.of(problem.rows, Partition(centers), 0.4)
    assert_array_equal(members.partition.centers, [[-2.0], [2.0]])
    assert_array_equal(members.chosen, [0, 3])
    assert _numbers(problem, members.train) == [{0, 1, 2, 3}, {2, 3, 4, 5}]
    assert _numbers(problem, members.inside) == [{0, 1, 2}, {3, 4, 5}]
