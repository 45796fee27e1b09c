"""Figure 2 of the Maxi-Min paper: one direction for three classes, two of which may be close."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import NOTHING, Dataset
from benchmarks.harness.fits import Found, Keep, Spec
from benchmarks.harness.pictures import panel_each, saved
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


def figure(records: Sequence[Record], path: Path) -> Path | None:
    known = [record for record in records if record.get("direction")]
    if not known:
        return None
    cases = list(dict.fromkeys(record["set_name"] for record in known))
    figure, axes = panel_each(cases, 5.5, 4.4)
    for panel, case in zip(axes, cases, strict=True):
        mine = [record for record in known if record["set_name"] == case]
        X, y = figure_2(case, mine[0]["rows"])
        for label, color in zip(np.unique(y), ("#a6d96a", "#fdae61", "#abd9e9"), strict=True):
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
    return saved(figure, path)
