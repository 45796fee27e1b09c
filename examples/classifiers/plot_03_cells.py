"""
Cells that join at their edges
==============================

Each cell has a machine of its own. Near an edge two of them are averaged, so that the decision
function has no jump there. On the left without that.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import MarginClassifier

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (1500, 2))
y = np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 1]) + 0.6 * rng.normal(size=len(X)) > 0
axis = np.linspace(-3, 3, 240)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)

fig, axes = plt.subplots(1, 2, figsize=(8.6, 4.1))
for ax, blend in zip(axes, (0.0, 0.6), strict=True):
    model = MarginClassifier(
        3, engine="cells", cells=120, overlap=0.1, blend=blend, gamma=1.0, random_state=0
    ).fit(X, y)
    values = model.decision_function(grid.reshape(-1, 2)).reshape(len(axis), -1)
    ax.contourf(axis, axis, np.clip(values, -3, 3), 30, cmap="RdBu")
    ax.contour(axis, axis, values, [0], colors="k", linewidths=1)
    nearest = ((grid[:, :, None] - model.cell_centers_) ** 2).sum(axis=-1).argmin(axis=-1)
    edges = (np.diff(nearest, axis=0)[:, 1:] != 0) | (np.diff(nearest, axis=1)[1:] != 0)
    ax.contour(axis[1:], axis[1:], edges, [0.5], colors="w", linewidths=0.6, linestyles=":")
    ax.set(xticks=[], yticks=[], title=f"blend={blend:g}: {model.score(X, y):.3f} of training rows")
plt.show()
