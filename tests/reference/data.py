"""Small data sets that tests share."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.preprocessing import scale

# Files that are read once; what tests get are copies of their rows.
_digits = cache(lambda: load_digits(return_X_y=True))
_wine = cache(lambda: load_wine(return_X_y=True))
_breast_cancer = cache(lambda: load_breast_cancer(return_X_y=True))


def whole_digits(n_classes: int = 10, n_rows: int | None = None):
    """Digits below `n_classes`, their 64 pixels whole numbers from 0 to 16."""
    X, y = _digits()
    kept = np.flatnonzero(y < n_classes)[:n_rows]
    return X[kept], y[kept]


def digits(n_classes: int = 3, n_rows: int | None = 150):
    """Digits below `n_classes`, their pixels in sixteenths: many are zero."""
    X, y = whole_digits(n_classes, n_rows)
    return X / 16.0, y


def wine(step: int = 1):
    """Three classes with 13 features of unit variance."""
    X, y = _wine()
    return scale(X)[::step], y[::step].copy()


def moons(n_rows: int = 120, noise: float = 0.2):
    """Two classes in the plane, one around the other."""
    return make_moons(n_rows, noise=noise, random_state=0)


def breast_cancer():
    """Two classes with 30 features of unit variance."""
    X, y = _breast_cancer()
    return scale(X), y.copy()


def three_or_eight():
    """Two digits that look alike."""
    X, y = _digits()
    chosen = np.isin(y, (3, 8))
    return X[chosen] / 16.0, y[chosen]


def signs(y, positive=None):
    """Labels ±1: the largest label, or a given one, against the rest."""
    return np.where(y == (np.max(y) if positive is None else positive), 1.0, -1.0)


def groups(c: int = 6, d: int = 8, n: int = 300, seed: int = 0, spread: float = 2.0):
    """Classes with one covariance, their means at random."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % c)
    mix = rng.normal(size=(d, d))
    return spread * rng.normal(size=(c, d))[y] @ mix + rng.normal(size=(n, d)) @ mix, y


def pairs_of_clusters(n: int, d: int, n_classes: int, seed: int):
    """Classes of two clusters each, of unequal size and scale."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.standard_normal((2 * n_classes, d)) * 3
    own = centres[2 * y + rng.integers(2, size=n)]
    return own + rng.standard_normal((n, d)) * rng.uniform(0.3, 2, d), y
