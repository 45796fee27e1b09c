"""The MMDA papers' tables and figures."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from benchmarks import mmda
from benchmarks.harness import child, datasets, runner
from benchmarks.harness.report import MISSING, markdown_table
from tests.benchmarks.trial import TrialCertificate, as_read, failing


def mmda_record(part, label="MMDA core", dataset="optdigits", **fields):
    """A finished record of the MMDA benchmark."""
    record = {"part": part, "label": label, "dataset": dataset, "status": "ok", "message": ""}
    record |= {"run": "monday", "rows": None, "point": {"directions": 5}, "params": {}}
    return record | {"fit_seconds": 2.0, "peak_mb": 10.0, "data_mb": 1.0, "n_train": 1000} | fields


def scored(accuracy, orders=(1, 3, 5), classifiers=("SVM", "1-NN", "ANN")):
    score = {"accuracy": accuracy, "n_features": 10, "nodes": 19, "leaves": 10}
    return {name: {str(k): score for k in orders} for name in classifiers}


class TrialExtractor:
    """Stands for `MaxMarginDA`: two directions of three classes, on the first two columns."""

    kernel = "rbf"

    def fit(self, X, y):
        self.directions_ = {
            "order": np.array([1, 2, 1, 2, 1]),
            "n_vectors": np.array([10, 20, 30, 40, 50]),
            "gap": np.array([0.1, 0.2, 0.0, 0.0, 0.0]),
            "stopped": np.array(["solved"] * 4 + ["limit"]),
        }
        self.coef_ = np.zeros((5, 4))
        self.coef_[0, 0] = self.coef_[2, 0] = self.coef_[3, 1] = 1.0
        self.certificate_ = TrialCertificate()
        return self

    def transform(self, X):
        return np.asarray(X)[:, [0, 4, 1, 3, 2]]


def mmda_spec(**fields):
    spec = {"estimator": "", "params": {}, "threads": 1, "repeats": 1, "warmup_rows": 20}
    spec |= {"classify": {}, "sample": None, "scaled": False, "permuted": None, "transform": True}
    spec |= {"width": 1.0}
    return spec | {"dataset": "generated", "rows": None, "label": "trial"} | fields


def test_mmda_papers_tables_have_every_set_and_method():
    for method in (mmda.papers.CVM, mmda.papers.SVM):
        for k in mmda.papers.DIRECTIONS:
            assert mmda.papers.seconds(method, k, "letter") is not None
            assert mmda.papers.evaluations(method, k, "letter") is not None
    assert mmda.papers.accuracy(mmda.papers.CVM, "1-NN", 5, "mnist") == 95.18
    assert mmda.papers.accuracy(mmda.papers.NONE, "ANN", mmda.extract.ALL, "letter") == 70.95
    assert mmda.papers.accuracy(mmda.papers.SVM, "SVM", 1, "mnist") is None
    assert mmda.papers.tree(mmda.papers.KPCA, "pendigits") == (89.30, 75)
    assert mmda.papers.accuracy("", "SVM", 0, "letter") is None
    assert set(mmda.papers.SETS) == mmda.papers.CLASSES.keys()


@pytest.mark.parametrize("quick", [False, True])
def test_every_part_of_the_mmda_benchmark_is_planned(quick):
    found = mmda.command.plan(mmda.command.PARTS, mmda.papers.SETS, list(mmda.plan.METHODS), quick)
    assert list(dict.fromkeys(m.part for m in found)) == list(mmda.command.PARTS)
    assert all(m.dataset in datasets.RECIPES for m in found)
    cells = {(m.part, m.dataset, m.label, str(m.point)) for m in found}
    assert len(cells) == len(found)
    assert all(name in mmda.classifiers.CLASSIFIERS for m in found for name in m.classify)
    json.dumps([dataclasses.asdict(m) for m in found])


def test_raw_tables_of_mmda_have_the_papers_c_halved_and_fit_the_times_anew():
    plan = mmda.plan.table_plan(["letter"], ["core", "exact", "kpca", "kpca-all"], quick=False)
    assert [(m.label, m.point["directions"]) for m in plan] == [
        *(("MMDA core", k) for k in (1, 3, 5)),
        ("KPCA", 5),
        ("KPCA, all rows", 5),
    ]
    assert plan[0].params["C"] == 0.5 and plan[0].params["epsilon"] == 1e-3
    assert not plan[0].classify and set(plan[2].classify["SVM"]) == {1, 3, 5}
    assert plan[3].sample == 3500 and plan[4].sample is None
    assert plan[3].params["n_components"] == 130


def test_tables_of_mmda_are_standardised_at_twice_the_width_one_fit_a_method():
    names = ["core", "hinge", "kfd", "kpca", "none"]
    plan = mmda.plan.standard_plan(["optdigits", "mnist"], names, quick=False)
    labels = [(m.dataset, m.label) for m in plan]
    assert len(set(labels)) == len(labels) == 9  # no exact solver on MNIST
    assert all(m.scaled and m.width == 2.0 and m.point == {} for m in plan)
    assert plan[0].params["gamma"] == {"mean_distance": 2.0}
    assert plan[0].params["n_directions"] == 7 and plan[5].params["n_directions"] == 5
    assert plan[1].params["loss"] == "hinge" and plan[1].params["C"] == 1.0
    assert plan[3].classify == {"1-NN": (5,), "tree": (5,), "ANN": (1, 2, 3, 5, 7), "SVM": (5,)}
    times = mmda.plan.times_plan(["optdigits", "letter"], names, quick=False)
    assert not any(m.transform or m.classify for m in times)
    kpca = [m.params["n_components"] for m in times if m.label == "KPCA"]
    assert kpca == [10, 20, 30, 50, 70, 130]


def test_a_balanced_sample_has_classes_of_one_size():
    y = np.repeat([0, 1, 2], [100, 50, 30])
    chosen = mmda.extract.balanced(y, 60)
    assert np.bincount(y[chosen]).tolist() == [20, 20, 20]
    assert len(mmda.extract.balanced(y, 120)) == 110  # 40, 40 and the 30 there are


def test_mmda_features_of_few_directions_are_the_first_of_many(monkeypatch):
    monkeypatch.setattr(mmda.extract, "build", lambda *_: TrialExtractor())
    data = datasets.load("generated")
    kept = []
    spec = mmda_spec(classify={"1-NN": (1, 2), "tree": (2,), "ANN": (1,), "SVM": (1,)})
    found = mmda.extract.measure(spec, data, kept.append)
    assert {k: s["n_features"] for k, s in found["scores"]["1-NN"].items()} == {1: 3, 2: 5}
    assert all(s["accuracy"] > 70 for each in found["scores"].values() for s in each.values())
    assert found["scores"]["tree"][2]["nodes"] == 2 * found["scores"]["tree"][2]["leaves"] - 1
    assert found["evaluations"][1] == {"n_features": 3, "each": 30.0, "distinct": 1}
    assert found["evaluations"][2] == {"n_features": 5, "each": 30.0, "distinct": 2}
    assert found["stopped"] == {"solved": 4, "limit": 1} and found["gap"] == 0.2
    assert "scores" not in kept[0] and kept[-1]["scores"].keys() == found["scores"].keys()
    json.dumps(child.plain(found))


@pytest.mark.parametrize("solver", ["span", "core", "deflation"])
def test_the_extraction_of_mmda_runs_with_the_real_one(solver):
    params = mmda.plan.ours(solver, 2, quick=True)
    spec = mmda_spec(estimator=mmda.plan.OURS, params=params, classify={"1-NN": (1, 2)})
    found = mmda.extract.measure(spec, datasets.load("generated", 120), lambda _: None)
    assert found["solver"] == solver and found["n_features_out"] == 6
    assert [s["n_features"] for s in found["scores"]["1-NN"].values()] == [3, 6]
    assert all(s["accuracy"] > 70 for s in found["scores"]["1-NN"].values())
    assert found["evaluations"][1]["distinct"] <= found["evaluations"][2]["distinct"] <= 120
    json.dumps(child.plain(found))


def test_a_picture_of_mmda_has_the_margin_where_lda_and_pca_fail(tmp_path):
    pytest.importorskip("matplotlib")
    spec = mmda_spec(label=mmda.scatter.FAR, dataset="far_mass")
    found = mmda.scatter.measure(spec, datasets.load("far_mass", 300), lambda _: None)
    record = mmda_record("scatter", mmda.scatter.FAR, "far_mass")
    record |= as_read(found)
    apart = {name: each["separated"] for name, each in record["projections"].items()}
    assert apart["MMDA"] == apart["original"] == 100.0
    assert apart["PCA"] < 99.0 and apart["LDA"] < 99.0
    assert len(mmda.scatter.table([record]).rows) == 4
    # A projection keeps no more of the margin than there is; MMDA keeps all of it.
    (whole,), (kept,) = (record["projections"][name]["plane"] for name in ("original", "MMDA"))
    assert whole * 0.99 < kept < whole * 1.01 and record["projections"]["LDA"]["plane"] is None
    path = mmda.scatter.figure(record, tmp_path / "far.png")
    assert path is not None and path.stat().st_size > 1000


def test_mmda_prepares_rows_as_told(monkeypatch):
    data = datasets.load("generated")
    other = mmda.extract.prepared(mmda_spec(permuted=0, scaled=True), data)
    np.testing.assert_allclose(other.X_train.std(axis=0), 1.0)
    assert np.mean(other.y_train == data.y_train) < 0.5
    assert sorted(other.y_train) == sorted(data.y_train)
    monkeypatch.setattr(mmda.extract, "build", lambda *_: TrialExtractor())
    found = mmda.extract.measure(mmda_spec(sample=30, transform=False), data, lambda _: None)
    assert found["n_fit"] == 30 and found["n_train"] == 400 and "transform_seconds" not in found


def test_c45_finds_the_threshold_between_two_classes_and_stops_there():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X[:, 1] > 0.2).astype(int)
    tree = mmda.c45.grown(X, y, 2, fewest=2)
    mmda.c45.prune(tree, X, y)
    assert tree.size() == (3, 2) and tree.column == 1
    # The threshold is a value that was seen, the largest below.
    assert tree.threshold == X[y == 0, 1].max()
    assert np.array_equal(mmda.c45.predicted(tree, X), y)


def test_c45_prunes_what_noise_has_grown():
    rng = np.random.default_rng(0)
    # Few values, so that thresholds cost little.
    X = rng.integers(3, size=(1000, 8)).astype(float)
    y = ((X[:, 0] > 0) ^ (rng.random(1000) < 0.2)).astype(int)
    tree = mmda.c45.grown(X, y, 2, fewest=2)
    before = tree.size()[0]
    mmda.c45.prune(tree, X, y, confidence=1e-3)
    assert 3 <= tree.size()[0] < before
    bare = mmda.c45.grown(X, y, 2, fewest=501)
    assert bare.size() == (1, 1)
    assert set(mmda.c45.predicted(bare, X)) == {np.bincount(y).argmax()}


def test_c45_raises_the_larger_branch_where_its_parent_does_not_help():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2))
    y = (X[:, 0] > 0).astype(int)
    useful = mmda.c45.Node(0, 0, 0.0, mmda.c45.Node(0), mmda.c45.Node(1))
    # Two rows are split off that are of the class which they would have had.
    last = np.partition(X[:, 1], 2)[1]
    again = mmda.c45.Node(0, 0, 0.0, mmda.c45.Node(0), mmda.c45.Node(1))
    root = mmda.c45.Node(0, 1, last, again, useful)
    mmda.c45.prune(root, X, y)
    assert root.size() == (3, 2) and root.column == 0


def test_c45_expects_more_errors_than_it_has_seen():
    expected = [mmda.c45.expected_errors(10, errors, 0.25) for errors in (0, 2, 10)]
    # Without an error the limit p is that of (1 - p)^rows = confidence.
    np.testing.assert_allclose(expected[0], 10 * (1 - 0.25**0.1))
    assert 2.0 < expected[1] < expected[2] == 10.0


def test_the_sets_of_the_mmda_paper_are_prepared(folder):
    X = np.arange(12.0).reshape(4, 3)
    X[0, 0] = np.nan
    np.savez(folder / "heart_cleveland.npz", X=X, y=np.array([0, 1, 4, 0]))
    data = datasets.load("heart")
    assert data.X_train[0, 0] == 6.0 and data.y_train.tolist() == [-1, 1, 1, -1]
    assert data.X_test.shape == (0, 3)
    parts = {"X_train": X[1:], "y_train": np.array([0, 6, 5]), "X_test": X[1:2], "y_test": [5]}
    np.savez(folder / "optdigits.npz", **parts)
    assert datasets.load("optdigits_069").y_train.tolist() == [0, 6]
    assert len(datasets.load("optdigits_069").y_test) == 0


def test_the_second_column_separates_what_lda_and_pca_do_not():
    data = datasets.load("far_mass")
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert np.all(np.sign(X[:, 1]) == -y)
    record = mmda.scatter.separation(
        data.X_train[:, 1:], data.y_train, data.X_test[:, 1:], data.y_test
    )
    assert record["separated"] == record["held_out"] == 100.0 and record["margin"] > 0.0
    across = mmda.scatter.separation(
        data.X_train[:, :1], data.y_train, data.X_test[:, :1], data.y_test
    )
    assert across["separated"] < 97.0 and across["margin"] is None


def test_cells_of_mmda_within_chance_count_as_met():
    reached = mmda.papers.accuracy(mmda.papers.CVM, "SVM", 1, "optdigits") - 0.25
    results = mmda.tables.by_cell([mmda_record("standard", scores=scored(reached))])
    # 96.91 is within 0.3 of all three cells of the SVM, and beats 1-NN's at 3N_c and 5N_c and the
    # ANN's at N_c.
    assert mmda.tables.met_cells(results, "core", ["optdigits"]) == (6, 9, 0)
    assert mmda.tables.met_cells(results, "core") == (6, 45, 36)
    assert mmda.tables.met_cells(results, "span", ["optdigits"]) == (0, 9, 9)
    table = mmda.tables.accuracy_table(results, ["optdigits", "satimage"])
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["MMDA core, N_c, SVM"] == ["96.91 (97.16)", "– (89.75)"]
    assert cells["MMDA core, N_c, 1-NN"][0] == "96.91 * (97.44)"
    assert "MMDA span, N_c, SVM" not in cells


def test_mmda_times_stand_beside_kpca_of_the_same_run_only():
    ours, base = mmda_record("times"), mmda_record("times", "KPCA", fit_seconds=4.0)
    both = mmda.tables.by_cell([ours, base], "times")
    row = mmda.tables.seconds_table(both, ["optdigits"]).rows[2]
    assert row == ["MMDA core, 5N_c", "2.00 s, 0.50× (332 s, 2.21×)"]
    later = mmda.tables.by_cell([ours | {"run": "tuesday"}, base], "times")
    assert mmda.tables.seconds_table(later, ["optdigits"]).rows[2][1] == "2.00 s (332 s, 2.21×)"


def test_what_mmda_knew_before_a_timeout_is_shown():
    ended = mmda_record("standard", status="timeout", scores=scored(97.0, classifiers=("1-NN",)))
    ended["evaluations"] = {"5": {"n_features": 50, "each": 300.0, "distinct": 900}}
    results = mmda.tables.by_cell([ended])
    cells = {row[0]: row[1] for row in mmda.tables.accuracy_table(results, ["optdigits"]).rows}
    assert cells["MMDA core, 5N_c, 1-NN"] == "97.00 (95.94)"
    assert cells["MMDA core, 5N_c, SVM"] == "timeout (97.05)"
    cells = {row[0]: row[1] for row in mmda.tables.evaluations_table(results, ["optdigits"]).rows}
    assert cells["MMDA core, 5N_c"] == "300 (367)"
    assert cells["MMDA core, 5N_c, all features together"] == "900"


def test_what_was_asked_of_mmda_is_judged_by_what_was_measured():
    nothing = {row[0]: row[2] for row in mmda.targets.table([]).rows}
    assert set(nothing.values()) == {MISSING}
    evaluations = {str(k): {"each": 300.0, "distinct": 1000} for k in (1, 3, 5)}
    records = [
        mmda_record("tables", name, dataset, scores=scored(99.0), evaluations=evaluations)
        for name in ("MMDA core", "MMDA span", "MMDA span, C = 10, by margins")
        for dataset in ("optdigits", "satimage", "pendigits", "letter_16000", "mnist_unit")
    ]
    records += [
        mmda_record("scale", solver, fit_seconds=rows**power, n_train=rows)
        for solver, power in (("span", 1.0), ("core", 1.5))
        for rows in mmda.scale.ROWS
    ]
    both = {"transform_seconds": 1.0}
    records += [mmda_record("peers", "KPCA", **both), mmda_record("peers", "KPCA, ARPACK", **both)]
    records += [mmda_record("peers", "MMDA span", fit_seconds=5.0, **both)]
    noise = {"scores": scored(12.0, classifiers=("1-NN",))}
    records += [mmda_record("noise", point={"seed": seed}, **noise) for seed in mmda.noise.SEEDS]
    rows = mmda.targets.table(records).rows
    assert [row[1:] for row in rows[:6]] == [
        *(["45 of 45, 100 %", "yes"],) * 3,
        *(["99.00 %", "yes"],) * 3,
    ]
    rows = rows[6:]
    assert rows[0][2] == "no" and "optdigits, N_c: 300 over 279" in rows[0][1]
    assert rows[1][2] == "yes" and "optdigits 1,000 against 1,101" in rows[1][1]
    assert rows[2][1:] == ["KPCA 2.00×; KPCA, ARPACK 2.00×", "yes"]
    assert [row[2] for row in rows[3:]] == ["yes", "no", "yes", MISSING]


def test_mmda_is_not_said_to_meet_what_is_half_measured():
    evaluations = {str(k): {"each": 200.0, "distinct": 1000} for k in (1, 3, 5)}
    fields = {"scores": scored(99.0), "evaluations": evaluations}
    records = [mmda_record("tables", name, **fields) for name in ("MMDA core", "MMDA span")]
    records += [mmda_record("scale", "span", n_train=n, fit_seconds=n) for n in (1000, 10_000)]
    records += [mmda_record("noise", scores=scored(10.0, classifiers=("1-NN",)))]
    rows = mmda.targets.table(records).rows
    assert {row[2] for row in rows} == {MISSING}
    assert rows[0][1] == "9 of 45, 20 %; 36 not measured" and "10,000 rows" in rows[9][1]
    beside = [{"fit_seconds": s, "transform_seconds": 1.0} for s in (9.0, 3.0, 19.0)]
    labels = ("KPCA", "KPCA, ARPACK", "MMDA span")
    records = [mmda_record("peers", name, **t) for name, t in zip(labels, beside, strict=True)]
    assert mmda.targets.table(records).rows[8][1:] == ["KPCA 2.00×; KPCA, ARPACK 5.00×", "no"]


def of_seven_directions(part="standard", label="MMDA core", **fields):
    evaluations = {str(k): {"n_features": 10 * k, "each": 300.0, "distinct": 900} for k in (1, 3)}
    scores = {
        "ANN": {str(k): {"accuracy": 97.0, "n_features": 10 * k} for k in (1, 3)},
    }
    fields = {"evaluations": evaluations, "scores": scores, "point": {}} | fields
    return mmda_record(part, label, **fields)


def test_curves_of_mmda_stand_beside_the_papers_tables():
    rows = mmda.curves.table([of_seven_directions()]).rows
    assert rows[1][2:] == ["30", "97.00 (97.77)", "9,000 (10,770)", "900"]
    dense = {"0": {"each": 3823, "distinct": 3823}}
    score = {"ANN": {k: {"accuracy": 94.0, "n_features": int(k) * 10} for k in ("3", "5")}}
    other = of_seven_directions(label="KPCA", evaluations=dense, scores=score)
    rows = mmda.curves.table([other]).rows
    assert rows[0][2:] == ["30", "94.00", "114,690", "3,823"]
    assert rows[1][2:] == ["50", "94.00 (93.65)", "191,150 (191,150)", "3,823"]
    late = mmda_record("standard", status="timeout", point={}, fit_seconds=None)
    assert mmda.curves.table([late]).rows == []


def test_dimensions_of_mmda_that_no_fold_has_are_left_out(monkeypatch):
    monkeypatch.setattr(mmda.folds, "build", lambda *_: TrialExtractor())
    params = {"folds": 2, "dimensions": (1, 2, 8), "kernel": "rbf"}
    found = mmda.folds.measure(
        mmda_spec(params=params, label="K-MMDA"), datasets.load("generated", 60), lambda _: None
    )
    assert found["means"].keys() == found["deviations"].keys() == {1, 2}
    whole = mmda.folds.measure(
        mmda_spec(params=params, label="original"), datasets.load("generated", 60), lambda _: None
    )
    records = [
        mmda_record("folds", label, **as_read(means))
        for label, means in (("original", whole), ("K-MMDA", found))
    ]
    rows = mmda.folds.table(records).rows
    assert rows[0][2:5] == ["5 to 5", MISSING, MISSING] and rows[0][5] != MISSING
    assert rows[1][3] == f"{found['means'][1]:.2f}" and rows[1][5] == MISSING


def test_permuted_labels_are_told_by_the_farthest_of_them():
    records = [
        mmda_record("noise", scores=scored(accuracy, classifiers=("1-NN",)), point={"seed": seed})
        for seed, accuracy in enumerate((9.0, 10.5))
    ]
    assert mmda.noise.farthest(records, "MMDA core") == 1.0
    row = mmda.noise.table(records).rows[0]
    assert row[1] == "9.75 (9.00 to 10.50)" and row[-1] == "1.00"
    late = mmda.noise.table([mmda_record("noise", status="timeout")]).rows[0]
    assert late[1] == "timeout"


def test_every_mmda_table_and_picture_can_be_drawn_from_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure", failing)
    mmda.main(["--quick", "--results", str(tmp_path)])
    document = json.loads((tmp_path / "mmda_quick.json").read_text())
    assert {record["part"] for record in document["records"]} == set(mmda.command.PARTS)
    page = (tmp_path / "mmda_quick.md").read_text()
    assert "failed" in page and "(mmda_quick_" not in page
    assert "A quick run" in page and "What was asked" not in page


def test_pictures_of_mmda_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    curve = [of_seven_directions()]
    times = [mmda_record("times", point={"directions": k}) for k in (1, 3)]
    variant = [mmda_record("variants", "default", scores=scored(90.0, (3,)), n_features_out=30)]
    scale = [
        mmda_record("scale", "span", rows=n, n_train=n, fit_seconds=n / 1e3) for n in (1000, 9000)
    ]
    folds = [
        mmda_record("folds", label, means={"2": 70.0}, deviations={"2": 1.0})
        for label in ("original", "MMDA")
    ]
    several = [mmda_record("multiclass", scores=scored(90.0, (1, 2), mmda.multiclass.CLASSIFIERS))]
    drawn = {
        "figure 2": mmda.curves.accuracy_figure(curve, tmp_path / "figure2.png"),
        "figure 3": mmda.curves.time_figure(times, tmp_path / "figure3.png"),
        "figure 4": mmda.curves.evaluations_figure(curve, tmp_path / "figure4.png"),
        "scale": mmda.scale.figure(scale, tmp_path / "scale.png"),
        "folds": mmda.folds.figure(folds, tmp_path / "folds.png"),
        "multiclass": mmda.multiclass.figure(several, tmp_path / "multiclass.png"),
    }
    assert all(path is not None and path.stat().st_size > 1000 for path in drawn.values())
    made = (mmda.scale.table(scale), mmda.folds.table(folds), mmda.multiclass.table(several))
    for table in (*made, mmda.variants.table(variant)):
        markdown_table(table.header, table.rows)
    assert mmda.peers.ratio_over([], "KPCA") is None
