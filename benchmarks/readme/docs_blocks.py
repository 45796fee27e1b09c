"""The blocks of figures of the pages in docs/, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.harness.records import Record
from benchmarks.harness.report import markdown_table, number
from benchmarks.maximin.methods import best_neighbours
from benchmarks.readme.blocks import titled
from benchmarks.readme.figures import Figures
from benchmarks.travel.tables import tables as travel_tables

# How sets are written.
WRITTEN = {
    "breast_cancer": "breast cancer",
    "covtype_100000": "covtype, 100,000 rows",
    "covtype_20000": "covtype, 20,000 rows",
    "ijcnn1_40000": "ijcnn1, 40,000 rows",
    "kddcup99_10pct": "kddcup99, a tenth",
    "mnist_unit": "MNIST",
    "usps": "USPS",
}

# Points at which cells of two sizes are compared, with their names.
CELL_POINTS = {(8.0, 10.0): "γ = 8/β, C = 10", (1.0, 100.0): "γ = 1/β, C = 100"}
# Sets with the kernel width at which edges are looked at, both with C = 10.
EDGE_SETS = {"covtype_100000": "covtype, 100,000 rows, γ = 8/β", "ijcnn1": "ijcnn1, γ = 4/β"}
SEARCHES = {"search": "one pair for all", "search, a pair for each cell": "a pair for each cell"}
ENGINE_SETS = (
    "letter",
    "mnist_unit",
    "w8a",
    "mixture",
    "kddcup99_10pct",
    "ijcnn1_40000",
    "covtype_20000",
    "covtype_100000",
)
MARGINS = {
    "MMDA span": "`C=0.5`",
    "MMDA span, C = 10, by margins": '`C=10, scale="margin"`',
}
MARGIN_SETS = ("optdigits", "satimage", "pendigits", "mnist_unit")
STARTS = {
    "SLMC": '`"random"`',
    "SLMC, k-means": '`"kmeans"`',
    "SLMC, reduced set": '`"reduced_set"`',
}
START_SETS = ("usps", "banana", "breast_cancer", "titanic", "waveform", "german", "image")


def written(dataset: str) -> str:
    return WRITTEN.get(dataset, dataset)


def cell_sizes(figures: Figures) -> str:
    rows: list[list[str]] = []
    for (gamma_factor, C), title in CELL_POINTS.items():
        point = {"gamma_factor": gamma_factor, "C": C}
        rows += titled(
            [
                [title, label, number(record["fit_seconds"], 2), number(record["accuracy"])]
                for label in ("cells of 300", "cells of 1,000")
                for record in [figures.record("cells", "covtype_100000", label, "peers", **point)]
            ]
        )
    return markdown_table(("covtype, 100,000 rows", "cells", "fit, s", "accuracy, %"), rows)


def cell_edges(figures: Figures) -> str:
    rows: list[list[str]] = []
    for dataset, title in EDGE_SETS.items():
        lines = []
        for overlap in (0.0, 0.3, 1.0):
            record = figures.record(
                "cells", dataset, f"overlap {overlap:g}", "edges", overlap=overlap
            )
            blended = {each["blend"]: each for each in record["blends"]}
            found = [blended[blend] for blend in (0.0, 0.2)]
            lines.append(
                [
                    title,
                    f"{overlap:g}",
                    number(record["fit_seconds"], 2),
                    *(number(each["accuracy"]) for each in found),
                    *(number(each["largest_jump"]) for each in found),
                ]
            )
        rows += titled(lines)
    header = (
        "data, cells of 300 rows, C = 10",
        "`overlap`",
        "fit, s",
        "accuracy, %, `blend=0`",
        "`blend=0.2`",
        "largest jump, `blend=0`",
        "`blend=0.2`",
    )
    return markdown_table(header, rows)


def cell_pairs(figures: Figures) -> str:
    found = {label: figures.record("cells", "covtype", label, "whole") for label in SEARCHES}
    rows = [
        [title, number(found[label]["fit_seconds"], 1), number(found[label]["accuracy"])]
        for label, title in SEARCHES.items()
    ]
    n_rows = found["search"]["n_train"]
    header = (f"γ and C, covtype, {n_rows:,} rows, 3 × 3 values", "search, s", "accuracy, %")
    return markdown_table(header, rows)


def cell_or_span(figures: Figures) -> str:
    rows = []
    for dataset in ENGINE_SETS:
        of = {
            label: figures.record("cells", dataset, label, "auto", C=10.0)
            for label in ("span", "cells")
        }
        errors = [100.0 - of[label]["accuracy"] for label in ("cells", "span")]
        rows.append(
            [
                written(dataset),
                number(of["span"]["accuracy"]),
                number(of["cells"]["accuracy"]),
                number(errors[0] / errors[1]) if errors[1] else "–",
            ]
        )
    header = ("γ = 1/β, C = 10", "span, %", "cells, %", "errors of cells over those of the span")
    return markdown_table(header, rows)


def span_steps(figures: Figures) -> str:
    rows = []
    for dataset, C in (("covtype_100000", 1.0), ("covtype_100000", 10.0), ("mnist_unit", 10.0)):
        record = figures.record("span", dataset, "fit", "floor", C=C)
        phases, whole = record["phases"], record["phases_fit_seconds"]
        matrices = sum(phases[f"Newton matrices, {part}"] for part in ("sum", "factor"))
        rows.append(
            [
                f"{written(dataset)}, C = {C:g}",
                f"{number(record['n_vectors'], 0)} of {number(record['max_vectors'], 0)}",
                number(record["certificate"]["n_iter"], 0),
                number(record["fit_seconds"], 1),
                number(record["fit_seconds"] / record["floor_seconds"], 1),
                number(100.0 * matrices / whole, 0),
                number(record["accuracy"]),
            ]
        )
    header = (
        "γ = 1/β",
        "vectors kept",
        "steps",
        "fit, s",
        "fit over its floor",
        "Newton matrices, % of the fit",
        "accuracy, %",
    )
    return markdown_table(header, rows)


def span_map(figures: Figures) -> str:
    rows = [
        [
            title,
            number(record["map_seconds"], 2),
            number(record["linear_seconds"], 1),
            number(record["accuracy"]),
            f"{min(record['accuracies']):.2f} to {max(record['accuracies']):.2f}",
        ]
        for label, title in (
            ("Nystroem", "`Nystroem`"),
            ("random", '`SpanMap(vectors="random")`'),
            ("kmeans", '`SpanMap(vectors="kmeans")`'),
        )
        for record in [figures.record("span", "letter", label, "map")]
    ]
    header = ("1,000 vectors of letter", "map, s", "`LinearSVC`, s", "accuracy, %", "from, to")
    return markdown_table(header, rows)


def margin_scale(figures: Figures) -> str:
    rows: list[list[str]] = []
    for dataset in MARGIN_SETS:
        lines = []
        for label, title in MARGINS.items():
            one, five = (
                figures.record("mmda", dataset, label, "tables", directions=directions)
                for directions in (1, 5)
            )
            accuracy = five["scores"]["1-NN"]
            lines.append(
                [
                    written(dataset),
                    title,
                    *(number(record["fit_seconds"], 1) for record in (one, five)),
                    *(number(accuracy[directions]["accuracy"]) for directions in ("1", "5")),
                ]
            )
        rows += titled(lines)
    header = (
        "data",
        "`MaxMarginDA`",
        "fit of 1 direction a class, s",
        "of 5, s",
        "1-NN with 1, %",
        "with 5, %",
    )
    return markdown_table(header, rows)


def margin_gaps(figures: Figures) -> str:
    rows = []
    for n_rows in (1000, 10_000, 100_000, 500_000):
        core, span = (
            figures.record("mmda", "covtype_all", label, "scale", rows=n_rows)
            for label in ("core", "span")
        )
        rows.append(
            [
                f"{n_rows:,}",
                *(f"{each['gap']:.1e}" for each in (core, span)),
                *(_vectors(each) for each in (core, span)),
            ]
        )
    header = (
        "rows of covtype, 5 directions",
        "largest gap, core",
        "span",
        "vectors a feature, core",
        "span",
    )
    return markdown_table(header, rows)


def _vectors(record: Record) -> str:
    evaluations = record["evaluations"]
    return number(evaluations[max(evaluations, key=int)]["each"], 0)


def maximin_distances(figures: Figures) -> str:
    dimensions = range(2, 7)
    of = {
        label: [figures.record("maximin", "usps", label, "table2", d=d) for d in dimensions]
        for label in ("LDA", "exact, eigen", "exact, refine")
    }
    bounds = [record["own"]["upper_bound"] for record in of["exact, refine"]]
    reached = [record["min_distance"] for record in of["exact, refine"]]
    titles = {
        "LDA": "LDA",
        "exact, eigen": '`rounding="eigen"`',
        "exact, refine": '`rounding="refine"`',
    }
    rows = [
        [title, *(number(record["min_distance"]) for record in of[label])]
        for label, title in titles.items()
    ]
    rows.append(["`upper_bound_`", *(number(each) for each in bounds)])
    rows.append(
        [
            "reached by refinement, % of the bound",
            *(number(100.0 * each / bound, 1) for each, bound in zip(reached, bounds, strict=True)),
        ]
    )
    header = ("smallest squared distance, USPS", *(f"d = {d}" for d in dimensions))
    return markdown_table(header, rows)


def maximin_noise(figures: Figures) -> str:
    rows = [
        [
            title,
            f"{number(best_neighbours(record), 1)} ± {number(record['deviation'], 1)}",
            number(record["scores"]["mean"], 1),
        ]
        for label, title in (("MaxiMinDA", "`MaxiMinDA`"), ("aPAC", "aPAC"), ("LDA", "LDA"))
        for record in [figures.record("maximin", "tae, standardised", label, "table1")]
    ]
    header = ("*tae*, standardised, d = 2", "nearest neighbours, %", "nearest class mean, %")
    return markdown_table(header, rows)


def sparse_starts(figures: Figures) -> str:
    rows = [
        [f"{title}, {100 * share:g} %", *_errors(figures, label, share)]
        for share in (0.05, 0.1)
        for label, title in STARTS.items()
    ]
    header: Sequence[str] = ("test error, %", *(written(dataset) for dataset in START_SETS))
    return markdown_table(header, rows)


def _errors(figures: Figures, label: str, share: float) -> list[str]:
    found = (
        figures.record("slmc", dataset, label, "tables", share=share) for dataset in START_SETS
    )
    return [number(record["error"], 1) for record in found]


def travel_onnx(figures: Figures) -> str:
    (table,) = travel_tables(figures.records("travel", "onnx"))
    return markdown_table(table.header, table.rows)


def travel_c(figures: Figures) -> str:
    (table,) = travel_tables(figures.records("travel", "c"))
    return markdown_table(table.header, table.rows)


DOCS_BLOCKS: dict[str, Callable[[Figures], str]] = {
    "cell-sizes": cell_sizes,
    "cell-edges": cell_edges,
    "cell-pairs": cell_pairs,
    "cell-or-span": cell_or_span,
    "span-steps": span_steps,
    "span-map": span_map,
    "margin-scale": margin_scale,
    "margin-gaps": margin_gaps,
    "maximin-distances": maximin_distances,
    "maximin-noise": maximin_noise,
    "sparse-starts": sparse_starts,
    "travel-onnx": travel_onnx,
    "travel-c": travel_c,
}
