"""Threads that keep order, scratch memory, and who may enter."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from widemargin import MarginClassifier
from widemargin.threads import (
    Compiled,
    _buffers,
    _Turnstile,
    n_threads,
    ordered_map,
    scratch,
    single_threaded_blas,
    threads_kept,
)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ordered_map_keeps_the_order_whatever_finishes_first(threads):
    def slow_first(i):
        time.sleep(0.02 if i % 4 == 0 else 0.0)
        return i * i

    assert list(ordered_map(slow_first, range(40), threads)) == [i * i for i in range(40)]
    assert list(ordered_map(slow_first, [], threads)) == []


def test_ordered_map_works_on_several_items_at_a_time():
    together = threading.Barrier(3, timeout=10)
    # Each of three waits for the two others: with fewer threads the barrier would break.
    assert list(ordered_map(lambda i: together.wait() >= 0, range(3), 3)) == [True] * 3


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ordered_map_passes_an_exception_on_after_the_answers_before_it(threads):
    def fail_at_five(i):
        if i == 5:
            raise ZeroDivisionError("five")
        return i

    seen = []
    with pytest.raises(ZeroDivisionError, match="five"):
        for answer in ordered_map(fail_at_five, range(100), threads):
            seen.append(answer)
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ordered_map_does_not_begin_what_nobody_waits_for(threads):
    begun = []

    def note(i):
        begun.append(i)
        time.sleep(0.005)
        return i

    answers = ordered_map(note, range(1000), threads)
    assert begun == []
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    answers.close()
    after = len(begun)
    assert after <= 3 + 3 * threads + 1
    time.sleep(0.03)
    assert len(begun) == after


def test_ordered_map_cancels_the_rest_when_one_fails():
    begun = []

    def fail_at_once(i):
        begun.append(i)
        time.sleep(0.005)
        if i == 0:
            raise ValueError
        return i

    with pytest.raises(ValueError):
        list(ordered_map(fail_at_once, range(1000), 2))
    assert len(begun) <= 8


def test_n_threads_reads_n_jobs_as_scikit_learn_does(monkeypatch):
    monkeypatch.setattr("widemargin.threads.cpu_count", lambda: 8)
    assert n_threads(3) == 3
    assert n_threads(-1) == 8
    assert n_threads(-2) == 7
    assert n_threads(-100) == 1
    assert n_threads(None) >= 1
    with pytest.raises(ValueError, match="n_jobs == 0"):
        n_threads(0)
    for wrong in (True, 1.0, "2"):
        with pytest.raises(TypeError, match="n_jobs="):
            n_threads(wrong)


def test_scratch_memory_is_reused_in_a_thread_and_not_shared_between_threads():
    first = scratch((4, 5), "float64")
    again = scratch((2, 3), "float32")
    assert first.shape == (4, 5) and again.dtype == "float32" and again.shape == (2, 3)
    assert first.ctypes.data == again.ctypes.data
    other = []
    thread = threading.Thread(target=lambda: other.append(scratch((4, 5), "float64")))
    thread.start()
    thread.join()
    assert other[0].ctypes.data != first.ctypes.data


def test_nobody_gets_past_a_closed_turnstile_and_closing_waits_for_those_inside():
    turnstile, inside, leave = _Turnstile(), threading.Event(), threading.Event()
    left = []

    def stay():
        with turnstile:
            inside.set()
            leave.wait(5.0)
            left.append(True)

    visitor = threading.Thread(target=stay)
    visitor.start()
    assert inside.wait(5.0)
    threading.Timer(0.05, leave.set).start()
    turnstile.close()
    assert left
    with pytest.raises(CancelledError), turnstile:
        pytest.fail("a closed turnstile let someone in")
    visitor.join()


def test_threads_do_about_overflow_what_the_caller_asked_for():
    def overflow(x):
        return np.float64(1e308) * x

    with np.errstate(over="ignore"):
        assert list(ordered_map(overflow, [10.0, 1.0], 2)) == [np.inf, 1e308]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        list(ordered_map(overflow, [10.0, 1.0], 2))


# ---------------------------------------------------------------- BLAS


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def two_threads_for_blas():
    """Let BLAS use two threads, whatever the machine has; yield what its libraries then use.

    Those that other packages bring along may know of one thread only.
    """
    with threadpool_limits(limits=2, user_api="blas"):
        outside = blas_threads()
        assert 2 in outside
        yield outside


def test_blas_has_one_thread_inside_and_what_it_had_outside(two_threads_for_blas):
    with single_threaded_blas():
        assert set(blas_threads()) == {1}
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == two_threads_for_blas
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        raise ZeroDivisionError
    assert blas_threads() == two_threads_for_blas


def test_the_last_of_several_threads_lifts_the_limit_of_blas(two_threads_for_blas):
    steps = {name: threading.Event() for name in ("first in", "second in", "first out")}
    seen = {}

    def first():
        with single_threaded_blas():
            steps["first in"].set()
            assert steps["second in"].wait(10)
        seen["after the first"] = set(blas_threads())
        steps["first out"].set()

    def second():
        assert steps["first in"].wait(10)
        with single_threaded_blas():
            steps["second in"].set()
            assert steps["first out"].wait(10)
            seen["inside the second"] = set(blas_threads())

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(20)
    assert seen == {"after the first": {1}, "inside the second": {1}}
    assert blas_threads() == two_threads_for_blas


def test_no_n_jobs_means_inside_the_limit_what_it_meant_outside(two_threads_for_blas):
    outside = n_threads(None)
    assert outside >= 2
    with single_threaded_blas():
        assert n_threads(None) == outside
        with single_threaded_blas(), ThreadPoolExecutor(1) as pool:
            assert n_threads(None) == pool.submit(n_threads, None).result() == outside
    assert n_threads(None) == outside


def test_fits_in_several_threads_leave_blas_as_it_was(two_threads_for_blas):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)

    def fit(seed):
        return MarginClassifier(C=1.0 + seed % 2, random_state=0).fit(X, y).decision_function(X)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, range(12)))
    assert blas_threads() == two_threads_for_blas
    for seed, values in enumerate(together):
        np.testing.assert_array_equal(values, together[seed % 2])


# ---------------------------------------------------------------- interrupts


def interrupt_soon():
    """Send the main thread an interrupt when it has begun to wait."""
    main = threading.main_thread().ident
    threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()


def test_an_interrupt_tells_the_calls_of_ordered_map_to_end_and_waits_for_their_answers():
    told = threading.Event()

    def until_told(i):
        assert told.wait(20)
        return i

    interrupt_soon()
    assert list(ordered_map(until_told, range(6), 2, told.set)) == list(range(6))
    assert told.is_set()


def test_a_second_interrupt_of_ordered_map_is_raised():
    told, ended = [], threading.Event()

    def stubborn(i):
        ended.wait(0.5)
        return i

    def tell():
        told.append(True)
        interrupt_soon()

    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(stubborn, range(40), 2, tell))
    assert told


def test_an_interrupt_of_ordered_map_is_raised_where_nobody_can_be_told():
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(lambda i: time.sleep(0.2), range(20), 2))


def test_an_interrupt_between_two_answers_tells_those_who_are_at_work():
    told = threading.Event()

    def items():
        yield from range(3)
        raise KeyboardInterrupt

    def until_told(i):
        assert told.wait(20)
        return i

    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(until_told, items(), 2, told.set))
    assert told.is_set()


def test_a_compiled_module_is_imported_when_a_function_is_asked_for(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    module = Compiled("colorsys")
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hsv(1.0, 0.0, 0.0) == (0.0, 1.0, 1.0)
    assert "colorsys" in sys.modules
    assert "rgb_to_hsv" in vars(module)  # found at once the next time
    with pytest.raises(AttributeError):
        module.no_such_function  # noqa: B018


def test_an_interrupt_during_an_import_is_raised_when_it_is_done(tmp_path, monkeypatch):
    source = "import signal\nsignal.raise_signal(signal.SIGINT)\ndef three(): return 3\n"
    (tmp_path / "interrupted_import.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    module, handler = Compiled("interrupted_import"), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        module.three()
    assert signal.getsignal(signal.SIGINT) is handler
    assert "interrupted_import" in sys.modules
    assert module.three() == 3
    monkeypatch.delitem(sys.modules, "interrupted_import")


def test_a_compiled_module_can_be_asked_for_in_any_thread():
    # Other threads are never interrupted, and may not touch the handler.
    module = Compiled("colorsys")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: module.rgb_to_hsv(0.0, 0.0, 0.0))
        assert found.result() == (0.0, 0.0, 0.0)


FIT_TWICE = """
import os, signal, sys
import numpy as np
from widemargin import BallVectorClassifier, CoreVectorClassifier, MarginClassifier

