"""MMDA's direct method: section 3.2 of Kocsor, Kovács and Szepesvári.

The earlier directions W enter the dual as free variables γ beside α, (7) (and (3) of MMDA-CVM):

    min ½ (α, γ)ᵀ G (α, γ) − 1ᵀα,    G = [YKY  YΦᵀW; WᵀΦY  WᵀW],

so that the kernel matrix stays what it is, and w = ΦYα + Wγ. WᵀW and WᵀΦY grow by a row with every
direction, from the values of the earlier directions on the rows. The squared hinge (α ≥ 0, ridge
1/(2Cs) and the bias inside K) is solved by successive over-relaxation, the hinge (yᵀα = 0,
0 ≤ α ≤ Cs) by sequential minimal optimisation. Proposition 3: the directions are those of
``deflation``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.directions.on_rows import Machine, MatrixFinder, OnRows, orthonormal, stacked
from widemargin.directions.rounds import how_it_ended, squared_objectives
from widemargin.loop import Deadline
from widemargin.qp.hinge_dual import solve_hinge_dual
from widemargin.qp.sor import solve_sor


class Direct(MatrixFinder):
    """Directions from α and γ together; parameters as in `MatrixFinder`."""

    def solve(self, sign: Vector, against: list[OnRows], deadline: Deadline) -> Machine:
        """Return the machine on K with the directions beside it."""
        # Of unit length: SOR divides by the diagonal of WᵀW.
        units = [f.times(1.0 / np.sqrt(f.norm2)) for f in against if f.norm2 > 0]
        coef, values = stacked(units, len(sign))
        solve = self._hinge if self.loss == "hinge" else self._squared
        alpha, gamma, bias, primal, dual, met = solve(sign, values, coef.T @ values, deadline)
        beta = sign * alpha
        function = OnRows(beta + coef @ gamma, self.K @ beta + values @ gamma)
        function = function.minus(orthonormal(units))
        stop = how_it_ended(met, deadline, "quadratic program")
        return Machine(function, bias, primal, dual, stop)

    def _squared(
        self, sign: Vector, values: Matrix, gram: Matrix, deadline: Deadline
    ) -> tuple[Vector, Vector, float, float, float, bool]:
        ridge, n, s = self.problem.ridge(0), self.problem.n, len(gram)
        G = np.empty((n + s, n + s))
        G[:n, :n] = np.outer(sign, sign) * (self.K + 1.0)
        G[np.arange(n), np.arange(n)] += ridge
        G[:n, n:] = sign[:, None] * values
        G[n:, :n] = G[:n, n:].T
        G[n:, n:] = gram
        linear = np.concatenate([np.ones(n), np.zeros(s)])
        lower = np.concatenate([np.zeros(n), np.full(s, -np.inf)])
        start, tol = None, 1e-2
        while True:
            solved = solve_sor(G, linear, lower=lower, start=start, tol=tol, deadline=deadline)
            start, alpha = solved.x, solved.x[:n]
            if not s and not alpha.any():
                alpha = self.class_means(sign)
            # γ at its optimum for this α makes w orthogonal to all digits.
            gamma = _multipliers(gram, values.T @ (sign * alpha))
            w = self.K @ (sign * alpha) + values @ gamma
            primal, dual, bias = squared_objectives(alpha, sign, w, ridge)
            met = primal - dual <= self.tol * primal
            if met or tol < 1e-13 or solved.residual > tol or deadline.passed:
                return alpha, gamma, bias, primal, dual, bool(met)
            tol *= 0.1

    def _hinge(
        self, sign: Vector, values: Matrix, gram: Matrix, deadline: Deadline
    ) -> tuple[Vector, Vector, float, float, float, bool]:
        upper = self.problem.C[0] * self.problem.weight
        tol = max(1e-12, 0.01 * self.tol)
        shared: dict[str, Any] = {
            "projection": values,
            "gram": gram,
            "tol": tol,
            "deadline": deadline,
        }
        solved = solve_hinge_dual(self.K, sign, upper, **shared)
        if not len(gram) and not solved.alpha.any():
            start = self.class_means(sign)
            solved = solve_hinge_dual(self.K, sign, upper, start=start, **shared)
        return (
            solved.alpha,
            solved.gamma,
            solved.intercept,
            solved.primal,
            solved.dual,
            solved.gap <= 2 * max(self.tol, 1e-9),
        )


def _multipliers(gram: Matrix, product: Vector) -> Vector:
    """Return γ = −(WᵀW)⁻¹ WᵀΦβ; of dependent directions the shortest."""
    gamma = np.linalg.lstsq(gram, product, rcond=None)[0]
    return -np.asarray(gamma, dtype=np.float64)
