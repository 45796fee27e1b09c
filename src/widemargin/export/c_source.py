"""C99 source of a model that is a sum over few vectors.

No allocation, static constant arrays, no function of a library but ``expf`` where the kernel has an
exponential; a root is found by Newton's steps, tanh by ``expf``. Numbers are single precision.
`widemargin.export.c_fixed` has the arithmetic of whole numbers instead.

`widemargin.export.c_sums` says which numbers are stored.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.export.blueprint import (
    Blueprint,
    Classes,
    Inside,
    InsideBall,
    Numbers,
    blueprint_of,
)
from widemargin.export.c_answers import finished, prediction, returned_type, told_classes
from widemargin.export.c_fixed import fixed_point_source
from widemargin.export.c_rows import prepared_row
from widemargin.export.c_sums import Sums, stored
from widemargin.export.c_text import array, number
from widemargin.kernels import Kernel

# Statements that add one feature to `sum`, and what is returned when all are added.
_DIFFERENCE = "const float apart = x[i] - z[i];\n        sum += "
_SQUARE = _DIFFERENCE + "apart * apart;"
_PRODUCT = "sum += x[i] * z[i];"
_KERNELS = {
    "rbf": (_SQUARE, "expf(-{gamma} * sum)"),
    "laplacian": (_DIFFERENCE + "apart < 0.0f ? -apart : apart;", "expf(-{gamma} * sum)"),
    "exponential": (_SQUARE, "expf(-root({gamma} * sum))"),
    "inverse_distance": (_SQUARE, "1.0f / (root({gamma} * sum) + 1.0f)"),
    "inverse_squared_distance": (_SQUARE, "1.0f / ({gamma} * sum + 1.0f)"),
    "poly": (_PRODUCT, "power({gamma} * sum + {coef0})"),
    "sigmoid": (_PRODUCT, "1.0f - 2.0f / (expf(2.0f * ({gamma} * sum + {coef0})) + 1.0f)"),
    "normalized_poly": (_PRODUCT, "power(({gamma} * sum + {coef0}) * own_x * own_z)"),
    "cosine_power": (_PRODUCT, "power(sum * own_x * own_z)"),
    "linear": (_PRODUCT, "sum"),
}
_NORMALISED = ("normalized_poly", "cosine_power")

_ROOT = """
/* The square root by Newton's steps, which come from above. */
static float root(float v)
{
    float r = v > 1.0f ? v : 1.0f, next = 0.5f * (r + v / r);
    while (next < r) {
        r = next;
        next = 0.5f * (r + v / r);
    }
    return v > 0.0f ? r : 0.0f;
}
"""


def c_source(model: Any, *, name: str, fixed_point: bool) -> str:
    """Return the C source of a fitted model."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise ValueError(f"name={name!r} is no name in C; use letters, digits and underscores.")
    blueprint = blueprint_of(model)
    sums = stored(blueprint, _KERNELS)
    if fixed_point:
        return fixed_point_source(blueprint, sums, name)
    body = _functions(blueprint, sums, name)
    needs_exp = "expf(" in body
    return _head(blueprint, sums, name, needs_exp) + _arrays(blueprint, sums) + body


def _head(blueprint: Blueprint, sums: Sums, name: str, needs_exp: bool) -> str:
    upper, answer = name.upper(), blueprint.answer
    returned = returned_type(answer, "float")
    more = ", float *out" if returned == "void" else ""
    lines = [
        f"/* {blueprint.name} of widemargin: {len(sums.vectors)} vectors of "
        f"{blueprint.n_features} features, kernel {sums.kernel.name}.",
        " *",
        f" *   void {name}_decision(const float *x, float *values);",
        f" *   {returned} {name}_predict(const float *x{more});",
        *told_classes(answer),
        " */",
        "#include <math.h>" if needs_exp else "",
        "",
        f"#define {upper}_FEATURES {blueprint.n_features}",
        f"#define {upper}_VALUES {sums.n_functions}",
        f"#define FEATURES {sums.vectors.shape[1]}",
        f"#define VECTORS {len(sums.vectors)}",
        f"#define FUNCTIONS {sums.n_functions}",
        "",
    ]
    if blueprint.row_map is not None:
        lines.insert(-1, f"#define COLUMNS {blueprint.n_features}")
    if isinstance(answer, Classes):
        lines.insert(-1, f"#define CLASSES {len(answer.classes)}")
    return "\n".join(line for line in lines) + "\n"


def _arrays(blueprint: Blueprint, sums: Sums) -> str:
    parts = [
        array("float", "vectors", sums.vectors, "[VECTORS][FEATURES]"),
        array("float", "intercept", sums.intercept, "[FUNCTIONS]"),
    ]
    if sums.function is None:
        parts.append(array("float", "coef", sums.coef, "[VECTORS][FUNCTIONS]"))
    elif sums.kernel.name != "linear":
        parts.append(array("float", "coef", sums.coef, "[VECTORS]"))
        if sums.n_functions > 1:
            kind = "unsigned char" if sums.n_functions <= 256 else "unsigned short"
            parts.append(array(kind, "of_function", sums.function, "[VECTORS]"))
    if sums.kernel.name in _NORMALISED:
        parts.append(array("float", "own", _inverse_norms(sums), "[VECTORS]"))
    answer = blueprint.answer
    if isinstance(answer, Numbers) and answer.offsets is not None:
        parts.append(array("float", "offsets", answer.offsets, "[FUNCTIONS]"))
    return "".join(parts) + prepared_row(blueprint).arrays


