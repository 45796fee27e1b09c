"""The figures of README.md and docs/, and how old results are."""

from __future__ import annotations

import json
import re
import sys

import pytest

from benchmarks.harness import sources
from benchmarks.harness.session import RESULTS, MergedSession, facts_of
from benchmarks.readme import command
from benchmarks.readme.figures import Figures, MissingFigure
from tests.benchmarks.trial import finished

# Code outgrows its figures with every change; pages say so on the day that they are made.
AGE = re.compile(
    r"\.? (?:Some|All) of (?:its|these) figures are older than the code(?: that they measure)?\."
)


def without_age(page):
    """The text of a page, whether or not it says that figures are old."""
    return re.sub(r"\.$", "", AGE.sub("", page), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    ["numba 0.68.1", "results: [peers](benchmarks/results/peers.md)."],
)
@pytest.mark.parametrize(
    "told",
    [
        "Some of these figures are older than the code.",
        "All of its figures are older than the code that they measure.",
    ],
)
def test_the_age_of_figures_is_no_figure(line, told):
    old = f"{line} {told}" if line.endswith(".") else f"{line}. {told}"
    assert without_age(f"{old}\nnext") == without_age(f"{line}\nnext")
    assert without_age(f"{line}\nnext 1.2") != without_age(f"{line}\nnext 1.3")


def test_all_pages_show_the_figures_of_the_results():
    for path, made in command.pages().items():
        shown = without_age(path.read_text())
        assert shown == without_age(made), f"run `python -m benchmarks readme`: {path.name} differs"


PAGES = [command.PAGE, *sorted(command.DOCS.glob("*.md"))]


def test_every_block_is_on_a_page():
    named = {name for page in PAGES for _, name, _ in command.BLOCK.findall(page.read_text())}
    assert named == set(command.MADE)


def test_a_page_in_docs_links_to_its_results():
    page = "<!-- figures: cell-sizes -->\n<!-- end of figures -->"
    assert "[cells](../benchmarks/results/cells.md)" in command.with_figures(page, to_root="../")
    for path in command.DOCS.glob("*.md"):
        assert "](benchmarks/results/" not in path.read_text(), path.name


def test_a_block_that_nobody_makes_is_an_error():
    page = "<!-- figures: weather -->\n<!-- end of figures -->"
    with pytest.raises(KeyError, match=r"'weather'; there are short"):
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


# Figures that no block has made.

# What is written as a quantity or with a decimal point has been measured,
FIGURE = re.compile(
    r"""\d[\d.,]*\s?(?:%|[mµ]?s\b|[kKMGT]i?B\b|×)  # a share, a time, a size, a ratio
    |\d[\d.,]*[ ](?:points?|seconds?|minutes?|hours?)\b
    |\d[\d.,]*[ ]times[ ](?:as|faster|slower|the)\b
    |\d\.\d|±\s?\d|\d\s?±""",
    re.VERBOSE,
)
# and so has a cell of a table that is nothing but a number, unless it names its line;
CELL = re.compile(r"(?<=\|)\s*[\d.,]+\s*(?=\|)")
# but not code, nor the value of a parameter.
NOT_MEASURED = re.compile(r"```.*?```|`[^`\n]*`|(?<!\w)[Cdγε] = [\d.,/]+", re.DOTALL)
# Defaults, versions and rules of the code.
ALLOWED = (
    "Python 3.11",
    # docs: when vectors are doubled, what a gap means, the default of `tol`.
    "lowers the objective by more than 1 %",
    "at 0.001 the model's objective is within 0.1 % of the best",
    "(0.001, and 0.01 for",
    # docs: a section of a paper.
    "Section 3.4 writes",
    # docs: when cells are taken, how well the bound is found, when a search ends.
    "at most 95 % of the span's errors",
    "Up to 102 % they are taken",
    "at most 95 % of the errors that they made before",
    "the best p is found to 1 %",
    "(1 % of the objective for 0.1 %)",
    "two steps gain less than 1 %",
    # docs: what is proved of the ball of a stream.
    "(1 + √2)/2 times the smallest radius",
    "1.22 + O(ε) by Chan and Pathak",
    # docs: rules of regression and of one class, and the grids of searches.
    "Near 100 % the machine is that",
    "(19 for 0.95)",
    "falls by less than 2 % for a doubling",
    "(squared losses: 1 %, and 4,096)",
    "beats by 1 % of the loss",
    "between 0.01 and 0.5 standard deviations",
    "stands for 0.01 to 100,000",
    "goes from 0.01 to 1000 standard deviations",
)


def _by_hand(page):
    """What looks like a measured figure outside blocks, with the words around it."""
    text = NOT_MEASURED.sub("", command.BLOCK.sub("", page))
    text = re.sub(r"[ \n]+(?!\|)", " ", text)
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    rows = [line[line.index("|", 1) :] for line in text.split("\n") if line.startswith("|")]
    found = [(FIGURE, text), *((CELL, row) for row in rows)]
    return [
        where[max(0, each.start() - 30) : each.end() + 20]
        for kind, where in found
        for each in kind.finditer(where)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_figure_is_written_by_hand(page):
    assert _by_hand(page.read_text()) == [], "make it a block, or say it in words"


@pytest.mark.parametrize(
    "text",
    [
        "cells get 89.2 % of the rows right",
        "it takes 27 s",
        "in 1.5 s",
        "with 220 MB beside the data",
        "is 5 times as fast",
        "rises by half, from 6 to 12.6",
        "66 ± 3",
        "| data | fit |\n|---|---:|\n| MNIST | 70,500 |",
        "loses 3 points on MNIST",
    ],
)
def test_a_figure_by_hand_is_found(text):
    assert len(_by_hand(text)) == 1
    assert _by_hand(f"<!-- figures: any -->\n{text}\n<!-- end of figures -->") == []


@pytest.mark.parametrize(
    "text",
    [
        '- `memory="1GB"`: a budget, and `overlap=0.3`',
        "cells of 300 rows, at most 4,096 vectors, γ = 1/β, C = 0.5",
        "| sharpness | criterion |\n|---|---|\n| 0 | the mean distance |",
        "```python\nMarginClassifier(tol=0.01)\n```",
    ],
)
def test_a_default_or_a_size_is_no_figure(text):
    assert _by_hand(text) == []


def test_every_phrase_that_is_allowed_is_on_a_page():
    text = " ".join(re.sub(r"`[^`\n]*`|\s+", " ", page.read_text()) for page in PAGES)
    text = re.sub(r" +", " ", text)
    assert [phrase for phrase in ALLOWED if phrase not in text] == []


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
