"""Many positive definite systems at a time, on a device: factors, and conjugate gradients.

The minimum of a quadratic piece is the solution of (K_AA + 1 + diag(ridge)) x = y. Rows and columns
are scaled so that the diagonal is one. Small systems get Cholesky factors, many at a time. In large
ones conjugate gradients are the faster, whose steps are products with matrices that are there
anyway: coefficients x with the residual r have a gap of at most ½ Σ r² / ridge on the piece, which
tells when they are good enough. Systems that take too many steps get a factor, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.device import Array, Device, to_numpy
from widemargin.device.conjugate import ConjugateGradients
from widemargin.device.in_place import scale_to_unit, solve_spd, written

Flags = NDArray[np.bool_]

# Rows up to which systems are factorised at once,
_FACTORISED = 640
# and up to which one is that is alone: steps of conjugate gradients wait for launches there.
_FACTORISED_ALONE = 2048
# Steps of conjugate gradients before factors take over,
_STEPS = 160
# and how many are taken before residuals are looked at.
_LOOK = 16


@dataclass(frozen=True)
class Systems:
    """Systems of about one size.

    Attributes
    ----------
    device : Device
        Where they are.
    matrices : array of shape (b, k, k)
        K + 1 among the rows inside the margin; anything in rows and columns that only fill up.
        They are used up.
    ridge : array of float64 of shape (b, k)
        What the diagonal has beside it.
    there : array of bool of shape (b, k)
        Which rows there are.
    """

    device: Device
    matrices: Array
    ridge: Array
    there: Array

    def solved(self, right: Array, start: Array, least: Array, stiff: Flags) -> tuple[Array, Flags]:
        """Return solutions in float64, and for which systems conjugate gradients take too long.

        Parameters
        ----------
        right : array of float64 of shape (b, k)
            Right-hand sides, zero where there is no row.
        start : array of float64 of shape (b, k)
            Coefficients to start from, likewise.
        least : array of float64 of shape (b,)
            What is left of ½ Σ r² / ridge in a good solution.
        stiff : ndarray of bool of shape (b,)
            Systems that had better be factorised at once.
        """
        device, xp = self.device, self.device.xp
        diagonal = xp.astype(xp.linalg.diagonal(self.matrices), xp.float64) + self.ridge
        scale = xp.astype(self.there, xp.float64) / xp.sqrt(diagonal)
        kind = self.matrices.dtype
        matrices = scale_to_unit(device, self.matrices, xp.astype(scale, kind))
        values = xp.astype(scale * right, kind)[:, :, None]
        few = _FACTORISED if matrices.shape[0] > 1 else _FACTORISED_ALONE
        if stiff.all() or matrices.shape[1] <= few:
            found = solve_spd(device, matrices, values)
            return scale * xp.astype(found[:, :, 0], xp.float64), stiff
        begin = xp.astype(start * xp.sqrt(diagonal), kind)[:, :, None]
        price = xp.astype(0.5 * diagonal / self.ridge, kind)[:, :, None]
        if stiff.any():
            least = xp.where(device.array(stiff), np.inf, least)
        bound = xp.astype(least, kind)
        found, good = self._approached(matrices, values, begin, price, bound)
        stiff = stiff | ~good
        if stiff.any():
            index = device.index(np.flatnonzero(stiff))
            some, theirs = xp.take(matrices, index, axis=0), xp.take(values, index, axis=0)
            found = written(device, found, index, solve_spd(device, some, theirs))
        return scale * xp.astype(found[:, :, 0], xp.float64), stiff

    def _approached(
        self, matrices: Array, right: Array, start: Array, price: Array, bound: Array
    ) -> tuple[Array, Flags]:
        """Return solutions by conjugate gradients, and which of them are good enough."""
        xp = self.device.xp
        gradients = ConjugateGradients(self.device, matrices, right, start)
        for step in range(0, _STEPS + 1, _LOOK):
            good = to_numpy(xp.sum(price * gradients.left**2, axis=(1, 2)) <= bound)
            if good.all() or step == _STEPS:
                break
            gradients.advance(_LOOK)
        return gradients.x, good
