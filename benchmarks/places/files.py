"""Generated rows on disk, and arrays on disk as Dask collections.

The folder is that of ``$WIDEMARGIN_SCRATCH``, which the command sets: a record names no path of the
machine it was measured on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.places.generator import BLOCK_ROWS, COLUMNS, TEST, TRAIN, blocks

SCRATCH = "WIDEMARGIN_SCRATCH"
TEST_ROWS = 200_000
LABEL = "label"


def scratch() -> Path:
    return Path(os.environ.get(SCRATCH) or tempfile.gettempdir())


def once(path: Path, write: Callable[[Path], None]) -> Path:
    """The path, after writing it where nobody has; a file that is half written has another name."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f"{os.getpid()}_{path.name}")
        write(half)
        half.replace(path)
    return path


# ---------------------------------------------------------------- .npy


def npy(part: int, rows: int) -> tuple[Path, Path]:
    """Files of so many rows and of their labels."""
    stem = f"{'train' if part == TRAIN else 'test'}_{rows}"
    paths = scratch() / f"{stem}_X.npy", scratch() / f"{stem}_y.npy"
    if not all(path.exists() for path in paths):
        halves = [path.with_name(f"{os.getpid()}_{path.name}") for path in paths]
        write_npy(part, rows, *halves)
        for half, path in zip(halves, paths, strict=True):
            half.replace(path)
    return paths


def write_npy(part: int, rows: int, X_path: Path, y_path: Path) -> None:
    """Block after block: no more than one is in memory."""
    X_path.parent.mkdir(parents=True, exist_ok=True)
    shape = (rows, len(COLUMNS))
    X = np.lib.format.open_memmap(X_path, mode="w+", dtype=np.float32, shape=shape)
    y = np.lib.format.open_memmap(y_path, mode="w+", dtype=np.int8, shape=(rows,))
    for number, (some, labels) in enumerate(blocks(part, rows)):
        first = number * BLOCK_ROWS
        X[first : first + len(some)] = some
        y[first : first + len(some)] = labels
    X.flush()
    y.flush()


def mapped(part: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows as a memory map, and their labels in memory."""
    X, y = npy(part, rows)
    return np.load(X, mmap_mode="r"), np.load(y)


def test_rows(rows: int = TEST_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Rows that no training row has the seed of, in memory."""
    X, y = npy(TEST, rows)
    return np.load(X), np.load(y)


def saved(name: str, array: np.ndarray) -> Path:
    """A file of an array of a real set; a name stands for one array."""

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, array)

    return once(scratch() / f"{name}.npy", write)


# ---------------------------------------------------------------- Parquet


def parquet(part: int, rows: int) -> Path:
    """A file with a row group for each block, the labels its last column."""
    stem = f"{'train' if part == TRAIN else 'test'}_{rows}"
    return once(scratch() / f"{stem}.parquet", lambda path: write_parquet(part, rows, path))


def write_parquet(part: int, rows: int, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    names = [*COLUMNS, LABEL]
    types = [pyarrow.float32()] * len(COLUMNS) + [pyarrow.int8()]
    schema = pyarrow.schema(list(zip(names, types, strict=True)))
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for X, y in blocks(part, rows):
            columns = [pyarrow.array(column) for column in (*X.T.copy(), y)]
            writer.write_table(pyarrow.table(columns, schema=schema))


# ---------------------------------------------------------------- Dask collections


def edges_of(rows: int, chunks: int) -> np.ndarray:
    """Where chunks of about one size begin and end."""
    return np.linspace(0, rows, chunks + 1).astype(int)


def read_rows(path: str, first: int, last: int) -> np.ndarray:
    """Some rows of a file, as a worker reads them."""
    return np.array(np.load(path, mmap_mode="r")[first:last])


def dask_array(path: Path, chunks: int) -> Any:
    """The array of a file; each chunk is read where it is needed.

    Not ``from_array``: a memory map that travels to another process travels with all its rows.
    """
    import dask
    import dask.array

    like = np.load(path, mmap_mode="r")
    edges = edges_of(len(like), chunks)
    read = dask.delayed(read_rows, pure=True)
    parts = [
        dask.array.from_delayed(
            read(str(path), int(first), int(last)),
            shape=(int(last - first), *like.shape[1:]),
            dtype=like.dtype,
        )
        for first, last in pairwise(edges)
    ]
    return dask.array.concatenate(parts)


def dask_frame(path: Path) -> tuple[Any, Any]:
    """Rows and labels of a Parquet file as columns of a Dask data frame."""
    import dask.dataframe

    frame = dask.dataframe.read_parquet(path, split_row_groups=True)
    return frame[list(COLUMNS)], frame[LABEL]
