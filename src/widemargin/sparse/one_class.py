"""The marginal function of a one-class machine.

SLMC names the one-class SVM (section 4.4) as another machine that can be made sparse. With squared
slacks, which make W smooth, and weights s of sum S,

    W(Z)  =  min over w in the span and ρ of  ½‖w‖² − ρ + 1/(2νS) Σ_i s_i max(0, ρ − wᵀφ(x_i))²,

w = Σ β_u φ(z_u). A row x with wᵀφ(x) < ρ lies outside; a smaller ν lets fewer rows be there. The
dual, for the kernel (40), is

    max over α ≥ 0, Σα = 1 of  −½ ‖Σ α_i φ_z(x_i)‖² − (νS/2) Σ α_i² / s_i,

attained by α_i = s_i max(0, ρ − wᵀφ(x_i)) / (νS): W is minus half the squared distance of the
origin from the (softened) hull of the rows. The gradient has r = α. `intercept` is −ρ, so that rows
with a negative Σ β_u k(z_u, x) + intercept are outside.

How: Newton's method of `newton`, in v and ρ together.
"""

from __future__ import annotations

import numpy as np

from widemargin.kernels import Kernel
from widemargin.rows.base import Rows
from widemargin.sparse.marginal import Marginal, Matrix, Span, Vector, started
from widemargin.sparse.newton import Piecewise, best_start, newton


class OneClass:
    """W(Z) and ∇W(Z) of a one-class machine with squared slacks.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        A kernel with a gradient.
    weight : ndarray of shape (n,)
        s, with a positive sum.
    nu : float
        ν, positive.
    threads : int, default=1
        Threads; BLAS is expected to use one.

    Raises
    ------
    ValueError
        If ν or the sum of the weights is not positive.
    """

    def __init__(
        self, rows: Rows, kernel: Kernel, weight: Vector, nu: float, threads: int = 1
    ) -> None:
        self.span = Span(rows, kernel)
        self.weight = np.asarray(weight, dtype=np.float64)
        self.nu = float(nu)
        self.threads = threads
        if not self.nu > 0:
            raise ValueError(f"nu={nu!r} must be positive.")
        if not self.weight.sum() > 0:
            raise ValueError("weight has no positive entry; give at least one row some weight.")

    @property
    def n_kernel(self) -> int:
        """Kernel values computed until now."""
        return self.span.n_kernel

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z."""
        t, total = len(Z), float(self.weight.sum())
        space = self.span.whitened(Z, more=1)
        # The last coordinate is ρ, and scores are wᵀφ − ρ.
        G = space.features
        G[:, t] = -1.0
        last = np.zeros(t + 1)
        last[t] = 1.0
        n = len(G)
        stiff = self.weight / (self.nu * total)
        problem = Piecewise(
            G, np.ones(n), stiff, np.zeros(n), np.full(n, np.inf), 1.0 - last, last, 0.0
        )
        guess = started(start, t, 1)
        # The best machine with w = 0 has ρ = ν, and every row inside the loss.
        u, scores = self.nu * last, np.full(n, -self.nu)
        if guess is not None:
            near = np.append(space.factor.T @ guess[0][:, 0], -guess[1][0])
            u, scores = best_start(problem, u, scores, near, G @ near)
        u, scores = newton(problem, u, scores, self.threads)
        alpha = problem.alpha(scores)
        beta = (space.root @ u[:t])[:, None]
        return Marginal(
            value=problem.value(u, scores),
            gradient=self.span.gradient(Z, beta, alpha[:, None]),
            beta=beta,
            intercept=np.array([-u[t]]),
            dual=self._dual(G[:, :t], alpha, total),
        )

    def _dual(self, F: Matrix, alpha: Vector, total: float) -> float:
        """Return the bound of the α that `alpha` is a multiple of."""
        some = np.flatnonzero(alpha)
        if not len(some):
            return -np.inf
        alpha = alpha[some] / alpha.sum()
        w = alpha @ F[some]
        ridge = self.nu * total * float(alpha @ (alpha / self.weight[some]))
        return -0.5 * (float(w @ w) + ridge)
