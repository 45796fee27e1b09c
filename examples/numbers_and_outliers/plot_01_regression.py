"""
Regression, with and without outliers
=====================================

Squared losses follow every row; the ε-insensitive one shrugs at rows far away. Both are
`MarginRegressor`.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import MarginRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-5, 5, 250))
y = np.sinc(x) + 0.08 * rng.normal(size=len(x))
wrong = rng.choice(len(x), 18, replace=False)
y[wrong] += rng.uniform(1.0, 1.8, 18)
grid = np.linspace(-5, 5, 500)

fig, ax = plt.subplots(figsize=(8, 4))
ax.scatter(x, y, s=9, c="0.6")
ax.plot(grid, np.sinc(grid), c="k", lw=1, ls=":", label="what the rows were made from")
for loss in ("squared", "squared_epsilon_insensitive", "epsilon_insensitive"):
    model = MarginRegressor(5.0, gamma=1.5, loss=loss, epsilon=0.1).fit(x[:, None], y)
    found = model.predict(grid[:, None])
    error = np.sqrt(np.mean((found - np.sinc(grid)) ** 2))
    ax.plot(grid, found, lw=1.6, label=f'loss="{loss}": error {error:.3f}')
ax.legend(fontsize=8.5)
plt.show()
