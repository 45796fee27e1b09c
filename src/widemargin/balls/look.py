"""A look at the rows: all of them, or a sample, as the current balls see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.expansion import Expansion
from widemargin.problem import Problem

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


@dataclass(frozen=True)
class Directions:
    """Unit vectors that the centre of each ball must be orthogonal to.

    Attributes
    ----------
    projections : ndarray of shape (n_problems, n, n_directions)
        p_i = Uᵀφ(x_i) of every row, for the orthonormal directions U of each problem.
    """

    projections: NDArray[np.float64]

    def multipliers(self, index: IndexArray, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return γ = −UᵀΦβ of each problem, (8) of MMDA-CVM: w = Φβ + Uγ is orthogonal to U.

        Parameters
        ----------
        index : ndarray of int of shape (m,)
            Rows of an expansion.
        beta : ndarray of shape (m, n_problems)
            Their coefficients, with labels.

        Returns
        -------
        ndarray of shape (n_problems, n_directions)
            γ.
        """
        gamma: NDArray[np.float64] = -np.einsum("ip,piq->pq", beta, self.projections[:, index])
        return gamma


@dataclass(frozen=True)
class BallMachines:
    """The decision functions of balls.

    Attributes
    ----------
    expansion : Expansion
        Their sums over vectors.
    index : ndarray of int
        The rows that are the vectors.
    gamma : ndarray of shape (n_problems, n_directions) or None
        What is to be added of the directions.
    """

    expansion: Expansion
    index: IndexArray
    gamma: NDArray[np.float64] | None


def look_at(
    problem: Problem,
    directions: Directions | None,
    machines: BallMachines,
    core: IndexArray,
    member: NDArray[np.bool_],
    threshold: Vector,
    index: IndexArray | None,
) -> tuple[Look, int]:
    """Scan rows with the machines of the balls.

    Parameters
    ----------
    problem : Problem
        All rows.
    directions : Directions or None
        What centres are orthogonal to.
    machines : BallMachines
        The balls' decision functions.
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
    vectors, rows = machines.expansion.vectors, problem.rows
    visit = MarginScan(problem, directions, machines, index, core, member, threshold, _KEEP)
    width = min(len(vectors), rows.vectors_at_a_time)
    blocks = list(rows.scan(visit, index, width=width))
    n_rows = problem.n if index is None else len(index)
    return _collected(blocks, index is None, problem.n / n_rows), n_rows * len(vectors)


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
    problem : Problem
        Labels and weights.
    directions : Directions or None
        What centres are orthogonal to.
    machines : BallMachines
        The decision functions.
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

    problem: Problem
    directions: Directions | None
    machines: BallMachines
    row: IndexArray | None
    core: IndexArray
    inside: NDArray[np.bool_]
    threshold: Vector
    keep: int

    def __call__(self, block: Any, where: slice) -> BlockMargins:
        """Return losses, the worst residuals and the candidates of a block."""
        number = np.arange(where.start, where.stop) if self.row is None else self.row[where]
        decision = self.machines.expansion(block, self.problem.rows.vectors_at_a_time)
        if self.directions is not None and self.machines.gamma is not None:
            projections = self.directions.projections[:, number]
            decision += np.einsum("piq,pq->ip", projections, self.machines.gamma)
        residual = self.problem.lacking(decision, number)
        slack = np.maximum(0.0, residual)
        loss = self.problem.C * (self.problem.weight[number] @ (slack * slack))
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
