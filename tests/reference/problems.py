"""Problems from rows and labels, as the engines take them."""

from __future__ import annotations

import numpy as np

from widemargin.kernels import make_kernel, resolve_gamma
from widemargin.problem import Problem, encoded, one_vs_rest
from widemargin.rows import as_rows, distinct_rows, weighted_moments


def problem_of(
    X,
    y,
    weight=None,
    *,
    C=1.0,
    kernel="rbf",
    gamma="scale",
    degree=3,
    coef0=0.0,
    memory=10**9,
    threads=1,
    folds=None,
):
    """One-vs-rest problems of the classes, equal rows merged unless folds keep them apart."""
    y = np.asarray(y)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    classes, code = encoded(y, weight)
    rows = as_rows(X, memory=memory, threads=threads)
    key = code if folds is None else code + len(classes) * folds.kind
    distinct = distinct_rows(rows, key, weight)
    moments = weighted_moments(distinct.rows, distinct.weight)
    width = resolve_gamma(gamma, moments.mean, moments.variance)
    return Problem.of(
        distinct.rows,
        make_kernel(kernel, gamma=width, degree=degree, coef0=coef0),
        code[distinct.index],
        one_vs_rest(len(classes)),
        distinct.weight,
        C,
        distinct.index,
        distinct.place,
    )
