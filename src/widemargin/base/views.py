"""The rows of a search as its widths see them: as they are, and with columns on one scale."""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Vector
from widemargin.base.row_maps import scaling_of, seen_distinct
from widemargin.device import moments
from widemargin.rows import ArrayRows, Distinct, PrecomputedRows


class Views:
    """Distinct rows, and the same with columns on one scale, which are made once.

    Parameters
    ----------
    distinct : Distinct
        The rows.
    """

    def __init__(self, distinct: Distinct) -> None:
        self.distinct = distinct
        self._scaled: Distinct | None = None

    @property
    def mappable(self) -> bool:
        """Whether rows can be mapped: they are dense, and here."""
        rows = self.distinct.rows
        here = rows.device is None and isinstance(rows, ArrayRows)
        return here and not isinstance(rows, PrecomputedRows)

    def of(self, scale: str | None) -> Distinct:
        """Return the rows as a width with this scale sees them."""
        if scale is None:
            return self.distinct
        if self._scaled is None:
            self._scaled = seen_distinct(self.distinct, scaling_of(scale, self.distinct))
        return self._scaled

    def variance(self, scale: str | None) -> Vector:
        """Return the variances of the columns as a width with this scale sees them."""
        if isinstance(self.distinct.rows, PrecomputedRows):
            # A kernel matrix has no width, and no columns that are features.
            return np.ones(1)
        seen = self.of(scale)
        return moments(seen.rows, seen.weight).variance
