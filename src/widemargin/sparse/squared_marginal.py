"""The marginal function of squared losses: of the L2-SVM, and of regression.

SLMC (28) with the losses of the rest of this library, for several problems at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + ½b² + C Σ_i s_i r_ip²,

r being how far the score ψ_z(x_i)ᵀβ + b of a row is from where it costs nothing: from 1 or beyond
for the label +1, −1 or beyond for −1, and from within ε of its target in regression, which the
paper names as future work. Its dual has no upper bounds, and δ_ij/(2C s_i) added to the kernel
(40); with α signed by the side that a row is on, and t the label or the target,

    max  Σ (α t − ε |α|) − ½ ‖Σ_i α_i (φ_z(x_i), 1)‖² − Σ α_i² / (4 C s_i),

attained by α_i = 2 C s_i r_i, which is what the gradient needs. Machines without a bias have no 1
behind their features, and no b.

How: Newton's method (``qp.newton``) on the whitened features, all problems together. From the
solution at vectors nearby it takes a few steps to the exact optimum, and a single one for the
squared error. A gradient of W is only as good as the square root of the gap: hence no early stop.
"""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.qp.newton import Features, Newton, Piecewise, best_start
from widemargin.sparse.marginal import Marginal, VectorSpan


class Squared(VectorSpan):
    """W(Z) and ∇W(Z) of squared losses for several problems.

    Parameters
    ----------
    problem : Problem
        Rows with labels or targets and weights, and a kernel with a gradient.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    """

    def __init__(self, problem: Problem, deadline: Deadline | None = None) -> None:
        super().__init__(problem.rows, problem.kernel)
        self.problem = problem
        self.deadline = deadline

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z."""
        t, biased = len(Z), bool(self.problem.bias)
        space = self.whitened(Z, with_one=biased)
        near: Matrix | None = None
        if start is not None:
            near = start.beta.T @ space.factor
            near = np.column_stack([near, start.intercept]) if biased else near
        v, pull, value, dual = solve_squared(self.problem, space.features, near, self.deadline)
        beta = space.root @ v[:, :t].T
        intercept = v[:, t] if biased else np.zeros(len(v))
        gradient = self.gradient(Z, beta, pull.T, space=space)
        return Marginal(value, gradient, beta, intercept, dual)

    def losses(self, scores: Matrix) -> Vector:
        """Return how far rows are from where they cost nothing, by their weight."""
        return suffered(self.problem, scores)


def suffered(problem: Problem, scores: Matrix) -> Vector:
    """Return how far scores of rows are from where they cost nothing, by the rows' weight."""
    beyond = np.maximum(0.0, problem.lacking(scores)).sum(axis=1)
    found: Vector = problem.weight * beyond
    return found


def solve_squared(
    problem: Problem,
    features: Features,
    near: Matrix | None = None,
    deadline: Deadline | None = None,
    *,
    most_numbers: int = 8_000_000,
) -> tuple[Matrix, Matrix, float, float]:
    """Solve all problems on features whose last column is 1 where there is a bias.

    Parameters
    ----------
    problem : Problem
        Labels or targets, weights and C.
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
        Solutions with the bias behind them, and α signed.
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
        stated = _stated(problem, range(group.start, group.stop), size)
        starts = [(zero, none)] * len(stated)
        if near is not None:
            guesses = zip(stated, near[group], features.products(near[group]), strict=True)
            starts = [best_start(each, zero, none, *guess) for each, *guess in guesses]
        points = Newton(features, stated, starts).run(deadline)
        found = list(zip(stated, points, strict=True))
        v[group] = [point.x for point in points]
        pull[group] = [each.pull(point.scores) for each, point in found]
        sums = features.sums(pull[group])
        primal += sum(point.value for point in points)
        for (each, point), w in zip(found, sums, strict=True):
            dual += each.squared_bound(point.scores, w)
    return v, pull, primal, dual


def _stated(problem: Problem, chosen: range, size: int) -> list[Piecewise]:
    """Return some of the problems, as Newton's method wants them."""
    targets, weight = problem.regression, problem.weight
    if targets is None:
        prices = [(p, problem.C[p] * weight) for p in chosen]
        return [Piecewise.squared_hinge(problem.sign(p), price, size) for p, price in prices]
    # Problems of one C share their weights, and with them second derivatives.
    stiff = {C: 2.0 * C * weight for C in {float(problem.C[p]) for p in chosen}}
    stated = []
    for p in chosen:
        target, epsilon = targets.of(np.array([p]))[:, 0], float(targets.epsilon[p])
        width = np.full(problem.n, epsilon) if epsilon > 0.0 else None
        stated.append(Piecewise.squared(target, stiff[float(problem.C[p])], size, width))
    return stated
