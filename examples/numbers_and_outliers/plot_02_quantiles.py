"""
Quantiles: how sure is a prediction?
====================================

`quantiles=[...]` fits several machines at once. They never cross: the predictions of a row are put
in order.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import MarginRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 600))
y = np.sin(x) + (0.1 + 0.08 * x) * rng.normal(size=len(x))
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
model = MarginRegressor(10, loss="quantile", quantiles=levels, gamma=0.3).fit(x[:, None], y)
grid = np.linspace(0, 10, 400)
bands = model.predict(grid[:, None])
inside = model.predict(x[:, None])
shares = [(y <= inside[:, k]).mean() for k in range(5)]

fig, ax = plt.subplots(figsize=(8, 4))
ax.fill_between(grid, bands[:, 0], bands[:, 4], alpha=0.18, label="5 % to 95 %")
ax.fill_between(grid, bands[:, 1], bands[:, 3], alpha=0.3, color="C0", label="25 % to 75 %")
ax.plot(grid, bands[:, 2], label="median")
ax.scatter(x, y, s=6, c="0.4")
ax.set_title("share of rows below each line: " + ", ".join(f"{share:.2f}" for share in shares))
ax.legend()
plt.show()
