"""``widemargin predict``: what a model says of each row of a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from widemargin.cli.model_rows import ModelFile, open_data, open_model
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.voice import Voice

__all__ = ["predict"]

_ENDINGS = (".csv", ".tsv", ".parquet", ".pq", ".npy")


def predict(arguments: Namespace, voice: Voice) -> None:
    """Run the command."""
    out = None if arguments.out is None else Path(arguments.out)
    _check_out(out, arguments)
    model = open_model(Path(arguments.model), voice)
    source = open_data(model, arguments, voice)
    target = model.target(None, source, needed=False)
    parts, done = [], 0
    with voice.counting("predicting") as count:
        for rows, _ in model.blocks(source, target, voice):
            parts.append(_answers(model, rows, arguments.scores))
            if out is None and not voice.json:
                _print(parts.pop(), first=not done)
            done += rows.shape[0]
            count(rows.shape[0])
    if out is not None:
        _write(pd.concat(parts, ignore_index=True), out)
        facts = {"rows": done, "out": str(out)}
        voice.result(facts, [f"{done:,} predictions written: {out}"])
    elif voice.json:
        table = pd.concat(parts, ignore_index=True)
        facts = {"rows": done, **{str(name): list(table[name]) for name in table.columns}}
        voice.result(facts, [])


def _check_out(out: Path | None, arguments: Namespace) -> None:
    """Refuse a place where nothing can be written, before anything is read."""
    if out is None:
        return
    if out.suffix.lower() not in _ENDINGS:
        raise Refusal(
            f"--out {out}: predictions are written as {', '.join(_ENDINGS)}; name one of these.",
            ExitCode.FILE,
        )
    if not out.parent.is_dir():
        raise Refusal(f"--out {out}: there is no folder {out.parent}.", ExitCode.FILE)
    if out.suffix.lower() == ".npy" and arguments.scores:
        raise Refusal(
            f"--out {out}: an array has no names for --scores; use .csv or .parquet.",
            ExitCode.USAGE,
        )


def _answers(model: ModelFile, rows: Any, scores: bool) -> pd.DataFrame:
    """Return predictions of a block, and decision values if they are wanted."""
    found: NDArray[Any] = model.model.predict(rows)
    if found.ndim > 1:
        columns = {f"prediction {place}": found[:, place] for place in range(found.shape[1])}
    elif model.task == "outliers":
        columns = {"prediction": np.where(found == -1, "outlier", "inlier")}
    else:
        columns = {"prediction": found}
    if scores and model.task != "numbers":
        values = model.model.decision_function(rows)
        if values.ndim == 1:
            columns["score"] = values
        else:
            columns |= {
                f"score {name}": values[:, place] for place, name in enumerate(model.model.classes_)
            }
    elif scores:
        raise Refusal(
            "--scores are the margins of classes and outliers; this model predicts numbers.",
            ExitCode.USAGE,
        )
    return pd.DataFrame(columns)


def _print(table: pd.DataFrame, first: bool) -> None:
    table.to_csv(sys.stdout, index=False, header=first)


def _write(table: pd.DataFrame, out: Path) -> None:
    ending = out.suffix.lower()
    try:
        if ending == ".npy":
            np.save(out, table.to_numpy()[:, 0] if table.shape[1] == 1 else table.to_numpy())
        elif ending in (".parquet", ".pq"):
            table.to_parquet(out, index=False)
        else:
            table.to_csv(out, index=False, sep="\t" if ending == ".tsv" else ",")
    except OSError as error:
        raise Refusal(f"--out {out} cannot be written: {error.strerror}.", ExitCode.FILE) from None
