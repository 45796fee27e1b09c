"""
The smallest ball around the rows
=================================

A core set: the few rows that decide where the ball is. With a linear kernel the ball is a circle;
with a Gaussian one its border follows the rows. With a `C` it need not hold all of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import CoreVectorDescription

rng = np.random.default_rng(3)
X = np.vstack([rng.normal([0, 0], [1, 0.5], (400, 2)), rng.normal([2.5, 2], 0.4, (200, 2))])
x, y = np.meshgrid(np.linspace(-4.5, 6, 260), np.linspace(-4.5, 5.5, 260))
places = np.column_stack([x.ravel(), y.ravel()])

fig, axes = plt.subplots(1, 3, figsize=(11, 3.7), sharey=True)
ways = (
    {"kernel": "linear", "C": None},
    {"kernel": "rbf", "gamma": 0.5, "C": None},
    {"kernel": "rbf", "gamma": 0.5, "C": 0.02},
)
for ax, options in zip(axes, ways, strict=True):
    ball = CoreVectorDescription(epsilon=1e-3, random_state=0, **options).fit(X)
    values = ball.decision_function(places).reshape(x.shape)
    ax.contourf(
        x, y, np.maximum(values, values.max() - 3 * np.ptp(values[values > 0])), 25, cmap="Blues"
    )
    ax.contour(x, y, values, [0], colors="k")
    ax.scatter(*X.T, s=4, c="C1")
    ax.scatter(*ball.support_vectors_.T, s=40, facecolors="none", edgecolors="k", linewidths=1.2)
    told = ", ".join(f"{name}={value}" for name, value in options.items())
    ax.set(title=f"{told}\n{len(ball.support_vectors_)} core vectors, radius {ball.radius_:.2f}")
    ax.set(xticks=[], yticks=[])
axes[0].set_aspect("equal")
plt.show()
