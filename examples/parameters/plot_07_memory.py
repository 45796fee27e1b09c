"""
Less memory, the same answer
============================

`memory` is a budget for kernel values and matrices. With a small one, values that do not fit are
computed again when they are needed: it costs time, and changes nothing else that matters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import MarginClassifier

X, y = make_moons(20_000, noise=0.3, random_state=0)
budgets = (2, 5, 10, 30, 100, 300)
models = [
    MarginClassifier(
        engine="span", max_vectors=200, gamma=3.0, memory=f"{budget}MB", random_state=0
    ).fit(X, y)
    for budget in budgets
]
values = np.array([model.certificate_.n_kernel for model in models]) / 1e6
objective = np.array([model.certificate_.primal for model in models])

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3))
left.plot(budgets, values, "o-", ms=4)
left.set(xscale="log", xlabel="memory, MB", ylabel="million kernel values computed", ylim=(0, None))
right.plot(budgets, 100 * (objective / objective.min() - 1), "o-", ms=4, c="C1")
right.set(xscale="log", xlabel="memory, MB", ylabel="objective above the best, %", ylim=(-0.1, 1))
plt.show()
