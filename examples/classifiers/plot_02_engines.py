"""
One machine, a span, or many cells
==================================

A checkerboard with 64 fields. The exact machine keeps thousands of vectors; a span of 150 cannot
hold so rich a boundary; a machine for each cell of a partition can, and takes least time.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import MarginClassifier

rng = np.random.default_rng(0)


def board(n):
    """Return rows of a checkerboard; one label in twenty is wrong."""
    X = rng.uniform(0, 8, (n, 2))
    y = (X.astype(int).sum(axis=1) + (rng.uniform(size=n) < 0.05)) % 2
    return X, y


X, y = board(5000)
X_test, y_test = board(2000)
ways = {
    "exact": {"engine": "exact"},
    "span": {"engine": "span", "max_vectors": 150},
    "cells": {"engine": "cells", "cells": 400},
}
for engine in ("span", "cells"):
    MarginClassifier(engine=engine, cells=100).fit(X[:1000], y[:1000])  # compiled loops load
fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.9))
for ax, (name, options) in zip(axes, ways.items(), strict=True):
    begun = perf_counter()
    model = MarginClassifier(10, gamma=3.0, random_state=0, **options).fit(X, y)
    seconds = perf_counter() - begun
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="decision_function", cmap="RdBu", ax=ax, levels=15,
        grid_resolution=110,
    )  # fmt: skip
    if name == "cells":
        ax.plot(*model.cell_centers_.T, "k+", ms=7)
    score = model.score(X_test, y_test)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.set_title(f"{name}: {score:.3f}, {len(model.support_vectors_)} vectors, {seconds:.2f} s")
plt.show()
