"""Where a span fit stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.rows.base import IndexArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SpanState:
    """Where a fit stands.

    Attributes
    ----------
    beta : ndarray of shape (r + 1, n_problems)
        Coefficients of the vectors, and the biases below them.
    gradient : ndarray of shape (r + 1, n_problems)
        Derivative of the objectives by `beta`.
    newton : ndarray of shape (r + 1, n_problems) or None
        The preconditioned gradient, where the matrix is at hand.
    primal, dual : ndarray of shape (n_problems,)
        Objectives and lower bounds, over the first `n_rows` rows.
    n_rows : int
        Rows that were looked at.
    final : bool
        No more vectors will follow.
    shrunk : bool
        The rows that were left out lie far outside every margin.
    steps : int
        Steps on these rows and vectors.
    tired : int
        Steps in a row that gained nothing.
    rounding : float or None
        What the precision of the kernel values may hide of primal − dual, once it is known.
    full_dual : float or None
        Lower bound on the optimum of the full problem; known at the end.
    """

    beta: Matrix
    gradient: Matrix
    newton: Matrix | None
    primal: Vector
    dual: Vector
    n_rows: int
    final: bool = False
    shrunk: bool = False
    steps: int = 0
    tired: int = 0
    rounding: float | None = None
    full_dual: float | None = None

    def decrement(self) -> Vector:
        """Return Newton's estimates of how far the objectives are from their optima.

        An estimate that rounding has made negative says nothing: it is infinite.
        """
        if self.newton is None:
            return np.full(len(self.primal), np.inf)
        decrement: Vector = 0.5 * (self.gradient * self.newton).sum(axis=0)
        return np.where(decrement >= 0.0, decrement, np.inf)


@dataclass(frozen=True)
class Earlier:
    """The solution of a similar problem, to start from.

    Attributes
    ----------
    index : ndarray of int of shape (m,)
        Rows that are its vectors.
    beta : ndarray of shape (m + 1, n_problems)
        Their coefficients, and the biases below them.
    """

    index: IndexArray
    beta: Matrix
