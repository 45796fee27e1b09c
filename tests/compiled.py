"""``python -m tests.compiled``: compile what tests need, once, before they run side by side.

Numba keeps it on disk. Several processes that need the same loops at once would all compile them.
"""

from __future__ import annotations

import warnings

import numpy as np

import widemargin as wm


def main() -> None:
    """Fit one machine of each kind to few rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1200, 3)), np.arange(1200) % 3
    few = slice(0, 90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for C in (1.0, 1e4):
            for engine in ("exact", "span", "cells"):
                wm.MarginClassifier(C, engine=engine, cells=100).fit(X, y)
            wm.MarginClassifier(C, multi_class="ovr").fit(X, y)
            wm.MarginClassifier(C, kernel="linear").fit(X[few], y[few])
            wm.CoreVectorClassifier(C).fit(X, y)
        wm.MarginClassifierCV([1.0, 10.0], cv=2).fit(X, y)
        wm.MarginClassifierCV([1.0, 10.0], cv=2).fit(X[few], y[few])
        wm.MarginClassifier(loss="hinge").fit(X[few], y[few])
        wm.BallVectorClassifier().fit(X[few], y[few])
        for machine in (wm.BallVectorClassifier, wm.CoreVectorClassifier):
            for epsilon in (1e-3, 1e-12):
                machine(growth="one", stopping="ball", epsilon=epsilon, max_time=1.0).fit(
                    X[few], y[few]
                )


if __name__ == "__main__":
    main()
