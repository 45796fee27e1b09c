"""
Choosing C and γ
================

`MarginClassifierCV` scores all values of C and all folds of a width from the same kernel values.
The picture is the mean accuracy of the folds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from widemargin import MarginClassifierCV

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
Cs, gammas = np.geomspace(0.01, 1000, 11), np.geomspace(1e-4, 1, 13)
search = MarginClassifierCV(Cs, gammas=gammas, kernels=["rbf"], cv=5, random_state=0).fit(X, y)
print(search.best_params_, round(search.best_score_, 4))

results = search.cv_results_
score = np.full((len(gammas), len(Cs)), np.nan)
for params, mean in zip(results["params"], results["mean_test_score"], strict=True):
    at = np.argmin(np.abs(gammas - params["gamma"])), np.argmin(np.abs(Cs - params["C"]))
    score[at] = mean

fig, ax = plt.subplots(figsize=(6.4, 4.4))
image = ax.pcolormesh(Cs, gammas, score, cmap="viridis", vmin=np.nanquantile(score, 0.2))
ax.plot(search.best_params_["C"], search.best_params_["gamma"], "*", ms=16, c="w", mec="k")
ax.set(xscale="log", yscale="log", xlabel="C", ylabel="γ", title="accuracy in cross-validation")
fig.colorbar(image)
plt.show()
