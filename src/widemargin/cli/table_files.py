"""Tables with named columns in files: CSV and Parquet, read block by block."""

from __future__ import annotations

import csv
import gzip
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from widemargin.cli.refusal import ExitCode, Refusal

__all__ = ["CSVTable", "ParquetTable", "ReadOptions", "Table", "check_there"]

# Texts that stand for a missing value, beside pandas' own (empty, NA, NaN, null, None, ...).
_MISSING = ("?",)
# Rows of a block, whatever their width, unless told otherwise.
BLOCK_ROWS = 50_000
# Bytes that are looked at to find the delimiter.
_SNIFFED = 1 << 16
_DELIMITERS = ",;\t|"
# How much larger the values of a file are in memory than on disk.
_CSV_GROWTH = 3
_GZIP_GROWTH = 12
_PARQUET_GROWTH = 2


@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read.

    Attributes
    ----------
    delimiter : str or None
        What is between the fields of a CSV file; None finds it out.
    encoding : str
        Of a CSV file.
    header : bool
        Whether the first line of a CSV file has the names of the columns.
    missing : tuple of str
        More texts that stand for a missing value.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    missing: tuple[str, ...] = field(default=())


def check_there(path: Path) -> None:
    """Refuse a file that is not there, cannot be read, or is empty."""
    if path.is_dir():
        raise Refusal(f"{path} is a folder, not a file.", ExitCode.FILE)
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        raise Refusal(f"There is no file {path}.", ExitCode.FILE) from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}.", ExitCode.FILE) from None
    if not first:
        raise Refusal(f"{path} is empty.", ExitCode.FILE)


