"""Ball vector machines (Tsang, Kocsor and Kwok 2007): cells of Tables 2 to 4, reasons, figures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bvm.plan import TABLES, WIDTHS
from benchmarks.harness import bvm_paper
from benchmarks.harness.datasets import STANDARD
from benchmarks.harness.machines import LIBSVM, PRINTED
from benchmarks.harness.records import by_set_and_label, of_part, ratio, value_of
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


def cells(figures: Figures) -> Iterator[Cell]:
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


REASONS: tuple[Reason, ...] = (
    Reason(
        "its intrusion has ten times the rows of kddcup99_10pct, and at C = 1e6 a ball that is not "
        "the smallest decides: on the ten percent, accuracies lie between 82 and 94.5 % from one ε "
        "to the next. Its 99 vectors show that its program ends when samples of 59 rows show none "
        "outside; ours ends when no row of all lies outside; see `python -m benchmarks kdd`",
        "BVM",
        dataset="kddcup99_10pct",
    ),
    Reason("not finished in the time limit", "BVM", verdict=NOT_RUN, status="timeout"),
    Reason(
        "not in a stored run yet: 266,079 rows of 676 pixels take 8 GB of kernel values and LIBSVM "
        "most of an hour; 20,000 of its rows are on the page of figures",
        "BVM",
        dataset="usps_shifted",
        verdict=NOT_RUN,
    ),
    Reason(
        "not in a stored run at 2/β yet: `python -m benchmarks bvm --gamma-factor 2 --sets ijcnn1 "
        "w8a` takes about ten minutes; their test parts are not to be had, a fifth is held out",
        "BVM",
        verdict=NOT_RUN,
    ),
    Reason(
        "the split: the paper's LIBSVM has 94.25 % where ours has 94.06 on the first 15,000 rows; "
        "over five random splits it has 93.6 to 94.5. Pairs of classes, scaling to [−1, 1], raw "
        "columns and other widths were tried: none has the paper's 8,436 support vectors, so that "
        "its rows are others. CVM, which finds the smallest ball, is within the tolerance",
        "BVM",
        table="Table 2",
        dataset="letter",
        verdict=SHORT,
    ),
    Reason(
        "its test part of 91,701 rows is not to be had, and a fifth of the training part stands "
        "in: LIBSVM has 97.44 % there and 98.19 in the paper, and ours stand to LIBSVM as there",
        "BVM",
        table="Table 2",
        dataset="ijcnn1",
        verdict=SHORT,
    ),
    Reason(
        "kernel values of sparse rows: the paper's web is 25 % larger, and the looser ε is, the "
        "more of the time is the fixed cost of preparing rows",
        "BVM",
        table="Table 3",
        dataset="w8a",
        verdict=SHORT,
    ),
    Reason(
        "measured beside other work on the same machine: LIBSVM's fit takes a tenth of a second, "
        "and the order in which they were measured decides",
        "BVM",
        table="Table 3",
        verdict=SHORT,
    ),
    Reason(
        "its reuters has 7,770 training rows of 8,315 terms, ours 9,603 of 7,866: LIBSVM has 1,562 "
        "support vectors here and 1,356 there",
        "BVM",
        table="Table 4",
        dataset="reuters",
        verdict=SHORT,
    ),
    Reason(
        "as printed it did not finish in the time limit; ours, which lets many rows join at once, "
        "stands in and ends with more vectors",
        "BVM",
        table="Table 4",
        verdict=SHORT,
    ),
)

PICTURES: tuple[Picture, ...] = (
    Picture(
        "Figure 1",
        "bvm_figures_move.png",
        "the centre moves to where the ball touches a point outside, and comes nearer to c* with "
        "every move",
        "yes: the angle at the new centre is obtuse, and the distance falls with every move",
    ),
    Picture(
        "Figure 2",
        "bvm_figures_epsilon.png",
        "accurate for ε from 1e-8 to 1e-3, stable from 1e-4 down, as many vectors, and BVM almost "
        "ten times faster than CVM (letter and usps)",
        "in part: on letter both are accurate from 1e-3 down and poor above, and BVM's vectors are "
        "stable from 1e-4 down; usps is drawn for loose ε only, and times are not judged",
    ),
    Picture(
        "Figure 3",
        "bvm_figures_C.png",
        "BVM is about as accurate as LIBSVM for every C, except at ε = 1e-3 on w3a",
        "in part: so it is on w3a for C of 0.1 and 1, at ε = 1e-3 too; larger C, reuters and usps "
        "are not drawn yet",
    ),
    Picture(
        "Figure 4",
        "bvm_figures_rows.png",
        "at ε = 1e-4 BVM and CVM are as accurate as LIBSVM on web, at 1e-3 they are poor",
        "in part: at 1e-4 they are, up to 7,366 rows, as far as it is drawn; at 1e-3 they are not "
        "poor here but as accurate, with half the vectors",
    ),
)
