"""The figures of README.md and docs/, written from the results of the other benchmarks."""

from benchmarks.readme.command import main as main
