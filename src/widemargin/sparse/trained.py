"""What a reduced set is made of: the machines of a trained SVM, ours or scikit-learn's.

Every machine is f_p(x) = Σ_i a_ip k(x_i, x) + b_p. Ours are one for two classes, and one a class or
one a pair of classes for more. ``SVC`` has one for each pair of classes i < j, positive for i where
there are more than two classes; so have ours. Our ``dual_coef_`` has a row for each pair. In that
of ``SVC``, the coefficient of a support vector of class i against class j is in row j − 1, and that
of one of class j against i in row i.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Codes, Matrix, Vector
from widemargin.base.estimator import KernelEstimator, dense
from widemargin.kernels import Kernel, make_kernel, resolve_gamma
from widemargin.problem import (
    Problem,
    class_factors,
    codes_among,
    encoded,
    one_vs_one,
    one_vs_rest,
)
from widemargin.rows import Distinct, weighted_moments
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.marginal import Marginal
from widemargin.sparse.squared_marginal import Squared
from widemargin.threads import ordered_map

_SKLEARN = (SVC, NuSVC)


@dataclass(frozen=True)
class Trained:
    """The machines of a trained SVM.

    Attributes
    ----------
    kernel : Kernel
        k, with a gradient.
    gamma : float
        Its width.
    vectors : ndarray of shape (m, d)
        x.
    coef : ndarray of shape (m, n_problems)
        a.
    intercept : ndarray of shape (n_problems,)
        b.
    table : ndarray of shape (n_classes, n_problems)
        The label of each class in each problem: ±1, or 0 if it takes no part.
    pairwise : bool
        Whether problems are pairs of more than two classes.
    """

    kernel: Kernel
    gamma: float
    vectors: Matrix
    coef: Matrix
    intercept: Vector
    table: Matrix
    pairwise: bool


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def check_compressible(estimator: Any) -> None:
    """Raise unless an estimator is a kernel classifier whose kernel has a gradient."""
    if not (isinstance(estimator, (*_SKLEARN, KernelEstimator)) and is_classifier(estimator)):
        raise TypeError(
            f"estimator={estimator!r} is not a kernel SVM; give an SVC, or a classifier of this "
            "library such as MarginClassifier()."
        )
    if getattr(estimator, "engine", "") == "cells" or hasattr(estimator, "cell_centers_"):
        raise ValueError(
            f"estimator={estimator!r} has a machine for each cell, which cannot be compressed into "
            "one; fit it with engine='exact' or engine='span'."
        )
    if not _kernel(estimator, 1.0).differentiable:
        raise ValueError(
            f"estimator has kernel={estimator.kernel!r}, which has no gradient, so that its "
            "vectors cannot be moved; fit it to the rows with a kernel such as 'rbf'."
        )


def fitted_copy(estimator: Any, X: Any, y: NDArray[Any], weight: Vector, distinct: Distinct) -> Any:
    """Return an estimator fitted to rows, so that a row of weight k is the same as k copies of it.

    Parameters
    ----------
    estimator : classifier
        Not changed.
    X : array or CSR matrix of shape (n, d)
        Rows.
    y : ndarray of shape (n,)
        Labels.
    weight : ndarray of shape (n,)
        Their weights.
    distinct : Distinct
        The different ones among them.
    """
    copy = clone(estimator)
    index = distinct.index
    if len(index) == len(y) and (weight == 1.0).all():
        return copy.fit(X, y)
    if isinstance(copy, _SKLEARN):
        # What SVC would make of numbers of rows, and we of weights.
        if isinstance(copy.gamma, str):
            moments = weighted_moments(distinct.rows, distinct.weight)
            copy.set_params(gamma=resolve_gamma(copy.gamma, moments.mean, moments.variance))
        if isinstance(copy.class_weight, str):
            classes = np.unique(y[index])
            factor = class_factors(copy.class_weight, classes, y[index], distinct.weight)
            copy.set_params(class_weight=dict(zip(classes.tolist(), factor, strict=True)))
    return copy.fit(X[index], y[index], sample_weight=distinct.weight)


def codes(y: NDArray[Any], weight: Vector, known: NDArray[Any] | None) -> Codes:
    """Return each row's number among the classes, which an estimator may have fixed."""
    if known is None:
        return encoded(y, weight)[1]
    complaint = (
        "a class that the estimator was not fitted to; give the rows and labels that it was fitted "
        "to."
    )
    code = codes_among(known, y, weight, complaint)
    if len(np.unique(code[weight > 0])) < len(known):
        raise ValueError(
            "y lacks a class that the estimator was fitted to; give the rows and labels that it "
            "was fitted to."
        )
    return code


