"""The comparison with other kernel machines."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.harness import datasets, fits, runner
from benchmarks.harness.estimators import NystroemLinearSVC
from benchmarks.harness.records import fit_ratio, merged
from benchmarks.harness.report import MISSING
from benchmarks.peers.machines import FourierSGD, SubsampledSVC
from tests.benchmarks.trial import finished


def peer(name="svc", gamma_factor=1.0, C=1.0, run="monday", **fields):
    """A finished record of the comparison with peers."""
    point = {"gamma_factor": gamma_factor, "C": C}
    label = peers.plan.MACHINES[name].label
    return finished(label=label, point=point, run=run, n_test=1000) | fields


def test_no_point_of_a_pareto_front_is_beaten_and_every_other_is():
    points = [(1.0, 9.0), (2.0, 9.0), (2.0, 5.0), (3.0, 6.0), (0.5, 9.5), (9.0, 1.0), (1.0, 9.0)]
    assert peers.plots.pareto_front(points) == [4, 0, 2, 5]
    assert peers.plots.pareto_front([]) == []


def test_a_pareto_front_holds_exactly_what_nothing_dominates():
    points = [tuple(p) for p in np.random.default_rng(0).integers(0, 12, size=(60, 2)).tolist()]
    front = {points[index] for index in peers.plots.pareto_front(points)}
    for time, error in points:
        beaten = any(t <= time and e <= error and (t, e) != (time, error) for t, e in points)
        assert ((time, error) in front) != beaten


def test_the_front_leaves_out_what_did_not_finish():
    slow, late = peer(fit_seconds=9.0, accuracy=99.0), peer(C=10.0, status="timeout")
    assert peers.plots.front_of([slow, late]) == [slow]


def test_all_machines_of_a_cell_run_right_after_one_another():
    plan = peers.plan.measurements(["letter", "w8a"], [1.0, 8.0], [1.0, 10.0], ["svc", "ours-auto"])
    assert [m.label for m in plan[:4]] == ["SVC", "ours, auto"] * 2
    assert [m.params["C"] for m in plan[:4]] == [1.0, 1.0, 10.0, 10.0]
    assert [m.dataset for m in plan] == ["letter"] * 8 + ["w8a"] * 8
    assert plan[4].params["gamma"] == {"mean_distance": 8.0} == plan[5].params["gamma"]


@pytest.mark.parametrize(
    "machine",
    [
        NystroemLinearSVC(gamma=0.1, n_components=50),
        FourierSGD(gamma=0.1, n_components=200),
        SubsampledSVC(gamma=0.1, n_rows=150),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_peers_learn_and_count_their_vectors(machine):
    data = datasets.load("generated")
    machine.fit(data.X_train, data.y_train)
    assert np.mean(machine.predict(data.X_test) == data.y_test) > 0.7
    assert 0 < fits.vectors_of(machine) <= 200


def test_a_new_record_replaces_its_cell_only():
    old = [peer(), peer(C=10.0), peer("ours-auto")]
    new = peer(run="tuesday")
    assert merged(old, new) == [new, *old[1:]]
    assert merged(old, peer(gamma_factor=8.0))[:3] == old


def test_a_skipped_record_never_replaces_a_measured_one():
    skipped = peer("intelex", status="skipped")
    assert merged([peer("intelex")], skipped) == [peer("intelex")]
    assert merged([peer()], skipped) == [peer(), skipped]


def test_times_of_different_runs_are_not_compared():
    assert fit_ratio(peer(fit_seconds=6.0), peer("ours-auto")) == 3.0
    assert fit_ratio(peer(run="tuesday"), peer("ours-auto")) is None
    assert fit_ratio(peer(), None) is None


def test_a_timeout_stays_in_the_table_with_what_is_known():
    ended = peer(status="timeout", message="no result within 1 s", accuracy=None)
    ended["predict_seconds"] = None
    ours = peer("ours-auto", certificate_line="gap 1e-4", engine="span", fit_seconds=0.5)
    table = peers.tables.cell_table([ended, ours])
    assert table.rows[0][:4] == ["ours, auto", "0.500", "1.00×", MISSING]
    assert table.rows[1][:3] == ["SVC", "2.000", "4.00×"]
    assert table.rows[1][5:8] == ["timeout", "timeout", "1,234"]
    assert table.notes == [
        "- ours, auto (span): gap 1e-4\n- SVC: timeout, no result within 1 s",
    ]
    never = {key: ended[key] for key in ("label", "dataset", "point", "run", "status", "message")}
    assert set(peers.tables.cell_table([never]).rows[0][1:]) == {"timeout", MISSING}


def test_a_partial_run_of_peers_keeps_the_rest(tmp_path, monkeypatch):
    def measured(measurement, *_):
        return peer(label=measurement.label, point=measurement.point)

    monkeypatch.setattr(runner, "measure", measured)
    common = ["--data", "letter", "--gamma-factor", "1", "--results", str(tmp_path)]
    peers.main([*common, "--C", "1", "10", "--machines", "svc", "ours-auto"])
    peers.main([*common, "--C", "10", "--machines", "svc"])
    document = json.loads((tmp_path / "peers.json").read_text())
    assert len(document["records"]) == 4
    assert {record["run"] for record in document["records"]} == document["runs"].keys()
    page = (tmp_path / "peers.md").read_text()
    assert page.count("## letter, γ = 1/β, C = ") == 2 and "(peers_letter.png)" in page
    assert (tmp_path / "peers_letter.png").stat().st_size > 1000
