"""The memory that a user grants, and what "auto" makes of the memory that is free."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.rows import parse_memory
from widemargin.rows.memory import free_memory


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (5e8, 500_000_000),
        (np.int64(7), 7),
        ("12345", 12345),
        ("500MB", 500_000_000),
        ("500mb", 500_000_000),
        ("1GB", 10**9),
        ("2.5 GB", 2_500_000_000),
        (" 64 MiB ", 64 * 1024**2),
        ("1KiB", 1024),
        ("3K", 3000),
        ("2TiB", 2 * 1024**4),
        ("1e9", 10**9),
        ("10B", 10),
    ],
)
def test_memory_is_read_as_a_user_writes_it(text, size):
    assert parse_memory(text) == size
    assert isinstance(parse_memory(text), int)


@pytest.mark.parametrize(
    "bad",
    ["", "GB", "much", "1.2.3GB", "-1GB", "1 PB", "1GBs", "1 G B", "0", 0, -5, 0.5, float("nan")],
)
def test_what_is_no_amount_of_memory_is_refused_by_name_and_value(bad):
    with pytest.raises(ValueError, match="memory="):
        parse_memory(bad)


@pytest.mark.parametrize("bad", [float("inf"), "1e999", None, [1], {}])
def test_infinite_and_foreign_amounts_of_memory_are_refused_by_name_too(bad):
    with pytest.raises((ValueError, TypeError), match="memory="):
        parse_memory(bad)


def test_auto_is_half_of_what_is_free_within_a_factor():
    free = free_memory()
    assert free is not None
    assert parse_memory("auto") == pytest.approx(max(256e6, free / 2), rel=0.2)


def _machine(folder, groups="", files=None):
    """Write the files by which Linux tells of its memory: 8,000,000 kB are available."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    (folder / "proc/self/cgroup").write_text(groups)
    for name, text in (files or {}).items():
        path = folder / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_what_is_available_is_free(tmp_path):
    assert free_memory(_machine(tmp_path)) == 1024 * 8_000_000


def test_the_tightest_limit_of_the_groups_above_a_process_counts(tmp_path):
    files = {
        "jobs/memory.max": "3000000",
        "jobs/memory.current": "1500000",
        "jobs/memory.stat": "anon 1000000\ninactive_file 400000\n",
        "jobs/one/memory.max": "max",
        "jobs/one/memory.current": "1000",
        "jobs/one/memory.stat": "inactive_file 0\n",
        "others/memory.max": "10",
        "others/memory.current": "0",
        "others/memory.stat": "",
    }
    assert free_memory(_machine(tmp_path, "0::/jobs/one\n", files)) == 1_900_000


def test_limits_of_the_first_kind_of_groups_count_too(tmp_path):
    files = {
        "memory/memory.limit_in_bytes": "5000000",
        "memory/memory.usage_in_bytes": "6000000",
        "memory/memory.stat": "total_inactive_file 2000000\n",
    }
    groups = "3:cpu,cpuacct:/docker/x\n2:memory:/docker/x\n"
    assert free_memory(_machine(tmp_path, groups, files)) == 1_000_000


def test_without_such_files_half_of_what_is_built_in_is_free(tmp_path):
    free = free_memory(tmp_path)
    assert free is None or 1e8 < free < 1e14