def _inverse_norms(sums: Sums) -> Vector:
    gamma, coef0 = getattr(sums.kernel, "gamma", 1.0), getattr(sums.kernel, "coef0", 0.0)
    norms = np.sqrt(gamma * np.einsum("ij,ij->i", sums.vectors, sums.vectors) + coef0)
    inverse: Vector = np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)
    return inverse


def _functions(blueprint: Blueprint, sums: Sums, name: str) -> str:
    kernel, answer = sums.kernel, blueprint.answer
    text = ""
    rooted = ("exponential", "inverse_distance", *_NORMALISED)
    if kernel.name in rooted or prepared_row(blueprint).needs_root:
        text += _ROOT
    if kernel.name in ("poly", *_NORMALISED):
        text += _power(int(kernel.degree))  # type: ignore[attr-defined]
    text += _kernel_function(kernel)
    text += _decision(blueprint, sums, name)
    return text + _prediction(answer, sums, name)


def _power(degree: int) -> str:
    return f"""
static float power(float v)
{{
    float result = 1.0f;
    int i;
    for (i = 0; i < {degree}; i++)
        result *= v;
    return result;
}}
"""


def _kernel_function(kernel: Kernel) -> str:
    added, returned = _KERNELS[kernel.name]
    gamma, coef0 = (number(getattr(kernel, each, 0.0)) for each in ("gamma", "coef0"))
    more = ", float own_x, float own_z" if kernel.name in _NORMALISED else ""
    return f"""
static float kernel(const float *x, const float *z{more})
{{
    float sum = 0.0f;
    int i;
    for (i = 0; i < FEATURES; i++) {{
        {added}
    }}
    return {returned.format(gamma=gamma, coef0=coef0)};
}}
"""


def _decision(blueprint: Blueprint, sums: Sums, name: str) -> str:
    kernel, answer, row = sums.kernel, blueprint.answer, prepared_row(blueprint)
    rows, own, value = row.name, row.statements, "kernel({x}, vectors[j])"
    before = row.declared + "    int j, p;\n"
    if kernel.name in _NORMALISED:
        before = "    float own_x, square = 0.0f;\n" + before
        own += _own_norm(kernel, rows)
        value = "kernel({x}, vectors[j], own_x, own[j])"
    value = value.format(x=rows)
    if sums.function is None:
        add = f"""        const float value = {value};
        for (p = 0; p < FUNCTIONS; p++)
            values[p] += coef[j][p] * value;"""
    elif kernel.name == "linear":
        add = f"        values[j] += {value};"
    else:
        place = "of_function[j]" if sums.n_functions > 1 else "0"
        add = f"        values[{place}] += coef[j] * {value};"
    after = ""
    if isinstance(answer, Inside):
        after = f"    values[0] -= {number(answer.offset)};\n"
    elif isinstance(answer, InsideBall):
        after = _ball(answer, sums, rows)
        before += "    float length = 0.0f;\n" if "length" in after else ""
    elif isinstance(answer, Numbers):
        after = finished(answer, "float")
    return f"""
void {name}_decision(const float *x, float *values)
{{
{before}{own}    for (p = 0; p < FUNCTIONS; p++)
        values[p] = intercept[p];
    for (j = 0; j < VECTORS; j++) {{
{add}
    }}
{after}}}
"""


def _own_norm(kernel: Kernel, rows: str) -> str:
    gamma, coef0 = getattr(kernel, "gamma", 1.0), getattr(kernel, "coef0", 0.0)
    return f"""    for (j = 0; j < FEATURES; j++)
        square += {rows}[j] * {rows}[j];
    square = root({number(gamma)} * square + {number(coef0)});
    own_x = square > 0.0f ? 1.0f / square : 0.0f;
"""


def _ball(answer: InsideBall, sums: Sums, rows: str) -> str:
    """Return R² − (k(x, x) − 2 f + ‖c‖²)."""
    kernel: Any = sums.kernel
    constant = kernel.constant_diagonal
    rest = -answer.offset - answer.norm2
    if constant is not None:
        return f"    values[0] = 2.0f * values[0] + {number(rest - constant)};\n"
    diagonal = {
        "linear": "length",
        "poly": f"power({number(getattr(kernel, 'gamma', 1.0))} * length + "
        f"{number(getattr(kernel, 'coef0', 0.0))})",
        "sigmoid": f"kernel({rows}, {rows})",
    }.get(kernel.name, "(length > 0.0f ? 1.0f : 0.0f)")
    return f"""    for (j = 0; j < FEATURES; j++)
        length += {rows}[j] * {rows}[j];
    values[0] = 2.0f * values[0] + {number(rest)} - {diagonal};
"""


def _prediction(answer: Any, sums: Sums, name: str) -> str:
    """Return the function that gives the answer."""
    return prediction(
        answer,
        sums.n_functions,
        f"{name}_predict",
        f"{name}_decision",
        row="const float *x",
        kind="float",
    )
