"""One ball on the core rows: what `minimum` and `fixed_radius` solve, and their answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.expansion import Earlier
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_diagonal, check_finite
from widemargin.loop import Deadline, bounds, relative_gap
from widemargin.problem import Problem
from widemargin.qp.margin_dual import MarginDual


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
    deadline : Deadline
        When to be content with what there is.
    target : ndarray of shape (m,) or None
        Targets of regression, which labels tell nothing of.
    """

    K: NDArray[Any]
    sign: Vector
    ridge: Vector
    eta: float
    projection: NDArray[np.float64] | None = None
    deadline: Deadline = field(default_factory=Deadline)
    target: Vector | None = None


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
        """Return ‖c‖² of the ball's centre; 0 if there was no time to find one."""
        total = float(self.alpha.sum())
        if total == 0.0:
            return 0.0
        # dual = Σα − ½ αᵀQα
        return 2.0 * (total - self.dual) / total / total

    def rounding_factor(self) -> float:
        """Return what a rounding of kernel values is multiplied by in the relative gap."""
        return float(np.linalg.norm(self.alpha))

    def core_gap(self) -> float:
        """Return the relative duality gap over the core rows."""
        return relative_gap(0.5 * self.norm2 + self.loss, self.dual)

    def radius2(self, eta: float) -> float:
        """Return η − ‖c‖², which no ball around these points can fall below."""
        return eta - self.center_norm2()

    def eps(self, eta: float, worst: float) -> float:
        """Return ε such that all points lie within (1 + ε) of the smallest radius."""
        if not self.alpha.any():
            return float("inf")
        norm2 = self.center_norm2()
        furthest2 = eta + norm2 - 2.0 * (1.0 - worst) / float(self.alpha.sum())
        radius2 = eta - norm2
        if radius2 <= 1e-14 * eta:
            # The centre is a single point, and nothing bounds the radius from below.
            return float("inf")
        return max(0.0, float(np.sqrt(max(furthest2, 0.0) / radius2)) - 1.0)

    def center_error(self, eta: float, worst: float) -> float:
        """Return a bound on ‖c − c*‖ / ‖c‖, with c* the centre of the smallest ball.

        By Lemma 2 of Kumar et al. (2003), as in the proof of Proposition 2 of BVM, a point that is
        R* from c* is at least √(R*² + ‖c − c*‖²) from c. So ‖c − c*‖² ≤ D² − R*² with D the largest
        distance of a point from c, of which (9) there is a simpler form; R*² ≥ η − ‖c‖².
        """
        eps, norm2 = self.eps(eta, worst), self.center_norm2()
        if not np.isfinite(eps) or norm2 <= 0.0:
            return float("inf")
        return float(np.sqrt(self.radius2(eta) * ((1.0 + eps) ** 2 - 1.0) / norm2))


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
    """How a ball is found on the core rows.

    Attributes
    ----------
    matrices : int
        Matrices of the size of the core that it needs at a time, kernel values among them.
    """

    @property
    def matrices(self) -> int: ...  # noqa: D102

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


@dataclass(frozen=True)
class Precision:
    """The precision of kernel values, and what it hides.

    Attributes
    ----------
    dtype : dtype
        Of kernel values.
    rounding : float
        How much of a relative gap rounding may hide, for dual variables of length one. A value is
        off by rounding times its size, at most η; errors are independent, so f is off by about that
        times ‖α‖, the objectives by Σα times that, and Σα is twice the objective.
    eta : float
        The largest squared norm of a point.
    """

    dtype: DTypeLike
    rounding: float
    eta: float

    def among(self, kernel: Kernel, spread: float) -> float:
        """Return what takes the place of `rounding` among rows of another total variance."""
        return 4.0 * kernel.rounding(spread, self.dtype) * self.eta

    @classmethod
    def of(cls, problem: Problem, eta: float, tol: float | None) -> Precision:
        """Return float32 if its rounding cannot disturb a gap of `tol`, else float64.

        With α = 0 the primal is C Σs, which bounds the dual optimum and with it
        ‖α‖ ≤ 2C √(max s · Σs), and so what rounding can do to the objectives.
        """
        weight = problem.weight
        norm = 2.0 * float(problem.C[0]) * float(np.sqrt(weight.max() * weight.sum()))
        coarse = cls.in_type(np.float32, problem, eta)
        varies = problem.kernel.constant_diagonal is None or problem.regression is not None
        if tol is None or varies or not coarse.rounding * norm <= tol / 4:
            return cls.in_type(np.float64, problem, eta)
        return coarse

    @classmethod
    def in_turn(cls, problem: Problem, eta: float, tol: float) -> list[Precision]:
        """Return the precisions to be tried one after another: the last is float64.

        float32 is left out where it hides a gap of `tol` whatever the solution, for η‖α‖ is about
        one at the least.
        """
        return cls.in_turn_of(problem.kernel, problem.spread, eta, tol)

    @classmethod
    def in_turn_of(cls, kernel: Kernel, spread: float, eta: float, tol: float) -> list[Precision]:
        """Return the same for rows of a total variance that is known."""
        fine, coarse = (
            cls(each, 4.0 * kernel.rounding(spread, each) * eta, eta)
            for each in (np.float64, np.float32)
        )
        varies = kernel.constant_diagonal is None
        return [fine] if varies or not coarse.rounding <= tol * eta else [coarse, fine]

    @classmethod
    def in_type(cls, dtype: DTypeLike, problem: Problem, eta: float) -> Precision:
        """Return the precision of kernel values of a type."""
        return cls(dtype, 4.0 * problem.kernel.rounding(problem.spread, dtype) * eta, eta)


def largest_norm2(problem: Problem) -> float:
    """Return η: the largest squared norm of a point, k(x, x) + bias + ridge."""
    ridge = problem.ridge(0)
    constant = problem.kernel.constant_diagonal
    if constant is not None:
        return constant + problem.bias + float(ridge.max())
    visit = _Diagonal(problem.kernel, problem.number, ridge)
    return problem.bias + max(problem.rows.scan(visit))


@dataclass(frozen=True)
class _Diagonal:
    """Visitor: the largest k(x_i, x_i) + ridge_i of a block."""

    kernel: Kernel
    number: IndexArray
    ridge: Vector

    def __call__(self, block: Any, where: slice) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.kernel.diagonal(block, self.number[where])
            check_finite(self.kernel, diagonal)
        check_diagonal(self.kernel, diagonal)
        return float((diagonal + self.ridge[where]).max())


def earlier_alpha(problem: Problem, earlier: Earlier | None) -> NDArray[np.float64]:
    """Return dual variables to start from, of shape (n_problems, n)."""
    alpha = np.zeros((problem.n_problems, problem.n))
    if earlier is not None:
        found = earlier.coef.T * problem.signs(earlier.index).T
        alpha[:, earlier.index] = np.maximum(found, 0.0)
    return alpha


def certificate_of(
    objectives: Sequence[tuple[float, float]] | Matrix, gaps: Sequence[float] | Vector, **known: Any
) -> Certificate:
    """Return the certificate of several problems, each gap in the share that it has in the sum."""
    primal, dual = np.array(objectives).T
    total = max(float(primal.sum()), float(np.finfo(float).tiny))
    gap = float((np.array(gaps) * primal).sum() / total)
    return bounds(float(primal.sum()), float(dual.sum()), gap=min(1.0, gap), **known)
