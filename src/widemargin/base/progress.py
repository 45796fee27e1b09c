"""A bar that shows how far a search is."""

from __future__ import annotations

import sys
from time import perf_counter

_CELLS = 24


class ProgressBar:
    """A line that is written over, or in a file a line for each part that is done.

    Parameters
    ----------
    name : str
        What it is the progress of.
    total : float
        How much there is to do.
    shown : bool, default=True
        Whether anything is printed.
    """

    def __init__(self, name: str, total: float, shown: bool = True) -> None:
        self.name = name
        self.total = total
        self.shown = shown
        self.done = 0.0
        self._said = ""
        self._started = perf_counter()
        self._over_itself = bool(getattr(sys.stdout, "isatty", lambda: False)())

    def advance(self, amount: float, said: str | None = None) -> None:
        """Show that some more is done; `said` stays on the line until something else is said."""
        self.done = min(self.total, self.done + amount)
        if not self.shown:
            return
        self._said = self._said if said is None else said
        if self._over_itself:
            print("\r" + self._line().ljust(100), end="", flush=True)
        elif said is not None:
            print(self._line(), flush=True)

    def close(self) -> None:
        """End the line."""
        if self.shown and self._over_itself and self.done:
            print(flush=True)

    def _line(self) -> str:
        share = self.done / self.total if self.total else 1.0
        full = round(share * _CELLS)
        spent = perf_counter() - self._started
        left = f", about {spent / share - spent:.1f} s left" if 0.0 < share < 1.0 else ""
        bar = "#" * full + "." * (_CELLS - full)
        said = f" {self._said};" if self._said else ""
        return f"[{self.name}] {bar} {share:4.0%}{said} {spent:.1f} s{left}"
