"""What the command line says: notes and bars on standard error, results on standard output.

With ``--json`` the result is one JSON object on standard output, with all notes in it.
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

__all__ = ["Voice", "amount_of", "plain"]

# Characters that would steer a terminal; texts of data may hold any.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def amount_of(n_bytes: float) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> amount_of(1_234_567)
    '1.2 MB'
    """
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: NumPy's scalars become Python's, NaN becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


class Voice:
    """Says what is done.

    Parameters
    ----------
    json : bool, default=False
        Whether the result is to be JSON, and nothing else is said.
    quiet : bool, default=False
        Whether notes and bars are left out.
    """

    def __init__(self, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.silent = quiet or json
        self.notes: list[str] = []
        # Standard error may be replaced after this module was imported.
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Say something by the way."""
        self.notes.append(text)
        if not self.silent:
            self._console.print(escape(_CONTROL.sub("?", text)))

    def refuse(self, message: str, code: int) -> None:
        """Say what went wrong."""
        self._console.print(
            f"[bold red]widemargin:[/bold red] {escape(_CONTROL.sub('?', message))}"
        )
        if self.json:
            print(json.dumps({"error": message, "exit_code": int(code), "notes": self.notes}))

    def result(self, facts: dict[str, Any], lines: list[str]) -> None:
        """Print what was found: `facts` as JSON, or `lines`."""
        if self.json:
            print(json.dumps(plain(facts | {"notes": self.notes}), ensure_ascii=False))
        else:
            print("\n".join(_CONTROL.sub("?", line) for line in lines))
        sys.stdout.flush()

    @contextmanager
    def counting(self, label: str, total: int | None = None) -> Iterator[Any]:
        """Yield a function that takes how many rows more are done."""
        if self.silent or not self._console.is_terminal:
            # Some versions of rich end a bar that was never shown with an empty line.
            yield lambda rows: None
            return
        columns = [SpinnerColumn(), TextColumn("{task.description}")]
        columns += [BarColumn()] if total else []
        columns += [TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn()]
        with self._progress(*columns) as progress:
            task = progress.add_task(escape(label), total=total)
            yield lambda rows: progress.advance(task, rows)

    @contextmanager
    def fitting(self, estimator: Any) -> Iterator[None]:
        """Show the steps of a fit, which the estimator prints while `verbose` is 1."""
        if self.silent or not self._console.is_terminal or not hasattr(estimator, "verbose"):
            yield
            return
        verbose, estimator.verbose = estimator.verbose, 1
        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"))
        try:
            with self._progress(*columns, TimeElapsedColumn()) as progress:
                steps = _Steps(progress, getattr(estimator, "tol", 1e-3))
                with redirect_stdout(steps):
                    yield
        finally:
            estimator.verbose = verbose

    def _progress(self, *columns: Any) -> Progress:
        return Progress(
            *columns,
            console=self._console,
            transient=True,
            redirect_stdout=False,
        )


class _Steps(io.TextIOBase):
    """Takes the lines that a fit prints, and shows the last one beside a bar of the gap.

    Parameters
    ----------
    progress : Progress
        Where it is shown.
    tol : float
        The gap at which the fit ends. The bar goes by the logarithm of the gap.
    """

    def __init__(self, progress: Progress, tol: float) -> None:
        self.progress = progress
        self.tol = max(float(tol), 1e-12)
        self.task = progress.add_task("fitting", total=1.0)
        self.first: float | None = None

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Show a line."""
        said = text.strip()
        if said:
            said = re.sub(r"^\[\w+\] ", "", said)
            found = re.search(r"gap ([0-9.e+-]+)", said)
            if found:
                gap = max(float(found[1]), self.tol)
                self.first = max(gap, 10 * self.tol) if self.first is None else self.first
                done = math.log(self.first / gap) / math.log(self.first / self.tol)
                self.progress.update(self.task, completed=min(max(done, 0.0), 1.0))
            self.progress.update(self.task, description=escape(said[:110]))
        return len(text)
