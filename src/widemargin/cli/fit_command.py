"""``widemargin fit``: from a file of data to a model in a file."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

import widemargin
from widemargin.cli.column_kinds import preparation
from widemargin.cli.file_kinds import open_source
from widemargin.cli.matrix_files import Matrix
from widemargin.cli.model_rows import scores_of, write_model
from widemargin.cli.options import columns_of, memory_of, read_options_of
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.task_choice import (
    checked_target,
    chosen_estimator,
    named_estimator,
    task_of_estimator,
    task_of_target,
)
from widemargin.cli.training_rows import Part, TableRows, matrix_parts, read_table
from widemargin.cli.voice import Voice

__all__ = ["fit"]

# The share of the rows that lies outside, where the user does not say.
_OUTLIERS = 0.05
# Rows of the fit that are scored where none are held out.
_SCORED_ROWS = 10_000


def fit(arguments: Namespace, voice: Voice) -> None:
    """Run the command."""
    _check_options(arguments)
    memory = memory_of(arguments)
    source = open_source(
        Path(arguments.data),
        voice,
        options=read_options_of(arguments),
        memory=memory,
        target=arguments.target,
    )
    with tempfile.TemporaryDirectory(prefix="widemargin-") as folder:
        if isinstance(source, Matrix):
            fitted = _fit_matrix(source, arguments, memory, voice)
        else:
            read = read_table(source, columns_of(arguments), memory, arguments.seed, voice)
            fitted = _fit_table(read, arguments, Path(folder), voice)
    write_model(fitted.model, Path(arguments.out))
    facts = fitted.facts | {"out": str(arguments.out), "model_bytes": _size(arguments.out)}
    voice.result(facts, _lines(facts))


def _check_options(arguments: Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    if arguments.estimator is not None:
        own = task_of_estimator(named_estimator(arguments.estimator)())
        if arguments.task not in (None, own):
            raise Refusal(
                f"--estimator {arguments.estimator} is for {own}, but --task says "
                f"{arguments.task}; leave one of them out.",
                ExitCode.USAGE,
            )
        arguments.task = own
    path = Path(arguments.data)
    unnamed = "".join(path.suffixes[-2:]).lower()
    labelled = any(unnamed.endswith(each) for each in (".npz", ".svm", ".svmlight", ".libsvm"))
    labelled = labelled or ".svm" in unnamed or ".libsvm" in unnamed
    if arguments.target is None and arguments.task != "outliers" and not labelled:
        raise Refusal(
            "--target is missing: name the column that is to be predicted, or use --task outliers, "
            "which needs none.",
            ExitCode.USAGE,
        )
    if not 0.0 <= arguments.hold_out < 1.0:
        raise Refusal(
            f"--hold-out {arguments.hold_out:g} is not a share of the rows; give a number from 0 "
            "to less than 1, such as 0.2.",
            ExitCode.USAGE,
        )
    out = Path(arguments.out)
    if not out.parent.is_dir():
        raise Refusal(f"--out {out}: there is no folder {out.parent}.", ExitCode.FILE)
    if out.is_dir():
        raise Refusal(f"--out {out} is a folder; name a file in it.", ExitCode.FILE)


class _Fitted:
    """A model, and what is to be said of it."""

    def __init__(self, model: Any, facts: dict[str, Any]) -> None:
        self.model = model
        self.facts = facts


def _fit_table(read: TableRows, arguments: Namespace, folder: Path, voice: Voice) -> _Fitted:
    """Fit a model to a table."""
    y, rows = None, read.labelled
    if read.y is not None:
        path = read.table.path
        y = checked_target(
            read.y,
            arguments.task,
            str(arguments.target),
            lambda row: f"{path}, {read.table.where(row)}",
        )
    task = _task(y, arguments, voice)
    estimator = _estimator(task, arguments, voice)
    # Some put columns on one scale themselves.
    scale = arguments.scale != "none" and getattr(estimator, "scale", None) is None
    _say_kinds(read, scale, voice)
    train, test = _split(rows, y, task, arguments)
    prepare = preparation(read.kinds, scale).fit(read.sampled(rows[train]))
    of = {"prepare": prepare, "folder": folder, "voice": voice}
    part = read.part(rows[train], None if y is None else y[train], **of)
    held = read.part(rows[test], None if y is None else y[test], **of) if len(test) else None
    about = {
        "kind": "table",
        "columns": read.kinds.used,
        "numbers": read.kinds.numbers,
        "categories": read.kinds.categories,
        "left_out": read.kinds.left_out,
        "features": [str(name) for name in prepare.get_feature_names_out()],
    }
    return _fitted(estimator, task, prepare, part, held, about, arguments, voice)


def _fit_matrix(matrix: Matrix, arguments: Namespace, memory: int, voice: Voice) -> _Fitted:
    """Fit a model to rows of numbers."""
    for option in ("weights", "ignore", "categories"):
        if getattr(arguments, option):
            raise Refusal(
                f"--{option} names columns of a table, but {matrix.path} has none.", ExitCode.USAGE
            )
    if matrix.y is None and arguments.task != "outliers":
        raise Refusal(
            f"{matrix.path} has no targets; name them with --target, or use --task outliers.",
            ExitCode.DATA,
        )
    y = None
    if matrix.y is not None:
        values = pd.Series(matrix.y)
        if values.isna().any():
            row = int(values.isna().argmax())
            raise Refusal(
                f"{matrix.path}, {matrix.where(row)}: the target is missing.", ExitCode.DATA
            )
        name = str(matrix.target)
        y = checked_target(
            values, arguments.task, name, lambda row: f"{matrix.path}, {matrix.where(row)}"
        )
    task = _task(y, arguments, voice)
    estimator = _estimator(task, arguments, voice)
    prepare = matrix_parts(matrix, arguments.scale == "standard", memory)
    if prepare is not None:
        voice.note(f"Rows go through {', '.join(type(s).__name__ for _, s in prepare.steps)}.")
    train, test = _split(np.arange(matrix.X.shape[0]), y, task, arguments)
    parts = []
    for rows in (train, test):
        # All rows of a mapped file stay a mapped file.
        X = matrix.X if len(rows) == matrix.X.shape[0] else matrix.X[rows]
        if prepare is not None and len(rows):
            X = prepare.fit_transform(X) if rows is train else prepare.transform(X)
        parts.append(Part(X, None if y is None else y[rows]))
    held = parts[1] if len(test) else None
    about = {"kind": "matrix", "columns": int(matrix.X.shape[1])}
    if matrix.picture is not None:
        about["picture"] = [int(side) for side in matrix.picture]
    arguments.target = matrix.target
    return _fitted(estimator, task, prepare, parts[0], held, about, arguments, voice)


def _task(y: NDArray[Any] | None, arguments: Namespace, voice: Voice) -> str:
    """Return the task, and refuse a target that it cannot have."""
    task: str = arguments.task or "outliers"
    if arguments.task is None and y is not None:
        task, why = task_of_target(y)
        name = f"target {arguments.target!r}" if arguments.target else "target"
        voice.note(f"Task: {task}, because the {name} {why} (--task sets it).")
    if task == "classes" and y is not None:
        classes, counts = np.unique(y, return_counts=True)
        if len(classes) < 2:
            raise Refusal(
                f"{arguments.data}: all rows have the same class {classes[0]!s}; two or more are "
                "needed. For one class there is --task outliers.",
                ExitCode.DATA,
            )
        if len(classes) > 1000 and counts.max() < 3:
            raise Refusal(
                f"{arguments.data}: nearly every row has a class of its own; is "
                f"{arguments.target} the right --target?",
                ExitCode.DATA,
            )
    if task == "numbers" and y is not None and y.dtype.kind not in "iufb":
        raise Refusal(
            f"{arguments.data}: the target has texts such as {str(y[0])[:40]!r}, but --task "
            "numbers needs numbers; use --task classes.",
            ExitCode.DATA,
        )
    return task


def _estimator(task: str, arguments: Namespace, voice: Voice) -> Any:
    settings = {
        "max_time": arguments.max_time,
        "memory": arguments.memory,
        "n_jobs": arguments.jobs,
        "device": arguments.device,
        "random_state": arguments.seed,
    }
    estimator = chosen_estimator(
        task, arguments.estimator, arguments.search, arguments.param, settings
    )
    named = any(text.startswith("contamination=") for text in arguments.param)
    if task == "outliers" and hasattr(estimator, "contamination") and not named:
        estimator.set_params(contamination=_OUTLIERS)
        voice.note(
            f"{_OUTLIERS:.0%} of the rows are called outliers (--param contamination=0.1 sets it)."
        )
    return estimator


def _say_kinds(read: TableRows, scale: bool, voice: Voice) -> None:
    """Say what is done to which columns."""
    kinds = read.kinds
    voice.note(
        f"{read.n_rows:,} rows; {len(kinds.numbers)} columns of numbers"
        f"{' (centred and scaled)' if scale and kinds.numbers else ''}, "
        f"{len(kinds.categories)} of categories."
    )
    if kinds.categories:
        voice.note(f"Categories, a column of zeros and ones each: {_listed(kinds.categories)}.")
    missing = read.frame[kinds.used].isna().sum()
    some = [name for name in kinds.used if missing[name]]
    if some:
        of = "" if read.whole else " (in the sample)"
        counted = [f"{name} ({missing[name]:,})" for name in some]
        voice.note(
            f"Missing values{of}: {_listed(counted)}. Numbers become the median, with a column "
            "that says so; of categories it is one more."
        )
    for name, why in kinds.left_out.items():
        voice.note(f"Column {name!r} is left out: {why}.")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _split(
    rows: NDArray[np.int64], y: NDArray[Any] | None, task: str, arguments: Namespace
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the rows to fit to and of those to hold out."""
    places = np.arange(len(rows))
    if not arguments.hold_out:
        return places, places[:0]
    stratify = None
    if task == "classes" and y is not None and np.unique(y, return_counts=True)[1].min() > 1:
        stratify = y
    try:
        train, test = train_test_split(
            places, test_size=arguments.hold_out, random_state=arguments.seed, stratify=stratify
        )
    except ValueError as error:
        raise Refusal(
            f"--hold-out {arguments.hold_out:g} of {len(rows)} rows cannot be done: {error}",
            ExitCode.DATA,
        ) from None
    return np.sort(train), np.sort(test)


