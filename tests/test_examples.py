"""Examples of the gallery: those that take a moment run, and all have what the site needs."""

import ast
import re
import runpy
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
# A second or two each. `make docs` runs all of them.
FAST = [
    "first_steps/plot_01_thirty_seconds",
    "parameters/plot_01_c",
    "parameters/plot_03_kernels",
    "parameters/plot_05_where_vectors_lie",
    "classifiers/plot_03_cells",
    "classifiers/plot_04_core_set",
    "numbers_and_outliers/plot_01_regression",
    "numbers_and_outliers/plot_02_quantiles",
    "numbers_and_outliers/plot_04_enclosing_ball",
    "numbers_and_outliers/plot_05_stream",
    "projections/plot_05_confused_classes",
    "small_models/plot_04_onnx",
]


@pytest.mark.parametrize("name", FAST)
def test_a_fast_example_runs_and_draws(name, monkeypatch, capsys):
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    try:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
        assert plt.get_fignums()
    finally:
        plt.close("all")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_has_a_title_some_words_and_a_picture(file):
    text = file.read_text(encoding="utf-8")
    title, line, _, *words = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert set(line) == {"="} and len(line) >= len(title) and words
    assert text.rstrip().endswith("plt.show()")
    assert "fetch_" not in text, "data of scikit-learn or generated, without a network"


def test_the_gallery_has_two_dozen_examples_in_sections_that_the_site_knows():
    assert len(EXAMPLES) >= 24
    listed = re.findall(r'"\.\./examples/(\w+)"', (ROOT / "docs" / "conf.py").read_text())
    assert sorted(listed) == sorted({file.parent.name for file in EXAMPLES})
    for section in listed:
        assert (ROOT / "examples" / section / "GALLERY_HEADER.rst").exists()
