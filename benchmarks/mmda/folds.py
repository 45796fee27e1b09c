"""Figure 3 of the MMDA paper: accuracy of a network over the dimensions, in ten folds.

Two classes, linear and kernel MMDA (hinge, C = 1, free bias) on standardised columns; the network
has three hidden units an input. The paper does not say the kernel of this figure nor C; ours is
Gaussian with γ = 1/β. Its table gives bupa 699 rows of 7 columns, where UCI has 345 of 6.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset, standardised
from benchmarks.harness.fits import Found, Keep, Spec, build
from benchmarks.harness.pictures import panel_each, saved
from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.mmda.classifiers import wide_network
from benchmarks.mmda.extract import Extraction
from benchmarks.mmda.plan import OURS

PART = "folds"
SETS = ("bupa", "pima", "ionosphere", "heart")
DIMENSIONS = (1, 2, 3, 4, 5, 6, 8, 10, 13)
FOLDS = 10
ORIGINAL = "original"
HINGE = {"C": 1.0, "loss": "hinge", "solver": "deflation"}
CLAIM = (
    "MMDA, Figure 3. The paper: on several sets a few features reach very good rates; sometimes "
    "more features do worse."
)
KERNELS: dict[str, dict[str, Any]] = {
    "MMDA": {"kernel": "linear", "early_end": False},
    "K-MMDA": {"kernel": "rbf", "gamma": "mean_distance", "early_end": False},
}

COLORS = {"MMDA": "#4292c6", "K-MMDA": "#b30000"}


def plan(quick: bool) -> list[Extraction]:
    params = {"folds": 3, "dimensions": (1, 2)} if quick else {}
    params = {"folds": FOLDS, "dimensions": DIMENSIONS, **params}
    return [
        Extraction(
            label,
            dataset,
            OURS,
            params | KERNELS.get(label, {}),
            rows=150 if quick else None,
            part=PART,
            task="benchmarks.mmda.folds.measure",
        )
        for dataset in (SETS[:2] if quick else SETS)
        for label in (ORIGINAL, *KERNELS)
    ]


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: accuracy of every fold for every number of dimensions."""
    from sklearn.model_selection import StratifiedKFold

    X, y = data.X_train, data.y_train
    params = dict(spec["params"])
    folds, dimensions = params.pop("folds"), params.pop("dimensions")
    original = spec["label"] == ORIGINAL
    wanted = [X.shape[1]] if original else list(dimensions)
    if params.get("kernel") == "linear":
        wanted = [k for k in wanted if k <= X.shape[1]]
    reached: dict[int, list[float]] = {k: [] for k in wanted}
    there = []
    splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y)
    for kept, held in splits:
        train, test = standardised(X[kept], X[held])
        if not original:
            params |= HINGE | {"n_directions": max(wanted)}
            with warnings.catch_warnings():
                # It says so when no separating direction is left; the columns tell that too.
                warnings.simplefilter("ignore")
                extractor = build(OURS, params, train, spec["threads"]).fit(train, y[kept])
            train, test = extractor.transform(train), extractor.transform(test)
        there.append(train.shape[1])
        for k in wanted:
            # Where a fold has fewer, these: a mean over some of the folds would compare other rows.
            parts = train[:, :k], y[kept], test[:, :k], y[held]
            reached[k].append(wide_network(*parts, spec["threads"])["accuracy"])
    # More than any fold has is no more than that.
    some = {k: found for k, found in reached.items() if k <= max(there)}
    return {
        "n_train": len(y),
        "n_inputs": X.shape[1],
        "dimensions": there,
        "means": {k: float(np.mean(found)) for k, found in some.items()},
        "deviations": {k: float(np.std(found, ddof=1)) for k, found in some.items()},
    }


# ---------------------------------------------------------------- table and picture


def row_of(record: Record, numbers: Sequence[str]) -> list[str]:
    missing = text_or_status(record, None)
    means = {k: number(mean) for k, mean in record.get("means", {}).items()}
    if record["label"] == ORIGINAL:
        cells = [MISSING] * len(numbers) + [next(iter(means.values()), missing)]
    else:
        cells = [means.get(k, missing) for k in numbers] + [MISSING]
    there = record.get("dimensions")
    size = f"{min(there)} to {max(there)}" if there else missing
    return [record["dataset"], record["label"], size, *cells]


def table(records: Sequence[Record]) -> Table:
    extracted = [record for record in records if record["label"] != ORIGINAL]
    # Records of earlier days ended where a direction separates no better than a constant.
    on = all(record["params"].get("early_end") is False for record in extracted)
    numbers = sorted({k for record in extracted for k in record.get("means", {})}, key=int)
    rows = [row_of(record, numbers) for record in records]
    header = ["accuracy of the network, %", "features", "found", *numbers, "all columns"]
    notes = [
        f"Means of {FOLDS} folds with classes in proportion; the picture adds the deviation "
        "of a fold. MMDA with the hinge, C = 1; K-MMDA Gaussian, γ = 1/β. Columns and features "
        "are standardised on the training rows. The sequence "
        f"{'goes on' if on else 'ends'} where a direction separates no better than a constant "
        f"(`early_end={not on}`). *Found* is how many directions there are, "
        "in the fold with the fewest and the most; a fold with fewer uses these. "
        "The paper prints curves only."
    ]
    return Table("MMDA, Figure 3: accuracy over dimensions", header, rows, notes)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    known = [record for record in records if record.get("means")]
    if not known:
        return None
    datasets = list(dict.fromkeys(record["dataset"] for record in known))
    figure, axes = panel_each(datasets, 3.6, 3.2)
    for panel, dataset in zip(axes, datasets, strict=True):
        for record in (record for record in known if record["dataset"] == dataset):
            means = list(record["means"].values())
            if record["label"] == ORIGINAL:
                panel.axhline(means[0], color="#777777", linestyle="--", label=ORIGINAL)
                continue
            over = [int(k) for k in record["means"]]
            spread = list(record["deviations"].values())
            looks = {"color": COLORS[record["label"]], "marker": "o", "capsize": 2}
            panel.errorbar(over, means, yerr=spread, label=record["label"], **looks)
        panel.set(title=dataset, xlabel="dimensions", ylabel="accuracy (%)")
        panel.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.suptitle(CLAIM, fontsize="medium")
    return saved(figure, path)
