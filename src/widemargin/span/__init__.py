"""The span of a few vectors: the whitened map, and the max-margin fit of all rows inside it."""

from widemargin.span.basis import Basis, Vectors
from widemargin.span.choice import (
    STRATEGIES,
    CoreVectors,
    GivenVectors,
    KMeansVectors,
    LeverageVectors,
    RandomVectors,
    Strategy,
    as_strategy,
)
from widemargin.span.newton import SpanFit
from widemargin.span.problems import Problems
from widemargin.span.sizes import span_fit
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
    "Strategy",
    "Vectors",
    "as_strategy",
    "span_fit",
]
