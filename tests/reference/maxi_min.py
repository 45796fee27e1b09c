"""The Maxi-Min criterion in plain form: every pair listed, every problem as it is written."""

import cvxpy as cp
import numpy as np


def all_pairs(means):
    """Return the numbers of the classes of every pair, and the differences of their means."""
    first, second = np.triu_indices(len(means), 1)
    return first, second, means[first] - means[second]


def smallest_distance(means, W=None):
    """Return the smallest squared distance of two means, projected on the columns of W."""
    Y = means if W is None else means @ W
    least = np.inf
    for i in range(len(Y)):
        for j in range(i):
            least = min(least, float(((Y[i] - Y[j]) ** 2).sum()))
    return least


def relaxation_value(Q, means, C=np.inf, power=1):
    """Return ½‖Q‖² + C Σ max(0, 1 − δᵀQδ)^power; for infinite C, of the least feasible multiple."""
    delta = all_pairs(means)[2]
    distance = np.array([d @ Q @ d for d in delta])
    if np.isinf(C):
        return 0.5 * np.sum(Q * Q) / distance.min() ** 2
    return 0.5 * np.sum(Q * Q) + C * np.sum(np.maximum(0.0, 1.0 - distance) ** power)


def semidefinite(means, C=np.inf, power=1):
    """Return Q and the value of (7), or of (11) with its errors to some power: CVXPY's answer.

    Slacks and the constraint Q ⪰ 0 are stated as the paper does. The means should be of order one.
    """
    k = means.shape[1]
    delta = all_pairs(means)[2]
    Q = cp.Variable((k, k), symmetric=True)
    # trace(Q δδᵀ) for all pairs at once.
    outer = np.stack([np.outer(d, d).ravel() for d in delta])
    apart = outer @ cp.vec(Q, order="C")
    constraints = [Q >> 0]
    value = cp.sum_squares(Q) / 2
    if np.isinf(C):
        constraints.append(apart >= 1)
    else:
        slack = cp.Variable(len(delta), nonneg=True)
        constraints.append(apart >= 1 - slack)
        value = value + C * (cp.sum(slack) if power == 1 else cp.sum_squares(slack))
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    return 0.5 * (Q.value + Q.value.T), float(problem.value)


def algorithm_1(pairs, means, lam):
    """Return every Q of Algorithm 1, and what it adds up in (20); `pairs` are those it receives."""
    k = means.shape[1]
    Q, added, steps = np.zeros((k, k)), np.zeros((k, k)), []
    for t, (i, j) in enumerate(pairs, start=1):
        S = np.outer(means[i] - means[j], means[i] - means[j])
        if np.trace(Q @ S) < 1:
            Q = (1 - 1 / t) * Q + S / (lam * t)
            added = added + S
        else:
            Q = (1 - 1 / t) * Q
        steps.append(Q)
    return steps, added


def soft_minimum(D, share, rate):
    """Return −(1/s) log Σ w_ij exp(−s D_ij) over the pairs, w the products of shares, sum 1."""
    first, second = np.triu_indices(len(D), 1)
    weight = share[first] * share[second]
    weight = weight / weight.sum()
    exponent = -rate * D[first, second]
    most = exponent.max()
    return -(most + np.log(weight @ np.exp(exponent - most))) / rate


def distances(Y):
    """Return the squared distances between rows, from differences."""
    return ((Y[:, None] - Y[None]) ** 2).sum(axis=-1)


def soft_criterion(means, share, W, sharpness):
    """Return F_s(W) for any W of full rank, by its orthonormal columns."""
    Y = means @ np.linalg.qr(W)[0]
    if np.isinf(sharpness):
        return smallest_distance(Y)
    return soft_minimum(distances(Y), share, sharpness / 8)


def whitened_means(X, y, weight=None, shrinkage=0.0):
    """Return the class means where the shrunk within-class covariance is the identity."""
    weight = np.ones(len(X)) if weight is None else weight
    labels = np.unique(y)
    means = np.array([np.average(X[y == k], axis=0, weights=weight[y == k]) for k in labels])
    rest = X - means[np.searchsorted(labels, y)]
    S = (rest.T * weight) @ rest / weight.sum()
    S = (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S))
    value, vector = np.linalg.eigh(S)
    return (means - means.mean(axis=0)) @ (vector / np.sqrt(value))
