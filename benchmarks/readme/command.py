"""``python -m benchmarks readme``: write the figures of README.md and docs/ anew, or check them.

A block of figures stands between two comments, ``<!-- figures: NAME -->`` and
``<!-- end of figures -->``. Everything between them is made by the function of that name in
``blocks`` or ``docs_blocks``, from the JSON files in ``benchmarks/results/``. The pages of results
there begin with a paragraph for each run; it is made anew too, for it says whether figures are
older than the code.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.records import Record
from benchmarks.harness.runner import ROOT
from benchmarks.harness.session import RESULTS, facts_of
from benchmarks.readme.blocks import BLOCKS
from benchmarks.readme.docs_blocks import DOCS_BLOCKS
from benchmarks.readme.figures import Figures

PAGE = ROOT / "README.md"
DOCS = ROOT / "docs"
MADE = {**BLOCKS, **DOCS_BLOCKS}
BLOCK = re.compile(
    r"(?P<begin><!-- figures: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end of figures -->)", re.DOTALL
)


def with_figures(page: str, results: Path = RESULTS, to_root: str = "") -> str:
    """The text of a page with all its blocks made anew.

    ``to_root`` leads from the folder of the page to that of README.md.
    """
    figures = Figures(results)

    def made(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in MADE:
            raise KeyError(f"no block of figures is called {name!r}; there are {', '.join(MADE)}")
        block = MADE[name](figures)
        return f"{found['begin']}\n{block}\n\n{figures.told(to_root)}\n\n{found['end']}"

    return BLOCK.sub(made, page)


def with_ages(page: str, document: Record) -> str:
    """The text of a page of results with the paragraphs of its runs made anew."""
    runs = document.get("runs") or {None: document}
    lines = page.split("\n")
    for name, run in runs.items():
        mine = [each for each in document["records"] if name is None or each["run"] == name]
        begin = f"`{run['command']}`, {run['date'][:10]}"
        lines = [facts_of(run, mine) if line.startswith(begin) else line for line in lines]
    return "\n".join(lines)


def pages(results: Path = RESULTS) -> dict[Path, str]:
    """All pages that hold figures, as they should be."""
    made = {PAGE: with_figures(PAGE.read_text(), results)}
    for path in sorted(DOCS.glob("*.md")):
        made[path] = with_figures(path.read_text(), results, "../")
    for path in sorted(results.glob("*.md")):
        document = path.with_suffix(".json")
        if document.exists() and not path.stem.endswith("_quick"):
            made[path] = with_ages(path.read_text(), json.loads(document.read_text()))
    return made


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks readme", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if they differ")
    options = parser.parse_args(argv)
    for path, after in pages().items():
        before = path.read_text()
        if after == before:
            continue
        if options.check:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path.name, "made")
            sys.exit("\n".join(lines))
        path.write_text(after)
        print(f"{path.relative_to(ROOT)} is made anew.")
