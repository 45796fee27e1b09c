"""Sparse one-class machines: choose how many vectors, then put them where they matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from widemargin.base import parameters as check
from widemargin.base.detector import KernelDetector, share_of_rows
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.expansion import Fitted
from widemargin.intervals import one_class
from widemargin.loop import Deadline, Resources
from widemargin.problem import Problem
from widemargin.rows import Distinct, Rows
from widemargin.sparse import sparse_options
from widemargin.sparse.interval_marginal import Intervals
from widemargin.sparse.placement import fit_sparse
from widemargin.sparse.sparse_options import SparseOptions, in_units, keep_sparse, options_of


@parameters
class SparseOneClass(KernelDetector):
    """Detect outliers by a one-class machine with as many vectors as one says.

    W(Z) is the optimum of the ν-one-class machine of `MarginOneClass` in the span of the vectors Z.
    Its gradient in Z is known once the machine is, so vectors move to where they serve the machine
    best: they need not be training rows. This is the direct method of [1]_, which names the
    one-class machine as one that it fits. A score costs as many kernel values as there are vectors.

    Parameters
    ----------
    n_vectors : int, default=50
        Vectors; no more than there are different rows.
    nu : float, default=0.5
        At most this share of the rows is outside, and at least this share supports the machine.
    kernel : str or Kernel, default="rbf"
        The kernel; it must have a gradient in its second argument.
    gamma : str or float, default="median_distance"
        Its width, as in `MarginOneClass`.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    scale : {"auto", "robust", "standard", "none"}, default="auto"
        What is done to columns first, as in `MarginOneClass`.
    contamination : "auto" or float, default="auto"
        Share of the training rows that are outliers. "auto" leaves the offset to the machine.
    init : {"kmeans", "random"} or array of shape (n_vectors, n_features), default="kmeans"
        Where vectors start: at centres of the rows, at random rows, or there, in the units of X; an
        array says how many there are, too.
    grow : {"one", "double"}, default=None
        Start with one vector and let more join, one by one or doubling, each time moving all of
        them; `objective_curve_` then tells what each number is good for.
    max_iter : int, default=200
        Steps of L-BFGS at the most, for each stage.
    tol : float, default=1e-5
        Stop when a step lowers W by less than this share.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="auto"
        Budget for kernel values, beside the data.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``.
    expansion_vectors_ : ndarray of shape (n_vectors, n_features)
        The vectors, scaled.
    coef_ : ndarray of shape (1, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (1,)
        −ρ, the offset of the machine itself.
    n_vectors_ : int
        Number of vectors.
    history_ : list of ndarray
        W at the accepted steps, in one array.
    objective_curve_ : dict of arrays
        With `grow`: "n_vectors" and "W" of each stage.
    center_, spread_ : ndarray of shape (n_features,) or None
        What columns are scaled by.
    clip_ : float or None
        Where scaled values end.
    gamma_ : float
        The kernel's width.
    certificate_ : Certificate
        The gap of the machine within the span of its vectors. The optimum is negative: the gap is
        relative to its modulus.
    n_iter_ : int
        Steps.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginOneClass : More vectors, rows of the data, in less time.

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SparseOneClass
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> detector = SparseOneClass(5, contamination=0.05, random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [6.0, -6.0]]), detector.expansion_vectors_.shape
    (array([ 1, -1]), (5, 2))
    """

    n_vectors: int = positional(50, check.count)
    nu: float = keyword(0.5, share_of_rows)
    kernel: Any = keyword("rbf", sparse_options.movable)
    init: Any = keyword("kmeans", sparse_options.start_without_classes)
    grow: str | None = keyword(None, check.none_or(check.choice("one", "double")))
    max_iter: int = keyword(200, check.count)
    tol: float = keyword(1e-5, check.not_negative)

    def _fit(self, rows: Rows, distinct: Distinct, resources: Resources) -> Fitted:
        n = len(distinct.weight)
        # One class, whose sign tells nothing.
        stated = (np.zeros(n, dtype=np.intp), np.ones((1, 1)), distinct.weight)
        problem = Problem.of(rows, self._kernel(self.gamma_), *stated, 1.0)
        fitted = fit_sparse(problem, self._options(resources))
        # The engine has seen coefficients that add up to 1; those of MarginOneClass to this.
        size = self.nu * float(distinct.weight.sum())
        found = fitted.certificate
        values = {name: getattr(found, name) * size**2 for name in ("primal", "dual")}
        return replace(
            in_units(fitted, size**2),
            coef=fitted.coef * size,
            intercept=fitted.intercept * size,
            certificate=replace(found, **values),
        )

    def _options(self, resources: Resources) -> SparseOptions:
        """Return what the engine is to know of the parameters."""
        options = options_of(self, resources, function=self._function)
        if isinstance(options.init, str):
            return options
        return replace(options, init=self._to_scale(options.init))

    def _function(self, problem: Problem, deadline: Deadline) -> Intervals:
        """Return W on some rows, with coefficients that add up to 1."""
        weight = problem.weight / (self.nu * float(problem.weight.sum()))
        return Intervals(one_class(problem.rows, problem.kernel, weight, self.nu), deadline)

    def _keep(self, rows: Rows, distinct: Distinct, fitted: Fitted) -> None:
        super()._keep(rows, distinct, fitted)
        keep_sparse(self, fitted, "objective_curve_")
