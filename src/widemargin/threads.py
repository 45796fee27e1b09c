"""Threads that do not change the answer.

Work is cut into pieces whose number does not depend on the number of threads, BLAS runs one
thread inside each piece, and results come back in the order of the pieces. The bits of the answer
are then the same for any number of threads.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import chain, islice
from numbers import Integral
from os import cpu_count
from threading import Condition, Lock, current_thread, local, main_thread
from typing import Any, TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cython_lapack
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


# Cholesky factors in threads: SciPy's LAPACK functions keep Python's lock while they run, and
# NumPy's Cholesky copies its argument twice. Here LAPACK is called through SciPy's C interface,
# which lets other threads run and works in place.

_KIND = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def cholesky_in_place(matrix: NDArray[Any]) -> bool:
    """Replace a symmetric matrix by its Cholesky factor, and return whether there is one.

    The factor stands in one triangle of the array, `solve_cholesky` knows which; the other
    triangle is not changed.
    """
    n = _size(matrix)
    info = ctypes.c_int()
    _lapack("potrf", matrix.dtype)(
        b"L", ctypes.byref(n), matrix.ctypes.data, ctypes.byref(n), ctypes.byref(info)
    )
    return info.value == 0


def solve_cholesky(factor: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the solution for the columns of `right`, in the factor's precision."""
    n = _size(factor)
    if right.ndim != 2 or len(right) != len(factor):
        raise ValueError(f"right of shape {right.shape} must be a matrix of {len(factor)} rows.")
    solution = np.array(right, dtype=factor.dtype, order="F")
    columns = ctypes.c_int(solution.shape[1])
    info = ctypes.c_int()
    _lapack("potrs", factor.dtype)(
        b"L",
        ctypes.byref(n),
        ctypes.byref(columns),
        factor.ctypes.data,
        ctypes.byref(n),
        solution.ctypes.data,
        ctypes.byref(n),
        ctypes.byref(info),
    )
    return solution


def _size(matrix: NDArray[Any]) -> ctypes.c_int:
    """Return the order of a matrix, of which LAPACK sees nothing but an address."""
    contiguous = matrix.flags.c_contiguous or matrix.flags.f_contiguous
    if not contiguous or matrix.shape != (len(matrix), len(matrix)):
        raise ValueError(f"A matrix of shape {matrix.shape} must be square and contiguous.")
    return ctypes.c_int(len(matrix))


# What a call is told: one letter for each argument, "c" a character, "i" a number, "a" an array.
_ARGUMENTS = {"potrf": "ciaii", "potrs": "ciiaiaii"}


def check_lapack(signature: str, arguments: str) -> None:
    """Raise unless a LAPACK function of SciPy's takes what we pass, numbers of 32 bits above all.

    Parameters
    ----------
    signature : str
        Its C signature, such as "void (char *, int *, double *, int *, int *)".
    arguments : str
        What we pass, one letter for each.
    """
    kinds = [kind.strip() for kind in signature.partition("(")[2].rstrip(") ").split(",")]
    known = {"char *": "c", "int *": "i"}
    found = "".join(known.get(kind, "a") for kind in kinds)
    if found != arguments or not all(kind.endswith("*") for kind in kinds):
        raise ImportError(
            f"SciPy's LAPACK has the signature {signature!r} where {arguments!r} is expected: it "
            "is built with other integers than 32-bit ones, which this version cannot call; "
            "install a SciPy with the usual LAPACK."
        )


@cache
def _lapack(name: str, dtype: np.dtype[Any]) -> Any:
    """Return a function of SciPy's LAPACK; a call of it lets other threads run."""
    capsule = cython_lapack.__pyx_capi__[_KIND[dtype] + name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    check_lapack(signature.decode(), _ARGUMENTS[name])
    kinds: dict[str, Any] = {
        "c": ctypes.c_char_p,
        "i": ctypes.POINTER(ctypes.c_int),
        "a": ctypes.c_void_p,
    }
    address = api.PyCapsule_GetPointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *(kinds[each] for each in _ARGUMENTS[name]))(address)


def lapack_address(name: str, dtype: DTypeLike) -> int:
    """Return where a function of SciPy's LAPACK is, for loops that Numba compiles."""
    address = ctypes.cast(_lapack(name, np.dtype(dtype)), ctypes.c_void_p).value
    assert address is not None
    return address


for _name in _ARGUMENTS:
    for _dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        _lapack(_name, _dtype)
