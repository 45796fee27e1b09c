"""
How many vectors
================

A span fit uses all rows, but its machine is made of a few vectors. More of them lower the
objective; what they can lower it to is known from the start (`full_dual`). `max_vectors="auto"`
stops where more of them gain little.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from widemargin import MarginClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
counts = (10, 20, 40, 80, 160, 320, 640, 1200)
models = [
    MarginClassifier(
        10, engine="span", max_vectors=count, gamma="mean_distance", random_state=0
    ).fit(X_train, y_train)
    for count in counts
]
errors = [100 * (1 - model.score(X_test, y_test)) for model in models]
primal = [model.certificate_.primal for model in models]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
left.loglog(counts, primal, "o-", ms=4, label="objective of the machine")
bounds = [model.certificate_.full_dual for model in models]
left.loglog(counts, bounds, "s:", ms=3, c="k", label="no machine is below")
left.set(xlabel="vectors", ylabel="objective")
left.legend()
right.semilogx(counts, errors, "o-", ms=4, c="C1")
right.set(xlabel="vectors", ylabel="test error, %", ylim=(0, None))
plt.show()
