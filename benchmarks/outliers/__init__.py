"""Outlier detection on the 24 classical sets of ADBench: ranking and time.

Detectors are fitted on all rows without labels, which only judge how the rows are ranked. The
kernel machine of scikit-learn is fitted on a sample where there are many rows.
"""

from benchmarks.outliers.command import main as main
