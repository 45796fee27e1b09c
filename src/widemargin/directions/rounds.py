"""One max-margin direction after another: which problem is next, and when there are no more.

MMDA extracts directions problem by problem, each the normal of the widest margin in what the
earlier ones have left over. How a direction is found is a `Finder`'s matter (``deflation``,
``direct``, ``core``, ``in_span``, ``linear``); this is what they have in common.

A direction is worth having if its machine does better than a constant one. Where the remaining
subspace holds no such direction (there are no dimensions left, or nothing in them tells the
classes apart), the problem has come to its end: anything else would be noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from widemargin.arrays import Matrix, Values, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Ended, Solver, Stop, bounds
from widemargin.problem import Problem
from widemargin.qp import HingeDual, solve_hinge_dual

Function = TypeVar("Function")

# Even an exact solution cannot tell a smaller gain over the constant machine from rounding.
_LEAST_GAIN = 1e-9
SOLVED = Stop(Ended.SOLVED, "solved")


@dataclass(frozen=True)
class Direction(Generic[Function]):
    """A unit direction, and what is known of the machine whose normal it is.

    Attributes
    ----------
    problem : int
        Label column that it separates.
    function : object
        x ↦ uᵀφ(x) with ‖u‖ = 1, as the finder represents it.
    norm : float
        ‖w‖ of the machine; the margin is its inverse.
    intercept : float
        b of the machine, divided by ‖w‖.
    error : float
        Share of the weight of the rows on the wrong side.
    primal, dual : float
        Objective and lower bound, within `scope` of the finder.
    varies : bool
        Whether the feature is not the same for all rows. A constant one may do better than none,
        for it takes over from the bias, which has its price; but it tells nothing.
    n_vectors : int
        Vectors of this machine alone.
    n_kernel, n_passes : int
        Kernel evaluations and passes over the rows that it cost, for the first of those that
        were found together.
    order : int
        Place among the directions of its problem, from 1.
    seconds : float
        Time that it took, shared equally by those that were found together.
    stop : Stop
        How its solver ended.
    """

    problem: int
    function: Function
    norm: float
    intercept: float
    error: float
    primal: float
    dual: float
    varies: bool
    n_vectors: int = 1
    n_kernel: int = 0
    n_passes: int = 0
    order: int = 0
    seconds: float = 0.0
    stop: Stop = SOLVED


def unit_direction(
    problem: Problem,
    p: int,
    function: Any,
    norm: float,
    bias: float,
    decision: Values,
    objectives: tuple[float, float],
    **known: Any,
) -> Direction[Any]:
    """Return the w of a machine as a unit direction.

    Parameters
    ----------
    problem : Problem
        The rows.
    p : int
        The problem of the machine.
    function : object
        x ↦ wᵀφ(x), which can be multiplied with a number.
    norm, bias : float
        ‖w‖ and b.
    decision : ndarray of shape (n,)
        wᵀφ(x) + b of the rows.
    objectives : tuple of float
        Objective and lower bound.
    **known
        Other attributes of the direction.
    """
    wrong = problem.sign(p) * decision <= 0
    error = float(problem.weight[wrong].sum() / problem.weight.sum())
    known |= {"error": error, "varies": apart(decision.min(), decision.max())}
    return of_unit_length(p, function, norm, bias, objectives, **known)


def of_unit_length(
    p: int,
    function: Any,
    norm: float,
    bias: float,
    objectives: tuple[float, float],
    **known: Any,
) -> Direction[Any]:
    """Return the w of a machine as a unit direction, with what is known of its values at rows.

    Parameters are those of `unit_direction`.
    """
    scale = 1.0 / norm if norm > 0 else 0.0
    primal, dual = objectives
    return Direction(p, function * scale, norm, bias * scale, primal=primal, dual=dual, **known)


def apart(least: np.floating[Any], largest: np.floating[Any]) -> bool:
    """Return whether decision values from one to the other differ by more than rounding."""
    size = max(abs(float(least)), abs(float(largest)))
    return float(largest - least) > 16.0 * float(np.finfo(largest.dtype).eps) * size


class Finder(Protocol[Function]):
    """How directions are found.

    Attributes
    ----------
    scope : {"full", "span"}
        The problem that objectives and bounds speak of.
    """

    scope: str

    def find(
        self, problems: Sequence[int], earlier: list[list[Function]], deadline: Deadline
    ) -> list[Direction[Function]]:
        """Return the best direction of each problem, unrelated to its earlier ones.

        It ends when the time does. Where that was before the first step, it has a rough direction
        all the same if there is no earlier one: a fit shall leave a model.
        """


@dataclass(frozen=True)
class Found(Generic[Function]):
    """Directions so far.

    Attributes
    ----------
    directions : tuple of Direction
        In the order in which they were found.
    ended : frozenset of int
        Problems that have come to their end.
    n_rounds : int
        Rounds that were taken.
    cut : Stop or None
        How a solver ended before it had a direction at all.
    """

    directions: tuple[Direction[Function], ...]
    ended: frozenset[int]
    n_rounds: int
    cut: Stop | None = None


@dataclass(frozen=True)
class Extraction(Solver[Found[Function]]):
    """Find the directions of all problems: a solver for ``loop.run``, whose step is a round.

    Parameters
    ----------
    finder : Finder
        How.
    constant : ndarray of shape (n_problems,)
        Objective of the best constant machine of each problem; see `constant_objectives`.
    n_directions : int
        Directions of each problem at the most.
    across : bool
        Whether a direction must be unrelated to those of all problems. Then one problem comes after
        the other; else all are solved together.
    tol : float
        Relative gap of the solutions: a gain below it is none.
    deadline : Deadline
        The end of all rounds.
    early_end : bool
        Whether a problem ends with the first direction that separates no better than a constant.
    """

    finder: Finder[Function]
    constant: Vector
    n_directions: int
    across: bool
    tol: float
    deadline: Deadline
    early_end: bool = True

    @property
    def rounds(self) -> list[list[int]]:
        """The problems of each round."""
        everything = list(range(len(self.constant)))
        return self.n_directions * ([[p] for p in everything] if self.across else [everything])

    def start(self) -> Found[Function]:
        """Return the directions of the first round, or what there is of it after an interrupt."""
        nothing: Found[Function] = Found((), frozenset(), 0)
        with self.deadline.ends_on_interrupt():
            return self.step(nothing)
        # Once more, now that the time is over.
        return self.step(nothing)

    def step(self, state: Found[Function]) -> Found[Function]:
        """Take a round."""
        begun = perf_counter()
        problems = [p for p in self.rounds[state.n_rounds] if p not in state.ended]
        found: list[Direction[Function]] = []
        if problems:
            earlier = [
                [each.function for each in state.directions if self.across or each.problem == p]
                for p in problems
            ]
            found = self.finder.find(problems, earlier, self.deadline)
        share = (perf_counter() - begun) / max(1, len(found))
        kept, ended, cut = [], set(state.ended), state.cut
        for direction in found:
            p = direction.problem
            # By the lower bound: what a rough solution has missed may still be there.
            gains = direction.dual < (1.0 - max(_LEAST_GAIN, self.tol)) * self.constant[p]
            wanted = gains or not self.early_end
            if direction.norm and wanted and direction.varies:
                order = 1 + sum(other.problem == p for other in state.directions)
                kept.append(replace(direction, order=order, seconds=share))
            elif direction.norm or direction.stop.converged:
                ended.add(p)
            else:
                cut = direction.stop
        return Found((*state.directions, *kept), frozenset(ended), state.n_rounds + 1, cut)

    def certificate(self, state: Found[Function]) -> Certificate:
        """Return primal and dual of all directions together."""
        primal = sum(direction.primal for direction in state.directions)
        dual = sum(direction.dual for direction in state.directions)
        sizes = [direction.n_vectors for direction in state.directions]
        # In a span all directions have the same vectors.
        n_vectors = max(sizes, default=0) if self.finder.scope == "span" else sum(sizes)
        return bounds(
            primal,
            dual,
            scope=self.finder.scope,
            n_vectors=n_vectors,
            n_passes=sum(direction.n_passes for direction in state.directions),
            n_kernel=sum(direction.n_kernel for direction in state.directions),
        )

    def stopped(self, state: Found[Function]) -> Stop | None:
        """Return whether all rounds are taken."""
        stops = [direction.stop for direction in state.directions]
        wanted = [stop for stop in stops if stop.kind.by_user or stop.kind is Ended.LOST]
        if state.cut or wanted:
            return state.cut or wanted[0]
        left = self.rounds[state.n_rounds :]
        if any(p not in state.ended for problems in left for p in problems):
            return None
        # A direction that was cut short is named, for the others are well.
        short = [stop for stop in stops if not stop.converged]
        return short[0] if short else Stop(Ended.SOLVED, "all directions found")


def constant_objectives(
    C: float, total: float, balance: Vector, loss: str, *, bias: bool = True
) -> Vector:
    """Return the objective of the best machine with w = 0 in every problem.

    For the squared hinge that is min_b ½b² + C Σ s (1 − y b)², whose root is
    b = 2C Σ s y / (1 + 2C Σ s), within ±1; for the hinge, which does not pay for b, the rows of the
    smaller class are lost. Without a bias all rows pay the full price.

    Parameters
    ----------
    C : float
        C.
    total : float
        Σ s.
    balance : ndarray of shape (n_problems,)
        Σ s y of each problem.
    loss : {"squared_hinge", "hinge"}
        Of the machines.
    bias : bool, default=True
        Whether they have one.
    """
    if not bias:
        return np.full(len(balance), C * total)
    if loss == "hinge":
        return np.asarray(C * (total - np.abs(balance)))
    b = 2.0 * C * balance / (1.0 + 2.0 * C * total)
    above, below = 0.5 * (total + balance), 0.5 * (total - balance)
    return np.asarray(0.5 * b * b + C * (above * (1 - b) ** 2 + below * (1 + b) ** 2))


def squared_objectives(
    alpha: Vector, sign: Vector, values: Vector, ridge: Vector, *, bias: bool = True
) -> tuple[float, float, float]:
    """Return primal, dual and bias of a dual point of the squared-hinge problem.

    Parameters
    ----------
    alpha : ndarray of shape (n,)
        Dual variables.
    sign : ndarray of shape (n,)
        Labels ±1.
    values : ndarray of shape (n,)
        wᵀφ(x) of the w that belongs to `alpha`.
    ridge : ndarray of shape (n,)
        1 / (2 C s).
    bias : bool, default=True
        Whether the machine has one; else it is zero.
    """
    beta = alpha * sign
    b = float(beta.sum()) if bias else 0.0
    norm2 = float(beta @ values) + b * b
    slack = np.maximum(0.0, 1.0 - sign * (values + b))
    primal = 0.5 * norm2 + 0.5 * float((slack * slack / ridge).sum())
    dual = float(alpha.sum()) - 0.5 * norm2 - 0.5 * float((alpha * (alpha * ridge)).sum())
    return primal, dual, b


def class_means(sign: Vector, most: Vector) -> Vector:
    """Return dual variables whose w is along the difference of the class means.

    That is what can be said without a step. Of either side as much as the smaller one allows.

    Parameters
    ----------
    sign : ndarray of shape (n,)
        Labels ±1.
    most : ndarray of shape (n,)
        What each may be at the most: C s for the hinge, and 2 C s, where w is zero, for its square.
    """
    above, below = float(most[sign > 0].sum()), float(most[sign < 0].sum())
    share = min(above, below) / np.where(sign > 0, above, below)
    return share * most


def hinge_machine(
    K: Matrix,
    sign: Vector,
    upper: Vector,
    tol: float,
    deadline: Deadline,
    *,
    first: bool,
    **ways: Any,
) -> HingeDual:
    """Solve the dual of the hinge-loss machine; the first one is there without any step, too.

    Parameters
    ----------
    K, sign, upper : ndarray
        As in ``solve_hinge_dual``.
    tol : float
        Relative duality gap that is asked for.
    deadline : Deadline
        The end of the time.
    first : bool
        Whether there is no earlier direction: if the time was over before the first step, the
        machine is that of the class means.
    **ways
        Passed to ``solve_hinge_dual``.
    """
    ways |= {"tol": max(1e-12, 0.01 * tol), "deadline": deadline}
    solved = solve_hinge_dual(K, sign, upper, **ways)
    if first and not solved.alpha.any():
        start = class_means(sign, upper)
        product = (sign * start) @ K
        square = float(product @ (product if ways.get("factored") else sign * start))
        total = float(start.sum())
        start *= total / square if square > total else 1.0
        solved = solve_hinge_dual(K, sign, upper, start=start, **ways)
    return solved


def how_it_ended(gap: float, tol: float, deadline: Deadline) -> Stop:
    """Return how the solver of a direction ended, with this relative gap."""
    if gap <= tol:
        return SOLVED
    if deadline.passed:
        return deadline.stop
    return Stop(Ended.PRECISION, "no more digits")
