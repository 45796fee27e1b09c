"""Cells beside their peers, at edges, and what was asked of them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from benchmarks import cells
from benchmarks.harness import datasets, runner
from benchmarks.harness.records import cell_of
from benchmarks.harness.report import MISSING
from benchmarks.harness.session import MergedSession
from tests.benchmarks.trial import as_read, failing, finished


def cells_record(part, label, dataset="covtype", **fields):
    """A finished record of the cells benchmark."""
    record = finished(part=part, label=label, dataset=dataset, run="monday", rows=None, threads=2)
    return record | {"n_train": 1000, "n_test": 1000, "engine": "cells"} | fields


def cells_task(module, task, params, **fields):
    """What a task of the benchmark finds on the generated set, as a record."""
    spec = {"params": params, "threads": 1, "warmup_rows": 60, "rows": None} | fields
    found = task(spec, datasets.load("generated"), lambda _: None)
    done = as_read(found)
    return cells_record(module.PART, **spec) | done


@pytest.mark.parametrize("quick", [False, True])
def test_every_measurement_of_cells_is_planned_once(quick):
    found = cells.command.plan(cells.command.PARTS, quick, 3)
    assert list(dict.fromkeys(one.part for one in found)) == list(cells.command.PARTS)
    assert all(one.dataset in datasets.RECIPES for one in found)
    assert len({cell_of(dataclasses.asdict(one)) for one in found}) == len(found)
    json.dumps([dataclasses.asdict(one) for one in found], allow_nan=False)
    assert all((one.rows is not None) == quick for one in found if one.part != "growth")
    chosen = cells.command.plan(["auto", "edges"], quick, 1, ["ijcnn1", "w8a"])
    assert {one.dataset for one in chosen} == {"ijcnn1", "w8a"}


def test_the_exact_engine_is_asked_on_few_rows_only():
    exact = [one.dataset for one in cells.auto.plan(False, 1) if one.label == "exact"]
    assert exact == ["letter", "covtype_20000"]
    auto = next(one for one in cells.auto.plan(False, 1) if one.label == "auto")
    assert {each["engine"] for each in auto.warmups} == {"exact", "span", "cells"}


def test_edges_lie_where_the_nearest_centre_changes():
    class Stairs:
        """One, two or three, by the nearest centre; or a slope."""

        def __init__(self, centers, slope):
            self.centers, self.slope = centers, slope

        def decision_function(self, X):
            steps = 1.0 + cells.edges.nearest(self.centers, X)
            return X[:, 0] if self.slope else steps

    rng = np.random.default_rng(0)
    centers, X = np.array([[-5.0, 0.0], [5.0, 0.0], [5.0, 30.0]]), 9.0 * rng.normal(size=(300, 2))
    sides = cells.edges.edges(centers, X, 200)
    before, after, beyond = (cells.edges.nearest(centers, side) for side in sides)
    assert len(before) > 50 and np.all(before != after) and np.mean(after == beyond) > 0.99
    lengths = np.linalg.norm(sides[1] - sides[0], axis=1)
    assert lengths.max() < 2e-4
    plain = cells.edges.jumps(Stairs(centers, False), sides)
    assert plain["largest_jump"] == 2.0 and plain["median_jump"] == 1.0
    slope = cells.edges.jumps(Stairs(centers, True), sides)
    assert slope["largest_jump"] == pytest.approx(slope["largest_step"]) and (
        slope["largest_jump"] < 2e-4
    )
    none = cells.edges.edges(centers[:1], X, 200)
    assert cells.edges.jumps(None, none)["largest_jump"] is None


def test_a_blend_takes_the_jumps_of_cells_away():
    params = {"C": 10.0, "gamma": {"mean_distance": 4.0}, "engine": "cells", "cells": 60}
    fields = {"estimator": cells.plan.OURS, "label": "overlap 0.3", "segments": 100}
    fields |= {"point": {"overlap": 0.3}, "dataset": "ijcnn1"}
    record = cells_task(cells.edges, cells.edges.measure, params, **fields)
    assert [each["blend"] for each in record["blends"]] == list(cells.edges.BLENDS)
    plain, blended = (cells.edges.blend_of(record, blend) for blend in (0.0, 0.2))
    assert record["n_edges"] > 50 and record["accuracy"] == blended["accuracy"] > 70
    assert blended["largest_jump"] < 0.1 * plain["largest_jump"]
    row = cells.edges.tables([record])[0].rows[2]
    assert row[:2] == ["0.3", "0.2"] and MISSING not in row
    ((asked, measured, _),) = [r for r in cells.targets.edge_lines([record]) if r[1] != MISSING]
    assert asked.startswith("5. ijcnn1") and "against" in measured


@pytest.mark.parametrize("label", [cells.whole.SEARCHED, cells.whole.PER_CELL])
def test_a_search_in_cells_says_what_it_chose(label):
    per_cell = label == cells.whole.PER_CELL
    params = {"Cs": [1.0, 10.0], "gamma_factors": [1.0, 4.0], "cv": 2, "engine": "cells"}
    params |= {"cells": 100, "per_cell": per_cell, "random_state": 0}
    fields = {"estimator": cells.plan.SEARCH, "label": label}
    record = cells_task(cells.whole, cells.whole.search, params, **fields)
    assert record["accuracy"] > 70 and record["best_C"] in {1.0, 10.0}
    assert min(abs(record["best_gamma_factor"] - factor) for factor in (1.0, 4.0)) < 1e-9
    assert record["search_seconds"] < record["fit_seconds"] and record["n_cells"] > 1
    table = cells.whole.table([record])
    pair = f"{record['best_gamma_factor']:g}/β, {record['best_C']:g}"
    assert table.rows[0][1] == ("in each cell" if per_cell else pair)
    assert "for the search" in table.notes[0]


@pytest.mark.parametrize("rows", [None, 40])
def test_all_classes_of_covtype_are_those_of_the_rows(folder, monkeypatch, rows):
    monkeypatch.setattr(datasets, "COVTYPE_TEST_ROWS", 20)
    y = 1 + np.arange(100) % 7
    X = np.stack([y, np.arange(100)], axis=1).astype(np.int16)
    np.savez(folder / "covtype.npz", X=X, y=y)
    data = datasets.load("covtype", rows)
    found = cells.whole.with_all_classes(data, rows)
    assert set(found.y_train) == set(range(1, 8)) and len(found.y_train) == (rows or 80)
    # The first column is the class, but for its scale.
    for part, types in ((found.X_train, found.y_train), (found.X_test, found.y_test)):
        assert abs(np.corrcoef(part[:, 0], types)[0, 1]) > 1 - 1e-12
    with pytest.raises(RuntimeError, match="not those of these rows"):
        cells.whole.with_all_classes(dataclasses.replace(data, y_test=-data.y_test), rows)


def cells_records():
    """Records that meet all that was asked, just so."""
    found = []
    for (factor, C), (times, less) in cells.targets.FASTER.items():
        point = {"gamma_factor": factor, "C": C}
        peer = {"fit_seconds": 2.0 * times, "accuracy": 95.0 + less, "point": point}
        found.append(cells_record("peers", cells.peers.DEFAULT, point=point))
        found.append(cells_record("peers", cells.peers.PEER.label, **peer))
    reached = {cells.whole.ONE: (95.0, 29.9), cells.whole.SEVEN: (90.0, 99.0)}
    reached |= dict.fromkeys((cells.whole.SEARCHED, cells.whole.PER_CELL), (96.0, 299.0))
    for label, (accuracy, seconds) in reached.items():
        spent = {"accuracy": accuracy, "fit_seconds": seconds, "peak_mb": 950.0}
        found.append(cells_record("whole", label, **spent))
    for dataset, rows in cells.auto.SETS.items():
        for engine in cells.auto.engines_for(rows):
            auto = engine == "auto"
            spent = {"accuracy": 94.7 if auto else 95.0, "fit_seconds": 3.0 if auto else 2.0}
            found.append(cells_record("auto", engine, dataset, **spent))
    for rows in cells.growth.ROWS:
        spent = {"fit_seconds": rows**1.099, "point": {"rows": rows}, "n_train": rows}
        found.append(cells_record("growth", "cells of 300", rows=rows, **spent))
    for dataset in cells.edges.SETS:
        blends = [
            {"blend": blend, "largest_jump": jump, "accuracy": 95.0}
            for blend, jump in ((0.0, 2.0), (cells.edges.BLEND, 0.2))
        ]
        point = {"overlap": cells.edges.OVERLAP}
        found.append(cells_record("edges", "overlap", dataset, point=point, blends=blends))
    return found


def cells_verdicts(records):
    return [row[2] for row in cells.targets.table(records).rows]


def test_what_was_asked_of_cells_is_judged_by_what_was_measured():
    assert set(cells_verdicts([])) == {MISSING}
    assert set(cells_verdicts(cells_records())) == {"yes"}
    part = {"peers": 1.1, "whole": 1.1, "growth": 1.0, "auto": 1.0, "edges": 1.0}
    slower = [
        record | {"fit_seconds": record["fit_seconds"] * part[record["part"]]}
        for record in cells_records()
    ]
    for record in slower:
        if record["label"] == cells.peers.PEER.label:
            record["fit_seconds"] /= 1.2
    assert cells_verdicts(slower) == [
        *["no"] * 3,  # faster, and the time of one fit
        *["yes"] * 3,  # memory
        *["no"] * 2,  # the time of searches
        *["yes"] * 6,
    ]


@pytest.mark.parametrize(
    ("part", "label", "change", "missed"),
    [
        ("peers", cells.peers.DEFAULT, {"accuracy": 94.9}, [0, 1]),
        ("whole", cells.whole.ONE, {"accuracy": 94.9, "peak_mb": 960.0}, [2, 3]),
        ("whole", cells.whole.SEARCHED, {"accuracy": 95.9}, [6]),
        ("auto", "auto", {"accuracy": 94.6}, [9]),
        ("auto", "cells", {"fit_seconds": 1.9}, [10]),
        ("edges", "overlap", {"blends": []}, []),
    ],
)
def test_what_cells_miss_is_said_to_be_missed(part, label, change, missed):
    records = [
        record | change if (record["part"], record["label"]) == (part, label) else record
        for record in cells_records()
    ]
    verdicts = cells_verdicts(records)
    assert [place for place, verdict in enumerate(verdicts) if verdict == "no"] == missed
    assert verdicts.count(MISSING) == (2 if part == "edges" else 0)


def test_cells_are_not_said_to_meet_what_is_half_measured():
    records = cells_records()
    for change in ({"threads": 4}, {"status": "timeout", "message": "late"}):
        other = [record | change for record in records if record["part"] != "edges"]
        assert "yes" not in cells_verdicts(other)[:3] and cells_verdicts(other)[11] == MISSING
    days = [record | {"run": str(place)} for place, record in enumerate(records)]
    verdicts = cells_verdicts(days)
    assert {verdicts[place] for place in (0, 1, 10, 11)} == {MISSING}


def test_every_cells_table_can_be_drawn_from_what_failed(tmp_path, monkeypatch):
    def skipping(measurement, *_):
        return failing(measurement) | ({"status": "skipped"} if measurement.requires else {})

    monkeypatch.setattr(runner, "measure", skipping)
    cells.main(["--results", str(tmp_path)])
    document = json.loads((tmp_path / "cells.json").read_text())
    assert {record["part"] for record in document["records"]} == set(cells.command.PARTS)
    assert "What was asked" in (tmp_path / "cells.md").read_text()
    cells.main(["--quick", "--results", str(tmp_path), "--parts", "edges", "growth"])
    page = (tmp_path / "cells_quick.md").read_text()
    assert "failed" in page and "A quick run" in page and "What was asked" not in page


def test_a_skipped_peer_of_cells_does_not_replace_a_measured_one(tmp_path):
    session = MergedSession("cells", 1.0, 1, tmp_path)
    peer = cells_record("peers", cells.peers.PEER.label)
    session.keep(peer)
    session.keep(peer | {"status": "skipped"})
    assert [record["status"] for record in session.records] == ["ok"]
