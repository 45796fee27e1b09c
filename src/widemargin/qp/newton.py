"""Newton's method for losses that are quadratic in pieces, for several problems on the same rows.

The squared hinge of the sparse machines and of linear max-margin directions, and the proximal steps
for the hinge, are all problems of the kind of `Piecewise`. The objective is quadratic as long as
every row stays on the same piece of its loss, so that a full step which leaves them there ends at
the exact optimum.

What a step costs. Only the first one looks at all rows for its derivatives. A step of length λ in a
direction d changes the gradient by λ H d, and then both derivatives by the rows that went to
another piece, which are ever fewer: with β'_i, what β_i would be on its old piece,

    H  +=  Σ ± k_i g_i g_iᵀ,        ∇  +=  λ H d − Σ (β_i − β'_i) g_i.

Where rows are many, time goes into reading them: all problems take their steps together, and one
product with the rows serves them all. Where there are too many features for a matrix, conjugate
gradients solve Newton's system, with two products a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse.linalg import LinearOperator, cg

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.loop import Deadline
from widemargin.qp.line_search import line_search
from widemargin.threads import ordered_map

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# Steps of Newton's method at the most.
_MOST_STEPS = 200
# Tries for a step's length.
_TRIES = 60
# What a step must promise, relative to the objective.
_TOL = 1e-14
# Derivatives are summed anew where more than this share of the rows that bend them has changed:
# what is left after more is taken away than stays would be rounding.
_MOST_CHANGED = 0.5
# Products of a Newton matrix below which it is as well summed anew, and nothing worth a thread.
_SMALL = 2_000_000
# Features up to which Newton's matrix is formed, and steps of conjugate gradients beyond.
_MOST_FEATURES = 1000
_MOST_CG = 500


class Features(ABC):
    """The rows g of linear problems, which are read block by block.

    Attributes
    ----------
    shape : tuple of int
        Rows and features.
    threads : int
        Threads; answers do not depend on them.
    chunk : int
        Rows of a block: fixed, so that threads do not change sums.
    """

    shape: tuple[int, int]
    threads: int = 1
    chunk: int = 4096

    @abstractmethod
    def block(self, where: slice | IndexArray) -> Any:
        """Return some of the rows, dense or CSR."""

    def some(self, block: Any, index: IndexArray) -> Any:
        """Return some rows of a block."""
        return block[index]

    def here(self, index: IndexArray) -> Any:
        """Return some of the rows, on this machine."""
        return self.block(index)

    def whole(self) -> Matrix | None:
        """Return all rows, on this machine; None where they are not in memory."""
        return None

    def single_threaded(self) -> Features:
        """Return the same rows, to be read by one thread."""
        alone = copy(self)
        alone.threads = 1
        return alone

    def times(self, block: Any, X: Matrix) -> Matrix:
        """Return the products of a block with points, a column for each row of X."""
        products: Matrix = block @ X.T
        return products

    def pulled(self, block: Any, weight: Matrix) -> Matrix:
        """Return weighted sums of the rows of a block, a row for each row of weights."""
        sums: Matrix = weight @ block
        return sums

    def curved(self, block: Any, weight: Vector) -> Matrix:
        """Return Σ weight g gᵀ over a block."""
        rows = block * np.sqrt(weight)[:, None]
        # NumPy sees a matrix and its own transpose, and does half the work.
        curvature: Matrix = rows.T @ rows
        return curvature

    def scan(self, visit: Callable[[slice], Answer]) -> Iterator[Answer]:
        """Yield visit(where) for all blocks, in their order."""
        n = self.shape[0]
        spans = (slice(first, min(n, first + self.chunk)) for first in range(0, n, self.chunk))
        return map(visit, spans) if self.threads <= 1 else ordered_map(visit, spans, self.threads)

    def parts(self, index: IndexArray) -> Iterator[IndexArray]:
        """Yield numbers of rows, as many at a time as a block may have."""
        for first in range(0, len(index), self.chunk):
            yield index[first : first + self.chunk]

    def products(self, X: Matrix) -> Matrix:
        """Return the scores of points, a row for each row of X."""
        scores = np.empty((len(X), self.shape[0]))

        def part(where: slice) -> None:
            scores[:, where] = self.times(self.block(where), X).T

        for _ in self.scan(part):
            pass
        return scores

    def sums(self, weight: Matrix) -> Matrix:
        """Return weighted sums of the rows, a row for each row of weights."""
        total = np.zeros((len(weight), self.shape[1]))
        for part in self.scan(lambda where: self.pulled(self.block(where), weight[:, where])):
            total += part
        return total


class DenseFeatures(Features):
    """Rows in an array in memory."""

    def __init__(self, G: Matrix, threads: int = 1, chunk: int = 4096) -> None:
        self.G, self.shape, self.threads, self.chunk = G, G.shape, threads, chunk

    def block(self, where: slice | IndexArray) -> Matrix:
        """Return some of the rows."""
        return self.G[where]

    def whole(self) -> Matrix:
        """Return all rows."""
        return self.G

    def parts(self, index: IndexArray) -> Iterator[IndexArray]:
        """Yield all of them: where all rows are in memory, some fit in twice."""
        yield index


@dataclass(frozen=True)
class Piecewise:
    """A regularised loss of linear scores that is quadratic in pieces.

    With d_i = t_i − g_iᵀx, what the score of a row is short of its target, the objective is

        ½ xᵀDx − lᵀx + Σ_i max over lower ≤ β ≤ upper of  β d_i − ε_i |β| − (β − a_i)² / 2k_i,

    attained by β = a + k d, drawn towards zero by kε and cut at its bounds. The squared hinge has
    t = y, k = 2C s, a = 0 and one bound, at zero; squared errors have none; the proximal steps for
    losses in linear pieces have two.

    Attributes
    ----------
    target, stiff, offset : ndarray of shape (n,)
        t, k and a.
    lower, upper : ndarray of shape (n,)
        Bounds of β, with zero between them; they may be infinite.
    diagonal, linear : ndarray of shape (size,)
        D and l.
    width : ndarray of shape (n,) or None
        ε, half the width of the interval on which nothing is paid; None for none.
    normals : ndarray of shape (size, q) or None
        Orthonormal columns N that x must be orthogonal to; where x starts it is.
    deflated : bool
        Whether N is taken out of the rows, g − N(Nᵀg), or multipliers are added to Newton's system,
        [H N; Nᵀ 0] (d, γ) = (−∇, 0). The answer is the same.
    """

    target: Vector
    stiff: Vector
    offset: Vector
    lower: Vector
    upper: Vector
    diagonal: Vector
    linear: Vector
    width: Vector | None = None
    normals: Matrix | None = None
    deflated: bool = False

    @classmethod
    def squared(
        cls, target: Vector, stiff: Vector, size: int, width: Vector | None = None
    ) -> Piecewise:
        """Return ½‖x‖² + Σ ½ stiff max(0, |target − gᵀx| − width)²."""
        free = np.full(len(target), np.inf)
        ends = np.zeros(len(target)), -free, free
        return cls(target, stiff, *ends, np.ones(size), np.zeros(size), width)

    @classmethod
    def squared_hinge(cls, sign: Vector, price: Vector, size: int) -> Piecewise:
        """Return ½‖x‖² + Σ price max(0, 1 − y gᵀx)²."""
        lower, upper = np.where(sign > 0, 0.0, -np.inf), np.where(sign > 0, np.inf, 0.0)
        none = np.zeros(len(sign))
        return cls(sign, 2.0 * price, none, lower, upper, np.ones(size), np.zeros(size))

    def raw(self, scores: Vector) -> Vector:
        """Return a + k d: β before it is drawn and cut."""
        return self.offset + self.stiff * (self.target - scores)

    def drawn(self, raw: Vector, index: Any = slice(None)) -> Vector:
        """Return β before it is cut, of all rows or of some."""
        if self.width is None:
            return raw
        reach = self.stiff[index] * self.width[index]
        found: Vector = raw - np.clip(raw, -reach, reach)
        return found

    def pull(self, scores: Vector) -> Vector:
        """Return β, minus the derivatives of the losses by the scores."""
        return np.clip(self.drawn(self.raw(scores)), self.lower, self.upper)

    def value(self, x: Vector, scores: Vector) -> float:
        """Return the objective."""
        beta = self.pull(scores)
        apart = beta - self.offset
        apart *= apart
        np.divide(apart, 2.0 * self.stiff, out=apart, where=self.stiff > 0)
        loss = float(beta @ (self.target - scores)) - self._paid(beta) - float(apart.sum())
        return 0.5 * float(x @ (self.diagonal * x)) - float(self.linear @ x) + loss

    def squared_bound(self, scores: Vector, sums: Vector) -> float:
        """Return a lower bound on the optimum of squared losses, from Σ β g.

        Every multiple of β is feasible for the dual, and the best is the top of a parabola.
        """
        beta = self.pull(scores)
        paid = self._paid(beta)
        earned = float(beta @ self.target) - paid
        square = float(sums @ sums) + max(0.0, float(beta @ (self.target - scores)) - paid)
        return 0.5 * max(0.0, earned) ** 2 / square if square > 0 else 0.0

    def _paid(self, beta: Vector) -> float:
        """Return Σ ε |β|."""
        return 0.0 if self.width is None else float(self.width @ np.abs(beta))

    def tangential(self, v: Matrix) -> Matrix:
        """Return what is left of a vector, or of columns, without the parts along the normals."""
        return v if self.normals is None else v - self.normals @ (self.normals.T @ v)


@dataclass(frozen=True)
class Point:
    """A point x of a problem with its scores G x and the value of the objective."""

    x: Vector
    scores: Vector
    value: float


class Newton:
    """Problems on the same rows on their way to their optima.

    Parameters
    ----------
    features : Features
        The rows.
    problems : sequence of Piecewise
        The problems.
    starts : sequence of (x, scores)
        Where to start, with G x.
    update : bool, default=None
        Whether derivatives are updated where rows change their piece, or summed anew, which is as
        well for small problems; None decides by the size.
    form : bool, default=None
        Whether Newton's matrix is formed, or conjugate gradients do without; None decides by the
        number of features.
    """

    def __init__(
        self,
        features: Features,
        problems: Sequence[Piecewise],
        starts: Sequence[tuple[Vector, Vector]],
        *,
        update: bool | None = None,
        form: bool | None = None,
    ) -> None:
        n, size = features.shape
        small = n * size**2 < _SMALL
        self.features = features.single_threaded() if small else features
        update = not small if update is None else update
        self.formed = size <= _MOST_FEATURES if form is None else form
        given = zip(problems, starts, strict=True)
        self._states = [_State(problem, *start, update=update) for problem, start in given]
        self.n_passes = 0

    @property
    def points(self) -> list[Point]:
        """Where the problems stand."""
        return [state.point for state in self._states]

    @property
    def done(self) -> bool:
        """Whether all optima are reached."""
        return all(state.done for state in self._states)

    def finish(self, problem: int) -> None:
        """Let a problem rest where it is."""
        self._states[problem].done = True

    def step(self) -> None:
        """Take a step in every problem that is not done."""
        going = [state for state in self._states if not state.done]
        self._sum_derivatives([state for state in going if state.stale])
        directions = np.array(self._each(self._direction, going))
        moved = self.features.products(directions)
        self.n_passes += 2
        self._each(self._take_step, list(zip(going, directions, moved, strict=True)))

    def run(self, deadline: Deadline | None = None) -> list[Point]:
        """Take steps until all optima are reached to rounding, or time is over.

        The first step is taken in any case: without it there would be no more than a start.
        """
        for number in range(_MOST_STEPS):
            if self.done:
                break
            with nullcontext() if deadline is None else deadline.ends_on_interrupt():
                self.step()
            if deadline is not None and deadline.passed:
                if not number and deadline.interrupted and not self._begun:
                    self.step()
                break
        return self.points

    @property
    def _begun(self) -> bool:
        """Whether every problem has taken a step."""
        return all(state.done or state.length for state in self._states)

    def _each(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Return the answers for all items; where they are small, threads are not worth it."""
        threads = self.features.threads
        if threads <= 1:
            return [function(item) for item in items]
        return list(ordered_map(function, items, threads))

    def _sum_derivatives(self, states: Sequence[_State]) -> None:
        """Sum up gradients and second derivatives of problems, in one pass over the rows."""
        if not states:
            return
        pull = np.array([s.problem.pull(s.point.scores) for s in states])
        features = self.features

        def part(where: slice) -> tuple[Matrix, list[Matrix]]:
            block = features.block(where)
            curvatures = []
            # Where all rows bend them, problems that share their weights share this too.
            whole: dict[int, Matrix] = {}
            for state in states if self.formed else ():
                stiff, bent = state.problem.stiff, np.flatnonzero(_is_bent(state.piece[where]))
                if len(bent) < block.shape[0]:
                    some = features.some(block, bent)
                    curvatures.append(features.curved(some, stiff[where][bent]))
                    continue
                if id(stiff) not in whole:
                    whole[id(stiff)] = features.curved(block, stiff[where])
                curvatures.append(whole[id(stiff)])
            return features.pulled(block, pull[:, where]), curvatures

        for state in states:
            problem = state.problem
            state.gradient = problem.diagonal * state.point.x - problem.linear
            if self.formed:
                state.matrix = np.diag(problem.diagonal)
        for slopes, curvatures in features.scan(part):
            for state, slope in zip(states, slopes, strict=True):
                state.gradient -= slope
            for state, curvature in zip(states, curvatures, strict=False):
                state.matrix += curvature

    def _direction(self, state: _State) -> Vector:
        """Return Newton's direction, within what the normals leave."""
        problem, gradient = state.problem, state.gradient
        if not self.formed:
            return self._iterated(state)
        matrix = state.matrix
        if not _is_bent(state.piece).any():
            # Nothing holds what is not regularised: any long step will do, the search cuts it.
            matrix = matrix + 1e-10 * np.eye(len(matrix))
        if problem.normals is None:
            return -_inverse(matrix)(gradient)
        if problem.deflated:
            own = np.diag(problem.diagonal)
            matrix = own + problem.tangential(problem.tangential(matrix - own).T)
            direction = -_inverse(matrix)(problem.tangential(gradient))
        else:
            solve = _inverse(matrix)
            direction, tilted = -solve(gradient), solve(problem.normals)
            inner = problem.normals.T @ tilted
            direction -= tilted @ np.linalg.solve(inner, problem.normals.T @ direction)
        # Rounding must not lead out of the subspace.
        return problem.tangential(direction)

    def _iterated(self, state: _State) -> Vector:
        """Return Newton's direction by conjugate gradients in the subspace."""
        problem, features = state.problem, self.features
        bent = np.where(_is_bent(state.piece), problem.stiff, 0.0)

        def product(v: Vector) -> Vector:
            v = problem.tangential(v.ravel())
            weight = bent * features.products(v[None])[0]
            self.n_passes += 2
            return problem.diagonal * v + problem.tangential(features.sums(weight[None])[0])

        gradient = problem.tangential(state.gradient)
        size = len(gradient)
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        accuracy = min(0.1, float(np.linalg.norm(gradient)) ** 0.5 / size**0.5)
        direction, _ = cg(operator, -gradient, rtol=max(1e-8, accuracy), maxiter=_MOST_CG)
        return problem.tangential(np.asarray(direction))

    def _take_step(self, task: tuple[_State, Vector, Vector]) -> None:
        state, direction, moved = task
        changed = state.step(direction, moved, exact=self.formed)
        if changed is not None and not state.stale:
            if self.formed:
                state.gradient = state.gradient + state.length * (state.matrix @ direction)
                state.change(changed, self.features)
            else:
                state.stale = True


