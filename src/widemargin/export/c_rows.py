"""What is done to a row before the functions of a model see it, in C.

FEATURES are the columns that the functions see, COLUMNS those of the rows that are given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.base.unlabelled import ColumnScale
from widemargin.export.blueprint import FARTHEST, Blueprint
from widemargin.export.c_text import array, number
from widemargin.rows import RowMap


@dataclass(frozen=True)
class PreparedRow:
    """The text that prepares a row.

    Attributes
    ----------
    name : str
        What the prepared row is called.
    arrays : str
        Constants.
    declared : str
        Declarations of variables.
    statements : str
        What computes it, with the counters j and p.
    needs_root : bool
        Whether a function for roots is called.
    """

    name: str = "x"
    arrays: str = ""
    declared: str = ""
    statements: str = ""
    needs_root: bool = False


def prepared_row(blueprint: Blueprint) -> PreparedRow:
    """Return how a row is prepared for the functions of a model."""
    if blueprint.scale is not None:
        return _scaled(blueprint.scale)
    return PreparedRow() if blueprint.row_map is None else _mapped(blueprint.row_map)


def _within(name: str, bound: float) -> str:
    """Return the statements that let a number be no farther from zero than a bound."""
    most = number(bound)
    return f"""
        if ({name} > {most})
            {name} = {most};
        if ({name} < -{most})
            {name} = -{most};"""


def _scaled(scale: ColumnScale) -> PreparedRow:
    clip = _within("scaled[j]", float(scale.most)) if np.isfinite(scale.most) else ""
    return PreparedRow(
        "scaled",
        array("float", "center", scale.center, "[FEATURES]")
        + array("float", "inverse_spread", 1 / scale.spread, "[FEATURES]"),
        "    float scaled[FEATURES];\n",
        f"""    for (j = 0; j < FEATURES; j++) {{
        scaled[j] = (x[j] - center[j]) * inverse_spread[j];{clip}
    }}
""",
    )


def _mapped(row_map: RowMap) -> PreparedRow:
    """Return bent((x − center) ∘ factor) A, as `RowMap` does."""
    arrays = array("float", "center", row_map.center, "[COLUMNS]")
    arrays += array("float", "factor", row_map.factor, "[COLUMNS]")
    bent, before, kept = "", "", "mapped[j] = scaled;"
    finite = bool(np.isfinite(row_map.bend))
    if finite:
        part = number(1.0 / row_map.bend)
        bent = _within("scaled", FARTHEST * row_map.bend)
        bent += f"\n        scaled /= root(1.0f + scaled * {part} * scaled * {part});"
    if row_map.matrix is not None and row_map.matrix.ndim == 1:
        arrays += array("float", "weight", row_map.matrix, "[COLUMNS]")
        kept = "mapped[j] = scaled * weight[j];"
    elif row_map.matrix is not None:
        arrays += array("float", "matrix", row_map.matrix, "[COLUMNS][FEATURES]")
        before = """    for (p = 0; p < FEATURES; p++)
        mapped[p] = 0.0f;
"""
        kept = """for (p = 0; p < FEATURES; p++)
            mapped[p] += scaled * matrix[j][p];"""
    statements = f"""{before}    for (j = 0; j < COLUMNS; j++) {{
        float scaled = (x[j] - center[j]) * factor[j];{bent}
        {kept}
    }}
"""
    return PreparedRow("mapped", arrays, "    float mapped[FEATURES];\n", statements, finite)
