"""Memory and traffic while something runs: of this process, or of the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

PERIOD = 0.05
MEGABYTE = 1e6


def status_bytes(pid: int, field: str) -> int:
    """A line of the status that Linux keeps of a process; 0 where there is none."""
    try:
        found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


def cpu_seconds(pid: int) -> float:
    """Seconds that the threads of a process have computed so far; 0 where nobody knows."""
    try:
        # What stands before the last bracket is the name, which may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loopback_bytes() -> int:
    """Bytes that processes of this machine have sent to each other over its own network."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return 0
    found = [line.split(":")[1].split() for line in lines if line.strip().startswith("lo:")]
    return int(found[0][0]) if found else 0


class Watch:
    """Peaks of the memory of processes, from entering it to leaving it.

    ``resident`` is what Linux calls VmHWM: all pages, with those of files that were read through a
    memory map and that the system can take back at any time. ``anonymous`` (RssAnon) is without
    those, and is sampled: a peak shorter than the period may be missed.
    """

    def __init__(self, pids: Sequence[int] | None = None) -> None:
        self.pids = [os.getpid()] if pids is None else list(pids)
        self.anonymous = dict.fromkeys(self.pids, 0)
        self.together = 0
        self.moved = 0
        self.computed = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        for pid in self.pids:
            # Forget the high-water mark of what was done before.
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.moved = loopback_bytes()
        self.computed = -sum(map(cpu_seconds, self.pids))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._look()
        self.moved = loopback_bytes() - self.moved
        self.computed += sum(map(cpu_seconds, self.pids))
        self.resident = {pid: status_bytes(pid, "VmHWM") for pid in self.pids}

    def _run(self) -> None:
        while not self._end.wait(PERIOD):
            self._look()

    def _look(self) -> None:
        now = {pid: status_bytes(pid, "RssAnon") for pid in self.pids}
        self.together = max(self.together, sum(now.values()))
        for pid, held in now.items():
            self.anonymous[pid] = max(self.anonymous[pid], held)

    def found(self) -> dict[str, float]:
        """Megabytes of 10⁶ bytes: the largest process, and all of them together."""
        return {
            "resident_mb": max(self.resident.values()) / MEGABYTE,
            "anonymous_mb": max(self.anonymous.values()) / MEGABYTE,
            "all_resident_mb": sum(self.resident.values()) / MEGABYTE,
            "all_anonymous_mb": self.together / MEGABYTE,
            "moved_mb": self.moved / MEGABYTE,
            "cpu_seconds": self.computed,
        }
