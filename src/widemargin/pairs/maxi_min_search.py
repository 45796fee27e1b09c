"""From class means to directions: the relaxation, its rounding or refinement, and the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Limits, Report, run
from widemargin.pairs.class_pairs import ClassPairs, Pairs
from widemargin.pairs.online import Online, default_lam
from widemargin.pairs.pair_program import PairProgram
from widemargin.pairs.refine import Refine, orthonormal, pushed_apart, widest_mean
from widemargin.pairs.relaxation import upper_bound
from widemargin.pairs.semidefinite import solve_semidefinite

# Classes up to which searches are cheap: more starts, the relaxation's solution among them.
_FEW_CLASSES, _STARTS = 100, 10
# Pairs that may have a weight in the bound, for each class, and at the least.
_PAIRS_PER_CLASS, _LEAST_PAIRS = 1, 64


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
class _Relaxed:
    """The solution of the relaxation: Q, and weights of pairs for the bound."""

    Q: Matrix
    pairs: Pairs
    weight: Vector
    certificate: Certificate | None
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
        few = classes.n_classes <= _FEW_CLASSES
        relaxed: _Relaxed | None = None
        if not self.refine or (few and np.isinf(self.sharpness)):
            relaxed = self._relaxed(report)
        bound = self._bound(d, relaxed)
        if not self.refine and relaxed is not None:
            starts, sharpness = [_leading(relaxed.Q, d)], float("inf")
        else:
            starts, sharpness = self._starts(d, relaxed, few), self.sharpness
        # Rounding takes its start as it is; so does LDA, which is the best for the mean.
        search = self.refine and sharpness > 0.0
        solver = Refine(classes, starts, sharpness, bound, self.tol, search=search)
        result = run(solver, Limits(deadline=self.deadline, patience=len(starts) + 1), report)
        converged = result.converged
        if relaxed is not None:
            converged &= relaxed.converged
        W = _turned(classes, result.state.best)
        reached = solver.reached(W)
        return Solution(
            W,
            reached,
            # Where both are the same, rounding may put the bound below.
            bound if reached > bound * (1.0 + 1e-9) else max(bound, reached),
            result.certificate,
            None if relaxed is None else relaxed.certificate,
            converged,
        )

    def _relaxed(self, report: Report) -> _Relaxed:
        """Solve the relaxation."""
        limits = Limits(deadline=self.deadline)
        if self.solver == "exact":
            program = PairProgram(self.classes, self.C, squared=self.squared)
            solved = run(program, limits, report)
            state = solved.state
            return _Relaxed(state.Q, state.pairs, state.alpha, solved.certificate, solved.converged)
        near = self._near()
        if self.solver == "sdp":
            Q = solve_semidefinite(self.classes, self.C, squared=self.squared)
            return _Relaxed(Q, near, np.ones(len(near.first)), None, True)
        lam = self.lam
        if lam is None:
            pairs = self.classes.n_pairs
            lam = default_lam(self.classes) if np.isinf(self.C) else 1.0 / (self.C * pairs)
        online = Online(self.classes, lam, self.n_updates, self.average, self.rng)
        done = run(online, Limits(deadline=self.deadline, patience=self.n_updates), report)
        Q = online.matrix(done.state)
        return _Relaxed(Q, near, np.ones(len(near.first)), done.certificate, done.converged)

    def _near(self) -> Pairs:
        count = max(_LEAST_PAIRS, _PAIRS_PER_CLASS * self.classes.n_classes)
        return self.classes.closest(self.classes.means, count)

    def _bound(self, d: int, relaxed: _Relaxed | None) -> float:
        """Return what the smallest distance cannot exceed in d dimensions."""
        if relaxed is None or not relaxed.weight.any():
            near = self._near()
            return upper_bound(self.classes, near, np.ones(len(near.first)), d)
        return upper_bound(self.classes, relaxed.pairs, relaxed.weight, d)

    def _starts(self, d: int, relaxed: _Relaxed | None, few: bool) -> list[Matrix]:
        """Return where the refinement starts."""
        k = self.classes.means.shape[1]
        starts = [widest_mean(self.classes, d)]
        if self.sharpness == 0.0 or d >= k:
            return starts
        if relaxed is not None:
            starts.append(_leading(relaxed.Q, d))
        more = (_STARTS if few else 0) if self.n_init is None else self.n_init
        return starts + [self.rng.normal(size=(k, d)) for _ in range(more)]


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


def _leading(Q: Matrix, d: int) -> Matrix:
    """Return the first d eigenvectors: (5) of the paper."""
    vectors = np.linalg.eigh(Q)[1]
    return np.ascontiguousarray(vectors[:, ::-1][:, :d])


def _turned(classes: ClassPairs, W: Matrix) -> Matrix:
    """Return the same span, with the directions of the largest mean distance first."""
    scatter = W.T @ classes.mean_scatter() @ W
    return orthonormal(W @ np.linalg.eigh(scatter)[1][:, ::-1])
