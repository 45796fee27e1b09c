"""A run of a plain benchmark, from the plan to the page."""

from __future__ import annotations

import json

from benchmarks import speed
from benchmarks.harness import runner
from benchmarks.harness.machines import vector_machine
from benchmarks.harness.session import Session
from tests.benchmarks.trial import finished


def test_a_session_writes_json_and_markdown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "measure", lambda *_: finished())
    session = Session("trial", timeout=1.0, threads=1, results=tmp_path)
    session.run([vector_machine("BVM", "letter")])
    session.write("A title", [speed.tables.speed_table(session.records, ["letter"])], ["A note."])
    document = json.loads((tmp_path / "trial.json").read_text())
    assert document.keys() >= {"command", "date", "threads", "machine", "versions", "records"}
    assert (tmp_path / "trial.md").read_text().startswith("# A title\n")
    assert "95.00 %" in capsys.readouterr().out
