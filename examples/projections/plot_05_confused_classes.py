"""
Which classes are hard to tell apart?
=====================================

`MaxiMinDA` knows the closest pairs of classes, and `plot.classes` joins them by lines.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from widemargin import MaxiMinDA, plot

X, y = load_digits(return_X_y=True)
model = MaxiMinDA(2, random_state=0).fit(X, y)
fig, ax = plt.subplots(figsize=(6.6, 5))
plot.classes(model, ax=ax)
reached, bound = model.min_distance_, model.upper_bound_
ax.set_title(f"smallest squared distance {reached:.2f}; no projection gets beyond {bound:.2f}")
plt.show()
