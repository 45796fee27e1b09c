"""A core set with its balls, between two steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from widemargin.balls.core import State, Vector
from widemargin.balls.look import Look
from widemargin.rows.base import IndexArray


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
