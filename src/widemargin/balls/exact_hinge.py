"""The exact machines of the hinge loss with a free bias: those of ``SVC``.

A problem, classes against the rest or a pair of classes, is one dual (``qp.hinge_dual``) on the
kernel matrix of its rows. Threads work on problems beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import certificate_of
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Ended, Limits, Stop, run
from widemargin.problem import Problem
from widemargin.qp.hinge_dual import solve_hinge_dual
from widemargin.threads import ordered_map

# Problems between two looks of the loop at the clock, for each thread.
_AT_A_TIME = 16
# Share of the memory budget for the matrices that threads work on at a time.
_MATRICES_SHARE = 0.7
# Matrices of a problem: its kernel values, and factors of a part of them.
_MATRICES = 2
# The KKT conditions hold to this share of the gap that is asked for.
_SHARE_OF_GAP = 0.1


@dataclass(frozen=True)
class HingeMachine:
    """The machine of one problem.

    Attributes
    ----------
    index : ndarray of int of shape (n_vectors,)
        Rows of the problem that support it.
    coef : ndarray of shape (n_vectors,)
        Their coefficients, y α.
    intercept : float
        Its bias.
    primal, dual, gap : float
        What is proved.
    n_kernel : int
        Kernel values that were made.
    """

    index: IndexArray
    coef: Vector
    intercept: float
    primal: float
    dual: float
    gap: float
    n_kernel: int


def fit_exact_hinge(problem: Problem, options: MachineOptions) -> Fitted:
    """Fit the hinge-loss SVM to all rows of every problem.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    options : MachineOptions
        How exactly.
    """
    if options.max_vectors is not None and options.max_vectors < problem.n:
        raise ValueError(
            f"max_vectors={options.max_vectors} is less than the {problem.n:,} different rows, and "
            "loss='hinge' knows no budget of vectors; use loss='squared_hinge'."
        )
    largest = max(len(problem.members(p)) for p in range(problem.n_problems))
    if _MATRICES * 8 * largest**2 > _MATRICES_SHARE * options.memory:
        needed = int(_MATRICES * 8 * largest**2 / _MATRICES_SHARE / 2**20) + 1
        raise ValueError(
            f"loss='hinge' needs the kernel matrix of {largest:,} rows, which does not fit into "
            f"memory; give memory='{needed}MB', engine='cells', or loss='squared_hinge'."
        )
    solver = HingeProblems(problem, options)
    # Each problem is a success of its own: there is no stall.
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    coef = np.zeros((problem.n, problem.n_problems))
    for p, machine in enumerate(result.state):
        coef[machine.index, p] = machine.coef
    index = np.flatnonzero(coef.any(axis=1))
    return Fitted(
        problem.rows.take(index),
        index,
        coef[index],
        np.array([machine.intercept for machine in result.state]),
        result.certificate,
        result.stop,
        of_pairs=problem.partial,
    )


class HingeProblems:
    """Solver of all problems, for ``loop.run``; a step is some of them.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    options : MachineOptions
        How exactly.
    """

    def __init__(self, problem: Problem, options: MachineOptions) -> None:
        self.problem = problem
        self.options = options

    def start(self) -> tuple[HingeMachine, ...]:
        """Begin with no problem."""
        return ()

    def step(self, state: tuple[HingeMachine, ...]) -> tuple[HingeMachine, ...]:
        """Solve some more problems; an interrupt leaves those that are done."""
        begin, options = len(state), self.options
        chosen = range(begin, min(self.problem.n_problems, begin + _AT_A_TIME * options.threads))
        largest = max(len(self.problem.members(p)) for p in chosen)
        room = int(_MATRICES_SHARE * options.memory / (_MATRICES * 8 * largest**2))
        threads = max(1, min(options.threads, room))
        done: list[HingeMachine] = []
        with options.deadline.ends_on_interrupt():
            for machine in ordered_map(self._solved, chosen, threads, options.deadline.interrupt):
                done.append(machine)
        return (*state, *done)

    def certificate(self, state: tuple[HingeMachine, ...]) -> Certificate:
        """Return the sums over the problems; those that are missing count as nothing proved."""
        n_kernel = sum(each.n_kernel for each in state)
        if len(state) < self.problem.n_problems:
            return Certificate(float("inf"), 0.0, gap=1.0, n_kernel=n_kernel)
        used = np.zeros(self.problem.n, dtype=bool)
        for each in state:
            used[each.index] = True
        return certificate_of(
            [(each.primal, each.dual) for each in state],
            [each.gap for each in state],
            n_vectors=int(used.sum()),
            n_passes=1,
            n_kernel=n_kernel,
        )

    def stopped(self, state: tuple[HingeMachine, ...]) -> Stop | None:
        """Return what all problems came to."""
        if len(state) < self.problem.n_problems:
            return None
        if all(each.gap <= self.options.tol for each in state):
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        if self.options.deadline.passed:
            return self.options.deadline.stop
        return Stop(Ended.PRECISION, "nothing left to refine at this precision")

    def finish(self, state: tuple[HingeMachine, ...]) -> tuple[HingeMachine, ...]:
        """Put constants in the place of problems that were not reached."""
        rest = range(len(state), self.problem.n_problems)
        return state + tuple(self._constant(p) for p in rest)

    def _constant(self, p: int) -> HingeMachine:
        index = self.problem.members(p)
        sign, upper = self.problem.sign(p, index), 0.5 / self.problem.ridge(p, index)
        bias = float(np.sign(upper @ sign))
        primal = float(upper @ np.maximum(0.0, 1.0 - bias * sign))
        nothing = np.zeros(0, dtype=np.intp), np.zeros(0)
        return HingeMachine(*nothing, bias, primal, 0.0, 1.0, 0)

    def _solved(self, p: int) -> HingeMachine:
        """Return the machine of a problem, or as much of it as there is time for."""
        problem, options = self.problem, self.options
        index = problem.members(p)
        X = problem.rows.take(index)
        K = problem.kernel.checked_block(
            problem.rows.block(index), X, np.empty((len(index), len(index)))
        )
        sign, upper = problem.sign(p, index), 0.5 / problem.ridge(p, index)
        found = solve_hinge_dual(
            K, sign, upper, tol=_SHARE_OF_GAP * options.tol, deadline=options.deadline
        )
        used = np.flatnonzero(found.alpha)
        return HingeMachine(
            index[used],
            (sign * found.alpha)[used],
            found.intercept,
            found.primal,
            found.dual,
            found.gap,
            K.size,
        )
