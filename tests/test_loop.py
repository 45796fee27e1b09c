"""The loop that every fit waits on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import pytest

from widemargin.certificate import Certificate
from widemargin.loop import (
    Deadline,
    Ended,
    Limits,
    Resources,
    Stop,
    bounds,
    relative_gap,
    run,
)

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
    primals: list[float] | None = None
    scopes: list[str] | None = None
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
        primal = 2.0 if self.primals is None else self.primals[min(number, len(self.primals) - 1)]
        scope = "full" if isinstance(state, float) else "sample"
        if self.scopes is not None:
            scope = self.scopes[min(number, len(self.scopes) - 1)]
        return replace(BLANK, gap=gap, dual=dual, primal=primal, scope=scope)

    def stopped(self, state):
        if self.done_at is not None and state >= self.done_at:
            return Stop(Ended.SOLVED, "its own rule")
        return None

    def finish(self, state):
        self.diary.append("finish")
        return float(state)  # a float marks a finished state


def test_a_solver_stops_by_its_own_rule_and_is_finished_once():
    solver = Counting(done_at=3)
    result = run(solver, Limits())
    assert result.converged and result.stop.kind is Ended.SOLVED
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
    result = run(Counting(pause=0.01), Limits(deadline=Deadline.after(0.1)))
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


def test_a_falling_primal_is_progress_though_the_gap_was_smaller_before():
    solver = Counting(gaps=[0.01, 0.9], primals=[100.0 * 0.99**i for i in range(101)])
    result = run(solver, Limits(max_iter=60, patience=3))
    assert result.certificate.stopped == "max_iter=60 reached"


def test_what_a_sample_reached_is_no_measure_for_all_rows():
    solver = Counting(
        gaps=[0.01] * 20 + [0.9 * 0.99**i for i in range(40)],
        primals=[1.0] * 20 + [50.0] * 40,
        scopes=["sample"] * 20 + ["span"] * 40,
    )
    result = run(solver, Limits(max_iter=60, patience=25))
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


# ---------------------------------------------------------------- how a loop ends


ENDS = {
    Ended.SOLVED: (Counting(done_at=2), Limits(), None),
    Ended.MAX_ITER: (Counting(), Limits(max_iter=3), None),
    Ended.MAX_TIME: (Counting(), Limits(deadline=Deadline.after(0.0)), None),
    Ended.STALLED: (Counting(gaps=[0.5]), Limits(patience=2), None),
    Ended.CALLBACK: (Counting(), Limits(), lambda certificate: True),
    Ended.INTERRUPTED: (Counting(interrupt_at=1), Limits(), None),
}


@pytest.mark.parametrize("kind", ENDS)
def test_a_loop_says_how_it_ended(kind):
    solver, limits, report = ENDS[kind]
    result = run(solver, limits, report)
    assert result.stop.kind is kind
    assert result.stop.reason == result.certificate.stopped != ""
    assert result.converged == result.stop.converged == (kind is Ended.SOLVED)


def test_what_users_ask_for_and_what_limits_bring_about_are_told_apart():
    by_user = {kind for kind in Ended if kind.by_user}
    assert by_user == {Ended.CALLBACK, Ended.INTERRUPTED}


@pytest.mark.parametrize("kind", [Ended.PRECISION, Ended.CAPACITY])
def test_a_solver_that_gives_up_has_not_converged(kind):
    class GivesUp(Counting):
        def stopped(self, state):
            return Stop(kind, "no more to gain") if state >= 2 else None

    result = run(GivesUp(), Limits())
    assert result.stop.kind is kind and not result.converged
    assert result.certificate.stopped == "no more to gain"


# ---------------------------------------------------------------- deadlines and interrupts


def test_a_deadline_passes_when_its_time_is_over():
    deadline = Deadline.after(0.05)
    assert not deadline.passed and 0.0 < deadline.left() <= 0.05
    time.sleep(0.06)
    assert deadline.passed and deadline.left() == 0.0
    assert deadline.stop == Stop(Ended.MAX_TIME, "max_time=0.05 reached")


def test_without_a_limit_only_an_interrupt_ends_the_time():
    deadline = Deadline.after(None)
    assert not deadline.passed and deadline.left() is None
    deadline.interrupt()
    assert deadline.passed and deadline.interrupted
    assert deadline.stop == Stop(Ended.INTERRUPTED, "interrupted")


def test_a_part_of_a_deadline_ends_before_it_and_speaks_of_the_whole():
    whole = Deadline.after(100.0)
    half = whole.part(0.5)
    assert half.left() <= 50.0 < whole.left()
    assert half.part(0.5).left() <= 25.0
    assert half.max_time == 100.0
    assert Deadline().part(0.1).left() is None


@pytest.mark.parametrize("max_time", [None, 100.0])
def test_parts_of_a_deadline_share_an_interrupt(max_time):
    for which in range(3):
        whole = Deadline.after(max_time)
        parts = [whole, whole.part(0.5), whole.part(0.5).part(0.5)]
        assert not any(part.passed for part in parts)
        parts[which].interrupt()
        assert all(part.passed and part.interrupted for part in parts)
        # Other deadlines know nothing of it.
        assert not Deadline.after(max_time).passed


def test_an_interrupt_in_a_block_ends_the_time_and_nothing_else():
    deadline = Deadline.after(100.0)
    with deadline.ends_on_interrupt():
        pass
    assert not deadline.passed
    with deadline.ends_on_interrupt():
        raise KeyboardInterrupt
    assert deadline.passed and deadline.interrupted
    with pytest.raises(ZeroDivisionError), Deadline().ends_on_interrupt():
        raise ZeroDivisionError


def test_a_loop_whose_deadline_is_interrupted_elsewhere_ends_at_the_next_step():
    deadline = Deadline()

    class Outer(Counting):
        def step(self, state):
            if state == 2:
                deadline.part(0.5).interrupt()  # as a part of the fit would
            return super().step(state)

    result = run(Outer(), Limits(deadline=deadline))
    assert result.stop.kind is Ended.INTERRUPTED
    assert result.state == 3.0  # that step was finished
    after = run(Counting(), Limits(deadline=deadline))
    assert after.certificate.n_iter == 1 and after.stop.kind is Ended.INTERRUPTED


def test_an_interrupt_of_the_last_look_leaves_the_state_and_says_so():
    class Slow(Counting):
        def finish(self, state):
            raise KeyboardInterrupt

    deadline = Deadline()
    result = run(Slow(done_at=2), Limits(deadline=deadline))
    assert result.state == 2 and result.certificate.scope == "sample"
    assert result.stop.kind is Ended.INTERRUPTED and deadline.interrupted


def test_two_interrupts_end_the_step_and_the_last_look():
    class Slow(Counting):
        def finish(self, state):
            raise KeyboardInterrupt

    result = run(Slow(interrupt_at=1), Limits())
    assert result.state == 1
    assert result.certificate.stopped == "interrupted" and result.certificate.scope == "sample"


# ---------------------------------------------------------------- bounds


def test_relative_gap_is_a_share_of_the_primal_between_nothing_and_all_of_it():
    assert relative_gap(2.0, 1.5) == 0.25
    assert relative_gap(1.0, 1.0 + 1e-15) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(3.0, 0.0) == 1.0
    assert relative_gap(3.0, -6.0) == 1.0


@pytest.mark.parametrize("pair", [(float("nan"), 1.0), (1.0, float("nan")), (float("inf"), 1.0)])
def test_a_gap_of_what_is_not_a_number_proves_nothing(pair):
    assert relative_gap(*pair) == 1.0


def test_bounds_make_a_certificate_with_their_gap_unless_told_another():
    certificate = bounds(2.0, 1.5, n_vectors=7)
    assert (certificate.primal, certificate.dual, certificate.gap) == (2.0, 1.5, 0.25)
    assert certificate.n_vectors == 7 and certificate.scope == "full"
    assert bounds(2.0, 1.5, gap=0.3).gap == 0.3


def test_every_part_of_a_fit_begins_with_the_same_random_numbers():
    resources = Resources(seed=7)
    assert resources.rng.random(5).tolist() == resources.rng.random(5).tolist()
    assert resources.rng.random() != Resources(seed=8).rng.random()
    # One deadline is not another's.
    resources.deadline.interrupt()
    assert not Resources(seed=7).deadline.passed
