"""
A core set grows
================

The core vector machine never looks at all rows together. It solves a small problem, looks for rows
that this solution gets most wrong, adds them, and solves again.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import CoreVectorClassifier

warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
X, y = make_moons(2000, noise=0.15, random_state=0)

fig, axes = plt.subplots(1, 4, figsize=(11, 3.1))
for ax, limit in zip(axes, (6, 14, 30, None), strict=True):
    model = CoreVectorClassifier(1.0, gamma=2.0, max_vectors=limit, random_state=0).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="decision_function", cmap="RdBu", alpha=0.45, levels=15, ax=ax
    )
    ax.scatter(*X[::4].T, c=y[::4], s=3, cmap="RdBu")
    ax.scatter(*model.support_vectors_.T, s=30, facecolors="none", edgecolors="k", linewidths=1)
    reached = model.certificate_
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.set_title(f"{reached.n_vectors} core vectors\ngap {reached.gap:.1e}")
plt.show()
