"""
Kernels side by side
====================

The same rows and the same C under eight kernels. Those of the distance differ in their corners and
in how far they reach; those of the product are global.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import MarginClassifier

X, y = make_circles(250, noise=0.12, factor=0.45, random_state=0)
kernels = {
    "rbf": {"gamma": 3.0},
    "laplacian": {"gamma": 2.0},
    "exponential": {"gamma": 4.0},
    "inverse_distance": {"gamma": 20.0},
    "inverse_squared_distance": {"gamma": 5.0},
    "poly": {"degree": 2, "coef0": 1.0},
    "normalized_poly": {"degree": 4, "coef0": 0.3},
    "linear": {},
}
fig, axes = plt.subplots(2, 4, figsize=(11, 5.6))
for ax, (kernel, options) in zip(axes.ravel(), kernels.items(), strict=True):
    model = MarginClassifier(10.0, kernel=kernel, **options).fit(X, y)
    shown = {"estimator": model, "X": X, "response_method": "decision_function", "ax": ax}
    DecisionBoundaryDisplay.from_estimator(**shown, cmap="RdBu", alpha=0.55, levels=15)
    DecisionBoundaryDisplay.from_estimator(**shown, plot_method="contour", levels=[0], colors="k")
    ax.scatter(*X.T, c=y, s=8, cmap="RdBu", edgecolors="k", linewidths=0.3)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", title=kernel)
plt.show()
