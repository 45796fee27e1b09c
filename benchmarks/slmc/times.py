"""Training seconds of SLMC beside machines with as many vectors that are not moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.harness.machines import NYSTROEM
from benchmarks.harness.records import Record, finished, fit_ratio, microseconds, text_of
from benchmarks.harness.report import Table, beside, number
from benchmarks.slmc import papers as paper
from benchmarks.slmc.choice import svm_of
from benchmarks.slmc.data import USPS, loaded_as
from benchmarks.slmc.fit import Sparse
from benchmarks.slmc.plan import METHODS, applies, measurement

PART = "time"
SETS = ("banana", USPS)
SHARE = 0.10
REPEATS = {"banana": 5}
NAMES = ("slmc-kmeans", "slmc-random", "slmc-squared", "slmc-shared", "rs", "rvm")
RANDOM_ROWS = "Nystroem + LinearSVC"
SPAN = "k-means vectors, span fit"
MARGIN_PATH = "widemargin.MarginClassifier"
ASKED = {USPS: 900.0, "banana": 1.0}


def peers(size: Any, parameters: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Machines on vectors that stay where they are: import path and parameters by label."""
    span = {"engine": "span", "vectors": "kmeans", "max_vectors": size}
    return {
        RANDOM_ROWS: (NYSTROEM, {**parameters, "n_components": size}),
        SPAN: (MARGIN_PATH, {**parameters, **span, "random_state": 0}),
    }


def plan(records: Sequence[Record], quick: bool) -> list[Sparse]:
    found = []
    for dataset in SETS[:1] if quick else SETS:
        svm = svm_of(dataset)
        repeats = REPEATS.get(dataset, 1)
        for name in NAMES:
            if applies(name, dataset) and not (name == "rvm" and dataset == USPS):
                size = None if METHODS[name].whole else SHARE
                one = measurement(name, dataset, size, records, PART, repeats=repeats)
                found += [] if one is None else [one]
        for label, (path, params) in peers({"share": SHARE}, svm).items():
            # The same set, splits and parameters as ours.
            found.append(
                replace(
                    Sparse(label, loaded_as(dataset), path, params, part=PART, svm=svm),
                    set_name=dataset,
                    point={"share": SHARE},
                    repeats=repeats,
                )
            )
    return found


def over_span(records: Sequence[Record], record: Record) -> float | None:
    """Seconds over those of the span fit on the same set; None where they are not of one run."""
    span = [
        each
        for each in finished(records)
        if each["label"] == SPAN and each["dataset"] == record["dataset"]
    ]
    return fit_ratio(record, span[0]) if span and record["status"] == "ok" else None


def table(records: Sequence[Record]) -> Table:
    rows = []
    # The paper does not say which start it timed.
    printed = {METHODS[name].label: paper.SLMC for name in ("slmc-kmeans", "slmc-random")}
    for record in sorted(records, key=lambda record: SETS.index(record["dataset"])):
        label, dataset = record["label"], record["dataset"]
        rows.append(
            [
                f"{dataset}, {label}",
                text_of(record, "n_vectors", 0),
                beside(
                    text_of(record, "fit_seconds"),
                    number(paper.seconds(printed.get(label, label), dataset), 1),
                ),
                number(over_span(records, record), 1, "×"),
                text_of(record, "error", 2),
                number(microseconds(record), 1),
            ]
        )
    header = ["set, method", "vectors", "fit, s (paper)", "over the span fit"]
    header += ["test error, %", "prediction, µs a row"]
    notes = [
        f"{100 * SHARE:g} % of the SVM's support vectors, one split, the SVM's C and γ for all; "
        f"banana: the median of {REPEATS['banana']} fits. RS includes the exact SVM, and so does "
        "SLMC on USPS, where it counts support vectors itself. The peers have as many vectors as "
        "SLMC in all, one set for all classes. The paper's seconds are of a Pentium 4."
    ]
    return Table("Training time", header, rows, notes)
