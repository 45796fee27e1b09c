"""The middle, where most people are: 150 to 60,000 rows, C and γ given and nothing else.

Every set of the folder ``$WIDEMARGIN_DATA`` of that size, standardised, at C = 1 and C = 100, and a
search over both. All machines of a set run in one process, one after another, so that ratios are
those of one moment.
"""

from benchmarks.middle.command import main as main