class Watch:  # interrupts this process when a module begins to be imported
    sent = False

    def find_spec(self, name, path=None, target=None):
        if name == MODULE and not self.sent:
            self.sent = True
            os.kill(os.getpid(), signal.SIGINT)

watch = Watch()
sys.meta_path.insert(0, watch)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.where(X[:, 0] > 0, 1, -1)
machine = ESTIMATOR
assert "numba" not in sys.modules
try:
    machine.fit(X, y)
    print("fitted")
except KeyboardInterrupt:
    print("interrupted")
assert watch.sent and "numba" in sys.modules
print(machine.fit(X, y).score(X, y) > 0.8)
"""


@pytest.mark.parametrize(
    ("module", "estimator"),
    [
        ("numba", "MarginClassifier(n_jobs=1)"),
        ("numba.core.dispatcher", "MarginClassifier(n_jobs=1)"),
        ("llvmlite", "CoreVectorClassifier(n_jobs=1)"),
        ("numba.np.ufunc", "BallVectorClassifier(kernel='laplacian', n_jobs=1)"),
    ],
)
def test_a_process_that_was_interrupted_while_numba_was_imported_can_fit_again(module, estimator):
    code = FIT_TWICE.replace("MODULE", repr(module)).replace("ESTIMATOR", estimator)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split()
    assert first in ("fitted", "interrupted") and second == "True"


def test_threads_are_kept_from_one_loop_to_the_next_but_not_their_memory():
    seen, held = [], []

    def note(_):
        seen.append(threading.get_ident())
        held.append(len(_buffers()))
        scratch((100, 100), np.float64, "here")
        time.sleep(0.002)

    with threads_kept(2):
        for _ in range(3):
            list(ordered_map(note, range(6), 2))
        assert len(set(seen)) == 2
        # As many as a loop asks for, if these are others.
        list(ordered_map(note, range(9), 3))
        assert len(set(seen)) > 2
    # Each loop began with threads that held nothing.
    assert held[0] == held[6] == held[12] == held[18] == 0
    assert 1 in held


def test_a_loop_inside_a_loop_gets_threads_of_its_own():
    def inner(i):
        return sum(ordered_map(lambda j: i * j, range(5), 2))

    with threads_kept(2):
        assert list(ordered_map(inner, range(8), 2)) == [10 * i for i in range(8)]
