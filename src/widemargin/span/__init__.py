"""The span of a few vectors: the max-margin fit of all rows inside it, and its parts.

``landmarks`` chooses the vectors, ``basis`` is their span, ``values`` the kernel values of all rows
with them. ``levels`` goes from few rows and vectors to many, ``descent`` takes the steps, with
Newton matrices of ``curvature`` and losses, bounds and line searches over scores in ``losses``.
``span_engine`` is the engine. The files of a device do the same where rows are arrays of another
library: ``device_shard``, ``device_values``, ``device_losses`` and ``device_basis``.
"""

from widemargin.span.basis import Basis, Vectors
from widemargin.span.descent import SpanState
from widemargin.span.device_basis import no_vectors
from widemargin.span.landmarks import (
    STRATEGIES,
    CoreVectors,
    GivenVectors,
    KMeansVectors,
    LeverageVectors,
    RandomVectors,
    Strategy,
    as_strategy,
)
from widemargin.span.left_out import LeftOut, fit_span_and_judge
from widemargin.span.levels import SpanFit
from widemargin.span.span_engine import (
    SpanOptions,
    fit_span,
    fit_span_with_scores,
    most_vectors,
    solve_in_span,
    span_solver,
)
from widemargin.span.span_sizes import SpanSizes

__all__ = [
    "STRATEGIES",
    "Basis",
    "CoreVectors",
    "GivenVectors",
    "KMeansVectors",
    "LeftOut",
    "LeverageVectors",
    "RandomVectors",
    "SpanFit",
    "SpanOptions",
    "SpanSizes",
    "SpanState",
    "Strategy",
    "Vectors",
    "as_strategy",
    "fit_span",
    "fit_span_and_judge",
    "fit_span_with_scores",
    "most_vectors",
    "no_vectors",
    "solve_in_span",
    "span_solver",
]
