"""MMDA by deflation: section 3.1 of Kocsor, Kovács and Szepesvári, and its Proposition 2.

With orthonormal earlier directions W and V = WᵀΦ, the kernel matrix of the rows without their parts
along W is K − VᵀV. On that matrix any SVM software finds the next direction, which Proposition 1
makes orthogonal to W: here our own, for the squared hinge (``qp.margin_dual``) and for the hinge
loss with a free bias, (1) and (4) (``qp.hinge_dual``), or with b = 0 (``qp.hinge_box``).
"""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.directions.on_rows import Machine, MatrixFinder, OnRows, orthonormal, stacked
from widemargin.directions.rounds import hinge_machine, squared_objectives
from widemargin.loop import Deadline
from widemargin.qp import solve_margin_dual
from widemargin.qp.hinge_box import solve_hinge_box


class Deflation(MatrixFinder):
    """Directions on the deflated kernel matrix; parameters as in `MatrixFinder`."""

    def solve(self, sign: Vector, against: list[OnRows], deadline: Deadline) -> Machine:
        """Return the machine on K − VᵀV."""
        basis = orthonormal(against)
        _, values = stacked(basis, len(sign))
        K = self.K - values @ values.T if basis else self.K
        solve = self._hinge if self.loss == "hinge" else self._squared
        alpha, bias, primal, dual = solve(K, sign, deadline, first=not basis)
        beta = sign * alpha
        # Φβ without its part along the directions; once more for the last digits.
        function = OnRows(beta, self.K @ beta).minus(basis).minus(basis)
        return Machine(function, bias, (primal, dual), self.stop(primal, dual, deadline))

    def _squared(
        self, K: Matrix, sign: Vector, deadline: Deadline, *, first: bool
    ) -> tuple[Vector, float, float, float]:
        """Return α, the bias, and the objectives."""
        ridge, biased = self.problem.ridge(0), self.fit_intercept
        # The solver adds 1 for the bias, so that K − 1 stands for a machine without.
        matrix = K if biased else K - 1.0
        alpha = solve_margin_dual(matrix, sign, ridge, gap=self.tol, deadline=deadline).alpha
        if first and not alpha.any():
            alpha = self.class_means(sign)
        values = K @ (sign * alpha)
        primal, dual, bias = squared_objectives(alpha, sign, values, ridge, bias=biased)
        return alpha, bias, primal, dual

    def _hinge(
        self, K: Matrix, sign: Vector, deadline: Deadline, *, first: bool
    ) -> tuple[Vector, float, float, float]:
        """Return α, the bias, and the objectives."""
        upper = self.problem.C[0] * self.problem.weight
        if self.fit_intercept:
            solved = hinge_machine(K, sign, upper, self.tol, deadline, first=first)
            return solved.alpha, solved.intercept, solved.primal, solved.dual
        none = np.zeros((len(sign), 0))
        ways = {"projection": none, "gram": np.zeros((0, 0))}
        found = solve_hinge_box(K, sign, upper, tol=self.tol, deadline=deadline, **ways)
        return found.alpha, 0.0, found.primal, found.dual
