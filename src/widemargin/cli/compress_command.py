"""``widemargin compress``: the machine of a model with fewer vectors.

Without data the vectors are a reduced set: they come as near to the machine as they can (RS). With
the data of the fit, coefficients and bias are those of the SVM inside their span (MRS).
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin import ReducedSetClassifier
from widemargin.cli.model_rows import ModelFile, open_data, open_model, scores_of, write_model
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.voice import Voice

__all__ = ["compress"]


def compress(arguments: Namespace, voice: Voice) -> None:
    """Run the command."""
    vectors = _vectors(arguments.vectors)
    out = Path(arguments.out)
    if not out.parent.is_dir():
        raise Refusal(f"--out {out}: there is no folder {out.parent}.", ExitCode.FILE)
    model = open_model(Path(arguments.model), voice)
    machine = getattr(model.machine, "best_estimator_", model.machine)
    if model.task != "classes" or not hasattr(machine, "support_vectors_"):
        raise Refusal(
            f"{model.path} holds a {type(machine).__name__}; only kernel classifiers with support "
            "vectors can be compressed.",
            ExitCode.MODEL,
        )
    before = int(machine.support_vectors_.shape[0])
    X, y = _rows(model, arguments, voice) if arguments.data else (machine.support_vectors_, None)
    small = ReducedSetClassifier(
        machine,
        vectors,
        method="rs" if y is None else "mrs",
        random_state=arguments.seed,
        n_jobs=arguments.jobs,
    )
    try:
        small.fit(X, y)
    except (TypeError, ValueError) as error:
        raise Refusal(f"{model.path} cannot be compressed: {error}", ExitCode.MODEL) from None
    facts: dict[str, Any] = {"vectors_before": before, "vectors": int(small.n_vectors_)}
    if y is not None:
        facts["scores_before"] = scores_of("classes", machine.predict(X), y)
        facts["scores"] = scores_of("classes", small.predict(X), y)
    # The machine it came from is not to be in the file.
    small.estimator = None
    new = Pipeline([*model.model.steps[:-1], ("machine", small)]) if _piped(model) else small
    if model.about:
        new.about_ = model.about | {"compressed_from": before}
    write_model(new, out)
    facts |= {
        "bytes_before": model.path.stat().st_size,
        "bytes": out.stat().st_size,
        "out": str(out),
    }
    voice.result(facts, _lines(facts))


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [
        f"{facts['vectors_before']:,} vectors became {facts['vectors']:,}; "
        f"{facts['bytes_before'] / 1000:,.0f} kB became {facts['bytes'] / 1000:,.0f} kB."
    ]
    for name, value in facts.get("scores", {}).items():
        lines.append(f"{name}: {facts['scores_before'][name]:.4f} before, {value:.4f} now.")
    if "scores" not in facts:
        lines.append("Check it with `widemargin evaluate`; with --data it is fitted again.")
    return [*lines, f"Written: {facts['out']}"]


def _vectors(text: str) -> float:
    """Return the number of vectors, or their share."""
    try:
        number = int(text) if text.isdigit() else float(text)
    except ValueError:
        number = -1
    if number <= 0 or (isinstance(number, float) and number > 1):
        raise Refusal(
            f"--vectors {text} must be a whole number, or a share of the support vectors between 0 "
            "and 1.",
            ExitCode.USAGE,
        )
    return number


def _piped(model: ModelFile) -> bool:
    return isinstance(model.model, Pipeline)


def _rows(model: ModelFile, arguments: Namespace, voice: Voice) -> tuple[Any, Any]:
    """Return all rows of a file as the machine reads them, with their classes."""
    source = open_data(model, arguments, voice)
    target = model.target(arguments.target, source, needed=True)
    blocks, targets = [], []
    with voice.counting("reading") as count:
        for rows, y in model.blocks(source, target, voice):
            steps = _piped(model) and len(model.model.steps) > 1
            blocks.append(model.model[:-1].transform(rows) if steps else rows)
            targets += [] if y is None else [y]
            count(rows.shape[0])
    if not targets:
        raise Refusal(f"{source.path} has no targets; name them with --target.", ExitCode.DATA)
    series = model.targets(targets, source, str(target))
    known = np.isin(series.to_numpy(), model.model.classes_)
    if hasattr(blocks[0], "tocsr"):
        from scipy import sparse

        X = sparse.vstack(blocks, format="csr")
    else:
        X = np.concatenate([np.asarray(block) for block in blocks])
    return X[series.index.to_numpy()[known]], series.to_numpy()[known]
