"""The sets of the Maxi-Min benchmark: those of UCI, USPS, Omniglot, and generated ones.

Generated rows come from a seed, a block at a time where there are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.datasets import (
    NOTHING,
    RECIPES,
    Dataset,
    Recipe,
    arrays_of,
    every_row,
    labels,
    matrix,
    standardised,
)
from benchmarks.maximin.encodings import ENCODINGS

SEED = 0
DRAWINGS = 20
TRAIN_DRAWINGS = 15
STANDARDISED = ", standardised"
IN_ONE_RANGE = ", in [0, 1]"
OMNIGLOT = "https://github.com/brendenlake/omniglot"
FOLDER = {
    "tae": Recipe(every_row, "tae", where="UCI, Teaching Assistant Evaluation: tae.data"),
    "balance": Recipe(every_row, "balance_scale", where="UCI, Balance Scale: balance-scale.data"),
    "omniglot_small_242": Recipe(
        every_row, "omniglot_small_242", where=f"{OMNIGLOT} (small1: 242 classes, 35 × 35 pixels)"
    ),
    "omniglot_full_28x28": Recipe(
        every_row, "omniglot_full_28x28", where=f"{OMNIGLOT} (all 1,623 classes, 28 × 28 pixels)"
    ),
}


def plain_name(name: str) -> str:
    """The name without what is said of its scale."""
    return name.removesuffix(STANDARDISED).removesuffix(IN_ONE_RANGE)


def origin_of(name: str) -> str:
    """The set whose rows these are, in whatever scale and encoding."""
    name = plain_name(name)
    return ENCODINGS[name].origin if name in ENCODINGS else name


def loaded_as(name: str) -> str:
    """The recipe of `harness.datasets` that a child process loads for a set."""
    return origin_of(name) if origin_of(name) in RECIPES else NOTHING


def set_of(name: str, data: Dataset, classes: int | None = None) -> Dataset:
    """The set of that name; ``data`` is what the child process has loaded.

    ``classes`` keeps so many classes, the first ones.
    """
    name = plain_name(name)
    if name in ENCODINGS:
        whole = set_of(ENCODINGS[name].origin, data)
        X, y = ENCODINGS[name].change(whole.X_train, whole.y_train)
        return Dataset(name, X, y, X[:0], y[:0])
    if name in CLUSTERS:
        return clusters(CLUSTERS[name], classes)
    if name not in FOLDER:
        return data
    arrays = arrays_of(name, FOLDER[name])
    if name.startswith("omniglot"):
        return drawings(name, arrays, classes)
    return Dataset(name, *every_row(arrays))


def drawings(name: str, arrays: Any, classes: int | None) -> Dataset:
    """Of each class the first 15 drawings, in the order of the file, train; the other five test.

    A drawing is of one of 20 people, and the file has them in one order for all classes.
    """
    y = labels(arrays, "y")
    order = np.argsort(y, kind="stable").reshape(-1, DRAWINGS)[:classes]
    kept, held = order[:, :TRAIN_DRAWINGS].ravel(), order[:, TRAIN_DRAWINGS:].ravel()
    X = matrix(arrays, "X")
    return Dataset(name, X[kept], y[kept], X[held], y[held])


def in_one_scale(name: str, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns standardised, or moved to [0, 1], where the name of the set says so."""
    if name.endswith(STANDARDISED):
        return standardised(train.copy(), test.copy())
    if name.endswith(IN_ONE_RANGE):
        least, width = train.min(axis=0), np.ptp(train, axis=0)
        width[width == 0.0] = 1.0
        return (train - least) / width, (test - least) / width
    return train, test


# ---------------------------------------------------------------- classes in tight clusters


@dataclass(frozen=True)
class Clusters:
    """Classes in tight clusters; the noise is the identity in all dimensions.

    The centres of the clusters are normal with standard deviation ``spread`` in the first
    ``n_center`` dimensions; each class lies off its centre by a normal vector of standard
    deviation ``offset``, in the ``n_offset`` dimensions after these, or in all dimensions.
    """

    n_offset: int | None
    offset: float
    n_clusters: int = 200
    n_each: int = 5
    n_features: int = 100
    n_center: int = 30
    spread: float = 6.0
    rows: int = 200
    fresh: int = 50


