"""The tables and figures of the Maxi-Min paper, many classes, clusters of classes, a stream.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others.
"""

from benchmarks.maximin.command import main as main
