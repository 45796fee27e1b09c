"""Cells: beside their peers, on half a million rows, chosen by themselves, growing, at edges.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others. The page ends with what was asked of cells and whether it was met, from whatever has
been measured.
"""

from benchmarks.cells.command import main as main
