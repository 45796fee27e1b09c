"""Beyond the Maxi-Min paper, measured once: MaxiMinDA with a kernel, and the number of dimensions.

Its conclusion leaves both open: "the extension to its non-linear version", and "how to choose a
suitable dimensionality".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.records import Record, text_of
from benchmarks.harness.report import MISSING, Table
from benchmarks.maximin import papers as paper
from benchmarks.maximin.data import IN_ONE_RANGE, loaded_as, plain_name
from benchmarks.maximin.fit import Projection
from benchmarks.maximin.methods import OURS
from benchmarks.maximin.tables import CLASSES, CLASSIFY, FOLDED, FOLDS, QUICK_ROWS, accuracy_text

PART = "kernel"
SETS = tuple(name + IN_ONE_RANGE for name in (*paper.UCI, "usps"))
N_CLASSES = CLASSES | {"usps": 10}
ALL = "linear, all dimensions"
KERNEL = "kernel, all dimensions"
AUTO = "linear, n_components auto"
BOTH = "kernel, n_components auto"
# Of 4,435 rows and more, few hundred vectors; by default 500.
RBF = {"kernel": "rbf", "gamma": "scale"}
FORMS: dict[str, dict[str, Any]] = {
    ALL: {},
    KERNEL: RBF,
    AUTO: {"n_components": "auto"},
    BOTH: {"n_components": "auto", **RBF},
}
QUICK_SETS = SETS[1:2]


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    found = []
    for name in QUICK_SETS if quick else SETS:
        plain = plain_name(name)
        folds = {"folds": 3 if quick else FOLDS} if plain in FOLDED else {}
        d = N_CLASSES[plain] - 1
        found += [
            Projection(
                label,
                loaded_as(name),
                OURS,
                {"n_components": d, "random_state": 0, **params},
                rows=QUICK_ROWS if quick and plain not in FOLDED else None,
                point={"d": d},
                part=PART,
                set_name=name,
                classify=CLASSIFY,
                **folds,
            )
            for label, params in FORMS.items()
        ]
    return found


def table(records: list[Record]) -> Table:
    results = {(record["set_name"], record["label"]): record for record in records}
    rows = []
    for name in SETS:
        for label in FORMS:
            record = results.get((name, label))
            if record is None:
                continue
            own = record.get("own", {})
            rows.append(
                [
                    plain_name(name),
                    label,
                    str(own.get("n_components", MISSING)),
                    accuracy_text(record),
                    text_of(record, "min_distance"),
                    str(own.get("sharpness", MISSING)),
                    f"{own['shrinkage']:.3g}" if "shrinkage" in own else MISSING,
                ]
            )
    header = ["set", "MaxiMinDA", "dimensions", "accuracy, %", "smallest distance"]
    notes = [
        "The default otherwise: sharpness and shrinkage by held-out rows. Columns in [0, 1]; the "
        'kernel is Gaussian with gamma="scale" in the span of 500 vectors at the most. Accuracy '
        f"is the best of 1 to 9 neighbours, one round of {FOLDS} folds for {', '.join(FOLDED)}. "
        "*n_components auto* keeps 0.9 of the smallest squared distance that all dimensions have; "
        "the dimensions are those for all training rows.",
    ]
    title = "A kernel, and the number of dimensions"
    return Table(title, [*header, "sharpness", "shrinkage"], rows, notes)
