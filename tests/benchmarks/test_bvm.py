"""The tables and figures of the BVM paper."""

from __future__ import annotations

import pytest

from benchmarks import bvm, kdd
from benchmarks.bvm.figures import sweep_figure
from benchmarks.harness import bvm_paper
from benchmarks.harness.datasets import STANDARD
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


def test_a_sweep_is_drawn_as_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    records = [finished(point={"C": C}) for C in (0.1, 1.0)]
    path = sweep_figure(records, "C", "C", tmp_path / "sweep.png")
    assert path is not None and path.stat().st_size > 1000
    assert sweep_figure([], "C", "C", tmp_path / "none.png") is None


def test_the_papers_tables_name_the_same_sets():
    assert bvm_paper.ACCURACY.keys() == bvm_paper.SECONDS.keys() == bvm_paper.VECTORS.keys()
    assert {name.removesuffix(STANDARD) for name in bvm.plan.SETS} <= bvm_paper.ACCURACY.keys()
