"""The marginal function of the L2-SVM: squared hinge, regularised bias.

SLMC (28) with the loss of the rest of this library, for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + ½b² + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b))².

Its dual is that of (37) without the upper bound and with δ_ij/(2C s_i) added to the kernel (40):

    max over α ≥ 0 of  Σ α − ½ ‖Σ_i α_i y_i (φ_z(x_i), 1)‖² − Σ α_i² / (4 C s_i),

attained by α_i = 2 C s_i ξ_i, which is what the gradient needs: r_i = y_i α_i.

How: Newton's method (``qp.newton``) on the whitened features, all problems together. From the
solution at vectors nearby it takes a few steps to the exact optimum. A gradient of W is only as
good as the square root of the gap: hence no early stop.
"""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Matrix
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.qp.newton import Features, Newton, Piecewise, best_start
from widemargin.sparse.marginal import Marginal, VectorSpan


class SquaredHinge(VectorSpan):
    """W(Z) and ∇W(Z) of the L2-SVM for several problems.

    Parameters
    ----------
    problem : Problem
        Rows with labels and weights, and a kernel with a gradient.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    """

    def __init__(self, problem: Problem, deadline: Deadline | None = None) -> None:
        super().__init__(problem.rows, problem.kernel)
        self.problem = problem
        self.deadline = deadline

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z."""
        space = self.whitened(Z, with_one=True)
        near: Matrix | None = None
        if start is not None:
            near = np.column_stack([start.beta.T @ space.factor, start.intercept])
        v, pull, value, dual = solve_squared_hinge(
            self.problem, space.features, near, self.deadline
        )
        beta = space.root @ v[:, :-1].T
        gradient = self.gradient(Z, beta, pull.T, space=space)
        return Marginal(value, gradient, beta, v[:, -1], dual)


def solve_squared_hinge(
    problem: Problem,
    features: Features,
    near: Matrix | None = None,
    deadline: Deadline | None = None,
    *,
    most_numbers: int = 8_000_000,
) -> tuple[Matrix, Matrix, float, float]:
    """Solve all problems on features whose last column is 1.

    Parameters
    ----------
    problem : Problem
        Labels, weights and C.
    features : Features
        Rows as features; the regulariser is ½‖v‖², the bias included.
    near : ndarray of shape (n_problems, size), default=None
        Solutions of problems nearby.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    most_numbers : int, optional
        Numbers in the matrices and scores of problems that are solved together.

    Returns
    -------
    v, pull : ndarray of shape (n_problems, size) and (n_problems, n)
        Solutions with the bias behind them, and yα.
    primal, dual : float
        Sums over the problems.
    """
    n, size = features.shape
    most = max(1, most_numbers // (size * size + n))
    v, pull = np.empty((problem.n_problems, size)), np.empty((problem.n_problems, n))
    none, zero = np.zeros(n), np.zeros(size)
    primal = dual = 0.0
    for first in range(0, problem.n_problems, most):
        group = slice(first, min(problem.n_problems, first + most))
        stated = [
            Piecewise.squared_hinge(problem.sign(p), problem.C[p] * problem.weight, size)
            for p in range(group.start, group.stop)
        ]
        starts = [(zero, none)] * len(stated)
        if near is not None:
            guesses = zip(stated, near[group], features.products(near[group]), strict=True)
            starts = [best_start(each, zero, none, *guess) for each, *guess in guesses]
        points = Newton(features, stated, starts).run(deadline)
        found = list(zip(stated, points, strict=True))
        v[group] = [point.x for point in points]
        pull[group] = [each.sign * each.alpha(point.scores) for each, point in found]
        sums = features.sums(pull[group])
        primal += sum(point.value for point in points)
        for (each, point), w in zip(found, sums, strict=True):
            dual += each.squared_hinge_bound(point.scores, w)
    return v, pull, primal, dual
