"""
Probabilities
=============

A decision value is a distance, not a probability. scikit-learn's `CalibratedClassifierCV` turns one
into the other, on rows that the machine has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_moons
from sklearn.metrics import brier_score_loss

from widemargin import MarginClassifier

X, y = make_moons(2000, noise=0.4, random_state=0)
X_test, y_test = make_moons(20_000, noise=0.4, random_state=1)
machine = MarginClassifier(10, gamma=2.0)
squashed = 1 / (1 + np.exp(-3 * machine.fit(X, y).decision_function(X_test)))
ways = {"1 / (1 + exp(−3 f))": squashed}
for method in ("sigmoid", "isotonic"):
    calibrated = CalibratedClassifierCV(machine, method=method).fit(X, y)
    ways[f'method="{method}"'] = calibrated.predict_proba(X_test)[:, 1]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9))
left.plot([0, 1], [0, 1], c="k", lw=0.8, ls=":")
for name, probability in ways.items():
    share, mean = calibration_curve(y_test, probability, n_bins=12)
    left.plot(
        mean,
        share,
        "o-",
        ms=3.5,
        label=f"{name}: Brier {brier_score_loss(y_test, probability):.4f}",
    )
    right.hist(probability, bins=30, histtype="step", lw=1.3)
left.set(xlabel="probability that was told", ylabel="share of class 1 among such rows")
left.legend(fontsize=8)
right.set(xlabel="probability that was told", ylabel="rows")
plt.show()
