"""``widemargin evaluate``: how good a model is on rows whose target is known."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.cli.model_rows import open_data, open_model, scores_of
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.voice import Voice

__all__ = ["evaluate"]


def evaluate(arguments: Namespace, voice: Voice) -> None:
    """Run the command."""
    model = open_model(Path(arguments.model), voice)
    source = open_data(model, arguments, voice)
    target = model.target(arguments.target, source, needed=model.task != "outliers")
    found, targets = [], []
    with voice.counting("evaluating") as count:
        for rows, y in model.blocks(source, target, voice):
            found.append(np.asarray(model.model.predict(rows)))
            targets += [] if y is None else [y]
            count(rows.shape[0])
    predictions = np.concatenate(found)
    facts: dict[str, Any] = {"rows": len(predictions), "task": model.task}
    y_there = None
    if targets:
        series = model.targets(targets, source, str(target))
        left_out = len(predictions) - len(series)
        if left_out:
            voice.note(f"{left_out:,} rows have no target and are not counted.")
        predictions, y_there = predictions[series.index.to_numpy()], series.to_numpy()
        facts["rows"] = len(predictions)
    elif model.task != "outliers":
        raise Refusal(
            f"{source.path} has no targets to compare with; name them with --target.",
            ExitCode.DATA,
        )
    facts["scores"] = scores_of(model.task, predictions, y_there)
    lines = [f"{facts['rows']:,} rows"]
    lines += [f"{name}: {value:.4f}" for name, value in facts["scores"].items()]
    if model.task == "classes" and y_there is not None:
        strange = sorted({str(each) for each in np.unique(y_there)[:]} - _names(model))
        if strange:
            voice.note(
                f"Classes that the model has never seen, and always gets wrong: "
                f"{', '.join(strange[:8])}."
            )
        facts["classes"] = _by_class(predictions, y_there)
        lines += [
            f"  {name}: recall {each['recall']:.4f}, precision {each['precision']:.4f}, "
            f"{each['rows']:,} rows"
            for name, each in facts["classes"].items()
        ]
    voice.result(facts, lines)


def _names(model: Any) -> set[str]:
    return {str(each) for each in model.model.classes_}


def _by_class(found: Any, y: Any) -> dict[str, dict[str, float]]:
    """Return recall, precision and rows of each class."""
    table = {}
    for each in np.unique(y):
        own, called = y == each, found == each
        right = float((own & called).sum())
        table[str(each)] = {
            "recall": right / float(own.sum()),
            "precision": right / float(called.sum()) if called.any() else 0.0,
            "rows": int(own.sum()),
        }
    return table
