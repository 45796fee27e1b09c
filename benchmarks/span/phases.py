"""Where the time of a span fit goes: its methods, wrapped from outside.

Wall time is counted on the thread that fits, for the innermost phase. Some phases wait for worker
threads that do two things; their wall time is divided in proportion to what the workers spent on
each. So the phases add up to the fit, with a rest that belongs to none.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

REST = "rest"
CHECKING = "checking input"
ROWS = "preparing rows"
VECTORS = "choosing vectors, basis"
KERNEL = "kernel values"
SUM = "Newton matrices, sum"
FACTOR = "Newton matrices, factor"
SOLVE = "preconditioner solves"
PRODUCTS = "products"
GRADIENTS = "gradients"
LINE = "line searches"
BOUNDS = "lower bounds"
MOVING = "moving near rows to the front"
PROOF = "certificate"

PHASES = {
    CHECKING: "`validate_data`",
    ROWS: "distinct rows, their moments",
    VECTORS: "`Choice.draw`, `Basis.extended`",
    KERNEL: "K(X, Z), computed while it is used",
    SUM: "matrices of rows inside the margin",
    FACTOR: "their Cholesky factors",
    PRODUCTS: "scores, and changes of scores along directions",
    GRADIENTS: "slopes of the loss, and their products with the kernel values",
    LINE: "and the scores after a step",
    SOLVE: "`Curvature.solve`",
    BOUNDS: "the dual value of each step",
    MOVING: "once, at the end",
    PROOF: "`proof.rounding`, `proof.full_dual`",
    REST: "",
}


class Stopwatch:
    """Seconds and calls of each phase."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._clock = clock
        self._work: dict[str, float] = defaultdict(float)
        self._lock = threading.Lock()
        self._stack: list[str] = []
        self._thread, self._last = 0, 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count what is done inside; what is in no phase is the rest."""
        self._thread, self._last = threading.get_ident(), self._clock()
        with self._inside(REST):
            yield

    @contextlib.contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        self._charge()
        self._stack.append(name)
        try:
            yield
        finally:
            self._charge()
            self._stack.pop()

    def _charge(self) -> None:
        now = self._clock()
        if self._stack:
            self.seconds[self._stack[-1]] += now - self._last
        self._last = now

    def phase(
        self, name: str, function: Callable[..., Any], shares: Mapping[str, str] | None = None
    ) -> Callable[..., Any]:
        """The function, its time counted as ``name``.

        ``shares`` maps kinds of work (see `work`) to the phases among which it is divided.
        """
        shares = shares or {}

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if not self._stack or threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            self.calls[name] += 1
            wall, work = self.seconds[name], {kind: self._work[kind] for kind in shares}
            with self._inside(name):
                answer = function(*args, **kwargs)
            done = {shares[kind]: self._work[kind] - work[kind] for kind in shares}
            spent = self.seconds[name] - wall
            for target, part in divided(spent, done).items():
                self.seconds[name] -= part
                self.seconds[target] += part
            return answer

        return timed

    def work(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called in any thread, its time counted as a kind of work."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = self._clock()
            answer = function(*args, **kwargs)
            spent = self._clock() - start
            with self._lock:
                self._work[kind] += spent
            return answer

        return timed


def divided(spent: float, done: Mapping[str, float]) -> dict[str, float]:
    """``spent`` in proportion to what was done of each; nothing where nothing was done."""
    total = sum(done.values())
    return {name: spent * part / total for name, part in done.items()} if total > 0 else {}
