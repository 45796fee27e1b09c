"""The rows of a search as its widths see them: as they are, and with columns on one scale."""

from __future__ import annotations

from typing import Any

from widemargin.base.parameters import check_choice
from widemargin.base.row_maps import scaling_of
from widemargin.base.widths import listed
from widemargin.kernels import KERNELS
from widemargin.rows import ArrayRows, Distinct, PrecomputedRows
from widemargin.svm.seen_rows import seen_distinct

_KINDS = ("diagonal", "full")


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


def kinds_of(metrics: Any) -> tuple[str, ...]:
    """Return the kinds of metrics that a parameter names, or raise."""
    if metrics is None:
        return ()
    if isinstance(metrics, str):
        check_choice("metrics", metrics, ("auto",))
        return _KINDS
    named = [each for each in listed("metrics", metrics) if each is not None]
    return tuple(check_choice("metrics", each, _KINDS) for each in named)


def has_gradient(kernel: Any) -> bool:
    """Return whether a metric can be learned from machines with a kernel."""
    return isinstance(kernel, str) and KERNELS[kernel].differentiable and kernel != "precomputed"
