"""
Keep the closest classes apart
==============================

LDA maximises the *mean* distance between classes: those far apart go farther, and close ones may
merge. `MaxiMinDA` looks at the closest pair. Ten digits in two dimensions.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from widemargin import MaxiMinDA, plot

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(11, 4.8))
for ax, model in zip(
    axes, (LinearDiscriminantAnalysis(n_components=2), MaxiMinDA(2, random_state=0)), strict=True
):
    features = model.fit(X_train, y_train).transform(X_train)
    neighbours = KNeighborsClassifier(9).fit(features, y_train)
    score = neighbours.score(model.transform(X_test), y_test)
    plot.projection(model.transform(X_test), y_test, ax=ax)
    ax.set_title(f"{type(model).__name__}: nearest neighbours get {score:.3f}")
print(model.closest_pairs(3))
plt.show()
