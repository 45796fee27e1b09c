"""
A model for a microcontroller
=============================

`export.c` writes a machine of few vectors as C99: no allocation, no library but `expf`, or none at
all with whole numbers. Its numbers take as many bytes as are counted here; code is below 2 kB.
"""

import re
import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from widemargin import MarginClassifier, SparseMarginClassifier, export

warnings.simplefilter("ignore", ConvergenceWarning)  # few steps are enough for a picture
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
WIDTH = {"float": 4, "int16_t": 2, "int32_t": 4, "uint32_t": 4, "uint8_t": 1, "unsigned char": 1}


def constants(source):
    """Return the bytes of all arrays of a source."""
    found = re.findall(r"static const ([\w ]+?) \w+[^=]*= \{(.*?)\};", source, flags=re.DOTALL)
    return sum(WIDTH[kind] * len(re.findall(r"[-\w.+]+", numbers)) for kind, numbers in found)


counts = (8, 16, 32, 64)
small = [
    SparseMarginClassifier(
        n, C=10, share_vectors=True, loss="squared_hinge", max_iter=60, random_state=0
    ).fit(X_train, y_train)
    for n in counts
]
exact = MarginClassifier(10).fit(X_train, y_train)
print(export.c(small[0], fixed_point=True)[:900])

# %%
fig, ax = plt.subplots(figsize=(7, 4))
for fixed, name in ((False, "single precision"), (True, "whole numbers")):
    size = [constants(export.c(model, fixed_point=fixed)) / 1000 for model in small]
    errors = [100 * (1 - model.score(X_test, y_test)) for model in small]
    ax.plot(size, errors, "o-", ms=4, label=f"{name}: " + ", ".join(map(str, counts)) + " vectors")
size = constants(export.c(exact)) / 1000
ax.plot(
    size,
    100 * (1 - exact.score(X_test, y_test)),
    "ks",
    label=f"exact, {len(exact.support_vectors_)} vectors",
)
ax.set(xscale="log", xlabel="numbers of the model, kB", ylabel="test error, %", ylim=(0, None))
ax.legend()
plt.show()
