"""Reduced SVMs (RSVM and MRSVM): random rows as vectors.

Lee and Mangasarian, "RSVM: reduced support vector machines"; SLMC, section 4.2. For random rows Z
and ψ_z(x) = (k(z_u, x))_u, the RSVM is the linear machine of the rows ψ_z(x),

    min over β, b of  ½ βᵀβ + ½b² + C Σ_i s_i max(0, 1 − y_i (ψ_z(x_i)ᵀβ + b))²,

with the squared hinge and the regularised bias of Lee and Mangasarian. ½βᵀβ stands where the SVM
has ½‖w‖² = ½βᵀK_zβ. The modified one has the latter, and is the paper's SVM (28) in the span:

    min over β, b of  ½ βᵀK_zβ + C Σ_i s_i max(0, 1 − y_i (ψ_z(x_i)ᵀβ + b)).

How: the L2-SVM with the linear kernel has K_z = I for the unit vectors, so the first problem is
`SquaredHinge` on the rows ψ_z(x) with unit vectors, and the second is `Hinge`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.kernels import Kernel, Linear
from widemargin.kernels.finite import check_finite
from widemargin.parameters import check_choice, check_number, check_positive
from widemargin.progress import Report
from widemargin.rows import as_rows
from widemargin.rows.base import IndexArray
from widemargin.span import RandomVectors
from widemargin.sparse import trained
from widemargin.sparse.classifier import SparseClassifier
from widemargin.sparse.hinge import Hinge
from widemargin.sparse.marginal import Marginal, MarginalFunction, Matrix
from widemargin.sparse.search import Found, minimise
from widemargin.sparse.squared_hinge import SquaredHinge

# Bytes for blocks of ψ, which is in memory anyway.
_MEMORY = 1 << 28


class ReducedSVMClassifier(SparseClassifier):
    """Kernel SVM with a few random rows as vectors.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        Vectors of each problem (of all together with `share_vectors`): a number, or a share of the
        support vectors of the exact SVM, which is fitted first to count them. No row is taken
        twice, so that there may be fewer.
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
    memory : int or str, default="1GB"
        Budget for kernel values, beside the data and its values with the vectors.
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
    expansion_vectors_ : ndarray of shape (n_vectors_, n_features)
        The vectors, those of one problem after those of another.
    coef_ : ndarray of shape (n_problems, n_vectors_)
        Their coefficients.
    intercept_ : ndarray of shape (n_problems,)
        Biases.
    vector_problem_ : ndarray of int of shape (n_vectors_,)
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

    grow = None
    # Nothing is iterated that a user could stop.
    max_time = None

    def __init__(
        self,
        n_vectors: float = 0.1,
        *,
        method: str = "rsvm",
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        share_vectors: bool = False,
        memory: int | str = "1GB",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_vectors = n_vectors
        self.method = method
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.share_vectors = share_vectors
        self.memory = memory
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("method", self.method, ("rsvm", "mrsvm"))
        if self._precomputed():
            raise ValueError(
                "kernel='precomputed' has no vectors that could be kept; give the rows and a "
                "kernel such as 'rbf'."
            )
        trained.check_share(self.n_vectors)
        check_positive("C", self.C)
        self._check_kernel()
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose)

    def _check_gradient(self, points: Points) -> None:
        if self.method == "mrsvm" and not points.kernel.differentiable:
            raise ValueError(
                f"method='mrsvm' needs a kernel with a gradient, which kernel={self.kernel!r} has "
                "not; use method='rsvm', or a kernel such as 'rbf'."
            )

    def _placed(
        self,
        points: Points,
        threads: int,
        rng: np.random.Generator,
        deadline: Deadline,
        report: Report,
        enough: bool,
    ) -> list[Found]:
        """Return the vectors as they were drawn."""
        function = self._function(points, None, threads)
        found = minimise(function, self._start(points, rng), max_iter=0, report=report)
        stopped = "vectors are not moved"
        certificate = replace(found.certificate, n_iter=1, n_passes=1, stopped=stopped)
        return [replace(found, certificate=certificate, converged=True)]

    def _start(self, points: Points, rng: np.random.Generator) -> Matrix:
        """Return random rows, no two of them equal."""
        count = self._count(points)
        choice = RandomVectors().begin(points.rows, points.kernel, points.weight, rng)
        vectors = np.empty((0, points.rows.shape[1]))
        while len(vectors) < count and not choice.exhausted:
            more = choice.draw(count - len(vectors), None).values
            vectors = np.concatenate([vectors, more.astype(np.float64)])
            # Points are different pairs of rows and labels, so that rows may still be equal.
            _, first = np.unique(vectors, axis=0, return_index=True)
            vectors = vectors[np.sort(first)]
        return vectors

    def _function(self, points: Points, rows: IndexArray | None, threads: int) -> MarginalFunction:
        """Return the best machine for given vectors, always of all rows."""
        if self.method == "rsvm":
            return Simplified(points, threads)
        return Hinge(
            points.rows,
            points.kernel,
            points.code,
            points.table,
            points.weight,
            points.C,
            threads,
        )


class Simplified:
    """The machine of the RSVM for given vectors.

    Parameters
    ----------
    points : Points
        Rows with labels and weights, and the kernel.
    threads : int, default=1
        Threads; BLAS is expected to use one.
    """

    def __init__(self, points: Points, threads: int = 1) -> None:
        self.points = points
        self.threads = threads
        self.n_kernel = 0

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return the least objective and the machines at Z; the gradient is left at zero."""
        points = self.points
        values = np.concatenate(list(points.rows.scan(_Values(points.kernel, Z), width=len(Z))))
        self.n_kernel += values.size
        machine = SquaredHinge(
            as_rows(values, memory=_MEMORY, threads=self.threads),
            Linear(),
            points.code,
            points.table,
            points.weight,
            points.C,
            self.threads,
        )
        return replace(machine(np.eye(len(Z))), gradient=np.zeros_like(Z))


@dataclass(frozen=True)
class _Values:
    """Visitor: ψ_z of a block."""

    kernel: Kernel
    Z: Matrix

    def __call__(self, block: Any, where: slice) -> Matrix:
        values = np.empty((block.shape[0], len(self.Z)))
        with np.errstate(over="ignore", invalid="ignore"):
            self.kernel.block(block, self.Z, out=values)
            check_finite(self.kernel, values)
        return values
