"""The tables and figures of the MMDA-CVM and MMDA papers, growth with the rows, peers, noise.

The MMDA-CVM paper minimises ‖w‖² + b² + C Σξ², which is our objective at C/2,
so ours runs at C = 0.5. Each part can be run alone (``--parts``); it then replaces its own figures
in the results and leaves the others.
"""

from benchmarks.mmda.command import main as main
