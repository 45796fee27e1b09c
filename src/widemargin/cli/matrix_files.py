"""Rows of numbers in files: NumPy's ``.npy`` and ``.npz``, and LIBSVM's svmlight format."""

from __future__ import annotations

import math
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.cli.refusal import ExitCode, Refusal

__all__ = ["Matrix", "read_npy", "read_npz", "read_svmlight"]

# Names that arrays of rows and of labels usually have in an .npz file.
_ROWS = ("X", "x", "data", "features", "rows", "X_train", "x_train")
_TARGETS = ("y", "target", "targets", "label", "labels", "y_train")
# How much larger an svmlight file is in memory than on disk: twelve bytes for about eight.
_SVMLIGHT_GROWTH = 2


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers, with labels if the file has them.

    Attributes
    ----------
    path : Path
        The file.
    X : ndarray, memmap or CSR matrix of shape (n, d)
        Rows.
    y : ndarray of shape (n,) or None
        Labels or targets.
    target : str or None
        What they are called.
    picture : tuple of int or None
        The shape of a row, where it is not a list of numbers.
    """

    path: Path
    X: Any
    y: NDArray[Any] | None = None
    target: str | None = None
    picture: tuple[int, ...] | None = None

    def where(self, row: int) -> str:
        """Return where a row is in the file, in words."""
        return f"line {row + 1}" if sparse.issparse(self.X) else f"row {row + 1}"


def read_npy(path: Path, target: str | None) -> Matrix:
    """Map an ``.npy`` file; the target is another one, or a column by its number from 0."""
    X = _array(path)
    picture = X.shape[1:] if X.ndim > 2 else None
    X = _rows(path, "", X)
    if target is None:
        return Matrix(path, X, picture=picture)
    if re.fullmatch(r"-?\d+", target):
        column = int(target)
        if not -X.shape[1] <= column < X.shape[1]:
            raise Refusal(
                f"--target {target}: {path} has {X.shape[1]} columns, which count from 0; a "
                "negative number counts from the last.",
                ExitCode.DATA,
            )
        y = np.array(X[:, column])
        return Matrix(path, np.delete(X, column, axis=1), y, target)
    if not target.endswith(".npy"):
        raise Refusal(
            f"--target {target}: columns of {path} have no names; give the number of one, or "
            "another .npy file with the targets.",
            ExitCode.DATA,
        )
    y = _array(Path(target))
    return Matrix(path, X, _column(Path(target), "", y, len(X)), target, picture)


def read_npz(path: Path, target: str | None, usual: str | None = None) -> Matrix:
    """Read an ``.npz`` file: the rows, and the labels by their name or a usual one."""
    arrays = _arrays(path)
    listed = ", ".join(f"{name} {each.shape}" for name, each in arrays.items()) or "none"
    wide = [name for name, each in arrays.items() if each.ndim >= 2]
    name = next((each for each in _ROWS if each in wide), wide[0] if len(wide) == 1 else None)
    if name is None:
        raise Refusal(
            f"{path}: which array has the rows is not clear; name it X. There are: {listed}.",
            ExitCode.DATA,
        )
    X, y, chosen = arrays[name], None, target
    if target is not None:
        if target not in arrays:
            raise Refusal(f"{path} has no array {target!r}. There are: {listed}.", ExitCode.DATA)
        y = arrays[target]
    else:
        chosen = next((each for each in (usual, *_TARGETS) if each in arrays), None)
        y = None if chosen is None else arrays[chosen]
    picture = X.shape[1:] if X.ndim > 2 else None
    X = _rows(path, name, X)
    if y is not None:
        y = _column(path, str(chosen), y, len(X))
    return Matrix(path, X, y, chosen, picture)


def read_svmlight(path: Path, n_features: int | None, memory: int) -> Matrix:
    """Read an svmlight file as CSR; the first number of a line is the label."""
    from sklearn.datasets import load_svmlight_file

    needed = _SVMLIGHT_GROWTH * path.stat().st_size
    if needed > memory:
        raise Refusal(
            f"{path}: files of this format are read whole, which takes about "
            f"{needed / 1e9:.2g} GB; give more --memory, or write the rows as .npy or Parquet.",
            ExitCode.LIMIT,
        )
    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError) as error:
        raise _bad_line(path, str(error)) from None
    except (OSError, EOFError) as error:
        raise Refusal(f"{path} cannot be read: {error}.", ExitCode.FILE) from None
    if n_features is not None:
        if X.shape[1] > n_features:
            raise Refusal(
                f"{path} has features up to number {X.shape[1]}, but the model was fitted to "
                f"{n_features}.",
                ExitCode.MODEL,
            )
        X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    if not X.shape[0]:
        raise Refusal(f"{path} has no rows.", ExitCode.DATA)
    return Matrix(path, X, y, "label")


def _bad_line(path: Path, said: str) -> Refusal:
    """Return what to say of the first line that is not of the svmlight format."""
    with path.open("r", encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            last = -math.inf
            for place, word in enumerate(line.split("#")[0].split()):
                if place and word.startswith("qid:"):
                    continue
                good = r"[^\s:]+" if not place else r"\d+:[^\s:]+"
                value = word if not place else word.partition(":")[2]
                if not re.fullmatch(good, word) or not _is_number(value):
                    wanted = "a label" if not place else "feature:value, both numbers,"
                    return Refusal(
                        f"{path}, line {number}, word {place + 1}: {wanted} expected, but it is "
                        f"{word[:40]!r}.",
                        ExitCode.DATA,
                    )
                index = int(word.partition(":")[0]) if place else last
                if place and index <= last:
                    return Refusal(
                        f"{path}, line {number}, word {place + 1}: features must go up, but "
                        f"{index} comes after {last:.0f}.",
                        ExitCode.DATA,
                    )
                last = index
    return Refusal(f"{path} is not an svmlight file: {said}", ExitCode.DATA)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _array(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise Refusal(f"There is no file {path}.", ExitCode.FILE) from None
    except (ValueError, EOFError, OSError) as error:
        raise Refusal(f"{path} is not an array of numbers: {error}", ExitCode.FILE) from None
    return found


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise Refusal(f"{path} is not a file of arrays: {error}", ExitCode.FILE) from None


def _rows(path: Path, name: str, X: NDArray[Any]) -> NDArray[Any]:
    """Return rows of numbers, pictures as long rows."""
    at = f"{path}, array {name}" if name else str(path)
    if X.ndim < 2:
        raise Refusal(
            f"{at} has the shape {X.shape}; rows and columns are expected.", ExitCode.DATA
        )
    if X.dtype.kind not in "biuf":
        raise Refusal(
            f"{at} has values of type {X.dtype}, but numbers are expected.", ExitCode.DATA
        )
    if not X.shape[0] or not math.prod(X.shape[1:]):
        raise Refusal(f"{at} has the shape {X.shape}: there are no values.", ExitCode.DATA)
    return X.reshape(X.shape[0], -1)


def _column(path: Path, name: str, y: NDArray[Any], n: int) -> NDArray[Any]:
    at = f"{path}, array {name}" if name else str(path)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != n:
        raise Refusal(
            f"{at} has the shape {y.shape}, but a target for each of {n} rows is expected.",
            ExitCode.DATA,
        )
    return np.array(y)
