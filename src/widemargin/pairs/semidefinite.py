"""The Maxi-Min relaxation as the semidefinite program it is written as, through CVXPY.

Xu, Huang and Liu (2012), (7) and (11) with Q ⪰ 0 as a constraint. ``pair_program`` has the same
solution in a fraction of the time; this is for comparison with the paper.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.pairs.class_pairs import ClassPairs

Matrix = NDArray[np.float64]

# Pairs beyond which the program is not worth stating.
_MOST_PAIRS = 20_000


def solve_semidefinite(classes: ClassPairs, C: float, *, squared: bool) -> Matrix:
    """Return Q of (7), or of (11) for a finite C.

    Raises
    ------
    ImportError
        If CVXPY is not installed.
    ValueError
        If there are too many pairs.
    """
    try:
        cp: Any = import_module("cvxpy")
    except ImportError as error:
        raise ImportError(
            "solver='sdp' needs CVXPY, which is not installed: pip install cvxpy, or use "
            "solver='exact', which has the same solution."
        ) from error
    if classes.n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"solver='sdp' has a constraint for each of {classes.n_pairs:,} pairs of classes; use "
            "solver='exact', which has the same solution."
        )
    first, second = np.triu_indices(classes.n_classes, 1)
    # In units of a typical distance, so that the solver's tolerances mean something.
    unit = float(np.trace(classes.mean_scatter()))
    apart = (classes.means[first] - classes.means[second]) / np.sqrt(unit)
    k = apart.shape[1]
    Q = cp.Variable((k, k), PSD=True)
    products = np.einsum("pi,pj->pij", apart, apart).reshape(len(apart), k * k)
    distance = products @ cp.vec(Q, order="C")
    size = 0.5 * cp.sum_squares(Q)
    if np.isinf(C):
        problem = cp.Problem(cp.Minimize(size), [distance >= 1])
    else:
        loss: Any = cp.pos(1 - distance)
        loss = cp.sum_squares(loss) if squared else cp.sum(loss)
        problem = cp.Problem(cp.Minimize(size + C * unit**2 * loss))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    solution: Matrix = np.asarray(Q.value, dtype=np.float64)
    return 0.5 * (solution + solution.T) / unit
