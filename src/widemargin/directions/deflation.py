"""MMDA by deflation: section 3.1 of Kocsor, Kovács and Szepesvári, and its Proposition 2.

With orthonormal earlier directions W and V = WᵀΦ, the kernel matrix of the rows without their parts
along W is K − VᵀV. On that matrix any SVM software finds the next direction, which Proposition 1
makes orthogonal to W: here our own, for the squared hinge (``qp.margin_dual``) and for the hinge
loss with a free bias, (1) and (4) (``qp.hinge_dual``).
"""

from __future__ import annotations

from widemargin.arrays import Vector
from widemargin.directions.on_rows import Machine, MatrixFinder, OnRows, orthonormal, stacked
from widemargin.directions.rounds import hinge_machine, squared_objectives
from widemargin.loop import Deadline
from widemargin.qp import solve_margin_dual


class Deflation(MatrixFinder):
    """Directions on the deflated kernel matrix; parameters as in `MatrixFinder`."""

    def solve(self, sign: Vector, against: list[OnRows], deadline: Deadline) -> Machine:
        """Return the machine on K − VᵀV."""
        basis = orthonormal(against)
        _, values = stacked(basis, len(sign))
        K = self.K - values @ values.T if basis else self.K
        if self.loss == "hinge":
            upper = self.problem.C[0] * self.problem.weight
            solved = hinge_machine(K, sign, upper, self.tol, deadline, first=not basis)
            alpha, bias, primal, dual = solved.alpha, solved.intercept, solved.primal, solved.dual
        else:
            ridge = self.problem.ridge(0)
            alpha = solve_margin_dual(K, sign, ridge, gap=self.tol, deadline=deadline).alpha
            if not basis and not alpha.any():
                alpha = self.class_means(sign)
            primal, dual, bias = squared_objectives(alpha, sign, K @ (sign * alpha), ridge)
        beta = sign * alpha
        # Φβ without its part along the directions; once more for the last digits.
        function = OnRows(beta, self.K @ beta).minus(basis).minus(basis)
        return Machine(function, bias, (primal, dual), self.stop(primal, dual, deadline))