def _fitted(
    estimator: Any,
    task: str,
    prepare: Any,
    part: Part,
    held: Part | None,
    about: dict[str, Any],
    arguments: Namespace,
    voice: Voice,
) -> _Fitted:
    """Fit the machine, score it, and put the model together."""
    if part.X.shape[0] < 2:
        raise Refusal(f"{arguments.data}: one row is not enough for a fit.", ExitCode.DATA)
    if not _compiled_before():
        voice.note("The first fit after an installation compiles its loops: up to a minute, once.")
    begun = perf_counter()
    with warnings.catch_warnings(record=True) as caught, voice.fitting(estimator):
        warnings.simplefilter("always")
        weights = {} if part.weight is None else {"sample_weight": part.weight}
        estimator.fit(part.X, part.y if task != "outliers" else None, **weights)
    seconds = perf_counter() - begun
    for each in caught:
        voice.note(f"Warning: {each.message}")
    steps = [("machine", estimator)] if prepare is None else [("columns", prepare)]
    steps += [("machine", estimator)] if prepare is not None else []
    model = Pipeline(steps)
    shown = held or Part(part.X[:_SCORED_ROWS], None if part.y is None else part.y[:_SCORED_ROWS])
    score = scores_of(task, estimator.predict(shown.X), shown.y)
    certificate = getattr(estimator, "certificate_", None)
    about |= {
        "widemargin": widemargin.__version__,
        "task": task,
        "target": arguments.target,
        "source": Path(arguments.data).name,
        "rows": int(part.X.shape[0]),
        "held_out": 0 if held is None else int(held.X.shape[0]),
        "scored_on": "rows of the fit" if held is None else "rows held out",
        "scores": score,
        "seconds": seconds,
        "peak_memory": _peak_memory(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    model.about_ = about
    facts = about | {
        "estimator": type(estimator).__name__,
        "parameters": {k: v for k, v in estimator.get_params().items() if v is not None},
        "certificate": None if certificate is None else asdict(certificate),
        "certificate_text": None if certificate is None else str(certificate),
    }
    if hasattr(estimator, "classes_"):
        facts["classes"] = list(estimator.classes_)
    if hasattr(estimator, "best_params_"):
        facts["best"] = {**estimator.best_params_, "score": estimator.best_score_}
    return _Fitted(model, facts)


def _compiled_before() -> bool:
    """Return whether Numba has kept compiled loops of an earlier fit."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(widemargin.__file__).parent)
    return next(folder.rglob("*.nbi"), None) is not None


def _peak_memory() -> int | None:
    """Return the most bytes that this process has taken, where the system tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _size(path: str) -> int:
    return Path(path).stat().st_size


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"{facts['estimator']} on {facts['rows']:,} rows, {facts['seconds']:.2f} s."]
    if "best" in facts:
        chosen = ", ".join(f"{key} {value}" for key, value in facts["best"].items())
        lines.append(f"Best by cross-validation: {chosen}.")
    if facts["certificate_text"]:
        lines.append(f"Certificate: {facts['certificate_text']}")
    scores = ", ".join(f"{key} {value:.4g}" for key, value in facts["scores"].items())
    flattered = facts["scored_on"] == "rows of the fit" and facts["task"] != "outliers"
    hint = " (these flatter; see --hold-out and evaluate)" if flattered else ""
    lines.append(f"On {facts['scored_on']}{hint}: {scores}.")
    lines.append(f"Written: {facts['out']} ({facts['model_bytes'] / 1000:,.0f} kB).")
    return lines
