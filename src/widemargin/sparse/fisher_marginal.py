"""The marginal function of the kernel Fisher discriminant (SKFD).

SLMC, appendix A. With ψ = ψ_z(x), class means m₊ and m₋ and d = m₊ − m₋, all of them weighted,

    A = d dᵀ,     B = (1/Σs) Σ_i s_i (ψ_i − m_y(i))(ψ_i − m_y(i))ᵀ + μ K_z,

the best direction in the span has (57)–(62)

    W(Z)  =  − max over β of βᵀAβ with βᵀBβ = 1  =  − λ,     λ = dᵀB⁻¹d,     β = B⁻¹d / √λ:

A has rank one, so that the largest eigenvalue of B⁻¹A needs one linear system. The derivative (63),

    ∂W  =  − βᵀ(∂A)β + λ βᵀ(∂B)β,

has the form that all marginal functions share. With the scores f = Kβ, their class means f̄, and
dᵀβ = √λ,

    r_i  =  2√λ y_i s_i / S_y(i)  −  (2λ / Σs) s_i (f_i − f̄_y(i)),     q = 2λμ,

S being the weight of a class. The means in B add nothing, for Σ s (f − f̄) = 0 in each class.

W has no bias. `intercept` is the one in the middle between the classes, −(f̄₊ + f̄₋)/2; the appendix
recomputes β and the bias by the SVM in the span.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from widemargin.arrays import Matrix, Vector
from widemargin.kernels import Kernel
from widemargin.rows import Rows
from widemargin.sparse.marginal import Marginal, VectorSpan


class Fisher(VectorSpan):
    """W(Z) and ∇W(Z) of the kernel Fisher discriminant for two classes.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        A kernel with a gradient.
    sign : ndarray of shape (n,)
        ±1, both with positive weight.
    weight : ndarray of shape (n,)
        s.
    mu : float
        μ, positive.
    """

    def __init__(self, rows: Rows, kernel: Kernel, sign: Vector, weight: Vector, mu: float) -> None:
        super().__init__(rows, kernel)
        self.sign, self.weight, self.mu = sign, weight, mu
        # Columns + and −: what a row counts in the mean of its class.
        share = weight[:, None] * (sign[:, None] == np.array([1.0, -1.0]))
        self.share = share / share.sum(axis=0)

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z. There is nothing to start from: the solution is direct."""
        space = self.whitened(Z)
        features, t = space.features, len(Z)
        weight = self.weight / self.weight.sum()
        means = features.sums(np.ascontiguousarray(self.share.T))
        side = (self.sign < 0).astype(np.intp)
        B = self.mu * np.eye(t)

        def scatter(where: slice) -> Matrix:
            apart = features.block(where) - means[side[where]]
            return features.curved(apart, weight[where])

        for part in features.scan(scatter):
            B += part
        d = means[0] - means[1]
        v = cho_solve(cho_factor(B, lower=True), d)
        ratio = float(d @ v)
        if not ratio > 0:
            # The classes have the same mean in this span: no direction is better than another.
            zero = np.zeros((t, 1))
            return Marginal(0.0, np.zeros_like(Z), zero, np.zeros(1), 0.0)
        v /= np.sqrt(ratio)
        scores, middle = features.products(v[None])[0], means @ v
        pull = 2.0 * np.sqrt(ratio) * (self.share[:, 0] - self.share[:, 1])
        pull -= 2.0 * ratio * weight * (scores - middle[side])
        beta = (space.root @ v)[:, None]
        gradient = self.gradient(Z, beta, pull[:, None], 2.0 * ratio * self.mu)
        intercept = np.array([-0.5 * middle.sum()])
        return Marginal(-ratio, gradient, beta, intercept, -ratio)

    def losses(self, scores: Matrix) -> Vector:
        """Return how far rows are from their side of the margin, by their weight."""
        slack: Vector = np.maximum(0.0, 1.0 - self.sign * scores[:, 0])
        return self.weight * slack
