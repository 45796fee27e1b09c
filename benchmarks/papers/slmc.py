"""SLMC (Wu, Schölkopf and Bakır 2006): cells of Tables 1 to 3, reasons, figures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.papers.cell import ERROR, NOT_RUN, SHORT, SIZE, Cell, Picture, Reason
from benchmarks.readme.figures import Figures
from benchmarks.slmc import papers as slmc_paper
from benchmarks.slmc import tables as slmc_tables
from benchmarks.slmc.plan import METHODS as SLMC_METHODS


def cells(figures: Figures) -> Iterator[Cell]:
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


REASONS: tuple[Reason, ...] = (
    Reason("there is no relevance vector machine here", "SLMC", method="RVM*"),
    Reason("not run yet", "SLMC", verdict=NOT_RUN),
    Reason(
        "the machine has nearly twice the paper's support vectors, of which vectors are a share: "
        "its images must have been smoothed, and are not run so yet",
        "SLMC",
        dataset="usps",
        verdict=SHORT,
    ),
    Reason("the mean of ten splits; not looked into yet", "SLMC", verdict=SHORT),
)

PICTURES: tuple[Picture, ...] = ()
