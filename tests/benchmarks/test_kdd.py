"""Intrusion detection: the data."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import datasets


def test_intrusion_is_one_hot_standardised_and_binary(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)).astype(np.float32)
    X[:, 1] = np.arange(60) % 3
    np.savez(
        folder / "kddcup99_10pct.npz",
        X_train=X[:40],
        X_test=X[40:],
        y_train=np.arange(40) % 2,
        y_test=np.arange(20) % 2,
        classes=np.array(["normal", "smurf"]),
        cat_cols=np.array([1]),
        cat1=np.array(["icmp", "tcp", "udp"]),
    )
    data = datasets.load("kddcup99_10pct")
    assert data.X_train.shape == (40, 7) and data.X_train.dtype == np.float32
    assert set(data.y_train) == {-1, 1} and data.y_train[0] == -1
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(data.X_train.std(axis=0), 1.0, atol=1e-5)
