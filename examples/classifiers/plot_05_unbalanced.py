"""
One class is rare
=================

With 3 % of rows in a class a machine that maximises the margin nearly ignores it. Weights of
classes move the boundary: `class_weight="balanced"`, or any numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score

from widemargin import MarginClassifier

rng = np.random.default_rng(0)


def rows(n):
    """Return rows of which few are of class 1."""
    y = rng.uniform(size=n) < 0.03
    X = rng.normal(size=(n, 2)) + np.where(y[:, None], [1.8, 1.2], [0, 0])
    return X, y.astype(int)


X, y = rows(1500)
X_test, y_test = rows(5000)
fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.7))
for ax, weight in zip(axes, (None, {1: 5}, "balanced"), strict=True):
    model = MarginClassifier(1, gamma=0.1, class_weight=weight).fit(X, y)
    shown = {"estimator": model, "X": X, "response_method": "decision_function", "ax": ax}
    DecisionBoundaryDisplay.from_estimator(
        **shown, cmap="RdBu", alpha=0.4, levels=15, grid_resolution=60
    )
    DecisionBoundaryDisplay.from_estimator(
        **shown, plot_method="contour", levels=[0], colors="k", grid_resolution=60
    )
    ax.scatter(*X[y == 0][::3].T, s=3, c="C4")
    ax.scatter(*X[y == 1].T, s=8, c="C0")
    found = model.predict(X_test)
    told = (
        f"recall {recall_score(y_test, found):.2f}, precision "
        f"{precision_score(y_test, found, zero_division=0):.2f}\n"
        f"balanced accuracy {balanced_accuracy_score(y_test, found):.3f}"
    )
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", title=f"class_weight={weight!r}\n{told}")
plt.show()
