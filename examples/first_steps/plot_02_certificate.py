"""
What the certificate says
=========================

Every fit is squeezed between two numbers. The *primal* is what the machine at hand costs, and falls
while it is fitted. The *dual* is a bound that no machine can fall below, and rises. Where they meet
there is nothing left to gain. Here a fit is stopped after each of its steps.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from widemargin import MarginClassifier

X, y = make_moons(6000, noise=0.3, random_state=0)
reached = []
with warnings.catch_warnings():
    # Stopped early on purpose.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for steps in range(1, 30):
        model = MarginClassifier(
            engine="span", max_vectors=60, max_iter=steps, tol=1e-6, gamma=2.0, random_state=0
        ).fit(X, y)
        reached.append(model.certificate_)
        if model.certificate_.gap < 1e-5:
            break
print(model.certificate_)

# %%
# The grey part is what is not known yet. A third number, `full_dual`, bounds what more vectors
# could bring: :ref:`sphx_glr_gallery_parameters_plot_04_number_of_vectors.py` shows it.

primal = [each.primal for each in reached]
dual = [each.dual for each in reached]
step = range(1, len(reached) + 1)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(step, primal, "o-", ms=3.5, label="primal: this machine")
left.plot(step, dual, "o-", ms=3.5, label="dual: no machine of these vectors is below")
left.fill_between(step, dual, primal, alpha=0.15, color="k", label="not known yet")
left.set(xlabel="step", ylabel="objective", ylim=(0, 1.15 * max(primal[1:])))
left.legend(fontsize=8, loc="lower right")
right.semilogy(step, [max(each.gap, 1e-9) for each in reached], "o-", ms=3.5, c="C2")
right.set(xlabel="step", ylabel="relative gap", title="(primal − dual) / primal")
plt.show()
