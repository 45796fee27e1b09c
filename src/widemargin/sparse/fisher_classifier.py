"""The sparse kernel Fisher discriminant (SKFD) as a classifier."""

from __future__ import annotations

from typing import Any

from widemargin.balls import Points
from widemargin.parameters import check_choice, check_positive
from widemargin.rows.base import IndexArray
from widemargin.sparse.classifier import SparseClassifier
from widemargin.sparse.fisher import Fisher
from widemargin.sparse.hinge import Hinge
from widemargin.sparse.marginal import Marginal, MarginalFunction
from widemargin.sparse.search import Found


class SparseFisherClassifier(SparseClassifier):
    """Kernel Fisher discriminant with as many vectors as one says, placed by gradient descent.

    The kernel Fisher discriminant keeps all training rows. Here the direction is sought in the span
    of a few vectors, which move to where they raise Fisher's quotient most.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        Vectors of each problem: a number, or a share of the support vectors of the exact SVM, which
        is fitted first to count them.
    mu : float, default=1e-3
        Weight of ‖w‖² beside the within-class variance.
    coefficients : {"svm", "fisher"}, default="svm"
        "svm" fits the hinge-loss SVM on the vectors for coefficients and bias, as the paper does
        [1]_; "fisher" keeps those of the discriminant, with the bias in the middle between the
        classes, whatever their weights.
    C : float, default=1.0
        Weight of the errors in that SVM.
    kernel : str or Kernel, default="rbf"
        As in `SparseMarginClassifier`, and so are the parameters that follow.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    init : {"kmeans", "random", "reduced_set"} or array, default="kmeans"
        Where vectors start.
    grow : {"one", "double"}, default=None
        Start with one vector and let more join.
    max_iter : int, default=200
        Steps of L-BFGS at the most, for each problem and stage.
    tol : float, default=1e-5
        Stop when a step lowers W by less than this share.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="1GB"
        Budget for kernel values, beside the data.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    expansion_vectors_ : ndarray of shape (n_vectors_, n_features)
        The vectors, those of one problem after those of another.
    coef_ : ndarray of shape (n_problems, n_vectors_)
        Their coefficients.
    intercept_ : ndarray of shape (n_problems,)
        Biases.
    vector_problem_ : ndarray of int of shape (n_vectors_,)
        The problem that each vector belongs to.
    n_vectors_ : int
        Vectors of all problems.
    history_ : list of ndarray
        W, minus Fisher's quotient, at the accepted steps of each problem.
    accuracy_curve_ : dict of arrays
        With `grow`: "n_vectors", "training_accuracy" and "W" of each stage, over all problems.
    certificate_ : Certificate
        `primal` is W, minus the sum of Fisher's quotients; it is solved exactly for given vectors.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_iter_ : int
        Steps.
    gamma_ : float
        The kernel width that was used.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SparseMarginClassifier : The same for the SVM's own objective.

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006, appendix A.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import SparseFisherClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = SparseFisherClassifier(n_vectors=3, random_state=0).fit(scale(X), y)
    >>> machine.expansion_vectors_.shape, bool(machine.score(scale(X), y) > 0.95)
    ((3, 30), True)
    """

    share_vectors = False

    def __init__(
        self,
        n_vectors: float = 0.1,
        *,
        mu: float = 1e-3,
        coefficients: str = "svm",
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        init: Any = "kmeans",
        grow: str | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        max_time: float | None = None,
        memory: int | str = "1GB",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_vectors = n_vectors
        self.mu = mu
        self.coefficients = coefficients
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.grow = grow
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.memory = memory
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("mu", self.mu)
        check_choice("coefficients", self.coefficients, ("svm", "fisher"))

    def _function(self, points: Points, rows: IndexArray | None, threads: int) -> MarginalFunction:
        """Return Fisher's quotient of some rows (all if None)."""
        some: Any = slice(None) if rows is None else rows
        source = points.rows if rows is None else points.rows.subset(rows)
        return Fisher(source, points.kernel, points.sign(0, some), points.weight[some], self.mu)

    def _machine(self, points: Points, found: Found, threads: int) -> Marginal:
        """Return the SVM on the vectors, or the discriminant itself."""
        if self.coefficients == "fisher":
            return found.marginal
        svm = Hinge(
            points.rows,
            points.kernel,
            points.code,
            points.table,
            points.weight,
            points.C,
            threads,
        )
        return svm(found.vectors)
