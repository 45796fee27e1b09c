"""Figure 2 of the Maxi-Min paper: one direction for three classes, two of which may be close."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import NOTHING, Dataset
from benchmarks.harness.fits import Found, Keep, Spec
from benchmarks.harness.pictures import panel_each, panels, saved
from benchmarks.harness.records import Record, text_of
from benchmarks.harness.report import Table, number
from benchmarks.maximin.classifiers import smallest_distance
from benchmarks.maximin.data import FIGURE_2, figure_2
from benchmarks.maximin.fit import Projection, facts_of_fit, made
from benchmarks.maximin.methods import METHODS

PART = "figure2"
NAMES = (
    "exact-refine",
    "exact-eigen",
    "online-eigen",
    "lda",
    "apac",
    "lfda",
    "lpp",
    "lpp-unlabelled",
    "pca",
)
ROWS = 250
QUICK_ROWS = 60
CLAIM_1 = (
    "Paper: (a) LDA finds a good axis for three classes; (b) where two are close, LDA merges them, "
    "and another axis (dashed) keeps all apart"
)
CLAIM_2 = (
    "Paper: (a) all axes are alike; (b) only MMDA keeps the close classes apart, and MMDASDP and "
    "MMDAOnline have one axis"
)
CLASS_COLORS = ("#a6d96a", "#fdae61", "#abd9e9")
COLORS = (
    "#b30000",
    "#e34a33",
    "#fc8d59",
    "#4292c6",
    "#08519c",
    "#31a354",
    "#756bb1",
    "#9e9ac8",
    "#777777",
)


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    return [
        Projection(
            METHODS[name].label,
            NOTHING,
            METHODS[name].estimator,
            {"n_components": 1, **METHODS[name].params},
            point={"d": 1},
            part=PART,
            set_name=case,
            rows=QUICK_ROWS if quick else ROWS,
            task="benchmarks.maximin.figure2.measure",
        )
        for case in FIGURE_2
        for name in NAMES
    ]


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: the direction, its angle, and the smallest distance along it."""
    X, y = figure_2(spec["set_name"], spec["rows"])
    estimator = made(spec, X).fit(X, y)
    ends = estimator.transform(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).ravel()
    direction = ends[1:] - ends[0]
    direction = direction / np.linalg.norm(direction)
    # A direction and its opposite are one: between −90 and 90 degrees.
    angle = float(np.degrees(np.arctan2(direction[1], direction[0])))
    angle = (angle + 90.0) % 180.0 - 90.0
    return {
        "direction": direction,
        "angle": angle,
        "min_distance": smallest_distance(X @ direction[:, None], y),
        **facts_of_fit(estimator),
    }


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        bound = record.get("own", {}).get("upper_bound")
        rows.append(
            [
                record["set_name"],
                record["label"],
                text_of(record, "angle", 1, "°"),
                number(record.get("min_distance")),
                number(bound),
            ]
        )
    header = ["classes", "method", "angle with the first axis", "smallest distance, squared"]
    notes = [
        f"{ROWS} rows a class, standard normal about its mean; the paper prints no means, ours are "
        + "; ".join(f"{name}: {means}" for name, means in FIGURE_2.items())
        + ". As in the paper, all agree in the first case, and in the second only MaxiMinDA keeps "
        "the close classes apart. The leading eigenvector of the relaxation's solution (*eigen*) "
        "looks at these two, and lets the third fall between them; *refine* does not. In the "
        "picture the lines pass through the mean.",
    ]
    return Table("Figure 2: three classes, one direction", [*header, "upper bound"], rows, notes)


def figure_1(records: Sequence[Record], path: Path) -> Path | None:
    """The classes, LDA's axis and ours, and below the rows along each of the two axes."""
    known = [record for record in records if record.get("direction")]
    cases = list(dict.fromkeys(record["set_name"] for record in known))
    axes_of = {(r["set_name"], r["label"]): np.array(r["direction"]) for r in known}
    labels = (METHODS["lda"].label, METHODS["exact-refine"].label)
    if not all((case, label) in axes_of for case in cases for label in labels) or not cases:
        return None
    figure, axes = panels(3, len(cases), (5.0 * len(cases), 7.0), height_ratios=(3, 1, 1))
    for column, case in enumerate(cases):
        X, y = figure_2(case, known[0]["rows"])
        parts = [X[y == label] for label in np.unique(y)]
        for part, color in zip(parts, CLASS_COLORS, strict=True):
            axes[0, column].scatter(*part.T, s=5, color=color)
        for row, (label, style) in enumerate(zip(labels, ("-", "--"), strict=True), 1):
            way = axes_of[case, label]
            ends = X.mean(axis=0) + np.outer((-9.0, 9.0), way)
            axes[0, column].plot(*ends.T, style, color="black", label=label)
            for part, color in zip(parts, CLASS_COLORS, strict=True):
                axes[row, column].hist(part @ way, bins=40, color=color, alpha=0.6)
            axes[row, column].set(yticks=[], xlabel=f"along {label}")
        axes[0, column].set(title=f"({'ab'[column]}) {case}", xlim=(-12, 12), ylim=(-9, 9))
        axes[0, column].legend(fontsize="x-small", loc="upper right")
    figure.suptitle(CLAIM_1, fontsize="small", wrap=True)
    return saved(figure, path)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    known = [record for record in records if record.get("direction")]
    if not known:
        return None
    cases = list(dict.fromkeys(record["set_name"] for record in known))
    figure, axes = panel_each(cases, 5.5, 4.4)
    for panel, case in zip(axes, cases, strict=True):
        mine = [record for record in known if record["set_name"] == case]
        X, y = figure_2(case, mine[0]["rows"])
        for label, color in zip(np.unique(y), CLASS_COLORS, strict=True):
            panel.scatter(*X[y == label].T, s=5, color=color)
        middle = X.mean(axis=0)
        for number_of, record in enumerate(mine):
            way = 9.0 * np.array(record["direction"])
            ends = np.array([middle - way, middle + way])
            style = "-" if number_of % 2 == 0 else "--"
            label = f"{record['label']}, {record['angle']:.0f}°"
            panel.plot(*ends.T, style, color=COLORS[number_of % len(COLORS)], label=label)
        panel.set(title=case, aspect="equal", xlim=(-12, 12), ylim=(-9, 9))
        panel.legend(fontsize="x-small", loc="upper right")
    figure.suptitle(CLAIM_2, fontsize="small")
    return saved(figure, path)
