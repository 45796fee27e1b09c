"""Many positive definite systems at a time, on a device: conjugate gradients, and factors.

The minimum of a quadratic piece is the solution of (K_AA + 1 + diag(ridge)) x = y. Coefficients x
with the residual r have a gap of at most ½ Σ r² / ridge on the piece, which tells when they are
good enough. A step of conjugate gradients is one product with matrices that are there anyway, so
that hundreds of systems advance together; those that take too long get a Cholesky factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.device import Array, Device, to_numpy
from widemargin.device.in_place import solve_spd, written

Flags = NDArray[np.bool_]

# Steps of conjugate gradients before factors take over,
_STEPS = 128
# and one in how many looks at the residuals.
_LOOK = 8


@dataclass(frozen=True)
class Systems:
    """Systems of about one size.

    Attributes
    ----------
    device : Device
        Where they are.
    matrices : array of shape (b, k, k)
        K + 1 among the rows inside the margin; anything in rows and columns that only fill up.
    ridge : array of float64 of shape (b, k)
        What the diagonal has beside it.
    there : array of bool of shape (b, k)
        Which rows there are.
    """

    device: Device
    matrices: Array
    ridge: Array
    there: Array

    def solved(
        self, right: Array, start: Array, least: Vector, stiff: Flags
    ) -> tuple[Array, Flags]:
        """Return solutions in float64, and for which systems conjugate gradients take too long.

        Parameters
        ----------
        right : array of float64 of shape (b, k)
            Right-hand sides, zero where there is no row.
        start : array of float64 of shape (b, k)
            Coefficients to start from, likewise.
        least : ndarray of shape (b,)
            What is left of ½ Σ r² / ridge in a good solution.
        stiff : ndarray of bool of shape (b,)
            Systems that had better be factorised at once.
        """
        xp = self.device.xp
        found = start
        if not stiff.all():
            found, good = self._approached(right, start, np.where(stiff, np.inf, least))
            stiff = stiff | ~good
        if stiff.all():
            return self._factorised(right), stiff
        if stiff.any():
            some = np.flatnonzero(stiff)
            index = self.device.index(some)
            part = (self.matrices, self.ridge, self.there, right)
            matrices, ridge, there, values = (xp.take(each, index, axis=0) for each in part)
            better = Systems(self.device, matrices, ridge, there)._factorised(values)
            found = written(self.device, found, index, better)
        return found, stiff

    def _approached(self, right: Array, start: Array, least: Vector) -> tuple[Array, Flags]:
        """Return solutions by conjugate gradients, and which of them are good enough."""
        xp, A = self.device.xp, self.matrices
        kind = A.dtype
        mask = xp.astype(self.there, kind)
        ridge = xp.astype(self.ridge, kind)
        scale = mask / (xp.linalg.diagonal(A) + ridge)
        price = 0.5 * mask / ridge
        bound = xp.astype(self.device.array(least), kind)
        x = xp.astype(start, kind)

        def times(vector: Array) -> Array:
            return xp.matmul(A, vector[:, :, None])[:, :, 0] + ridge * vector

        left = xp.astype(right, kind) - times(x)
        along = scale * left
        size = xp.sum(left * along, axis=1, keepdims=True)
        one = xp.ones_like(size)
        good = xp.sum(price * left * left, axis=1) <= bound
        for step in range(1, _STEPS + 1):
            if (step - 1) % _LOOK == 0 and bool(xp.all(good)):
                break
            product = times(along)
            steep = xp.sum(along * product, axis=1, keepdims=True)
            length = size / xp.where(steep > 0, steep, one)
            x = x + length * along
            left = left - length * product
            scaled = scale * left
            after = xp.sum(left * scaled, axis=1, keepdims=True)
            along = scaled + (after / xp.where(size > 0, size, one)) * along
            size = after
            if step % _LOOK == 0:
                good = xp.sum(price * left * left, axis=1) <= bound
        return xp.astype(x, xp.float64), to_numpy(good)

    def _factorised(self, right: Array) -> Array:
        """Return solutions by Cholesky factors; rows that only fill up are of the identity."""
        xp, A = self.device.xp, self.matrices
        mask = xp.astype(self.there, A.dtype)
        diagonal = xp.where(self.there, self.ridge, xp.ones_like(self.ridge))
        eye = xp.eye(A.shape[1], dtype=A.dtype, device=self.device.where)
        matrix = A * (mask[:, :, None] * mask[:, None, :])
        matrix += xp.astype(diagonal, A.dtype)[:, :, None] * eye
        solution = solve_spd(self.device, matrix, xp.astype(right, A.dtype)[:, :, None])
        return xp.astype(solution[:, :, 0], xp.float64)
