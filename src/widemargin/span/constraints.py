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
        self.curvature = curvature
        # K_z v, with a zero for the bias.
        borders = (np.pad(each.T, ((0, 1), (0, 0))) for each in directions)
        self.normals = [basis.metric(each) for each in borders]
        # The directions in an orthonormal basis.
        self.units = [basis.whitened(normal[:-1]) for normal in self.normals]

    def take_from_gradient(self, gradient: Matrix, live: IndexArray) -> None:
        """Take out of gradients what no feasible step feels."""
        for j, p in enumerate(live):
            gradient[:, j] -= self.normals[p] @ (self.directions[p] @ gradient[:-1, j])

    def make_feasible(self, direction: Matrix, live: IndexArray) -> None:
        """Take out of steps what rounding has left along the directions."""
        for j, p in enumerate(live):
            direction[:-1, j] -= self.directions[p].T @ (self.normals[p].T @ direction[:, j])

    def make_newton_feasible(self, newton: Matrix, live: IndexArray) -> None:
        """Turn M⁻¹g into the step of Newton's method within the constraints."""
        for p in live:
            normal = self.normals[p]
            tilted = self.curvature.solve(normal, np.full(normal.shape[1], p))
            newton[:, p] -= tilted @ np.linalg.solve(normal.T @ tilted, normal.T @ newton[:, p])

    def take_from_whitened(self, whitened: Matrix, live: IndexArray) -> None:
        """Take the directions out of vectors in an orthonormal basis."""
        for j, p in enumerate(live):
            whitened[:-1, j] -= self.units[p] @ (self.units[p].T @ whitened[:-1, j])
