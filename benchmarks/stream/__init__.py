"""The ball of a stream: ten million rows, block after block, in memory that does not grow."""

from benchmarks.stream.command import main as main
