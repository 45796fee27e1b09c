"""The convex relaxation of the Maxi-Min criterion: a quadratic program over pairs of classes.

Xu, Huang and Liu, "Maxi-Min discriminant analysis via online learning" (2012). With the
difference δ of the whitened means of a pair, (7) and its soft form (11) are

    min over Q of  ½‖Q‖_F² + C Σ ξ     with  δᵀQδ ≥ 1 − ξ,  ξ ≥ 0  for all pairs,  Q ⪰ 0,

λ = 1/C in the paper; C = ∞ is (7). The constraint Q ⪰ 0 is automatic. Without it, the problem is
an SVM's with one class, no bias and the kernel (δ_pᵀδ_q)², so its solution is

    Q  =  Σ_p α_p δ_p δ_pᵀ,     α ≥ 0,

a sum of positive semidefinite matrices. What solves the problem without the constraint satisfies
it, and therefore solves the problem with it: no semidefinite program is needed. The dual is

    max  Σα − ½ αᵀGα,     G_pq = (δ_pᵀδ_q)²,     0 ≤ α ≤ C,

and for the squared loss C Σ ξ² the bound goes, and 1/(2C) is added to the diagonal of G.

Of millions of pairs few are active. They are found by growth: solve for the pairs that are known,
look for the closest pairs under Q, let those that violate their constraint join, and repeat. The
multiple of Q at which the closest pair has distance 1 is feasible for (7), which proves a gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Ended, Solver, Stop, bounds, relative_gap
from widemargin.pairs.class_pairs import ClassPairs, Pairs
from widemargin.qp import solve_nonnegative

# Pairs that join at a time at the least, beside one for each class.
_LEAST = 64
# Weight of a proximal step, where the diagonal of G is one.
_PROXIMAL = 1e-5
# Proximal steps at the most.
_MOST_STEPS = 100
# Weight of the first step where there is an upper bound.
_BOXED = 0.1
# Its weight at the most.
_HEAVIEST = 100.0
# Rounds that such a step may take.
_ROUNDS = 40
# How exactly the program of some pairs is solved: its constraints are of order one.
_KKT = 1e-10
# The gap that rounding may leave.
_SMALL_GAP = 1e-6


@dataclass(frozen=True)
class ProgramState:
    """Pairs that have joined, with their α.

    Attributes
    ----------
    pairs : Pairs
        The pairs; their distances are those without projection.
    alpha : ndarray
        α of each.
    Q : ndarray of shape (k, k)
        Σ α δδᵀ.
    primal, dual : float
        An upper and a lower bound on the optimum.
    worst : Pairs
        The closest pairs under Q, with their distances there.
    """

    pairs: Pairs
    alpha: Vector
    Q: Matrix
    primal: float
    dual: float
    worst: Pairs


@dataclass(frozen=True)
class PairProgram(Solver[ProgramState]):
    """Solver of the relaxation, for ``loop.run``.

    Parameters
    ----------
    classes : ClassPairs
        Whitened class means, all different.
    C : float, default=inf
        Weight of the errors; infinite for (7).
    squared : bool, default=False
        Whether errors count squared.
    tol : float, default=1e-9
        Relative gap to stop at.
    batch : int, default=None
        Pairs that join at a time at the most; None is one for each class, and 64 at the least.
    """

    classes: ClassPairs
    C: float = float("inf")
    squared: bool = False
    tol: float = 1e-9
    batch: int | None = None

    @property
    def at_a_time(self) -> int:
        """How many pairs join at a time at the most."""
        return self.batch or max(_LEAST, self.classes.n_classes)

    def start(self) -> ProgramState:
        """Solve for the closest pairs."""
        return self._solved(self.classes.closest(self.classes.means, self.at_a_time), None)

    def step(self, state: ProgramState) -> ProgramState:
        """Let the pairs join that violate their constraint most."""
        new = state.worst[self._joining(state)]
        # Pairs far from their constraint would only make the program larger.
        kept = (state.alpha > 0) | (len(state.pairs) < 4 * self.at_a_time)
        return self._solved(
            state.pairs[kept] + new, np.append(state.alpha[kept], np.ones(len(new)))
        )

    def _joining(self, state: ProgramState) -> NDArray[np.bool_]:
        """Return which of the closest pairs violate their constraint and are not known."""
        violated = state.worst.distance < 1.0 - 0.1 * self.tol
        return violated & state.worst.missing_in(state.pairs)

    def certificate(self, state: ProgramState) -> Certificate:
        """Return the bounds on the optimum."""
        return bounds(state.primal, state.dual, n_vectors=int((state.alpha > 0).sum()))

    def stopped(self, state: ProgramState) -> Stop | None:
        """Return whether the gap is small, or no pair is left that could join."""
        gap = relative_gap(state.primal, state.dual)
        if gap <= self.tol:
            return Stop(Ended.SOLVED, f"gap at most {self.tol:g}")
        if not self._joining(state).any():
            kind = Ended.SOLVED if gap <= _SMALL_GAP else Ended.PRECISION
            return Stop(kind, "every pair is as far apart as this precision allows")
        return None

    def _solved(self, pairs: Pairs, start: Vector | None) -> ProgramState:
        """Solve for some pairs, and look at all."""
        # Distances of order one keep the numbers of G so; α is larger by unit² then.
        unit = float(np.trace(self.classes.mean_scatter()))
        apart = self.classes.differences(pairs) / np.sqrt(unit)
        G = (apart @ apart.T) ** 2
        C = self.C * unit**2
        upper = None
        start = None if start is None else start * unit**2
        if self.squared:
            G[np.diag_indices(len(G))] += 0.5 / C
        elif np.isfinite(C):
            upper = np.full(len(G), C)
            if start is None:
                # Few pairs change when a bound is put on them.
                start = np.minimum(_maximised(G, None, None), C)
        alpha = _maximised(G, upper, start)
        Q = (apart.T * alpha) @ apart
        values, vectors = np.linalg.eigh(Q)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        projected = self.classes.means @ root / np.sqrt(unit)
        # Pairs that are known and pay for their errors must not hide others.
        worst = self.classes.closest(projected, self.at_a_time + len(pairs))
        primal, dual = self._bounds(Q, alpha, C, float(worst.distance[0]), projected)
        return ProgramState(
            pairs, alpha / unit**2, Q / unit, primal / unit**2, dual / unit**2, worst
        )

    def _bounds(
        self, Q: Matrix, alpha: Vector, C: float, least: float, projected: Matrix
    ) -> tuple[float, float]:
        """Return the values of a feasible point of each problem, in units."""
        size, total = float(np.sum(Q * Q)), float(alpha.sum())
        spread = size + (0.5 / C * float(alpha @ alpha) if self.squared else 0.0)
        # The best multiple of α is feasible unless it is above C.
        dual = 0.5 * total**2 / spread if spread > 0 else 0.0
        if np.isinf(C):
            # The least multiple of Q that satisfies all.
            return (0.5 * size / least**2 if least > 0 else np.inf), dual
        loss = self.classes.shortfall(projected, 2 if self.squared else 1)
        return 0.5 * size + C * loss, dual if self.squared else total - 0.5 * size


def _maximised(G: Matrix, upper: Vector | None, start: Vector | None) -> Vector:
    """Return α that maximises Σα − ½αᵀGα within its bounds.

    There are more pairs than dimensions of Q, and G is singular: every step adds w/2 ‖β − β'‖², β'
    where the step starts. The steps end at a solution, and an exact method takes each. β is α in
    units that make the diagonal one: the closest pairs, whose α is the largest, have the smallest.
    """
    size = np.sqrt(np.diagonal(G))
    scaled = G / size / size[:, None]
    top = np.full(len(G), np.inf) if upper is None else upper
    # What rounding leaves of residuals cannot be asked for.
    tol = max(0.1 * _KKT / float(size.max()), 1e-15 / float(size.min()))
    alpha = np.zeros(len(G)) if start is None else start
    beta = alpha * size
    first = None if start is None else beta
    # Two bounds confuse the exact method unless the weight is large, or it starts near the answer.
    weight, rounds = (_PROXIMAL, None) if upper is None else (_BOXED, _ROUNDS)
    for _ in range(_MOST_STEPS):
        solved = solve_nonnegative(
            scaled + weight * np.eye(len(G)),
            1.0 / size + weight * beta,
            upper=top * size,
            start=first,
            tol=tol,
            max_rounds=rounds,
        )
        if rounds is not None and solved.residual > 10.0 * tol:
            if weight >= _HEAVIEST:
                rounds = None
            weight = min(30.0 * weight, _HEAVIEST)
            continue
        beta = first = solved.x
        weight = max(0.1 * weight, _PROXIMAL)
        # Exactly at the bound, whatever rounding makes of the units.
        alpha = np.where(beta < top * size, beta / size, top)
        residual = 1.0 - G @ alpha
        uphill = (alpha < top) & (residual > _KKT)
        if not (uphill | ((alpha > 0) & (residual < -_KKT))).any():
            break
    return alpha
