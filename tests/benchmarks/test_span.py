"""The span fit by itself."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import span
from benchmarks.harness import datasets
from benchmarks.harness.records import merged
from benchmarks.harness.report import MISSING, markdown_table
from tests.benchmarks.trial import as_read, finished
from widemargin import MarginClassifier
from widemargin.span.levels import SpanFit
from widemargin.span.values import KernelValues


class Clock:
    """Goes on only when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


def span_record(part, label="fit", **fields):
    """A finished record of the span benchmark."""
    return finished(part=part, label=label, run="monday", rows=None, n_train=1000) | fields


def test_all_rows_of_covtype_train_and_some_of_them_test(folder, monkeypatch):
    monkeypatch.setattr(datasets, "TIMING_TEST_ROWS", 20)
    X = np.random.default_rng(0).integers(0, 99, size=(100, 3)).astype(np.int16)
    np.savez(folder / "covtype.npz", X=X, y=1 + np.arange(100) % 7)
    data = datasets.load("covtype_all")
    assert data.X_train.shape == (100, 3) and set(data.y_train) == {-1, 1}
    np.testing.assert_allclose(data.X_train.std(axis=0), 1.0)
    np.testing.assert_array_equal(data.X_test, data.X_train[:20])
    np.testing.assert_array_equal(data.y_test, data.y_train[:20])
    assert len(datasets.load("covtype_all", 30).y_train) == 30


def test_time_counts_for_the_innermost_phase_and_the_rest_for_none():
    clock = Clock()
    watch = span.phases.Stopwatch(clock)
    inner = watch.phase("inner", clock.wait)

    def outside():
        clock.wait(1.0)
        inner(2.0)
        clock.wait(4.0)

    outer = watch.phase("outer", outside)
    outer()  # before the watch runs, nothing is counted
    with watch.running():
        outer()
        clock.wait(8.0)
    assert watch.seconds == {"outer": 5.0, "inner": 2.0, span.phases.REST: 8.0}
    assert watch.calls == {"outer": 1, "inner": 1}


def test_a_phase_is_divided_by_the_work_of_its_threads():
    clock = Clock()
    watch = span.phases.Stopwatch(clock)
    compute, visit = watch.work("block", clock.wait), watch.work("visit", clock.wait)

    def scan():
        compute(3.0)
        visit(1.0)
        clock.wait(4.0)

    timed = watch.phase("products", scan, {"block": "kernel", "visit": "products"})
    with watch.running():
        timed()
    assert watch.seconds == {"products": 2.0, "kernel": 6.0, span.phases.REST: 0.0}
    assert span.phases.divided(1.0, {"kernel": 0.0}) == {}


def test_the_phases_of_a_span_fit_add_up_and_leave_no_trace():
    data = datasets.load("generated")
    machine = MarginClassifier(engine="span", max_vectors=100, random_state=0)
    before = SpanFit._on_near_rows, KernelValues.scan
    found = span.floor.phases_of(machine, data.X_train, data.y_train)
    assert before == (SpanFit._on_near_rows, KernelValues.scan)
    assert sum(found["phases"].values()) == pytest.approx(found["phases_fit_seconds"], rel=0.05)
    assert found["phases"].keys() == span.phases.PHASES.keys()
    busy = (span.phases.KERNEL, span.phases.SUM, span.phases.GRADIENTS, span.phases.PROOF)
    assert all(found["phases"][phase] > 0 for phase in busy)


def test_the_floor_has_a_time_for_every_part():
    data = datasets.load("generated")
    machine = MarginClassifier(engine="span", max_vectors=50)
    seconds = span.internals.floor_of(machine, data.X_train, data.y_train, threads=2)
    assert set(seconds) == {*span.floor.FLOOR, "kernel_again", "gram64"}
    assert all(value > 0 for value in seconds.values())


def test_the_scale_is_told_in_multiples_of_a_hundred_thousand_rows():
    certificate = {"gap": 1e-4, "n_kernel": 3e8, "n_vectors": 1000}
    some = span_record("scale", rows=100_000, n_train=100_000, certificate=certificate)
    whole = some | {
        "rows": span.scale.ALL_ROWS,
        "n_train": span.scale.ALL_ROWS,
        "fit_seconds": 13.0,
    }
    table = span.scale.table([whole, some])
    assert [row[2] for row in table.rows] == ["1.00×", "6.50×"]
    assert table.rows[0][-1] == "300" and "6.50× (asked: at most 6.5×)" in table.notes[0]


def test_every_part_of_the_span_benchmark_is_planned_and_warmed_up_in_float32():
    for quick in (False, True):
        found = span.command.plan(span.command.PARTS, quick, 3, 20_000)
        assert list(dict.fromkeys(m.part for m in found)) == list(span.command.PARTS)
        assert all(m.dataset in datasets.RECIPES for m in found)
        cells = {(m.part, m.dataset, m.label, str(m.point)) for m in found}
        assert len(cells) == len(found)
        for m in found:
            if m.part in {"floor", "scale"}:
                assert m.warmup_rows * m.params["max_vectors"] > 4_000_000
    assert {m.part for m in span.command.plan(["cv"], True, 1, None)} == {"cv"}


@pytest.mark.parametrize(
    ("task", "params"),
    [
        ("floor", {"engine": "span", "gamma": "mean_distance", "max_vectors": 50}),
        ("cv", {"Cs": 2, "cv": 2, "max_vectors": 50}),
        ("map", {"size": 50, "C": 1.0, "seeds": 2}),
    ],
)
def test_a_task_of_the_span_benchmark_fills_its_tables(task, params):
    labels = {"floor": ["fit"], "cv": ["search", span.cv.GRID], "map": ["Nystroem", "core"]}
    module = {"floor": span.floor, "cv": span.cv, "map": span.features}[task]
    spec = {"estimator": span.plan.OURS, "params": params, "threads": 1, "repeats": 1}
    spec |= {"warmup_rows": 60, "dataset": "generated", "rows": None, "point": {"C": 1.0}}
    records = []
    for label in labels[task]:
        result = module.measure(spec | {"label": label}, datasets.load("generated"), lambda _: None)
        records.append({**spec, "label": label, "status": "ok", "message": "", "part": task})
        records[-1] |= as_read(result)
        assert records[-1]["accuracy"] > 70
    for table in module.tables(records):
        text = markdown_table(table.header, table.rows)
        assert "generated" in text
    ended = [{**record, "status": "timeout", "message": "late"} for record in records]
    assert all("timeout" in str(table.rows) or task == "floor" for table in module.tables(ended))


def test_scores_beside_a_grid_are_compared_with_their_sign():
    assert span.cv.differences([0.9, 0.8], [0.8, 0.9]) == pytest.approx((0.0, 0.1))
    assert span.cv.differences(None, [0.9]) == (None, None)
    assert (
        span.features.spread([90.0, 91.5]) == "90.00 to 91.50"
        and span.features.spread([90.0]) == MISSING
    )


def test_a_run_of_one_part_keeps_the_others():
    old = [span_record("floor", point={"C": 1.0}), span_record("map", label="core")]
    new = old[1] | {"run": "tuesday"}
    assert merged(old, new) == [old[0], new]
    assert len(merged(old, span_record("floor", point={"C": 10.0}))) == 3
