"""A kernel machine on a Dask cluster: ``python examples/cluster.py [scheduler-address]``.

Without an address it starts two worker processes on this machine; with one (``tcp://host:8786``, as
``dask scheduler`` prints it) it uses the workers that are there. Rows are made by blocks, each on
the worker that needs it: no process ever holds all of them. To use rows of your own, put a Dask
array in the place of ``generated``, such as ``dask.array.from_zarr(...)``, or columns of
``dask.dataframe.read_parquet(...)``; the rest stays the same.

It needs ``pip install "dask[array]" distributed`` beside widemargin, here and on the workers.
"""

from __future__ import annotations

import sys

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from widemargin import MarginClassifier

BLOCK_ROWS = 25_000
TRAIN_BLOCKS = 16
TEST_BLOCKS = 2
COLUMNS = 10


def block(seed: int) -> np.ndarray:
    """Return rows of two classes that overlap, eight Gaussians each; the label comes last."""
    centers = np.random.default_rng(0).normal(size=(2, 8, COLUMNS))
    rng = np.random.default_rng([1, seed])
    y = rng.integers(2, size=BLOCK_ROWS)
    X = centers[y, rng.integers(8, size=BLOCK_ROWS)] + 0.87 * rng.normal(size=(BLOCK_ROWS, COLUMNS))
    return np.column_stack((X, y)).astype(np.float32)


def generated(seeds: range) -> tuple[da.Array, da.Array]:
    """Return rows and labels, a block for each seed, which workers make when they need it."""
    shape = (BLOCK_ROWS, COLUMNS + 1)
    blocks = [da.from_delayed(delayed(block)(seed), shape, np.float32) for seed in seeds]
    table = da.concatenate(blocks)
    return table[:, :COLUMNS], table[:, COLUMNS].astype(int)


def main(client: Client) -> None:
    """Fit on the cluster, say how good the answer is, and predict there."""
    X, y = generated(range(TRAIN_BLOCKS))
    X_test, y_test = generated(range(TRAIN_BLOCKS, TRAIN_BLOCKS + TEST_BLOCKS))
    print(f"{len(client.ncores())} workers, {len(X):,} rows in {X.numblocks[0]} chunks")
    machine = MarginClassifier(
        engine="span", max_vectors=500, gamma="mean_distance", random_state=0, verbose=1
    )
    machine.fit(X, y)
    print(machine.certificate_)
    # Lazy: workers predict their blocks when the mean is asked for, and only a number comes back.
    right = da.asarray(machine.predict(X_test)) == y_test
    print(f"accuracy on {len(y_test):,} other rows: {float(right.mean().compute()):.1%}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as there:
            main(there)
    else:
        with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as here:
            main(here)
