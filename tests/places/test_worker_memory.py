"""What a worker needs, by the formula of docs/scale.md."""

import tracemalloc

import numpy as np
import pytest

from widemargin.kernels import make_kernel
from widemargin.places.loading import ShardPlan, load, shard_of
from widemargin.problem import one_vs_rest
from widemargin.span.shard import GramPlan

# Bytes for blocks of rows, which do not depend on how many rows there are.
BLOCKS = 16_000_000


def needed(n, d, itemsize, t, p):
    """The formula, without kernel values."""
    return n * (itemsize * d + 60 + 8 * p) + 24 * t**2


@pytest.mark.parametrize(("n", "d", "t", "n_classes"), [(200_000, 10, 50, 2), (20_000, 30, 600, 5)])
def test_a_shard_takes_what_the_formula_says(n, d, t, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = rng.integers(n_classes, size=n)
    table = one_vs_rest(n_classes)
    p = table.shape[1]
    plan = ShardPlan(
        make_kernel("rbf", gamma=0.1),
        np.arange(n_classes),
        table,
        np.ones(n_classes),
        1.0,
        0,
        np.dtype(np.float32),
        0,
        t,
        100_000_000,
        1,
    )

    def work():
        half = n // 2
        loaded = load(0, d, [(X[:half], y[:half], None), (X[half:], y[half:], None)])
        shard = shard_of(loaded, plan)
        del loaded
        live = np.arange(p)
        shard.add(X[:t])
        shard.score(np.full((t + 1, p), 1e-3), 0, n)
        shard.pull(n, live, True, None)
        shard.look_along(np.full((t + 1, p), 1e-3), live, n, n, np.zeros((1, p)))
        shard.advance(live, np.ones(p))
        shard.gram(GramPlan((0,), n, 8 * t, None, False, True, True))

    work()
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    formula = needed(n, d, 4, t, p)
    # The formula may not promise too little, nor ask for a multiple.
    assert formula / 2 < peak < 1.1 * formula + BLOCKS
