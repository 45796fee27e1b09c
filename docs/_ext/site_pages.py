"""Pages of the site that are files elsewhere: results of benchmarks, the changelog, the guide.

Pages in ``docs/`` are read on their own too, with links to files of the clone. Here these links are
turned to the pages of the site. ``python docs/_ext/site_pages.py`` only copies the results.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
RESULTS = DOCS / "results"

# From links in the clone to pages of the site, seen from docs/.
LINKS = {
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../ROADMAP.md": "roadmap.md",
    "../README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "docs/": "",
}


def copy_results() -> list[str]:
    """Copy the pages and pictures of benchmarks' results, and return the names of the pages."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    names = []
    for page in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        if page.stem.endswith("_quick"):
            continue
        text = page.read_text(encoding="utf-8")
        (RESULTS / page.name).write_text(_without_dead_links(text), encoding="utf-8")
        names.append(page.stem)
    for picture in (ROOT / "benchmarks" / "results").glob("*.png"):
        shutil.copy(picture, RESULTS / picture.name)
    listed = "\n".join(names)
    head = (
        "# Benchmarks\n\nEach page is written by a command, `python -m benchmarks NAME`, from the "
        "JSON file of the same name: no figure on it is typed by hand.\n\n"
    )
    toc = f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    (RESULTS / "index.md").write_text(head + toc, encoding="utf-8")
    return names


def _without_dead_links(text: str) -> str:
    """Return a page without links to JSON files, which are not part of the site."""
    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+\.json)\)", r"`\1`", text)


def turned(text: str) -> str:
    """Return the text of a page with links that lead to pages of the site."""
    text = re.sub(r"\]\((?:\.\./)?benchmarks/results/([\w-]+)\.md", r"](results/\1.md", text)
    elsewhere = r"\[([^\]]+)\]\((?:\.\./)?(?:examples|src|tests|benchmarks)/[^)]*\)"
    text = re.sub(elsewhere, r"`\1`", text)
    for old, new in LINKS.items():
        text = text.replace(f"]({old}", f"]({new}")
    return text


def _read(app: Any, name: str, source: list[str]) -> None:
    if "/" not in name:
        source[0] = turned(source[0])


def _included(app: Any, path: Path, parent: str, source: list[str]) -> None:
    source[0] = turned(source[0])


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of it."""
    copy_results()
    app.connect("source-read", _read)
    app.connect("include-read", _included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    print("\n".join(copy_results()))
