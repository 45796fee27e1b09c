"""Classifiers in a projection: nearest neighbours, nearest class mean, and a quadratic one.

Each takes the projections of the training and the test rows and returns accuracies in percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.fits import percent

NEIGHBOURS = (1, 3, 5, 7, 9)
# Weight of the common covariance in that of a class, by held-out drawings of Omniglot's 242
# classes: 15 drawings tell little of a covariance of their own.
REGULARISATION = 0.6
# Share of the largest eigenvalue below which a variance is rounding.
ROUNDING = 1e-12


def neighbours(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> dict[int, float]:
    """Accuracy of 1, 3, 5, 7 and 9 nearest neighbours."""
    from sklearn.neighbors import KNeighborsClassifier

    found = {}
    for k in NEIGHBOURS:
        machine = KNeighborsClassifier(k, n_jobs=threads).fit(train, y)
        found[k] = percent(machine.predict(test), y_test)
    return found


def class_means(rows: np.ndarray, code: np.ndarray, n_classes: int) -> np.ndarray:
    """The mean row of each class; every class must have rows."""
    sums = np.zeros((n_classes, rows.shape[1]))
    np.add.at(sums, code, rows)
    return sums / np.bincount(code, minlength=n_classes)[:, None]


def nearest_mean(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, block: int = 2000
) -> float:
    """The class whose mean is nearest (Euclidean, in the projection)."""
    labels, code = np.unique(y, return_inverse=True)
    means = class_means(train, code, len(labels))
    size = np.einsum("ij,ij->i", means, means)
    right = 0
    for start in range(0, len(test), block):
        part = slice(start, start + block)
        found = np.argmin(size - 2.0 * test[part] @ means.T, axis=1)
        right += int(np.sum(labels[found] == y_test[part]))
    return 100.0 * right / len(y_test)


def whitener(rows: np.ndarray, code: np.ndarray, means: np.ndarray) -> np.ndarray:
    """A matrix that makes the within-class covariance of the rows the identity."""
    away = rows - means[code]
    values, vectors = np.linalg.eigh(away.T @ away / len(rows))
    kept = values > ROUNDING * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def smallest_distance(rows: np.ndarray, y: np.ndarray) -> float:
    """The smallest squared Mahalanobis distance of two class means in a projection.

    It is that of the subspace, whatever the scale of the features.
    """
    from scipy.spatial.distance import pdist

    labels, code = np.unique(y, return_inverse=True)
    means = class_means(rows, code, len(labels))
    return float(pdist(means @ whitener(rows, code, means), "sqeuclidean").min())


def quadratic(
    train: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    y_test: np.ndarray,
    regularisation: float = REGULARISATION,
) -> float:
    """Normal densities whose covariances are mixed with the one common to all classes.

    After whitening by that, a class has (1 − r) S_c + r I: r along all but the few directions of
    its own rows. MQDF has a constant variance there too. `QuadraticDiscriminantAnalysis` with
    ``reg_param=r`` is the same where a class has more rows than dimensions.
    """
    r = regularisation
    labels, code = np.unique(y, return_inverse=True)
    means = class_means(train, code, len(labels))
    white = whitener(train, code, means)
    train, test, means = train @ white, test @ white, means @ white
    prior = np.log(np.bincount(code) / len(code))
    order = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    best, found = np.full(len(test), -np.inf), np.zeros(len(test), dtype=np.intp)
    for number, (rows, mean) in enumerate(zip(order, means, strict=True)):
        _, size, axes = np.linalg.svd(train[rows] - mean, full_matrices=False)
        variance = (1.0 - r) * size**2 / max(1, len(rows) - 1) + r
        away = test - mean
        square = np.einsum("ij,ij->i", away, away) / r
        square -= (away @ axes.T) ** 2 @ (1.0 / r - 1.0 / variance)
        logarithm = np.log(variance).sum() + (len(mean) - len(size)) * np.log(r)
        score = prior[number] - 0.5 * (square + logarithm)
        better = score > best
        best[better], found[better] = score[better], number
    return percent(labels[found], y_test)


def scores_of(
    names: Sequence[str],
    train: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    y_test: np.ndarray,
    threads: int,
) -> dict[str, Any]:
    """Accuracies of the classifiers of these names: "knn", "mean" and "quadratic"."""
    found: dict[str, Any] = {}
    if "knn" in names:
        found["knn"] = neighbours(train, y, test, y_test, threads)
    if "mean" in names:
        found["mean"] = nearest_mean(train, y, test, y_test)
    if "quadratic" in names:
        found["quadratic"] = quadratic(train, y, test, y_test)
    return found
