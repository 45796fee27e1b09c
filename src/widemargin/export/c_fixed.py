"""C99 source with whole numbers only, for processors without floating point.

A row comes as 16-bit integers: features times ``NAME_UNIT``. Decision values go out as 32-bit
integers, in units of 1/``NAME_ONE`` each. Inside,

    distances are exact sums in 64 bits;
    exp(−γ d) = 2^(−t), t = γ d / ln 2 with 16 bits behind the point: a shift by the whole part of
    t, and a table of 64 steps with straight lines between for the rest (an error of 2e-5);
    1 / (γ d + 1) is a division;
    coefficients have 16 bits, and sums 64.

The unit is the largest power of two with which four times the largest entry of a vector fits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.export.blueprint import Blueprint, Classes, Inside, InsideBall, Numbers
from widemargin.export.c_answers import finished, prediction, returned_type, told_classes
from widemargin.export.c_sums import Sums
from widemargin.export.c_text import array

# Vectors take a quarter of the range of 16 bits: rows may be farther out.
_LARGEST = 8191
# Bits of kernel values, and behind the point of exponents.
_BITS = 16
_STEPS = 64

_POWER_OF_TWO = """
/* 2^(-t / 65536), in 1/65536. */
static uint32_t power_of_two(uint64_t t)
{
    const uint32_t whole = (uint32_t)(t >> 16), rest = (uint32_t)t & 65535u;
    const uint32_t step = rest >> 10, part = rest & 1023u;
    const uint32_t high = table[step], low = table[step + 1];
    return t >= ((uint64_t)32 << 16) ? 0 : (high - (((high - low) * part) >> 10)) >> whole;
}
"""


def fixed_point_source(blueprint: Blueprint, sums: Sums, name: str) -> str:
    """Return the source of a model in whole numbers, or say why it cannot be."""
    _check(blueprint, sums)
    plan = _Plan(blueprint, sums)
    return plan.head(name) + plan.arrays() + plan.functions(name)


def _check(blueprint: Blueprint, sums: Sums) -> None:
    known = ("rbf", "laplacian", "inverse_squared_distance", "linear")
    if sums.kernel.name not in known:
        raise TypeError(
            f"fixed_point=True is not there for kernel={sums.kernel.name!r}; use one of "
            f"{', '.join(repr(each) for each in known)}, or fixed_point=False."
        )
    if blueprint.scale is not None:
        raise TypeError(
            "fixed_point=True takes rows as they are, but this model scales their columns; fit it "
            "with scale='none' to scaled rows, or use fixed_point=False."
        )
    if blueprint.row_map is not None:
        raise TypeError(
            f"fixed_point=True takes rows as they are, but this {blueprint.name} maps them first, "
            "by its scale or metric; fit it without both to rows that are scaled before, or use "
            "fixed_point=False."
        )
    if isinstance(blueprint.answer, InsideBall) and sums.kernel.constant_diagonal is None:
        raise TypeError(
            f"fixed_point=True is not there for a ball with kernel={sums.kernel.name!r}; use "
            "kernel='rbf', or fixed_point=False."
        )


class _Plan:
    """The scales of all numbers, and the text that follows from them.

    A constant C is stored as mantissa · 2^(−shift), the mantissa of 15 bits.
    """

    def __init__(self, blueprint: Blueprint, sums: Sums) -> None:
        self.blueprint, self.sums = blueprint, sums
        largest = float(np.abs(sums.vectors).max()) or 1.0
        # For planes, the entries of which are weights, rows have a unit of their own.
        self.linear = sums.kernel.name == "linear"
        if self.linear:
            rows = max(float(np.abs(blueprint.machine.vectors).max()), 1e-30)
            self.unit_bits = _power_below(_LARGEST / rows)
            self.vector_bits = _power_below(32767 / largest)
        else:
            self.unit_bits = self.vector_bits = _power_below(_LARGEST / largest)
        coef = 1.0 if self.linear else float(np.abs(sums.coef).max()) or 1.0
        self.coef_bits = _power_below(32767 / coef)
        size = self._size()
        # Decision values fit into 32 bits with room.
        exact = self.unit_bits + self.vector_bits if self.linear else _BITS + self.coef_bits
        self.one_bits = min(_power_below(2.0**29 / size), exact)

    def _size(self) -> float:
        """Return a bound on decision values of rows in the range."""
        sums = self.sums
        bias = float(np.abs(sums.intercept).max(initial=0.0))
        bias += float(np.abs(self._offsets()).max(initial=0.0))
        if self.linear:
            reach = 32768.0 / 2.0**self.unit_bits
            return bias + reach * float(np.abs(sums.vectors).sum(axis=1).max()) + 1e-30
        weight = np.abs(sums.coef)
        return bias + 2.0 * float(weight.sum(axis=0).max()) + 1e-30

    def head(self, name: str) -> str:
        sums, answer, upper = self.sums, self.blueprint.answer, name.upper()
        returned = returned_type(answer, "int32_t")
        more = ", int32_t *out" if returned == "void" else ""
        lines = [
            f"/* {self.blueprint.name} of widemargin in whole numbers: {len(sums.vectors)} vectors "
            f"of {self.blueprint.n_features} features, kernel {sums.kernel.name}.",
            " *",
            f" *   void {name}_decision(const int16_t *x, int32_t *values);",
            f" *   {returned} {name}_predict(const int16_t *x{more});",
            " *",
            f" * x[i] is feature i times {upper}_UNIT, rounded and within 16 bits; a decision",
            f" * value is to be divided by {upper}_ONE.",
            *told_classes(answer),
            " */",
            "#include <stdint.h>",
            "",
            f"#define {upper}_UNIT {2.0**self.unit_bits!r}",
            f"#define {upper}_ONE {2.0**self.one_bits!r}",
            f"#define {upper}_FEATURES {self.blueprint.n_features}",
            f"#define {upper}_VALUES {sums.n_functions}",
            f"#define FEATURES {self.blueprint.n_features}",
            f"#define VECTORS {len(sums.vectors)}",
            f"#define FUNCTIONS {sums.n_functions}",
        ]
        if isinstance(answer, Classes):
            lines.append(f"#define CLASSES {len(answer.classes)}")
        return "\n".join(lines) + "\n"

    def arrays(self) -> str:
        sums = self.sums
        vectors = np.rint(sums.vectors * 2.0**self.vector_bits).astype(np.int64)
        bias = np.rint(self._bias() * 2.0**self.one_bits).astype(np.int64)
        parts = [
            array("int16_t", "vectors", vectors, "[VECTORS][FEATURES]"),
            array("int32_t", "intercept", bias, "[FUNCTIONS]"),
        ]
        coef = np.rint(sums.coef * 2.0**self.coef_bits).astype(np.int64)
        if sums.function is None:
            parts.append(array("int16_t", "coef", coef, "[VECTORS][FUNCTIONS]"))
        elif not self.linear:
            parts.append(array("int16_t", "coef", coef, "[VECTORS]"))
            if sums.n_functions > 1:
                kind = "uint8_t" if sums.n_functions <= 256 else "uint16_t"
                parts.append(array(kind, "of_function", sums.function, "[VECTORS]"))
        if sums.kernel.name in ("rbf", "laplacian"):
            steps = np.rint(65536.0 * 2.0 ** (-np.arange(_STEPS + 1) / _STEPS)).astype(np.int64)
            parts.append(array("uint32_t", "table", steps, f"[{_STEPS + 1}]"))
        offsets = np.rint(self._offsets() * 2.0**self.one_bits).astype(np.int64)
        if len(offsets):
            parts.append(array("int32_t", "offsets", offsets, "[FUNCTIONS]"))
        return "".join(parts)

    def _offsets(self) -> Vector:
        """Return what a calibration adds to the answer, nothing where there is none."""
        found: Vector | None = getattr(self.blueprint.answer, "offsets", None)
        return np.zeros(0) if found is None else found

    def _bias(self) -> Any:
        """Return what is added to the sums; offsets of detectors are folded in."""
        answer, bias = self.blueprint.answer, np.asarray(self.sums.intercept, dtype=np.float64)
        if isinstance(answer, Inside):
            return bias - answer.offset
        if isinstance(answer, InsideBall):
            # R² − (1 − 2 f + ‖c‖²), whose coefficients are doubled by a shift less.
            return bias - answer.offset - answer.norm2 - 1.0
        return bias

    def functions(self, name: str) -> str:
        text = "" if self.linear else self._kernel()
        text += self._decision(name)
        return text + prediction(
            self.blueprint.answer,
            self.sums.n_functions,
            f"{name}_predict",
            f"{name}_decision",
            row="const int16_t *x",
            kind="int32_t",
        )

    def _kernel(self) -> str:
        kernel: Any = self.sums.kernel
        squared = kernel.name != "laplacian"
        # Of the sum in units of the rows to the exponent in 1/65536, or γ d in 1/65536.
        factor = kernel.gamma / 2.0 ** ((2 if squared else 1) * self.unit_bits)
        exponential = kernel.name in ("rbf", "laplacian")
        factor *= 2.0**_BITS / (math.log(2.0) if exponential else 1.0)
        shift = 14 - math.floor(math.log2(factor)) if factor > 0 else 0
        shift = min(max(shift, 0), 62)
        mantissa = round(factor * 2.0**shift)
        limit = (2**63 - 1) // max(mantissa, 1)
        added = "apart * apart" if squared else "apart < 0 ? -apart : apart"
        # What is beyond the range is so far away that the kernel is nothing.
        clipped = f"if (sum > {limit}ULL)\n        sum = {limit}ULL;" if limit < 2**44 else ""
        returned = (
            "power_of_two(sum)"
            if exponential
            else "(uint32_t)(((uint64_t)1 << 32) / (sum + 65536u))"
        )
        text = _POWER_OF_TWO if exponential else ""
        return (
            text
            + f"""
