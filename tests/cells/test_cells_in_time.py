"""The time that a user allows, in cells, by a clock that moves when it is told to."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from tests.reference import cells as reference
from tests.reference.cell_data import MANY, board, in_cells_of, search_in_cells, two_classes
from tests.reference.classifier_ways import sized
from widemargin import loop
from widemargin.balls import exact
from widemargin.base import estimator
from widemargin.cells import (
    ExactSizes,
    Partition,
    cell_engine,
    cell_machine,
    held_out,
    partition,
)
from widemargin.cells.nearest_centers import OneLevel
from widemargin.cells.partition import partition_by_kmeans
from widemargin.loop import Deadline
from widemargin.rows import as_rows
from widemargin.span import SpanFit, span_engine


class _Clock:
    """A clock that moves only when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in ("loop", "cells.partition"):
            monkeypatch.setattr(f"widemargin.{module}.perf_counter", lambda: self.now)
        self.patch = monkeypatch

    def costs(self, owner, name, seconds):
        """Let every call take so many seconds; return the list of calls."""
        calls, original = [], getattr(owner, name)

        def call(*arguments, **named):
            calls.append(arguments)
            self.now += seconds
            return original(*arguments, **named)

        self.patch.setattr(owner, name, call)
        return calls


@pytest.fixture
def clock(monkeypatch):
    return _Clock(monkeypatch)


@pytest.fixture
def limits(monkeypatch):
    """The seconds that are left for the loop each time that one is run."""
    given = []

    def run(solver, limits, *arguments):
        given.append(limits.deadline.left())
        return loop.run(solver, limits, *arguments)

    for module in (exact, cell_engine, span_engine):
        monkeypatch.setattr(module, "run", run)
    return given


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_looking_for_equal_rows_counts(engine, clock, limits):
    clock.costs(estimator, "distinct_rows", 4.0)
    in_cells_of(engine=engine, max_time=100.0).fit(*two_classes())
    assert set(limits) == {96.0}


def test_the_partition_counts_and_leaves_time_for_machines(clock, limits):
    X, y = board(1200)
    steps = clock.costs(partition, "_moved", 1.0)
    whole = in_cells_of(cells=40).fit(X, y)
    assert len(steps) > 4
    assert limits == [None]
    steps.clear(), limits.clear()
    assigned = clock.costs(Partition, "nearest", 2.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=8 reached\)"):
        # Two steps are a quarter of the time; a cell takes a second, and four are left.
        fitted = clock.costs(cell_engine, "exact_machines", 1.0)
        machine = in_cells_of(cells=40, max_time=8.0).fit(X, y)
    assert (len(steps), len(assigned), len(fitted)) == (2, 1, 4)
    assert limits == [4.0]
    assert 0.5 < machine.certificate_.gap < 1.0
    assert machine.certificate_.dual <= whole.certificate_.primal
    # The smallest, of which the last was given up, and some may have one class only.
    done = np.flatnonzero(np.diff(machine.cell_offsets_))
    assert 1 <= len(done) <= 3
    sizes = np.array([len(m) for m in reference.members(X, machine.cell_centers_, 0.3)])
    assert sizes[done].max() <= np.sort(sizes)[3]
    # The rest are constants: better than one for all rows.
    assert 0.55 < machine.score(X, y) < whole.score(X, y)


def test_there_are_no_more_cells_than_rows_can_be_assigned_to_in_time(clock):
    X, _ = board(4000)
    # To compare 2,048 rows of the sample with 200 centres: 16 s, and 64 s for all rows.
    nearest = OneLevel.nearest

    def slow(centers, points, count):
        clock.now += 4e-5 * len(points) * len(centers.apart)
        return nearest(centers, points, count)

    clock.patch.setattr(OneLevel, "nearest", slow)
    rows = as_rows(X, memory=10**9, threads=1)
    found = {}
    for seconds in (1e-3, 116.0, 1e6):
        found[seconds] = partition_by_kmeans(rows, 20, 1, Deadline.after(seconds))
        own = found[seconds].nearest(rows).cell
        assert len(np.unique(own)) == found[seconds].n_cells
    # A quarter of 100 s are 25, for 64 with all centres.
    assert found[116.0].n_cells == pytest.approx(200 * 25 / 64, rel=0.3)
    assert found[1e-3].n_cells == 16
    unlimited = partition_by_kmeans(rows, 20, 1, Deadline())
    assert_array_equal(found[1e6].centers, unlimited.centers)


