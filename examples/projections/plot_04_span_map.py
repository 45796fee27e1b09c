"""
Better than random vectors
==========================

`SpanMap` is `Nystroem` with better vectors: features whose inner product is the kernel, as far as
the span of a few vectors reaches. The error is that of the kernel matrix of rows not seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import SpanMap

X, _ = load_digits(return_X_y=True)
train, test = X[:1200] / 16, X[1200:] / 16
gamma = 0.15
exact = rbf_kernel(test, gamma=gamma)
counts = (10, 30, 100, 300, 600)


def error(features):
    """Return the mean error of kernel values, in per cent of the mean value."""
    Z = features.fit(train).transform(test)
    return 100 * np.abs(Z @ Z.T - exact).mean() / exact.mean()


ways = {
    "RBFSampler": lambda n: RBFSampler(gamma=gamma, n_components=n, random_state=0),
    "Nystroem": lambda n: Nystroem(gamma=gamma, n_components=n, random_state=0),
    'SpanMap(vectors="leverage")': lambda n: SpanMap(
        n, vectors="leverage", gamma=gamma, random_state=0
    ),
    'SpanMap(vectors="kmeans")': lambda n: SpanMap(n, gamma=gamma, random_state=0),
}
fig, ax = plt.subplots(figsize=(6.6, 4))
for name, make in ways.items():
    ax.loglog(counts, [error(make(n)) for n in counts], "o-", ms=4, label=name)
ax.set(xlabel="features", ylabel="mean error of kernel values, %")
ax.legend()
plt.show()
