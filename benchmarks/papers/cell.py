"""What a paper prints and what we have for it: cells of tables, and pictures.

A cell is *met* where ours is as good, or worse by no more than the tolerance of its kind: half a
point of accuracy or error, a factor of 1.2 of a size or of a ratio of times. Times are compared as
ratios to the same baseline, LIBSVM or KernelPCA, never as seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.harness.records import Record

POINTS = 0.5
FACTOR = 1.2

ACCURACY, ERROR, SIZE, TIME = "accuracy", "error", "size", "time"
MET, SHORT, NOT_RUN = "met", "short", "not run"


@dataclass(frozen=True)
class Cell:
    """A figure of a paper and ours; ``ours`` is None where it was not run or did not finish."""

    paper: str
    table: str
    dataset: str
    method: str
    kind: str
    printed: float
    ours: float | None
    status: str = ""

    @property
    def verdict(self) -> str:
        if self.ours is None:
            return NOT_RUN
        good = {
            ACCURACY: self.ours >= self.printed - POINTS,
            ERROR: self.ours <= self.printed + POINTS,
            SIZE: self.ours <= FACTOR * self.printed,
            TIME: self.ours <= FACTOR * self.printed,
        }[self.kind]
        return MET if good else SHORT


def status_of(record: Record | None) -> str:
    return "" if record is None else str(record["status"])


@dataclass(frozen=True)
class Reason:
    """Why cells are short or were not run; patterns are those of a shell."""

    text: str
    paper: str
    table: str = "*"
    dataset: str = "*"
    method: str = "*"
    verdict: str = "*"
    status: str = "*"

    def fits(self, cell: Cell) -> bool:
        return all(
            fnmatchcase(getattr(cell, name), getattr(self, name))
            for name in ("paper", "table", "dataset", "method", "verdict", "status")
        )


@dataclass(frozen=True)
class Picture:
    """A figure of a paper, our PNG of it, what the paper claims with it, and whether that holds.

    ``file`` is a name in ``benchmarks/results``, "" where there is none; ``holds`` begins with
    "yes", "no" or "in part", or is the reason why it is not drawn.
    """

    figure: str
    file: str
    claim: str
    holds: str
