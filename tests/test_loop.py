"""The loop every fit waits on, the certificate it returns, and threads that keep order."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError
from dataclasses import FrozenInstanceError, dataclass, field, replace

import numpy as np
import pytest

from widemargin.certificate import Certificate, relative_gap
from widemargin.loop import Limits, Stop, run
from widemargin.parameters import (
    check_choice,
    check_count,
    check_gamma,
    check_not_negative,
    check_positive,
)
from widemargin.threads import _Turnstile, n_threads, ordered_map, scratch

BLANK = Certificate(
    primal=2.0,
    dual=1.0,
    gap=0.5,
    eps=None,
    scope="full",
    n_vectors=3,
    n_iter=0,
    n_passes=1,
    n_kernel=9,
    seconds=0.0,
    stopped="",
)


@dataclass
class Counting:
    """A solver whose state is a number: it halves its gap at every step and keeps a diary."""

    done_at: int | None = None
    gaps: list[float] | None = None
    duals: list[float] | None = None
    interrupt_at: int | None = None
    pause: float = 0.0
    diary: list[str] = field(default_factory=list)

    def start(self):
        self.diary.append("start")
        return 0

    def step(self, state):
        self.diary.append(f"step {state}")
        if self.interrupt_at == state:
            raise KeyboardInterrupt
        time.sleep(self.pause)
        return state + 1

    def certificate(self, state):
        number = int(state)
        gap = 0.5**number if self.gaps is None else self.gaps[min(number, len(self.gaps) - 1)]
        dual = 1.0 if self.duals is None else self.duals[min(number, len(self.duals) - 1)]
        scope = "full" if isinstance(state, float) else "sample"
        return replace(BLANK, gap=gap, dual=dual, scope=scope)

    def stopped(self, state):
        if self.done_at is not None and state >= self.done_at:
            return Stop("its own rule", converged=True)
        return None

    def finish(self, state):
        self.diary.append("finish")
        return float(state)  # a float marks a finished state


def test_a_solver_stops_by_its_own_rule_and_is_finished_once():
    solver = Counting(done_at=3)
    result = run(solver, Limits())
    assert result.converged
    assert result.certificate.stopped == "its own rule"
    assert solver.diary == ["start", "step 0", "step 1", "step 2", "finish"]
    assert result.state == 3.0
    # the certificate is that of the finished state, not of the one before
    assert result.certificate.scope == "full"


def test_n_iter_counts_the_start_and_every_step():
    for done_at in range(5):
        assert run(Counting(done_at=done_at), Limits()).certificate.n_iter == done_at + 1


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_max_iter_is_the_number_of_iterations(max_iter):
    solver = Counting()
    result = run(solver, Limits(max_iter=max_iter))
    assert not result.converged
    assert result.certificate.n_iter == max_iter
    assert result.certificate.stopped == f"max_iter={max_iter} reached"
    assert len([line for line in solver.diary if line.startswith("step")]) == max_iter - 1
    assert solver.diary[-1] == "finish"


def test_the_solvers_own_rule_comes_before_a_limit():
    result = run(Counting(done_at=4), Limits(max_iter=5))
    assert result.converged and result.certificate.stopped == "its own rule"


def test_max_time_ends_the_loop_soon_after():
    begun = time.perf_counter()
    result = run(Counting(pause=0.01), Limits(max_time=0.1))
    assert 0.1 <= time.perf_counter() - begun < 5.0
    assert result.certificate.stopped == "max_time=0.1 reached"
    assert not result.converged
    assert result.certificate.seconds >= 0.1
    assert 2 <= result.certificate.n_iter <= 12


def test_seconds_are_those_since_the_start():
    seen = []
    run(Counting(done_at=4, pause=0.02), Limits(), lambda c: seen.append(c.seconds))
    assert seen == sorted(seen)
    assert seen[0] < 0.02 < seen[2]
    assert seen[-1] >= 0.08


def test_a_stall_is_a_number_of_steps_without_a_better_gap_or_dual():
    for patience in (1, 3, 10):
        # The gap falls three times and then rests.
        solver = Counting(gaps=[1.0, 0.8, 0.6, 0.5])
        result = run(solver, Limits(max_iter=1000, patience=patience))
        assert result.certificate.stopped == f"no progress in {patience} steps"
        assert result.certificate.n_iter == 4 + patience
        assert not result.converged
        assert solver.diary[-1] == "finish"


def test_progress_in_the_dual_alone_is_progress():
    solver = Counting(gaps=[1.0], duals=[0.1 * i for i in range(101)])
    result = run(solver, Limits(max_iter=60, patience=3))
    assert result.certificate.stopped == "max_iter=60 reached"


def test_a_gap_that_swings_without_a_new_best_is_a_stall():
    solver = Counting(gaps=[0.5, 0.4] + [0.9, 0.4] * 500)
    result = run(solver, Limits(max_iter=900, patience=5))
    assert result.certificate.stopped == "no progress in 5 steps"
    assert result.certificate.n_iter == 7


def test_every_state_is_reported_in_order_before_the_next_step():
    solver = Counting(done_at=3)

    def report(certificate):
        solver.diary.append(f"report {certificate.n_iter} {certificate.gap}")

    run(solver, Limits(), report)
    assert solver.diary == [
        "start",
        "report 1 1.0",
        "step 0",
        "report 2 0.5",
        "step 1",
        "report 3 0.25",
        "step 2",
        "report 4 0.125",
        "finish",
    ]


@pytest.mark.parametrize("answer", [True, 1, "yes"])
def test_a_true_answer_to_a_report_stops_the_loop(answer):
    solver = Counting()
    result = run(solver, Limits(), lambda c: answer if c.n_iter == 3 else None)
    assert result.certificate.stopped == "a callback asked to stop"
    assert result.certificate.n_iter == 3
    assert not result.converged
    assert solver.diary[-1] == "finish"


def test_an_interrupt_inside_a_step_leaves_the_last_valid_state():
    solver = Counting(interrupt_at=2)
    seen = []
    result = run(solver, Limits(), seen.append)
    assert result.state == 2
    assert result.certificate.stopped == "interrupted"
    assert not result.converged
    assert result.certificate.n_iter == 3 == len(seen)
    assert result.certificate.gap == 0.25


def test_an_error_inside_a_step_is_not_swallowed():
    class Failing(Counting):
        def step(self, state):
            raise ValueError("the kernel is not Mercer's")

    with pytest.raises(ValueError, match="Mercer"):
        run(Failing(), Limits())


# ---------------------------------------------------------------- the certificate


def test_a_certificate_prints_as_one_line_with_what_matters():
    certificate = replace(
        BLANK, gap=0.00123, eps=0.0456, n_vectors=12345, n_iter=6, stopped="gap within 0.01"
    )
    text = str(certificate)
    assert "\n" not in text
    for part in ("1.2e-03", "full", "4.6e-02", "12,345", "6 steps", "gap within 0.01"):
        assert part in text
    assert "ball" not in str(BLANK)


@pytest.mark.parametrize("name", ["gap", "primal", "stopped"])
def test_a_certificate_cannot_be_changed(name):
    with pytest.raises(FrozenInstanceError):
        setattr(BLANK, name, 0)


def test_relative_gap_is_a_share_of_the_primal_and_never_negative():
    assert relative_gap(2.0, 1.5) == 0.25
    assert relative_gap(1.0, 1.0 + 1e-15) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(3.0, 0.0) == 1.0


# ---------------------------------------------------------------- threads


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


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_a_number_that_is_not_positive_is_refused_by_name_and_value(value):
    with pytest.raises(ValueError, match=rf"C={value!r} must be positive"):
        check_positive("C", value)


@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_what_is_no_number_is_refused_by_name(value):
    for check in (check_positive, check_not_negative, check_count):
        with pytest.raises(TypeError, match="C="):
            check("C", value)


def test_good_parameters_pass():
    assert check_positive("C", 2) == 2.0
    assert check_not_negative("tol", 0) == 0.0
    assert check_count("max_iter", 5) == 5
    assert check_count("max_vectors", None, none=True) is None
    assert check_choice("growth", "one", ("one", "batch")) == "one"
    for gamma in ("scale", "auto", "mean_distance", 0.5):
        check_gamma(gamma)


def test_bad_parameters_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="tol=-1"):
        check_not_negative("tol", -1)
    with pytest.raises(ValueError, match="max_iter=0 must be at least 1"):
        check_count("max_iter", 0)
    with pytest.raises(TypeError, match=r"max_iter=1\.5 must be a whole number"):
        check_count("max_iter", 1.5)
    with pytest.raises(ValueError, match=r"growth='two' .*'one', 'batch'"):
        check_choice("growth", "two", ("one", "batch"))
    with pytest.raises(ValueError, match="gamma='small'"):
        check_gamma("small")
    with pytest.raises(ValueError, match=r"gamma=-1\.0"):
        check_gamma(-1.0)


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


@pytest.mark.parametrize("pair", [(float("nan"), 1.0), (1.0, float("nan")), (float("inf"), 1.0)])
def test_a_gap_of_what_is_not_a_number_proves_nothing(pair):
    assert relative_gap(*pair) == 1.0
