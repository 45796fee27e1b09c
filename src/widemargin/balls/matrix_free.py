"""The exact machine where the matrix of all kernel values does not fit into memory.

Newton's method for f = Σ β_i k(x_i, ·) + b with b = Σ β_i, in kernel space. With the rows A inside
the margin, the optimum for these rows solves

    (K_AA + 1 + R) β = y_A,     R = diag(1 / (2 C s)),

and an exact line search leads there. Conjugate gradients solve the system with products with kernel
values that are made when they are needed, all problems at a time; they are preconditioned by the
same system in the span of some of the rows (``preconditioner``): the steps are about as many as
the rows for each of them, and a matrix of them is made in the time of a few steps.

Where the rows inside the margins of a solution in a span are known, they are the first A: few of
them are wrong, so that two or three systems are all. Their α is no start for conjugate gradients,
though: errors of f that a span cannot see are large in it.

y β is feasible for the dual without the coefficients that have the wrong sign, and so is every
multiple: the best is the bound. (So is α = 2 C s ξ, but what a system leaves unsolved counts there
by the square of K: it is far worse until the very end, and costs a product.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.ball import Precision, certificate_of, earlier_alpha
from widemargin.balls.block_products import BlockProducts
from widemargin.balls.preconditioner import Preconditioner
from widemargin.certificate import Certificate
from widemargin.expansion import Expansion, MachineOptions
from widemargin.loop import Ended, Stop, relative_gap
from widemargin.problem import Problem
from widemargin.qp.line_search import line_search

# Share of the memory budget for the matrices of the preconditioner.
_MATRICES_SHARE = 0.2
# Share of it for kernel values that are kept, and for those with the landmarks.
_VALUES_SHARE = 0.4
_ACROSS_SHARE = 0.15
# Share of it for vectors that are set against rows at a time.
_VECTORS_SHARE = 0.1
# Rows that span the preconditioner, at the least and at the most, and as a share of all.
_LEAST_LANDMARKS = 32
_MOST_LANDMARKS = 6000
_LANDMARKS_SHARE = 0.1
_FEW_ENOUGH = 1000
# Rows that are set against others at a time, at the least.
_LEAST_AT_A_TIME = 64
# Part of the time that is left, where it is limited, for the matrix of a preconditioner; and what
# a thread multiplies for it in a second, roughly.
_TIME_TO_PREPARE = 0.2
_PRODUCTS = 2e10
# Values of a product that tell how long they take.
_TIMED = 1_000_000
# Steps of conjugate gradients at the most.
_MOST_CG = 2000
# The accuracy of a solution, relative to the gap, at first; how much finer it gets where that was
# too rough to gain anything; and how fine it can be.
_ACCURACY = 0.1
_FINER = 1e-2
_FINEST = 1e-11


@dataclass(frozen=True)
class FunctionState:
    """Functions of all problems, and what follows from them.

    Attributes
    ----------
    beta : ndarray of shape (n, n_problems)
        Coefficients.
    scores : ndarray of shape (n, n_problems)
        Values on the rows.
    primal, dual : ndarray of shape (n_problems,)
        Objectives, and the best lower bounds that are known.
    n_passes, n_kernel : int
        Passes over the rows, and kernel evaluations.
    accuracy : ndarray of shape (n_problems,)
        How accurately the system of each is solved, relative to the gap.
    """

    beta: Matrix
    scores: Matrix
    primal: Vector
    dual: Vector
    n_passes: int
    n_kernel: int
    accuracy: Vector


class MatrixFree:
    """Solve all problems without a matrix: a solver for ``loop.run``.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    precision : Precision
        Of the kernel values.
    options : MachineOptions
        How exactly.
    inside : ndarray of bool of shape (n, n_problems), default=None
        Rows that are probably inside each margin.
    """

    def __init__(
        self,
        problem: Problem,
        precision: Precision,
        options: MachineOptions,
        inside: NDArray[np.bool_] | None = None,
    ) -> None:
        self.problem = problem
        self.precision = precision
        self.options = options
        self.signs = problem.signs()
        self.ridge = problem.ridge(0)[:, None]
        matrices = 8 * (problem.n_problems + 2)
        room = int(np.sqrt(_MATRICES_SHARE * options.memory / matrices))
        most = min(_MOST_LANDMARKS, max(_FEW_ENOUGH, int(_LANDMARKS_SHARE * problem.n)))
        size = min(problem.n, most, max(_LEAST_LANDMARKS, room))
        # Rows come in the order of a hash: the first ones are a sample.
        self.landmarks = problem.rows.take(np.arange(size))
        self.inside = inside
        self._n_kernel = 0
        self._n_passes = 0
        # Seconds for a kernel value in a product, and in one by blocks.
        self._pace, self._block_pace = 0.0, 0.0

    # The methods of a solver.

    def start(self) -> FunctionState:
        """Begin at zero, or at an earlier solution."""
        beta = earlier_alpha(self.problem, self.options.earlier).T * self.signs
        used = np.flatnonzero(beta.any(axis=1))
        return self._looked_at(beta, self._product(None, used, beta[used]), None)

    def step(self, state: FunctionState) -> FunctionState:
        """Take Newton's step in every problem that is not solved."""
        live = np.flatnonzero(self._open(state) & (state.accuracy >= _FINEST))
        inside = (self.signs * state.scores < 1.0)[:, live]
        if self.inside is not None and not state.beta.any():
            inside = self.inside[:, live]
        active = np.flatnonzero(inside.any(axis=1))
        room = int(_VALUES_SHARE * self.options.memory)
        products = BlockProducts(self.problem, active, self.precision.dtype, room)
        target = self._solved(state, live, inside[active], products)
        direction = np.zeros_like(state.beta)
        direction[:, live] = -state.beta[:, live]
        direction[np.ix_(active, live)] += target
        moved = self._moved(direction, products)
        length = self._lengths(state, direction, moved, live)
        beta = state.beta + length * direction
        return self._looked_at(beta, state.scores + length * moved, state)

    def _moved(self, direction: Matrix, products: BlockProducts) -> Matrix:
        """Return (K + 1) times a direction, with blocks that are there."""
        moved = np.empty_like(direction)
        active = products.index
        others = np.setdiff1d(np.arange(self.problem.n), active)
        away = others[direction[others].any(axis=1)]
        moved[active] = self._block_product(products, direction[active])
        moved[active] += self._product(active, away, direction[away])
        used = np.union1d(active, away)
        moved[others] = self._product(others, used, direction[used])
        return moved

    def certificate(self, state: FunctionState) -> Certificate:
        """Return primal and dual of all problems together."""
        return certificate_of(
            list(zip(state.primal, state.dual, strict=True)),
            list(self._gaps(state)),
            n_vectors=int(state.beta.any(axis=1).sum()),
            n_passes=state.n_passes,
            n_kernel=state.n_kernel,
        )

    def stopped(self, state: FunctionState) -> Stop | None:
        """Return whether the gap of every problem is met, or nothing moves any more."""
        unsolved = self._open(state)
        if not unsolved.any():
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        if (state.accuracy[unsolved] < _FINEST).all():
            return Stop(Ended.PRECISION, "nothing left to refine at this precision")
        if self._too_late(int((self.signs * state.scores < 1.0).any(axis=1).sum())):
            return self.options.deadline.stop
        return None

    def _too_late(self, n_active: int) -> bool:
        """Return whether there is no time for a product with the active rows, and what follows."""
        left = self.options.deadline.left()
        others = self.problem.n - n_active
        next_one = n_active * (2 * n_active * self._block_pace + others * self._pace)
        return self.options.deadline.passed or (left is not None and left < next_one)

    def _open(self, state: FunctionState) -> NDArray[np.bool_]:
        """Return which problems have not met their gap."""
        unsolved: NDArray[np.bool_] = self._gaps(state) > self.options.tol
        return unsolved

    def finish(self, state: FunctionState) -> FunctionState:
        """Return the state without coefficients of rows outside the margin, where that is as good.

        At the optimum they vanish, but steps that were cut short leave something of them.
        """
        gaps = self._gaps(state)
        if (gaps > self.options.tol).any():
            return state
        idle = np.where(self.signs * state.scores >= 1.0, state.beta, 0.0)
        used = np.flatnonzero(idle.any(axis=1))
        if not len(used):
            return state
        scores = state.scores - self._product(None, used, idle[used])
        without = self._looked_at(state.beta - idle, scores, state)
        good = self._gaps(without) <= np.maximum(gaps, self.options.tol)
        return replace(
            without,
            beta=np.where(good, without.beta, state.beta),
            scores=np.where(good, without.scores, state.scores),
            primal=np.where(good, without.primal, state.primal),
        )

    def alpha(self, state: FunctionState) -> Matrix:
        """Return y β, of shape (n_problems, n); it may be negative where a fit was cut short."""
        return np.ascontiguousarray((state.beta * self.signs).T)

    # What is known of functions.

    def _looked_at(
        self, beta: Matrix, scores: Matrix, before: FunctionState | None
    ) -> FunctionState:
        """Return the state of functions with their scores."""
        slack = np.maximum(0.0, 1.0 - self.signs * scores)
        loss = 0.5 * (slack * slack / self.ridge).sum(axis=0)
        primal = 0.5 * (beta * scores).sum(axis=0) + loss
        dual = self._bounds(beta, scores)
        accuracy = np.full(len(primal), _ACCURACY)
        if before is not None:
            dual = np.maximum(dual, before.dual)
            # A rough solution may lead nowhere.
            idle = ~(before.primal - primal > 1e-9 * primal)
            accuracy = before.accuracy * np.where(idle, _FINER, 1.0)
        return FunctionState(beta, scores, primal, dual, self._n_passes, self._n_kernel, accuracy)

    def _bounds(self, beta: Matrix, scores: Matrix) -> Vector:
        """Return the dual values of the best multiples of y β, where that is not negative."""
        wrong = self.signs * beta < 0.0
        right = np.where(wrong, 0.0, beta)
        rows, used = (np.flatnonzero(each.any(axis=1)) for each in (right, wrong))
        values = scores[rows] - self._product(rows, used, np.where(wrong, beta, 0.0)[used])
        kept = right[rows]
        square = (kept * values).sum(axis=0) + (self.ridge[rows] * kept * kept).sum(axis=0)
        return _best_multiple(np.abs(kept).sum(axis=0), square)

    def _gaps(self, state: FunctionState) -> Vector:
        """Return the relative gap of each problem, with what rounding may hide of it."""
        return self._gap_of(state.primal, state.dual, state.beta)

    def _gap_of(self, primal: Vector, dual: Vector, beta: Matrix) -> Vector:
        pairs = zip(primal, dual, strict=True)
        gaps = np.array([relative_gap(float(high), float(low)) for high, low in pairs])
        hidden: Vector = self.precision.rounding * np.linalg.norm(beta, axis=0)
        return gaps + hidden

    def _lengths(
        self, state: FunctionState, direction: Matrix, moved: Matrix, live: IndexArray
    ) -> Vector:
        """Return the best length of each step; 0 where there is none."""
        slope0 = (direction * state.scores).sum(axis=0)
        curve0 = (direction * moved).sum(axis=0)

        def look(length: Vector) -> tuple[Vector, Vector]:
            slack = 1.0 - self.signs * (state.scores + length * moved)
            weight = np.where(slack > 0, 1.0 / self.ridge, 0.0)
            slope = slope0 + length * curve0 - (weight * slack * self.signs * moved).sum(axis=0)
            return slope[live], (curve0 + (weight * moved * moved).sum(axis=0))[live]

        def look_at_live(length: Vector) -> tuple[Vector, Vector]:
            return look(_spread(length, live, len(slope0)))

        found = line_search(look_at_live, np.ones(len(live)), tol=1e-3, max_tries=50)
        return _spread(found, live, len(slope0))

    # Linear systems.

    def _solved(
        self,
        state: FunctionState,
        live: IndexArray,
        mask: NDArray[np.bool_],
        products: BlockProducts,
    ) -> Matrix:
        """Return the coefficients of active rows that solve Newton's systems.

        `mask` tells which of these rows are inside the margin of which problem.
        """
        active, ridge = products.index, self.ridge[products.index]
        right = np.where(mask, self.signs[active][:, live], 0.0)
        x = np.where(mask, state.beta[active][:, live], 0.0)
        room = int(_ACROSS_SHARE * self.options.memory)
        landmarks = self.landmarks[: self._in_time(len(active))]
        divide = Preconditioner(
            self.problem, active, mask, ridge, landmarks, self.precision.dtype, room
        )
        accuracy = state.accuracy[live] * np.minimum(1.0, self._gaps(state)[live])

        def apply(v: Matrix) -> Matrix:
            return np.where(mask, self._block_product(products, v), 0.0) + ridge * v

        residual = right - apply(x) if x.any() else right
        conjugate, before = np.zeros_like(x), np.ones(len(live))
        size = np.linalg.norm(right, axis=0)
        for k in range(_MOST_CG):
            norms = np.linalg.norm(residual, axis=0)
            if (norms <= accuracy * size).all() or (k and self._too_late(len(active))):
                break
            better = np.where(mask, divide(residual), 0.0)
            now = (residual * better).sum(axis=0)
            share = now / before if k else np.zeros(len(live))
            conjugate = better + share * conjugate
            product = apply(conjugate)
            curve = (conjugate * product).sum(axis=0)
            length = np.divide(now, curve, out=np.zeros(len(live)), where=curve > 0)
            x += length * conjugate
            residual = residual - length * product
            before = np.where(now > 0, now, 1.0)
        self._n_kernel += divide.n_kernel
        return x

    def _in_time(self, n_active: int) -> int:
        """Return for how many landmarks there is time, where it is limited."""
        left = self.options.deadline.left()
        if left is None:
            return len(self.landmarks)
        products = _TIME_TO_PREPARE * left * _PRODUCTS * self.options.threads
        return max(_LEAST_LANDMARKS, int(np.sqrt(products / max(1, n_active))))

    def _block_product(self, products: BlockProducts, coef: Matrix) -> Matrix:
        """Return (K + 1) coef of active rows among themselves."""
        begun, known = perf_counter(), products.n_kernel
        found = products(coef)
        self._n_kernel += products.n_kernel - known
        self._block_pace = (perf_counter() - begun) / max(1, len(products.index)) ** 2
        # Blocks are computed once for two, and some are kept.
        self._pace = max(self._pace, 2.0 * self._block_pace)
        return found

    def _product(self, index: IndexArray | None, vectors: IndexArray, coef: Matrix) -> Matrix:
        """Return (K + 1) coef for rows (all if index is None) and rows that are vectors."""
        problem, begun = self.problem, perf_counter()
        n = problem.n if index is None else len(index)
        total = np.zeros((n, coef.shape[1]))
        if not n:
            return total
        room = _VECTORS_SHARE * self.options.memory / (8 * problem.rows.shape[1])
        step = max(_LEAST_AT_A_TIME, int(room))
        for first in range(0, len(vectors), step):
            part, own = vectors[first : first + step], coef[first : first + step]
            taken = problem.rows.take(part)
            sums = Expansion(problem.kernel, taken, own, own.sum(axis=0), self.precision.dtype)
            total += sums.values(problem.rows, index)
        self._n_kernel += n * len(vectors)
        self._n_passes += index is None
        if n * len(vectors) >= _TIMED:
            self._pace = (perf_counter() - begun) / (n * len(vectors))
        return total


def _best_multiple(linear: Vector, square: Vector) -> Vector:
    """Return the largest value of t linear − ½ t² square."""
    best = np.zeros(len(linear))
    np.divide(0.5 * linear**2, square, out=best, where=square > 0)
    return best


def _spread(values: Vector, index: IndexArray, size: int) -> Vector:
    """Return values in their places among zeros."""
    spread = np.zeros(size)
    spread[index] = values
    return spread
