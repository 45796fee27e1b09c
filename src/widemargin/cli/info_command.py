"""``widemargin info``: what is in a model file."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from widemargin.cli.model_rows import open_model
from widemargin.cli.voice import Voice, amount_of

__all__ = ["info"]


def info(arguments: Namespace, voice: Voice) -> None:
    """Run the command."""
    path = Path(arguments.model)
    file = open_model(path, voice)
    machine = getattr(file.machine, "best_estimator_", file.machine)
    vectors = getattr(machine, "support_vectors_", getattr(machine, "expansion_vectors_", None))
    certificate = getattr(file.machine, "certificate_", None)
    facts: dict[str, Any] = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "task": file.task,
        "estimator": type(file.machine).__name__,
        "parameters": {k: v for k, v in machine.get_params(deep=False).items() if v is not None},
        "features": file.n_features,
        "vectors": None if vectors is None else int(vectors.shape[0]),
        "classes": list(getattr(file.machine, "classes_", [])),
        "certificate": None if certificate is None else asdict(certificate),
        "fit": file.about,
    }
    voice.result(facts, _lines(facts, None if certificate is None else str(certificate)))


def _lines(facts: dict[str, Any], certificate: str | None) -> list[str]:
    about = facts["fit"]
    changed = ", ".join(f"{key}={value!r}" for key, value in facts["parameters"].items())
    lines = [
        f"{facts['file']}: {facts['estimator']} for {facts['task']}, {amount_of(facts['bytes'])}",
        f"parameters: {changed}",
        f"reads {facts['features']} columns",
    ]
    if facts["vectors"] is not None:
        lines.append(f"vectors: {facts['vectors']:,}")
    if facts["classes"]:
        names = [str(each) for each in facts["classes"]]
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        lines.append(f"{len(names)} classes: {', '.join(names[:12])}{more}")
    if about:
        lines.append(
            f"fitted to {about.get('rows', 0):,} rows of {about.get('source')} in "
            f"{about.get('seconds', 0.0):.2f} s by widemargin {about.get('widemargin')}, "
            f"{about.get('when')}"
        )
        scores = ", ".join(f"{k} {v:.4g}" for k, v in about.get("scores", {}).items())
        lines.append(f"on {about.get('scored_on')}: {scores}")
        if about.get("kind") == "table":
            lines.append(f"numbers: {', '.join(about['numbers'][:20]) or 'none'}")
            lines.append(f"categories: {', '.join(about['categories'][:20]) or 'none'}")
    if certificate is not None:
        lines.append(f"certificate: {certificate}")
    return lines
