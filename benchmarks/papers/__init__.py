"""How many cells of the five papers' tables are met, from the results of the other benchmarks."""

from benchmarks.papers.command import main as main
