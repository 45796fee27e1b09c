"""Models that travel: sizes, differences and times of ONNX graphs and of C source."""

from benchmarks.travel.command import main as main
