"""How a core set is grown, and where it stands between two steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import State
from widemargin.balls.look import Directions, Look
from widemargin.expansion import MachineOptions


@dataclass(frozen=True)
class BatchSizes:
    """How a core set grows in batches.

    Attributes
    ----------
    first : int
        Rows of the first core.
    least : int
        Rows that join at the least.
    sample : int
        Rows that a sampled look takes at the least; below twice that many it takes them all.
    whole : bool
        Whether the core is all rows where there is room for them.
    """

    first: int = 1000
    least: int = 256
    sample: int = 16384
    whole: bool = True


@dataclass(frozen=True, kw_only=True)
class CoreOptions(MachineOptions):
    """How a core set is grown.

    Attributes
    ----------
    by_ball : bool
        Whether to stop when no row lies outside any ball, and not by the duality gap.
    growth : {"batch", "one"}
        How rows join: see ``joining``.
    sample_size : int or None
        Rows that ``growth="one"`` draws to find a far one; None looks at all.
    sizes : BatchSizes
        Sizes of batches and samples for ``growth="batch"``.
    patience : int
        Steps without progress that count as a stall.
    directions : Directions or None
        What centres must be orthogonal to.
    """

    by_ball: bool = False
    growth: str = "batch"
    sample_size: int | None = 59
    sizes: BatchSizes = field(default_factory=BatchSizes)
    patience: int = 50
    directions: Directions | None = None


@dataclass(frozen=True)
class CoreState(Generic[State]):
    """A core set with its balls.

    Attributes
    ----------
    core : ndarray of int
        Core rows of all problems.
    member : ndarray of bool of shape (n_problems, n_core)
        Which of them belong to which problem.
    balls : tuple of Ball
        One ball a problem, on its members.
    look : Look
        The rows as these balls see them.
    n_passes, n_kernel : int
        Passes over all rows and kernel evaluations so far.
    exhausted : bool
        Nothing can be refined any more.
    """

    core: IndexArray
    member: NDArray[np.bool_]
    balls: tuple[State, ...]
    look: Look
    n_passes: int
    n_kernel: int
    exhausted: bool = False

    def alpha(self) -> NDArray[np.float64]:
        """Return the dual variables of all problems on all core rows."""
        full = np.zeros(self.member.shape)
        for p, ball in enumerate(self.balls):
            full[p, self.member[p]] = ball.alpha
        return full

    def thresholds(self) -> Vector:
        """Return the residual beyond which a row lies outside, for each problem."""
        return np.array([ball.threshold for ball in self.balls])

    def outside(self) -> NDArray[np.bool_]:
        """Return in which problems the look found a row outside the ball."""
        return self.look.worst > self.thresholds()
