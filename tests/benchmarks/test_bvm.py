"""The tables and figures of the BVM paper."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import bvm, kdd
from benchmarks.bvm.figures import SWEEPS, rows_sweep, sweep_figure
from benchmarks.bvm.geometry import centers, one_move_figure, smallest_ball
from benchmarks.harness import bvm_paper
from benchmarks.harness.datasets import STANDARD, shifted
from benchmarks.harness.machines import LIBSVM, libsvm, vector_machine
from benchmarks.harness.records import by_set_and_label
from benchmarks.harness.report import markdown_table
from tests.benchmarks.trial import finished

OWN = bvm.plan.LABELS[bvm.plan.OURS]


def test_the_papers_c_is_halved_for_ours_and_kept_for_libsvm():
    assert vector_machine("CVM", "letter", paper_C=3.0).params["C"] == 1.5
    assert libsvm("letter", paper_C=3.0).params["C"] == 3.0


def test_accuracy_half_a_point_below_libsvm_is_flagged():
    records = [finished(label=LIBSVM), finished(accuracy=94.4), finished(label="CVM gap")]
    row = bvm.tables.accuracy_table(by_set_and_label(records), ["letter"], OWN).rows[0]
    assert row[-1] == "BVM gap" and row[-2] == "95.00 (94.25)"


def test_times_stand_beside_the_papers_as_ratios():
    records = [finished(label=LIBSVM, fit_seconds=4.0), finished(label="BVM 1e-4")]
    row = bvm.tables.seconds_table(by_set_and_label(records), ["letter"], OWN).rows[0]
    assert row[1] == "2.00 s, 0.50× (19.87 s, 1.83×)"


def test_every_table_can_be_drawn_from_records_that_failed():
    failed = {"label": "BVM 1e-4", "dataset": kdd.plan.DATASET, "status": "failed", "message": "no"}
    results = by_set_and_label([failed])
    for labels in bvm.plan.LABELS.values():
        for table in bvm.tables.MAKERS:
            drawn = table(results, [kdd.plan.DATASET], labels)
            markdown_table(drawn.header, drawn.rows)
    assert "failed" in str(kdd.tables.kdd_table([failed]).rows)


def test_machines_as_printed_stand_beside_the_papers_figures_too():
    record = finished(
        label="CVM 1e-5 as printed", part=bvm.plan.TABLES, point={"gamma_factor": 2.0}
    )
    made = bvm.tables.tables([record])
    assert [table.title for table in made][:1] == [
        "Table 2: accuracy, γ = 2/β, as printed: one row at a time"
    ]
    assert "95.00 (94.10)" in made[0].rows[0]


def test_the_plan_has_each_machine_in_both_forms_and_at_both_widths():
    plan = bvm.plan.measurements(["letter"], None)
    assert len({(each.label, each.point["gamma_factor"]) for each in plan}) == len(plan)
    printed = [each for each in plan if each.label.endswith("as printed")]
    assert len(printed) == 2 * 2 * 3
    assert all(each.params["growth"] == "one" for each in printed)
    assert all(each.params["multi_class"] == "ovo" for each in printed)


def test_a_sweep_is_drawn_as_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    records = [finished(point={"C": C}) for C in (0.1, 1.0)]
    sweep = next(each for each in SWEEPS if each.axis == "C")
    path = sweep_figure(records, sweep, tmp_path / "sweep.png")
    assert path is not None and path.stat().st_size > 1000
    assert sweep_figure([], sweep, tmp_path / "none.png") is None


def test_the_drawing_of_a_move_is_of_a_ball_that_comes_nearer_with_each(tmp_path):
    pytest.importorskip("matplotlib")
    assert one_move_figure(tmp_path / "move.png").stat().st_size > 1000
    points = np.random.default_rng(1).normal(size=(40, 2))
    best, radius = smallest_ball(points)
    assert np.linalg.norm(points - best, axis=1).max() == radius
    distance = [np.linalg.norm(center - best) for center in centers(points, 0, radius)]
    assert len(distance) > 2 and (np.diff(distance) < 0).all()


def test_figure_4_has_each_machine_on_each_number_of_rows():
    plan = rows_sweep((100, 200))
    assert len({(each.label, each.rows) for each in plan}) == len(plan) == 2 * 5
    assert all(each.point["n"] == each.rows for each in plan)


def test_shifted_digits_stand_at_every_place_of_their_frame():
    rng = np.random.default_rng(0)
    arrays = {
        "X_train": rng.uniform(0.1, 1.0, size=(5, 256)),
        "y_train": np.array([0, 1, 2, 1, 0]),
        "X_test": rng.uniform(0.1, 1.0, size=(2, 256)),
        "y_test": np.array([1, 0]),
    }
    X, y, X_test, y_test = shifted((0, 1))(arrays)
    assert X.shape == (4 * 121, 676) and X_test.shape == (2 * 121, 676)
    assert (np.count_nonzero(X, axis=1) == 256).all()
    assert len(np.unique(X, axis=0)) == len(X)
    assert (y == np.repeat([1, -1, -1, 1], 121)).all() and (y_test == np.repeat([-1, 1], 121)).all()
    few, labels, *_ = shifted((0, 1), 100)(arrays)
    assert few.shape == (100, 676) and len(labels) == 100


def test_the_papers_tables_name_the_same_sets():
    assert bvm_paper.ACCURACY.keys() == bvm_paper.SECONDS.keys() == bvm_paper.VECTORS.keys()
    assert {name.removesuffix(STANDARD) for name in bvm.plan.SETS} <= bvm_paper.ACCURACY.keys()
