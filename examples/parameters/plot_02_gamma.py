"""
What the width does
===================

γ says how far a row can see: k(x, z) = exp(−γ‖x − z‖²). A small one makes a machine that is nearly
linear; a large one makes islands. `gamma="scale"` and `"mean_distance"` are guesses from the data,
and good first ones where columns are scaled.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import MarginClassifier

X, y = make_moons(300, noise=0.28, random_state=1)
X_test, y_test = make_moons(4000, noise=0.28, random_state=2)

fig = plt.figure(figsize=(11, 5.4))
grid = fig.add_gridspec(2, 4, height_ratios=[1.25, 1])
for place, gamma in enumerate((0.02, 1.0, 10.0, 300.0)):
    ax = fig.add_subplot(grid[0, place])
    model = MarginClassifier(1.0, gamma=gamma).fit(X, y)
    shown = {"estimator": model, "X": X, "response_method": "decision_function", "ax": ax}
    DecisionBoundaryDisplay.from_estimator(**shown, cmap="RdBu", alpha=0.5, levels=15)
    DecisionBoundaryDisplay.from_estimator(**shown, plot_method="contour", levels=[0], colors="k")
    ax.scatter(*X.T, c=y, s=8, cmap="RdBu", edgecolors="k", linewidths=0.3)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", title=f"γ = {gamma:g}")

widths = np.geomspace(0.01, 1000, 26)
models = [MarginClassifier(1.0, gamma=gamma).fit(X, y) for gamma in widths]
below = fig.add_subplot(grid[1, :])
below.semilogx(widths, [model.score(X, y) for model in models], label="training rows")
below.semilogx(widths, [model.score(X_test, y_test) for model in models], label="test rows")
for name in ("scale", "mean_distance"):
    chosen = MarginClassifier(1.0, gamma=name).fit(X, y).gamma_
    below.axvline(chosen, ls=":", c="k", lw=1)
    below.text(chosen, 0.69, f' "{name}"', fontsize=8, rotation=90, va="bottom", ha="right")
below.set(xlabel="γ", ylabel="accuracy")
below.legend()
plt.show()
