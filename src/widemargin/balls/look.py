"""A look at the rows: all of them, or a sample, as the current balls see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.balls.points import Points, Vector
from widemargin.machines import Machines
from widemargin.rows.base import IndexArray

# Candidates that one block of rows may name.
_KEEP = 256


@dataclass(frozen=True)
class Look:
    """What a pass over the rows, or a sample of them, showed of the current balls.

    Attributes
    ----------
    full : bool
        All rows were looked at.
    loss, worst : ndarray of shape (n_problems,)
        Σ C s ξ² over all rows (estimated from a sample if not `full`), and the largest residual of
        a row outside the core.
    furthest : ndarray of int of shape (n_problems,)
        The row with that residual; −1 if there is none.
    candidate : ndarray of int, residual : ndarray of shape (n_candidates, n_problems)
        Rows outside some ball, with their residuals.
    """

    full: bool
    loss: Vector
    worst: Vector
    furthest: IndexArray
    candidate: IndexArray
    residual: NDArray[np.float64]


def look_at(
    points: Points,
    machines: Machines,
    gamma: NDArray[np.float64] | None,
    core: IndexArray,
    member: NDArray[np.bool_],
    threshold: Vector,
    index: IndexArray | None,
) -> tuple[Look, int]:
    """Scan rows with the machines of some balls.

    Parameters
    ----------
    points : Points
        All rows.
    machines : Machines
        The balls' decision functions.
    gamma : ndarray of shape (n_problems, n_directions) or None
        What is to be added of the directions.
    core, member : ndarray
        The core rows, and in which problems' core sets they are.
    threshold : ndarray of shape (n_problems,)
        A row whose 1 − y f exceeds this lies outside the ball of the problem.
    index : ndarray of int or None
        Rows to look at; None means all.

    Returns
    -------
    look : Look
        What was seen.
    n_kernel : int
        Kernel evaluations.
    """
    visit = MarginScan(machines, gamma, points, index, core, member, threshold, _KEEP)
    blocks = list(points.rows.scan(visit, index, width=machines.width))
    n_rows = points.n if index is None else len(index)
    return _collected(blocks, index is None, points.n / n_rows), n_rows * len(machines.vectors)


def all_inside(loss: Vector) -> Look:
    """Return the look when every row is in the core set of every problem."""
    n_problems = len(loss)
    return Look(
        True,
        loss,
        np.full(n_problems, -np.inf),
        np.full(n_problems, -1),
        np.empty(0, dtype=np.intp),
        np.empty((0, n_problems)),
    )


@dataclass(frozen=True)
class MarginScan:
    """Visitor: what a pass over the rows must know of the margins, problem by problem.

    Attributes
    ----------
    machines : Machines
        The decision functions.
    gamma : ndarray of shape (n_problems, n_directions) or None
        What is to be added of the directions.
    points : Points
        Labels and weights.
    row : ndarray of int or None
        Row numbers behind the positions of the scan; None if they are the same.
    core : ndarray of int of shape (n_core,)
        The core rows.
    inside : ndarray of bool of shape (n_problems, n_core)
        Which of them are in the core set of which problem.
    threshold : ndarray of shape (n_problems,)
        A row whose 1 − y f exceeds this in some problem is a candidate.
    keep : int
        Candidates of a block at the most.
    """

    machines: Machines
    gamma: NDArray[np.float64] | None
    points: Points
    row: IndexArray | None
    core: IndexArray
    inside: NDArray[np.bool_]
    threshold: Vector
    keep: int

    def __call__(self, block: Any, where: slice) -> BlockMargins:
        """Return losses, the worst residuals and the candidates of a block."""
        number = np.arange(where.start, where.stop) if self.row is None else self.row[where]
        sign = self.points.table[self.points.code[number]]
        decision = self.machines(block, where)
        projections = self.points.projections
        if self.gamma is not None and projections is not None:
            decision += np.einsum("piq,pq->ip", projections[:, number], self.gamma)
        residual = 1.0 - sign * decision
        slack = np.maximum(0.0, residual)
        loss = self.points.C * (self.points.weight[number] @ (slack * slack))
        self._hide_core(residual, number)
        top = residual.argmax(axis=0)
        worst = residual[top, np.arange(len(top))]
        furthest = np.where(worst > -np.inf, number[top], -1)
        # Rows come in the order of a hash, so that the first ones are a random choice. The worst
        # ones would be a poor choice: where classes overlap, those are the outliers.
        candidate = np.flatnonzero((residual > self.threshold).any(axis=1))[: self.keep]
        return BlockMargins(loss, worst, furthest, number[candidate], residual[candidate])

    def _hide_core(self, residual: NDArray[np.float64], number: IndexArray) -> None:
        """Set the residual of a problem's own core rows, which the solver has seen to, to −∞."""
        order = np.argsort(self.core, kind="stable")
        place = np.searchsorted(self.core, number, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        hit = self.core[place] == number
        residual[hit] = np.where(self.inside[:, place[hit]].T, -np.inf, residual[hit])


@dataclass(frozen=True)
class BlockMargins:
    """Losses and worst residuals of the problems, and candidates for the core set."""

    loss: Vector
    worst: Vector
    furthest: IndexArray
    candidate: IndexArray
    residual: NDArray[np.float64]


def _collected(blocks: list[BlockMargins], full: bool, share: float) -> Look:
    worst = np.array([block.worst for block in blocks])
    furthest = np.array([block.furthest for block in blocks])
    top = worst.argmax(axis=0)
    column = np.arange(worst.shape[1])
    return Look(
        full,
        share * np.sum([block.loss for block in blocks], axis=0),
        worst[top, column],
        furthest[top, column],
        np.concatenate([block.candidate for block in blocks]),
        np.concatenate([block.residual for block in blocks]),
    )
