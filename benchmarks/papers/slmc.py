"""SLMC (Wu, Schölkopf and Bakır 2006): cells of Tables 1 to 3, reasons, figures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.papers.cell import ERROR, NOT_RUN, SHORT, SIZE, Cell, Picture, Reason, status_of
from benchmarks.readme.figures import Figures
from benchmarks.slmc import papers as slmc_paper
from benchmarks.slmc import tables as slmc_tables
from benchmarks.slmc.data import SMOOTHED, USPS

# The form of a set that is compared: USPS with the paper's number of support vectors, and KFD with
# as many splits as the paper's.
FORMS = {USPS: SMOOTHED}
LINES = {slmc_paper.KFD: "kfd-hundred"}
FISHER = (slmc_paper.KFD, slmc_paper.SKFD)


def cells(figures: Figures) -> Iterator[Cell]:
    """Tables 1 to 3."""
    results = slmc_tables.by_cell(figures.document("slmc")["records"])
    for dataset in slmc_paper.SETS:
        form = FORMS.get(dataset, dataset)
        for name, label, printed in (
            ("svm", slmc_paper.SVM, slmc_paper.support_vectors(dataset)),
            ("rvm", slmc_paper.RVM, slmc_paper.relevance_vectors(dataset)),
        ):
            ours = results.get((name, form, None), {}).get("n_vectors")
            yield Cell("SLMC", "vectors", dataset, label, SIZE, printed, ours)
        for share in (None, *slmc_paper.SHARES):
            printed_errors = slmc_paper.WHOLE_ERRORS if share is None else slmc_paper.ERRORS[share]
            for method in printed_errors:
                found = slmc_paper.error(method, dataset, share)
                if found is None:
                    continue
                name = LINES.get(method) or slmc_tables.NAMES[method]
                record = results.get((name, form, share))
                ours = slmc_tables.mean_of(results, name, form, share)
                at = "" if share is None else f", {100 * share:g} %"
                table = "Table 3" if method in FISHER else "Tables 1 and 2"
                told = status_of(record)
                yield Cell("SLMC", table, dataset, method + at, ERROR, found, ours, told)


REASONS: tuple[Reason, ...] = (
    Reason("not run yet", "SLMC", verdict=NOT_RUN),
    Reason("todo", "SLMC", verdict=SHORT),
)

PICTURES: tuple[Picture, ...] = ()
