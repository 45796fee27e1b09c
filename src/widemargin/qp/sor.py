"""Successive over-relaxation for quadratic programs with bounds.

Algorithms 2 and 3 of Tsang, Kocsor and Kwok, "Large-scale maximum margin discriminant analysis
using core vector machines" (MMDA-CVM):

    min ½ xᵀHx − aᵀx,   lower ≤ x ≤ upper,

one variable at a time: Δx_i = (a − Hx)_i / H_ii, (37), relaxed by ω and clipped to the bounds.
``order="cyclic"`` is Algorithm 2, ``order="greedy"`` Algorithm 3, which picks the variable with the
largest change. For the constrained ball x = (α, γ), H = G of (38), a = (1, 0), and only α is
bounded below (line 4 of Algorithm 3 runs over t+1 … t+s).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.loop import Deadline
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.pair_loops")

# Multiplications between two looks at the clock.
_SPELL = 10**8


@dataclass(frozen=True)
class SORResult:
    """The solution, its KKT residual, and the number of updates.

    Attributes
    ----------
    x : ndarray
        The point reached.
    residual : float
        Largest violation of the KKT conditions: |a − Hx| at a variable between its bounds, and
        the part of it that points into the box at a variable on a bound.
    n_updates : int
        Changes of a single variable.
    """

    x: Vector
    residual: float
    n_updates: int


def solve_sor(
    H: NDArray[Any],
    a: Vector,
    *,
    lower: float | Vector = 0.0,
    upper: float | Vector = np.inf,
    start: Vector | None = None,
    omega: float = 1.0,
    order: str = "greedy",
    tol: float = 1e-8,
    max_updates: int | None = None,
    deadline: Deadline | None = None,
) -> SORResult:
    """Minimise ½ xᵀHx − aᵀx between bounds, one variable at a time.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Symmetric with a positive diagonal, positive semidefinite.
    a : ndarray of shape (n,)
        The linear term.
    lower, upper : float or ndarray of shape (n,)
        Bounds; they may be infinite.
    start : ndarray of shape (n,), default=None
        Where to start; it is clipped to the bounds. None starts at zero, clipped.
    omega : float, default=1.0
        Relaxation, between 0 and 2; 1 is Gauss–Seidel.
    order : {"greedy", "cyclic"}, default="greedy"
        Largest change first, or one variable after another.
    tol : float, default=1e-8
        Stop when the KKT residual is at most this.
    max_updates : int, default=None
        Updates at the most; None allows 1000 a variable, at least 10^6.
    deadline : Deadline, default=None
        When to stop all the same; an interrupt then brings it about.

    Returns
    -------
    SORResult
        The point, its KKT residual and the number of updates.

    Examples
    --------
    >>> import numpy as np
    >>> result = solve_sor(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0]))
    >>> result.x.round(6).tolist()
    [0.5, 0.0]
    """
    if not 0.0 < omega < 2.0:
        raise ValueError(f"omega={omega!r} must lie between 0 and 2 for the iteration to converge.")
    if order not in ("greedy", "cyclic"):
        raise ValueError(f'order={order!r} must be "greedy" or "cyclic".')
    H = np.ascontiguousarray(H, dtype=np.float64)
    n = len(H)
    if n and not np.diagonal(H).min() > 0:
        raise ValueError(
            "H must have a positive diagonal: successive over-relaxation divides by it."
        )
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), n).copy()
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), n).copy()
    x = np.clip(np.zeros(n) if start is None else np.asarray(start, dtype=np.float64), low, high)
    limit = max(1000 * n, 10**6) if max_updates is None else max_updates
    residual = np.asarray(a, dtype=np.float64) - H @ x
    n_updates, spell = 0, max(1, _SPELL // max(1, n))
    until = Deadline() if deadline is None else deadline
    while n_updates < limit and not until.passed:
        allowed = min(spell, limit - n_updates)
        # An interrupt waits for compiled code, so that x and its residual belong together.
        with until.ends_on_interrupt() if deadline is not None else nullcontext():
            done = loops.relax(H, low, high, x, residual, omega, order == "greedy", tol, allowed)
            n_updates += int(done)
            if done < allowed:
                break
    return SORResult(x, kkt_residual(x, residual, low, high), n_updates)


def kkt_residual(x: Vector, residual: Vector, lower: Vector, upper: Vector) -> float:
    """Return the largest violation of the KKT conditions, residual being a − Hx."""
    inward = np.where(x <= lower, np.maximum(residual, 0.0), residual)
    inward = np.where(x >= upper, np.minimum(inward, 0.0), inward)
    return float(np.abs(inward).max(initial=0.0))
