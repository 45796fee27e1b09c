"""Regression on ten sets with published splits: error, time, and coverage of intervals.

All kernels have γ = 1/d on standardised columns, C and ε come from one grid and the same held-out
rows. The kernel machine of scikit-learn has a process and a time limit of its own.
"""

from benchmarks.regression.command import main as main
