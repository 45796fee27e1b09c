"""The best lower bound that the steps of a fit have shown.

Every α ≥ 0 bounds the optimum from below: D(α) = Σα − ½ q(α) with the quadratic form
q(α) = ‖Σ α_i y_i φ_z(x_i)‖² + (Σ α_i y_i)² + Σ α_i²/(2 C s_i), and with its best factor
D = (Σα)² / (2q). The α of one step and the mixture of those before it span a segment of such points
on which D has a closed form; its best point is the next mixture. It bounds more tightly than either
end, because the errors of successive steps have different directions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.rows.base import IndexArray
from widemargin.span.problems import Problems, Scores

Vector = NDArray[np.float64]

# Points of the segment that are tried: a finer grid gains nothing that a user would see.
_GRID = np.linspace(0.0, 1.0, 65)[:, None]


class LowerBound:
    """The mixture of dual points so far, and its value.

    Attributes
    ----------
    mixture : ndarray of shape (n, n_problems)
        y α of every row.
    """

    def __init__(self, problems: Problems, dtype: DTypeLike) -> None:
        self.problems = problems
        self.mixture: Scores = np.zeros((problems.n, problems.n_problems), dtype=dtype)
        self._linear = np.zeros(problems.n_problems)
        self._quadratic = np.zeros(problems.n_problems)
        self._whitened: NDArray[np.float64] | None = None

    def improved(
        self,
        scores: Scores,
        live: IndexArray,
        whitened: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> Vector:
        """Take in the dual points of the scores, and return the bounds.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_problems)
            Scores f of the rows.
        live : ndarray of int
            The problems that have moved.
        whitened : ndarray of shape (r + 1, len(live))
            Σ α y φ_z(x) and Σ α y of their dual points, in an orthonormal basis.
        sums : ndarray of shape (4, len(live))
            What `Problems.slopes` added up.

        Returns
        -------
        ndarray of shape (len(live),)
            Lower bounds on the optima.
        """
        linear, cross_rows = sums[2], sums[3]
        # Σ α²/(2Cs) = Σ 2 C s ξ², twice the loss.
        quadratic = (whitened * whitened).sum(axis=0) + 2.0 * sums[0]
        if self._whitened is None or len(self._whitened) != len(whitened):
            share = np.ones(len(live))
            self._whitened = np.zeros((len(whitened), self.problems.n_problems))
            cross = np.zeros(len(live))
        else:
            cross = (self._whitened[:, live] * whitened).sum(axis=0) + cross_rows
            share = self._best_share(live, linear, quadratic, cross)
        rest = 1.0 - share
        self._quadratic[live] = (
            rest**2 * self._quadratic[live] + 2 * rest * share * cross + share**2 * quadratic
        )
        self._linear[live] = rest * self._linear[live] + share * linear
        self._whitened[:, live] += share * (whitened - self._whitened[:, live])
        self.problems.blend(scores, live, share, self.mixture[: len(scores)])
        return _value(self._linear[live], self._quadratic[live])

    def _best_share(
        self, live: IndexArray, linear: Vector, quadratic: Vector, cross: Vector
    ) -> Vector:
        rest = 1.0 - _GRID
        values = _value(
            rest * self._linear[live] + _GRID * linear,
            rest**2 * self._quadratic[live] + 2 * rest * _GRID * cross + _GRID**2 * quadratic,
        )
        best: Vector = _GRID[values.argmax(axis=0), 0]
        return best


def _value(linear: Vector, quadratic: Vector) -> Vector:
    """Return the largest Dual of a point times a factor: linear² / (2 quadratic)."""
    value = np.zeros(np.broadcast(linear, quadratic).shape)
    np.divide(linear * linear, 2.0 * quadratic, out=value, where=quadratic > 0)
    return value
