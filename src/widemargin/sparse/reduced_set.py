"""Reduced sets (RS and MRS): the machine of a trained SVM with fewer vectors.

SLMC, sections 1 and 4.1. RS looks for vectors z and coefficients β that make

    ‖w − Σ_j β_j φ(z_j)‖²                                                                       (4)

small (`widemargin.sparse.pre_image`), with β = K_z⁻¹ K_zx Y α (47), and keeps the bias. MRS takes
the same vectors, and for coefficients and bias the SVM inside their span, (28) and (45).
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin.arrays import Matrix
from widemargin.base import doc_links
from widemargin.base import parameters as check
from widemargin.base.estimator import checked_weights
from widemargin.base.parameters import check_parameters, keyword, parameters, positional
from widemargin.expansion import Expansion
from widemargin.kernels import make_kernel
from widemargin.problem import distinct_labels, winners
from widemargin.rows import Distinct, Rows, as_rows, check_memory, distinct_rows, parse_memory
from widemargin.sparse import trained
from widemargin.sparse.pre_image import Combination, Reduced, reduced
from widemargin.sparse.trained import Trained
from widemargin.threads import n_threads, ordered_map, single_threaded_blas

# How rows are checked.
_CHECKS: dict[str, Any] = {
    "dtype": "numeric",
    "accept_sparse": "csr",
    "accept_large_sparse": True,
}


@parameters
class ReducedSetClassifier(ClassifierMixin, BaseEstimator):
    """A trained kernel SVM, compressed to few vectors.

    Each machine w of the SVM is approximated by one with fewer vectors, which need not be training
    rows: they are found one after another, each where it takes most of what is left of w.

    Parameters
    ----------
    estimator : classifier, default=None
        scikit-learn's ``SVC`` (or ``NuSVC``) or a kernel classifier of this library. If it is
        fitted, it is compressed as it is; else a copy is fitted first. None is ``SVC()``.
    n_vectors : int or float, default=0.1
        Vectors of each machine: a number, or a share of its support vectors. A machine with no more
        support vectors than that is kept as it is.
    method : {"rs", "mrs"}, default="rs"
        "rs" takes the coefficients that come nearest to w and keeps the bias. "mrs" fits the SVM
        again inside the span of the same vectors [1]_, with the loss and `C` of the estimator, and
        needs the training data.
    n_restarts : int, default=10
        Support vectors that the search for a vector starts from: the best, and random ones.
    refine : bool, default=True
        At the end, move all vectors of a machine together. This is most of the way to small
        distances; without it the method is the greedy one.
    max_iter : int, default=100
        Steps of each search at the most.
    memory : int or str, default="auto"
        Budget for kernel values at prediction, beside the data.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    expansion_vectors_ : ndarray of shape (n_vectors, n_features)
        The vectors, those of one machine after those of another.
    coef_ : ndarray of shape (n_problems, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (n_problems,)
        Biases.
    vector_problem_ : ndarray of int of shape (n_vectors,)
        The machine that each vector belongs to.
    n_vectors_ : int
        Vectors of all machines.
    distance_ : list of ndarray
        Squared distance of each machine to its w after each vector, and at last after all have
        moved, relative to ‖w‖². One zero for a machine that was kept as it is.
    pairwise_ : bool
        Whether machines stand for pairs of classes and vote, as those of ``SVC`` and some of ours
        for more than two classes, in the order (0, 1), (0, 2), ...; else one machine for each
        class.
    break_ties_ : bool
        Whether `decision_function` decides between classes with the same votes: as ``SVC`` says,
        and always for machines of this library.
    kernel_, gamma_, degree_, coef0_ : str or Kernel, float, float, float
        The kernel.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_iter_ : int
        Steps of all searches.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SparseMarginClassifier : Vectors placed for the SVM's own objective, which is usually better.
    ReducedSVMClassifier : Random rows as vectors.

    Notes
    -----
    Where rows are repeated or weighted, equal ones are merged before an estimator is fitted. A copy
    of this object by ``sklearn.base.clone``, as in cross-validation, has an estimator that is not
    fitted, unless it is in a ``FrozenEstimator``.

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006, section 4.1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> from widemargin import ReducedSetClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svm = SVC().fit(scale(X), y)
    >>> small = ReducedSetClassifier(svm, n_vectors=5, random_state=0).fit(scale(X))
    >>> small.expansion_vectors_.shape, bool(small.score(scale(X), y) > 0.95)
    ((5, 30), True)
    """

    _doc_link_module = doc_links.MODULE
    _doc_link_template = doc_links.TEMPLATE

    estimator: Any = positional(None)
    n_vectors: float = positional(0.1, check.vectors_or_share)
    method: str = keyword("rs", check.choice("rs", "mrs"))
    n_restarts: int = keyword(10, check.count)
    refine: bool = keyword(True)
    max_iter: int = keyword(100, check.count)
    memory: int | str = keyword("auto")
    n_jobs: int | None = keyword(None)
    random_state: Any = keyword(None)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ReducedSetClassifier:
        """Fit the estimator if it is not fitted, and compress it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows. With a fitted estimator and ``method="rs"`` they are not looked at.
        y : array-like of shape (n_samples,), default=None
            Labels; needed as the rows are.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted classifier.
        """
        check_parameters(self)
        check_memory(self.memory)
        given = SVC() if self.estimator is None else self.estimator
        if isinstance(given, FrozenEstimator):
            given = given.estimator
        trained.check_compressible(given)
        fitted = trained.is_fitted(given)
        if y is None and not (fitted and self.method == "rs"):
            raise ValueError(
                "ReducedSetClassifier requires y to be passed, but the target y is None; labels "
                "are needed for method='mrs', and for an estimator that is not fitted."
            )
        if y is None:
            validate_data(self, X, **_CHECKS)
            distinct = None
        else:
            X, y = validate_data(self, X, y, **_CHECKS)
            distinct_labels(y)
            check_classification_targets(y)
            weight = checked_weights(X, sample_weight)
            code = trained.codes(y, weight, given.classes_ if fitted else None)
            distinct = distinct_rows(self._rows(X), code, weight)
        with single_threaded_blas():
            if distinct is not None and not fitted:
                given = trained.fitted_copy(given, X, y, weight, distinct)
            self._reduce(given, distinct)
        return self

    def _rows(self, X: Any) -> Rows:
        return as_rows(X, memory=parse_memory(self.memory), threads=n_threads(self.n_jobs))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the signed margin of each row, one column a class if there are more than two.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class, or largest for the predicted one. Where machines vote:
            the votes, and within them the sum of the margins, as ``SVC`` has it.
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if not self.pairwise_:
            return values
        scores: Matrix = _ovr_decision_function(values <= 0, -values, len(self.classes_))
        return scores

    def _values(self, X: Any) -> Matrix:
        """Return the values of all machines."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_CHECKS)
        kernel = make_kernel(
            self.kernel_, gamma=self.gamma_, degree=self.degree_, coef0=self.coef0_
        )
        coef = np.ascontiguousarray(self.coef_.T)
        machines = Expansion(kernel, self.expansion_vectors_, coef, self.intercept_)
        with single_threaded_blas():
            return machines.values(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        if self.pairwise_ and not self.break_ties_:
            # Votes without the margins, which are less than half a vote.
            scores = np.rint(scores)
        return winners(self.classes_, scores)

    # The steps of `fit`.

    def _reduce(self, estimator: Any, distinct: Distinct | None) -> None:
        """Compress the machines of a fitted estimator, and set the attributes."""
        # The one that cross-validation chose.
        estimator = getattr(estimator, "best_estimator_", estimator)
        # An engine of its choice may have made cells.
        trained.check_compressible(estimator)
        svm = trained.machines_of(estimator)
        d = svm.vectors.shape[1]
        if d != self.n_features_in_:
            raise ValueError(
                f"X has {self.n_features_in_} features, but the estimator was fitted to {d}; give "
                "the rows that it was fitted to."
            )
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rngs = np.random.default_rng(seed).spawn(len(svm.intercept))
        threads = n_threads(self.n_jobs)

        def one(p: int) -> Reduced:
            return self._reduced(svm, p, rngs[p])

        found = list(ordered_map(one, range(len(rngs)), threads))
        vectors, coef = [each.vectors for each in found], [each.coef for each in found]
        self.intercept_ = svm.intercept.copy()
        if self.method == "mrs" and distinct is not None:
            coef, self.intercept_ = trained.fitted_again(estimator, svm, distinct, vectors, threads)
        self.classes_ = estimator.classes_
        self.kernel_, self.gamma_ = estimator.kernel, svm.gamma
        self.degree_, self.coef0_ = estimator.degree, estimator.coef0
        self.pairwise_ = svm.pairwise
        # Our own pairs always do.
        self.break_ties_ = bool(getattr(estimator, "break_ties", svm.pairwise))
        self.expansion_vectors_ = np.concatenate(vectors)
        self.coef_ = block_diag(*coef)
        self.vector_problem_ = np.repeat(np.arange(len(coef)), [len(beta) for beta in coef])
        self.n_vectors_ = len(self.expansion_vectors_)
        self.distance_ = [each.distance for each in found]
        self.n_iter_ = max(1, sum(each.n_iter for each in found))

    def _reduced(self, svm: Trained, p: int, rng: np.random.Generator) -> Reduced:
        """Return one machine with few vectors."""
        used = np.flatnonzero(svm.coef[:, p])
        if not len(used):
            used = np.arange(1)
        count = self.n_vectors
        if not isinstance(count, Integral):
            count = max(1, round(count * len(used)))
        return reduced(
            Combination(svm.kernel, svm.vectors[used], svm.coef[used, p]),
            int(count),
            rng,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            refine=self.refine,
        )
