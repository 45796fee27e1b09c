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
# Pages that are there when the site is built.
BUILT = {"gallery/index", "results/index"}
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
            # Pictures of the gallery are there when the site is built.
            picture = re.fullmatch(r"gallery/(\w+)/images/sphx_glr_(\w+)_\d+\.png", target)
            path = page.parent / target
            if picture:
                path = ROOT / "examples" / picture[1] / f"{picture[2]}.py"
            assert path.exists(), f"{page.name}: {target}"


def test_pages_of_the_site_name_pages_and_examples_that_exist():
    for page in PAGES:
        for target in re.findall(r"\{doc\}`([^`]+)`", page.read_text(encoding="utf-8")):
            path = ROOT / "docs" / f"{target}.md"
            if target.startswith("gallery/"):
                path = ROOT / "examples" / f"{target.removeprefix('gallery/')}.py"
            if target not in BUILT:
                assert path.exists(), f"{page.name}: {target}"


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in (ROOT / "docs").glob("*.md"):
        for toc in re.findall(
            r"```\{toctree\}(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
        ):
            listed |= {line.strip() for line in toc.splitlines()}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - listed == {"index"}


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


# Pages whose code runs in a moment, as it stands; that of others needs clusters or minutes.
RUNNING = ["README.md", "docs/certificate.md", "docs/travel.md"]


@pytest.mark.parametrize("name", RUNNING)
def test_the_code_of_a_page_runs(name, capsys):
    page = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {})
    assert capsys.readouterr().out