/* The kernel, in 1/65536. */
static uint32_t kernel(const int16_t *x, const int16_t *z)
{{
    uint64_t sum = 0;
    int i;
    for (i = 0; i < FEATURES; i++) {{
        const int64_t apart = (int64_t)x[i] - z[i];
        sum += (uint64_t)({added});
    }}
    {clipped}
    sum = (sum * {mantissa}ULL) >> {shift};
    return {returned};
}}
"""
        )

    def _decision(self, name: str) -> str:
        answer = self.blueprint.answer
        shared = self.sums.function is None and self.sums.n_functions > 1
        after = finished(answer, "int32_t") if isinstance(answer, Numbers) else ""
        return f"""
void {name}_decision(const int16_t *x, int32_t *values)
{{
{"    int64_t totals[FUNCTIONS] = {0};" if shared else ""}
    int j, p;
{self._each_value_once() if shared else self._each_function()}
{after}}}
"""

    def _rounded(self, total: str) -> str:
        """Return a sum in the unit of decision values, with its bias."""
        bits = self.unit_bits + self.vector_bits if self.linear else _BITS + self.coef_bits
        twice = "2 * " if isinstance(self.blueprint.answer, InsideBall) else ""
        unit = f"((int64_t)1 << {bits - self.one_bits})"
        return f"(int32_t)({twice}{total} / {unit}) + intercept[p]"

    def _each_function(self) -> str:
        """Return the sums of functions that share no vector."""
        count, term, own = "VECTORS", "(int64_t)coef[j] * kernel(x, vectors[j])", ""
        if self.linear:
            count, term = "FEATURES", "(int32_t)x[j] * vectors[p][j]"
        elif self.sums.function is None:
            term = "(int64_t)coef[j][p] * kernel(x, vectors[j])"
        elif self.sums.n_functions > 1:
            own = "if (of_function[j] == p)"
        return f"""    for (p = 0; p < FUNCTIONS; p++) {{
        int64_t total = 0;
        for (j = 0; j < {count}; j++)
            {own}
                total += {term};
        values[p] = {self._rounded("total")};
    }}"""

    def _each_value_once(self) -> str:
        """Return the sums of functions that share vectors."""
        return f"""    for (j = 0; j < VECTORS; j++) {{
        const int64_t value = kernel(x, vectors[j]);
        for (p = 0; p < FUNCTIONS; p++)
            totals[p] += coef[j][p] * value;
    }}
    for (p = 0; p < FUNCTIONS; p++)
        values[p] = {self._rounded("totals[p]")};"""


def _power_below(value: float) -> int:
    """Return the largest whole power of two that is at most a value."""
    return math.floor(math.log2(value))
