"""The blocks of README.md, and of pages that tell what it told once, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.harness.records import Record
from benchmarks.harness.report import markdown_table, number
from benchmarks.maximin.methods import best_neighbours
from benchmarks.middle.fit import GRID, LIBSVM, OURS
from benchmarks.middle.tables import MANY, mean_ratio, ratio_of
from benchmarks.readme.figures import Figures

HEADER = ("data", "machine", "fit, s", "accuracy, %", "vectors")

# Sets of the table of peers: its name, and the machines that are shown with how they are written.
AUTO = ("ours, auto", "`MarginClassifier()`")
INTELEX = ("SVC (intelex)", "`SVC` (intelex)")
PEERS: dict[tuple[str, float], tuple[str, Sequence[tuple[str, str]]]] = {
    ("covtype_100000", 1.0): (
        "covtype, 100,000 rows, C = 1",
        (
            AUTO,
            ("ours, 1000 vectors", "`MarginClassifier(max_vectors=1000)`"),
            INTELEX,
            ("Nystroem(300) + LinearSVC", "`Nystroem(300)` + `LinearSVC`"),
        ),
    ),
    ("covtype_100000", 10.0): (
        "covtype, 100,000 rows, C = 10",
        (AUTO, ("ours, 2000 vectors", "`MarginClassifier(max_vectors=2000)`"), INTELEX),
    ),
    ("mnist_unit", 10.0): (
        "MNIST, 60,000 rows, C = 10",
        (AUTO, ("ours, 2000 vectors", "`MarginClassifier(max_vectors=2000)`"), INTELEX),
    ),
    ("ijcnn1_40000", 10.0): (
        "ijcnn1, 40,000 rows, C = 10",
        (AUTO, ("ours, 1000 vectors", "`MarginClassifier(max_vectors=1000)`"), INTELEX),
    ),
    ("letter", 10.0): (
        "letter, 15,000 rows, 26 classes, C = 10",
        (AUTO, ("SVC", "`SVC` (LIBSVM)"), INTELEX),
    ),
}

CELLS: dict[tuple[float, float], str] = {
    (8.0, 10.0): "covtype, 100,000 rows, γ = 8/β, C = 10",
    (1.0, 100.0): "covtype, 100,000 rows, γ = 1/β, C = 100",
}
CELL_MACHINES = (
    ("cells", '`MarginClassifier(engine="cells")`'),
    ("span", '`MarginClassifier(engine="span")`'),
    INTELEX,
)
WHOLE = (
    ("one fit", "covtype, 531,012 rows, γ = 100/β, C = 10", '`MarginClassifier(engine="cells")`'),
    ("search", "", '`MarginClassifierCV(engine="cells")`, 3 × 3 values, 3 folds'),
    ("one fit, seven classes", "the same, all seven classes", '`MarginClassifier(engine="cells")`'),
)


def fit_line(title: str, machine: str, record: Record) -> list[str]:
    seconds, accuracy = number(record["fit_seconds"], 1), number(record["accuracy"])
    return [title, machine, seconds, accuracy, number(record.get("n_vectors"), 0)]


def titled(lines: Sequence[list[str]]) -> list[list[str]]:
    """The lines of one set, of which the first names it."""
    return [[line[0] if k == 0 else "", *line[1:]] for k, line in enumerate(lines)]


def peers(figures: Figures) -> str:
    rows: list[list[str]] = []
    for (dataset, C), (title, machines) in PEERS.items():
        rows += titled(
            [
                fit_line(
                    title,
                    written,
                    figures.record("peers", dataset, label, gamma_factor=1.0, C=C),
                )
                for label, written in machines
            ]
        )
    return markdown_table(HEADER, rows)


def cells(figures: Figures) -> str:
    rows: list[list[str]] = []
    for (gamma_factor, C), title in CELLS.items():
        point = {"gamma_factor": gamma_factor, "C": C}
        rows += titled(
            [
                fit_line(
                    title,
                    written,
                    figures.record("cells", "covtype_100000", label, "peers", **point),
                )
                for label, written in CELL_MACHINES
            ]
        )
    for label, title, written in WHOLE:
        rows.append(fit_line(title, written, figures.record("cells", "covtype", label, "whole")))
    return markdown_table(HEADER, rows)


def middle(figures: Figures) -> str:
    lines = []
    fits, searches = figures.records("middle", "fit"), figures.records("middle", "search")
    for C in sorted({record["point"]["C"] for record in fits}):
        of_C = [record for record in fits if record["point"]["C"] == C and _has(record, LIBSVM)]
        many = [record for record in of_C if record["n_rows"] >= MANY]
        ratios = [ratio_of(record, LIBSVM) or 1.0 for record in many]
        gained = [
            record["machines"][OURS]["accuracy"] - record["machines"][LIBSVM]["accuracy"]
            for record in of_C
        ]
        lines.append(
            f"- C = {C:g}: a fit takes {mean_ratio(ratios):.2f} of LIBSVM's time (geometric mean "
            f"of {len(many)} sets with {MANY:,} rows or more; {min(ratios):.2f} to "
            f"{max(ratios):.2f}), and test accuracy differs by {np.mean(gained):+.2f} points in "
            f"the mean of all {len(of_C)} sets ({min(gained):+.1f} to {max(gained):+.1f})."
        )
    searches = [record for record in searches if _has(record, GRID)]
    for named, least, most in (("fewer than 1,000 rows", 0, MANY), ("more", MANY, np.inf)):
        some = [1.0 / (ratio_of(r, GRID) or 1.0) for r in searches if least <= r["n_rows"] < most]
        lines.append(
            f"- The search over 5 values of C, 4 widths and 3 folds is {mean_ratio(some):.1f} "
            f"times as fast as `GridSearchCV(SVC)` on {len(some)} sets of {named} "
            f"({min(some):.1f} to {max(some):.1f})."
        )
    return "\n".join(lines)


def _has(record: Record, peer: str) -> bool:
    return OURS in record["machines"] and peer in record["machines"]


def features(figures: Figures) -> str:
    margin = figures.record("mmda", "mnist_unit", "MMDA span", "peers")
    wide = figures.record(
        "mmda", "mnist_unit", "MMDA span, C = 10, by margins", "tables", directions=5
    )
    exact = figures.record("mmda", "mnist_unit", "KPCA", "peers")
    arpack = figures.record("mmda", "mnist_unit", "KPCA, ARPACK", "peers")
    rows = [
        _features('`MaxMarginDA(5, C=10, scale="margin")`, all rows', wide, "5"),
        _features("`MaxMarginDA(5, C=0.5)`, all rows", margin, "0"),
        _features("`KernelPCA(50)`, 3,500 rows", exact, "0"),
        _features('`KernelPCA(50, eigen_solver="arpack")`, 3,500 rows', arpack, "0"),
    ]
    header = ("50 features of MNIST", "fit, s", "transform of 70,000 rows, s", "1-NN accuracy, %")
    return markdown_table(header, rows)


def _features(written: str, record: Record, directions: str) -> list[str]:
    accuracy = record["scores"]["1-NN"][directions]["accuracy"]
    return [
        written,
        number(record["fit_seconds"], 1),
        number(record["transform_seconds"], 1),
        number(accuracy),
    ]


def maximin(figures: Figures) -> str:
    rows = []
    for d in (3, 4, 5):
        of = {
            label: figures.record("maximin", "usps", label, "table2", d=d)
            for label in ("MaxiMinDA", "LDA")
        }
        best = [number(best_neighbours(of[label]), 1) for label in ("MaxiMinDA", "LDA")]
        rows.append([f"USPS, {d} dimensions, nearest neighbours", *best, ""])
    d = 20
    shrunk = "LDA, shrinkage of MaxiMinDA"
    named = [
        figures.record("maximin", "omniglot_small_242", label, "omniglot", d=d)["scores"]["mean"]
        for label in ("MaxiMinDA", "LDA", shrunk)
    ]
    title = f"Omniglot, 242 classes of 15 drawings, {d} dimensions, nearest class mean"
    rows.append([title, *(number(each, 1) for each in named)])
    header = ("accuracy, %", "`MaxiMinDA`", "LDA", "LDA with the same shrinkage")
    return markdown_table(header, rows)


def sparse(figures: Figures) -> str:
    rows = [
        [
            written,
            number(record["fit_seconds"], 0),
            number(record["accuracy"], 1),
        ]
        for label, written in (
            (
                "SLMC, squared hinge, shared vectors",
                "`SparseMarginClassifier(200, share_vectors=True)`",
            ),
            ("k-means vectors, span fit", '`MarginClassifier(vectors="kmeans", max_vectors=200)`'),
            ("Nystroem + LinearSVC", "`Nystroem(200)` + `LinearSVC`"),
        )
        for record in [figures.record("slmc", "mnist_unit", label, "mnist")]
    ]
    return markdown_table(("200 vectors on MNIST, 60,000 rows", "fit, s", "accuracy, %"), rows)


def growth(figures: Figures) -> str:
    few, many = (
        figures.record("span", "covtype_all", "fit", "scale", rows=rows)
        for rows in (100_000, 581_012)
    )
    core = figures.record("kdd", "kddcup99_10pct", "CVM gap")
    return "\n".join(
        (
            f"- A span of 1,000 vectors: {few['n_train']:,} rows of covtype take "
            f"{few['fit_seconds']:.1f} s, all {many['n_train']:,} {many['fit_seconds']:.1f} s, "
            f"with {many['peak_mb']:,.0f} MB beside the data.",
            "- `CoreVectorClassifier` is for data with few support vectors: on `kddcup99_10pct` "
            f"({core['n_train']:,} rows, C = 500,000) it proves a gap of "
            f"{core['certificate']['gap']:.0e} in {core['fit_seconds']:.1f} s, with "
            f"{core['peak_mb']:,.0f} MB beside the data and {core['accuracy']:.1f} % on the test "
            "rows.",
        )
    )


def short(figures: Figures) -> str:
    """Ours beside the fastest exact machine, a line for each set."""
    rows = []
    for (dataset, C), (title, _) in PEERS.items():
        pair = [
            figures.record("peers", dataset, label, gamma_factor=1.0, C=C)
            for label, _ in (AUTO, INTELEX)
        ]
        row = [title]
        for record in pair:
            row += [number(record["fit_seconds"], 1), number(record["accuracy"])]
        rows.append(row)
    header = ("data", "ours: fit, s", "accuracy, %", "`SVC` (intelex): fit, s", "accuracy, % ")
    return markdown_table(header, rows)


BLOCKS: dict[str, Callable[[Figures], str]] = {
    "short": short,
    "peers": peers,
    "cells": cells,
    "middle": middle,
    "features": features,
    "maximin": maximin,
    "sparse": sparse,
    "growth": growth,
}
