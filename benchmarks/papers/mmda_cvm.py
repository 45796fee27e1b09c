"""MMDA-CVM (Tsang, Kocsor and Kwok 2008): cells of Tables II to V, reasons, figures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness.records import fit_ratio
from benchmarks.mmda import papers as mmda_paper
from benchmarks.mmda import tables as mmda_tables
from benchmarks.mmda.extract import ALL
from benchmarks.mmda.papers import CLASSIFIERS, DIRECTIONS
from benchmarks.mmda.plan import RAW, STANDARD, TIMES
from benchmarks.papers.cell import (
    ACCURACY,
    NOT_RUN,
    SHORT,
    SIZE,
    TIME,
    Cell,
    Picture,
    Reason,
    status_of,
)
from benchmarks.readme.figures import Figures

# The lines of its tables, and ours for them: the core set, or the span where that did not finish.
LINES = {
    mmda_paper.CVM: ("core", "span"),
    mmda_paper.SVM: ("hinge",),
    mmda_paper.KFD: ("kfd",),
    mmda_paper.KPCA: ("kpca",),
    mmda_paper.NONE: ("none",),
}


def cells(figures: Figures) -> Iterator[Cell]:
    """Tables II to V."""
    records = figures.document("mmda")["records"]
    results = mmda_tables.by_cell(records, STANDARD)
    # Times of raw columns stand in for those that are not measured.
    times = mmda_tables.by_cell(records, TIMES) or mmda_tables.by_cell(records, RAW)

    def scored(method: str, classifier: str, k: int, dataset: str) -> dict[str, float] | None:
        found = (
            mmda_tables.score_of(results, name, classifier, k, dataset) for name in LINES[method]
        )
        return next((each for each in found if each is not None), None)

    for dataset in mmda_paper.SETS:
        for method, names in LINES.items():
            ks = DIRECTIONS if method in (mmda_paper.CVM, mmda_paper.SVM) else (ALL,)
            for k in ks:
                line = f"{method}{mmda_tables.features_name(k)}"
                for classifier in CLASSIFIERS:
                    theirs = mmda_paper.accuracy(method, classifier, k, dataset)
                    found = scored(method, classifier, k, dataset)
                    ours = None if found is None else found["accuracy"]
                    if theirs is not None:
                        told = f"{line}, {classifier}"
                        yield Cell("MMDA-CVM", "Table II", dataset, told, ACCURACY, theirs, ours)
                yield from _times(times, dataset, method, line, k, names)
                yield from _evaluations(results, dataset, method, line, k, names)
            accuracy, size = mmda_paper.tree(method, dataset)
            found = scored(method, "tree", ks[-1], dataset)
            for kind, theirs, key in ((ACCURACY, accuracy, "accuracy"), (SIZE, size, "nodes")):
                if theirs is not None:
                    ours = None if found is None else found.get(key)
                    yield Cell("MMDA-CVM", "Table V", dataset, method, kind, theirs, ours)


def _times(
    results: mmda_tables.Results,
    dataset: str,
    method: str,
    line: str,
    k: int,
    names: tuple[str, ...],
) -> Iterator[Cell]:
    """Table III, of one line: as ratios to KernelPCA."""
    theirs = mmda_paper.seconds(method, k, dataset)
    of_kpca = mmda_paper.seconds(mmda_paper.KPCA, ALL, dataset)
    if theirs is None or of_kpca is None or method == mmda_paper.KPCA:
        return
    fits = [mmda_tables.fitted(results, name, dataset, k) for name in names]
    kpca = mmda_tables.fitted(results, "kpca", dataset, ALL)
    over = next((each for fit in fits if (each := fit_ratio(fit, kpca)) is not None), None)
    status = status_of(fits[0])
    yield Cell("MMDA-CVM", "Table III", dataset, line, TIME, theirs / of_kpca, over, status)


def _evaluations(
    results: mmda_tables.Results,
    dataset: str,
    method: str,
    line: str,
    k: int,
    names: tuple[str, ...],
) -> Iterator[Cell]:
    """Table IV, of one line."""
    theirs = mmda_paper.evaluations(method, k, dataset)
    if theirs is not None:
        counts = (mmda_tables.evaluation_of(results, n, "each", k, dataset) for n in names)
        ours = next((each for each in counts if each is not None), None)
        status = status_of(mmda_tables.fitted(results, names[0], dataset, ALL))
        yield Cell("MMDA-CVM", "Table IV", dataset, line, SIZE, theirs, ours, status)


REASONS: tuple[Reason, ...] = (
    Reason(
        "on MNIST the core set takes longer than the time limit",
        "MMDA-CVM",
        dataset="mnist",
        method="MMDA(*",
        verdict=NOT_RUN,
    ),
    Reason(
        "a span of 1,000 vectors stands in for the core set, which takes longer than the time "
        "limit on MNIST",
        "MMDA-CVM",
        table="Table IV",
        dataset="mnist",
        method="MMDA(CVM)*",
        verdict=SHORT,
    ),
    Reason("the KFD column is not run yet", "MMDA-CVM", method="KFD*", verdict=NOT_RUN),
    Reason(
        "exact, KernelPCA and plain rows are not run on letter and MNIST yet",
        "MMDA-CVM",
        verdict=NOT_RUN,
    ),
    Reason(
        "KernelPCA is faster here than in MATLAB, relative to everything else",
        "MMDA-CVM",
        table="Table III",
        verdict=SHORT,
    ),
    Reason(
        "run with the squared hinge, whose machines have more support vectors than those of the "
        "hinge that MMDA has; the hinge is not run yet",
        "MMDA-CVM",
        table="Table IV",
        method="MMDA(SVM)*",
        verdict=SHORT,
    ),
    Reason(
        "scikit-learn's tree is CART, pruned in another way than C4.5",
        "MMDA-CVM",
        table="Table V",
        verdict=SHORT,
    ),
    Reason(
        "run with raw columns and γ = 1/β, where MMDA scales columns to unit variance and the BVM "
        "paper's figures are those of 2/β; not run so yet",
        "MMDA-CVM",
        verdict=SHORT,
    ),
)

PICTURES: tuple[Picture, ...] = ()
