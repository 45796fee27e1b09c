"""Marginal functions: the best machine for given vectors, and where to move them.

Wu, Schölkopf and Bakır, "A direct method for building sparse kernel learning algorithms" (SLMC),
sections 2 and 3. For vectors Z, the rows z_u, the machines w_p = Σ_u β_up φ(z_u) of all problems
together have the least objective

    W(Z)  =  min over β, b of  Σ_p ½ β_pᵀ K_z β_p + loss(K_xz β_p + b_p),          (12)–(15), (28)

the marginal function, and the vectors are moved to make it small. Where the optimum is unique,
its derivative is the one for β and b held fixed (Lemma 1; (46) says the same of the dual):

    ∂W/∂z_u  =  q Σ_p β_up Σ_j β_jp ∂k(z_j, z_u)/∂z_u  −  Σ_p β_up Σ_i r_ip ∂k(x_i, z_u)/∂z_u,

r_ip = y_i α_ip being minus the derivative of the loss by the score of row i, and q = 1 for (28).
All problems share both sums: the weights of the pairs are the matrices ββᵀ and rβᵀ.

The ridge. Vectors may meet, and K_z is then singular, so K_z stands for

    K_z + ε κ I,     ε = 1e-8,   κ the mean of k(z_u, z_u),

everywhere, also in the gradient: W is a smooth function of Z where k is, even where vectors are
equal. It costs W a share of about ε, for w gets a little longer; W is never below the optimum
without the ridge.

Whitened features. With the Cholesky factor K_z = L Lᵀ and T = L⁻ᵀ, the rows φ_z(x) = Tᵀψ_z(x) of
(41) make the regulariser ½‖v‖² for v = Lᵀβ: the problem is linear and well conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.device import pulled_there
from widemargin.expansion import Expansion
from widemargin.kernels import RBF, Kernel
from widemargin.qp.newton import DenseFeatures, Features
from widemargin.rows import Rows, rows_per_block
from widemargin.sparse.device_features import DeviceFeatures

# ε, relative to the mean diagonal of K_z.
RIDGE = 1e-8
# Share of the memory budget for the features of all rows; those that do not fit are made again.
_FEATURES_SHARE = 0.5


@dataclass(frozen=True)
class Marginal:
    """The marginal function at some vectors, with the machines that attain it.

    Attributes
    ----------
    value : float
        W(Z).
    gradient : ndarray of shape (t, d)
        ∇W(Z), a row for each vector.
    beta : ndarray of shape (t, n_problems)
        Coefficients of the vectors.
    intercept : ndarray of shape (n_problems,)
        What is added to Σ_u β_u k(z_u, x).
    dual : float
        A lower bound on W(Z); the value itself where W is an eigenvalue.
    alpha : ndarray of shape (n, n_problems) or None
        Dual variables of the rows, where the next solution starts from them.
    """

    value: float
    gradient: Matrix
    beta: Matrix
    intercept: Vector
    dual: float
    alpha: Matrix | None = None


class NoSpan(ValueError):
    """The kernel's matrix of some vectors is not positive definite."""


