"""A model from a file, and rows of data as it reads them."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin import load, save
from widemargin.cli.column_kinds import Kinds, as_kinds
from widemargin.cli.file_kinds import open_source
from widemargin.cli.matrix_files import Matrix
from widemargin.cli.options import memory_of, read_options_of
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.table_files import BLOCK_ROWS, Table, check_there
from widemargin.cli.task_choice import checked_target, task_of_estimator
from widemargin.cli.training_rows import no_column
from widemargin.cli.voice import Voice

__all__ = ["ModelFile", "open_data", "open_model", "scores_of", "write_model"]


@dataclass(frozen=True)
class ModelFile:
    """A model that was read.

    Attributes
    ----------
    path : Path
        Where from.
    model : estimator
        A pipeline, or a machine alone.
    machine : estimator
        The last step: one of ours.
    task : {"classes", "numbers", "outliers"}
        What it is for.
    about : dict
        What ``widemargin fit`` noted of the data; empty for models that were saved otherwise.
    """

    path: Path
    model: Any
    machine: Any
    task: str
    about: dict[str, Any]

    @property
    def n_features(self) -> int:
        """Columns that the model reads."""
        return int(self.model.n_features_in_)

    def target(self, asked: str | None, source: Table | Matrix, needed: bool) -> str | None:
        """Return the column of the targets in a table, if there is one."""
        name = asked or self.about.get("target")
        if isinstance(source, Matrix) or name in source.columns:
            return name
        if asked is not None or (needed and name is not None):
            raise Refusal(no_column(source, f"--target {name}", str(name)), ExitCode.DATA)
        if needed:
            raise Refusal("--target is missing: name the column to compare with.", ExitCode.USAGE)
        return None

    def kinds(self, table: Table, target: str | None, voice: Voice) -> Kinds:
        """Return the columns of a table that the model reads, or refuse the table."""
        known = getattr(self.model, "feature_names_in_", None)
        if self.about.get("kind") == "table":
            kinds = Kinds(list(self.about["numbers"]), list(self.about["categories"]))
        elif known is not None:
            kinds = Kinds([str(name) for name in known])
        else:
            names = [name for name in table.columns if name != target]
            if len(names) != self.n_features:
                raise Refusal(
                    f"{table.path} has {len(names)} columns beside the target, but {self.path} was "
                    f"fitted to {self.n_features}.",
                    ExitCode.MODEL,
                )
            kinds = Kinds(names)
        absent = [name for name in kinds.used if name not in table.columns]
        if absent:
            listed = ", ".join(repr(name) for name in absent[:8])
            more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
            raise Refusal(
                f"{table.path} lacks columns that {self.path} was fitted to: {listed}{more}.",
                ExitCode.MODEL,
            )
        skipped = [*self.about.get("left_out", {}), target]
        others = [name for name in table.columns if name not in (*kinds.used, *skipped)]
        if others:
            voice.note(
                f"Columns that the model does not know are not used: {', '.join(others[:8])}"
                f"{f' and {len(others) - 8} more' if len(others) > 8 else ''}."
            )
        return kinds

    def blocks(
        self, source: Table | Matrix, target: str | None, voice: Voice
    ) -> Iterator[tuple[Any, pd.Series | None]]:
        """Yield rows as the model reads them, with their targets if there are any."""
        if isinstance(source, Matrix):
            yield from self._blocks_of_matrix(source)
            return
        kinds = self.kinds(source, target, voice)
        there = False
        for frame in source.blocks(kinds.categories):
            if frame.empty:
                continue
            rows: Any = as_kinds(source, frame, kinds)[kinds.used]
            if self.about.get("kind") != "table":
                self._refuse_missing(source, rows)
                rows = rows if hasattr(self.model, "feature_names_in_") else rows.to_numpy()
            there = True
            yield rows, None if target is None else frame[target]
        if not there:
            raise Refusal(f"{source.path} has names of columns, but no rows.", ExitCode.DATA)

    def _refuse_missing(self, table: Table, rows: pd.DataFrame) -> None:
        """Refuse missing values, where nothing in the model fills them."""
        bad = rows.isna().to_numpy()
        if bad.any() and not isinstance(self.model, Pipeline):
            row, column = divmod(int(bad.argmax()), rows.shape[1])
            raise Refusal(
                f"{table.path}, {table.where(int(rows.index[row]))}, column "
                f"{rows.columns[column]!r}: a value is missing, and {self.path} does not say how "
                "to fill it.",
                ExitCode.DATA,
            )

    def _blocks_of_matrix(self, matrix: Matrix) -> Iterator[tuple[Any, pd.Series | None]]:
        X = matrix.X
        if self.about.get("kind") == "table":
            raise Refusal(
                f"{self.path} was fitted to a table with the columns "
                f"{', '.join(self.about['columns'][:8])}, but {matrix.path} has no names of "
                "columns.",
                ExitCode.MODEL,
            )
        if X.shape[1] != self.n_features:
            raise Refusal(
                f"{matrix.path} has {X.shape[1]} columns, but {self.path} was fitted to "
                f"{self.n_features}.",
                ExitCode.MODEL,
            )
        for first in range(0, X.shape[0], BLOCK_ROWS):
            block = X[first : first + BLOCK_ROWS]
            values = block.data if sparse.issparse(block) else np.asarray(block)
            fills = isinstance(self.model, Pipeline) and len(self.model.steps) > 1
            if values.dtype.kind == "f" and not fills and not np.isfinite(values).all():
                raise Refusal(
                    f"{matrix.path}: a value of rows {first + 1:,} to "
                    f"{first + block.shape[0]:,} is missing or not finite, and {self.path} does "
                    "not say how to fill it.",
                    ExitCode.DATA,
                )
            y = None
            if matrix.y is not None:
                y = pd.Series(matrix.y[first : first + BLOCK_ROWS])
                y.index = y.index + first
            yield block, y

    def targets(self, parts: list[pd.Series], source: Table | Matrix, name: str) -> pd.Series:
        """Return targets as the model speaks of them, without those that are missing."""
        found = pd.concat(parts).dropna()
        if found.empty:
            raise Refusal(f"{source.path}: {name!r} is missing in all rows.", ExitCode.DATA)
        task = "numbers" if self.task == "numbers" else None
        values = checked_target(
            found, task, name, lambda row: f"{source.path}, {source.where(row)}"
        )
        if self.task == "classes":
            classes = self.model.classes_
            if classes.dtype.kind in "US" and values.dtype.kind not in "US":
                values = values.astype(str)
            strange = ~np.isin(values, classes)
            if strange.all():
                raise Refusal(
                    f"{source.path}: no class of {name!r} is one of {self.path}; it has "
                    f"{', '.join(str(each) for each in classes[:8])}.",
                    ExitCode.MODEL,
                )
        return pd.Series(values, index=found.index)


def open_model(path: Path, voice: Voice) -> ModelFile:
    """Read a model file; nothing in it is run."""
    check_there(path)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = load(path)
    except ValueError as error:
        raise Refusal(str(error), ExitCode.MODEL) from None
    for each in caught:
        voice.note(f"Warning: {str(each.message).splitlines()[0]}")
    machine = model.steps[-1][1] if isinstance(model, Pipeline) else model
    ours = isinstance(machine, BaseEstimator) and type(machine).__module__.startswith("widemargin.")
    task = task_of_estimator(machine) if ours else None
    if task is None:
        what = "a projection" if ours else "not a machine of widemargin"
        raise Refusal(
            f"{path} holds a {type(machine).__name__}, which is {what}; the command line works "
            "with classifiers, regressors and outlier detectors of widemargin.",
            ExitCode.MODEL,
        )
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise Refusal(
            f"{path} holds a {type(machine).__name__} that was not fitted.", ExitCode.MODEL
        ) from None
    about = getattr(model, "about_", {})
    return ModelFile(path, model, machine, task, about if isinstance(about, dict) else {})


def open_data(model: ModelFile, arguments: Namespace, voice: Voice) -> Table | Matrix:
    """Open the file of rows that a command is to show to a model."""
    return open_source(
        Path(arguments.data),
        voice,
        options=read_options_of(arguments),
        memory=memory_of(arguments),
        target=getattr(arguments, "target", None),
        usual=model.about.get("target"),
        n_features=model.n_features,
    )


def write_model(model: Any, path: Path) -> None:
    """Write a model file."""
    try:
        save(model, path)
    except ValueError as error:
        raise Refusal(f"--out {path}: {error}", ExitCode.MODEL) from None
    except OSError as error:
        raise Refusal(f"--out {path} cannot be written: {error.strerror}.", ExitCode.FILE) from None


def scores_of(task: str, found: NDArray[Any], y: NDArray[Any] | None) -> dict[str, float]:
    """Return how good predictions are."""
    from sklearn import metrics

    if task == "outliers":
        scores = {"share of outliers": float((found == -1).mean())}
        truth = _outlier_labels(y)
        if truth is not None:
            scores["precision"] = float(
                metrics.precision_score(truth, found == -1, zero_division=0.0)
            )
            scores["recall"] = float(metrics.recall_score(truth, found == -1, zero_division=0.0))
        return scores
    assert y is not None
    if task == "numbers":
        scores = {
            "mean absolute error": float(metrics.mean_absolute_error(y, found)),
            "root mean squared error": float(metrics.root_mean_squared_error(y, found)),
        }
        return ({"R2": float(metrics.r2_score(y, found))} if len(y) > 1 else {}) | scores
    classes = np.unique(y)
    recalls = [float((found[y == each] == each).mean()) for each in classes]
    return {"accuracy": float((found == y).mean()), "balanced accuracy": float(np.mean(recalls))}


def _outlier_labels(y: NDArray[Any] | None) -> NDArray[np.bool_] | None:
    """Return which rows a label calls outliers: -1 of ±1, or 1 of 0 and 1, or by their names."""
    if y is None:
        return None
    known = {str(each).lower() for each in np.unique(y)}
    texts = np.char.lower(np.asarray(y).astype(str))
    for outlier, others in (("-1", {"1"}), ("1", {"0"}), ("true", {"false"})):
        if outlier in known and known <= {outlier, *others}:
            return np.asarray(texts == outlier)
    named = {"outlier", "anomaly", "yes"}
    return np.isin(texts, list(named)) if known & named else None
