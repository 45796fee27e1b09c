"""Measurements on a device, their tables, and what was asked of them."""

from __future__ import annotations

import pytest

from benchmarks.gpu import command, fit, floor, plan, tables
from benchmarks.harness.datasets import NOTHING, load
from benchmarks.harness.report import MISSING
from tests.benchmarks.trial import as_read, failing, finished


def _spec(measurement):
    import dataclasses

    return dataclasses.asdict(measurement) | {"threads": 1, "repeats": 1}


def test_the_places_of_a_set_are_compared_on_the_same_parameters():
    for name in ("mnist_unit", "covtype"):
        mine = [each for each in plan.fits(quick=False) if each.dataset == name]
        assert {each.label for each in mine} == {
            *(plan.THERE, plan.HERE, plan.PROCESSOR, plan.NAIVE)
        }
        ours = [each for each in mine if each.label != plan.NAIVE]
        for vectors in {each.point["vectors"] for each in ours}:
            same = [each.params for each in ours if each.point["vectors"] == vectors]
            assert all(params == same[0] for params in same)


def test_every_part_is_planned_and_only_those_that_are_wanted():
    assert {each.part for each in plan.plan(plan.PARTS, quick=False)} == set(plan.PARTS)
    assert {each.part for each in plan.plan([plan.ROWS], quick=True)} == {plan.ROWS}


def test_a_search_has_fifty_values_of_c_and_five_folds():
    search, peer = plan.searches(quick=False)
    assert len(search.params["Cs"]) == peer.params["nC"] == 50
    assert search.params["cv"] == peer.params["cv"] == 5


@pytest.mark.parametrize("place", [plan.THERE, plan.HERE, plan.PROCESSOR])
def test_a_fit_is_measured_wherever_its_rows_are(place):
    pytest.importorskip("torch")
    measurement = next(each for each in plan.fits(quick=True) if each.label == place)
    found = as_read(fit.on_device(_spec(measurement), load(NOTHING), lambda _: None))
    assert found["accuracy"] > 70 and found["fit_seconds"] > 0 and found["certificate"]
    assert ("device" in found) == (place != plan.PROCESSOR)


def test_generated_rows_a_floor_and_the_naive_line_are_measured():
    pytest.importorskip("torch")
    for measurement in plan.rows(quick=True):
        found = as_read(fit.on_made_rows(_spec(measurement), None, lambda _: None))
        assert found["accuracy"] > 70
    (measurement,) = plan.floors(quick=True)
    found = as_read(floor.one_pass(_spec(measurement), None, lambda _: None))
    assert found["product_seconds"] > 0 and found["pass_seconds"] > 0
    naive = next(each for each in plan.fits(quick=True) if each.label == plan.NAIVE)
    found = as_read(floor.naive(_spec(naive), load(NOTHING), lambda _: None))
    assert found["accuracy"] > 70


def _record(**fields):
    given = {"label": plan.THERE, "dataset": "mnist_unit", "part": plan.FITS, "set_name": None}
    return finished(**given | {"point": {"vectors": 4000}, "certificate_line": None} | fields)


def test_what_was_asked_is_judged_by_time_and_accuracy():
    def met(**fields):
        return tables.targets([_record(**fields)]).rows[0][2]

    assert met(fit_seconds=0.4, accuracy=98.6) == "yes"
    assert met(fit_seconds=0.6, accuracy=98.6) == met(fit_seconds=0.4, accuracy=98.0) == "no"
    assert all(row[2] == MISSING for row in tables.targets([]).rows)
    floor_record = _record(part=plan.FLOOR, product_seconds=0.1, fit_seconds=0.5)
    assert tables.targets([floor_record]).rows[-1][2] == "no"


def test_peers_are_compared_on_the_same_set():
    def said(mine, peer):
        ours = {"part": plan.MACHINES, "dataset": "covtype_seven_100000"}
        both = [
            _record(**ours, label=plan.labelled("cells", plan.THERE), **mine),
            _record(**ours, label=plan.XRFM, **peer),
        ]
        return next(row[2] for row in tables.targets(both).rows if "xRFM" in row[0])

    slow = {"fit_seconds": 50.0, "accuracy": 94.9}
    assert said({"fit_seconds": 60.0, "accuracy": 95.0}, slow) == "yes"
    assert said({"fit_seconds": 1.0, "accuracy": 94.0}, slow) == "yes"
    assert said({"fit_seconds": 10.0, "accuracy": 94.0}, slow) == "no"
    assert said({"fit_seconds": 1.0, "accuracy": 93.0}, slow) == "no"


def test_a_page_is_written_where_nothing_could_be_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.runner.measure", failing)
    command.main(["--quick", "--results", str(tmp_path)])
    page = (tmp_path / "gpu_quick.md").read_text()
    assert "On a GPU" in page and "failed, no" in page
