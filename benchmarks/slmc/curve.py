"""What every number of vectors is good for: one fit that grows, beside fits of their own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, percent, timed_fit
from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record
from benchmarks.harness.report import MISSING, Table, number, shown
from benchmarks.slmc.choice import svm_of
from benchmarks.slmc.data import USPS, loaded_as, split_of
from benchmarks.slmc.fit import Sparse, resolved, warm_up
from benchmarks.slmc.plan import METHODS, SLMC_PATH

PART = "curve"
TASK = "benchmarks.slmc.curve.measure"
SHARE = 0.10
# The set, and how it grows: by one is too slow for hundreds of vectors.
LINES = (("banana", "one"), ("banana", "double"), ("image", "one"), ("image", "double"))
LINES += ((USPS, "double"),)
# No figure of the paper: its conclusions name growth as work for the future.
CLAIM = (
    "The paper, section 6: vectors might be found one after another, to make training faster.\n"
    "One fit that grows has a machine for every number of vectors; apart: a fit for each number."
)


def plan(quick: bool) -> list[Sparse]:
    found = []
    for dataset, grow in LINES[:2] if quick else LINES:
        svm = svm_of(dataset)
        # Shared vectors, for which the squared hinge is the faster of the two.
        kind = "slmc-shared" if dataset == USPS else "slmc-kmeans"
        params = {**METHODS[kind].params, **svm, "n_vectors": {"share": SHARE}, "grow": grow}
        one = Sparse(grow, loaded_as(dataset), SLMC_PATH, {**params, "random_state": 0}, task=TASK)
        found.append(replace(one, part=PART, set_name=dataset, svm=svm))
    return found


def fit_of(spec: Spec, params: dict[str, Any], data: Dataset) -> Found:
    """A fit with its seconds, W, and errors of training and test rows."""
    machine = build(spec["estimator"], params, data.X_train, spec["threads"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a stage may end at max_iter
        seconds = timed_fit(machine, data.X_train, data.y_train)
    return {
        "seconds": seconds,
        "W": machine.certificate_.primal,
        "n_vectors": machine.n_vectors_,
        "training": 100.0 - percent(machine.predict(data.X_train), data.y_train),
        "error": 100.0 - percent(machine.predict(data.X_test), data.y_test),
        "curve": getattr(machine, "accuracy_curve_", None),
    }


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: the fit that grows, then one for each of its numbers of vectors."""
    data = split_of(spec["set_name"], data, spec["splits"][0])
    params = resolved(spec, data)

    def make(**changes: Any) -> Any:
        return build(spec["estimator"], params | changes, data.X_train, spec["threads"])

    warm_up(make, spec, data)
    grown = fit_of(spec, params, data)
    found: Found = {"grown": grown, "apart": [], "fit_seconds": grown["seconds"]}
    found |= {"error": grown["error"]}
    for size in grown["curve"]["n_vectors"]:
        apart = fit_of(spec, params | {"grow": None, "n_vectors": int(size)}, data)
        found["apart"].append(apart)
        keep(found)
    return found


def rows_of(record: Record) -> list[list[str]]:
    """A row a number of vectors, the last of them with errors on the test rows."""
    name = f"{record['dataset']}, by {record['label']}"
    grown = record.get("grown")
    if grown is None:
        return [[name, record["status"], *([MISSING] * 6)]]
    curve, apart = grown["curve"], record.get("apart", [])
    rows = []
    for k, size in enumerate(curve["n_vectors"]):
        own = apart[k] if k < len(apart) else {}
        last = k == len(curve["n_vectors"]) - 1
        rows.append(
            [
                name,
                str(size),
                number(100.0 * (1.0 - curve["training_accuracy"][k])),
                number(own.get("training")),
                f"{curve['W'][k]:.4g}",
                shown(own.get("W"), ".4g"),
                number(grown["error"]) if last else MISSING,
                number(own.get("error")),
            ]
        )
    return rows


def table(records: Sequence[Record]) -> Table:
    order = [dataset for dataset, _ in LINES]
    mine = sorted(records, key=lambda record: order.index(record["dataset"]))
    header = ["set, growth", "vectors", "training error, %: grown", "apart", "W: grown", "apart"]
    header += ["test error, %: grown", "apart"]
    seconds = []
    for record in mine:
        if record.get("apart"):
            spent = sum(each["seconds"] for each in record["apart"])
            seconds.append(
                f"{record['dataset']} by {record['label']}: {record['grown']['seconds']:.1f} s "
                f"grown, {spent:.1f} s for the {len(record['apart'])} fits apart"
            )
    notes = [
        f"`grow=` up to {100 * SHARE:g} % of the SVM's support vectors (USPS: of all ten machines, "
        "shared, squared hinge); the first split. A fit apart starts from k-means with that many "
        "vectors. " + "; ".join(seconds) + ("." if seconds else "")
    ]
    return Table("Growing", header, [row for record in mine for row in rows_of(record)], notes)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    """Training error against vectors, a panel a set."""
    mine = [record for record in records if record.get("grown")]
    if not mine:
        return None
    sets = list(dict.fromkeys(record["dataset"] for record in mine))
    drawn, axes = panels(1, len(sets), (4.2 * len(sets), 3.8))
    for ax, dataset in zip(axes[0], sets, strict=True):
        for record in (record for record in mine if record["dataset"] == dataset):
            curve = record["grown"]["curve"]
            wrong = 100.0 * (1.0 - np.array(curve["training_accuracy"]))
            ax.plot(curve["n_vectors"], wrong, marker="o", label=f"grown by {record['label']}")
        apart = [
            each for record in mine if record["dataset"] == dataset for each in record["apart"]
        ]
        points = sorted({(each["n_vectors"], each["training"]) for each in apart})
        if points:
            ax.plot(*zip(*points, strict=True), marker="x", linestyle=":", label="apart")
        ax.set(xscale="log", xlabel="vectors", ylabel="training error (%)", title=dataset)
        ax.legend(fontsize="small")
        ax.grid(alpha=0.3)
    drawn.suptitle(CLAIM, fontsize="medium")
    return saved(drawn, path, dpi=110)
