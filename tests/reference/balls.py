"""Enclosing balls, slowly and obviously, in float64.

`exact_ball` is the minimum enclosing ball of points known by their Gram matrix, by a QP solver. The
``naive_*`` functions are the papers' algorithms on explicit vectors, every distance computed anew
at every step: Algorithm 1 of MMDA-CVM (core sets) and Algorithms 2, 3 and 4 of the BVM paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NaiveBall:
    """A ball, the coefficients of its centre over the points, and how many steps it took."""

    center: Array
    radius: float
    weights: Array
    n_steps: int

    @property
    def core(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.weights)


# ---------------------------------------------------------------- the exact minimum enclosing ball


def _constrained(K: Array, delta2: Array | None, P: Array | None) -> tuple[Array, Array]:
    """The squared lengths and the inner products that the centre sees."""
    K = np.asarray(K, dtype=np.float64)
    lengths2 = np.diag(K).copy() if delta2 is None else np.diag(K) + delta2
    inner = K if P is None else K - P.reshape(len(K), -1) @ P.reshape(len(K), -1).T
    return lengths2, inner


def squared_distances(
    K: Array, weights: Array, delta2: Array | None = None, P: Array | None = None
) -> Array:
    """Squared distance of every point from the centre with those coefficients."""
    lengths2, inner = _constrained(K, delta2, P)
    return lengths2 - 2.0 * inner @ weights + weights @ inner @ weights


def exact_ball(
    K: Array, delta2: Array | None = None, P: Array | None = None
) -> tuple[Array, float]:
    """Coefficients λ (λ ≥ 0, Σλ = 1) and R² of the minimum enclosing ball.

    Parameters
    ----------
    K : (n, n)
        Inner products of the points.
    delta2 : (n,), optional
        Added to every squared distance: each point has one more coordinate δ_i, in which the
        centre must be 0.
    P : (n, s), optional
        Row i holds the inner products of point i with s orthonormal directions, to which the centre
        must be orthogonal; the centre is then Σ λ_i (point_i − its part in those directions).

    Notes
    -----
    The dual is max Σ λ_i (K_ii + δ_i²) − λᵀ(K − PPᵀ)λ over the simplex. λ need not be unique (the
    Gram matrix may be singular), but the ball is.
    """
    import cvxpy as cp

    lengths2, inner = _constrained(K, delta2, P)
    n = len(inner)
    size = max(float(np.abs(lengths2).max()), 1e-300)
    values, vectors = np.linalg.eigh((inner + inner.T) / (2.0 * size))
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    weights = cp.Variable(n, nonneg=True)
    objective = cp.Minimize(cp.sum_squares(factor.T @ weights) - (lengths2 / size) @ weights)
    cp.Problem(objective, [cp.sum(weights) == 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    guess = np.maximum(weights.value, 0.0)
    guess /= guess.sum()
    polished = _polish(guess, lengths2 / size, inner / size)
    best = min((guess, polished), key=lambda w: _ball_gap(w, lengths2, inner))
    gap = _ball_gap(best, lengths2, inner)
    if gap > 1e-7 * size:
        raise RuntimeError(f"the ball is known only to {gap / size:.1e} of the largest length")
    return best, float(lengths2 @ best - best @ inner @ best)


def _ball_gap(weights: Array, lengths2: Array, inner: Array) -> float:
    """Largest squared distance (an upper bound of R²) minus the dual value (a lower bound)."""
    norm2 = weights @ inner @ weights
    return float((lengths2 - 2.0 * inner @ weights + norm2).max() - (lengths2 @ weights - norm2))


def _polish(guess: Array, lengths2: Array, inner: Array) -> Array:
    """Solve the optimality conditions on the points that touch; let points in or out at need.

    Conditions on the touching set: 2 Σ_j H_ij λ_j + μ = lengths2_i, Σλ = 1. Least squares, because
    more points may touch than are affinely independent.
    """
    distance2 = lengths2 - 2.0 * inner @ guess
    # λ against slack, as in any interior-point solution: the larger of the two is the true one.
    touching = guess > distance2.max() - distance2
    best, best_gap = guess, _ball_gap(guess, lengths2, inner)
    for _ in range(2 * len(guess) + 20):
        index = np.flatnonzero(touching)
        m = len(index)
        system = np.ones((m + 1, m + 1))
        system[:m, :m] = 2.0 * inner[np.ix_(index, index)]
        system[m, m] = 0.0
        solution = np.linalg.lstsq(system, np.append(lengths2[index], 1.0), rcond=1e-14)[0][:m]
        weights = np.zeros_like(guess)
        weights[index] = solution
        if solution.min() < 0.0 and m > 1:
            touching[index[np.argmin(solution)]] = False
            continue
        gap = _ball_gap(weights, lengths2, inner)
        if gap < best_gap:
            best, best_gap = weights, gap
        distance2 = lengths2 - 2.0 * inner @ weights
        furthest = int(np.argmax(distance2))
        if touching[furthest]:
            break
        touching[furthest] = True
    return best


# ---------------------------------------------------------------- MMDA-CVM, Algorithm 1


def naive_core_set(
    points: Array,
    epsilon: float,
    start: int = 0,
    delta2: Array | None = None,
    directions: Array | None = None,
) -> NaiveBall:
    """Grow the core set by the furthest point until the (1+ε)-ball holds all of them.

    ``directions`` (s, d) are orthonormal rows the centre must be orthogonal to; ``delta2`` as in
    `exact_ball`. ``n_steps`` counts points added after the first; ``radius`` is the core set's own
    (a lower bound of the true one), without the factor 1+ε.
    """
    n = len(points)
    K = points @ points.T
    P = None if directions is None else points @ directions.T
    extra = np.zeros(n) if delta2 is None else delta2
    core = [start]
    while True:
        index = np.array(core)
        core_weights, radius2 = exact_ball(
            K[np.ix_(index, index)], extra[index], None if P is None else P[index]
        )
        weights = np.zeros(n)
        weights[index] = core_weights
        center = weights @ points
        if directions is not None:
            center = center - (center @ directions.T) @ directions
        radius = np.sqrt(max(radius2, 0.0))
        furthest, distance = -1, -1.0
        for i in range(n):
            distance_i = np.sqrt(((points[i] - center) ** 2).sum() + extra[i])
            if distance_i > distance:
                furthest, distance = i, distance_i
        # A point of the core set can only be furthest by rounding.
        if distance <= (1.0 + epsilon) * radius or furthest in core:
            return NaiveBall(center, float(radius), weights, len(core) - 1)
        core.append(furthest)


# ---------------------------------------------------------------- BVM, Algorithms 2, 3 and 4


def naive_fixed_radius(
    points: Array,
    radius: float,
    epsilon: float,
    start: int = 0,
    center: Array | None = None,
    weights: Array | None = None,
    max_steps: int = 1_000_000,
) -> NaiveBall:
    """Algorithm 2: while a point lies outside (1+ε)r, pull the centre until r just reaches it.

    Any such point may be taken; this takes the first in the order of the rows. ``center`` and
    ``weights`` continue from an earlier ball; otherwise the centre starts at ``points[start]``.
    """
    if center is None or weights is None:
        center = points[start].copy()
        weights = np.zeros(len(points))
        weights[start] = 1.0
    for step in range(max_steps):
        outside = -1
        for i in range(len(points)):
            if np.linalg.norm(points[i] - center) > (1.0 + epsilon) * radius:
                outside = i
                break
        if outside < 0:
            return NaiveBall(center, radius, weights, step)
        beta = radius / np.linalg.norm(points[outside] - center)  # (5)
        center = points[outside] + beta * (center - points[outside])  # (6)
        weights = beta * weights
        weights[outside] += 1.0 - beta
    raise RuntimeError(f"no enclosing ball of radius {radius:g} in {max_steps} steps: too small?")


def scales(epsilon: float) -> list[float]:
    """½, ¼, … down to ε; the last is ε itself, also where ε is no power of two."""
    halves = [0.5]
    while halves[-1] / 2.0 > epsilon:
        halves.append(halves[-1] / 2.0)
    return [scale for scale in halves if scale > epsilon] + [epsilon]


def naive_multi_scale(
    points: Array,
    radius: float,
    epsilon: float,
    start: int = 0,
    center: Array | None = None,
    weights: Array | None = None,
) -> NaiveBall:
    """Algorithm 3: Algorithm 2 at ε = ½, ¼, …, each started from the ball before."""
    n_steps = 0
    for scale in scales(epsilon):
        ball = naive_fixed_radius(points, radius, scale, start, center, weights)
        center, weights = ball.center, ball.weights
        n_steps += ball.n_steps
    return NaiveBall(ball.center, radius, ball.weights, n_steps)


def naive_shrinking(
    points: Array,
    radius: float,
    epsilon: float,
    start: int = 0,
    max_rounds: int = 100,
    multi_scale: bool = True,
) -> NaiveBall:
    """Algorithm 4: give the centre a spare coordinate, and shrink r by what is left in it.

    The spare coordinate starts at r and is 0 for every point, so each update multiplies it by β.
    When all points are inside, ‖c − x‖² ≤ (1+ε)²r² − c_T² for every one, which is the next r². The
    ball returned holds all points within (1+ε) of its radius. ``max_rounds=1`` is what the paper's
    experiments ran.
    """
    n, d = points.shape
    padded = np.hstack([points, np.zeros((n, 1))])
    n_steps = 0
    solve = naive_multi_scale if multi_scale else naive_fixed_radius
    for _ in range(max_rounds):
        center = np.append(points[start], radius)
        weights = np.zeros(n)
        weights[start] = 1.0
        ball = solve(padded, radius, epsilon, start, center, weights)
        n_steps += ball.n_steps
        spare2 = float(ball.center[d] ** 2)
        if spare2 <= (2.0 * epsilon + epsilon**2) * radius**2:
            break  # the next radius would be no smaller
        radius = float(np.sqrt((1.0 + epsilon) ** 2 * radius**2 - spare2))
    return NaiveBall(ball.center[:d], radius, ball.weights, n_steps)
