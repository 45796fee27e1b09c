"""MMDA by deflation: section 3.1 of Kocsor, Kovács and Szepesvári, and its Proposition 2.

With orthonormal earlier directions W and V = WᵀΦ, the kernel matrix of the rows without their parts
along W is K − VᵀV. On that matrix any SVM software finds the next direction, which Proposition 1
makes orthogonal to W: here our own, for the squared hinge (``qp.margin_dual``) and for the hinge
loss with a free bias, (1) and (4) (``qp.hinge_dual``).
"""

from __future__ import annotations

from widemargin.arrays import Matrix, Vector
from widemargin.directions.on_rows import Machine, MatrixFinder, OnRows, orthonormal, stacked
from widemargin.directions.rounds import how_it_ended, squared_objectives
from widemargin.loop import Deadline
from widemargin.qp import solve_hinge_dual, solve_margin_dual


class Deflation(MatrixFinder):
    """Directions on the deflated kernel matrix; parameters as in `MatrixFinder`."""

    def solve(self, sign: Vector, against: list[OnRows], deadline: Deadline) -> Machine:
        """Return the machine on K − VᵀV."""
        basis = orthonormal(against)
        _, values = stacked(basis, len(sign))
        K = self.K - values @ values.T if basis else self.K
        solve = self._hinge if self.loss == "hinge" else self._squared
        alpha, bias, primal, dual, met = solve(K, sign, deadline, not basis)
        beta = sign * alpha
        # Φβ without its part along the directions; once more for the last digits.
        function = OnRows(beta, self.K @ beta).minus(basis).minus(basis)
        stop = how_it_ended(met, deadline, "quadratic program")
        return Machine(function, bias, primal, dual, stop)

    def _squared(
        self, K: Matrix, sign: Vector, deadline: Deadline, first: bool
    ) -> tuple[Vector, float, float, float, bool]:
        ridge = self.problem.ridge(0)
        alpha = solve_margin_dual(K, sign, ridge, gap=self.tol, deadline=deadline).alpha
        if first and not alpha.any():
            alpha = self.class_means(sign)
        primal, dual, bias = squared_objectives(alpha, sign, K @ (sign * alpha), ridge)
        return alpha, bias, primal, dual, primal - dual <= 2 * self.tol * primal

    def _hinge(
        self, K: Matrix, sign: Vector, deadline: Deadline, first: bool
    ) -> tuple[Vector, float, float, float, bool]:
        upper = self.problem.C[0] * self.problem.weight
        tol = max(1e-12, 0.01 * self.tol)
        found = solve_hinge_dual(K, sign, upper, tol=tol, deadline=deadline)
        if first and not found.alpha.any():
            start = self.class_means(sign)
            found = solve_hinge_dual(K, sign, upper, start=start, tol=tol, deadline=deadline)
        met = found.gap <= 2 * max(self.tol, 1e-9)
        return found.alpha, found.intercept, found.primal, found.dual, met
