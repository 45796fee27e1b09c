"""`MarginClassifier` beside the kernel machines that one would use instead of it.

For each data set, width γ and C all machines run one after another, each in its own process, so
that ratios of times come from one run. γ is a multiple of 1/β (β the mean squared distance of
training rows), the same number for all. A run of some cells replaces these in
``results/peers.json`` and leaves the others; the page and the pictures show all of them.

C is not quite the same for all: ours and `LinearSVC` square the hinge, `SVC` and
`SGDClassifier` do not. Compare errors over a range of C, as the Pareto fronts do.
"""

from benchmarks.peers.command import main as main
