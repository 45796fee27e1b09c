"""Which reader a file needs, by its ending."""

from __future__ import annotations

from pathlib import Path

from widemargin.cli.matrix_files import Matrix, read_npy, read_npz, read_svmlight
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.table_files import (
    CSVTable,
    ParquetTable,
    ReadOptions,
    Table,
    check_there,
)
from widemargin.cli.voice import Voice

__all__ = ["open_source"]

_CSV = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")


def open_source(
    path: Path,
    voice: Voice,
    *,
    options: ReadOptions,
    memory: int,
    target: str | None = None,
    usual: str | None = None,
    n_features: int | None = None,
) -> Table | Matrix:
    """Return a file of data, opened.

    Parameters
    ----------
    path : Path
        The file.
    voice : Voice
        Says how it is read, where that is not plain.
    options : ReadOptions
        How a table is read.
    memory : int
        Bytes that may be used.
    target : str, default=None
        Which array of a file without names of columns has the labels.
    usual : str, default=None
        Which one it was at the fit, to be used if it is there.
    n_features : int, default=None
        How many features a model has, for formats that leave out zeros.
    """
    check_there(path)
    endings = [suffix.lower() for suffix in path.suffixes]
    last = endings[-1] if endings else ""
    kind = endings[-2] if last == ".gz" and len(endings) > 1 else last
    if kind in _CSV:
        table = CSVTable(path, options)
        if options.delimiter is None and table.delimiter != ",":
            voice.note(f"{path.name}: fields are separated by {table.delimiter!r}.")
        return table
    if last in _PARQUET:
        return ParquetTable(path)
    if kind in _SVMLIGHT:
        return read_svmlight(path, n_features, memory)
    if last == ".npy":
        return read_npy(path, target)
    if last == ".npz":
        return read_npz(path, target, usual)
    known = ", ".join((*_CSV, *_PARQUET, *_SVMLIGHT, ".npy", ".npz"))
    raise Refusal(
        f"{path}: files that end in {last or 'nothing'!r} are not known; there are {known} (.csv "
        "and .svm also with .gz).",
        ExitCode.FILE,
    )
