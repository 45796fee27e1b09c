"""MMDA's direct method: section 3.2 of Kocsor, Kovács and Szepesvári.

The earlier directions W enter the dual as free variables γ beside α, (7) (and (3) of MMDA-CVM):

    min ½ (α, γ)ᵀ G (α, γ) − 1ᵀα,    G = [YKY  YΦᵀW; WᵀΦY  WᵀW],

so that the kernel matrix stays what it is, and w = ΦYα + Wγ. WᵀW and WᵀΦY grow by a row with every
direction, from the values of the earlier directions on the rows. The squared hinge (α ≥ 0, ridge
1/(2Cs) and the bias inside K) is solved by successive over-relaxation, the hinge (yᵀα = 0,
0 ≤ α ≤ Cs) by sequential minimal optimisation, or, with b = 0, by relaxation too. Proposition 3:
the directions are those of ``deflation``.
"""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.directions.on_rows import Machine, MatrixFinder, OnRows, orthonormal, stacked
from widemargin.directions.rounds import hinge_machine, squared_objectives
from widemargin.loop import Deadline
from widemargin.qp import HingeDual
from widemargin.qp.hinge_box import HingeBox, solve_hinge_box
from widemargin.qp.sor import solve_sor


class Direct(MatrixFinder):
    """Directions from α and γ together; parameters as in `MatrixFinder`."""

    def solve(self, sign: Vector, against: list[OnRows], deadline: Deadline) -> Machine:
        """Return the machine on K with the directions beside it."""
        # Of unit length: SOR divides by the diagonal of WᵀW.
        units = [f * (1.0 / np.sqrt(f.norm2)) for f in against if f.norm2 > 0]
        coef, values = stacked(units, len(sign))
        gram = coef.T @ values
        if self.loss == "hinge":
            upper = self.problem.C[0] * self.problem.weight
            ways = {"projection": values, "gram": gram}
            tol, bias = self.tol, 0.0
            solved: HingeDual | HingeBox
            if self.fit_intercept:
                solved = hinge_machine(self.K, sign, upper, tol, deadline, first=not units, **ways)
                bias = solved.intercept
            else:
                solved = solve_hinge_box(self.K, sign, upper, tol=tol, deadline=deadline, **ways)
            alpha, gamma, primal, dual = solved.alpha, solved.gamma, solved.primal, solved.dual
        else:
            alpha, gamma, bias, primal, dual = self._squared(sign, values, gram, deadline)
        beta = sign * alpha
        function = OnRows(beta + coef @ gamma, self.K @ beta + values @ gamma)
        function = function.minus(orthonormal(units))
        return Machine(function, bias, (primal, dual), self.stop(primal, dual, deadline))

    def _squared(
        self, sign: Vector, values: Matrix, gram: Matrix, deadline: Deadline
    ) -> tuple[Vector, Vector, float, float, float]:
        """Return α, γ, the bias, and the objectives."""
        ridge, n, s = self.problem.ridge(0), self.problem.n, len(gram)
        across = sign[:, None] * values
        G = np.block(
            [
                [np.outer(sign, sign) * (self.K + float(self.fit_intercept)), across],
                [across.T, gram],
            ]
        )
        G[np.arange(n), np.arange(n)] += ridge
        linear = np.append(np.ones(n), np.zeros(s))
        lower = np.append(np.zeros(n), np.full(s, -np.inf))
        start, tol = None, 1e-2
        while True:
            solved = solve_sor(G, linear, lower=lower, start=start, tol=tol, deadline=deadline)
            start, alpha = solved.x, solved.x[:n]
            if not s and not alpha.any():
                alpha = self.class_means(sign)
            # γ = −(WᵀW)⁻¹ WᵀΦβ, its optimum for this α, makes w orthogonal to all digits; of
            # dependent directions the shortest.
            best = np.linalg.lstsq(gram, values.T @ (sign * alpha), rcond=None)[0]
            gamma = -np.asarray(best, dtype=np.float64)
            w = self.K @ (sign * alpha) + values @ gamma
            known = squared_objectives(alpha, sign, w, ridge, bias=self.fit_intercept)
            primal, dual, bias = known
            met = primal - dual <= self.tol * primal
            if met or tol < 1e-13 or solved.residual > tol or deadline.passed:
                return alpha, gamma, bias, primal, dual
            tol *= 0.1