CLUSTERS = {
    # √2 · 2 √6 ≈ 7 between two classes of a cluster, and 46 between clusters.
    "clusters, offsets of their own": Clusters(6, 2.0),
    # The same length of offsets, in any direction: ten dimensions show a tenth of it.
    "clusters, offsets anywhere": Clusters(None, 2.0 * np.sqrt(6 / 100)),
}


def clusters(kind: Clusters, classes: int | None = None) -> Dataset:
    """Training rows, and fresh ones to test; ``classes`` gives fewer clusters."""
    rng = np.random.default_rng(SEED)
    n_clusters = kind.n_clusters if classes is None else classes // kind.n_each
    d = kind.n_features
    center = np.zeros((n_clusters, d))
    center[:, : kind.n_center] = kind.spread * rng.standard_normal((n_clusters, kind.n_center))
    offset = np.zeros((n_clusters, kind.n_each, d))
    where = slice(None) if kind.n_offset is None else slice(kind.n_center, None)
    width = d if kind.n_offset is None else kind.n_offset
    offset[:, :, where][:, :, :width] = kind.offset * rng.standard_normal(
        (n_clusters, kind.n_each, width)
    )
    means = (center[:, None, :] + offset).reshape(-1, d)
    # Turned at random: no method shall profit from axes.
    means = means @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    parts = []
    for rows in (kind.rows, kind.fresh):
        y = np.repeat(np.arange(len(means)), rows)
        parts += [means[y] + rng.standard_normal((len(y), d)), y]
    return Dataset("clusters", *parts)


# ---------------------------------------------------------------- a stream


@dataclass(frozen=True)
class Source:
    """Rows of many classes, made block by block.

    Class means are normal with variances that fall as those of pixels do, from ``spread``² on;
    the noise has standard deviations from 0.5 to 2. Block i is the same whenever it is asked for.
    """

    n_classes: int
    n_features: int
    n_rows: int
    block: int = 10_000
    spread: float = 0.6
    seed: int = SEED

    @property
    def n_blocks(self) -> int:
        return -(-self.n_rows // self.block)

    def shape(self) -> tuple[np.ndarray, np.ndarray]:
        """The class means and the deviations of the noise."""
        rng = np.random.default_rng(self.seed)
        variance = self.spread**2 / (1.0 + np.arange(self.n_features) / 20.0)
        means = np.sqrt(variance) * rng.standard_normal((self.n_classes, self.n_features))
        return means, rng.uniform(0.5, 2.0, self.n_features)

    def rows_of(self, number: int, means: np.ndarray, noise: np.ndarray) -> tuple[Any, np.ndarray]:
        """Block ``number``; those from `n_blocks` on are fresh rows."""
        rng = np.random.default_rng((self.seed, number))
        rows = min(self.block, self.n_rows - number * self.block)
        y = rng.integers(self.n_classes, size=rows if rows > 0 else self.block)
        X = rng.standard_normal((len(y), self.n_features))
        X *= noise
        X += means[y]
        return X, y

    def blocks(self, order: np.ndarray | None = None) -> Iterator[tuple[Any, np.ndarray]]:
        """All blocks, in that order."""
        shape = self.shape()
        for number in range(self.n_blocks) if order is None else order:
            yield self.rows_of(int(number), *shape)


# ---------------------------------------------------------------- the paper's Figure 2

# Three classes in a row, and three of which two are close: the paper prints no coordinates.
FIGURE_2 = {
    "three classes in a row": ((-8.0, 0.0), (0.0, 0.0), (8.0, 0.0)),
    "two classes close": ((-6.0, 2.0), (-6.0, -2.0), (6.0, 0.0)),
}


def figure_2(name: str, rows: int = 250) -> tuple[np.ndarray, np.ndarray]:
    """250 rows a class, of a standard normal distribution about its mean (section 4.1)."""
    means = np.array(FIGURE_2[name])
    y = np.repeat(np.arange(len(means)), rows)
    return means[y] + np.random.default_rng(SEED).standard_normal((len(y), 2)), y
