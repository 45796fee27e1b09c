"""MMDA by deflation: section 3.1 of Kocsor, Kovács and Szepesvári, and its Proposition 2.

With orthonormal earlier directions W and V = WᵀΦ, the kernel matrix of the rows without their parts
along W is K − VᵀV. On that matrix any SVM software finds the next direction, which Proposition 1
makes orthogonal to W: here our own for the squared hinge, and scikit-learn's `SVC` for the hinge
loss with a free bias, (1) and (4). `SVC` keeps kernel values in float32, so its answer is refined.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.discriminant.directions import Direction, squared_objectives
from widemargin.discriminant.kernel_matrix import (
    Machine,
    MatrixFinder,
    OnRows,
    orthonormal,
    stacked,
)
from widemargin.qp import solve_margin_dual
from widemargin.qp.hinge import polished

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Stopping rule of `SVC`, and its steps at the most: below the rounding of float32 kernel values it
# need not end, and what is missing is refined.
_ROUGH, _MOST_STEPS = 1e-4, 1_000_000


class Deflation(MatrixFinder):
    """Directions on the deflated kernel matrix; parameters as in `MatrixFinder`."""

    def find(
        self, problems: Sequence[int], earlier: list[list[OnRows]], deadline: Deadline
    ) -> list[Direction[OnRows]]:
        """Return the best direction of each problem."""
        with rough_is_enough():
            return super().find(problems, earlier, deadline)

    def solve(self, sign: Vector, against: list[OnRows]) -> Machine:
        """Return the machine on K − VᵀV."""
        basis = orthonormal(against)
        _, values = stacked(basis, len(sign))
        K = self.K - values @ values.T if basis else self.K
        alpha, bias, primal, dual, converged = (
            self._hinge(K, sign) if self.loss == "hinge" else self._squared(K, sign)
        )
        beta = sign * alpha
        # Φβ without its part along the directions; once more for the last digits.
        function = OnRows(beta, self.K @ beta).minus(basis).minus(basis)
        return Machine(function, bias, primal, dual, converged)

    def _squared(self, K: Matrix, sign: Vector) -> tuple[Vector, float, float, float, bool]:
        ridge = self.points.ridge
        alpha = solve_margin_dual(K, sign, ridge, gap=self.tol).alpha
        primal, dual, bias = squared_objectives(alpha, sign, K @ (sign * alpha), ridge)
        return alpha, bias, primal, dual, primal - dual <= 2 * self.tol * primal

    def _hinge(self, K: Matrix, sign: Vector) -> tuple[Vector, float, float, float, bool]:
        points = self.points
        alpha = rough_alpha("precomputed", K, sign, points)
        exact = polished(K, sign, points.C * points.weight, alpha)
        converged = exact.gap <= 2 * max(self.tol, 1e-9)
        return exact.alpha, exact.intercept, exact.primal, exact.dual, converged


@contextmanager
def rough_is_enough() -> Iterator[None]:
    """Let `SVC` stop without a warning, for its answer is refined.

    Filters of warnings belong to all threads, so they must be set before threads begin.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def rough_alpha(kernel: str, X: Matrix, sign: Vector, points: Points) -> Vector:
    """Return the dual variables that scikit-learn's `SVC` finds, to a few digits.

    Parameters
    ----------
    kernel : {"precomputed", "linear"}
        What `X` is: kernel values, or rows.
    X : ndarray of shape (n, n) or (n, d)
        As `SVC` takes it.
    sign : ndarray of shape (n,)
        Labels ±1.
    points : Points
        C and weights of the rows.
    """
    machine = SVC(kernel=kernel, C=points.C, tol=_ROUGH, max_iter=_MOST_STEPS)
    machine.fit(X, sign, sample_weight=points.weight)
    alpha = np.zeros(len(sign))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return alpha
