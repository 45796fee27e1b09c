"""Sizes at which a span fit changes its ways."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpanSizes:
    """Sizes at which a span fit changes its ways.

    Attributes
    ----------
    first_vectors : int
        Vectors to start with.
    near_share : float
        Rows near a margin are brought to the front if they are no more than this share of all.
    few_values : int
        Kernel values that are computed in float64 in no time.
    """

    first_vectors: int = 256
    near_share: float = 0.6
    few_values: int = 4_000_000
