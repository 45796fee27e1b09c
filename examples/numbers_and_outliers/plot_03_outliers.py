"""
Outliers without labels
=======================

`MarginOneClass` scales the columns and chooses the width by itself. `nu` bounds the share of
training rows outside; `contamination` sets it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import MarginOneClass

rng = np.random.default_rng(0)
good, _ = make_moons(500, noise=0.06, random_state=0)
good = good * [30, 2] + [100, 0]  # columns of different units
bad = rng.uniform([60, -4], [180, 5], (25, 2))
X = np.vstack([good, bad])
x, y = np.meshgrid(np.linspace(55, 185, 200), np.linspace(-4.5, 5.5, 200))

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True)
for ax, options in zip(
    axes, ({"nu": 0.05}, {"nu": 0.3}, {"nu": 0.3, "contamination": 0.05}), strict=True
):
    model = MarginOneClass(**options).fit(X)
    values = model.decision_function(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    ax.contourf(x, y, values, 25, cmap="Blues")
    ax.contour(x, y, values, [0], colors="k")
    out = model.predict(X) == -1
    ax.scatter(*X[~out].T, s=6, c="C2")
    ax.scatter(*X[out].T, s=16, c="C4", marker="x", linewidths=1)
    ax.set_title(
        ", ".join(f"{k}={v}" for k, v in options.items()) + f"\n{out.sum()} of {len(X)} outside"
    )
plt.show()
