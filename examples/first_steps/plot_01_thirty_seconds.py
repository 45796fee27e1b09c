"""
Thirty seconds to a model
=========================

Fit a kernel machine, draw its boundary, and read what it proves about itself.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import train_test_split

from widemargin import MarginClassifier

X, y = make_moons(1000, noise=0.2, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = MarginClassifier(C=10).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}")
print(model.certificate_)

# %%
# The line is where the decision value is zero; the dashed ones are the margins, at ±1. The
# circles are the vectors that the machine is made of.

fig, ax = plt.subplots(figsize=(7, 4.2))
shown = {"estimator": model, "X": X, "response_method": "decision_function", "ax": ax}
DecisionBoundaryDisplay.from_estimator(**shown, cmap="RdBu", alpha=0.55, levels=20)
DecisionBoundaryDisplay.from_estimator(
    **shown, plot_method="contour", levels=[-1, 0, 1], linestyles=["--", "-", "--"], colors="k"
)
ax.scatter(*X_train.T, c=y_train, s=10, cmap="RdBu", edgecolors="k", linewidths=0.3)
ax.scatter(*model.support_vectors_.T, s=42, facecolors="none", edgecolors="k", linewidths=0.6)
ax.set(title=f"{len(model.support_vectors_)} of {len(X_train)} rows are vectors of the machine")
plt.show()
