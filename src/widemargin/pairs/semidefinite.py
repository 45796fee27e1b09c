"""The Maxi-Min relaxation as the semidefinite program it is written as, through CVXPY.

Xu, Huang and Liu (2012), (7) and (11) with Q ⪰ 0 as a constraint. ``pair_program`` has the same
solution in a fraction of the time; this is for comparison with the paper.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from widemargin.arrays import Matrix
from widemargin.pairs.class_pairs import ClassPairs

# Pairs beyond which the program is not worth stating.
_MOST_PAIRS = 20_000


def solve_semidefinite(classes: ClassPairs, C: float, *, squared: bool) -> Matrix:
    """Return Q of (7), or of (11) for a finite C.

    Raises
    ------
    ImportError
        If CVXPY is not installed.
    ValueError
        If there are too many pairs, or no solution is found.
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
    apart = classes.means[first] - classes.means[second]
    squares = (apart * apart).sum(axis=1)
    hard = np.isinf(C)
    # In units of the closest distance, which is what Q is about, or of a typical one where there
    # are errors to be weighed against it: the solver's tolerances then mean something.
    unit = float(squares.min()) if hard else float(np.trace(classes.mean_scatter()))
    # Hard demands are divided by the squared lengths: far pairs would make large numbers of them.
    scale = np.sqrt(squares)[:, None] if hard else np.sqrt(unit)
    apart = apart / scale
    Q = cp.Variable((apart.shape[1], apart.shape[1]), PSD=True)
    distance = cp.sum(cp.multiply(apart @ Q, apart), axis=1)
    objective = 0.5 * cp.sum_squares(Q)
    if hard:
        problem = cp.Problem(cp.Minimize(objective), [distance >= unit / squares])
    else:
        loss: Any = cp.pos(1 - distance)
        loss = cp.sum_squares(loss) if squared else cp.sum(loss)
        problem = cp.Problem(cp.Minimize(objective + C * unit**2 * loss))
    try:
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        status = problem.status
    except cp.error.SolverError as error:
        status = str(error)
    if Q.value is None or not np.isfinite(Q.value).all():
        raise ValueError(
            f"CVXPY found no solution of the semidefinite program ({status}): the class means are "
            "too close to each other, or C too large, for its precision; use solver='exact', which "
            "has the same solution."
        )
    solution: Matrix = np.asarray(Q.value, dtype=np.float64)
    return 0.5 * (solution + solution.T) / unit
