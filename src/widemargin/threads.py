"""Threads that do not change the answer.

Work is cut into pieces whose number does not depend on the number of threads, BLAS runs one
thread inside each piece, and results come back in the order of the pieces. The bits of the answer
are then the same for any number of threads.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, islice
from numbers import Integral
from os import cpu_count
from threading import Condition, Lock, current_thread, local, main_thread
from typing import Any, TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_kept = local()


class _OneThreadForBlas:
    """BLAS has one limit for the whole process: the first who needs it sets it, the last lifts it.

    Fits in several threads would otherwise lift each other's limits, or restore what another fit
    had set.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limit: Any = None
        self.threads_before = 1

    def enter(self, libraries: ThreadpoolController, threads_before: int) -> None:
        with self._lock:
            if not self._users:
                self.threads_before = threads_before
                with _allowed_to_limit():
                    self._limit = libraries.select(user_api="blas").limit(limits=1)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                with _allowed_to_limit():
                    self._limit.restore_original_limits()

    @property
    def set(self) -> bool:
        return self._users > 0


_one_thread = _OneThreadForBlas()


@contextmanager
def _allowed_to_limit() -> Iterator[None]:
    """Let this thread set the limit of OpenBLAS, and any other one after it.

    New versions of threadpoolctl silently leave that to the thread that was the first to do it.
    """
    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    forget = getattr(openblas, "clear_controlling_thread", lambda force: None)
    forget(force=True)
    try:
        yield
    finally:
        forget(force=True)


class _Libraries:
    """The BLAS and OpenMP libraries of this process: a search that takes milliseconds."""

    def __init__(self) -> None:
        self._known: ThreadpoolController | None = None
        self._modules = 0

    def now(self) -> ThreadpoolController:
        """Return them; they are looked for again where modules have been imported since."""
        if self._known is None or len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self._known = ThreadpoolController()
        return self._known


_libraries = _Libraries()


def _threads_of(libraries: ThreadpoolController) -> int:
    return max([pool["num_threads"] for pool in libraries.info()], default=1)


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for.

    None means as many as BLAS would use if we did not limit it ourselves, which respects
    OMP_NUM_THREADS and the limits that joblib sets in its workers; −1 means all cores, −2 all but
    one, and so on.
    """
    if n_jobs is None:
        if _one_thread.set:
            return _one_thread.threads_before
        return _threads_of(_libraries.now())
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} must be a whole number or None.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning: use None, a positive number, or -1.")
    return int(n_jobs) if n_jobs > 0 else max(1, (cpu_count() or 1) + 1 + int(n_jobs))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread, so that our own threads decide."""
    libraries = _libraries.now()
    threads_before = _threads_of(libraries)
    # OpenMP has a limit for each thread that asks, and a BLAS that is built on it follows that.
    with libraries.select(user_api="openmp").limit(limits=1):
        _one_thread.enter(libraries, threads_before)
        try:
            yield
        finally:
            _one_thread.leave()


class Compiled:
    """A module of loops that Numba compiles, imported when it is first needed.

    Numba takes longer to import than most users of the package ever need it for. An interrupt in
    the middle of that would leave it half imported for the rest of the process, so it waits.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Return a compiled function."""
        with _interrupts_held_back():
            function = getattr(import_module(self._module), name)
        setattr(self, name, function)
        return function


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if it came inside."""
    handler = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(handler):
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        handler(*came[0])


@contextmanager
def threads_kept(threads: int) -> Iterator[None]:
    """Keep the threads of one `ordered_map` for the next, as long as this thread is inside.

    To start one takes a millisecond, which is as long as a small problem.
    """
    if threads <= 1 or getattr(_kept, "pool", None) is not None:
        yield
        return
    with ThreadPoolExecutor(threads) as pool:
        _kept.pool, _kept.pool_size = pool, threads
        try:
            yield
        finally:
            _kept.pool = None


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield the threads that are kept, or others if these are not as many as are wanted."""
    kept = getattr(_kept, "pool", None)
    if kept is not None and _kept.pool_size == threads:
        yield kept
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool


def ordered_map(
    function: Callable[[Item], Answer],
    items: Iterable[Item],
    threads: int,
    on_interrupt: Callable[[], None] | None = None,
) -> Iterator[Answer]:
    """Yield function(item) in the order of `items`, computing a few of them at a time.

    Where calls can end early, `on_interrupt` tells them to: the first interrupt then only does
    that, and their answers are waited for.
    """
    iterator = iter(items)
    first = list(islice(iterator, 2))
    # One item is not worth a thread.
    if threads <= 1 or len(first) < 2:
        yield from map(function, chain(first, iterator))
        return
    turnstile, floats = _Turnstile(), np.geterr()
    buffers: list[dict[str, Any]] = []

    def work(item: Item) -> Answer:
        # Threads do not inherit what NumPy shall do about overflow.
        with turnstile, np.errstate(**floats):
            buffers.append(_buffers())
            return function(item)

    with _pool(threads) as pool:
        waiting: deque[Future[Answer]] = deque()
        try:
            for item in chain(first, iterator):
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield _answer(waiting.popleft(), on_interrupt)
            while waiting:
                yield _answer(waiting.popleft(), on_interrupt)
        except KeyboardInterrupt:
            # Not while an answer was waited for; those who are at work are waited for below.
            if on_interrupt is not None:
                on_interrupt()
            raise
        finally:
            for future in waiting:
                future.cancel()
            turnstile.close()
            # Threads may be kept; what they hold counts as memory of this loop.
            for each in buffers:
                each.clear()


def _answer(future: Future[Answer], on_interrupt: Callable[[], None] | None) -> Answer:
    try:
        return future.result()
    except KeyboardInterrupt:
        if on_interrupt is None:
            raise
        on_interrupt()
        return future.result()


class _Turnstile:
    """Lets calls through until it is closed, which waits for those that are on their way.

    An interrupt can come while the pool starts a thread that it does not know of yet and will not
    wait for. No call may go on writing after the loop that asked for it is left.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._changed:
            if self._closed:
                raise CancelledError
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let no one in any more, and wait until no one is inside."""
        with self._changed:
            self._closed = True
            while self._inside:
                self._changed.wait()


def scratch(shape: tuple[int, int], dtype: DTypeLike, use: str = "") -> NDArray[Any]:
    """Return an array of this thread's own that the next call with the same use will overwrite.

    Fresh memory costs more than computing a kernel value into it: the system must hand over and
    clear every page.
    """
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    kept = _buffers()
    buffer: NDArray[np.uint8] | None = kept.get(use)
    if buffer is None or len(buffer) < size:
        buffer = kept[use] = np.empty(size, dtype=np.uint8)
    return buffer[:size].view(dtype).reshape(shape)


def _buffers() -> dict[str, Any]:
    """Return the arrays that this thread keeps for `scratch`."""
    if not hasattr(_kept, "buffers"):
        _kept.buffers = {}
    found: dict[str, Any] = _kept.buffers
    return found
