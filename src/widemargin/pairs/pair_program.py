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

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Ended, Stop, bounds, relative_gap
from widemargin.pairs.class_pairs import ClassPairs, Pairs
from widemargin.qp import solve_nonnegative

# Pairs that join at a time at the least, beside one for each class.
_LEAST = 64
# Weight of a proximal step, where the diagonal of G is one, and steps at the most; with an upper
# bound, the weight at first and at the most, and rounds that a step may take.
_PROXIMAL, _MOST_STEPS = 1e-5, 100
_BOXED, _HEAVIEST, _ROUNDS = 0.1, 100.0, 40
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


class PairProgram:
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

    def __init__(
        self,
        classes: ClassPairs,
        C: float = float("inf"),
        *,
        squared: bool = False,
        tol: float = 1e-9,
        batch: int | None = None,
    ) -> None:
        self.classes = classes
        self.C = C
        self.squared = squared
        self.tol = tol
        self.batch = max(_LEAST, classes.n_classes) if batch is None else batch
        # Distances of order one keep the numbers of G so; Q is brought back at the end.
        self.unit = float(np.trace(classes.mean_scatter()))

    def start(self) -> ProgramState:
        """Solve for the closest pairs."""
        return self._solved(self.classes.closest(self.classes.means, self.batch), None)

    def step(self, state: ProgramState) -> ProgramState:
        """Let the pairs join that violate their constraint most."""
        worst, old = state.worst, state.pairs
        c = self.classes.n_classes
        new = ~np.isin(worst.first * c + worst.second, old.first * c + old.second)
        new &= worst.distance < 1.0 - 0.1 * self.tol
        # Pairs far from their constraint would only make the program larger.
        kept = (state.alpha > 0) | (len(old.first) < 4 * self.batch)
        joined = Pairs(
            np.append(old.first[kept], worst.first[new]),
            np.append(old.second[kept], worst.second[new]),
            np.zeros(0),
        )
        return self._solved(joined, np.append(state.alpha[kept], np.ones(int(new.sum()))))

    def certificate(self, state: ProgramState) -> Certificate:
        """Return the bounds on the optimum."""
        return bounds(state.primal, state.dual, n_vectors=int((state.alpha > 0).sum()))

    def stopped(self, state: ProgramState) -> Stop | None:
        """Return whether the gap is small, or no pair is left that could join."""
        gap = relative_gap(state.primal, state.dual)
        if gap <= self.tol:
            return Stop(Ended.SOLVED, f"gap at most {self.tol:g}")
        c = self.classes.n_classes
        known = state.pairs.first * c + state.pairs.second
        missing = ~np.isin(state.worst.first * c + state.worst.second, known)
        if not (missing & (state.worst.distance < 1.0 - 0.1 * self.tol)).any():
            kind = Ended.SOLVED if gap <= _SMALL_GAP else Ended.PRECISION
            return Stop(kind, "every pair is as far apart as this precision allows")
        return None

    def finish(self, state: ProgramState) -> ProgramState:
        """Return the state as it is: its bounds speak of all pairs."""
        return state

    def _solved(self, pairs: Pairs, start: Vector | None) -> ProgramState:
        """Solve for some pairs, and look at all."""
        apart = self.classes.differences(pairs) / np.sqrt(self.unit)
        G = (apart @ apart.T) ** 2
        # In these units α is larger by unit²; so is what it costs.
        C = self.C * self.unit**2
        upper = None
        start = None if start is None else start * self.unit**2
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
        # Pairs that are known and pay for their errors must not hide others.
        count = self.batch + len(pairs.first)
        worst = self.classes.closest(self.classes.means @ root / np.sqrt(self.unit), count)
        primal, dual = self._bounds(Q, alpha, C, worst, root)
        return ProgramState(
            pairs,
            alpha / self.unit**2,
            Q / self.unit,
            primal / self.unit**2,
            dual / self.unit**2,
            worst,
        )

    def _bounds(
        self, Q: Matrix, alpha: Vector, C: float, worst: Pairs, root: Matrix
    ) -> tuple[float, float]:
        """Return the values of a feasible point of each problem, in units."""
        size = float(np.sum(Q * Q))
        total = float(alpha.sum())
        if np.isinf(C):
            # The best multiple of α, and the least multiple of Q that satisfies all.
            dual = 0.5 * total**2 / size if size > 0 else 0.0
            least = float(worst.distance[0])
            return (0.5 * size / least**2 if least > 0 else np.inf), dual
        loss = self._loss(root)
        if self.squared:
            spread = size + 0.5 / C * float(alpha @ alpha)
            dual = 0.5 * total**2 / spread if spread > 0 else 0.0
            return 0.5 * size + C * loss, dual
        return 0.5 * size + C * loss, total - 0.5 * size

    def _loss(self, root: Matrix) -> float:
        """Return Σ ξ or Σ ξ² over all pairs."""
        projected = self.classes.means @ root / np.sqrt(self.unit)
        return self.classes.shortfall(projected, 2 if self.squared else 1)


def _maximised(G: Matrix, upper: Vector | None, start: Vector | None) -> Vector:
    """Return α that maximises Σα − ½αᵀGα within its bounds.

    There are more pairs than dimensions of Q, and G is singular: every step adds w/2 ‖β − β'‖², β'
    where the step starts. The steps end at a solution, and an exact method takes each. β is α in
    units that make the diagonal one: the closest pairs, whose α is the largest, have the smallest.
    """
    size = np.sqrt(np.diagonal(G))
    scaled = G / size / size[:, None]
    top = np.full(len(G), np.inf) if upper is None else upper
    bound = None if upper is None else upper * size
    # What rounding leaves of residuals cannot be asked for.
    tol = max(0.1 * _KKT / float(size.max()), 1e-15 / float(size.min()))
    alpha = np.zeros(len(G)) if start is None else start
    beta = alpha * size
    first = None if start is None else beta
    # Two bounds confuse the exact method unless the weight is large, or it starts near the answer.
    weight, rounds = (_PROXIMAL, None) if upper is None else (_BOXED, _ROUNDS)
    for _ in range(_MOST_STEPS):
        matrix = scaled + weight * np.eye(len(G))
        linear = 1.0 / size + weight * beta
        solved = solve_nonnegative(
            matrix, linear, upper=bound, start=first, tol=tol, max_rounds=rounds
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
        wrong = np.where(alpha < top, np.maximum(residual, 0.0), 0.0)
        wrong = np.maximum(wrong, np.where(alpha > 0, -residual, 0.0))
        if wrong.max(initial=0.0) <= _KKT:
            break
    return alpha
