"""The figures of the README, and how old results are."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.harness import sources
from benchmarks.harness.session import RESULTS, MergedSession, facts_of
from benchmarks.readme import blocks, command
from benchmarks.readme.figures import Figures, MissingFigure
from tests.benchmarks.trial import finished


def test_all_pages_show_the_figures_of_the_results():
    for path, made in command.pages().items():
        assert path.read_text() == made, f"run `python -m benchmarks readme`: {path.name} differs"


def test_every_block_is_on_the_page():
    named = {name for _, name, _ in command.BLOCK.findall(command.PAGE.read_text())}
    assert named == set(blocks.BLOCKS)


def test_a_block_that_nobody_makes_is_an_error():
    page = "<!-- figures: weather -->\n<!-- end of figures -->"
    with pytest.raises(KeyError, match=r"'weather'; there are peers"):
        command.with_figures(page)


def test_a_figure_that_was_not_measured_is_an_error_that_names_it(tmp_path):
    (tmp_path / "peers.json").write_text(json.dumps({"runs": {}, "records": []}))
    with pytest.raises(MissingFigure, match=r"peers\.json has 0 records of 'ours' on 'letter'"):
        Figures(tmp_path).record("peers", "letter", "ours", C=1.0)


def test_a_changed_figure_changes_the_page():
    page = "<!-- figures: sparse -->\nof yesterday\n<!-- end of figures -->"
    made = command.with_figures(page)
    assert (
        "yesterday" not in made and "Nystroem(200)" in made and "python -m benchmarks slmc" in made
    )
    assert command.with_figures(made) == made


# How old a result is.


def _package(root, text):
    folder = root / "src" / "widemargin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("")
    (folder / "part.py").write_text(text)
    sources._code.cache_clear()


def test_a_result_is_old_when_code_it_ran_has_changed_and_not_for_a_comment(tmp_path):
    modules = ["widemargin", "widemargin.part"]
    _package(tmp_path, 'def f():\n    """Say one."""\n    return 1\n')
    source = sources.hash_of(modules, tmp_path)
    record, known = finished(source=source), {source: modules}
    assert not sources.is_old(record, known, tmp_path)
    _package(tmp_path, 'def f():\n    """Say 1."""\n    # the first number\n    return 1\n')
    assert not sources.is_old(record, known, tmp_path)
    assert sources.age([record], known, tmp_path) == ""
    _package(tmp_path, "def f():\n    return 2\n")
    assert sources.is_old(record, known, tmp_path)
    assert sources.age([record, finished(source=sources.NOTHING)], known, tmp_path).startswith("So")
    (tmp_path / "src" / "widemargin" / "part.py").unlink()
    sources._code.cache_clear()
    assert sources.is_old(record, known, tmp_path)


def test_an_estimator_is_made_of_what_its_module_imports():
    modules = sources.modules_behind("widemargin.MarginClassifier")
    assert {"widemargin.svm.margin_classifier", "widemargin.qp.small_loops"} <= set(modules)
    assert not {"widemargin.svm.grid_search", "widemargin.sparse.marginal"} & set(modules)
    assert sources.hash_of(modules) is not None
    assert "widemargin.svm.grid_search" in sources.modules_behind("widemargin.MarginClassifierCV")


def test_a_peer_is_never_old_and_ours_without_a_hash_is():
    assert not sources.is_old(finished(source=sources.NOTHING), {})
    assert not sources.is_old(finished(estimator="sklearn.svm.SVC"), {})
    assert sources.is_old(finished(estimator="widemargin.MarginClassifier"), {})


def test_a_session_keeps_the_modules_of_a_record_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "trial"])
    session = MergedSession("trial", 1.0, 2, tmp_path)
    for label in ("a", "b"):
        session.keep(session.with_source(finished(label=label, modules=["widemargin.loop"])))
    (source,) = session.header["sources"]
    assert all(record["source"] == source for record in session.records)
    assert "modules" not in session.records[0]
    assert "older than the code" not in session.facts()[0]
    session.records[0]["source"] = "0" * 16
    assert session.facts()[0].endswith(
        "Some of its figures are older than the code that they measure."
    )
    assert facts_of(session.header, []).startswith("`python -m benchmarks")


def test_the_results_in_the_repository_can_be_read():
    for path in RESULTS.glob("*.json"):
        if not path.stem.endswith("_quick"):
            assert json.loads(path.read_text())["records"], path.name