class _State:
    """A problem on its way: where it is, the pieces of its rows, and its derivatives."""

    gradient: Vector
    matrix: Matrix

    def __init__(self, problem: Piecewise, x: Vector, scores: Vector, *, update: bool) -> None:
        self.problem, self.update = problem, update
        self.point = Point(x, scores, problem.value(x, scores))
        self.piece = _piece(problem, scores)
        self.length = 0.0
        # Whether the optimum is reached, and whether the derivatives must be summed anew.
        self.done, self.stale = False, True

    def step(self, direction: Vector, moved: Vector, *, exact: bool) -> IndexArray | None:
        """Take the best step, of which `moved` is the product with the rows.

        Return the rows that went to another piece, and None at the optimum. Newton's own step is
        `exact` where conjugate gradients have not cut it short.
        """
        problem, point = self.problem, self.point
        length = _length(problem, point, direction, moved)
        x, scores = point.x + length * direction, point.scores + length * moved
        value = problem.value(x, scores)
        promise = -0.5 * float(self.gradient @ direction)
        size = abs(point.value) + 0.5 * float(point.x @ (problem.diagonal * point.x))
        # Not even rounding may take a step uphill; what such a step promised is rounding too, and
        # so is what makes a step longer than Newton's own that promises nothing.
        uphill, stray = value > point.value, length > 2.0
        if (uphill and promise <= 1e-10 * size) or (stray and promise <= _TOL * size):
            self.done = True
            return None
        self.before = self.piece, point.scores
        self.point, self.length = Point(x, scores, value), length
        self.piece = _piece(problem, scores)
        changed = np.flatnonzero(self.piece != self.before[0])
        arrived = exact and length == 1.0 and not len(changed)
        if arrived or promise <= _TOL * size:
            self.done = True
            return None
        bent = int(np.count_nonzero(_is_bent(self.piece)))
        self.stale = not self.update or len(changed) > _MOST_CHANGED * bent
        return changed

    def change(self, changed: IndexArray, features: Features) -> None:
        """Add to the derivatives what rows make of it that went to another piece."""
        for part in features.parts(changed):
            self._change(part, features)

    def _change(self, changed: IndexArray, features: Features) -> None:
        problem, before = self.problem, self.before[0][changed]
        stiff, target, offset = (
            each[changed] for each in (problem.stiff, problem.target, problem.offset)
        )
        lower, upper = problem.lower[changed], problem.upper[changed]

        def raw(scores: Vector) -> Vector:
            return np.asarray(offset + stiff * (target - scores[changed]))

        def cut(raw: Vector) -> Vector:
            return np.clip(problem.drawn(raw, changed), lower, upper)

        new = raw(self.point.scores)
        left, joined = _is_bent(before), _is_bent(self.piece[changed])
        # On its old piece β would have gone on in a straight line.
        line = new if problem.width is None else new - before * stiff * problem.width[changed]
        straight = np.where(left, line, cut(raw(self.before[1])))
        rows = features.block(changed)
        self.gradient -= features.pulled(rows, (cut(new) - straight)[None])[0]
        # Apart, for the product of a matrix with itself costs half of another.
        came, went = (features.some(rows, np.flatnonzero(each)) for each in (joined, left))
        gained = features.curved(came, stiff[joined])
        self.matrix += gained - features.curved(went, stiff[left])


