"""
The ball of a stream
====================

`partial_fit` takes in rows block by block and keeps few of them. After each block the certificate
tells how far the ball is from the smallest one at the most; here both can be compared.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import CoreVectorDescription

rng = np.random.default_rng(0)
X = rng.standard_t(4, size=(6000, 3)) + np.linspace(0, 4, 6000)[:, None]  # it drifts
stream = CoreVectorDescription(C=None, kernel="linear", random_state=0)
seen, kept, radius, proved, best = [], [], [], [], []
for first in range(0, len(X), 250):
    stream.partial_fit(X[first : first + 250])
    seen.append(first + 250)
    radius.append(stream.radius_)
    proved.append(stream.radius_ / (1 + stream.certificate_.eps))
    whole = CoreVectorDescription(C=None, kernel="linear", epsilon=1e-4, random_state=0)
    best.append(whole.fit(X[: seen[-1]]).radius_)
    kept.append(len(stream.cover_vectors_) + len(stream.cover_rows_))

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.5))
left.fill_between(seen, proved, radius, alpha=0.2, label="proved: the smallest is in here")
left.plot(seen, radius, label="ball of the stream")
left.plot(seen, best, c="k", ls=":", label="smallest ball of all rows seen")
left.set(xlabel="rows seen", ylabel="radius")
left.legend(fontsize=8)
right.plot(seen, seen, c="k", ls=":", label="rows seen")
right.plot(seen, kept, c="C1", label="rows kept")
right.set(xlabel="rows seen", yscale="log")
right.legend()
plt.show()
