"""Fit time over LIBSVM's in one run, default settings: what a new user sees first.

Small sets are where LIBSVM is at its best (0.1 to 0.2 s), so they are the ones to measure. Median
of three fits in a process of its own, after a warm-up; γ = 1/β for all. The papers' machines run at
C = 0.5 against SVC's C = 1 (see `benchmarks.harness.machines` for why), `MarginClassifier` at SVC's
own C.
"""

from benchmarks.speed.command import main as main
