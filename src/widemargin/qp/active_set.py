"""An exact active-set method for non-negative quadratic programs.

    min ½ xᵀQx − aᵀx,   x ≥ 0,   Q positive definite.

Block principal pivoting (Júdice and Pires 1994): guess the positive variables, solve for them by
Cholesky, exchange *all* that violate the KKT conditions (a negative variable, or a zero variable
whose residual is positive), and repeat. When the number of violations has not fallen for a few
rounds only the last one is exchanged (Murty's rule), which cannot cycle, until it falls again.
A good start is worth a lot: with the support of a nearby problem a handful of rounds is enough,
and the answer is exact to rounding, however small the regularisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Vector = NDArray[np.float64]

# Rounds in which the number of violations may fail to fall before single exchanges begin.
_PATIENCE = 3


@dataclass(frozen=True)
class ActiveSetResult:
    """The solution, its KKT residual, and the number of factorisations.

    Attributes
    ----------
    x : ndarray
        Never negative.
    residual : float
        Largest violation of the KKT conditions.
    n_rounds : int
        Cholesky factorisations.
    """

    x: Vector
    residual: float
    n_rounds: int


def solve_nonnegative(
    Q: NDArray[Any],
    a: Vector | None = None,
    *,
    start: NDArray[Any] | None = None,
    tol: float = 1e-10,
    max_rounds: int | None = None,
) -> ActiveSetResult:
    """Minimise ½ xᵀQx − aᵀx over x ≥ 0, exactly.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Symmetric positive definite.
    a : ndarray of shape (n,), default=None
        The linear term; None means all ones.
    start : ndarray of shape (n,), default=None
        Its positive entries are the first guess of the support. None guesses that all are.
    tol : float, default=1e-10
        Stop when the KKT residual is at most this.
    max_rounds : int, default=None
        Factorisations at the most; None allows 100 and three a variable.

    Returns
    -------
    ActiveSetResult
        The point, its KKT residual and the number of rounds.

    Raises
    ------
    ValueError
        If Q is not positive definite on a support that is tried.

    Examples
    --------
    >>> import numpy as np
    >>> result = solve_nonnegative(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0]))
    >>> result.x.round(6).tolist()
    [0.5, 0.0]
    """
    n = len(Q)
    a = np.ones(n) if a is None else np.asarray(a, dtype=np.float64)
    free = np.ones(n, dtype=bool) if start is None else np.asarray(start) > 0
    limit = 100 + 3 * n if max_rounds is None else max_rounds
    fewest, patience = n + 1, _PATIENCE
    n_rounds = 0
    while n_rounds < limit:
        n_rounds += 1
        x, residual = _solve_on(Q, a, free)
        wrong = np.where(free, x < 0, residual > tol)
        n_wrong = int(wrong.sum())
        if n_wrong == 0:
            break
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            last = np.flatnonzero(wrong)[-1]
            wrong[:] = False
            wrong[last] = True
        free ^= wrong
    x = np.maximum(x, 0.0)
    residual = a - Q @ x
    violation = np.where(x > 0, np.abs(residual), np.maximum(residual, 0.0))
    return ActiveSetResult(x, float(violation.max(initial=0.0)), n_rounds)


def _solve_on(Q: NDArray[Any], a: Vector, free: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """Return the unconstrained optimum on the free variables, and a − Qx."""
    x = np.zeros(len(Q))
    index = np.flatnonzero(free)
    if len(index):
        try:
            factor = cho_factor(
                Q[np.ix_(index, index)], lower=True, overwrite_a=True, check_finite=False
            )
        except LinAlgError:
            raise ValueError(
                "the kernel matrix with its regularisation is not positive definite: the kernel is "
                "not a Mercer kernel on this data, or C is too large for its precision; use "
                "another kernel (parameters) or a smaller C."
            ) from None
        x[index] = cho_solve(factor, a[index], check_finite=False)
    return x, a - Q[:, index] @ x[index]
