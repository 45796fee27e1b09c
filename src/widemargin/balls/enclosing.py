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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.expansion import Expansion, MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_diagonal, check_finite
from widemargin.loop import Ended, Limits, Stop, bounds, run
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_margin_dual
from widemargin.qp.simplex import SimplexPoint, solve_simplex

# Share of the memory budget for the kernel matrix of the core rows.
_MATRIX_SHARE = 0.2
# A ridge that makes a hard ball a soft one for a start, beside k(x, x), and the gap of that start.
_RIDGE = 1e-8
_START_GAP = 1e-9


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
    n_passes: int
    n_kernel: int
    exhausted: bool = False


def fit_enclosing(problem: Problem, options: EnclosingOptions) -> EnclosingBall:
    """Find the smallest ball around the rows of a problem."""
    solver = _Enclosing(problem, options)
    limits = Limits(options.max_iter, options.deadline)
    result = run(solver, limits, options.report)
    state = result.state
    used = np.flatnonzero(state.point.alpha > 0)
    index = state.core[used]
    alpha, vectors = state.point.alpha[used], problem.rows.take(index)
    norm2 = center_norm2(problem.kernel, vectors, alpha, problem, index)
    return EnclosingBall(
        vectors, index, alpha, norm2, state.radius2, result.certificate, result.stop
    )


def center_norm2(
    kernel: Kernel, vectors: NDArray[Any], alpha: Vector, problem: Problem, index: IndexArray
) -> float:
    """Return ‖c‖², which distances by an expansion need; 0 where they do not."""
    if in_input_space(kernel, vectors):
        return 0.0
    return float(alpha @ _matrix(problem, index) @ alpha)


def in_input_space(kernel: Kernel, vectors: Any) -> bool:
    """Return whether distances are those of the rows themselves."""
    return kernel.name == "linear" and not sparse.issparse(vectors)


@dataclass(frozen=True)
class SquaredDistances:
    """Visitor: squared distances of rows from centres, a column for each.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray of shape (m, n_features)
        Vectors of all centres.
    alpha : ndarray of shape (m, n_centres)
        Their shares.
    norm2 : ndarray of shape (n_centres,)
        ‖c‖² of each.
    number : ndarray of int
        The rows' numbers in the data (columns of a precomputed kernel).
    at_a_time : int
        Vectors to set against a block at a time.
    """

    kernel: Kernel
    vectors: NDArray[Any]
    alpha: Matrix
    norm2: Vector
    number: IndexArray
    at_a_time: int = 16384

    def __call__(self, block: Any, where: slice) -> Matrix:
        """Return the distances of a block."""
        with np.errstate(over="ignore", invalid="ignore"):
            if in_input_space(self.kernel, block):
                found = self._of_differences(block)
            else:
                values = Expansion(self.kernel, self.vectors, self.alpha)(block, self.at_a_time)
                diagonal = self.kernel.diagonal(block, self.number[where])
                check_diagonal(self.kernel, diagonal)
                norm2 = self.norm2
                if self.kernel.name == "linear":
                    centres = self.alpha.T @ self.vectors
                    norm2 = np.einsum("ij,ij->i", centres, centres)
                found = diagonal[:, None] - 2.0 * values + norm2
            check_finite(self.kernel, found)
        return np.maximum(found, 0.0)

    def _of_differences(self, block: NDArray[Any]) -> Matrix:
        # Without cancellation, however far from the origin the rows lie.
        centres = self.alpha.T @ self.vectors.astype(np.float64)
        columns = []
        for centre in centres:
            apart = block - centre
            columns.append(np.einsum("ij,ij->i", apart, apart))
        return np.column_stack(columns)


def _matrix(problem: Problem, core: IndexArray) -> Matrix:
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
    between.values(core, core, K)
    return 0.5 * (K + K.T)


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
        """Return the ball of one row."""
        size = self.options.first_rows
        looked = np.arange(size) if 2 * size < self.problem.n else None
        return self._solved(np.zeros(1, dtype=np.intp), np.ones(1), looked, 0, 0)

    def step(self, state: _State) -> _State:
        """Let the furthest rows join, or look at all rows where none of the sample lies outside."""
        outside = self._outside(state)
        if state.looked is not None and (self._good(state) or not len(outside)):
            kept = state.core[state.point.alpha > 0], state.point.alpha[state.point.alpha > 0]
            return self._solved(*kept, None, state.n_passes, state.n_kernel)
        kept_core = state.core[state.point.alpha > 0]
        alpha = state.point.alpha[state.point.alpha > 0]
        most = min(max(self.options.batch, len(alpha)), self.capacity - len(alpha))
        if most <= 0 or not len(outside):
            return replace(state, exhausted=True)
        far = outside[np.argsort(-state.squares[outside], kind="stable")[:most]]
        new = far if state.looked is None else state.looked[far]
        core = np.concatenate([kept_core, new])
        start = np.concatenate([alpha, np.zeros(len(new))])
        return self._solved(core, start, state.looked, state.n_passes, state.n_kernel)

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
            if len(state.core[state.point.alpha > 0]) >= self.capacity:
                return Stop(Ended.CAPACITY, f"{self.name} reached")
            return Stop(Ended.PRECISION, "nothing left to refine at this precision")
        return None

    def finish(self, state: _State) -> _State:
        """Return the state with all rows looked at."""
        if state.looked is None:
            return state
        return self._seen(state.core, state.point, None, state.n_passes, state.n_kernel)

    # What the steps are made of.

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
        self, core: IndexArray, start: Vector, looked: IndexArray | None, passes: int, values: int
    ) -> _State:
        K, slack = _matrix(self.problem, core), self.slack[core]
        d = np.ascontiguousarray(np.diag(K))
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
        lifted = K + np.diag(slack)
        point = SimplexPoint.at(lifted, d, start)
        if not (self.options.soft and even and len(core) > self.options.batch):
            point = solve_simplex(lifted, d, start=start, tol=1e-9, deadline=deadline)
        return self._seen(core, point, looked, passes, values + len(core) ** 2)

    def _seen(
        self,
        core: IndexArray,
        point: SimplexPoint,
        looked: IndexArray | None,
        passes: int,
        values: int,
    ) -> _State:
        """Return the state after a look at rows."""
        problem, rows = self.problem, self.problem.rows
        used = point.alpha > 0
        index, alpha = core[used], point.alpha[used]
        vectors = rows.take(index)
        norm2 = center_norm2(problem.kernel, vectors, alpha, problem, index)
        number = problem.number if looked is None else problem.number[looked]
        visit = SquaredDistances(
            problem.kernel,
            vectors,
            alpha[:, None],
            np.array([norm2]),
            number,
            rows.vectors_at_a_time,
        )
        width = min(len(vectors), rows.vectors_at_a_time) + 2
        squares = rows.gather(visit, looked, width=width)[:, 0]
        weight = problem.weight if looked is None else problem.weight[looked]
        radius2 = primal = float(squares.max())
        if self.options.soft:
            # A sample stands for all rows.
            weight = weight * (problem.weight.sum() / weight.sum())
            radius2, primal = best_radius(squares, float(problem.C[0]) * weight)
        full = looked is None
        return _State(
            core,
            point,
            squares,
            looked,
            radius2,
            primal,
            passes + full,
            values + len(squares) * len(vectors),
        )


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
