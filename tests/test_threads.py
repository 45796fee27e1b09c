"""Threads that keep order, scratch memory, and who may enter."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

from widemargin.threads import _Turnstile, n_threads, ordered_map, scratch


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
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert n_threads(3) == 3
    assert n_threads(-1) == 8
    assert n_threads(-2) == 7
    assert n_threads(-100) == 1
    assert n_threads(None) >= 1
    with pytest.raises(ValueError, match="n_jobs == 0"):
        n_threads(0)


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
