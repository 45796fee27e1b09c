"""Reduced SVMs (RSVM and MRSVM): random rows as vectors.

Lee and Mangasarian, "RSVM: reduced support vector machines"; SLMC, section 4.2. For random rows Z
and ψ_z(x) = (k(z_u, x))_u, the RSVM is the linear machine of the rows ψ_z(x),

    min over β, b of  ½ βᵀβ + ½b² + C Σ_i s_i max(0, 1 − y_i (ψ_z(x_i)ᵀβ + b))²,

with the squared hinge and the regularised bias of Lee and Mangasarian. ½βᵀβ stands where the SVM
has ½‖w‖² = ½βᵀK_zβ. The modified one has the latter, and is the paper's SVM (28) in the span:

    min over β, b of  ½ βᵀK_zβ + C Σ_i s_i max(0, 1 − y_i (ψ_z(x_i)ᵀβ + b)).

How: the first problem has ψ_z(x) for features where the SVM has whitened ones, and is
solved as `Squared` is, on the rows ψ_z(x) themselves; the second is `Hinge`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.base import parameters as check
from widemargin.base.classifier import KernelClassifier
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.expansion import Earlier, Fitted
from widemargin.loop import Deadline, Resources
from widemargin.problem import Problem
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.marginal import Marginal, features_of
from widemargin.sparse.placement import fit_sparse
from widemargin.sparse.sparse_options import SparseOptions, keep_sparse, options_of
from widemargin.sparse.squared_marginal import solve_squared, suffered


def _kept(name: str, kernel: Any) -> None:
    """Raise if the vectors of a kernel are not there to be kept."""
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            f"{name}='precomputed' has no vectors that could be kept; give the rows and a kernel "
            "such as 'rbf'."
        )


@parameters
class ReducedSVMClassifier(KernelClassifier):
    """Kernel SVM with a few random rows as vectors.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        Vectors of each problem (of all together with `share_vectors`): a number, or a share of the
        support vectors of the exact SVM, which is fitted first to count them (to a sample of the
        rows, where they are more than 10,000). No row is taken twice, so that there may be fewer.
    method : {"rsvm", "mrsvm"}, default="rsvm"
        "rsvm" is the linear SVM on the kernel values of the vectors, with squared hinge and
        regularised bias [1]_. "mrsvm" is the SVM with hinge loss and a free bias in the span of the
        vectors [2]_; it is for kernels with a gradient.
    C : float, default=1.0
        Weight of the errors: ½βᵀβ + ½b² + C Σ s ξ² for "rsvm", ½‖w‖² + C Σ s ξ for "mrsvm".
    kernel : str, callable or Kernel, default="rbf"
        As in `MarginClassifier`, but not "precomputed".
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    share_vectors : bool, default=False
        Whether all classes share one set of vectors: one block of kernel values serves them all.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="auto"
        Budget for kernel values, beside the data. Values that do not fit are computed again.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the choice of rows.
    verbose : int, default=0
        1 prints a line a problem.

    Attributes
    ----------
    expansion_vectors_ : ndarray of shape (n_vectors, n_features)
        The vectors, those of one problem after those of another.
    coef_ : ndarray of shape (n_problems, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (n_problems,)
        Biases.
    vector_problem_ : ndarray of int of shape (n_vectors,)
        The problem that each vector belongs to; 0 for all if they are shared.
    n_vectors_ : int
        Vectors of all problems.
    history_ : list of ndarray
        The objective of each problem (or of all, if vectors are shared).
    certificate_ : Certificate
        The gap of the machine for its vectors.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_iter_ : int
        Number of problems that were solved, for vectors do not move.
    gamma_ : float
        The kernel width that was used.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SparseMarginClassifier : Vectors that are moved to where they serve the machine.
    ReducedSetClassifier : A trained SVM, compressed.

    References
    ----------
    .. [1] Y. Lee, O. L. Mangasarian, "RSVM: reduced support vector machines", SDM 2001.
    .. [2] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006, section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import ReducedSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = ReducedSVMClassifier(n_vectors=20, random_state=0).fit(scale(X), y)
    >>> machine.expansion_vectors_.shape, bool(machine.score(scale(X), y) > 0.9)
    ((20, 30), True)
    """

    n_vectors: float = positional(0.1, check.vectors_or_share)
    C: float = keyword(1.0, check.positive)
    method: str = keyword("rsvm", check.choice("rsvm", "mrsvm"))
    kernel: Any = keyword("rbf", _kept)
    share_vectors: bool = keyword(False)

    def _fit(self, problem: Problem, resources: Resources, earlier: Earlier | None) -> Fitted:
        if self.method == "mrsvm" and not problem.kernel.differentiable:
            raise ValueError(
                f"method='mrsvm' needs a kernel with a gradient, which kernel={self.kernel!r} has "
                "not; use method='rsvm', or a kernel such as 'rbf'."
            )
        return fit_sparse(problem, self._options(resources))

    def _options(self, resources: Resources) -> SparseOptions:
        function = Simplified if self.method == "rsvm" else Hinge
        return options_of(self, resources, function=function, init="distinct", move=False)

    def _keep(self, problem: Problem, fitted: Fitted) -> None:
        super()._keep(problem, fitted)
        keep_sparse(self, fitted)


class Simplified:
    """The machine of the RSVM for given vectors.

    Parameters
    ----------
    problem : Problem
        Rows with labels and weights, and the kernel.
    deadline : Deadline
        When to leave it at the steps that are done.
    """

    def __init__(self, problem: Problem, deadline: Deadline) -> None:
        self.problem = problem
        self.deadline = deadline
        self.n_kernel = 0

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return the least objective and the machines at Z; the gradient is left at zero."""
        problem, t = self.problem, len(Z)
        features = features_of(problem.rows, problem.kernel, Z, np.eye(t), True)
        self.n_kernel += problem.n * t
        v, _, value, dual = solve_squared(problem, features, None, self.deadline)
        beta = np.ascontiguousarray(v[:, :t].T)
        return Marginal(value, np.zeros_like(Z), beta, v[:, t], dual)

    def losses(self, scores: Matrix) -> Vector:
        """Return how far rows are from their side of the margin, by their weight."""
        return suffered(self.problem, scores)
