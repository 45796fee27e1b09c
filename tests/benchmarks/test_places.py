"""Generated rows, fits from disk and on a cluster, deaths, the cost model, and what was asked."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import threading

import numpy as np
import pytest

from benchmarks import places
from benchmarks.harness import datasets, runner
from benchmarks.harness.records import cell_of
from benchmarks.harness.report import MISSING
from benchmarks.places import command, deaths, files, fit, generator, model, peers, plan, targets
from benchmarks.places.generator import SCALE, TEST, TRAIN
from benchmarks.places.watch import Watch, cpu_seconds, status_bytes
from tests.benchmarks.trial import as_read, failing, finished

ALL = {"quick": False, "repeats": 3, "kills": 10, "most": plan.ALL_ROWS}


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setenv(files.SCRATCH, str(tmp_path))
    return tmp_path


@pytest.fixture
def few_in_a_block(monkeypatch):
    """Blocks of few rows; the scale is that of the rows they are made of."""
    monkeypatch.setattr(generator, "BLOCK_ROWS", 100)
    monkeypatch.setattr(files, "BLOCK_ROWS", 100)
    generator.scale.cache_clear()
    yield 100
    generator.scale.cache_clear()


# ---------------------------------------------------------------- generated rows


def test_a_row_is_the_same_whatever_the_number_of_rows(few_in_a_block):
    some = [np.concatenate(parts) for parts in zip(*generator.blocks(TRAIN, 150), strict=True)]
    more = [np.concatenate(parts) for parts in zip(*generator.blocks(TRAIN, 320), strict=True)]
    for short, long in zip(some, more, strict=True):
        assert len(short) == 150 and len(long) == 320
        np.testing.assert_array_equal(short, long[:150])
    assert not np.array_equal(more[0][:100], more[0][100:200])


def test_test_rows_are_not_training_rows(few_in_a_block):
    train, test, scale = (generator.block(part, 0)[0] for part in (TRAIN, TEST, SCALE))
    assert not np.intersect1d(train[:, 0], test[:, 0]).size
    assert not np.intersect1d(train[:, 0], scale[:, 0]).size


def test_derived_columns_are_functions_of_the_measured_ones(few_in_a_block):
    X, y = generator.raw_block(TRAIN, 0)
    measured = X[:, : len(generator.MEASURED)]
    assert (len(generator.MEASURED), len(generator.DERIVED), X.shape[1]) == (21, 7, 28)
    np.testing.assert_array_equal(X[:, 21:], generator.derived(measured))
    assert set(y) == {-1, 1} and np.all(X[:, 21:] >= 0.0) and np.isfinite(X).all()


def test_columns_have_mean_zero_and_deviation_one_and_some_have_heavy_tails():
    X, _ = generator.block(TRAIN, 0)
    assert X.dtype == np.float32 and len(X) == generator.BLOCK_ROWS
    assert np.abs(X.mean(axis=0)).max() < 0.03 and np.abs(X.std(axis=0) - 1).max() < 0.05
    flat = generator.COLUMNS.index("lepton angle"), generator.COLUMNS.index("m_wwbb")
    fourth = (X[:, flat].astype(float) ** 4).mean(axis=0)
    assert fourth[0] < 2.0 and fourth[1] > 6.0


def test_a_decay_keeps_energy_momentum_and_masses():
    rng = np.random.default_rng(0)
    parent = generator.produced(rng, np.full(50, 173.0), 40.0)
    np.testing.assert_allclose(generator.mass_of(parent), 173.0, rtol=1e-9)
    one, other = generator.decay(rng, parent, 80.0, 4.0)
    np.testing.assert_allclose(one + other, parent)
    np.testing.assert_allclose(generator.mass_of(one), 80.0, rtol=1e-6)
    np.testing.assert_allclose(generator.mass_of(other), 4.0, rtol=1e-4)


# ---------------------------------------------------------------- files


def test_files_hold_the_rows_of_the_blocks_and_are_written_once(scratch, few_in_a_block):
    X, y = files.mapped(TRAIN, 250)
    assert isinstance(X, np.memmap) and X.shape == (250, 28) and X.dtype == np.float32
    np.testing.assert_array_equal(X[200:], generator.block(TRAIN, 2)[0][:50])
    np.testing.assert_array_equal(y[100:200], generator.block(TRAIN, 1)[1])
    before = {path: path.stat().st_mtime_ns for path in scratch.iterdir()}
    files.npy(TRAIN, 250)
    assert {path: path.stat().st_mtime_ns for path in scratch.iterdir()} == before
    assert len(before) == 2


def test_a_dask_array_of_a_file_has_its_rows(scratch, few_in_a_block):
    pytest.importorskip("dask.array")
    paths = files.npy(TRAIN, 250)
    X, y = (files.dask_array(path, 4) for path in paths)
    assert X.numblocks == (4, 1) and X.shape == (250, 28) and y.numblocks == (4,)
    np.testing.assert_array_equal(X.compute(scheduler="sync"), np.load(paths[0]))
    np.testing.assert_array_equal(y.compute(scheduler="sync"), np.load(paths[1]))


def test_parquet_holds_the_same_rows_a_group_for_each_block(scratch, few_in_a_block):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = files.parquet(TRAIN, 250)
    table = parquet.ParquetFile(path)
    assert table.num_row_groups == 3 and table.schema_arrow.names[-1] == files.LABEL
    X, y = files.mapped(TRAIN, 250)
    columns = table.read().to_pydict()
    np.testing.assert_array_equal(np.array(columns["m_jj"], dtype=np.float32), X[:, 21])
    np.testing.assert_array_equal(columns[files.LABEL], y)


# ---------------------------------------------------------------- memory and traffic


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
def test_a_watch_sees_memory_that_is_gone_when_it_ends():
    with Watch() as watch:
        held = np.ones(30_000_000)
        threading.Event().wait(0.2)
        del held
    found = watch.found()
    assert 240 < found["anonymous_mb"] <= found["resident_mb"] * 1.01
    assert found["cpu_seconds"] >= 0.0 and found["moved_mb"] >= 0.0


def test_what_linux_does_not_tell_is_nothing():
    assert status_bytes(-1, "VmHWM") == 0 and cpu_seconds(-1) == 0.0


# ---------------------------------------------------------------- plans and tasks


@pytest.mark.parametrize("quick", [False, True])
def test_every_measurement_of_places_is_planned_once(quick):
    found = command.plan(command.PARTS, **(ALL | {"quick": quick}))
    assert list(dict.fromkeys(one.part for one in found)) == list(command.PARTS)
    assert all(one.dataset in datasets.RECIPES for one in found)
    cells = {cell_of(dataclasses.asdict(one) | {"dataset": one.set_name}) for one in found}
    assert len(cells) == len(found)
    json.dumps([dataclasses.asdict(one) for one in found], allow_nan=False)
    fewer = command.plan(command.PARTS, **(ALL | {"quick": quick, "most": 0}))
    assert not {"growth", "peers", "cluster", "cells"} & {one.part for one in fewer}


def test_no_record_knows_a_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(files.SCRATCH, raising=False)
    with command.scratch_folder(tmp_path / "rows"):
        assert files.scratch() == (tmp_path / "rows").resolve()
        found = command.plan(command.PARTS, **ALL)
    assert str(tmp_path) not in json.dumps([dataclasses.asdict(one) for one in found])
    told = command.told_command(["places", "--scratch", "/x", "--quick", "--results=/y"])
    assert told == "python -m benchmarks places --quick"


def task(name, label, rows=400, **fields):
    """What a task finds on few rows, as a record."""
    spec = {"rows": rows, "threads": 1, "repeats": 1, "test_rows": 300, "label": label}
    spec |= {"point": {"rows": rows}, "run": "monday", "part": "growth", "dataset": plan.PHYSICS}
    spec |= {"estimator": plan.OURS, "workers": 0, "chunks": 4} | fields
    return finished(**spec) | as_read(name(spec, None, lambda _: None))


@pytest.mark.parametrize("engine", [plan.SPAN, plan.CELLS])
def test_a_fit_from_disk_is_measured(scratch, few_in_a_block, monkeypatch, engine):
    monkeypatch.setattr(fit, "WARMUP_VALUES", 5000)
    given = plan.ours(engine, quick=True)
    record = task(fit.on_disk, places.growth.ON_DISK, params=given)
    assert record["n_train"] == 400 and record["n_test"] == 300 and record["engine"] == engine
    assert record["accuracy"] > 50 and record["resident_mb"] > 0
    assert MISSING not in places.growth.table([record]).rows[0]


def test_peers_of_places_are_measured(scratch, few_in_a_block):
    given = {"features": 20, "passes": 2, "alpha": 1e-4}
    found = [
        task(peers.gradients, peers.GRADIENTS, params=given, part="peers"),
        task(peers.trees, peers.TREES, params={"max_iter": 5}, part="peers"),
    ]
    assert all(40 < record["accuracy"] < 100 for record in found)
    assert [row[1] for row in peers.table(found).rows] == list(peers.LABELS)


def test_the_right_process_is_killed_and_said_to_be_dead():
    victim, other = (subprocess.Popen(["sleep", "30"]) for _ in range(2))

    class Client:
        def run(self, _):
            return {"b": victim.pid, "a": other.pid}

    try:
        found, died = deaths.with_a_kill(Client(), lambda: victim.wait(10), 0.05, 1)
        assert died and found < 0 and other.poll() is None
        _, died = deaths.with_a_kill(Client(), lambda: None, 30.0, 0)
        assert not died and other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_fit_that_a_death_breaks_is_a_finding():
    class Client:
        def run(self, _):
            return {"a": -1}

    def broken():
        raise RuntimeError("lost")

    found = deaths.one_kill(Client(), broken, 30.0, 0, "", np.zeros((1, 28)))
    assert not found["same"] and "lost" in found["error"]


# ---------------------------------------------------------------- the cost model


def cluster_record(rows, workers, chunks, kernel_passes=1.0, **changes):
    """A record whose seconds are those of known constants."""
    values, tasks = int(rows * 1000 * kernel_passes), 50 * chunks
    seconds = 2.0 + 4e-6 * rows / workers + 3e-9 * values / workers + 1e-3 * tasks
    record = finished(part="cluster", label="span", dataset=plan.PHYSICS, run="monday")
    record |= {"point": {"rows": rows, "workers": workers, "chunks": chunks}, "rows": rows}
    record |= {"workers": workers, "chunks": chunks, "n_train": rows, "fit_seconds": seconds}
    certificate = {"n_kernel": values, "n_passes": 20, "n_vectors": 1000, "gap": 1e-3}
    record |= {"n_tasks": tasks, "moved_mb": 0.5 * chunks, "certificate": certificate}
    record |= {"cpu_seconds": 0.8 * workers * seconds, "threads": 2, "actions": {}, "tasks": {}}
    record |= {"resident_mb": 1e3, "client_mb": 1e3}
    return record | changes


def cluster_records():
    return [
        cluster_record(*point, 10.0 if point[0] == plan.ALL_ROWS else 1.0)
        for point in places.cluster.POINTS
    ]


def test_the_cost_model_finds_the_constants_that_made_the_records():
    costs = model.costs_of(cluster_records())
    found = (costs.alone, costs.row, costs.value, costs.task)
    np.testing.assert_allclose(found, (2.0, 4e-6, 3e-9, 1e-3), rtol=1e-3)
    assert costs.tasks == 50 and costs.recomputed == 10 and costs.moved == pytest.approx(5e5)
    assert max(map(abs, model.errors(cluster_records()))) < 1e-6


def test_more_workers_compute_less_but_cost_more_tasks():
    costs = model.costs_of(cluster_records())
    few, many = (model.estimate(costs, 10**9, workers) for workers in (10, 1000))
    assert few.kernel_passes == 10.0 and many.kernel_passes == 1.0
    assert few.compute > 100 * many.compute and few.tasks < many.tasks
    assert few.n_chunks == 1600 and many.n_chunks == 2000
    assert len(model.tables(cluster_records())[1].rows) == 6


def test_the_cost_model_says_nothing_of_too_little():
    assert model.tables(cluster_records()[:3]) == [] and model.errors([]) == []
    alone = [record | {"workers": 1} for record in cluster_records()]
    assert model.costs_of(alone) is None


# ---------------------------------------------------------------- what was asked


def place_record(part, label, **fields):
    record = finished(part=part, label=label, dataset=plan.PHYSICS, run="monday", threads=2)
    record |= {"rows": None, "workers": 2, "cpu_seconds": 3.0, "n_train": 1000, "n_test": 1000}
    return record | fields


def asked_records():
    """Records that meet all that was asked, just so."""
    found = cluster_records()
    for label in places.agree.LABELS:
        near = {"coefficient_difference": 1e-4, "largest_coefficient": 10.0, "same_vectors": True}
        seconds = {"fit_seconds": 3.2, "memory_fit_seconds": 2.0}
        found.append(place_record("agree", label, **near, **seconds))
    for engine in (plan.SPAN, plan.CELLS):
        kills = [{"died": True, "same": True, "seconds": 1.0, "error": ""}] * 10
        found.append(place_record("deaths", engine, kills=kills, same_again=True))
    for rows in plan.ROWS:
        spent = {"fit_seconds": 1e-5 * rows**1.049, "n_train": rows, "workers": 0, "rows": rows}
        spent |= {"point": {"rows": rows}, "resident_mb": 3499.0}
        found += [
            place_record("growth", places.growth.ON_DISK, **spent),
            place_record("cells", places.cells.LABEL, **spent),
            *(place_record("peers", label, **spent) for label in peers.LABELS),
        ]
    for label in places.scatter.LABELS:
        found.append(place_record("scatter", label, difference=1e-8))
    return found


def verdicts(records):
    return [row[2] for row in targets.table(records).rows]


def test_what_was_asked_of_places_is_judged_by_what_was_measured():
    assert set(verdicts([])) == {MISSING}
    assert set(verdicts(asked_records())) == {"yes"}


@pytest.mark.parametrize(
    ("part", "change", "missed"),
    [
        ("agree", {"coefficient_difference": 1.1e-4}, [0, 2, 4]),
        ("agree", {"coefficient_difference": None, "same_vectors": False}, [0, 2, 4]),
        ("agree", {"fit_seconds": 3.3}, [1, 3]),
        ("agree", {"cpu_seconds": 0.1}, [0, 1, 2, 3, 4]),
        ("deaths", {"kills": [{"died": True, "same": False, "error": "lost"}] * 10}, [5, 6]),
        ("growth", {"resident_mb": 3500.0}, [7]),
        ("scatter", {"difference": 2e-8}, [14]),
    ],
)
def test_what_places_miss_is_said_to_be_missed(part, change, missed):
    records = [r | change if r["part"] == part else r for r in asked_records()]
    found = verdicts(records)
    assert [place for place, verdict in enumerate(found) if verdict == "no"] == missed


def test_a_kill_that_came_too_late_does_not_count():
    late = {"kills": [{"died": place > 0, "same": True, "error": ""} for place in range(10)]}
    records = [r | late if r["part"] == "deaths" else r for r in asked_records()]
    assert verdicts(records)[5:7] == [MISSING, MISSING]


def test_every_places_table_can_be_drawn_from_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure", failing)
    places.main(["--results", str(tmp_path), "--scratch", str(tmp_path / "rows")])
    document = json.loads((tmp_path / "places.json").read_text())
    assert {record["part"] for record in document["records"]} == set(command.PARTS)
    page = (tmp_path / "places.md").read_text()
    assert "What was asked" in page and "failed: no" in page
    assert "yes" not in page.split("What was asked")[1].split("A dash")[0]


# ---------------------------------------------------------------- quick runs in child processes


def quick_run(tmp_path, *options):
    given = ["--quick", "--threads", "1", "--results", str(tmp_path)]
    places.main([*given, "--scratch", str(tmp_path / "rows"), *options])
    return json.loads((tmp_path / "places_quick.json").read_text())["records"]


def test_a_quick_run_measures_from_disk(tmp_path):
    records = quick_run(tmp_path, "--parts", "growth", "--most-rows", "2000")
    found = {record["label"]: record for record in records}
    assert found[places.growth.ON_DISK]["status"] == "ok", records
    assert found[places.growth.FROM_PARQUET]["status"] in {"ok", "skipped"}, records
    assert "A quick run" in (tmp_path / "places_quick.md").read_text()


def test_a_quick_run_measures_on_a_cluster(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(places.cluster, "QUICK_POINTS", ((2000, 2, 4),))
    (record,) = quick_run(tmp_path, "--parts", "cluster")
    assert record["status"] == "ok", record
    assert record["n_tasks"] > 0 and record["accuracy"] > 50 and record["cpu_seconds"] >= 0.0
