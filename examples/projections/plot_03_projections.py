"""
Eight projections of the digits
===============================

Every projection of this library, with scikit-learn's for comparison, to two dimensions. The number
is the accuracy of nearest neighbours on test rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from widemargin import (
    KernelFisherDA,
    LocalFisherDA,
    LocalityPreservingProjection,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
ways = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "MaxiMinDA": MaxiMinDA(2, random_state=0),
    "PairwiseAccuracyDA": PairwiseAccuracyDA(2, shrinkage="auto"),
    "KernelFisherDA": KernelFisherDA(2),
    "LocalFisherDA": LocalFisherDA(2),
    "LocalityPreserving, supervised": LocalityPreservingProjection(2, supervised=True),
    "MaxMarginDA, first 2 of 10": MaxMarginDA(1, random_state=0),
}
fig, axes = plt.subplots(2, 4, figsize=(12, 6))
for ax, (name, model) in zip(axes.ravel(), ways.items(), strict=True):
    train = model.fit_transform(X_train, y_train)[:, :2]
    test = model.transform(X_test)[:, :2]
    score = KNeighborsClassifier(9).fit(train, y_train).score(test, y_test)
    ax.scatter(*test.T, c=y_test, cmap="tab10", s=7)
    box = {"boxstyle": "round,pad=0.15", "fc": "w", "ec": "none", "alpha": 0.7}
    for digit in range(10):
        x, y_mean = test[y_test == digit].mean(axis=0)
        ax.text(x, y_mean, str(digit), ha="center", va="center", weight="bold", bbox=box)
    ax.set(xticks=[], yticks=[], title=f"{name}: {score:.2f}")
plt.show()
