"""Threads that do not change the answer.

Work is cut into pieces whose number does not depend on the number of threads, BLAS runs one
thread inside each piece, and results come back in the order of the pieces. The bits of the answer
are then the same for any number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import chain, islice
from numbers import Integral
from threading import Condition, local
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import threadpool_info, threadpool_limits

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_kept = local()


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for.

    None means as many as BLAS would use now, which respects OMP_NUM_THREADS and the limits that
    joblib sets in its workers; −1 means all cores, −2 all but one, and so on.
    """
    if n_jobs is None:
        return max([pool["num_threads"] for pool in threadpool_info()], default=1)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} must be a whole number or None.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning: use None, a positive number, or -1.")
    if n_jobs < 0:
        from os import cpu_count

        return max(1, (cpu_count() or 1) + 1 + int(n_jobs))
    return int(n_jobs)


def single_threaded_blas() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread, so that our own threads decide."""
    context: AbstractContextManager[object] = threadpool_limits(limits=1)
    return context


def ordered_map(
    function: Callable[[Item], Answer], items: Iterable[Item], threads: int
) -> Iterator[Answer]:
    """Yield function(item) in the order of `items`, computing a few of them at a time."""
    iterator = iter(items)
    some = list(islice(iterator, 2))
    # One item is not worth a thread.
    if threads <= 1 or len(some) < 2:
        yield from map(function, chain(some, iterator))
        return
    turnstile, floats = _Turnstile(), np.geterr()

    def work(item: Item) -> Answer:
        # Threads do not inherit what NumPy shall do about overflow.
        with turnstile, np.errstate(**floats):
            return function(item)

    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Answer]] = deque()
        try:
            for item in chain(some, iterator):
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            turnstile.close()


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


def scratch(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of this thread's own that the next call will overwrite.

    Fresh memory costs more than computing a kernel value into it: the system must hand over and
    clear every page.
    """
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    buffer: NDArray[np.uint8] | None = getattr(_kept, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _kept.buffer = np.empty(size, dtype=np.uint8)
    return buffer[:size].view(dtype).reshape(shape)
