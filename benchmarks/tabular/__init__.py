"""Tables of numbers: how ours stand among the learners that people choose for them.

Each set is split several times at random; every learner gets the raw columns, as a user has them,
and those that need it standardise them. Ranks, errors relative to the best and the worst on a set,
wins and losses, and time.
"""

from benchmarks.tabular.command import main as main
