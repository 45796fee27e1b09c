"""``python -m benchmarks NAME [options]``: pick a benchmark by name."""

from __future__ import annotations

import importlib
import sys

# The modules import lazily, so that listing the names costs nothing.
BENCHMARKS = {
    "bvm": "Tables 2 to 4 of the BVM paper (and Figures 2 and 3 with --figures)",
    "speed": "fit time over LIBSVM's on four small and middle-sized sets, default settings",
    "kdd": "half a million rows of kddcup99: time, memory and accuracy",
    "peers": "MarginClassifier beside other kernel machines: time, memory, error, Pareto fronts",
    "mmda": "tables and figures of the MMDA and MMDA-CVM papers, growth, peers, permuted labels",
    "maximin": "tables and figures of the Maxi-Min paper, many classes, clusters of them, a stream",
    "slmc": "tables and example of the SLMC paper, training time, MNIST with few vectors, growth",
    "cells": "cells: beside peers, half a million rows, the engine of auto, growth, edges",
    "middle": "150 to 60,000 rows, C and γ given: beside LIBSVM and others; searches",
    "places": "out of core and on a Dask cluster: agreement, deaths, growth, peers, cells",
    "gpu": "fits on a GPU, from arrays of the device and of NumPy; a search; floors",
    "regression": "ten sets beside SVR, kernel ridge, trees: error, time, coverage of intervals",
    "tabular": "33 sets of tables beside trees, forests, LIBSVM: ranks, errors, time, calibration",
    "outliers": "the 24 sets of ADBench beside OneClassSVM, forests, neighbours: AUC, time",
    "papers": "cells of the papers' tables that are met, short or not run, and why",
    "readme": "writes the figures of README.md from the results; --check only compares",
    "stream": "the ball of ten million rows that come in blocks: seconds, memory, radius",
    "travel": "models as ONNX graphs and as C source: sizes, differences, times",
    "span": "the span fit: over its floor, growth with the rows, cross-validation, features",
}


def listing() -> str:
    lines = ["usage: python -m benchmarks NAME [options]   (NAME --help for the options)", ""]
    lines += [f"  {name:<11}{sentence}" for name, sentence in BENCHMARKS.items()]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    if not argv or argv[0] in {"-h", "--help"}:
        print(listing())
        return 0
    name, *options = argv
    if name not in BENCHMARKS:
        print(f"unknown benchmark {name!r}\n\n{listing()}", file=sys.stderr)
        return 2
    importlib.import_module(f"benchmarks.{name}").main(options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
