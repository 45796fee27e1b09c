"""The site: links of the clone lead to its pages, and results of benchmarks become pages."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pages = runpy.run_path(str(ROOT / "docs" / "_ext" / "site_pages.py"))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[cells](../benchmarks/results/cells.md)", "[cells](results/cells.md)"),
        ("[cells](benchmarks/results/cells.md)", "[cells](results/cells.md)"),
        ("[a script](../examples/cluster.py)", "`a script`"),
        ("[how](docs/architecture.md)", "[how](architecture.md)"),
        ("[changes](CHANGELOG.md)", "[changes](changelog.md)"),
        ("[elsewhere](https://scikit-learn.org)", "[elsewhere](https://scikit-learn.org)"),
    ],
)
def test_a_link_of_the_clone_leads_to_a_page_of_the_site(written, read):
    assert pages["turned"](written) == read


def test_results_become_pages_without_links_to_what_is_not_there(tmp_path, monkeypatch):
    copy = pages["copy_results"]
    monkeypatch.setitem(copy.__globals__, "RESULTS", tmp_path / "results")
    names = copy()
    assert {"cells", "peers", "papers"} <= set(names)
    for name in names:
        assert ".json)" not in (tmp_path / "results" / f"{name}.md").read_text(encoding="utf-8")
    listed = (tmp_path / "results" / "index.md").read_text(encoding="utf-8")
    assert all(f"\n{name}\n" in listed for name in names)


def test_formulas_of_all_pages_can_be_drawn():
    latex2mathml = pytest.importorskip("docutils.utils.math.latex2mathml")
    found = 0
    for page in (ROOT / "docs").glob("*.md"):
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.DOTALL):
            assert "<math" in latex2mathml.tex2mathml((block or inline).strip())
            found += 1
    assert found > 20


def test_shapes_in_docstrings_are_no_links():
    # Sphinx takes a word with an underscore at its end for the name of a link.
    for path in (ROOT / "src").rglob("*.py"):
        found = re.findall(r"of shape \([^)]*[a-z]_[,)]", path.read_text(encoding="utf-8"))
        assert not found, (path, found)
