"""Every way to a direction of `MaxMarginDA`, and the small data sets that its tests share."""

from __future__ import annotations

import pytest

from tests.reference import data
from widemargin import MaxMarginDA

GAMMA = 0.05
# Every way to a direction: the solvers of a kernel, of the input space, and of the hinge.
WAYS = {
    "deflation": {"solver": "deflation"},
    "direct": {"solver": "direct"},
    "span": {"solver": "span", "max_vectors": 40},
    "core": {"solver": "core"},
    "linear": {"kernel": "linear"},
    "linear deflation": {"kernel": "linear", "solver": "deflation"},
    "linear core": {"kernel": "linear", "solver": "core"},
    "hinge": {"loss": "hinge"},
    "direct hinge": {"loss": "hinge", "solver": "direct"},
    "linear hinge": {"kernel": "linear", "loss": "hinge"},
}
every_way = pytest.mark.parametrize("way", WAYS)
KERNEL_SOLVERS = ["deflation", "direct", "span", "core"]
every_kernel_solver = pytest.mark.parametrize("way", KERNEL_SOLVERS)


def wine(step=2):
    return data.wine(step)


def digits(n_classes=3, n_rows=150):
    return data.digits(n_classes, n_rows)


def da(n_directions=2, way="deflation", **parameters):
    start = {"kernel": "rbf", "gamma": GAMMA, "random_state": 0, "n_jobs": 1}
    return MaxMarginDA(n_directions, **start | WAYS[way] | parameters)


def fine(n_directions=2, way="deflation", **parameters):
    """With an answer so sharp that it can be compared; the vectors of "span" are all rows."""
    sharp = {"tol": 1e-12, "epsilon": 1e-9, "vectors": "random", "max_vectors": 10_000}
    return da(n_directions, way, **sharp | parameters)
