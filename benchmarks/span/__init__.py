"""The span fit by itself: how near its floor, how it grows, what a search and its features cost.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others.
"""

from benchmarks.span.command import main as main
