"""The same fits on 1, 2, 4, ... threads, one after another in one process."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import widemargin as wm
from benchmarks.harness.datasets import Dataset, load
from benchmarks.harness.fits import Found, Keep, Spec, mean_distance_gamma, percent
from benchmarks.harness.records import Record, finished
from benchmarks.harness.report import Table, number

# What is fitted, by name: the set, γ in units of one over the mean squared distance between rows
# (None for the default), and other parameters.
FITS: dict[str, tuple[str, float | None, dict[str, Any]]] = {
    "covtype, cells of 300": ("covtype", 100.0, {"C": 10.0, "engine": "cells", "cells": 300}),
    "covtype 100,000, cells": ("covtype_100000", 8.0, {"C": 10.0, "engine": "cells"}),
    "MNIST, defaults": ("mnist_unit", None, {"C": 10.0}),
    "MNIST, span of 2,000": ("mnist_unit", None, {"C": 10.0, "max_vectors": 2000}),
    "letter, defaults": ("letter", None, {"C": 100.0}),
}


def numbers_of_threads() -> list[int]:
    """1, 2, 4, ... as far as there are processors."""
    return [2**k for k in range(10) if 2**k <= (os.cpu_count() or 1)]


def scaling(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """The task: one fit on every number of threads."""
    name, width, given = FITS[spec["set_name"]]
    data = load(name, spec["rows"])
    X, y = data.X_train, data.y_train
    if width is not None:
        given = given | {"gamma": width * mean_distance_gamma(X)}
    found: Found = {"n_rows": len(y), "seconds": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Compiled code is loaded, all that this set needs.
        wm.MarginClassifier(**given, random_state=0).fit(X, y)
        for threads in reversed(numbers_of_threads()):
            machine = wm.MarginClassifier(**given, random_state=0, n_jobs=threads)
            begun = time.perf_counter()
            machine.fit(X, y)
            found["seconds"][str(threads)] = time.perf_counter() - begun
            found |= {"engine": machine.engine_, "n_vectors": machine.certificate_.n_vectors}
            keep(found)
    found["accuracy"] = percent(machine.predict(data.X_test), data.y_test)
    return found


def threads_table(records: list[Record]) -> Table:
    """A line for each fit, a column for each number of threads."""
    done = finished(records)
    most = sorted({int(each) for record in done for each in record["seconds"]})
    rows = []
    for record in done:
        seconds = {int(threads): each for threads, each in record["seconds"].items()}
        gain = seconds[min(seconds)] / seconds[max(seconds)]
        rows.append(
            [
                record["set_name"],
                f"{record['n_rows']:,}",
                record["engine"],
                *(number(seconds.get(threads)) for threads in most),
                number(gain, 1, "×"),
                number(record.get("accuracy")),
            ]
        )
    header = ["fit", "rows", "engine", *(f"{threads} threads, s" for threads in most)]
    return Table("Threads", [*header, "from the first to the last", "accuracy, %"], rows)
