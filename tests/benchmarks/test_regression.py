"""Regression beside its peers: the data, a quick run, and what was asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import regression
from benchmarks.harness import datasets
from benchmarks.harness.report import MISSING
from benchmarks.regression import fit, tables
from benchmarks.regression.machines import INSENSITIVE, LINEAR, MACHINES, SEARCH, SQUARED, SVR


def test_a_published_split_is_standardised_by_its_training_rows(folder):
    rng = np.random.default_rng(0)
    X, y = 3.0 + rng.standard_normal((50, 2)), 7.0 + 2.0 * rng.standard_normal(50)
    held = np.zeros((50, 3), dtype=bool)
    held[:10, 0] = held[40:, 1] = True
    np.savez(folder / "reg_energy.npz", X=X, y=y, test_mask=np.packbits(held, axis=0), n=50)
    first, second = (datasets.load(datasets.split_name("energy", k)) for k in (0, 1))
    assert first.X_train.shape == second.X_train.shape == (40, 2)
    np.testing.assert_allclose(first.y_train.std(), 1.0)
    np.testing.assert_allclose(first.y_test, (y[:10] - y[10:].mean()) / y[10:].std())
    np.testing.assert_allclose(second.X_test, (X[40:] - X[:40].mean(0)) / X[:40].std(0))


def test_the_choice_is_by_folds_of_few_rows_or_a_part_of_many_and_the_same_for_all():
    parts = fit.parts_of_choice(1000)
    assert sorted(np.concatenate([held for _, held in parts])) == list(range(1000))
    assert all(len(kept) == 800 and not set(kept) & set(held) for kept, held in parts)
    ((kept, held),) = fit.parts_of_choice(30_000)
    assert (len(kept), len(held)) == (fit.CHOICE_ROWS, fit.VALIDATION_ROWS)


def test_every_kernel_machine_searches_the_same_values():
    sizes = {name: len(machine.candidates()) for name, machine in MACHINES.items()}
    assert sizes[SVR] == sizes[INSENSITIVE] == sizes[LINEAR] == 8
    assert sizes[SQUARED] == sizes["KernelRidge"] == 4
    assert MACHINES["KernelRidge"].candidates()[0] == {"alpha": 0.5}


def test_a_quick_run_of_regression_fills_its_page(tmp_path):
    regression.main(["--quick", "--threads", "1", "--results", str(tmp_path)])
    records = json.loads((tmp_path / "regression_quick.json").read_text())["records"]
    assert [record["status"] for record in records] == ["ok"] * 5, records
    *machines, intervals = records
    errors = {name: one["rmse"] for each in machines for name, one in each["machines"].items()}
    # The noise is 0.2, the deviation of the target more than 0.8.
    assert all(0.15 < error < 0.6 for error in errors.values()), errors
    assert errors[SQUARED] == pytest.approx(errors["KernelRidge"], rel=0.05)
    assert errors[LINEAR] == pytest.approx(errors[SVR], rel=0.05)
    assert SEARCH in errors
    assert 84.0 < intervals["coverage"] <= 100.0
    page = (tmp_path / "regression_quick.md").read_text()
    assert "| waves" in page and "A quick run" in page


def record(part, dataset, names, **fields):
    found = {"part": part, "dataset": dataset, "status": "ok", "names": names, "n_train": 100}
    return found | {"n_features": 4, "load_seconds": 1.0, "limit": 120.0} | fields


def result(rmse, seconds, validation=1.0):
    return {"rmse": rmse, "fit_seconds": seconds, "validation": validation}


def test_what_was_asked_of_regression_is_judged_by_records():
    ours = {SQUARED: result(0.5, 1.0), INSENSITIVE: result(0.4, 2.0, validation=0.9)}
    records = []
    for name in datasets.REGRESSION:
        dataset = datasets.split_name(name, 0)
        records.append(record("fit", dataset, list(ours), machines=ours))
        late = name in tables.LARGE
        fields = {"machines": {} if late else {SVR: result(0.45, 3.0)}, "before_seconds": 14.0}
        fields |= {"status": "timeout"} if late else {}
        records.append(record("limited", dataset, [SVR], **fields))
        records.append(record("intervals", dataset, [], coverage=91.0, C=1.0))
    lines = tables.targets(records).rows
    assert lines[0][1].startswith("7 of 10; 3 not measured") and lines[0][2] == MISSING
    assert [each[1:] for each in lines[1:4]] == [["more than 50.0×", "yes"]] * 3
    assert lines[4][2] == "yes" and lines[5][2] == "yes"
    assert "timeout" in tables.machine_table(records, "rmse", "", 2).rows[-1]
    records[-1]["coverage"] = 95.0
    assert tables.coverage_line(records)[2] == "no"
    records[1]["machines"][SVR]["fit_seconds"] = 1.0
    assert "concrete 2.00×" in tables.small_line(records)[1]


def test_a_sample_that_svr_was_fitted_to_bounds_its_time_and_is_named():
    dataset = datasets.split_name("kin40k", 0)
    ours = record("fit", dataset, [SQUARED], machines={SQUARED: result(0.5, 1.0)})
    sampled = {SVR: result(0.6, 20.0) | {"sampled_rows": 10_000}}
    late = record("limited", dataset, [SVR], machines=sampled, before_seconds=60.0)
    late |= {"status": "timeout", "message": "", "limit": 120.0}
    assert tables.speed_line([ours, late], "kin40k")[1] == "more than 54.0×"
    assert tables.speed_line([ours, late | {"before_seconds": 110.0}], "kin40k")[1] == (
        "more than 20.0×"
    )
    assert "kin40k" in tables.error_line([ours, late])[1]
    assert "(10,000 rows)" in tables.cell([late], dataset, SVR, "rmse", 4)
