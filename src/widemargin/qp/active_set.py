"""An exact active-set method for non-negative quadratic programs.

    min ½ xᵀQx − aᵀx,   0 ≤ x ≤ u (u may be infinite),   Q positive definite.

Block principal pivoting (Júdice and Pires 1994): guess the variables between their bounds, solve
for them by Cholesky, exchange *all* that violate the KKT conditions (a variable outside its bounds,
or one at a bound whose residual points inside), and repeat. When the number of violations has not
fallen for a few rounds only the last one is exchanged (Murty's rule), which cannot cycle, until it
falls again. A good start is worth a lot: with the support of a nearby problem a handful of rounds
is enough, and the answer is exact to rounding, however small the regularisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin.arrays import Vector
from widemargin.loop import Deadline

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
    upper: Vector | None = None,
    start: NDArray[Any] | None = None,
    tol: float = 1e-10,
    max_rounds: int | None = None,
    deadline: Deadline | None = None,
) -> ActiveSetResult:
    """Minimise ½ xᵀQx − aᵀx over 0 ≤ x ≤ u, exactly.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Symmetric positive definite.
    a : ndarray of shape (n,), default=None
        The linear term; None means all ones.
    upper : ndarray of shape (n,), default=None
        u, positive; None means that there is no upper bound.
    start : ndarray of shape (n,), default=None
        Its positive entries are the first guess of the support, and entries of at least u of the
        variables at their upper bound. None guesses that all are between their bounds.
    tol : float, default=1e-10
        Stop when the KKT residual is at most this.
    max_rounds : int, default=None
        Factorisations at the most; None allows 100 and three a variable.
    deadline : Deadline, default=None
        When to leave it at the rounds that are done.

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
    top = np.full(n, np.inf) if upper is None else np.asarray(upper, dtype=np.float64)
    guess = np.full(n, 0.5) * np.minimum(top, 1.0) if start is None else np.asarray(start)
    # Where each variable is guessed to be: 0 at zero, 1 between its bounds, 2 at the upper one.
    where = (guess > 0).astype(np.int8) + (guess >= top)
    limit = 100 + 3 * n if max_rounds is None else max_rounds
    fewest, patience = n + 1, _PATIENCE
    n_rounds = 0
    while n_rounds < limit:
        n_rounds += 1
        x, residual = _solve_on(Q, a, where, top)
        low, high = (where == 1) & (x < 0), (where == 1) & (x > top)
        inward = np.where(where == 2, -residual, residual)
        wrong = low | high | ((where != 1) & (inward > tol))
        n_wrong = int(wrong.sum())
        if n_wrong == 0 or (deadline is not None and deadline.passed):
            break
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            last = np.flatnonzero(wrong)[-1]
            wrong[:] = False
            wrong[last] = True
        where = np.where(wrong, np.where(low, 0, np.where(high, 2, 1)), where).astype(np.int8)
    x = np.clip(x, 0.0, top)
    residual = a - Q @ x
    violation = np.where(x < top, np.maximum(residual, 0.0), 0.0)
    violation = np.maximum(violation, np.where(x > 0, -residual, 0.0))
    return ActiveSetResult(x, float(violation.max(initial=0.0)), n_rounds)


def _solve_on(
    Q: NDArray[Any], a: Vector, where: NDArray[np.int8], top: Vector
) -> tuple[Vector, Vector]:
    """Return the optimum over the variables between bounds, without these, and a − Qx."""
    x = np.where(where == 2, np.where(np.isfinite(top), top, 0.0), 0.0)
    index, full = np.flatnonzero(where == 1), np.flatnonzero(where == 2)
    rest = a - Q[:, full] @ x[full] if len(full) else a
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
        x[index] = cho_solve(factor, rest[index], check_finite=False)
    return x, rest - Q[:, index] @ x[index]
