"""Figure 5 of the Maxi-Min paper: training time over the features of USPS, and over the classes.

The relaxation is solved in the space that the class means span, nine dimensions on USPS, so that
more features cost nothing there; more classes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.pictures import panels, pyplot, saved
from benchmarks.harness.records import Record, finished, text_of
from benchmarks.harness.report import Table
from benchmarks.maximin.data import loaded_as
from benchmarks.maximin.fit import Projection
from benchmarks.maximin.methods import METHODS, OURS, Method, hard

PART = "time"
SDP = "sdp, eigen"
# Fewer than in the paper: every point is a process of its own, and the whole takes some minutes.
FEATURES = (10, 40, 80, 160)
CLASSES = (5, 20, 40, 80, 160)
QUICK_FEATURES = (10, 20)
QUICK_CLASSES = (5, 8)
QUICK_ROWS = 400
CLAIM = (
    "Paper: the online algorithm's time stays the same with more features, and is far below that "
    "of the semidefinite program"
)
# Seconds after which larger semidefinite programs are not tried.
SDP_LIMIT = 60.0
USPS_DIMENSIONS = 9
CLASS_DIMENSIONS = 4
USPS = "usps"
OMNIGLOT = "omniglot_small_242"
MACHINES = [
    METHODS["exact-eigen"],
    METHODS["online-eigen"],
    METHODS["exact-refine"],
    Method(SDP, OURS, hard("sdp", "eigen")),
    METHODS["auto"],
    METHODS["lda"],
    METHODS["apac"],
    METHODS["lfda"],
    METHODS["lpp"],
    METHODS["pca"],
]
LABELS = [method.label for method in MACHINES]


def one(method: Method, name: str, size: int, quick: bool) -> Projection:
    """A fit alone, of so many features (USPS) or classes (Omniglot)."""
    of_features = name == USPS
    params = dict(method.params)
    if not of_features and "shrinkage" in params:
        params["shrinkage"] = "auto"  # 15 rows a class, and 1,225 columns
    return Projection(
        method.label,
        loaded_as(name),
        method.estimator,
        {"n_components": USPS_DIMENSIONS if of_features else CLASS_DIMENSIONS, **params},
        repeats=1 if quick or method.label == SDP else 3,
        rows=QUICK_ROWS if quick and of_features else None,
        point={"features" if of_features else "classes": size},
        requires="cvxpy" if method.label == SDP else None,
        part=PART,
        set_name=name,
        features=size if of_features else None,
        classes=None if of_features else size,
    )


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    """Small ones first: a method that is out of time need not try the others."""
    sizes = {
        USPS: QUICK_FEATURES if quick else FEATURES,
        OMNIGLOT: QUICK_CLASSES if quick else CLASSES,
    }
    return [
        one(method, name, size, quick)
        for name, numbers in sizes.items()
        for size in numbers
        for method in MACHINES
    ]


def hopeless(records: Sequence[Record], measurement: Projection) -> bool:
    """Whether a smaller problem of this kind has run out of time already."""
    return any(
        record["part"] == PART
        and record["label"] == measurement.label
        and record["set_name"] == measurement.set_name
        and record["status"] == "timeout"
        and size_of(record) < next(iter(measurement.point.values()))
        for record in records
    )


# ---------------------------------------------------------------- tables and picture


def size_of(record: Record) -> float:
    return next(iter(record["point"].values()))


def tables(records: Sequence[Record]) -> list[Table]:
    found = []
    for name, axis in ((USPS, "features"), (OMNIGLOT, "classes")):
        mine = {(r["label"], size_of(r)): r for r in records if r["set_name"] == name}
        sizes = sorted({size for _, size in mine})
        rows = [
            [label, *(text_of(mine.get((label, size)), "fit_seconds", 3) for size in sizes)]
            for label in LABELS
            if any(key[0] == label for key in mine)
        ]
        if not rows:
            continue
        d = USPS_DIMENSIONS if axis == "features" else CLASS_DIMENSIONS
        notes = [
            f"Seconds of a fit after a warm-up, the median of three (one of *{SDP}*), at d = {d}; "
            f"*{SDP}* is CVXPY's semidefinite program, and is not tried with more {axis} once it "
            "is out of time. All three solvers work in the space that the class means span."
        ]
        title = f"Figure 5: training time over {axis}, {name}"
        found.append(Table(title, ["s", *(f"{size:g}" for size in sizes)], rows, notes))
    return found


def figure(records: Sequence[Record], path: Path) -> Path | None:
    known = finished(records)
    if not known:
        return None
    figure, (axes,) = panels(1, 2, (11, 4.2))
    colors = pyplot().get_cmap("tab10").colors
    for panel, (name, axis) in zip(axes, ((USPS, "features"), (OMNIGLOT, "classes")), strict=True):
        for label, color in zip(LABELS, colors, strict=True):
            line = sorted(
                (size_of(r), r["fit_seconds"])
                for r in known
                if (r["set_name"], r["label"]) == (name, label)
            )
            if line:
                panel.plot(*zip(*line, strict=True), color=color, marker="o", ms=3, label=label)
        panel.set(title=name, xlabel=axis, ylabel="fit (s)", yscale="log")
        panel.grid(alpha=0.3)
    axes[0].legend(fontsize="x-small")
    figure.suptitle(CLAIM, fontsize="small")
    return saved(figure, path)
