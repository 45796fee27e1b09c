"""Outlier detectors: the data, a quick run, and what was asked."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import outliers
from benchmarks.harness import datasets
from benchmarks.harness.report import MISSING
from benchmarks.outliers import fit, tables
from benchmarks.outliers.detectors import ALIKE, DETECTORS, FOREST, KERNEL, KERNEL_TENTH, OURS


def test_all_rows_of_a_set_train_and_are_scored(folder):
    X, y = np.arange(20, dtype=np.uint8).reshape(10, 2), (np.arange(10) == 3).astype(np.int8)
    np.savez(folder / "ad_wdbc.npz", X=X, y=y)
    data = datasets.load("ad_wdbc")
    assert data.X_train.dtype == np.float64 and data.X_train.shape == data.X_test.shape == (10, 2)
    assert data.y_train.sum() == 1


def test_a_sample_is_drawn_only_where_there_are_more_rows():
    assert fit.some(10, None) == fit.some(10, 10) == slice(None)
    assert len(set(fit.some(100, 30))) == 30


def test_a_quick_run_of_outliers_fills_its_page(tmp_path):
    outliers.main(["--quick", "--threads", "1", "--results", str(tmp_path)])
    records = json.loads((tmp_path / "outliers_quick.json").read_text())["records"]
    assert [record["status"] for record in records] == ["ok"] * 2, records
    found = records[0]["machines"]
    assert list(found) == list(DETECTORS)
    areas = {name: one["auc"] for name, one in found.items()}
    assert all(area > 80.0 for area in areas.values()), areas
    assert list(records[1]["machines"]) == [OURS, ALIKE, KERNEL_TENTH]
    page = (tmp_path / "outliers_quick.md").read_text()
    assert "| scattered" in page and "A quick run" in page


def record(dataset, machines, part="fit"):
    found = {"part": part, "dataset": dataset, "status": "ok", "names": list(machines)}
    return found | {"n_rows": 100, "n_features": 4, "share": 1.0, "machines": machines}


def result(auc, seconds):
    return {"auc": auc, "fit_seconds": seconds}


def test_what_was_asked_of_outliers_is_judged_by_records():
    machines = {OURS: result(80.0, 2.0), KERNEL: result(79.0, 9.0)}
    machines |= {KERNEL_TENTH: result(80.5, 9.0), FOREST: result(70.0, 1.0)}
    records = [record(f"ad_{name}", machines) for name in datasets.OUTLIERS]
    race = {OURS: result(80.0, 2.0), KERNEL_TENTH: result(80.4, 50.0)}
    race[ALIKE] = result(80.4, 3.0)
    records.append(record(tables.RACE_SET, race, "race"))
    met = [each[2] for each in tables.targets(records).rows]
    assert met == ["yes", "yes", "yes", "yes", "no", "yes", "yes", "no"]
    # A part of the sets is not enough to be met, and a fit that is missing is not judged.
    assert tables.mean_line(records[:5], FOREST)[2] == MISSING
    assert tables.time_line(records[:5], "ad_http")[2] == MISSING
    race[OURS]["auc"] = 79.0
    assert tables.race_line(records, OURS)[1:] == ["25.0×, -1.40 points", "no"]
    last = tables.detector_table(records[:-1], "auc", "", 2).rows[-1]
    assert last[0] == "mean of 24" and last[3] == "80.00"


def test_a_set_that_ran_out_of_time_still_shows_what_it_found():
    late = record("ad_skin", {OURS: result(80.0, 2.0)}) | {"status": "timeout"}
    late["names"] = [OURS, KERNEL, FOREST]
    table = tables.detector_table([late], "fit_seconds", "", 2)
    assert table.rows[0][3:] == ["2.00", "timeout", "timeout"]