class Table(ABC):
    """A file with named columns.

    Attributes
    ----------
    path : Path
        The file.
    columns : list of str
        Names of its columns.
    """

    path: Path
    columns: list[str]

    @abstractmethod
    def blocks(self, texts: Sequence[str] = (), rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
        """Yield the rows, some at a time; values of the columns `texts` stay as they are written.

        The index of a block counts the rows of the file.
        """

    @abstractmethod
    def where(self, row: int) -> str:
        """Return where a row is in the file, in words."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes that all rows take in memory, about."""

    def _named(self, names: Sequence[Any]) -> list[str]:
        """Return the names of columns, each a text and there once."""
        columns = [str(name) for name in names]
        repeated = sorted({name for name in columns if columns.count(name) > 1})
        if repeated:
            raise Refusal(
                f"{self.path}: several columns are named {repeated[0]!r}; give each its own name.",
                ExitCode.DATA,
            )
        return columns


class CSVTable(Table):
    """A CSV file, also tab-separated or compressed by gzip.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        How it is read.
    """

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path = path
        self.options = options
        self.delimiter = options.delimiter or self._found_delimiter()
        records = self._records()
        first = next(records, None)
        if first is None or not any(first):
            raise Refusal(f"{path} has no columns: its first line is empty.", ExitCode.FILE)
        second = next(records, [])
        records.close()
        if not options.header:
            self.columns = [f"x{place}" for place in range(len(first))]
            return
        if all(re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", name, re.IGNORECASE) for name in first):
            raise Refusal(
                f"{path}, line 1: the names of the columns are expected, but all are numbers "
                f"({self.delimiter.join(first[:4])}); add a line with names, or --no-header.",
                ExitCode.DATA,
            )
        unnamed = [place + 1 for place, name in enumerate(first) if not name.strip()]
        if unnamed and unnamed != [1]:
            raise Refusal(
                f"{path}, line 1: column {unnamed[0]} has no name; give it one.", ExitCode.DATA
            )
        if any(second[len(first) :]):
            # pandas would leave the last fields out, and say so in a warning only.
            self.columns = first
            raise Refusal(self._ragged(""), ExitCode.DATA)
        # Data frames are often written with their row numbers as a first column without a name.
        self.columns = self._named(["row number" if not n.strip() else n for n in first])

    def blocks(self, texts: Sequence[str] = (), rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
        """Yield the rows, some at a time."""
        try:
            with pd.read_csv(
                self.path,
                sep=self.delimiter,
                header=0 if self.options.header else None,
                names=self.columns,
                index_col=False,
                encoding=self.options.encoding,
                encoding_errors="strict",
                dtype=dict.fromkeys(texts, "object"),
                na_values=[*_MISSING, *self.options.missing],
                low_memory=False,
                chunksize=rows,
                on_bad_lines="error",
                compression="gzip" if self._zipped() else None,
            ) as reader:
                yield from reader
        except pd.errors.ParserError as error:
            raise Refusal(self._ragged(str(error)), ExitCode.DATA) from None
        except pd.errors.EmptyDataError:
            return
        except UnicodeDecodeError as error:
            raise self._undecodable(error) from None
        except (OSError, EOFError) as error:
            raise Refusal(f"{self.path} cannot be read: {error}.", ExitCode.FILE) from None

    def where(self, row: int) -> str:
        """Return the line of a row; records in quotes may take several."""
        skipped = 1 if self.options.header else 0
        with self._text() as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            for number, _ in enumerate(record for record in reader if record):
                if number == row + skipped:
                    return f"line {reader.line_num}"
        return f"row {row + 1}"

    @property
    def size(self) -> int:
        """Bytes that all rows take in memory, about."""
        return self.path.stat().st_size * (_GZIP_GROWTH if self._zipped() else _CSV_GROWTH)

    def _zipped(self) -> bool:
        return self.path.suffix.lower() == ".gz"

    def _text(self) -> Any:
        opened = gzip.open if self._zipped() else open
        return opened(self.path, "rt", encoding=self.options.encoding, newline="")

    def _records(self) -> Generator[list[str], None, None]:
        try:
            with self._text() as file:
                for record in csv.reader(file, delimiter=self.delimiter):
                    if record:
                        record[0] = record[0].removeprefix("\ufeff")
                        yield record
        except UnicodeDecodeError as error:
            raise self._undecodable(error) from None
        except (csv.Error, OSError, EOFError) as error:
            raise Refusal(f"{self.path} cannot be read: {error}.", ExitCode.FILE) from None

    def _found_delimiter(self) -> str:
        """Return the delimiter that the first line has most of."""
        if any(suffix.lower() == ".tsv" for suffix in self.path.suffixes):
            return "\t"
        try:
            with self._text() as file:
                line = file.readline(_SNIFFED)
        except UnicodeDecodeError as error:
            raise self._undecodable(error) from None
        except LookupError:
            raise Refusal(
                f"--encoding {self.options.encoding} is not known; utf-8, latin-1 and cp1252 are "
                "usual ones.",
                ExitCode.USAGE,
            ) from None
        except (OSError, EOFError) as error:
            raise Refusal(f"{self.path} cannot be read: {error}.", ExitCode.FILE) from None
        unquoted = re.sub(r'"[^"]*"', "", line)
        best = max(_DELIMITERS, key=unquoted.count)
        return best if unquoted.count(best) else ","

    def _ragged(self, said: str) -> str:
        """Return a sentence about a line with too many fields, or a quote that is not closed."""
        for row, record in enumerate(self._records()):
            if len(record) > len(self.columns):
                skipped = 1 if self.options.header else 0
                return (
                    f"{self.path}, {self.where(row - skipped)}: {len(record)} fields, but there "
                    f"are {len(self.columns)} columns; correct the line, put texts that hold "
                    f"{self.delimiter!r} into quotes, or give --delimiter."
                )
        return f"{self.path} is not a CSV file: {said}."

    def _undecodable(self, error: UnicodeDecodeError) -> Refusal:
        """Return what to say of bytes that are not of the encoding."""
        opened = gzip.open if self._zipped() else open
        line = 0
        with opened(self.path, "rb") as file:
            for number, each in enumerate(file, start=1):
                try:
                    each.decode(self.options.encoding)
                except UnicodeDecodeError:
                    line = number
                    break
        at = f", line {line}" if line else ""
        return Refusal(
            f"{self.path}{at}: not text in {self.options.encoding} ({error.reason}); give its "
            "encoding, such as --encoding latin-1.",
            ExitCode.DATA,
        )


class ParquetTable(Table):
    """A Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        self.path = path
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except (pyarrow.ArrowException, OSError) as error:
            said = str(error).splitlines()[0]
            raise Refusal(f"{path} is not a Parquet file: {said}", ExitCode.FILE) from None
        hidden = re.compile(r"__index_level_\d+__")
        names = [n for n in self._file.schema_arrow.names if not hidden.fullmatch(n)]
        self.columns = self._named(names)

    def blocks(self, texts: Sequence[str] = (), rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
        """Yield the rows, some at a time."""
        import pyarrow

        first = 0
        try:
            for batch in self._file.iter_batches(batch_size=rows, columns=self.columns):
                frame = pyarrow.Table.from_batches([batch]).to_pandas(ignore_metadata=True)
                for name in texts:
                    there = frame[name].notna()
                    frame[name] = frame[name].astype(object).where(there, None)
                    frame.loc[there, name] = frame.loc[there, name].map(str)
                frame.index = pd.RangeIndex(first, first + len(frame))
                first += len(frame)
                yield frame
        except (pyarrow.ArrowException, OSError) as error:
            said = str(error).splitlines()[0]
            raise Refusal(f"{self.path} cannot be read: {said}", ExitCode.FILE) from None

    def where(self, row: int) -> str:
        """Return the number of a row."""
        return f"row {row + 1}"

    @property
    def size(self) -> int:
        """Bytes that all rows take in memory, about."""
        meta = self._file.metadata
        groups = (meta.row_group(each).total_byte_size for each in range(meta.num_row_groups))
        return _PARQUET_GROWTH * int(sum(groups))
