"""The package: what an import costs, and its public names."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import widemargin

SOURCES = Path(widemargin.__file__).parent


def _python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_leaves_heavy_packages_alone():
    heavy = {"numba", "llvmlite", "matplotlib", "dask", "pandas", "torch", "onnx"}
    code = (
        "import sys, sklearn.base; before = set(sys.modules); import widemargin; "
        "print(*(set(sys.modules) - before))"
    )
    loaded = set(_python(code).split())
    assert "widemargin.base.classifier" in loaded
    assert not heavy & loaded


def test_exports_are_there_without_an_import_and_import_onnx_only_when_it_is_used():
    code = (
        "import sys, widemargin; assert 'widemargin.export' not in sys.modules; "
        "widemargin.export.c; print('onnx' in sys.modules)"
    )
    assert _python(code).strip() == "False"


def test_a_name_that_the_package_does_not_have_is_an_error():
    with pytest.raises(AttributeError, match="'widemargin' has no attribute 'exports'"):
        widemargin.exports  # noqa: B018


def test_the_import_is_cheap_beyond_scikit_learn():
    code = (
        "from time import process_time; import sklearn.base, sklearn.utils.multiclass; "
        "begun = process_time(); import widemargin; print(process_time() - begun)"
    )
    assert min(float(_python(code)) for _ in range(2)) < 1.5


def test_the_public_names_exist_and_are_sorted():
    assert widemargin.__all__ == sorted(widemargin.__all__)
    assert {"CoreVectorClassifier", "BallVectorClassifier"} <= set(widemargin.__all__)
    for name in widemargin.__all__:
        assert inspect.getdoc(getattr(widemargin, name))
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", widemargin.__version__)


def test_every_module_has_a_docstring_and_the_names_it_lists():
    found = [m.name for m in pkgutil.walk_packages(widemargin.__path__, "widemargin.")]
    assert "widemargin.base.classifier" in found
    for name in found:
        module = importlib.import_module(name)
        assert module.__doc__, name
        for public in getattr(module, "__all__", ()):
            assert hasattr(module, public), f"{name}.{public}"


def test_no_private_module_of_scikit_learn_is_imported():
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 10
    private = re.compile(r"(from|import) sklearn\.(\w+\.)*_\w+")
    assert private.search("from sklearn.utils._param_validation import Interval")
    guilty = [str(file) for file in files if private.search(file.read_text(encoding="utf-8"))]
    assert guilty == []


def test_the_package_is_marked_as_typed():
    assert (SOURCES / "py.typed").is_file()
