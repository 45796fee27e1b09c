"""
Classifiers on the same data
============================

Three sets like those of scikit-learn's own comparison, `SVC`, and eight machines of this
library. The number is the accuracy on test rows.
"""

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_circles, make_classification, make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    MarginClassifier,
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
)

linear = make_classification(
    300, n_features=2, n_redundant=0, random_state=1, n_clusters_per_class=1
)
sets = [
    make_moons(300, noise=0.3, random_state=0),
    make_circles(300, noise=0.2, factor=0.5, random_state=1),
    (linear[0] + 0.3 * make_moons(300, noise=0.5, random_state=3)[0], linear[1]),
]
machines = {
    "SVC": SVC(C=1, gamma=1),
    "MarginClassifier": MarginClassifier(1, gamma=1),
    "… in a span of 15": MarginClassifier(
        1, gamma=1, engine="span", max_vectors=15, random_state=0
    ),
    "CoreVector": CoreVectorClassifier(1, gamma=1, random_state=0),
    "BallVector": BallVectorClassifier(1, gamma=1, random_state=0),
    "SparseMargin, 4": SparseMarginClassifier(4, C=1, gamma=1, random_state=0),
    "SparseFisher, 4": SparseFisherClassifier(4, C=1, gamma=1, random_state=0),
    "ReducedSet, 4": ReducedSetClassifier(SVC(C=1, gamma=1), 4, random_state=0),
    "ReducedSVM, 15": ReducedSVMClassifier(15, C=1, gamma=1, random_state=0),
}
fig, axes = plt.subplots(3, len(machines), figsize=(15, 5.2), sharex="row", sharey="row")
for place, (X, y) in enumerate(sets):
    X = StandardScaler().fit_transform(X)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    for ax, (name, machine) in zip(axes[place], machines.items(), strict=True):
        machine.fit(X_train, y_train)
        DecisionBoundaryDisplay.from_estimator(
            machine, X, response_method="decision_function", cmap="RdBu", alpha=0.8, ax=ax, eps=0.3
        )
        colours = ListedColormap(["#c2373d", "#2563a8"])
        ax.scatter(*X_train.T, c=y_train, cmap=colours, s=6, edgecolors="w", linewidths=0.2)
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        ax.text(
            0.97, 0.03, f"{machine.score(X_test, y_test):.2f}", transform=ax.transAxes, ha="right"
        )
        if place == 0:
            ax.set_title(name, fontsize=9)
plt.show()
