"""Where problems stand between two steps when one row joins at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.balls.ball import Ball


@dataclass(frozen=True)
class OneRowState:
    """Where one problem stands; a step changes copies.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        The coefficients of the centre (fixed radius), or the dual variables.
    product : ndarray of shape (n,)
        Qλ (fixed radius), or 1 − Qα.
    member : ndarray of bool of shape (n,)
        The rows of the core set (smallest ball).
    center : ndarray of shape (5,)
        What the compiled loop says of its centre.
    random : ndarray of uint64 of shape (1,)
        The generator of the samples.
    radius2 : float
        r² (fixed radius).
    n_radii : int
        Radii so far.
    done : bool
        No row lies outside.
    exhausted : bool
        Rows of the core set do at this precision, and nothing is left to refine.
    wanted : int
        A row whose kernel values are missing; −1 if there is none.
    """

    alpha: Vector
    product: Vector
    member: NDArray[np.bool_]
    center: Vector
    random: NDArray[np.uint64]
    radius2: float
    n_radii: int = 1
    done: bool = False
    exhausted: bool = False
    wanted: int = -1

    def copy(self) -> OneRowState:
        """Return a state of its own."""
        return replace(
            self,
            alpha=self.alpha.copy(),
            product=self.product.copy(),
            member=self.member.copy(),
            center=self.center.copy(),
            random=self.random.copy(),
        )


@dataclass(frozen=True)
class OneRowStates:
    """All problems between two steps.

    Attributes
    ----------
    each : tuple of OneRowState
        The problems.
    balls : tuple of Ball
        Their balls, over all rows.
    full : bool
        There is no room for the kernel values that a problem needs.
    """

    each: tuple[OneRowState, ...]
    balls: tuple[Ball, ...]
    full: bool = False
