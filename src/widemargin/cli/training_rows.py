"""From a file to the arrays of a fit: rows, targets and weights, in memory or block by block.

A table that fits into memory is read whole. A larger one is read twice, in blocks: first to check
it, to count, and to draw a sample of rows, from which medians, means and categories are taken; then
to write the prepared rows into a temporary ``.npy`` file, which the estimators map and scan.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin.cli.column_kinds import Kinds, as_kinds, find_kinds, numeric_column
from widemargin.cli.matrix_files import Matrix
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.table_files import BLOCK_ROWS, Table
from widemargin.cli.voice import Voice, amount_of

__all__ = ["Columns", "Part", "TableRows", "matrix_parts", "read_table"]

# A table is read whole if it takes up to this share of the memory for a fit.
_WHOLE_SHARE = 0.5
# Rows of the sample of a table that is not.
_SAMPLE_ROWS = 20_000
# Rows of a mapped file that are checked at a time.
_CHECKED_ROWS = 10_000


@dataclass(frozen=True)
class Columns:
    """Which columns are what, as the user says.

    Attributes
    ----------
    target, weights : str or None
        The columns of the targets and of the weights.
    ignored, categories : tuple of str
        Columns that are left out, and columns whose values are names.
    """

    target: str | None = None
    weights: str | None = None
    ignored: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    def check(self, table: Table) -> None:
        """Refuse names that the table does not have."""
        asked = {
            "--target": [self.target],
            "--weights": [self.weights],
            "--ignore": self.ignored,
            "--categories": self.categories,
        }
        for option, names in asked.items():
            for name in names:
                if name is not None and name not in table.columns:
                    raise Refusal(no_column(table, f"{option} {name}", name), ExitCode.DATA)


def no_column(table: Table, asked: str, name: str) -> str:
    """Return a sentence about a column that is not there, with those that are."""
    near = [each for each in table.columns if each.strip().lower() == name.strip().lower()]
    meant = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(repr(each) for each in table.columns[:12])
    more = f" and {len(table.columns) - 12} more" if len(table.columns) > 12 else ""
    return f"{asked}: {table.path} has no column {name!r}.{meant} There are {listed}{more}."


@dataclass(frozen=True)
class Part:
    """Rows for a fit or for a test, as numbers.

    Attributes
    ----------
    X : ndarray, memmap or CSR matrix
        Rows.
    y, weight : ndarray or None
        Targets and weights.
    """

    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class TableRows:
    """A table that was read and found to be good.

    Attributes
    ----------
    table : Table
        The file.
    kinds : Kinds
        Its columns.
    frame : DataFrame
        All rows, or a sample of them, by their number in the file.
    whole : bool
        Whether these are all.
    y : Series or None
        Targets of all rows that have one, by the number of the row.
    weight : Series or None
        Weights of all rows.
    n_rows : int
        Rows of the file.
    """

    table: Table
    kinds: Kinds
    frame: pd.DataFrame
    whole: bool
    y: pd.Series | None
    weight: pd.Series | None
    n_rows: int

    @property
    def labelled(self) -> NDArray[np.int64]:
        """Numbers of the rows that can be used: those with a target, if there is one."""
        return np.arange(self.n_rows) if self.y is None else self.y.index.to_numpy()

    def sampled(self, rows: NDArray[np.int64]) -> pd.DataFrame:
        """Return those of the rows, by number, that are at hand, to prepare columns by."""
        return self.frame.loc[self.frame.index.intersection(rows)]

    def part(
        self, rows: NDArray[np.int64], y: Any, prepare: Any, folder: Path, voice: Voice
    ) -> Part:
        """Return rows by their numbers, prepared; a large number of them in a file of `folder`."""
        weight = None if self.weight is None else self.weight.loc[rows].to_numpy()
        if self.whole:
            return Part(prepare.transform(self.frame.loc[rows]), y, weight)
        return Part(self._mapped(rows, prepare, folder, voice), y, weight)

    def _mapped(self, rows: NDArray[np.int64], prepare: Any, folder: Path, voice: Voice) -> Any:
        width = prepare.transform(self.frame[:1]).shape[1]
        needed, free = 4 * len(rows) * width, shutil.disk_usage(folder).free
        if needed > 0.9 * free:
            raise Refusal(
                f"{self.table.path}: prepared rows take {amount_of(needed)} on disk, but "
                f"{amount_of(free)} are free in {folder}; set TMPDIR to another folder.",
                ExitCode.LIMIT,
            )
        voice.note(f"Prepared rows are written to a temporary file of {amount_of(needed)}.")
        path = folder / f"rows-{len(list(folder.iterdir()))}.npy"
        out = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=(len(rows), width))
        wanted = np.zeros(self.n_rows, dtype=bool)
        wanted[rows] = True
        filled = 0
        with voice.counting("preparing", self.n_rows) as count:
            for frame in self.table.blocks(self.kinds.categories):
                here = frame[wanted[frame.index.to_numpy()]]
                if len(here):
                    found = prepare.transform(as_kinds(self.table, here, self.kinds))
                    out[filled : filled + len(here)] = found
                    filled += len(here)
                count(len(frame))
        out.flush()
        return np.load(path, mmap_mode="r")


def read_table(table: Table, columns: Columns, memory: int, seed: int, voice: Voice) -> TableRows:
    """Read a table, whole or in blocks, and check all of it."""
    columns.check(table)
    whole = table.size <= _WHOLE_SHARE * memory
    if not whole:
        voice.note(
            f"{table.path.name} takes about {amount_of(table.size)} in memory, of "
            f"{amount_of(memory)} for the fit: it is read in blocks. Medians, means and categories "
            f"are those of a sample of {_SAMPLE_ROWS:,} rows."
        )
    apart = [name for name in (columns.target, columns.weights, *columns.ignored) if name]
    kinds: Kinds | None = None
    kept, targets, weights, n_rows = _Kept(whole, seed), [], [], 0
    with voice.counting(f"reading {table.path.name}") as count:
        if whole:
            blocks: Any = [_concatenated(table, columns.categories, count)]
        else:
            blocks = table.blocks(columns.categories)
        for frame in blocks:
            if kinds is None:
                kinds = find_kinds(table, frame, apart, columns.categories, whole)
            kept.take(as_kinds(table, frame, kinds))
            targets += [frame[columns.target]] if columns.target else []
            weights += [_weights(table, columns.weights, frame)] if columns.weights else []
            n_rows += len(frame)
            count(0 if whole else len(frame))
    if kinds is None or not n_rows:
        raise Refusal(f"{table.path} has names of columns, but no rows.", ExitCode.DATA)
    if not kinds.used:
        why = "; ".join(f"{name}: {reason}" for name, reason in kinds.left_out.items())
        raise Refusal(
            f"{table.path} has no column to learn from{': ' + why if why else ''}.", ExitCode.DATA
        )
    y = _targets(table, columns.target, targets, voice) if columns.target else None
    weight = pd.concat(weights) if weights else None
    return TableRows(table, kinds, kept.frame(), whole, y, weight, n_rows)


def _concatenated(table: Table, texts: Sequence[str], count: Any) -> pd.DataFrame:
    """Return all rows of a table."""
    # In one block types are found from all values, as a reader of the file would.
    found = []
    for frame in table.blocks(texts, rows=1 << 62 if table.size < 1 << 27 else BLOCK_ROWS):
        found.append(frame)
        count(len(frame))
    if not found:
        return pd.DataFrame({name: [] for name in table.columns})
    return pd.concat(found) if len(found) > 1 else found[0]


class _Kept:
    """All blocks, or a random sample of their rows."""

    def __init__(self, whole: bool, seed: int) -> None:
        self.whole = whole
        self.random = np.random.default_rng(seed)
        self.frames: list[pd.DataFrame] = []
        self.keys = np.empty(0)

    def take(self, frame: pd.DataFrame) -> None:
        """Keep rows of a block: those with the smallest of random keys."""
        self.frames.append(frame)
        if self.whole:
            return
        self.keys = np.concatenate([self.keys, self.random.random(len(frame))])
        if len(self.keys) > _SAMPLE_ROWS:
            best = np.sort(np.argpartition(self.keys, _SAMPLE_ROWS)[:_SAMPLE_ROWS])
            self.frames, self.keys = [self.frame().iloc[best]], self.keys[best]

    def frame(self) -> pd.DataFrame:
        """Return what was kept."""
        return pd.concat(self.frames) if len(self.frames) > 1 else self.frames[0]


def _weights(table: Table, name: str, frame: pd.DataFrame) -> pd.Series:
    found = numeric_column(table, name, frame[name])
    bad = found.isna() | (found < 0)
    if bad.any():
        row = bad.idxmax()
        raise Refusal(
            f"{table.path}, {table.where(int(row))}, column {name!r}: {found[row]} is not a "
            "weight; give numbers of at least 0.",
            ExitCode.DATA,
        )
    return found


def _targets(table: Table, name: str, parts: list[pd.Series], voice: Voice) -> pd.Series:
    """Return the targets that are there, and say how many are not."""
    y = pd.concat(parts)
    missing = int(y.isna().sum())
    if missing == len(y):
        raise Refusal(
            f"{table.path}: the target {name!r} is missing in all {len(y):,} rows.", ExitCode.DATA
        )
    if missing:
        voice.note(f"{missing:,} of {len(y):,} rows have no {name!r} and are left out.")
    return y.dropna()


def matrix_parts(matrix: Matrix, scale: bool, memory: int) -> Any:
    """Return what rows of numbers need before the machine, not fitted; None if nothing."""
    X = matrix.X
    if sparse.issparse(X):
        row = _first_bad(X.data, np.isfinite)
        if row is not None:
            row = int(np.searchsorted(X.indptr, row, side="right")) - 1
            raise Refusal(
                f"{matrix.path}, {matrix.where(row)}: a value is not a finite number.",
                ExitCode.DATA,
            )
        return make_pipeline(StandardScaler(with_mean=False)) if scale else None
    missing = False
    for first in range(0, len(X), _CHECKED_ROWS):
        block = np.asarray(X[first : first + _CHECKED_ROWS])
        bad = np.isinf(block) if block.dtype.kind == "f" else np.zeros(1, dtype=bool)
        if bad.any():
            row, column = divmod(int(bad.argmax()), block.shape[1])
            raise Refusal(
                f"{matrix.path}, {matrix.where(first + row)}, column {column}: "
                f"{block[row, column]} is not a finite number.",
                ExitCode.DATA,
            )
        missing = missing or (block.dtype.kind == "f" and bool(np.isnan(block).any()))
    large = isinstance(X, np.memmap) and X.nbytes > _WHOLE_SHARE * memory
    if large and (missing or scale):
        raise Refusal(
            f"{matrix.path} is too large for --memory to be "
            f"{'scaled' if scale else 'filled where values are missing'}; do that before, or give "
            "the rows as Parquet.",
            ExitCode.LIMIT,
        )
    steps: list[Any] = [SimpleImputer(strategy="median", add_indicator=True)] if missing else []
    steps += [StandardScaler()] if scale else []
    return make_pipeline(*steps) if steps else None


def _first_bad(values: NDArray[Any], good: Any) -> int | None:
    bad = ~good(values)
    return int(bad.argmax()) if bad.any() else None