def best_start(
    problem: Piecewise, zero: Vector, zero_scores: Vector, near: Vector, near_scores: Vector
) -> tuple[Vector, Vector]:
    """Return the better of two points to start from, and its scores.

    Coefficients of vectors that have moved apart or together may be worse than nothing.
    """
    if problem.value(near, near_scores) < problem.value(zero, zero_scores):
        return near, near_scores
    return zero, zero_scores


def _piece(problem: Piecewise, scores: Vector) -> NDArray[np.int8]:
    """Return the piece of its loss that each row is on.

    1 and −1 where β is between zero, or its lower bound, and another bound: there the loss bends;
    2 and −2 at these bounds, and 0 where β is zero or, without an interval, at its lower bound.
    """
    raw = problem.raw(scores)
    if problem.width is None:
        above = raw > problem.lower
        return above.astype(np.int8) + ((raw >= problem.upper) & above)
    beta = problem.drawn(raw)
    outside = (beta >= problem.upper) | (beta <= problem.lower)
    piece: NDArray[np.int8] = np.sign(beta).astype(np.int8)
    return piece * (1 + outside.astype(np.int8))


def _is_bent(piece: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return whether rows are on pieces where the loss bends."""
    bent: NDArray[np.bool_] = np.abs(piece) == 1
    return bent


def _inverse(matrix: Matrix) -> Callable[[Matrix], Matrix]:
    """Return how to divide by a positive definite matrix."""
    factor, failed = dpotrf(matrix, lower=1)
    if not failed:
        return lambda right: np.asarray(dpotrs(factor, right, lower=1)[0])
    # Rounding of huge weights hides the regulariser.
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-15 * values[-1])
    return lambda right: (vectors / values) @ (vectors.T @ right)


def _length(problem: Piecewise, point: Point, direction: Vector, moved: Vector) -> float:
    """Return the best length of a step; 1 where that is Newton's own."""
    slope0 = float((problem.diagonal * point.x - problem.linear) @ direction)
    curve0 = float(direction @ (problem.diagonal * direction))
    raw0, change = problem.raw(point.scores), problem.stiff * moved

    def look(length: Vector) -> tuple[Vector, Vector]:
        drawn = problem.drawn(raw0 - length[0] * change)
        beta = np.clip(drawn, problem.lower, problem.upper)
        slope = slope0 + length[0] * curve0 - float(beta @ moved)
        bent = beta == drawn if problem.width is None else (beta == drawn) & (beta != 0.0)
        curve = curve0 + float(change @ np.where(bent, moved, 0.0))
        return np.array([slope]), np.array([curve])

    return float(line_search(look, np.ones(1), tol=0.0, max_tries=_TRIES)[0])
