"""Tables 1, 2 and 3 of the SLMC paper, its figure beside ours in every cell."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, of_part, tables_of_sets
from benchmarks.harness.report import MISSING, Table, beside, number
from benchmarks.slmc import papers as paper
from benchmarks.slmc.data import USPS, split_numbers
from benchmarks.slmc.papers import SETS
from benchmarks.slmc.plan import METHODS, PART, RAETSCH_SETS

# Points above the paper that are allowed.
CHANCE = 0.7
ABOVE = " *"

# A measurement of a method (its key in METHODS) on a set, at a share or none.
Results = dict[tuple[str, str, float | None], Record]


def by_cell(records: Sequence[Record]) -> Results:
    names = {method.label: name for name, method in METHODS.items()}
    return {
        (names[r["label"]], r["dataset"], r["point"].get("share")): r
        for r in of_part(records, PART)
    }


def mean_of(results: Results, name: str, dataset: str, share: float | None) -> float | None:
    """The mean error over the splits that were finished."""
    return results.get((name, dataset, share), {}).get("error")


def whole(record: Record) -> bool:
    """Whether all splits of the set are in a record."""
    return len(record.get("found", ())) == len(split_numbers(record["dataset"]))


def missed(reached: float | None, printed: float | None) -> bool:
    return reached is not None and printed is not None and reached > printed + CHANCE


def cell(results: Results, name: str, dataset: str, share: float | None) -> str:
    """Our error, the paper's, and how many splits it is of if not all."""
    printed = paper.error(METHODS[name].label, dataset, share)
    record = results.get((name, dataset, share))
    reached = mean_of(results, name, dataset, share)
    if reached is None or record is None:
        own = MISSING if record is None else record["status"]
    else:
        own = number(reached, 1) + (ABOVE if missed(reached, printed) else "")
        own += (
            ""
            if whole(record)
            else f", {len(record['found'])} of {len(split_numbers(dataset))} splits"
        )
    return beside(own, number(printed, 1))


def error_row(results: Results, name: str, share: float | None, sets: Sequence[str]) -> list[str]:
    at = "" if share is None else f", {100 * share:g} %"
    cells = [
        cell(results, name, dataset, share) if dataset in METHODS[name].sets else MISSING
        for dataset in sets
    ]
    return [METHODS[name].label + at, *cells]


def support_of(results: Results, dataset: str) -> float | None:
    """Support vectors of the SVM, of which shares are taken."""
    return results.get(("svm", dataset, None), {}).get("n_vectors")


def vector_row(results: Results, sets: Sequence[str]) -> list[str]:
    cells = [
        beside(
            number(support_of(results, dataset), 1),
            number(paper.SUPPORT_VECTORS[dataset], 1),
        )
        for dataset in sets
    ]
    return ["SVM, support vectors", *cells]


def usps_note(results: Results) -> list[str]:
    """Our shares of USPS are not the paper's numbers of vectors."""
    ours, printed = support_of(results, USPS), paper.SUPPORT_VECTORS[USPS]
    if ours is None:
        return []
    return [
        f"On USPS our ten SVMs have {ours:,.0f} support vectors together and the paper's "
        f"{printed:,.0f}, at the same C and γ and nearly the same error: a share of ours is "
        f"{ours / printed:.1f} times as many vectors as the same share of the paper's. Compare "
        "errors of USPS by the numbers of vectors, not by the shares alone. The paper's numbers "
        "are nearly those of images smoothed first, by a Gaussian of 0.75 pixels: 2,707 support "
        "vectors of the ten SVMs, and 113 for digits 3 and 8 (the paper: 116; ours: 237). The "
        "paper does not speak of it, and this was a trial that is not repeated here."
    ]


def shares_of(results: Results) -> list[float]:
    return sorted({share for *_, share in results if share is not None})


def first_table(results: Results, sets: Sequence[str]) -> Table:
    rows = [vector_row(results, sets), error_row(results, "svm", None, sets)]
    names = ("rs", "mrs", "rsvm", "mrsvm", "slmc-random", "slmc-squared", "slmc-shared")
    rows += [error_row(results, name, s, sets) for s in shares_of(results) for name in names]
    rvm = [beside(MISSING, f"{paper.WHOLE_ERRORS[paper.RVM][name]:.1f}") for name in sets]
    rows.append([paper.RVM, *rvm])
    shares = ", ".join(f"{name} {share:g} %" for name, share in paper.RVM_SHARES.items())
    notes = [
        f"\\* more than {CHANCE:g} points above the paper. Means over the first ten splits (nine "
        "of image, whose tenth is its first; one of USPS). SLMC starts from random rows here. "
        "Support vectors of USPS are those of its ten machines together. The squared hinge starts "
        "from k-means and has the same C, whose meaning is another there; shared vectors are as "
        "many as the ten machines' vectors together, so that a prediction costs the same number of "
        f"kernel values. The RVM's shares in the paper: {shares}.",
        *(usps_note(results) if USPS in sets else []),
    ]
    return Table("Table 1: errors", ["test error, % (paper)", *sets], rows, notes)


def second_table(results: Results, sets: Sequence[str]) -> Table:
    names = ("slmc-random", "slmc-kmeans", "slmc-reduced")
    rows = [error_row(results, name, s, sets) for s in shares_of(results) for name in names]
    return Table("Table 2: where SLMC starts", ["test error, % (paper)", *sets], rows)


def third_table(results: Results, sets: Sequence[str]) -> Table:
    sets = [name for name in sets if name in RAETSCH_SETS]
    rows = [vector_row(results, sets)]
    rows += [error_row(results, name, None, sets) for name in ("svm", "kfd")]
    names = ("rs", "mrs", "rsvm", "mrsvm", "skfd")
    rows += [error_row(results, name, s, sets) for s in shares_of(results) for name in names]
    notes = [
        "The paper has 10 % only, and its figures of KFD are means over a hundred splits. SKFD "
        "starts from k-means; coefficients and bias are those of the SVM on its vectors. KFD has "
        "its own γ and ridge, and a linear SVM on its feature for the threshold."
    ]
    return Table("Table 3: sparse kernel Fisher", ["test error, % (paper)", *sets], rows, notes)


def spread_table(results: Results, sets: Sequence[str]) -> Table:
    """Seconds of a fit and the deviation of the errors, which the paper does not print."""
    rows = []
    for share in (None, *shares_of(results)):
        for name, method in METHODS.items():
            if method.whole != (share is None):
                continue
            cells = []
            for dataset in sets:
                found = results.get((name, dataset, share), {})
                spread = number(found.get("deviation"), 1)
                own = number(found.get("n_vectors"), 1)
                seconds = number(found.get("fit_seconds"), 2, " s")
                cells.append(f"± {spread}, {own}, {seconds}" if found.get("found") else MISSING)
            at = "" if share is None else f", {100 * share:g} %"
            rows.append([method.label + at, *cells])
    notes = [
        "Standard deviation of the error over the splits in points, vectors, and seconds of a fit "
        "(with the exact SVM where it is compressed, and on USPS where it is fitted to count)."
    ]
    header = ["deviation, vectors, fit", *sets]
    return Table("Deviations, vectors and seconds", header, rows, notes)


def tables(records: Sequence[Record]) -> list[Table]:
    makers = (first_table, second_table, third_table, spread_table)
    return tables_of_sets(by_cell(records), SETS, makers)
