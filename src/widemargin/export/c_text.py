"""Numbers and arrays as text of C."""

from __future__ import annotations

from typing import Any

import numpy as np

# Numbers in a line of source.
_IN_A_LINE = 8


def number(value: float) -> str:
    """Return a number as a constant of single precision, to the last bit."""
    single = np.float32(value)
    if not np.isfinite(single):
        raise ValueError(
            f"the model holds the number {value!r}, which single precision cannot; scale the data."
        )
    text = repr(float(f"{single:.9g}"))
    return f"{text}f" if any(each in text for each in ".e") else f"{text}.0f"


def array(kind: str, name: str, values: Any, shape: str) -> str:
    """Return a static constant array, of numbers or of whole numbers."""
    values = np.asarray(values)
    whole = values.dtype.kind in "iu"
    rows = values.reshape(-1, values.shape[-1]) if values.ndim == 2 else values[None]
    lines = []
    for row in rows:
        texts = [str(int(each)) if whole else number(each) for each in row]
        parts = [", ".join(texts[i : i + _IN_A_LINE]) for i in range(0, len(texts), _IN_A_LINE)]
        inside = ",\n     ".join(parts)
        lines.append(f"    {{{inside}}}" if values.ndim == 2 else f"    {inside}")
    return f"\nstatic const {kind} {name}{shape} = {{\n" + ",\n".join(lines) + "\n};\n"
