"""Directions in a span that the weight vectors of machines must be orthogonal to.

The earlier directions of MaxMarginDA: with their coefficients v, the normals K_z v are what steps
must not move along, and Newton's steps are taken in the space that is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.span.basis import Basis
from widemargin.span.curvature import Curvature


class Constraints:
    """What follows from the directions, kept: it takes matrices as large as the span.

    Parameters
    ----------
    directions : ndarray of shape (n_problems, n_directions, r)
        Coefficients v of unit vectors that w of each problem must be orthogonal to.
    basis : Basis
        The span.
    curvature : Curvature
        Newton matrices M.
    """

    def __init__(self, directions: NDArray[np.float64], basis: Basis, curvature: Curvature) -> None:
        self.directions = directions
        self.basis = basis
        self.curvature = curvature
        self._normals: dict[int, Matrix] = {}
        self._units: dict[int, Matrix] = {}
        self.forget_curvature()

    def forget_curvature(self) -> None:
        """Drop what followed from Newton matrices that are no more."""
        self._tilted: dict[int, Matrix] = {}

    def take_from_gradient(self, gradient: Matrix, live: IndexArray) -> None:
        """Take out of gradients what no feasible step feels."""
        for j, p in enumerate(live):
            v = self.directions[p].T
            gradient[:, j] -= self._normal(int(p)) @ (v.T @ gradient[:-1, j])

    def make_feasible(self, direction: Matrix, live: IndexArray) -> None:
        """Take out of steps what rounding has left along the directions."""
        for j, p in enumerate(live):
            v = self.directions[p].T
            direction[:-1, j] -= v @ (self._normal(int(p)).T @ direction[:, j])

    def make_newton_feasible(self, newton: Matrix, live: IndexArray) -> None:
        """Turn M⁻¹g into the step of Newton's method within the constraints."""
        for p in live:
            normal = self._normal(int(p))
            tilted = self._tilted_normal(int(p))
            inner = normal.T @ tilted
            newton[:, p] -= tilted @ np.linalg.solve(inner, normal.T @ newton[:, p])

    def take_from_whitened(self, whitened: Matrix, live: IndexArray) -> None:
        """Take the directions out of vectors in an orthonormal basis."""
        for j, p in enumerate(live):
            unit = self._unit(int(p))
            whitened[:-1, j] -= unit @ (unit.T @ whitened[:-1, j])

    def _normal(self, problem: int) -> Matrix:
        """Return K_z v of the directions of a problem, with a zero for the bias."""
        if problem not in self._normals:
            coefficients = self.directions[problem].T
            nothing = np.zeros(coefficients.shape[1])
            self._normals[problem] = self.basis.metric(np.vstack([coefficients, nothing]))
        return self._normals[problem]

    def _tilted_normal(self, problem: int) -> Matrix:
        """Return M⁻¹ K_z v."""
        if problem not in self._tilted:
            normal = self._normal(problem)
            columns = np.full(normal.shape[1], problem)
            self._tilted[problem] = self.curvature.solve(normal, columns)
        return self._tilted[problem]

    def _unit(self, problem: int) -> Matrix:
        """Return the directions of a problem in an orthonormal basis."""
        if problem not in self._units:
            self._units[problem] = self.basis.whitened(self._normal(problem)[:-1])
        return self._units[problem]
