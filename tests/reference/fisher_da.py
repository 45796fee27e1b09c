"""Fisher's criterion and its kin in plain loops and plain generalised eigenproblems."""

from math import erf, sqrt

import numpy as np
from scipy.linalg import eigh, subspace_angles


def scatter_by_loops(X, y, weight):
    """Return weights, means and within-class scatter of the classes 0, 1, ..., row by row."""
    c, d = int(max(y)) + 1, X.shape[1]
    total, mean, within = np.zeros(c), np.zeros((c, d)), np.zeros((d, d))
    for row, label, s in zip(X, y, weight, strict=True):
        total[label] += s
        mean[label] += s * row
    mean /= np.where(total > 0, total, 1.0)[:, None]
    for row, label, s in zip(X, y, weight, strict=True):
        within += s * np.outer(row - mean[label], row - mean[label])
    return total, mean, within


def fisher(X, y, weight=None, priors=None, pair_weight=lambda distance: 1.0, covariance=None):
    """Return eigenvectors (as columns, the best first) and eigenvalues of the pairwise criterion.

    The generalised eigenproblem of S_b = Σ_{i<j} p_i p_j w(D_ij) (m_i − m_j)(m_i − m_j)ᵀ and the
    within-class covariance, one pair of classes at a time.
    """
    weight = np.ones(len(X)) if weight is None else weight
    total, mean, within = scatter_by_loops(X, y, weight)
    priors = total / total.sum() if priors is None else priors
    if covariance is None:
        covariance = np.zeros_like(within)
        for k in range(len(total)):
            of_class = scatter_by_loops(X[y == k], np.zeros(sum(y == k), int), weight[y == k])[2]
            covariance += priors[k] * of_class / total[k]
    between = np.zeros_like(within)
    for i in range(len(total)):
        for j in range(i):
            delta = mean[i] - mean[j]
            distance = sqrt(delta @ np.linalg.solve(covariance, delta))
            between += priors[i] * priors[j] * pair_weight(distance) * np.outer(delta, delta)
    value, vector = eigh(between, covariance)
    return vector[:, ::-1], value[::-1]


def accuracy_weight(distance):
    """Return the weight of a pair of classes by Loog, Duin and Haeb-Umbach."""
    return erf(distance / (2 * sqrt(2))) / (2 * distance**2)


def kernel_fisher(K, y, weight, regularization):
    """Return values on the rows (a column a direction) and eigenvalues of kernel Fisher analysis.

    In the coefficients a of w = Σ a_i φ(x_i), with K positive definite: the between-class matrix
    M and the within-class matrix N of Mika et al., and aᵀKa for ‖w‖².
    """
    total = weight.sum()
    center = K @ weight / total
    M, N, variance = np.zeros_like(K), np.zeros_like(K), 0.0
    for k in np.unique(y):
        of_class = np.flatnonzero(y == k)
        s = weight[of_class]
        mean = K[:, of_class] @ s / s.sum()
        M += s.sum() / total * np.outer(mean - center, mean - center)
        for i, s_i in zip(of_class, s, strict=True):
            N += s_i / total * np.outer(K[:, i] - mean, K[:, i] - mean)
    for i, s_i in enumerate(weight):
        distance2 = K[i, i] - 2 * center[i] + weight @ K @ weight / total**2
        variance += s_i / total * distance2
    value, vector = eigh(M, N + regularization * variance * K)
    n_directions = len(np.unique(y)) - 1
    value, vector = value[::-1][:n_directions], vector[:, ::-1][:, :n_directions]
    return (K - center[:, None]).T @ vector, value


def angle_between(left, right):
    """Return the largest principal angle between the spans of two sets of columns."""
    return float(subspace_angles(left, right).max())


def same_up_to_signs(found, expected, **tolerance):
    """Columns may have the other sign."""
    sign = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * sign, expected, **tolerance)
