"""
The digits it is least sure of
==============================

A search over C, kernel and width in one call, then the test images with the smallest margins.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from widemargin import MarginClassifierCV

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
search = MarginClassifierCV(random_state=0).fit(X_train, y_train)
print(search.best_params_, f"test accuracy {search.score(X_test, y_test):.4f}")

scores = np.sort(search.decision_function(X_test), axis=1)
margin = scores[:, -1] - scores[:, -2]
hardest = np.argsort(margin)[:24]
predicted = search.predict(X_test)

fig, axes = plt.subplots(3, 8, figsize=(8.5, 3.9))
for ax, i in zip(axes.ravel(), hardest, strict=True):
    wrong = predicted[i] != y_test[i]
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(
        f"{predicted[i]}" + (f", is {y_test[i]}" if wrong else ""), color="C4" if wrong else "k"
    )
    ax.set_axis_off()
fig.suptitle("test images with the smallest margin, and what they are taken for")
plt.show()
