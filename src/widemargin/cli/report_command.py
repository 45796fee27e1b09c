"""``widemargin report``: a page about a model, written from rows of a file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import widemargin
from widemargin.cli.matrix_files import Matrix
from widemargin.cli.model_rows import ModelFile, open_data, open_model
from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.table_files import Table
from widemargin.cli.voice import Voice

__all__ = ["report"]

# Rows of the file that are kept for the page, at the most.
_MOST_ROWS = 20_000


def report(arguments: Namespace, voice: Voice) -> None:
    """Run the command."""
    out = Path(arguments.out)
    if not out.parent.is_dir():
        raise Refusal(f"--out {out}: there is no folder {out.parent}.", ExitCode.FILE)
    if out.suffix.lower() not in (".html", ".htm"):
        raise Refusal(f"--out {out}: a report is a .html file.", ExitCode.FILE)
    model = open_model(Path(arguments.model), voice)
    source = open_data(model, arguments, voice)
    X, y = _rows(model, source, arguments, voice)
    voice.note(f"Looking at {X.shape[0]:,} rows.")
    text = widemargin.report(
        model.model,
        X,
        y,
        title=arguments.title or f"{arguments.data}: a report",
        image_shape=_image(arguments, model, source),
        learning_curve=arguments.learning_curve,
        max_time=arguments.max_time,
        random_state=arguments.seed,
    )
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refusal(f"--out {out} cannot be written: {error.strerror}.", ExitCode.FILE) from None
    facts: dict[str, Any] = {"out": str(out), "rows": int(X.shape[0]), "bytes": out.stat().st_size}
    voice.result(
        facts, [f"Written: {out} ({facts['bytes'] / 1000:,.0f} kB). Open it in a browser."]
    )


def _rows(
    model: ModelFile, source: Table | Matrix, arguments: Namespace, voice: Voice
) -> tuple[Any, Any]:
    """Return rows as the model reads them and their targets, a random part of very many."""
    target = model.target(arguments.target, source, needed=model.task != "outliers")
    random = np.random.default_rng(arguments.seed)
    blocks: list[Any] = []
    targets: list[pd.Series] = []
    keys = np.empty(0)
    with voice.counting("reading") as count:
        for rows, y in model.blocks(source, target, voice):
            blocks.append(rows)
            targets += [] if y is None else [y]
            keys = np.concatenate([keys, random.random(rows.shape[0])])
            if len(keys) > 2 * _MOST_ROWS:
                best = np.sort(np.argpartition(keys, _MOST_ROWS)[:_MOST_ROWS])
                blocks, keys = [_taken(_joined(blocks), best)], keys[best]
                targets = [pd.concat(targets).iloc[best]] if targets else []
            count(rows.shape[0])
    X = _joined(blocks)
    if not targets:
        if model.task != "outliers":
            raise Refusal(
                f"{source.path} has no targets to compare with; name them with --target.",
                ExitCode.DATA,
            )
        return X, None
    # By place, since only some of the file's rows may be here.
    every = pd.concat(targets)
    there = np.flatnonzero(every.notna().to_numpy())
    y = model.targets([every], source, str(target)).to_numpy()
    if len(there) < X.shape[0]:
        voice.note(f"{X.shape[0] - len(there):,} rows have no target and are left out.")
        X = _taken(X, there)
    return X, y


def _joined(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], pd.DataFrame):
        return pd.concat(blocks)
    return sparse.vstack(blocks, "csr") if sparse.issparse(blocks[0]) else np.concatenate(blocks)


def _taken(X: Any, index: Any) -> Any:
    return X.iloc[index] if isinstance(X, pd.DataFrame) else X[index]


def _image(
    arguments: Namespace, model: ModelFile, source: Table | Matrix
) -> tuple[int, ...] | None:
    """Return the shape of rows that are pictures: by the option, the data, or the model."""
    if arguments.image is not None:
        try:
            shape = tuple(int(side) for side in arguments.image.lower().split("x"))
        except ValueError:
            shape = ()
        if len(shape) not in (2, 3) or np.prod(shape) != model.n_features or min(shape) < 1:
            raise Refusal(
                f"--image {arguments.image} must be the shape of a row, such as 28x28; rows have "
                f"{model.n_features} columns.",
                ExitCode.USAGE,
            )
        return shape
    found = source.picture if isinstance(source, Matrix) else None
    found = found or model.about.get("picture")
    good = found is not None and (len(found) == 2 or (len(found) == 3 and found[2] == 3))
    return tuple(found) if good and found is not None else None
