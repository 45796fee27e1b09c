"""Streams of generated rows: how many, in how many blocks, with which kernel."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.harness.datasets import NOTHING
from benchmarks.harness.runner import Measurement

OURS = "widemargin.CoreVectorDescription"
TASK = "benchmarks.stream.task.measure"
KERNELS = {"linear": {}, "rbf": {"gamma": 0.01}}
EPSILON = 0.01
N_FEATURES = 10
BLOCKS = 100
FULL_ROWS = 10_000_000
QUICK_ROWS = 50_000


@dataclass(frozen=True)
class Stream(Measurement):
    """A stream of normal rows in blocks of one size."""

    n_rows: int = FULL_ROWS
    n_blocks: int = BLOCKS
    n_features: int = N_FEATURES


def measurements(quick: bool) -> list[Stream]:
    rows = QUICK_ROWS if quick else FULL_ROWS
    return [
        Stream(
            kernel,
            NOTHING,
            OURS,
            {"C": None, "kernel": kernel, "epsilon": EPSILON, **given},
            task=TASK,
            n_rows=rows,
        )
        for kernel, given in KERNELS.items()
    ]
