"""Tables of numbers: the sets, a quick run, and what was asked."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import tabular
from benchmarks.tabular import fit, sets, tables
from benchmarks.tabular.directions import digits_directions
from benchmarks.tabular.learners import GAUSS, LIBSVM, OURS, TREES, can


def test_splits_are_stratified_and_differ():
    first, second = (sets.load_split("sklearn_iris", k) for k in (0, 1))
    assert np.bincount(first.y_test).tolist() == [10, 10, 10]
    assert not np.array_equal(first.X_test, second.X_test)


def test_missing_values_become_medians(folder):
    X = np.arange(40.0).reshape(20, 2)
    X[3, 1] = np.nan
    np.savez(folder / "heart_cleveland.npz", X=X, y=np.arange(20) % 2)
    found, y = sets.rows_of("heart_cleveland")
    assert np.isfinite(found).all()
    assert len(y) == 20


def test_a_quick_run_of_tables_fills_its_page(tmp_path):
    only = [OURS, GAUSS, TREES]
    given = ["--quick", "--threads", "1", "--results", str(tmp_path), "--only", *only]
    tabular.main(given)
    records = json.loads((tmp_path / "tabular_quick.json").read_text())["records"]
    assert [record["status"] for record in records] == ["ok"] * 2, records
    assert list(records[0]["machines"]) == only
    assert all(one["error"] < 30.0 for one in records[0]["machines"].values())
    page = (tmp_path / "tabular_quick.md").read_text()
    assert "mean rank" in page and "sklearn_iris" in page


def test_directions_of_digits_are_drawn(tmp_path):
    assert digits_directions(tmp_path / "digits.png").stat().st_size > 0


def record(name, errors, split=0, **others):
    machines = {
        learner: {"error": error, "fit_seconds": 2.0 if learner == OURS else 1.0}
        for learner, error in errors.items()
    }
    size = {"n_rows": 100, "n_features": 4, "n_classes": 2, "status": "ok"}
    return size | {"set_name": name, "point": {"split": split}, "machines": machines} | others


def test_what_was_asked_of_tables_is_judged_by_records(tmp_path):
    records = [record(name, {OURS: 8.0, GAUSS: 10.0, TREES: 9.0}) for name in sets.SETS]
    records[0]["calibration_error"] = 2.0
    met = [each[2] for each in tables.targets(records).rows]
    assert met == ["yes", "yes", "yes", "yes", "no", "yes", "yes"]
    summary = tables.summary_table(records, sets.SETS, "All")
    assert summary.rows[0][:2] == [OURS, "1.00"]
    assert summary.rows[1][3] == f"{len(sets.SETS)} / 0 / 0"
    assert tables.critical_difference(records, tmp_path / "ranks.png").exists()


def test_a_set_with_more_errors_beyond_noise_is_named():
    records = [
        record("pima", {OURS: 12.0 + noise, GAUSS: 10.0}, split)
        for split, noise in enumerate((0.1, -0.1, 0.0))
    ]
    assert "pima" in tables.gain_lines(records)[1][1]


def test_probabilities_that_are_right_have_no_calibration_error():
    probability = np.full((1000, 2), 0.5)
    hit = np.arange(1000) % 2 == 0
    assert fit.calibration_error(probability, hit) == 0.0
    assert fit.calibration_error(probability, np.ones(1000, dtype=bool)) == 50.0


def test_a_grid_of_libsvm_is_left_out_on_many_rows():
    assert can(LIBSVM, 1000)
    assert not can(LIBSVM, 50_000)
    assert len(sets.SETS) >= 25
