"""On a GPU: fits from arrays of the device and of NumPy, a search, and the floor below them.

Where there is no GPU, ``--quick`` runs the same on the processor, with torch. Each part can be run
alone (``--parts``); it then replaces its own figures in the results and leaves the others.
"""

from benchmarks.gpu.command import main as main
