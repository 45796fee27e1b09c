"""Tables 1 and 2 of the Maxi-Min paper: UCI sets at c − 1 dimensions, and USPS at 2 to 9."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import MISSING, Table, beside, number
from benchmarks.maximin import papers as paper
from benchmarks.maximin.data import STANDARDISED
from benchmarks.maximin.fit import Projection
from benchmarks.maximin.methods import (
    AUTO,
    LABELS,
    METHODS,
    PCA,
    REFINED,
    Results,
    best_neighbours,
    by_cell,
    labels_in,
    projection,
    score_of,
)

TABLE_1 = "table1"
TABLE_2 = "table2"
FOLDED = ("tae", "wine", "balance")
SETS = (*FOLDED, *(name + STANDARDISED for name in FOLDED), "satimage", "optdigits")
CLASSES = {"tae": 3, "wine": 3, "balance": 3, "satimage": 6, "optdigits": 10}
FOLDS = 10
ROUNDS = 10
DIMENSIONS = (2, 3, 4, 5, 6, 7, 8, 9)
CLASSIFY = ("knn", "mean")
QUICK_SETS = ("wine", "optdigits")
QUICK_DIMENSIONS = (2, 3)
QUICK_ROWS = 500
PAPER_NAME = {method.label: method.paper for method in METHODS.values()}


def dimensions_of(name: str) -> int:
    return CLASSES[name.removesuffix(STANDARDISED)] - 1


def plan_1(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    found = []
    for name in QUICK_SETS if quick else SETS:
        folded = name.removesuffix(STANDARDISED) in FOLDED
        rounds = {"folds": 3 if quick else FOLDS, "rounds": 1 if quick else ROUNDS}
        fields = rounds if folded else {"rows": QUICK_ROWS if quick else None}
        found += [
            projection(method, name, dimensions_of(name), TABLE_1, classify=CLASSIFY, **fields)
            for method in METHODS.values()
        ]
    return found


def plan_2(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    rows = QUICK_ROWS if quick else None
    return [
        projection(method, "usps", d, TABLE_2, classify=CLASSIFY, rows=rows)
        for d in (QUICK_DIMENSIONS if quick else DIMENSIONS)
        for method in METHODS.values()
    ]


# ---------------------------------------------------------------- tables


def accuracy_text(record: Record | None) -> str:
    """The best accuracy, with its deviation over the rounds."""
    found = text_or_status(record, best_neighbours(record), 1)
    spread = (record or {}).get("deviation")
    return found if spread is None else f"{found} ± {spread:.1f}"


def paper_text(cell: paper.Cell | None) -> str:
    if cell is None:
        return MISSING
    mean, spread = cell
    return f"{mean:.1f}" if spread is None else f"{mean:.1f} ± {spread:.1f}"


def distance_text(record: Record | None) -> str:
    return number((record or {}).get("min_distance"), 2)


def bound_of(results: Results, name: str, d: int) -> float | None:
    """The certified bound of the refined fit, which has the plain covariance."""
    return (results.get((name, REFINED, d)) or {}).get("own", {}).get("upper_bound")


def tables_1(records: list[Record]) -> list[Table]:
    results = by_cell(records, TABLE_1)
    names = [name for name in SETS if any(key[0] == name for key in results)]
    accuracies, distances = [], []
    for label in labels_in(results, LABELS):
        cells = [results.get((name, label, dimensions_of(name))) for name in names]
        accuracies.append([label])
        distances.append([label])
        for name, record in zip(names, cells, strict=True):
            printed = paper_text(paper.uci(PAPER_NAME[label], name.removesuffix(STANDARDISED)))
            accuracies[-1].append(beside(accuracy_text(record), printed))
            distances[-1].append(distance_text(record))
    bounds = [number(bound_of(results, name, dimensions_of(name))) for name in names]
    distances.append(["upper bound", *bounds])
    notes = [
        f"Dimensions: classes less one. {', '.join(FOLDED)}: {ROUNDS} rounds of {FOLDS} folds with "
        "classes in proportion, the mean and the deviation of the mean of a round; the paper does "
        "not say how often it drew folds. The others: their test rows. The number of neighbours is "
        "the best in the table, for every method, as in the paper. Values are raw unless the name "
        "says *standardised*: only PCA, LPP, LFDA and shrinkage depend on the units of the "
        f"columns, and {AUTO} alone shrinks, as is its default.",
        "At c − 1 dimensions the class means span one space, and MaxiMinDA, LDA and aPAC all find "
        "it (shrinkage aside). They differ by a rotation, which leaves distances as they are, so "
        "that their accuracies differ where rows tie only. *tae* has 151 rows, of which 45 repeat "
        "another; no method comes near the paper's 96 % on rows that are held out.",
    ]
    smallest = "The smallest squared Mahalanobis distance of two class means in the projection of "
    smallest += "all training rows, with the within-class covariance as it is."
    return [
        Table("Table 1: UCI sets at c − 1 dimensions", ["accuracy, %", *names], accuracies, notes),
        Table("Table 1: smallest distances", ["squared", *names], distances, [smallest]),
    ]


def tables_2(records: list[Record]) -> list[Table]:
    results = by_cell(records, TABLE_2)
    numbers = sorted({key[2] for key in results}, reverse=True)
    accuracies, means, distances = [], [], []
    for label in labels_in(results, LABELS):
        cells = {d: results.get(("usps", label, d)) for d in numbers}
        printed = {d: number(paper.usps(PAPER_NAME[label], d), 1) for d in numbers}
        accuracies.append([label, *(beside(accuracy_text(cells[d]), printed[d]) for d in numbers)])
        means.append([label, *(number(score_of(cells[d], "mean"), 1) for d in numbers)])
        distances.append([label, *(distance_text(cells[d]) for d in numbers)])
    distances.append(["upper bound", *(number(bound_of(results, "usps", d)) for d in numbers)])
    header = [f"d = {d}" for d in numbers]
    notes = [
        "The best of 1, 3, 5, 7 and 9 neighbours. *exact* and *online* have infinite sharpness "
        f"and no shrinkage; {AUTO} is the default, which chooses both on held-out rows. LPP joins "
        "rows of one class, which is nearer to the paper's figures than LPP without labels."
    ]
    chosen = [
        f"d = {d}: sharpness {own['sharpness']}, shrinkage {own['shrinkage']:.3g}"
        for d in numbers
        if "sharpness" in (own := (results.get(("usps", AUTO, d)) or {}).get("own", {}))
    ]
    if chosen:
        notes.append(f"{AUTO} chose: " + "; ".join(chosen) + ".")
    apart = "Squared, in the projection of the training rows; no projection of so many dimensions "
    apart += "exceeds the bound."
    return [
        Table("Table 2: USPS", ["accuracy, %", *header], accuracies, notes),
        Table("Table 2: nearest class mean", ["accuracy, %", *header], means),
        Table("Table 2: smallest distances", ["squared", *header], distances, [apart]),
    ]


def figure_2(records: list[Record], path: Path) -> Path | None:
    """Accuracies over the dimensions, and the smallest distances beside their bound."""
    results = by_cell(records, TABLE_2)
    labels = [label for label in labels_in(results, LABELS) if label != PCA]
    lines: dict[str, list[tuple[int, Record]]] = {
        label: sorted(
            (d, r) for (_, name, d), r in results.items() if name == label and "scores" in r
        )
        for label in labels
    }
    if not any(lines.values()):
        return None
    figure, (axes,) = panels(1, 2, (11, 4.2))
    for label, line in lines.items():
        over = [d for d, _ in line]
        width = 2.2 if label in {AUTO, REFINED} else 1.0
        looks = {"marker": "o", "markersize": 3, "linewidth": width, "label": label}
        axes[0].plot(over, [best_neighbours(record) for _, record in line], **looks)
        axes[1].plot(over, [record["min_distance"] for _, record in line], **looks)
    bounds = [
        (d, bound) for d in lines.get(REFINED, []) if (bound := bound_of(results, "usps", d[0]))
    ]
    axes[1].plot(
        [d for (d, _), _ in bounds], [bound for _, bound in bounds], "k:", label="upper bound"
    )
    for panel, label in zip(axes, ("accuracy (%)", "smallest squared distance"), strict=True):
        panel.set(xlabel="dimensions", ylabel=label, title="USPS")
        panel.grid(alpha=0.3)
    axes[1].legend(fontsize="x-small")
    return saved(figure, path)
