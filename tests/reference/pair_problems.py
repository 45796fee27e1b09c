"""Random means of classes, their pairs, and the exact solution of the relaxation."""

import numpy as np

from tests.reference.maxi_min import distances
from widemargin.loop import Limits, run
from widemargin.pairs.class_pairs import ClassPairs
from widemargin.pairs.pair_program import PairProgram


def random_means(seed, most_classes=12, most_columns=20):
    """Class means of any shape, in units of their median distance."""
    rng = np.random.default_rng(seed)
    c, k = int(rng.integers(2, most_classes + 1)), int(rng.integers(1, most_columns + 1))
    means = rng.normal(size=(c, k)) * rng.uniform(0.3, 1.0, size=k)
    means -= means.mean(axis=0)
    return rng, means / np.sqrt(np.median(distances(means)[np.triu_indices(c, 1)]))


def classes_of(means, prior=None, threads=1, **ways):
    return ClassPairs(means, np.ones(len(means)) if prior is None else prior, threads, **ways)


def solved(means, C=np.inf, squared=False, batch=None):
    return run(PairProgram(classes_of(means), C, squared=squared, batch=batch), Limits())
