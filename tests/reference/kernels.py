"""Kernels as slow, obvious double loops in float64, to compare with."""

from __future__ import annotations

import math

import numpy as np


def linear(x, z, gamma, degree, coef0):
    return sum(a * b for a, b in zip(x, z, strict=True))


def poly(x, z, gamma, degree, coef0):
    return (gamma * linear(x, z, gamma, degree, coef0) + coef0) ** degree


def normalized_poly(x, z, gamma, degree, coef0):
    of_x = poly(x, x, gamma, degree, coef0)
    of_z = poly(z, z, gamma, degree, coef0)
    return poly(x, z, gamma, degree, coef0) / math.sqrt(of_x * of_z) if of_x * of_z > 0 else 0.0


def cosine_power(x, z, gamma, degree, coef0):
    return normalized_poly(x, z, 1.0, degree, 0.0)


def sigmoid(x, z, gamma, degree, coef0):
    return math.tanh(gamma * linear(x, z, gamma, degree, coef0) + coef0)


def squared_distance(x, z):
    return sum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def rbf(x, z, gamma, degree, coef0):
    return math.exp(-gamma * squared_distance(x, z))


def laplacian(x, z, gamma, degree, coef0):
    return math.exp(-gamma * sum(abs(a - b) for a, b in zip(x, z, strict=True)))


def inverse_distance(x, z, gamma, degree, coef0):
    return 1.0 / (math.sqrt(gamma) * math.sqrt(squared_distance(x, z)) + 1.0)


def exponential(x, z, gamma, degree, coef0):
    return math.exp(-math.sqrt(gamma * squared_distance(x, z)))


def inverse_squared_distance(x, z, gamma, degree, coef0):
    return 1.0 / (gamma * squared_distance(x, z) + 1.0)


PAIRWISE = {
    function.__name__: function
    for function in (
        linear,
        poly,
        normalized_poly,
        cosine_power,
        sigmoid,
        rbf,
        laplacian,
        exponential,
        inverse_distance,
        inverse_squared_distance,
    )
}


RADIAL = ("rbf", "laplacian", "exponential", "inverse_distance", "inverse_squared_distance")


def block(name, X, Z, *, gamma=1.0, degree=3, coef0=0.0):
    """k(x_i, z_j) for every pair, one pair at a time."""
    rows = np.asarray(X, dtype=np.float64).tolist()
    vectors = np.asarray(Z, dtype=np.float64).tolist()
    return np.array([[PAIRWISE[name](x, z, gamma, degree, coef0) for z in vectors] for x in rows])


def gradient(name, X, Z, weight, *, gamma=1.0, degree=3, coef0=0.0, step=1e-6):
    """Σ_i weight_ij ∂k(x_i, z_j)/∂z_j by central differences."""
    parameters = {"gamma": gamma, "degree": degree, "coef0": coef0}
    result = np.zeros(Z.shape)
    for j in range(Z.shape[0]):
        for k in range(Z.shape[1]):
            up, down = Z[[j]].copy(), Z[[j]].copy()
            up[0, k] += step
            down[0, k] -= step
            change = block(name, X, up, **parameters) - block(name, X, down, **parameters)
            result[j, k] = weight[:, j] @ change[:, 0] / (2 * step)
    return result