class MarginalFunction(Protocol):
    """What the search needs of a marginal function."""

    n_kernel: int
    """Kernel values computed until now."""

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z, starting from the solution at as many vectors near them."""


class MarginalOfRows(MarginalFunction, Protocol):
    """What the placement needs of a marginal function, beside the search."""

    def losses(self, scores: Matrix) -> Vector:
        """Return how much each row suffers, given its scores in all problems."""


@dataclass(frozen=True)
class Whitened:
    """All rows in orthonormal coordinates of the span.

    Attributes
    ----------
    features : Features
        φ_z(x), and a 1 behind it where that was asked for.
    root : ndarray of shape (t, t)
        T: coefficients are β = T v.
    factor : ndarray of shape (t, t)
        L: v = Lᵀβ.
    """

    features: Features
    root: Matrix
    factor: Matrix


class _Computed(Features):
    """Features that are computed when they are needed, for there is no room to keep them."""

    def __init__(self, rows: Rows, features: Expansion) -> None:
        self.rows, self.features = rows, features
        self.shape, self.threads = (rows.shape[0], features.width), rows.threads
        self.chunk = rows_per_block(rows.memory, 3 * 8 * features.width, 4096)

    def block(self, where: slice | IndexArray) -> Matrix:
        """Return the features of some rows."""
        return self.features(self.rows.block(where))


def features_of(rows: Rows, kernel: Kernel, Z: Matrix, root: Matrix, with_one: bool) -> Features:
    """Return Tᵀψ_z of all rows, T being `root`: kept where there is room, else made when needed."""
    intercept = np.zeros(len(Z))
    if with_one:
        root, intercept = np.pad(root, ((0, 0), (0, 1))), np.append(intercept, 1.0)
    if rows.device is not None:
        return DeviceFeatures(rows, kernel, Z, root, intercept)
    features = Expansion(kernel, Z, root, intercept)
    if 8 * rows.shape[0] * (len(Z) + 1) > _FEATURES_SHARE * rows.memory:
        return _Computed(rows, features)
    return DenseFeatures(features.values(rows), rows.threads)


class VectorSpan:
    """The rows as the span of vectors sees them: what all marginal functions share.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        Their kernel, with a gradient.

    Attributes
    ----------
    n_kernel : int
        Kernel values computed until now, those of gradients included.
    """

    def __init__(self, rows: Rows, kernel: Kernel) -> None:
        self.rows = rows
        self.kernel = kernel
        self.n_kernel = 0

    def whitened(self, Z: Matrix, *, with_one: bool = False) -> Whitened:
        """Return φ_z of all rows in float64, with a 1 behind it for a bias if asked.

        Raises
        ------
        NoSpan
            If K_z is not positive definite, as happens to kernels that are not Mercer's.
        """
        t = len(Z)
        factor = self._factor(Z)
        root = np.ascontiguousarray(solve_triangular(factor, np.eye(t), lower=True).T)
        self.n_kernel += self.rows.shape[0] * t + t * t
        return Whitened(features_of(self.rows, self.kernel, Z, root, with_one), root, factor)

    def gradient(
        self,
        Z: Matrix,
        beta: Matrix,
        pull: Matrix,
        quadratic: float = 1.0,
        space: Whitened | None = None,
    ) -> Matrix:
        """Return the derivative of W for β held fixed.

        Parameters
        ----------
        Z : ndarray of shape (t, d)
            Vectors.
        beta : ndarray of shape (t, n_problems)
            Coefficients.
        pull : ndarray of shape (n, n_problems)
            r, minus the derivative of the loss by the scores. Rows of zeros are not looked at.
        quadratic : float, default=1.0
            q, the factor of Σ ½βᵀK_zβ in W.
        space : Whitened, default=None
            The rows in the span of Z. With it the Gaussian kernel need not be computed again.
        """
        t = len(Z)
        inner = beta @ beta.T
        # The ridge is a multiple of the mean diagonal, which moves with the vectors too.
        inner[np.diag_indices(t)] += RIDGE / t * float(np.trace(inner))
        total: Matrix = quadratic * self.kernel.gradient(Z, Z, inner)
        active = np.flatnonzero(pull.any(axis=1))
        if self.rows.device is not None:
            self.n_kernel += (len(active) + t) * t
            return total - pulled_there(self.rows, self.kernel, Z, beta, pull, active)
        if type(self.kernel) is not RBF:
            space = None
        visit = partial(_pulled, self.kernel, Z, beta, pull, active, space)
        for part in self.rows.scan(visit, active, width=3 * t):
            total -= part
        self.n_kernel += t * t if space is not None else (len(active) + t) * t
        return total

    def _factor(self, Z: Matrix) -> Matrix:
        """Return the Cholesky factor of K_z with its ridge."""
        gram = self.kernel.block(Z, Z)
        gram = 0.5 * (gram + gram.T)
        mean = float(np.trace(gram)) / len(Z)
        # All vectors at a point where the kernel vanishes have no span; any ridge will do there.
        gram[np.diag_indices(len(Z))] += RIDGE * mean if mean > 0 else 1.0
        if np.isfinite(gram).all() and mean >= 0:
            try:
                return np.linalg.cholesky(gram)
            except LinAlgError:
                pass
        raise NoSpan(
            f"The {self.kernel.name} kernel's matrix of the vectors is not positive definite (or "
            "not finite), so there is no best machine in their span; scale X, or use a kernel "
            "such as 'rbf'."
        )


def _pulled(
    kernel: Any,
    Z: Matrix,
    beta: Matrix,
    pull: Matrix,
    active: IndexArray,
    space: Whitened | None,
    block: Any,
    where: slice,
) -> Matrix:
    """Return Σ_i Σ_p r_ip β_up ∂k(x_i, z_u)/∂z_u over the rows of a block.

    With `space`, the values of the kernel are those of the features again, K = F Lᵀ, for far fewer
    products than from the rows.
    """
    index = active[where]
    weight = pull[index] @ beta.T
    if space is None:
        return np.asarray(kernel.gradient(block, Z, weight))
    values = space.features.block(index)[:, : len(Z)] @ space.factor.T
    return np.asarray(kernel.gradient(block, Z, weight, values))
