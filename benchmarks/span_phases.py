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
from unittest import mock

REST = "rest"
CHECKING, ROWS = "checking input", "preparing rows"
VECTORS, KERNEL = "choosing vectors, basis", "kernel values"
SUM, FACTOR, SOLVE = "Newton matrices, sum", "Newton matrices, factor", "preconditioner solves"
PRODUCTS, GRADIENTS, LINE = "products", "gradients", "line searches"
BOUNDS, MOVING, PROOF = "lower bounds", "moving near rows to the front", "certificate"

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


@contextlib.contextmanager
def instrumented(watch: Stopwatch) -> Iterator[None]:
    """Every phase of a span fit is counted by the watch."""
    from widemargin import classifier, estimator
    from widemargin.span import choice, curvature, newton
    from widemargin.span.basis import Basis
    from widemargin.span.descent import Descent
    from widemargin.span.lower_bound import LowerBound
    from widemargin.span.problems import Problems
    from widemargin.span.values import KernelValues

    passes = [(Descent, "_multiply", PRODUCTS), (Descent, "_pull", GRADIENTS)]
    phases = [
        (estimator, "validate_data", CHECKING),
        (classifier.KernelClassifier, "_points", ROWS),
        (Basis, "extended", VECTORS),
        *((each, "draw", VECTORS) for each in vars(choice).values() if draws(each)),
        (Descent, "_line_search", LINE),
        (Problems, "advance", LINE),
        (curvature.Curvature, "solve", SOLVE),
        (Descent, "_whitened", BOUNDS),
        (LowerBound, "improved", BOUNDS),
        (newton.SpanFit, "_on_near_rows", MOVING),
        (newton, "rounding", PROOF),
        (newton, "full_dual", PROOF),
    ]
    work = [
        (KernelValues, "_block", "block"),
        (curvature.Curvature, "_sums", "sum"),
        (curvature, "_factorised", "factor"),
    ]
    scan = KernelValues.scan

    def counted_scan(values: Any, visit: Callable[..., Any], first: int, stop: int) -> Any:
        return scan(values, watch.work("visit", visit), first, stop)

    with contextlib.ExitStack() as stack:

        def patch(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, wrapper))

        for owner, name, phase in phases:
            patch(owner, name, watch.phase(phase, getattr(owner, name)))
        for owner, name, phase in passes:
            shares = {"block": KERNEL, "visit": phase}
            patch(owner, name, watch.phase(phase, getattr(owner, name), shares))
        form = watch.phase(SUM, curvature.Curvature.form, {"sum": SUM, "factor": FACTOR})
        patch(curvature.Curvature, "form", form)
        for owner, name, kind in work:
            patch(owner, name, watch.work(kind, getattr(owner, name)))
        patch(KernelValues, "scan", counted_scan)
        yield


def draws(item: Any) -> bool:
    """Whether it is a class of `span.choice` with a ``draw`` of its own."""
    return isinstance(item, type) and "draw" in vars(item) and not getattr(item, "_is_protocol", 0)
