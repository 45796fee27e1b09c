"""The marginal function of the L1-SVM: the paper's, with hinge loss and a free bias.

SLMC (28)–(30), for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b)).

Its dual (37)–(39) is that of an SVM with the kernel (40), the linear kernel of the whitened
features (41), and is solved as such: F Fᵀ is never formed. Then (45),

    β  =  K_z⁻¹ K_zx Y α  =  T (Fᵀ Y α),

and the gradient is (46), with r = Yα. α is kept: it starts the next solution.

W is differentiable (Corollary 2), but its gradient bends where a row reaches a bound of (39).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels import Kernel
from widemargin.qp.hinge import HingeDual, solve_hinge_dual
from widemargin.rows.base import Rows
from widemargin.sparse.marginal import Marginal, Matrix, Span, Vector
from widemargin.threads import ordered_map

# Relative accuracy of the dual: a gradient of W is as good as the root of the gap.
_TOL = 1e-12
# Numbers in the features below which a problem is not worth a thread.
_WORTH_A_THREAD = 50_000


@dataclass(frozen=True)
class HingeMarginal(Marginal):
    """The marginal function with the dual variables that attain it.

    Attributes
    ----------
    alpha : ndarray of shape (n, n_problems)
        α of (37).
    """

    alpha: Matrix


class Hinge:
    """W(Z) and ∇W(Z) of the L1-SVM for several columns of labels.

    Parameters
    ----------
    rows : Rows
        The training rows.
    kernel : Kernel
        A kernel with a gradient.
    code : ndarray of int of shape (n,)
        The class of each row.
    table : ndarray of shape (n_classes, n_problems)
        ±1: the label of a class in each problem. Both must occur among rows of positive weight.
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
        self.upper = float(C) * np.asarray(weight, dtype=np.float64)
        self.threads = threads

    @property
    def n_kernel(self) -> int:
        """Kernel values computed until now."""
        return self.span.n_kernel

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> HingeMarginal:
        """Return W and ∇W at Z."""
        space = self.span.whitened(Z)
        F, n_problems = space.features, self.table.shape[1]
        alpha = start.alpha if isinstance(start, HingeMarginal) else None
        # α belongs to rows, not to vectors: it fits whatever the number of vectors was.
        if alpha is not None and alpha.shape != (len(F), n_problems):
            alpha = None

        def solve(p: int) -> HingeDual:
            first = None if alpha is None else alpha[:, p]
            sign = self.table[self.code, p]
            return solve_hinge_dual(F, sign, self.upper, start=first, tol=_TOL, factored=True)

        threads = self.threads if F.size >= _WORTH_A_THREAD else 1
        solved = list(ordered_map(solve, range(n_problems), threads))
        dual = np.stack([each.alpha for each in solved], axis=1)
        pull = self.table[self.code] * dual
        beta = space.root @ (F.T @ pull)
        return HingeMarginal(
            value=sum(each.primal for each in solved),
            gradient=self.span.gradient(Z, beta, pull),
            beta=beta,
            intercept=np.array([each.intercept for each in solved]),
            dual=sum(each.dual for each in solved),
            alpha=dual,
        )
