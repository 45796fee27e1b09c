"""Figures 2 to 4 of the MMDA-CVM paper: accuracy, time and kernel evaluations over the features.

The paper prints curves without numbers. What its tables say of the same sets at N_c, 3N_c and 5N_c
features is what ours is compared with. Accuracies and evaluations are those of the tables' fits,
whose first directions they are; times have fits of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.pictures import panel_each, saved
from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import Table, beside, number
from benchmarks.mmda import papers as paper
from benchmarks.mmda.extract import ALL
from benchmarks.mmda.papers import CLASSES, DIRECTIONS
from benchmarks.mmda.plan import METHODS, SMALL_SETS, set_of

COLORS = {"core": "#b30000", "hinge": "#000000", "kfd": "#41ab5d", "kpca": "#4292c6"}
NAMES = tuple(COLORS)

# Features and what there is for them, ours and the paper's, and how many features that has: ours
# are fewer where directions end early.
Point = tuple[int, float, float | None, int]


def name_of(record: Record) -> str:
    return next(name for name, method in METHODS.items() if method.label == record["label"])


def lines(records: Sequence[Record], name: str, dataset: str) -> list[Record]:
    mine = [r for r in records if set_of(r["dataset"]) == dataset and name_of(r) == name]
    return sorted(mine, key=lambda r: r["point"].get("directions", 0))


def paper_order(name: str, n_directions: int) -> int:
    """How the paper's tables call that number of directions: KPCA and KFD have one line."""
    if METHODS[name].solver is not None:
        return n_directions
    return ALL if name == "kfd" or n_directions == max(DIRECTIONS) else -1


def features_of(name: str, n_directions: int, dataset: str) -> int:
    return CLASSES[dataset] - 1 if name == "kfd" else CLASSES[dataset] * n_directions


def accuracies(records: Sequence[Record], name: str, dataset: str) -> list[Point]:
    """Of the network, for every number of features."""
    found = []
    for record in lines(records, name, dataset):
        for k, score in record.get("scores", {}).get("ANN", {}).items():
            printed = paper.accuracy(METHODS[name].paper, "ANN", paper_order(name, int(k)), dataset)
            theirs = features_of(name, int(k), dataset)
            found.append((int(score["n_features"]), float(score["accuracy"]), printed, theirs))
    return sorted(found, key=lambda point: point[0])


def evaluations(
    records: Sequence[Record], name: str, dataset: str, key: str = "each"
) -> list[Point]:
    """Kernel evaluations of a row: summed over the features (``each``), or ``distinct``."""
    found: list[Point] = []
    for record in lines(records, name, dataset):
        counted = record.get("evaluations", {})
        wanted = record.get("scores", {}).get("ANN", {})
        for k, score in wanted.items():
            one = counted.get(k) or counted.get(str(ALL))
            if one is None:
                continue
            features = int(score["n_features"])
            each = paper.evaluations(METHODS[name].paper, paper_order(name, int(k)), dataset)
            total = one[key] * (1 if key == "distinct" else features)
            theirs = features_of(name, int(k), dataset)
            printed = None if each is None or key == "distinct" else each * theirs
            found.append((features, float(total), printed, theirs))
    return sorted(found, key=lambda point: point[0])


def seconds(records: Sequence[Record], name: str, dataset: str) -> list[Point]:
    """Of the extraction; times of 2007's machine are not drawn beside ours."""
    found: list[Point] = []
    for record in lines(records, name, dataset):
        if record.get("fit_seconds") is not None:
            features = features_of(name, record["point"]["directions"], dataset)
            found.append((features, float(record["fit_seconds"]), None, features))
    return found


def table(records: Sequence[Record]) -> Table:
    rows = []
    for dataset in SMALL_SETS:
        for name in NAMES:
            together = evaluations(records, name, dataset, "distinct")
            summed = evaluations(records, name, dataset)
            reached = accuracies(records, name, dataset)
            own = functools.partial(text_or_status, next(iter(lines(records, name, dataset)), None))
            for place, (features, accuracy, printed, _) in enumerate(reached):
                cells = [beside(own(accuracy, 2), number(printed))]
                if place < len(summed):
                    _, total, theirs, _ = summed[place]
                    cells.append(beside(own(total, 0), number(theirs, 0)))
                    cells.append(own(together[place][1], 0))
                else:
                    cells += [own(None), own(None)]
                rows.append([dataset, METHODS[name].label, str(features), *cells])
    header = ["set", "method", "features", "ANN, % (paper)"]
    header += ["kernel evaluations, summed (paper)", "together"]
    notes = [
        "The paper's figures have no numbers; in brackets is what its tables say at that number of "
        "features. Kernel evaluations are summed over the features, as the paper does, and counted "
        "once for all features together."
    ]
    return Table("Figures 2 and 4: over the number of features", header, rows, notes)


# ---------------------------------------------------------------- pictures


def drawn(
    records: Sequence[Record],
    path: Path,
    points: Callable[[Sequence[Record], str, str], list[Point]],
    label: str,
    claim: str,
    scale: str = "linear",
) -> Path | None:
    """A panel a set, a line a method; crosses are the paper's tables."""
    found = {
        (dataset, name): points(records, name, dataset) for dataset in SMALL_SETS for name in NAMES
    }
    datasets = [d for d in SMALL_SETS if any(found[d, name] for name in NAMES)]
    if not datasets:
        return None
    figure, axes = panel_each(datasets, 4.2, 4.0)
    for panel, dataset in zip(axes, datasets, strict=True):
        for name in NAMES:
            mine = found[dataset, name]
            looks = {"color": COLORS[name], "markersize": 4}
            ours = [(features, value) for features, value, _, _ in mine]
            if ours:
                panel.plot(*zip(*ours, strict=True), marker="o", label=METHODS[name].label, **looks)
            theirs = [(place, value) for _, _, value, place in mine if value is not None]
            if theirs:
                panel.plot(*zip(*theirs, strict=True), "x", color=COLORS[name], markersize=7)
        panel.set(xlabel="features", ylabel=label, yscale=scale, title=dataset)
        panel.grid(alpha=0.3)
    axes[0].legend(fontsize="small", title="× the paper's tables")
    figure.suptitle(claim, fontsize="medium")
    return saved(figure, path)


ACCURACY_CLAIM = (
    "MMDA-CVM, Figure 2. The paper: accuracy grows with the features at first, then stays or "
    "drops;\nboth MMDAs are better than the others with 3N_c to 5N_c features."
)
TIME_CLAIM = (
    "MMDA-CVM, Figure 3. The paper: the time of MMDA grows with the features, that of KPCA hardly "
    "does;\nthe core set is much faster than the exact solver."
)
EVALUATIONS_CLAIM = (
    "MMDA-CVM, Figure 4. The paper: kernel evaluations grow steadily with the features;\nthose of "
    "the core set are the fewest."
)


def accuracy_figure(records: Sequence[Record], path: Path) -> Path | None:
    return drawn(records, path, accuracies, "test accuracy of the ANN (%)", ACCURACY_CLAIM)


def time_figure(records: Sequence[Record], path: Path) -> Path | None:
    return drawn(records, path, seconds, "extraction (s)", TIME_CLAIM, "log")


def evaluations_figure(records: Sequence[Record], path: Path) -> Path | None:
    return drawn(
        records, path, evaluations, "kernel evaluations a row, summed", EVALUATIONS_CLAIM, "log"
    )
