"""
Vectors that nobody drew
========================

The vectors of a sparse machine are not rows of the data: they move to where they serve it best.
Sixteen of them tell ten digits apart; on the left where they began, on the right where they ended.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from widemargin import MarginClassifier, SparseMarginClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
start = MarginClassifier(10, engine="span", vectors="kmeans", max_vectors=16, random_state=0)
start.fit(X_train, y_train)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # it could go on
    small = SparseMarginClassifier(
        16, C=10, share_vectors=True, loss="squared_hinge", max_iter=150, random_state=0
    ).fit(X_train, y_train)

fig = plt.figure(figsize=(9.5, 4.6))
for half, model, name in zip(
    fig.subfigures(1, 2), (start, small), ("centres of k-means", "vectors that moved"), strict=True
):
    vectors = getattr(model, "expansion_vectors_", model.support_vectors_)
    for ax, vector in zip(half.subplots(4, 4).ravel(), vectors, strict=True):
        ax.imshow(vector.reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()
    half.suptitle(f"{name}: accuracy {model.score(X_test, y_test):.3f}")
plt.show()
