"""
Error against the number of vectors
===================================

Five ways to a small machine. The dotted line is the exact one with all of its vectors.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    MarginClassifier,
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
)

warnings.simplefilter("ignore", ConvergenceWarning)  # few steps are enough for a picture
X, y = make_moons(600, noise=0.25, random_state=0)
X_test, y_test = make_moons(10_000, noise=0.25, random_state=1)
options = {"C": 10.0, "gamma": 2.0}
exact = MarginClassifier(**options).fit(X, y)
ways = {
    "SparseMarginClassifier": lambda n: SparseMarginClassifier(n, **options, random_state=0),
    "SparseFisherClassifier": lambda n: SparseFisherClassifier(n, **options, random_state=0),
    "ReducedSetClassifier": lambda n: ReducedSetClassifier(
        MarginClassifier(**options), n, random_state=0
    ),
    'MarginClassifier(engine="span")': lambda n: MarginClassifier(
        **options, engine="span", vectors="kmeans", max_vectors=n, random_state=0
    ),
    "ReducedSVMClassifier": lambda n: ReducedSVMClassifier(n, **options, random_state=0),
}
counts = (2, 3, 4, 6, 8, 12, 20)
fig, ax = plt.subplots(figsize=(7.4, 4.2))
for name, make in ways.items():
    errors = [100 * (1 - make(n).fit(X, y).score(X_test, y_test)) for n in counts]
    ax.plot(counts, errors, "o-", ms=4, label=name)
ax.axhline(
    100 * (1 - exact.score(X_test, y_test)),
    c="k",
    ls=":",
    label=f"exact, {len(exact.support_vectors_)} vectors",
)
ax.set(xlabel="vectors", ylabel="test error, %", xscale="log", xticks=counts, xticklabels=counts)
ax.minorticks_off()
ax.legend(fontsize=8.5)
plt.show()
