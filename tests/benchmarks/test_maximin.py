"""The Maxi-Min paper's tables and figures."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from benchmarks import maximin
from benchmarks.harness import child, datasets, runner
from benchmarks.harness.report import MISSING
from tests.benchmarks.trial import as_read, failing


def maximin_record(part, label="MaxiMinDA", name="usps", d=3, **fields):
    """A finished record of the Maxi-Min benchmark."""
    record = {"part": part, "set_name": name, "dataset": name, "label": label, "run": "monday"}
    record |= {"status": "ok", "message": "", "threads": 2, "rows": 250, "point": {"d": d}}
    record |= {"fit_seconds": 1.0, "min_distance": 9.0, "own": {"upper_bound": 10.0}}
    return record | fields


def knn(accuracy):
    return {"knn": {"1": accuracy - 1.0, "3": accuracy}, "mean": accuracy, "quadratic": accuracy}


def maximin_spec(name, d=2, **fields):
    """What a child process gets for a method on the generated set."""
    one = maximin.methods.projection(
        maximin.methods.METHODS[name], "generated", d, "table2", classify=("knn", "mean"), **fields
    )
    return json.loads(json.dumps(dataclasses.asdict(one) | {"threads": 1}))


def test_the_maximin_papers_tables_are_whole():
    for method, printed in maximin.papers.TABLE_1.items():
        assert printed.keys() == set(maximin.papers.UCI), method
    assert maximin.papers.uci("LDA", "wine") == (92.9, 1.9)
    assert maximin.papers.uci("PCA", "satimage") == (88.9, None)
    assert maximin.papers.usps("aPAC", 3) == 72.9 and maximin.papers.usps("LDA", 2) is None


def test_every_measurement_of_maximin_is_planned_once():
    records = [
        maximin_record("omniglot", name=name, d=d, own={"shrinkage": 0.6})
        for name in maximin.omniglot.SETS
        for d in maximin.omniglot.DIMENSIONS
    ]
    found = [
        one
        for plans in maximin.command.PLANS.values()
        for plan in plans
        for one in plan(False, records)
    ]
    assert {one.part for one in found} == set(maximin.command.PARTS)
    assert all(one.dataset in datasets.RECIPES for one in found)
    assert len({(m.part, m.set_name, m.label, str(m.point)) for m in found}) == len(found)
    json.dumps([dataclasses.asdict(one) for one in found], allow_nan=False)
    same = maximin.omniglot.plan_same(False, records)
    assert len(same) == 24 and same[0].params["shrinkage"] == 0.6
    assert not maximin.omniglot.plan_same(False, [])


@pytest.mark.parametrize("name", maximin.methods.METHODS)
def test_every_method_of_maximin_runs(name):
    data, kept = datasets.load("generated", 90), []
    found = maximin.fit.measure(maximin_spec(name), data, kept.append)
    assert maximin.methods.best_neighbours(found) > 45.0
    assert found["min_distance"] > 0 and kept[0]["fit_seconds"] == found["fit_seconds"]
    if "exact" in name or "online" in name:
        assert found["own"]["sharpness"] == "inf"
        # Two dimensions are all that three means have.
        assert found["min_distance"] == pytest.approx(found["own"]["min_distance"])
    folds = maximin.fit.measure(maximin_spec(name, folds=2, rounds=2), data, kept.append)
    assert folds["deviation"] >= 0.0
    json.dumps(child.plain(found), allow_nan=False)


def test_classifiers_of_maximin_are_what_scikit_learn_has():
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.neighbors import NearestCentroid

    data = datasets.load("generated")
    parts = data.X_train, data.y_train, data.X_test, data.y_test
    centroid = NearestCentroid().fit(*parts[:2]).score(*parts[2:])
    assert maximin.classifiers.nearest_mean(*parts) == pytest.approx(100.0 * centroid)
    _, code = np.unique(data.y_train, return_inverse=True)
    means = maximin.classifiers.class_means(data.X_train, code, 3)
    white = maximin.classifiers.whitener(data.X_train, code, means)
    for r in (0.1, 0.6):
        other = QuadraticDiscriminantAnalysis(reg_param=r).fit(data.X_train @ white, data.y_train)
        expected = 100.0 * other.score(data.X_test @ white, data.y_test)
        assert maximin.classifiers.quadratic(*parts, r) == pytest.approx(expected)
    # The distance is that of the subspace, whatever the axes.
    turned = data.X_train @ np.random.default_rng(0).standard_normal((5, 5))
    plain = maximin.classifiers.smallest_distance(data.X_train, data.y_train)
    assert maximin.classifiers.smallest_distance(turned, data.y_train) == pytest.approx(plain)


def test_drawings_of_omniglot_are_split_by_the_order_of_the_file(folder):
    y = np.repeat(np.array([2, 0, 1]), 20)
    X = np.arange(60.0)[:, None]
    np.savez(folder / "omniglot_small_242.npz", X=X, y=y)
    data = maximin.data.set_of("omniglot_small_242", None)
    assert sorted(data.X_test[data.y_test == 2].ravel()) == [15, 16, 17, 18, 19]
    assert len(data.y_train) == 45 and len(data.y_test) == 15
    assert set(maximin.data.set_of("omniglot_small_242", None, 2).y_train) == {0, 1}
    with pytest.raises(datasets.DatasetNotFound, match=r"tae.*Teaching"):
        maximin.data.set_of("tae", None)


def test_generated_classes_of_maximin_are_what_they_are_said_to_be():
    kind = dataclasses.replace(next(iter(maximin.data.CLUSTERS.values())), rows=20, fresh=3)
    data = maximin.data.clusters(kind, 50)
    assert data.X_train.shape == (1000, 100) and data.X_test.shape == (150, 100)
    means = maximin.classifiers.class_means(data.X_train, data.y_train, 50)
    apart = np.linalg.norm(means[:, None] - means, axis=2)
    near = np.kron(np.eye(10), np.ones((5, 5))) > 0
    # Classes of a cluster are nearer to each other than to all others.
    assert apart[near].max() < apart[~near].min()
    source = maximin.data.Source(4, 3, 1000, block=300)
    blocks, again = list(source.blocks()), list(source.blocks(np.array([3, 1])))
    assert [len(y) for _, y in blocks] == [300, 300, 300, 100]
    np.testing.assert_array_equal(blocks[3][0], again[0][0])
    fresh = source.rows_of(4, *source.shape())[0]
    assert len(fresh) == 300 and not np.array_equal(fresh, blocks[0][0])


def test_the_stream_of_maximin_is_the_batch():
    small, large = (maximin.stream.plan(True)[i] for i in (1, 2))
    found = []
    for one, task in ((small, maximin.stream.compare), (large, maximin.stream.stream)):
        spec = dataclasses.asdict(one) | {"threads": 1}
        found.append(as_read(task(spec, None, lambda _: None)))
    assert found[0]["angle"] < 1e-6 and found[0]["order_difference"] < 1e-8
    assert found[1]["scores"]["mean"] > 20.0 and found[1]["peak_mb"] > 0
    records = [
        dataclasses.asdict(one) | {"status": "ok"} | each
        for one, each in zip((small, large), found, strict=True)
    ]
    assert maximin.stream.table(records).rows[0][1] == "20×16×2,000"


def test_the_direction_of_the_smallest_distance_is_oblique(tmp_path):
    records = []
    for one in maximin.figure2.plan(True)[-9:]:
        spec = dataclasses.asdict(one) | {"threads": 1}
        found = child.plain(maximin.figure2.measure(spec, None, lambda _: None))
        records.append(spec | {"status": "ok"} | found)
    angles = {record["label"]: abs(record["angle"]) for record in records}
    assert angles["LDA"] < 10.0 and angles["aPAC"] < 10.0 and angles["exact, refine"] > 45.0
    assert maximin.figure2.table(records).rows[0][1] == "exact, refine"
    pytest.importorskip("matplotlib")
    assert maximin.figure2.figure(records, tmp_path / "figure2.png").stat().st_size > 1000


def test_what_was_asked_of_maximin_is_judged_by_what_was_measured():
    assert {row[2] for row in maximin.targets.table([]).rows} == {MISSING}
    accuracy = {"MaxiMinDA": 90.0, "exact, refine": 90.0, "aPAC": 90.3}
    records = [
        maximin_record(part, label, name, d, scores=knn(accuracy.get(label, 89.0)))
        for part in ("table1", "table2")
        for name, d in maximin.targets.table_places(part)
        for label in maximin.methods.LABELS
    ]
    records += [
        maximin_record("omniglot", label, name, d, scores=knn(30.0 + (label == "LDA")))
        for name in maximin.omniglot.SETS
        for d in maximin.omniglot.DIMENSIONS
        for label in maximin.omniglot.LABELS
    ]
    records += [
        maximin_record("clusters", label, name, d, scores=knn(60.0 + (label == "MaxiMinDA")))
        for name in maximin.data.CLUSTERS
        for d in maximin.clusters.DIMENSIONS
        for label in maximin.clusters.LABELS
    ]
    stream = [
        maximin_record("stream", label, name, 20, peak_mb=1200.0, angle=1e-9, order_difference=1e-9)
        for name in maximin.stream.SOURCES
        for label in maximin.stream.SETTINGS
    ]
    rows = maximin.targets.table(records + stream).rows
    expected = ["yes"] * 8 + ["no", "yes", "no", "yes", "yes", "no", "yes", "yes"]
    assert [row[2] for row in rows] == expected
    assert "smallest lead -1.00 points (omniglot_small_242, d = 160)" in rows[8][1]
    assert maximin.targets.table(records + stream[:-1]).rows[-1][2] == MISSING
    # What is too small in one place is not met.
    records[1]["min_distance"] = 8.0
    assert [row[2] for row in maximin.targets.table(records).rows][4:6] == ["no", "yes"]
    records[1]["min_distance"] = 11.0
    assert [row[2] for row in maximin.targets.table(records).rows][4:6] == ["yes", "no"]


def test_semidefinite_programs_of_maximin_end_at_the_first_that_is_too_long(tmp_path, monkeypatch):
    def slow(measurement, timeout, threads):
        spec = dataclasses.asdict(measurement) | {"threads": threads, "message": ""}
        late = measurement.label == maximin.times.SDP and timeout == 7.0
        return {**spec, "status": "timeout" if late else "ok", "fit_seconds": 1.0}

    monkeypatch.setattr(runner, "measure", slow)
    options = ["--quick", "--results", str(tmp_path), "--parts", "time", "--sdp-limit", "7"]
    for _ in range(2):  # the second time they are tried again
        maximin.main(options)
        records = json.loads((tmp_path / "maximin_quick.json").read_text())["records"]
        late = [r for r in records if r["status"] == "timeout"]
        assert [(r["set_name"], maximin.times.size_of(r)) for r in late] == [
            (maximin.times.USPS, 10),
            (maximin.times.OMNIGLOT, 5),
        ]
    assert "| timeout |" in (tmp_path / "maximin_quick.md").read_text()


def test_every_maximin_table_can_be_drawn_from_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure", failing)
    maximin.main(["--results", str(tmp_path)])
    assert "What was asked" in (tmp_path / "maximin.md").read_text()
    maximin.main(["--quick", "--results", str(tmp_path), "--parts", "table2", "clusters"])
    document = json.loads((tmp_path / "maximin_quick.json").read_text())
    assert {record["part"] for record in document["records"]} == {"table2", "clusters"}
    page = (tmp_path / "maximin_quick.md").read_text()
    assert "failed" in page and "A quick run" in page and "What was asked" not in page


def test_pictures_of_maximin_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    usps = [
        maximin_record("table2", label, d=d, scores=knn(80.0))
        for label in maximin.methods.LABELS
        for d in (2, 3)
    ]
    drawings = [
        maximin_record("omniglot", label, maximin.omniglot.SETS[0], d, scores=knn(30.0))
        for label in maximin.omniglot.LABELS
        for d in (10, 20)
    ]
    times = [maximin_record("time", "LDA", d=d) | {"point": {"features": d}} for d in (10, 20)]
    drawn = [
        maximin.tables.figure_2(usps, tmp_path / "usps.png"),
        maximin.omniglot.figure(drawings, tmp_path / "omniglot.png"),
        maximin.times.figure(times, tmp_path / "time.png"),
    ]
    assert all(path is not None and path.stat().st_size > 1000 for path in drawn)
    cell = maximin.tables.tables_2(usps)[0].rows[5]
    assert cell == ["LDA", "80.0 (63.9)", "80.0"]
