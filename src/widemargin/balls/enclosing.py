"""The smallest ball around all rows, hard or soft, by a core set.

Algorithm 1 of BVM and of MMDA-CVM for the ball itself: the smallest ball of the core rows is found
(``qp.simplex``), and the furthest rows outside join until none lies outside (1 + ε) of it. Here the
kernel's diagonal need not be constant: the linear term of the dual is k(x, x), and the program is
solved on the simplex. The soft ball is the description of Tax and Duin with squared slacks,

    min  R² + C Σ_i s_i ξ_i²,     ‖φ(x_i) − c‖² ≤ R² + ξ_i,

whose dual max Σ α_i k_ii − αᵀ(K + D)α, D_ii = 1/(4 C s_i), is the same program: the ball of the
points (φ(x_i), e_i √D_ii), centre-constrained as in MMDA-CVM III-B with δ_i² = −D_ii + constant.

The value on the core rows is a lower bound on the optimum over all rows, for α is feasible there
with zeros; one pass gives the upper one: the largest squared distance (hard), or the objective with
the best R for this centre (soft). It ends when upper ≤ (1 + ε)² lower. A sample of the rows stands
for all of them at first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.squared_distances import SquaredDistances
from widemargin.certificate import Certificate
from widemargin.expansion import MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.kernels.kernel import check_finite
from widemargin.loop import Ended, Limits, Stop, bounds, run
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_margin_dual
from widemargin.qp.simplex import SimplexPoint, solve_simplex

# Share of the memory budget for the kernel matrix of the core rows.
_MATRIX_SHARE = 0.2
# A ridge that makes a hard ball a soft one for a start, beside k(x, x), and the gap of that start.
_RIDGE = 1e-8
_START_GAP = 1e-9
# Vectors beyond which a core set is the wrong tool, for the program on them takes minutes; those
# that are taken all the same, for a fair ball; and those after which the need can be told.
_FEW = 10_000
_FAIR = 2048
_TELLING = 512
# What a row costs beside its kernel values, in kernel values.
_ROW_COST = 64


@dataclass(frozen=True, kw_only=True)
class EnclosingOptions(MachineOptions):
    """How the ball is found.

    Attributes
    ----------
    epsilon : float
        The radius is within (1 + ε) of the smallest.
    soft : bool
        Whether rows may lie outside, at the price that the problem's C and weights say.
    first_rows : int
        Rows that stand for all of them at first.
    batch : int
        Rows that join at a time, at the least.
    """

    epsilon: float = 1e-3
    soft: bool = False
    first_rows: int = 16384
    batch: int = 16


@dataclass(frozen=True)
class EnclosingBall:
    """A ball in feature space.

    Attributes
    ----------
    vectors : ndarray of shape (m, n_features)
        Rows of which the centre is a mean.
    index : ndarray of int of shape (m,)
        Their numbers.
    alpha : ndarray of shape (m,)
        Their shares of it.
    norm2 : float
        ‖c‖²; about the mean of the vectors if the kernel is linear and they are dense.
    radius2 : float
        R² of the ball: it holds all rows if it is hard.
    certificate, stop : Certificate and Stop
        What was proved, and how it ended.
    """

    vectors: NDArray[Any]
    index: IndexArray
    alpha: Vector
    norm2: float
    radius2: float
    certificate: Certificate
    stop: Stop


@dataclass(frozen=True)
class _State:
    """The ball of some core rows, as rows see it."""

    core: IndexArray
    point: SimplexPoint
    squares: Vector
    looked: IndexArray | None
    radius2: float
    primal: float
    norm2: float
    pace: float
    n_passes: int
    n_kernel: int
    needed: int = 0
    exhausted: bool = False


class _TimeOver(Exception):
    """The deadline came in the middle of a look at rows."""


def fit_enclosing(problem: Problem, options: EnclosingOptions) -> EnclosingBall:
    """Find the smallest ball around the rows of a problem."""
    solver = _Enclosing(problem, options)
    limits = Limits(options.max_iter, options.deadline)
    result = run(solver, limits, options.report)
    state = result.state
    used = np.flatnonzero(state.point.alpha > 0)
    index = state.core[used]
    alpha, vectors = state.point.alpha[used], problem.rows.take(index)
    return EnclosingBall(
        vectors, index, alpha, state.norm2, state.radius2, result.certificate, result.stop
    )


def _matrix(problem: Problem, core: IndexArray, threads: int) -> Matrix:
    """Return kernel values among core rows; those of a linear kernel about their mean."""
    if problem.kernel.name == "linear":
        vectors = problem.rows.take(core).astype(np.float64)
        apart = vectors - vectors.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = apart @ apart.T
            check_finite(problem.kernel, gram)
        return np.asarray(gram)
    K = np.empty((len(core), len(core)))
    between = KernelBetween(problem.kernel, problem.rows, np.float64, None)
    between.values(core, core, K, threads)
    K += K.T.copy()
    K *= 0.5
    return K


class _Enclosing:
    """Grow a core set until its ball holds all rows: a solver for ``loop.run``."""

    def __init__(self, problem: Problem, options: EnclosingOptions) -> None:
        self.problem = problem
        self.options = options
        room = int(np.sqrt(_MATRIX_SHARE * options.memory / 8))
        self.capacity, self.name = max(2, room), f"memory of {options.memory:,} bytes"
        if options.max_vectors is not None and options.max_vectors < self.capacity:
            self.capacity, self.name = options.max_vectors, f"max_vectors={options.max_vectors}"
        self.slack = problem.ridge(0) / 2.0 if options.soft else np.zeros(problem.n)

    # The methods of a solver.

    def start(self) -> _State:
        """Return the ball of one row, which there is however short the time."""
        size = self.options.first_rows
        looked = np.arange(size) if 2 * size < self.problem.n else None
        return self._solved(np.zeros(1, dtype=np.intp), np.ones(1), looked, 0, 0, patient=True)

    def step(self, state: _State) -> _State:
        """Let the furthest rows join, or look at all rows where none of the sample lies outside.

        A look at all rows that the deadline cuts short leaves the state as it was; the first of
        them is not, for without it nothing is known of all rows.
        """
        outside, held = self._outside(state), int((state.point.alpha > 0).sum())
        most = min(max(self.options.batch, held), self._capacity(state) - held)
        if state.looked is not None:
            affordable = min(most, self._affordable(state) - held)
            if self._good(state) or not len(outside) or affordable < min(most, self.options.batch):
                return self._on_all_rows(state)
            most = affordable
        if most <= 0 or not len(outside):
            return self._on_all_rows(replace(state, exhausted=True))
        try:
            return self._joined(state, outside, most)
        except _TimeOver:
            return state

    def _joined(self, state: _State, outside: IndexArray, most: int) -> _State:
        """Return the ball with the furthest rows in the core set."""
        used = state.point.alpha > 0
        far = outside[np.argsort(-state.squares[outside], kind="stable")[:most]]
        new = far if state.looked is None else state.looked[far]
        core = np.concatenate([state.core[used], new])
        start = np.concatenate([state.point.alpha[used], np.zeros(len(new))])
        return self._solved(core, start, state.looked, state.n_passes, state.n_kernel)

    def _on_all_rows(self, state: _State) -> _State:
        """Return the state with all rows looked at."""
        if state.looked is None:
            return state
        point, counts = state.point, (state.n_passes, state.n_kernel)
        seen = self._seen(state.core, point, state.norm2, None, counts, patient=True)
        return replace(seen, exhausted=state.exhausted)

    def certificate(self, state: _State) -> Certificate:
        """Return the objective of the ball and its lower bound."""
        lower = state.point.value
        eps = float("inf")
        if lower > 0:
            eps = max(0.0, float(np.sqrt(max(state.primal, 0.0) / lower)) - 1.0)
        elif state.primal <= self._noise(state):
            eps = 0.0
        return bounds(
            state.primal,
            lower,
            eps=eps,
            scope="full" if state.looked is None else "sample",
            n_vectors=int((state.point.alpha > 0).sum()),
            n_passes=state.n_passes,
            n_kernel=state.n_kernel,
        )

    def stopped(self, state: _State) -> Stop | None:
        """Return whether the ball is good enough, or cannot become better."""
        if state.looked is None and self._good(state):
            return Stop(Ended.SOLVED, f"radius within 1 + {self.options.epsilon:g}")
        if state.exhausted:
            if state.needed:
                return Stop(
                    Ended.CAPACITY,
                    f"about {state.needed:,} vectors or more are needed, too many for a core set",
                )
            if len(state.core[state.point.alpha > 0]) >= self.capacity:
                return Stop(Ended.CAPACITY, f"{self.name} reached")
            return Stop(Ended.PRECISION, "nothing left to refine at this precision")
        return None

    def finish(self, state: _State) -> _State:
        """Return the state with all rows looked at."""
        return self._on_all_rows(state)

    # What the steps are made of.

    def _capacity(self, state: _State) -> int:
        """Return how many vectors there may be: few where no number of them that helps is few."""
        return min(self.capacity, _FAIR) if state.needed else self.capacity

    def _affordable(self, state: _State) -> int:
        """Return for how many vectors half the time left is enough to look at all rows."""
        left = self.options.deadline.left()
        if left is None:
            return self.capacity
        most = 0.5 * left / (state.pace * self.problem.n + 1e-12) - _ROW_COST
        return int(min(self.capacity, most))

    def _needed(self, squares: Vector, weight: Vector, held: int) -> int:
        """Return how many vectors a soft ball needs at the least, if those are too many; or 0.

        On m rows Σ D α² ≥ 1 / (4 C m max s), and the rest of the dual is at most the squared radius
        of any ball around all rows: the largest square. A sample stands for all rows.
        """
        if not self.options.soft or self.options.max_vectors is not None or held < _TELLING:
            return 0
        C, epsilon = float(self.problem.C[0]), self.options.epsilon
        scale = self.problem.weight.sum() / weight.sum()
        furthest = float(squares.max())
        room = furthest - best_radius(squares, C * scale * weight)[1]
        room += epsilon * (2.0 + epsilon) * furthest
        needed = 1.0 / max(4.0 * C * float(self.problem.weight.max()) * room, 1e-300)
        return int(min(needed, 1e15)) if needed > min(self.capacity, _FEW) else 0

    def _noise(self, state: _State) -> float:
        return 1e-12 * float(max(state.squares.max(), state.point.value, 0.0)) + 1e-300

    def _good(self, state: _State) -> bool:
        shares = state.point.alpha
        spread = state.point.value + float(self.slack[state.core] @ (shares * shares))
        allowed = self.options.epsilon * (2.0 + self.options.epsilon) * max(spread, 0.0)
        return state.primal - state.point.value <= allowed + self._noise(state)

    def _outside(self, state: _State) -> IndexArray:
        """Return the rows, of those looked at, that lie outside the ball of the core rows."""
        shares = state.point.alpha
        level = state.point.value - float(self.slack[state.core] @ (shares * shares))
        rows = np.arange(self.problem.n) if state.looked is None else state.looked
        far = np.flatnonzero(state.squares > level + self._noise(state))
        return far[~np.isin(rows[far], state.core[shares > 0])]

    def _solved(
        self,
        core: IndexArray,
        start: Vector,
        looked: IndexArray | None,
        passes: int,
        values: int,
        patient: bool = False,
    ) -> _State:
        K, slack = _matrix(self.problem, core, self.options.threads), self.slack[core]
        d = np.diag(K).copy()
        deadline = self.options.deadline
        even = self.problem.kernel.constant_diagonal is not None
        if even and len(core) > self.options.batch:
            # Where all points have one length the ball is the SVM's of one class, scaled; a hard
            # one but for a ridge, and what that leaves the walk below mends.
            ridge = np.maximum(slack, _RIDGE * float(d.max()))
            ones = np.ones(len(core))
            dual = solve_margin_dual(K, ones, ridge, gap=_START_GAP, deadline=deadline)
            total = float(dual.alpha.sum())
            start = dual.alpha / total if total > 0 else start
        np.fill_diagonal(K, d + slack)
        point = SimplexPoint.at(K, d, start)
        if not (self.options.soft and even and len(core) > self.options.batch):
            point = solve_simplex(K, d, start=start, tol=1e-9, deadline=deadline)
        np.fill_diagonal(K, d)
        # Of a linear kernel it is the matrix about a mean, and distances do not need the norm.
        linear = self.problem.kernel.name == "linear"
        norm2 = 0.0 if linear else float(point.alpha @ (K @ point.alpha))
        counts = passes, values + len(core) ** 2
        return self._seen(core, point, norm2, looked, counts, patient)

    def _seen(
        self,
        core: IndexArray,
        point: SimplexPoint,
        norm2: float,
        looked: IndexArray | None,
        counts: tuple[int, int],
        patient: bool = False,
    ) -> _State:
        """Return the state after a look at rows, which the deadline ends unless it is patient."""
        problem, begun = self.problem, perf_counter()
        used = point.alpha > 0
        squares = self._squares(core[used], point.alpha[used], norm2, looked, patient)
        taken, n_values = perf_counter() - begun, len(squares) * int(used.sum())
        weight = problem.weight if looked is None else problem.weight[looked]
        radius2 = primal = float(squares.max())
        if self.options.soft:
            radius2, primal = best_radius(squares, float(problem.C[0]) * weight)
        return _State(
            core,
            point,
            squares,
            looked,
            radius2,
            primal,
            norm2,
            taken / (len(squares) * (int(used.sum()) + _ROW_COST)),
            counts[0] + (looked is None),
            counts[1] + n_values,
            self._needed(squares, weight, int(used.sum())),
        )

    def _squares(
        self,
        index: IndexArray,
        alpha: Vector,
        norm2: float,
        looked: IndexArray | None,
        patient: bool,
    ) -> Vector:
        """Return the squared distances of rows from the centre."""
        rows, number = self.problem.rows, self.problem.number
        vectors = rows.take(index)
        visit = SquaredDistances(
            self.problem.kernel,
            vectors,
            alpha[:, None],
            np.array([norm2]),
            number if looked is None else number[looked],
            rows.vectors_at_a_time,
        )
        width = min(len(vectors), rows.vectors_at_a_time) + 2
        parts = []
        for part in rows.scan(visit, looked, width=width):
            parts.append(part[:, 0])
            if self.options.deadline.passed and not patient:
                raise _TimeOver
        return np.concatenate(parts)


def best_radius(squares: Vector, price: Vector) -> tuple[float, float]:
    """Return R² and the least R² + Σ price max(0, squares − R²)² for given squared distances.

    The slope 1 − 2 Σ price max(0, squares − R²) is zero there; it is linear between the squares.
    """
    order = np.argsort(-squares, kind="stable")
    far, cost = squares[order], price[order]
    total = np.cumsum(cost)
    radius2 = (np.cumsum(cost * far) - 0.5) / total
    below = np.append(far[1:], -np.inf)
    k = int(np.argmax(radius2 >= below))
    found = float(radius2[k])
    slack = np.maximum(0.0, squares - found)
    return found, found + float(price @ (slack * slack))
