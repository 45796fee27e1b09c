"""
More features than classes
==========================

LDA finds one direction less than there are classes: for two classes, one. `MaxMarginDA` finds one
after another, each the widest margin among those orthogonal to the ones before.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import MaxMarginDA, plot

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)


def accuracy(features):
    """Return the accuracy of nearest neighbours on features, in ten folds."""
    return cross_val_score(make_pipeline(features, KNeighborsClassifier(5)), X, y, cv=10).mean()


counts = (1, 2, 3, 5, 8)
found = {
    kernel: [accuracy(MaxMarginDA(n, kernel=kernel, random_state=0)) for n in counts]
    for kernel in ("linear", "rbf")
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9))
plot.projection(MaxMarginDA(2, random_state=0).fit_transform(X, y), y, ax=left)
left.set_title("the first two directions")
for kernel, scores in found.items():
    right.plot(counts, scores, "o-", ms=4, label=f'MaxMarginDA, kernel="{kernel}"')
right.axhline(accuracy(LinearDiscriminantAnalysis()), c="k", ls=":", label="LDA, which has one")
right.axhline(
    cross_val_score(KNeighborsClassifier(5), X, y, cv=10).mean(),
    c="0.6",
    ls="--",
    label="no projection",
)
right.set(xlabel="directions", ylabel="accuracy of five nearest neighbours")
right.legend(fontsize=8)
plt.show()
