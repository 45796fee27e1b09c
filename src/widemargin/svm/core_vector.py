"""The core vector machine."""

from __future__ import annotations

from widemargin.balls import CoreOptions, MinimumBall, fit_core, fit_one_by_one, fit_one_row
from widemargin.base import parameters as check
from widemargin.base.classifier import KernelClassifier
from widemargin.base.parameters import keyword, parameters
from widemargin.expansion import Earlier, Fitted
from widemargin.loop import Resources
from widemargin.problem import Problem, one_vs_one


@parameters
class CoreVectorClassifier(KernelClassifier):
    """Kernel SVM through a minimum enclosing ball and a core set (CVM).

    It minimises ½‖w‖² + ½b² + C Σ s ξ² (the squared hinge loss, with the bias regularised), one
    problem for two classes and one-vs-rest for more, and stops when the duality gap proves that the
    objective is within `tol` of the best possible one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors, as in ``LinearSVC(loss="squared_hinge")``; the papers' C is twice
        this.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "normalized_poly", "cosine_power", "rbf", "laplacian", "exponential",
        "sigmoid", "inverse_distance", "inverse_squared_distance", "precomputed", a function of two
        matrices, or a kernel object.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width; "mean_distance" is the papers' choice, one over the mean squared distance
        between training rows.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    growth : {"batch", "one"}, default="batch"
        How the core set grows: by many violators of all classes at once (fast), or, as in the
        paper, by one row at a time for each class.
    sample_size : int or None, default=59
        With ``growth="one"``: the furthest of this many random rows joins; None takes the furthest
        of all.
    stopping : {"gap", "ball"}, default="gap"
        Stop at a relative duality gap of `tol`, or when all points lie within (1 + `epsilon`) of
        the ball's radius (the paper's rule, which depends on C and on the number of rows).
    epsilon : float, default=1e-4
        See `stopping`.
    tol : float, default=1e-3
        See `stopping`.
    max_iter : int, default=10000
        Steps of the outer loop at the most.
    max_vectors : int, default=None
        Core vectors at the most; None leaves it to `memory`.
    max_time : float, default=None
        Seconds at the most, looked at between steps.
    memory : int or str, default="auto"
        Budget for kernel values and blocks of rows, beside the data.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    warm_start : bool, default=False
        Start from the previous solution if rows and classes are the same, for a path over `C`.
    multi_class : {"auto", "ovr", "ovo"}, default="ovr"
        With more than two classes: each against the rest, or pairs of classes, which "auto" takes
        and with which the figures of [2]_ are met: their machines need fewer rows each.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Columns of `decision_function` for more than two classes: one a class, or one a pair.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    support_ : ndarray of shape (n_vectors,)
        Training rows that are vectors of the machine.
    support_vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        Those rows; their numbers if the kernel is precomputed.
    multi_class_ : {"ovr", "ovo"}
        Whether problems are classes against the rest (or two classes), or pairs of classes.
    dual_coef_ : ndarray of shape (n_problems, n_vectors)
        y α of each vector in each problem.
    intercept_ : ndarray of shape (n_problems,)
        Bias of each problem.
    gamma_ : float
        The kernel width that was used.
    n_iter_ : int
        Steps of the outer loop.
    certificate_ : Certificate
        What the fit can prove: primal, dual, relative gap, ball, cost and reason for stopping.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    BallVectorClassifier : The same machine without a numerical solver.

    Notes
    -----
    The dual of the SVM is the problem of the smallest ball around the points
    (y φ(x), y, e/√(2C s)); rows inside the ball do not matter. See [1]_ for the ball and its (1 +
    ε)² guarantee and [2]_ for the stopping rule's history. Rows that occur several times are merged
    into one weighted row before the fit. Classes without a row of positive weight are left out.

    References
    ----------
    .. [1] I. W. Tsang, A. Kocsor, J. T. Kwok, "Large-scale maximum margin discriminant analysis
       using core vector machines", IEEE Transactions on Neural Networks, 2008.
    .. [2] I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls",
       ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import CoreVectorClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = CoreVectorClassifier(C=10, gamma="mean_distance").fit(X[:1000], y[:1000])
    >>> bool(machine.score(X[1000:], y[1000:]) > 0.95)
    True
    >>> bool(machine.certificate_.gap <= 1e-3)
    True
    """

    growth: str = keyword("batch", check.choice("batch", "one"))
    sample_size: int | None = keyword(59, check.count_or_none)
    stopping: str = keyword("gap", check.choice("gap", "ball"))
    epsilon: float = keyword(1e-4, check.positive)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_vectors: int | None = keyword(None, check.at_least(2, none=True))
    warm_start: bool = keyword(False)
    multi_class: str = keyword("ovr", check.choice("auto", "ovr", "ovo"))
    decision_function_shape: str = keyword("ovr", check.choice("ovr", "ovo"))

    def _fit(self, problem: Problem, resources: Resources, earlier: Earlier | None) -> Fitted:
        n_classes = len(problem.table)
        pairs = n_classes > 2 and self.multi_class != "ovr"
        stated = problem.with_signs(one_vs_one(n_classes)) if pairs else problem
        self.multi_class_ = "ovo" if pairs else "ovr"
        by_gap = self.stopping == "gap"
        solver = "sor" if self.growth == "one" else "exact"
        method = MinimumBall(self.tol, None if by_gap else self.epsilon, solver)
        if earlier is not None and earlier.coef.shape[1] != stated.n_problems:
            earlier = None
        options = CoreOptions(
            **vars(resources),
            tol=self.tol,
            by_ball=not by_gap,
            growth=self.growth,
            sample_size=self.sample_size,
            max_vectors=self.max_vectors,
            max_iter=self.max_iter,
            earlier=earlier,
        )
        if self.growth == "one":
            return fit_one_row(stated, method, options)
        if not pairs:
            return fit_core(problem, method, options)
        return fit_one_by_one(stated, options, lambda part, inner: fit_core(part, method, inner))
