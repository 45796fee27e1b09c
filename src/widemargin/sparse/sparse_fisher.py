"""The sparse kernel Fisher discriminant (SKFD) as a classifier."""

from __future__ import annotations

from typing import Any

from widemargin.base import parameters as check
from widemargin.base.classifier import KernelClassifier
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.expansion import Earlier, Fitted
from widemargin.loop import Deadline, Resources
from widemargin.problem import Problem
from widemargin.sparse import sparse_options
from widemargin.sparse.fisher_marginal import Fisher
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.placement import fit_sparse, training_accuracy
from widemargin.sparse.sparse_options import SparseOptions, keep_sparse, options_of


@parameters
class SparseFisherClassifier(KernelClassifier):
    """Kernel Fisher discriminant with as many vectors as one says, placed by gradient descent.

    The kernel Fisher discriminant keeps all training rows. Here the direction is sought in the span
    of a few vectors, which move to where they raise Fisher's quotient most.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        Vectors of each problem: a number, or a share of the support vectors of the exact SVM, which
        is fitted first to count them (to a sample of the rows, where they are more than 10,000).
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
    memory : int or str, default="auto"
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
    expansion_vectors_ : ndarray of shape (n_vectors, n_features)
        The vectors, those of one problem after those of another.
    coef_ : ndarray of shape (n_problems, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (n_problems,)
        Biases.
    vector_problem_ : ndarray of int of shape (n_vectors,)
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

    n_vectors: float = positional(0.1, check.vectors_or_share)
    mu: float = keyword(1e-3, check.positive)
    coefficients: str = keyword("svm", check.choice("svm", "fisher"))
    C: float = keyword(1.0, check.positive)
    kernel: Any = keyword("rbf", sparse_options.movable)
    init: Any = keyword("kmeans", sparse_options.start)
    grow: str | None = keyword(None, check.none_or(check.choice("one", "double")))
    max_iter: int = keyword(200, check.count)
    tol: float = keyword(1e-5, check.not_negative)

    def _fit(self, problem: Problem, resources: Resources, earlier: Earlier | None) -> Fitted:
        return fit_sparse(problem, self._options(resources))

    def _options(self, resources: Resources) -> SparseOptions:
        machine = Hinge if self.coefficients == "svm" else None
        judge = ("training_accuracy", training_accuracy)
        return options_of(self, resources, function=self._quotient, machine=machine, judge=judge)

    def _quotient(self, problem: Problem, deadline: Deadline) -> Fisher:
        """Return minus Fisher's quotient of the one problem there is."""
        return Fisher(problem.rows, problem.kernel, problem.sign(0), problem.weight, self.mu)

    def _keep(self, problem: Problem, fitted: Fitted) -> None:
        super()._keep(problem, fitted)
        keep_sparse(self, fitted)
