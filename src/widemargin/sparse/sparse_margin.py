"""Sparse large margin classifiers: choose how many vectors, then put them where they matter."""

from __future__ import annotations

from typing import Any

from widemargin.base import parameters as check
from widemargin.base.classifier import KernelClassifier
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import check_device
from widemargin.device import Device, check_moved_on_device
from widemargin.expansion import Earlier, Fitted
from widemargin.loop import Resources
from widemargin.problem import Problem
from widemargin.sparse import sparse_options
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.placement import fit_sparse, training_accuracy
from widemargin.sparse.sparse_options import SparseOptions, keep_sparse, options_of
from widemargin.sparse.squared_marginal import Squared


@parameters
class SparseMarginClassifier(KernelClassifier):
    """Kernel SVM with as many vectors as one says, which are placed by gradient descent.

    W(Z) is the optimum of the SVM over all machines in the span of the vectors Z. Its gradient in Z
    is known once the machine is, so vectors move to where they serve the machine best: they need
    not be training rows. Prediction costs as many kernel values as there are vectors.

    Parameters
    ----------
    n_vectors : int or float, default=0.1
        Vectors of each problem (of all together with `share_vectors`): a number, or a share of the
        support vectors of the exact SVM, which is fitted first to count them (to a sample of the
        rows, where they are more than 10,000).
    C : float, default=1.0
        Weight of the errors: ½‖w‖² + C Σ s ξ, or ½‖w‖² + ½b² + C Σ s ξ² for the squared hinge.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        "hinge" has a free bias and is the paper's [1]_.
    kernel : str or Kernel, default="rbf"
        As in `MarginClassifier`; it must have a gradient in its second argument.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    init : {"kmeans", "random", "reduced_set"} or array, default="kmeans"
        Where vectors start: at centres of the rows, at random rows, as a reduced set of the exact
        SVM, or at those of an array of shape (n_vectors, n_features). The exact SVM is fitted first
        then (to 10,000 rows at the most), and vectors are no more than it has itself; where rows
        have many features, W ends much lower.
    share_vectors : bool, default=False
        Whether all classes share one set of vectors: one block of kernel values serves them all.
    grow : {"one", "double"}, default=None
        Start with one vector and let more join, one by one or doubling, each time moving all of
        them; `accuracy_curve_` then tells what each number is good for.
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
    device : str, default=None
        Where the machine is fitted and asked, as in `MarginClassifier`; None is where X is. On a
        device there are the kernels "rbf", "inverse_squared_distance", "linear", "poly" and
        "sigmoid". Where the first vectors are a share of the support vectors, or a reduced set,
        the exact SVM of the sample is fitted on this machine.
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
        The problem that each vector belongs to; 0 for all if they are shared.
    n_vectors_ : int
        Vectors of all problems.
    history_ : list of ndarray
        W at the accepted steps, an array for each problem (or one, if vectors are shared).
    accuracy_curve_ : dict of arrays
        With `grow`: "n_vectors", "training_accuracy" and "W" of each stage, over all problems.
    certificate_ : Certificate
        The gap of the machine within the span of its vectors.
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
    MarginClassifier : More vectors, rows of the data, in less time.

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import SparseMarginClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = SparseMarginClassifier(n_vectors=3, random_state=0).fit(scale(X), y)
    >>> machine.expansion_vectors_.shape, bool(machine.score(scale(X), y) > 0.95)
    ((3, 30), True)
    """

    n_vectors: float = positional(0.1, check.vectors_or_share)
    C: float = keyword(1.0, check.positive)
    loss: str = keyword("hinge", check.choice("hinge", "squared_hinge"))
    kernel: Any = keyword("rbf", sparse_options.movable)
    init: Any = keyword("kmeans", sparse_options.start)
    share_vectors: bool = keyword(False)
    grow: str | None = keyword(None, check.none_or(check.choice("one", "double")))
    max_iter: int = keyword(200, check.count)
    tol: float = keyword(1e-5, check.not_negative)
    device: str | None = keyword(None, check_device)

    def _check_on_device(self, device: Device) -> None:
        check_moved_on_device(self._kernel(1.0), device)

    def _fit(self, problem: Problem, resources: Resources, earlier: Earlier | None) -> Fitted:
        return fit_sparse(problem, self._options(resources))

    def _options(self, resources: Resources) -> SparseOptions:
        function = Hinge if self.loss == "hinge" else Squared
        judge = ("training_accuracy", training_accuracy)
        return options_of(self, resources, function=function, judge=judge)

    def _keep(self, problem: Problem, fitted: Fitted) -> None:
        super()._keep(problem, fitted)
        keep_sparse(self, fitted)
