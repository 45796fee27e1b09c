"""One ball on the core rows: what `minimum` and `fixed_radius` solve, and their answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import relative_gap
from widemargin.qp.margin import MarginDual

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class CoreProblem:
    """One label column on the core rows.

    Attributes
    ----------
    K : ndarray of shape (m, m) or wider
        Kernel values among the core rows, without the directions where there are any.
    sign : ndarray of shape (m,)
        ±1.
    ridge : ndarray of shape (m,)
        1 / (2 C s).
    eta : float
        η of the centre-constrained ball.
    projection : ndarray of shape (m, n_directions) or None
        p_i = Uᵀφ(x_i) of the core rows.
    """

    K: NDArray[Any]
    sign: Vector
    ridge: Vector
    eta: float
    projection: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Ball:
    """A centre, as the dual variables of the SVM, and what follows from it.

    Attributes
    ----------
    alpha : ndarray of shape (m,)
        Dual variables of the core rows; the centre is Σ α_i φ̃(z_i) / Σ α_i.
    norm2 : float
        ‖w‖² + b² of the SVM.
    dual : float
        1ᵀα − ½ αᵀQα.
    loss : float
        Σ C s ξ² over the core rows.
    worst : float
        Largest residual 1 − (Qα)_i of a core row.
    threshold : float
        A row whose residual exceeds this lies outside the ball.
    """

    alpha: Vector
    norm2: float
    dual: float
    loss: float
    worst: float
    threshold: float

    def center_norm2(self) -> float:
        """Return ‖c‖² of the ball's centre."""
        total = float(self.alpha.sum())
        # dual = Σα − ½ αᵀQα
        return 2.0 * (total - self.dual) / total / total

    def core_gap(self) -> float:
        """Return the relative duality gap over the core rows."""
        return relative_gap(0.5 * self.norm2 + self.loss, self.dual)

    def radius2(self, eta: float) -> float:
        """Return η − ‖c‖², which no ball around these points can fall below."""
        return eta - self.center_norm2()

    def eps(self, eta: float, worst: float) -> float:
        """Return ε such that all points lie within (1 + ε) of the smallest radius."""
        norm2 = self.center_norm2()
        furthest2 = eta + norm2 - 2.0 * (1.0 - worst) / float(self.alpha.sum())
        radius2 = eta - norm2
        if radius2 <= 1e-14 * eta:
            # The centre is a single point, and nothing bounds the radius from below.
            return float("inf")
        return max(0.0, float(np.sqrt(max(furthest2, 0.0) / radius2)) - 1.0)


def ball_facts(point: MarginDual) -> dict[str, Any]:
    """Return the fields of a Ball that follow from a dual point."""
    primal, dual = point.objectives()
    norm2 = float(point.alpha @ point.margin())
    return {
        "alpha": point.alpha,
        "norm2": norm2,
        "dual": dual,
        "loss": primal - 0.5 * norm2,
        "worst": float(point.residual.max()),
    }


State = TypeVar("State", bound=Ball)


class BallMethod(Protocol[State]):
    """How a ball is found on the core rows."""

    def begin(self, problem: CoreProblem, alpha: Vector | None) -> State:
        """Return a first ball, from scratch or from given dual variables."""

    def solve(self, problem: CoreProblem, ball: State, gap: float, worst: float) -> State:
        """Return the ball of a problem whose core has grown.

        `gap` is what `ball` left over all rows, and `worst` their largest residual.
        """

    def finished(self, ball: State) -> bool:
        """Return whether a ball that holds all rows is good enough."""

    def refine(self, problem: CoreProblem, ball: State) -> State | None:
        """Ask for more after a pass found no row outside; None when nothing is left to refine."""


def padded(vector: Vector, size: int) -> Vector:
    """Return `vector` with zeros behind it."""
    longer = np.zeros(size)
    longer[: len(vector)] = vector
    return longer
