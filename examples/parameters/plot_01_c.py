"""
What C does
===========

C is the price of a row on the wrong side of its margin. A small one gives a wide margin that
overlooks many rows; a large one follows every row, mistakes included.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import MarginClassifier

X, y = make_moons(300, noise=0.28, random_state=1)
X_test, y_test = make_moons(4000, noise=0.28, random_state=2)

fig, axes = plt.subplots(1, 4, figsize=(11, 3.1), sharex=True, sharey=True)
for ax, C in zip(axes, (0.01, 0.3, 10, 3000), strict=True):
    model = MarginClassifier(C, gamma=3.0).fit(X, y)
    shown = {"estimator": model, "X": X, "response_method": "decision_function", "ax": ax}
    DecisionBoundaryDisplay.from_estimator(**shown, cmap="RdBu", alpha=0.5, levels=15)
    DecisionBoundaryDisplay.from_estimator(
        **shown, plot_method="contour", levels=[-1, 0, 1], linestyles=["--", "-", "--"], colors="k"
    )
    ax.scatter(*X.T, c=y, s=8, cmap="RdBu", edgecolors="k", linewidths=0.3)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.set_title(f"C = {C:g}\ntest accuracy {model.score(X_test, y_test):.3f}")
plt.show()
