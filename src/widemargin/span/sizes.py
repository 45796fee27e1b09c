"""How large a span fit may be: vectors, precision, and its share of the memory budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from widemargin.kernels import Kernel
from widemargin.rows.base import BlockRows
from widemargin.span.choice import Strategy
from widemargin.span.newton import SpanFit
from widemargin.span.problems import Problems
from widemargin.span.state import Earlier

# Kernel values that are worth keeping small: fewer are computed in float64 in no time.
_FEW_VALUES = 4_000_000
# Gaps below this ask for float64.
_FINE_TOL = 1e-4
# Share of the memory budget for kernel values; matrices need the rest. Of those there are this many
# at a time, of the size of the vectors squared, and half a one for each problem.
_VALUES_SHARE, _MATRICES = 0.5, 8
# Vectors that may be taken even where their kernel values do not fit and are computed again.
_AUTO_VECTORS = 1024


def span_fit(
    rows: BlockRows,
    kernel: Kernel,
    problems: Problems,
    strategy: Strategy,
    *,
    limit: int | None,
    tol: float,
    memory: int,
    rng: np.random.Generator,
    earlier: Earlier | None = None,
    bounds: bool = True,
) -> SpanFit:
    """Return the solver of problems in a span that fits into memory.

    Parameters
    ----------
    rows : BlockRows
        The rows.
    kernel : Kernel
        Their kernel.
    problems : Problems
        What is to be fitted to them.
    strategy : Strategy
        Where vectors come from.
    limit : int or None
        Vectors at the most; None leaves it to the gain and the memory.
    tol : float
        Relative duality gap.
    memory : int
        Budget in bytes.
    rng : numpy.random.Generator
        For the choice of vectors.
    earlier : Earlier, default=None
        The solution to start from.
    bounds : bool, default=True
        Prove the gap, rather than estimate it.

    Returns
    -------
    SpanFit
        A solver for ``loop.run``.
    """
    choice = strategy.begin(rows, kernel, problems.weight, rng)
    most = limit
    if most is None:
        most = _most_vectors(problems, memory)
        most = min(getattr(choice, "available", problems.n), most)
        if not choice.nested:
            # All are drawn at once, without a look at what half of them would do.
            most = min(most, max(_AUTO_VECTORS, getattr(choice, "available", 0)))
    return SpanFit(
        rows,
        kernel,
        problems,
        choice,
        tol=tol,
        max_vectors=most,
        grow=limit is None,
        dtype=_value_dtype(kernel, problems.n * most, tol),
        room=int(_VALUES_SHARE * memory),
        earlier=earlier,
        bounds=bounds,
    )


def _most_vectors(problems: Problems, memory: int) -> int:
    """Return how many vectors there may be: their values and their matrices fit into memory."""
    by_values = int(_VALUES_SHARE * memory / (4 * problems.n))
    matrices = _MATRICES + 0.5 * len(np.unique(problems.table, axis=1).T)
    by_matrices = int(np.sqrt((1.0 - _VALUES_SHARE) * memory / (8 * matrices)))
    return min(by_matrices, max(_AUTO_VECTORS, by_values))


def _value_dtype(kernel: Kernel, n_values: int, tol: float) -> DTypeLike:
    """Return float32 where it saves time and its rounding does not matter, else float64."""
    coarse = kernel.constant_diagonal is not None and tol >= _FINE_TOL
    return np.float32 if coarse and n_values > _FEW_VALUES else np.float64