@pytest.mark.parametrize("slow", ["cells", "span"])
def test_where_there_is_no_time_to_choose_it_is_a_span(slow, clock, limits):
    X, y = board(2400)
    if slow == "cells":
        calls = clock.costs(cell_engine, "exact_machines", 3.0)
    else:
        calls = clock.costs(SpanFit, "step", 3.0)
    machine = sized(**MANY)(gamma=60.0, random_state=0, n_jobs=1, max_time=20.0)
    warning = pytest.warns(ConvergenceWarning, match="max_time=20 reached")
    with warning if slow == "span" else nullcontext():
        machine.fit(X, y)
    assert machine.engine_ == "span"
    assert machine.certificate_.stopped.endswith("(engine: no time to compare it with cells)")
    # The trial has a quarter of the time, and the fit what is left.
    if slow == "cells":
        assert len(calls) == 2
    assert limits[0] == 5.0
    assert limits[-1] == 14.0
    assert set(machine.predict(X)) <= {0, 1}


def test_where_there_is_no_time_to_try_sizes_it_is_the_smallest(clock, limits):
    clock.costs(cell_engine, "exact_machines", 1.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=16 reached \(engine: no time to try"):
        machine = in_cells_of(sized(**MANY), cells="auto", max_time=16.0)
        machine.fit(*two_classes(2400))
    assert limits == [4.0, 12.0]
    assert len(machine.cell_centers_) == pytest.approx(2400 / 60, rel=0.5)
    assert np.count_nonzero(np.diff(machine.cell_offsets_)) <= 12


def test_the_machine_of_a_cell_that_is_not_exact_has_what_is_left(clock):
    X, y = two_classes(600)
    kind = sized(matrix_rows=10, exact_sizes=ExactSizes(always=10, most=10))
    steps = clock.costs(SpanFit, "step", 1.0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=5 reached"):
        machine = in_cells_of(kind, cells=[[0, 0], [1, 0]], max_time=5.0, tol=1e-9).fit(X, y)
    assert len(steps) == 5
    assert machine.certificate_.gap > 0
    assert machine.score(X, y) > 0.4
    steps.clear()
    with pytest.warns(ConvergenceWarning, match=r"max_time=3 reached, 1 cells"):
        in_cells_of(kind, cells=[[0.0, 0.0]], max_time=3.0, tol=1e-9).fit(X, y)
    assert len(steps) == 3


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_many_classes_stop_between_two_cells(clock, multi_class):
    X, y = two_classes(600)
    y = np.arange(600) % 20
    solved = clock.costs(cell_machine, "solve_cells", 40.0)
    machine = in_cells_of(
        cells=[[0.0, 0.0], [1.0, 0.0]], max_time=30.0, multi_class=multi_class, tol=1e-2
    )
    with pytest.warns(ConvergenceWarning, match=r"max_time=30 reached"):
        machine.fit(X, y)
    assert len(solved) == 1
    # All of the first cell, and nothing of the second.
    assert np.count_nonzero(np.diff(machine.cell_offsets_)) == 1


def test_the_partition_counts_in_a_search_too(clock, limits):
    X, y = board(1200)
    moves = clock.costs(partition, "_moved", 1.0)
    cells = clock.costs(held_out, "_cell_values", 1.0)
    fits = clock.costs(cell_engine, "exact_machines", 1.0)
    search = search_in_cells([1.0, 10.0], [5.0, 60.0], cells=40, max_time=60.0)
    with pytest.warns(ConvergenceWarning) as warned:
        search.fit(X, y)
    said = [str(warning.message) for warning in warned]
    assert len(said) == 2
    assert "cut short (max_time=60 reached): 0 of 4 pairs" in said[0]
    assert "max_time=20 reached" in said[1]
    # A third of the time for each width, with the cells of the first, and for the final fit.
    first = [points.kernel.gamma == 5.0 for points, *_ in cells]
    assert 15 <= sum(first) < 20
    assert len(cells) - sum(first) == 20
    assert len(fits) == limits[0] < 20
    assert len(moves) + len(cells) + len(fits) == 60
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_cells_of_a_search_are_the_same_for_all_widths_where_time_is_short(clock):
    X, y = board(1200)
    moves = clock.costs(partition, "_moved", 1.0)
    search = search_in_cells([1.0], [5.0, 60.0], cells=40, max_time=12.0, per_cell=True).fit(X, y)
    assert len(moves) == 1
    assert len(search.best_estimator_.cell_gamma_) == len(search.best_estimator_.cell_centers_)
