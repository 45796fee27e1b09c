"""A stream of rows and the ball around all of them, in memory that does not grow.

The blurred ball cover of Agarwal and Sharathkumar ("Streaming algorithms for extent problems in
high dimensions", SODA 2010). Kept are balls B_1, ..., B_u, each the smallest ball (up to 1 + ε/3)
of a core set K_i of rows that were seen, such that

* every row seen until now lies in (1 + ε)B_i of some i;
* every K_i lies in (1 + ε)B_j of the later ones.

Rows that are no farther from a centre than rows which were let go before are let go, too; the
others wait in a buffer, of the rows furthest from the last centre. When a row lies outside
(1 + ε)B_u, or the buffer is full, all K_i and the buffer make the next ball, and the nearer half of
the buffer is let go.

The bound. No one-pass method whose memory is polynomial in the dimension is better than (1 + √2)/2
(the same paper), so that a union of the blocks' core sets cannot keep 1 + ε: MEB(K_1 ∪ K_2) need
not hold the rows that K_1 and K_2 stand for. What holds, in any dimension and so for any kernel:

1. Each K_i is a part of the rows, so max r_i ≤ R*, the radius of all rows.
2. Of the smallest ball around all B_i they prove ((1 + √3)/2 + O(ε)) R*, Chan and Pathak (WADS
   2011) 1.22 + O(ε). A simpler bound, √2 + O(√ε), in three lines: by Lemma 2 of Kumar et al. some
   point of K_i is at least √(r_i² + ‖c_i − c_u‖²) from c_u; as K_i lies in (1 + ε)B_u,
   ‖c_i − c_u‖² ≤ (1 + ε)² r_u² − r_i²; so all of B_i is within √(r_u² − r_i²) + r_i ≤ √2 r_u of
   c_u, up to the terms in ε, and r_u ≤ R*.
3. What is reported is proved for the stream at hand: each ball keeps its reach, the largest
   distance of a row that was let go; U = max ‖c − c_i‖ + reach_i is the radius of a ball around all
   rows, and max r_i a lower bound. Rows in random order, of few dimensions, that are let go lie so
   deep inside that a small move of the centre cannot bring them out: U is then that of the rows in
   the buffer, within 1 + ε of R*.

No more than `most` balls are kept. One that must go is put into the reach of the last, which 3
accounts for and 2 does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Vector
from widemargin.balls.enclosing import (
    EnclosingBall,
    EnclosingOptions,
    fit_enclosing,
)
from widemargin.balls.squared_distances import SquaredDistances, in_input_space
from widemargin.expansion import Expansion
from widemargin.kernels import Kernel
from widemargin.loop import Stop
from widemargin.problem import Problem
from widemargin.rows import Rows, as_rows

# Steps towards the smallest ball around balls.
_STEPS = 500


@dataclass(frozen=True)
class BallCover:
    """Balls that hold all rows of a stream.

    Attributes
    ----------
    vectors : ndarray of shape (m, n_features)
        Core vectors of all balls.
    shares : ndarray of shape (n_balls, m)
        The centres, as means of the vectors.
    radius : ndarray of shape (n_balls,)
        Radii of the core sets' balls; no ball around all rows is smaller than any.
    reach : ndarray of shape (n_balls,)
        Every row that was let go lies within this of one of the centres.
    buffer : ndarray of shape (n_waiting, n_features)
        Rows that were not.
    furthest : float
        The largest distance of one of these from the last centre.
    """

    vectors: NDArray[Any]
    shares: Matrix
    radius: Vector
    reach: Vector
    buffer: NDArray[Any]
    furthest: float

    def gram(self, kernel: Kernel) -> Matrix:
        """Return inner products of the centres, about the first of them."""
        if in_input_space(kernel, self.vectors):
            centres = self.shares @ self.vectors.astype(np.float64)
            apart = centres - centres[0]
            return np.asarray(apart @ apart.T)
        values = Expansion(kernel, self.vectors, np.ascontiguousarray(self.shares.T))
        G = self.shares @ values(self.vectors)
        return np.asarray(G - G[:1] - G[:, :1] + G[0, 0])

    def norms2(self, kernel: Kernel) -> Vector:
        """Return ‖c‖² of each centre, as distances need them."""
        if in_input_space(kernel, self.vectors):
            return np.zeros(len(self.radius))
        values = Expansion(kernel, self.vectors, np.ascontiguousarray(self.shares.T))
        return np.asarray(np.einsum("ij,ji->i", self.shares, values(self.vectors)))

    def distances(self, kernel: Kernel, rows: Rows) -> Matrix:
        """Return the distances of rows from all centres."""
        visit = SquaredDistances(
            kernel,
            self.vectors,
            np.ascontiguousarray(self.shares.T),
            self.norms2(kernel),
            np.arange(rows.shape[0]),
            rows.vectors_at_a_time,
        )
        squares = rows.gather(visit, width=min(len(self.vectors), rows.vectors_at_a_time) + 2)
        found: Matrix = np.sqrt(squares)
        return found

    def around(self, kernel: Kernel) -> tuple[Vector, float]:
        """Return the centre of a ball around all balls, as a mean of centres, and its radius.

        The steps of Bădoiu and Clarkson: towards the furthest point of the furthest ball.
        """
        G = self.gram(kernel)
        weight = np.zeros(len(self.radius))
        weight[-1] = 1.0
        best, least = weight, np.inf
        held = self.reach.copy()
        held[-1] = max(float(held[-1]), self.furthest)
        for step in range(1, _STEPS + 1):
            product = G @ weight
            apart = np.sqrt(np.maximum(np.diag(G) - 2.0 * product + weight @ product, 0.0))
            far = int(np.argmax(apart + held))
            radius = float(apart[far] + held[far])
            if radius < least:
                best, least = weight, radius
            if apart[far] <= 1e-12 * radius:
                break
            # The furthest point lies `reach` behind the centre of its ball.
            beyond = 1.0 + held[far] / apart[far]
            move = min(1.0, beyond / (step + 1.0))
            weight = (1.0 - move) * weight
            weight[far] += move
        return best, least


def extended(
    cover: BallCover | None,
    problem: Problem,
    options: EnclosingOptions,
    *,
    most: int = 16,
    keep: int = 2048,
) -> tuple[BallCover, int, Stop | None]:
    """Return the cover after another block, the kernel values it took, and how its ball ended.

    Parameters
    ----------
    cover : BallCover or None
        The cover until now.
    problem : Problem
        The rows of the block.
    options : EnclosingOptions
        How balls are found.
    most : int, default=16
        Balls to keep.
    keep : int, default=2048
        Rows that stay when the buffer, of twice as many, is full.
    """
    rows, kernel = problem.rows, problem.kernel
    if cover is None:
        ball = fit_enclosing(problem, replace(options, epsilon=options.epsilon / 3.0))
        cover, n_kernel = of_ball(ball, np.empty((0, rows.shape[1]), ball.vectors.dtype)), 0
        distance = cover.distances(kernel, rows)
        near = np.argsort(distance[:, 0], kind="stable")[: max(0, problem.n - keep)]
        waiting = np.setdiff1d(np.arange(problem.n), near)
        reach = distance[near].max(axis=0, initial=0.0)
        cover = replace(cover, reach=reach, buffer=rows.take(waiting))
        return cover, ball.certificate.n_kernel, ball.stop
    distance = cover.distances(kernel, rows)
    n_kernel = problem.n * len(cover.vectors)
    waiting = np.flatnonzero(~(distance <= cover.reach).any(axis=1))
    if not len(waiting):
        return cover, n_kernel, None
    furthest = max(cover.furthest, float(distance[waiting, -1].max()))
    buffer = np.concatenate([cover.buffer, rows.take(waiting)])
    cover = replace(cover, buffer=buffer, furthest=furthest)
    if furthest <= (1.0 + options.epsilon) * cover.radius[-1] and len(buffer) <= 2 * keep:
        return cover, n_kernel, None
    cover, stop = _with_ball(cover, kernel, options, most, keep)
    return cover, n_kernel, stop


def of_ball(ball: EnclosingBall, buffer: NDArray[Any]) -> BallCover:
    """Return the cover that one ball is, its rows let go."""
    lower, upper = max(ball.certificate.dual, 0.0), max(ball.radius2, 0.0)
    radius, reach = np.sqrt(np.array([[lower], [upper]]))
    return BallCover(ball.vectors, ball.alpha[None], radius, reach, buffer, float(reach[0]))


def _with_ball(
    cover: BallCover, kernel: Kernel, options: EnclosingOptions, most: int, keep: int
) -> tuple[BallCover, Stop]:
    """Return the cover with the ball of its core sets and of the rows that wait."""
    points = np.concatenate([cover.vectors, cover.buffer])
    rows = as_rows(points, memory=options.memory, threads=options.threads)
    count, n_old = len(points), len(cover.vectors)
    ones, one = np.ones(count), np.ones((1, 1))
    stated = Problem.of(rows, kernel, np.zeros(count, dtype=np.intp), one, ones, 1.0)
    ball = fit_enclosing(stated, replace(options, epsilon=options.epsilon / 3.0))
    shares = np.zeros((1, count))
    shares[0, ball.index] = ball.alpha
    last = of_ball(ball, cover.buffer)
    distance = last.distances(kernel, rows.subset(np.arange(n_old, count)))[:, 0]
    order = np.argsort(-distance, kind="stable")
    waiting = order[:keep] if len(order) > 2 * keep else order
    gone = distance[order[len(waiting) :]].max(initial=0.0)
    everything = BallCover(
        points,
        np.concatenate([np.pad(cover.shares, ((0, 0), (0, count - n_old))), shares]),
        np.append(cover.radius, last.radius),
        np.append(cover.reach, gone),
        cover.buffer[np.sort(waiting)],
        float(distance.max(initial=0.0)),
    )
    return _thinned(everything, kernel, options.epsilon, most), ball.stop


def _thinned(cover: BallCover, kernel: Kernel, epsilon: float, most: int) -> BallCover:
    """Return the cover without balls that the last one can hold, and without unused vectors."""
    G = cover.gram(kernel)
    apart = np.sqrt(np.maximum(np.diag(G) - 2.0 * G[-1] + G[-1, -1], 0.0))
    reach = cover.reach.copy()
    needed = (apart + reach)[:-1]
    drop = cover.radius[:-1] <= 0.25 * epsilon * cover.radius[-1]
    # In the order of what they need: those that the reach has room for go in any case.
    for i in np.argsort(needed, kind="stable"):
        if needed[i] <= reach[-1] or (~drop).sum() >= most:
            drop[i] = True
        if drop[i]:
            reach[-1] = max(float(reach[-1]), float(needed[i]))
    keep = np.append(~drop, True)
    shares = cover.shares[keep]
    used = np.flatnonzero(shares.any(axis=0))
    return replace(
        cover,
        vectors=cover.vectors[used],
        shares=np.ascontiguousarray(shares[:, used]),
        radius=cover.radius[keep],
        reach=reach[keep],
    )
