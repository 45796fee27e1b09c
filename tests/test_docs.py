"""Pages of the documentation name files, folders and functions that exist."""

import re
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

# Pages speak of files as seen from the package, from the clone, or from one of these folders.
FOLDERS = (PACKAGE, ROOT, ROOT / "tests" / "reference", ROOT / "benchmarks" / "harness")
# Files that each benchmark may have, and one that nobody should.
GENERAL = {"command.py", "plan.py", "tables.py", "targets.py", "papers.py", "utils.py"}


def _missing(text):
    named = set(re.findall(r"`((?:[\w.]+/)*\w+\.py|(?:\w+/)+)`", text))
    missing = []
    for name in named - GENERAL:
        if "NAME" not in name and not any((folder / name).exists() for folder in FOLDERS):
            missing.append(name)
    return sorted(missing)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_files_that_exist(page):
    assert _missing(page.read_text(encoding="utf-8")) == []


def test_a_file_that_does_not_exist_is_found():
    assert _missing("in `qp/margin.py`, `attic/` or `loop.py`, `svm/`") == [
        "attic/",
        "qp/margin.py",
    ]


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_walk_of_a_fit_names_functions_of_the_files():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`:", page, flags=re.MULTILINE)
    assert len(steps) >= 7
    for file, function in steps:
        source = (PACKAGE / file).read_text(encoding="utf-8")
        assert f"def {function.split('.')[-1]}(" in source, f"{file}: {function}"


def test_every_room_has_a_line_in_the_architecture():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for each in sorted(PACKAGE.iterdir()):
        if each.suffix == ".py" and not each.name.startswith("_"):
            assert f"| `{each.name}` |" in page
        elif (each / "__init__.py").exists():
            assert f"| `{each.name}/` |" in page
