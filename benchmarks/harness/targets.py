"""What was asked, what was measured, and whether that is enough: a line for each wish."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.report import MISSING, Table, number

Line = list[str]


def line(asked: str, measured: str, met: bool | None) -> Line:
    return [asked, measured, MISSING if met is None else ("yes" if met else "no")]


def judged(met: bool, whole: bool) -> bool | None:
    """What is missed is missed; what is met so far counts when all of it is measured."""
    return met if whole or not met else None


def enough(met: float, unknown: float, least: float) -> bool | None:
    """Whether so many are met; what is not measured may still be met."""
    return True if met >= least else None if met + unknown >= least else False


def least_line(asked: str, reached: float | None, least: float, unit: str) -> Line:
    """One figure that shall be at least something."""
    met = None if reached is None else reached >= least
    return line(asked, number(reached, unit=unit), met)


def count_line(
    asked: str, wrong: Sequence[str], seen: int, whole: int, what: str = "", sign: str = "not"
) -> Line:
    """How many of the places seen are right; those that are wrong are told."""
    measured = f"{seen - len(wrong)} of {whole}{what}" if seen else MISSING
    measured += f"; {whole - seen} not measured" if 0 < seen < whole else ""
    measured += f"; {sign}: " + "; ".join(wrong) if wrong else ""
    return line(asked, measured, judged(not wrong, seen == whole))


def asked_table(rows: Sequence[Line], notes: Sequence[str] = ()) -> Table:
    return Table("What was asked", ["asked", "measured", "met"], rows, notes)