def machines_of(estimator: Any) -> Trained:
    """Return the machines of a fitted estimator."""
    if hasattr(estimator, "column_centers_"):
        raise ValueError(
            f"estimator={estimator!r} sees other rows than those given, by its scale or metric; "
            "scale the rows before the fit, and leave both at None."
        )
    # SVC keeps to itself what "scale" was.
    gamma = estimator._gamma if isinstance(estimator, _SKLEARN) else estimator.gamma_
    vectors = np.ascontiguousarray(dense(estimator.support_vectors_), dtype=np.float64)
    coef = np.asarray(dense(estimator.dual_coef_), dtype=np.float64)
    k = len(estimator.classes_)
    kernel = _kernel(estimator, float(gamma))
    theirs = isinstance(estimator, _SKLEARN)
    pairwise = k > 2 and (theirs or getattr(estimator, "multi_class_", "ovr") == "ovo")
    table = one_vs_one(k) if pairwise else one_vs_rest(k)
    coef = _a_column_each(coef, estimator.n_support_) if pairwise and theirs else coef.T
    intercept = np.asarray(estimator.intercept_, dtype=np.float64)
    return Trained(kernel, float(gamma), vectors, coef, intercept, table, pairwise)


def fitted_again(
    estimator: Any, svm: Trained, distinct: Distinct, vectors: list[Matrix], threads: int
) -> tuple[list[Vector], Vector]:
    """Return coefficients and biases of an estimator's own SVM in the span of given vectors, (45).

    Parameters
    ----------
    estimator : classifier
        Fitted; it decides on the loss, C and the weights of classes.
    svm : Trained
        Its machines.
    distinct : Distinct
        The training rows.
    vectors : list of ndarray of shape (t, d)
        The vectors of each machine.
    threads : int
        Threads; BLAS is expected to use one.
    """
    C = getattr(estimator, "C_", estimator.get_params(deep=False).get("C"))
    if C is None:
        raise ValueError(
            f"method='mrs' fits the SVM again and needs its C, but {type(estimator).__name__} has "
            "none; use method='rs', or an SVC."
        )
    name = getattr(estimator, "loss", "hinge" if isinstance(estimator, SVC) else "squared_hinge")
    loss: type[Hinge | Squared] = Hinge if name == "hinge" else Squared
    code, weight, classes = distinct.code, distinct.weight, estimator.classes_
    if isinstance(estimator, _SKLEARN):
        factor = estimator.class_weight_
    else:
        factor = class_factors(estimator.class_weight, classes, classes[code], weight)
    weight = weight * factor[code]

    def again(p: int) -> Marginal:
        taking_part = np.flatnonzero(svm.table[code, p])
        rows, table = distinct.rows.subset(taking_part), svm.table[:, [p]]
        labels, weights = code[taking_part], weight[taking_part]
        machine = loss(Problem.of(rows, svm.kernel, labels, table, weights, float(C)))
        return machine(vectors[p])

    found = list(ordered_map(again, range(len(vectors)), threads))
    return [each.beta[:, 0] for each in found], np.array([each.intercept[0] for each in found])


def _a_column_each(dual: Matrix, sizes: NDArray[Any]) -> Matrix:
    """Return the coefficients of SVC's pairs of classes, a column each."""
    k = len(sizes)
    pairs = list(combinations(range(k), 2))
    owner = np.repeat(np.arange(k), sizes)
    coef = np.zeros((dual.shape[1], len(pairs)))
    for p, (i, j) in enumerate(pairs):
        coef[owner == i, p] = dual[j - 1, owner == i]
        coef[owner == j, p] = dual[i, owner == j]
    return coef


def _kernel(estimator: Any, gamma: float) -> Kernel:
    return make_kernel(
        estimator.kernel,
        gamma=gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        kernel_params=getattr(estimator, "kernel_params", None),
    )
