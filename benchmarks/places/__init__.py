"""Places: the same fit in memory, out of core and on a cluster whose workers may die.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others. Generated rows are written to a scratch folder, once for each number of rows. The page
ends with a cost model for numbers of rows and workers that were not measured, and with what was
asked and whether it was met.
"""

from benchmarks.places.command import main as main
