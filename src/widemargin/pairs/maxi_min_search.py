"""From class means to directions: the relaxation, its rounding or refinement, and the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.arrays import Matrix
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Limits, Report, Result, run
from widemargin.pairs.class_pairs import ClassPairs
from widemargin.pairs.online import Online, default_lam
from widemargin.pairs.pair_program import PairProgram, ProgramState
from widemargin.pairs.refine import Refine, leading, orthonormal, pushed_apart, widest_mean
from widemargin.pairs.relaxation import upper_bound
from widemargin.pairs.semidefinite import solve_semidefinite

# Classes up to which searches are cheap: more starts, the relaxation's solution among them.
_FEW_CLASSES = 100
# Random starts where classes are few.
_STARTS = 10
# Pairs that may have a weight in the bound, at the least, beside one for each class.
_LEAST_PAIRS = 64


@dataclass(frozen=True)
class Solution:
    """Directions and what is known of them.

    Attributes
    ----------
    W : ndarray of shape (k, d)
        Orthonormal columns, those along which the classes spread most first.
    reached, bound : float
        Their smallest squared distance, and what no others can exceed.
    certificate : Certificate
        One over each.
    relaxation : Certificate or None
        Of the convex problem, where it was solved.
    converged : bool
        Whether no search was cut short.
    """

    W: Matrix
    reached: float
    bound: float
    certificate: Certificate
    relaxation: Certificate | None
    converged: bool


@dataclass(frozen=True)
class MaxiMinSearch:
    """The parameters of `MaxiMinDA` that a search for directions needs; see there."""

    classes: ClassPairs
    sharpness: float
    solver: str
    refine: bool
    C: float
    squared: bool
    lam: float | None
    n_updates: int
    average: bool
    n_init: int | None
    tol: float
    deadline: Deadline
    rng: np.random.Generator

    def run(self, d: int, report: Report) -> Solution:
        """Return the best d directions."""
        classes = self.classes
        pairs = classes.closest(classes.means, max(_LEAST_PAIRS, classes.n_classes))
        weight = np.ones(len(pairs))
        Q, solved = None, None
        few = classes.n_classes <= _FEW_CLASSES
        if not self.refine or (few and np.isinf(self.sharpness)):
            Q, solved = self._relaxed(report)
        state = None if solved is None else solved.state
        if isinstance(state, ProgramState) and state.alpha.any():
            pairs, weight = state.pairs, state.alpha
        bound = upper_bound(classes, pairs, weight, d)
        starts = self._starts(d, Q)
        sharpness = self.sharpness if self.refine else float("inf")
        # Rounding takes its start as it is; so does LDA, which is the best for the mean.
        search = self.refine and sharpness > 0.0
        solver = Refine(classes, starts, sharpness, bound, self.tol, search=search)
        result = run(solver, Limits(deadline=self.deadline, patience=len(starts) + 1), report)
        W = result.state.best
        # In the same span, the directions of the largest mean distance first.
        W = orthonormal(W @ leading(W.T @ classes.mean_scatter() @ W, d))
        reached = solver.reached(W)
        return Solution(
            W,
            reached,
            # Where both are the same, rounding may put the bound below.
            bound if reached > bound * (1.0 + 1e-9) else max(bound, reached),
            result.certificate,
            None if solved is None else solved.certificate,
            result.converged and (solved is None or solved.converged),
        )

    def _relaxed(self, report: Report) -> tuple[Matrix, Result[Any] | None]:
        """Solve the relaxation; return Q, and how a solver of ours ended."""
        if self.solver == "sdp":
            return solve_semidefinite(self.classes, self.C, squared=self.squared), None
        if self.solver == "exact":
            program = PairProgram(self.classes, self.C, squared=self.squared)
            solved = run(program, Limits(deadline=self.deadline), report)
            return solved.state.Q, solved
        lam = self.lam
        if lam is None:
            pairs = self.classes.n_pairs
            lam = default_lam(self.classes) if np.isinf(self.C) else 1.0 / (self.C * pairs)
        online = Online(self.classes, lam, self.n_updates, self.average, self.rng)
        done = run(online, Limits(deadline=self.deadline, patience=self.n_updates), report)
        return online.matrix(done.state), done

    def _starts(self, d: int, Q: Matrix | None) -> list[Matrix]:
        """Return where the refinement starts, or what is taken without it."""
        c, k = self.classes.means.shape
        relaxed = [] if Q is None else [leading(Q, d)]
        if not self.refine:
            return relaxed
        widest = widest_mean(self.classes, d)
        if self.sharpness == 0.0 or d >= k:
            return [widest]
        more = self.n_init
        if more is None:
            more = _STARTS if c <= _FEW_CLASSES else 0
        return [widest, *relaxed, *(self.rng.normal(size=(k, d)) for _ in range(more))]


def n_directions(classes: ClassPairs, asked: Any) -> int:
    """Return how many directions are meant.

    Parameters
    ----------
    classes : ClassPairs
        Class means.
    asked : int, float or None
        A number; None for all; or the share of the smallest squared distance in all dimensions that
        the smallest distance must have.
    """
    k = int(classes.means.shape[1])
    if asked is None:
        return k
    if not isinstance(asked, float):
        if asked > k:
            raise ValueError(
                f"n_components={asked} is more than {k}, the number of dimensions in which the "
                "class means differ (n_classes - 1 at the most); give fewer, or use MaxMarginDA."
            )
        return int(asked)
    needed = asked * float(classes.closest(classes.means, 1).distance[0])
    low, high = 0, k
    while high - low > 1:
        d = (low + high) // 2
        W = pushed_apart(classes, widest_mean(classes, d), float("inf"), tol=1e-4)
        reached = float(classes.closest(classes.means @ W, 1).distance[0])
        low, high = (low, d) if reached >= needed else (d, high)
    return high
