"""Every cell that a paper prints, with what we measured for it.

A cell is *met* where ours is as good, or worse by no more than the tolerance of its kind: half a
point of accuracy or error, a factor of 1.2 of a size or of a ratio of times. Times are compared as
ratios to the same baseline, LIBSVM or KernelPCA, never as seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bvm.plan import TABLES, WIDTHS
from benchmarks.harness import bvm_paper
from benchmarks.harness.datasets import STANDARD
from benchmarks.harness.machines import LIBSVM, PRINTED
from benchmarks.harness.records import Record, by_set_and_label, fit_ratio, of_part, ratio, value_of
from benchmarks.maximin import papers as maximin_paper
from benchmarks.maximin import tables as maximin_tables
from benchmarks.maximin.methods import METHODS as MAXIMIN_METHODS
from benchmarks.maximin.methods import best_neighbours
from benchmarks.maximin.methods import by_cell as maximin_cells
from benchmarks.mmda import papers as mmda_paper
from benchmarks.mmda import tables as mmda_tables
from benchmarks.mmda.extract import ALL
from benchmarks.mmda.papers import CLASSIFIERS, DIRECTIONS
from benchmarks.readme.figures import Figures
from benchmarks.slmc import papers as slmc_paper
from benchmarks.slmc import tables as slmc_tables
from benchmarks.slmc.plan import METHODS as SLMC_METHODS

POINTS = 0.5
FACTOR = 1.2

ACCURACY, ERROR, SIZE, TIME = "accuracy", "error", "size", "time"
MET, SHORT, NOT_RUN = "met", "short", "not run"


@dataclass(frozen=True)
class Cell:
    """A figure of a paper and ours; ``ours`` is None where it was not run or did not finish."""

    paper: str
    table: str
    dataset: str
    method: str
    kind: str
    printed: float
    ours: float | None
    status: str = ""

    @property
    def verdict(self) -> str:
        if self.ours is None:
            return NOT_RUN
        good = {
            ACCURACY: self.ours >= self.printed - POINTS,
            ERROR: self.ours <= self.printed + POINTS,
            SIZE: self.ours <= FACTOR * self.printed,
            TIME: self.ours <= FACTOR * self.printed,
        }[self.kind]
        return MET if good else SHORT


def status_of(record: Record | None) -> str:
    return "" if record is None else str(record["status"])


# ---------------------------------------------------------------- BVM


def bvm(figures: Figures) -> Iterator[Cell]:
    """Tables 2 to 4: machines as printed, or ours where those did not finish."""
    records = of_part(figures.document("bvm")["records"], TABLES)
    results = by_set_and_label(r for r in records if r["point"]["gamma_factor"] == WIDTHS[0])
    results = {(name.removesuffix(STANDARD), label): r for (name, label), r in results.items()}
    for dataset in bvm_paper.ACCURACY:
        base = value_of(results.get((dataset, LIBSVM)), "fit_seconds")
        for method in bvm_paper.METHODS:
            forms = [results.get((dataset, name)) for name in (f"{method} {PRINTED}", method)]
            record = next((each for each in forms if value_of(each, "accuracy") is not None), None)
            known = (dataset, method)
            status = status_of(record or forms[0] or forms[1])
            for table, kind, printed, ours in (
                ("Table 2", ACCURACY, bvm_paper.ACCURACY, value_of(record, "accuracy")),
                ("Table 4", SIZE, bvm_paper.VECTORS, value_of(record, "n_vectors")),
            ):
                theirs = bvm_paper.printed(printed, *known)
                if theirs is not None:
                    yield Cell("BVM", table, *known, kind, theirs, ours, status)
            theirs = bvm_paper.printed(bvm_paper.SECONDS, *known)
            of_libsvm = bvm_paper.printed(bvm_paper.SECONDS, dataset, LIBSVM)
            if method != LIBSVM and theirs is not None and of_libsvm is not None:
                over = ratio(value_of(record, "fit_seconds"), base)
                yield Cell("BVM", "Table 3", *known, TIME, theirs / of_libsvm, over, status)


# ---------------------------------------------------------------- MMDA-CVM

# The lines of its tables, and ours for them: the core set, or the span where that did not finish.
LINES = {
    mmda_paper.CVM: ("core", "span"),
    mmda_paper.SVM: ("exact",),
    mmda_paper.KFD: ("kfd",),
    mmda_paper.KPCA: ("kpca",),
    mmda_paper.NONE: ("none",),
}


def mmda_cvm(figures: Figures) -> Iterator[Cell]:
    """Tables II to V."""
    results = mmda_tables.by_cell(figures.document("mmda")["records"])

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
                fits = [mmda_tables.fitted(results, name, dataset, k) for name in names]
                yield from _costs(results, dataset, method, line, k, fits, names)
            accuracy, size = mmda_paper.tree(method, dataset)
            found = scored(method, "tree", ks[-1], dataset)
            for kind, theirs, key in ((ACCURACY, accuracy, "accuracy"), (SIZE, size, "nodes")):
                if theirs is not None:
                    ours = None if found is None else found.get(key)
                    yield Cell("MMDA-CVM", "Table V", dataset, method, kind, theirs, ours)


def _costs(
    results: mmda_tables.Results,
    dataset: str,
    method: str,
    line: str,
    k: int,
    fits: list[Record | None],
    names: tuple[str, ...],
) -> Iterator[Cell]:
    """Tables III and IV, of one line."""
    theirs = mmda_paper.seconds(method, k, dataset)
    of_kpca = mmda_paper.seconds(mmda_paper.KPCA, ALL, dataset)
    if theirs is not None and of_kpca is not None and method != mmda_paper.KPCA:
        kpca = mmda_tables.fitted(results, "kpca", dataset, ALL)
        over = next((each for fit in fits if (each := fit_ratio(fit, kpca)) is not None), None)
        status = status_of(fits[0])
        yield Cell("MMDA-CVM", "Table III", dataset, line, TIME, theirs / of_kpca, over, status)
    theirs = mmda_paper.evaluations(method, k, dataset)
    if theirs is not None:
        counts = (mmda_tables.evaluation_of(results, n, "each", k, dataset) for n in names)
        ours = next((each for each in counts if each is not None), None)
        yield Cell("MMDA-CVM", "Table IV", dataset, line, SIZE, theirs, ours, status_of(fits[0]))


# ---------------------------------------------------------------- SLMC


def slmc(figures: Figures) -> Iterator[Cell]:
    """Tables 1 to 3."""
    results = slmc_tables.by_cell(figures.document("slmc")["records"])
    names = {method.label: name for name, method in SLMC_METHODS.items()}
    for dataset in slmc_paper.SETS:
        support = slmc_tables.support_of(results, dataset)
        theirs = slmc_paper.SUPPORT_VECTORS[dataset]
        yield Cell("SLMC", "support vectors", dataset, slmc_paper.SVM, SIZE, theirs, support)
        for share in (None, *slmc_paper.SHARES):
            printed = slmc_paper.WHOLE_ERRORS if share is None else slmc_paper.ERRORS[share]
            for method in printed:
                found = slmc_paper.error(method, dataset, share)
                if found is None:
                    continue
                name = names.get(method, "")
                ours = slmc_tables.mean_of(results, name, dataset, share)
                at = "" if share is None else f", {100 * share:g} %"
                fisher = method in (slmc_paper.KFD, slmc_paper.SKFD)
                table = "Table 3" if fisher else "Tables 1 and 2"
                yield Cell("SLMC", table, dataset, method + at, ERROR, found, ours)


# ---------------------------------------------------------------- Maxi-Min


def maximin(figures: Figures) -> Iterator[Cell]:
    """Tables 1 and 2, each line by the method of that name."""
    records = figures.document("maximin")["records"]
    first, second = (maximin_cells(records, f"table{k}") for k in (1, 2))
    labels = {method.paper: method.label for method in MAXIMIN_METHODS.values() if method.paper}
    for dataset in maximin_paper.UCI:
        d = maximin_tables.dimensions_of(dataset)
        for method, cells in maximin_paper.TABLE_1.items():
            ours = best_neighbours(first.get((dataset, labels[method], d)))
            yield Cell("Maxi-Min", "Table 1", dataset, method, ACCURACY, cells[dataset][0], ours)
    for method, line in maximin_paper.TABLE_2.items():
        for d, theirs in line.items():
            ours = best_neighbours(second.get(("usps", labels[method], d)))
            told = f"{method}, d = {d}"
            yield Cell("Maxi-Min", "Table 2", "usps", told, ACCURACY, theirs, ours)


def all_cells(results: Path) -> list[Cell]:
    figures = Figures(results)
    return [cell for of in (bvm, mmda_cvm, slmc, maximin) for cell in of(figures)]
