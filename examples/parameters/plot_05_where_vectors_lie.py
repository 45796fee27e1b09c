"""
Where vectors come from
=======================

Rows at random, centres of k-means, rows by leverage, or rows near the margin ("core", the
default). Forty of each.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import MarginClassifier

X, y = make_moons(4000, noise=0.2, random_state=0)
X_test, y_test = make_moons(4000, noise=0.2, random_state=1)

fig, axes = plt.subplots(1, 4, figsize=(11, 3.1))
for ax, way in zip(axes, ("random", "kmeans", "leverage", "core"), strict=True):
    model = MarginClassifier(
        1.0, engine="span", vectors=way, max_vectors=40, gamma=6.0, random_state=0
    ).fit(X, y)
    shown = {"estimator": model, "X": X, "response_method": "decision_function", "ax": ax}
    DecisionBoundaryDisplay.from_estimator(**shown, cmap="RdBu", alpha=0.35, levels=15)
    DecisionBoundaryDisplay.from_estimator(**shown, plot_method="contour", levels=[0], colors="k")
    ax.scatter(*X[::8].T, c=y[::8], s=3, cmap="RdBu")
    ax.scatter(*model.support_vectors_.T, s=28, c="k", marker="x", linewidths=1.2)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.set_title(f'vectors="{way}"\nobjective {model.certificate_.primal:.0f}')
plt.show()
