"""The ball of a stream: its plan, its task and its table."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.harness import datasets
from benchmarks.stream.plan import FULL_ROWS, KERNELS, measurements
from benchmarks.stream.tables import stream_table
from benchmarks.stream.task import blocks, measure
from tests.benchmarks.trial import as_read


def small(kernel=0):
    """A stream of few rows, as a child process gets it."""
    planned = measurements(quick=True)[kernel]
    planned = dataclasses.replace(planned, n_rows=12_000, n_blocks=20, n_features=4)
    return dataclasses.asdict(planned) | {"threads": 1}


def test_every_kernel_is_planned_at_full_size():
    planned = measurements(quick=False)
    assert [each.label for each in planned] == list(KERNELS)
    assert all(each.n_rows == FULL_ROWS and each.n_blocks == 100 for each in planned)


def test_blocks_are_of_one_size_and_the_same_again():
    once, again = list(blocks(small())), list(blocks(small()))
    assert [block.shape for block in once] == [(600, 4)] * 20
    assert all((a == b).all() for a, b in zip(once, again, strict=True))
    assert (once[0] != once[1]).all()


@pytest.mark.parametrize("kernel", range(len(KERNELS)))
def test_the_task_fills_its_table(kernel):
    spec = small(kernel)
    kept = []
    found = measure(spec, datasets.load("generated"), kept.append)
    assert "radius" in kept[0] and found["n_waiting"] <= 4096 < found["n_train"]
    assert found["radius"] <= (1 + found["eps"]) * found["batch_radius"] * (1 + 1e-6)
    done = spec | {"status": "ok", "message": ""} | as_read(found)
    late = spec | {"status": "timeout", "message": "late"}
    table = stream_table([done, late])
    assert len(table.rows[0]) == len(table.header) == len(table.rows[1])
    assert table.rows[0][1] == "12000" or table.rows[0][1] == "12,000"
    assert "timeout" in table.rows[1]
