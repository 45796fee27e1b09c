"""The span of a few vectors: the whitened map, and the max-margin fit of all rows inside it."""

from widemargin.span.basis import Basis, Vectors
from widemargin.span.choice import (
    STRATEGIES,
    CoreVectors,
    GivenVectors,
    KMeansVectors,
    LeverageVectors,
    RandomVectors,
    as_strategy,
)
from widemargin.span.newton import SpanFit
from widemargin.span.problems import Problems
from widemargin.span.state import Earlier, SpanState

__all__ = [
    "STRATEGIES",
    "Basis",
    "CoreVectors",
    "Earlier",
    "GivenVectors",
    "KMeansVectors",
    "LeverageVectors",
    "Problems",
    "RandomVectors",
    "SpanFit",
    "SpanState",
    "Vectors",
    "as_strategy",
]
