"""Which code a measurement has run, so that a page can say when its figures are older than that.

A measurement notes the modules that its estimator is made of, those that its module imports and so
on, or all that it has loaded where there is no such estimator, and a hash of what is in them: their
code, so that another comment or docstring changes nothing. A figure is *older than the code* once
one of these modules is another, or gone.
"""

from __future__ import annotations

import ast
import hashlib
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from benchmarks.harness.records import Record

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "widemargin"
# The hash of no module, that of a peer.
NOTHING = hashlib.sha256().hexdigest()[:16]


def modules_loaded() -> list[str]:
    """The modules of the package that this process has imported."""
    return sorted(name for name in sys.modules if name.split(".")[0] == PACKAGE)


def modules_behind(estimator: str, root: Path = ROOT) -> list[str]:
    """The modules that an estimator of the package is made of; all that are loaded for others."""
    package, _, name = estimator.rpartition(".")
    if package != PACKAGE:
        return modules_loaded()
    found: set[str] = set()
    waiting = [str(getattr(import_module(PACKAGE), name).__module__)]
    while waiting:
        module = waiting.pop()
        path = file_of(module, root)
        if module not in found and path is not None:
            found.add(module)
            waiting += _imports(path)
    return sorted(found)


@cache
def _imports(path: Path) -> list[str]:
    """Modules of the package that a file names: in imports, and as loops that are compiled."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            found += [f"{node.module}", *(f"{node.module}.{each.name}" for each in node.names)]
        if isinstance(node, ast.Constant) and str(node.value).startswith(f"{PACKAGE}."):
            found.append(str(node.value))
    return found


def file_of(module: str, root: Path = ROOT) -> Path | None:
    """The file of a module in the clone, None if there is none."""
    path = root / "src" / Path(*module.split("."))
    found = [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()]
    return found[0] if found else None


@cache
def _code(path: Path) -> bytes:
    """The lines of a file without comments, docstrings and blank lines.

    Not its syntax tree, whose text is another in every version of Python.
    """
    text = path.read_text()
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1):
                lines[number - 1] = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip()).encode()


def hash_of(modules: Iterable[str], root: Path = ROOT) -> str | None:
    """The hash of modules as they are now; None if one is gone."""
    found = hashlib.sha256()
    for module in sorted(modules):
        path = file_of(module, root)
        if path is None:
            return None
        found.update(module.encode() + _code(path))
    return found.hexdigest()[:16]


def commit() -> str:
    """The commit of the clone, with a plus if files differ from it; "" where git does not know."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=10"],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip()


def is_old(record: Record, sources: Mapping[str, list[str]], root: Path = ROOT) -> bool:
    """Whether a record is older than the code; one that does not say what it ran is.

    ``sources`` has the modules behind each hash.
    """
    source = record.get("source")
    if source is None:
        # Before hashes were kept: a peer's figure is as good as ever.
        return str(record.get("estimator", PACKAGE)).startswith((PACKAGE, "benchmarks"))
    return source != NOTHING and hash_of(sources.get(source, [""]), root) != source


def age(records: Iterable[Record], sources: Mapping[str, list[str]], root: Path = ROOT) -> str:
    """A sentence on how many records are older than the code, "" if none is."""
    records = list(records)
    old = sum(is_old(record, sources, root) for record in records)
    if not old:
        return ""
    some = "All" if old == len(records) else "Some"
    return f"{some} of its figures are older than the code that they measure."
