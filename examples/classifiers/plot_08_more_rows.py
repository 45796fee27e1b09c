"""
Time against rows
=================

An exact kernel machine slows down with the square of the rows. A span fit takes each row once a
step, and its machine does not grow. (Times are of the computer that built this page, with other
work on it; look at the slopes.)
"""

from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from widemargin import MarginClassifier

X, y = make_classification(
    11_000, 12, n_informative=8, n_clusters_per_class=4, flip_y=0.1, random_state=0
)
X_test, y_test = X[8000:], y[8000:]
sizes = (500, 1000, 2000, 4000, 8000)
machines = {
    "SVC": lambda: SVC(C=1, gamma=0.05),
    "MarginClassifier()": lambda: MarginClassifier(1, gamma=0.05, random_state=0),
    "MarginClassifier(max_vectors=300)": lambda: MarginClassifier(
        1, gamma=0.05, engine="span", max_vectors=300, random_state=0
    ),
}
MarginClassifier(engine="span").fit(X[:300], y[:300])  # compiled loops load
fig, axes = plt.subplots(1, 3, figsize=(11, 3.4))
for name, make in machines.items():
    seconds, errors, vectors = [], [], []
    for size in sizes:
        begun = perf_counter()
        model = make().fit(X[:size], y[:size])
        seconds.append(perf_counter() - begun)
        errors.append(100 * (1 - model.score(X_test, y_test)))
        vectors.append(len(model.support_vectors_))
    for ax, values in zip(axes, (seconds, errors, vectors), strict=True):
        ax.plot(sizes[: len(values)], values, "o-", ms=3.5, label=name)
axes[0].set(yscale="log", ylabel="fit, s")
axes[1].set(ylabel="test error, %")
axes[2].set(yscale="log", ylabel="vectors of the machine")
for ax in axes:
    ax.set(xscale="log", xlabel="rows")
axes[0].legend(fontsize=8)
plt.show()
