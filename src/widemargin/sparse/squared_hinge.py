"""The marginal function of the L2-SVM: squared hinge, regularised bias.

SLMC (28) with the loss of the rest of this library, for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + ½b² + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b))².

Its dual is that of (37) without the upper bound and with δ_ij/(2C s_i) added to the kernel (40):

    max over α ≥ 0 of  Σ α − ½ ‖Σ_i α_i y_i (φ_z(x_i), 1)‖² − Σ α_i² / (4 C s_i),

attained by α_i = 2 C s_i ξ_i, which is what the gradient needs: r_i = y_i α_i.

How: Newton's method of `newton` on the whitened features, all problems together. From the solution
at vectors nearby it takes a few steps to the exact optimum. A gradient of W is only as good as the
square root of the gap: hence no early stop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels import Kernel
from widemargin.rows.base import Rows
from widemargin.sparse.marginal import Marginal, Matrix, Span, Vector, started
from widemargin.sparse.newton import (
    Piecewise,
    at_a_time,
    best_start,
    newton_together,
    products,
    sums,
)


class SquaredHinge:
    """W(Z) and ∇W(Z) of the L2-SVM for several columns of labels.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        A kernel with a gradient.
    code : ndarray of int of shape (n,)
        The class of each row.
    table : ndarray of shape (n_classes, n_problems)
        ±1: the label of a class in each problem.
    weight : ndarray of shape (n,)
        s.
    C : float
        C.
    threads : int, default=1
        Threads; BLAS is expected to use one.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        code: NDArray[np.intp],
        table: Matrix,
        weight: Vector,
        C: float,
        threads: int = 1,
    ) -> None:
        self.span = Span(rows, kernel)
        self.code = code
        self.table = np.asarray(table, dtype=np.float64)
        self.weight = np.asarray(weight, dtype=np.float64)
        self.C = float(C)
        self.threads = threads

    @property
    def n_kernel(self) -> int:
        """Kernel values computed until now."""
        return self.span.n_kernel

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z."""
        t, n_problems = len(Z), self.table.shape[1]
        space = self.span.whitened(Z, more=1)
        space.features[:, t] = 1.0
        near: Matrix | None = None
        guess = started(start, t, n_problems)
        if guess is not None:
            near = np.column_stack([guess[0].T @ space.factor, guess[1]])
        most = at_a_time(*space.features.shape)
        groups = [slice(first, first + most) for first in range(0, n_problems, most)]
        solved = [
            self._solve(space.features, self.table[:, some], None if near is None else near[some])
            for some in groups
        ]
        v, pull = (np.concatenate([each[k] for each in solved]) for k in (0, 1))
        beta = space.root @ v[:, :t].T
        gradient = self.span.gradient(Z, beta, pull.T, space=space)
        value, dual = (float(sum(each[k] for each in solved)) for k in (2, 3))
        return Marginal(value, gradient, beta, v[:, t], dual)

    def _solve(
        self, G: Matrix, table: Matrix, near: Matrix | None
    ) -> tuple[Matrix, Matrix, float, float]:
        """Return v with the bias behind it, yα, and the sums of primals and duals."""
        n, size = G.shape
        signs = np.ascontiguousarray(table[self.code].T)
        stiff, none, no_cap = 2.0 * self.C * self.weight, np.zeros(n), np.full(n, np.inf)
        ones, zero = np.ones(size), np.zeros(size)
        problems = [Piecewise(G, sign, stiff, none, no_cap, ones, zero, 1.0) for sign in signs]
        starts = [(zero, none)] * len(problems)
        if near is not None:
            scores = products(G, near, self.threads)
            points = zip(problems, near, scores, strict=True)
            starts = [best_start(each, zero, none, *point) for each, *point in points]
        solved = newton_together(problems, starts, self.threads)
        found = list(zip(problems, solved, strict=True))
        alpha = np.stack([each.alpha(scores) for each, (_, scores) in found])
        pull = signs * alpha
        w = sums(G, pull, self.threads)
        primal = dual = 0.0
        for p, (each, (x, scores)) in enumerate(found):
            primal += each.value(x, scores)
            # Every multiple of α is feasible, and the best is the top of a parabola.
            square = float(w[p] @ w[p]) + float(alpha[p] @ np.maximum(0.0, 1.0 - signs[p] * scores))
            dual += 0.5 * float(alpha[p].sum()) ** 2 / square if square > 0 else 0.0
        return np.stack([x for x, _ in solved]), pull, primal, dual
