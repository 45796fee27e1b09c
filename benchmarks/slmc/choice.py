"""C and widths: the SVM's are Rätsch's, others are chosen by 5-fold cross-validation.

The paper takes the SVM's C and γ from the page of Rätsch's sets, which is no longer there, and does
not print them. `RAETSCH_SVM` has them as others quote them. That they are the paper's is seen from
the SVM's error and number of support vectors, which are the printed ones on all six sets. They
serve SLMC, RS, MRS and SKFD too, as in the paper.

The others are chosen on each of the first five training splits: one parameter is the median of the
five choices, as Rätsch did it; two are the pair with the lowest mean error over the five. The RSVM
has its own for each share of vectors, which the MRSVM shares; μ of SKFD is chosen at the SVM's C
and γ, KFD has its own γ and ridge, the RVM its own γ.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec
from benchmarks.harness.records import Record, finished, of_part
from benchmarks.harness.report import MISSING, Table, shown
from benchmarks.slmc import papers as paper
from benchmarks.slmc.data import ALL_SETS, RAETSCH, loaded_as, split_numbers, split_of
from benchmarks.slmc.fit import Sparse
from benchmarks.slmc.machines import FisherSVM, PerClass, counts_of
from benchmarks.slmc.relevance import RelevanceVectorMachine

PART = "choice"
TASK = "benchmarks.slmc.choice.measure"
SPLITS = 5
FOLDS = 5
KEYS = {"C": "C", "gamma": "γ", "mu": "μ", "regularization": "ridge"}
# The paper's for USPS, with values in [−1, 1].
USPS_SVM = {"C": 10.0, "gamma": 1.0 / 128.0}
RAETSCH_SVM = {
    "banana": {"C": 316.2, "gamma": 1.0},
    "breast_cancer": {"C": 15.19, "gamma": 1.0 / 50.0},
    "titanic": {"C": 1e5, "gamma": 1.0 / 2.0},
    "waveform": {"C": 1.0, "gamma": 1.0 / 20.0},
    "german": {"C": 3.162, "gamma": 1.0 / 55.0},
    "image": {"C": 500.0, "gamma": 1.0 / 30.0},
}
WIDTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
RSVM_VALUES_OF_C = (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
RSVM_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # over the SVM's
USPS_RSVM_VALUES_OF_C = (1.0, 100.0, 10_000.0)
USPS_RSVM_WIDTHS = (1.0, 4.0, 16.0)
# With much narrower ones every row is a vector, and a fit takes minutes.
RVM_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
VALUES_OF_MU = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
RSVM_PATH = "widemargin.ReducedSVMClassifier"
SKFD_PATH = "widemargin.SparseFisherClassifier"
# The methods with a choice of their own at every share.
AT_SHARES = {paper.RSVM: RSVM_PATH, paper.SKFD: SKFD_PATH}
# The methods whose number of vectors nobody says.
OF_ALL_ROWS = {paper.KFD: FisherSVM, paper.RVM: RelevanceVectorMachine}
# The methods that choose two parameters, whose medians need not go together.
IN_PAIRS = (paper.RSVM, paper.KFD)


def candidates(label: str, svm: dict[str, float], usps: bool) -> list[dict[str, float]]:
    """What is chosen from; of fewer on USPS, where it takes long."""
    if label == paper.RVM:
        return [{"gamma": svm["gamma"] / width} for width in RVM_WIDTHS]
    if label == paper.SKFD:
        return [{**svm, "mu": mu} for mu in VALUES_OF_MU]
    if label == paper.KFD:
        grid = itertools.product(RIDGES, WIDTHS)
        return [{"gamma": 1.0 / width, "regularization": ridge} for ridge, width in grid]
    if usps:
        grid = itertools.product(USPS_RSVM_VALUES_OF_C, USPS_RSVM_WIDTHS)
    else:
        grid = itertools.product(RSVM_VALUES_OF_C, RSVM_WIDTHS)
    return [{"C": C, "gamma": svm["gamma"] / width} for C, width in grid]


def choice(label: str, name: str, share: float | None, svm: dict[str, float]) -> Sparse:
    """The measurement of one choice."""
    return Sparse(
        label,
        loaded_as(name),
        AT_SHARES.get(label, ""),
        {"folds": FOLDS, "share": share},
        point={} if share is None else {"share": share},
        part=PART,
        set_name=name,
        splits=split_numbers(name, SPLITS),
        svm=svm,
        task=TASK,
    )


def best_of(spec: Spec, data: Dataset) -> dict[str, Any]:
    """The candidate with the lowest error of the folds, the first of several."""
    import joblib
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    params = spec["params"]
    given = candidates(spec["label"], spec["svm"], spec["set_name"] not in RAETSCH)
    machine: Any
    grid: Any
    folds = StratifiedKFold(params["folds"], shuffle=True, random_state=0)
    if spec["label"] in OF_ALL_ROWS:
        machine = OF_ALL_ROWS[spec["label"]]()
        grid = [{key: [one[key]] for key in one} for one in given]
    else:
        up = spec["set_name"] in RAETSCH
        counts = counts_of(data.X_train, data.y_train, spec["svm"], params["share"], up)
        machine = PerClass(spec["estimator"], spec["svm"], n_vectors=counts)
        seeded = [{**one, "random_state": 0, "n_jobs": 1} for one in given]
        grid = {"params": seeded}
    search = GridSearchCV(machine, grid, cv=folds, n_jobs=spec["threads"], refit=False)
    # LIBSVM and our machines leave Python while they compute.
    with joblib.parallel_config("threading"):
        search.fit(data.X_train, data.y_train)
    return {
        **given[int(search.best_index_)],
        "error": 100.0 * (1.0 - float(search.best_score_)),
        "errors": [100.0 * (1.0 - float(score)) for score in search.cv_results_["mean_test_score"]],
    }


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: a choice on each of the splits, and what is made of them."""
    found: list[Found] = []
    errors: list[list[float]] = []
    for number in spec["splits"]:
        one = best_of(spec, split_of(spec["set_name"], data, number))
        errors.append(one.pop("errors"))
        found.append({"split": number, **one})
        keep({"found": found})
    if spec["label"] in IN_PAIRS:
        given = candidates(spec["label"], spec["svm"], spec["set_name"] not in RAETSCH)
        sums = [sum(each) for each in zip(*errors, strict=True)]
        return {"found": found, "chosen": given[sums.index(min(sums))]}
    keys = [key for key in KEYS if key in found[0]]
    chosen = {key: statistics.median_low([each[key] for each in found]) for key in keys}
    return {"found": found, "chosen": chosen}


# ---------------------------------------------------------------- what was chosen


def svm_of(name: str) -> dict[str, float]:
    """C and γ of the SVM."""
    return RAETSCH_SVM.get(name, USPS_SVM)


def chosen(
    records: Sequence[Record], label: str, name: str, share: float | None = None
) -> dict[str, float] | None:
    """The parameters of a method on a set; None where they are still to be chosen."""
    if label == paper.SVM:
        return svm_of(name)
    if name not in RAETSCH and label == paper.RVM:
        return {"gamma": USPS_SVM["gamma"]}
    for record in finished(of_part(records, PART)):
        mine = record["dataset"] == name and record["label"] == label
        if mine and record["point"].get("share") == share:
            return record["chosen"]
    return None


def plan(sets: Sequence[str], methods: Sequence[str], shares: Sequence[float]) -> list[Sparse]:
    """The choices of these methods; on USPS it is the RSVM's only."""
    found = []
    for name in sets:
        svm = svm_of(name)
        # The paper has both Fisher discriminants on Rätsch's sets only.
        fisher = (paper.SKFD,) if name in RAETSCH else ()
        for label in OF_ALL_ROWS if name in RAETSCH else ():
            if label in methods:
                found.append(choice(label, name, None, svm))
        for label, share in itertools.product((paper.RSVM, *fisher), shares):
            if label in methods:
                found.append(choice(label, name, share, svm))
    return found


def missing(records: Sequence[Record], found: Sequence[Sparse]) -> list[Sparse]:
    """Those of some choices that are not in the records."""
    return [
        one
        for one in found
        if chosen(records, one.label, one.set_name, one.point.get("share")) is None
    ]


def table(records: Sequence[Record]) -> Table:
    order = (*OF_ALL_ROWS, *AT_SHARES)
    mine = sorted(
        records,
        key=lambda r: (
            ALL_SETS.index(r["dataset"]),
            order.index(r["label"]),
            r["point"].get("share", 0.0),
        ),
    )
    rows = []
    for record in mine:
        share = record["point"].get("share")
        found = record.get("chosen") or {}
        five = "; ".join(
            ", ".join(f"{one[key]:.3g}" for key in KEYS if key in one)
            for one in record.get("found", ())
        )
        rows.append(
            [
                f"{record['dataset']}, {record['label']}",
                MISSING if share is None else f"{100 * share:g} %",
                *(shown(found.get(key), ".4g") for key in KEYS),
                five or record["status"],
            ]
        )
    header = ["set, method", "vectors", *KEYS.values(), "of each split"]
    told = ", ".join(f"{n} {p['C']:g}, {1 / p['gamma']:g}" for n, p in RAETSCH_SVM.items())
    notes = [
        f"The SVM, RS, MRS and SLMC have Rätsch's parameters, as in the paper (C, 1/γ): {told}; "
        "on USPS the paper's, 10 and 128, on values in [−1, 1]. The others are chosen by "
        f"{FOLDS}-fold cross-validation on the first {SPLITS} training splits (one parameter: the "
        "median of the choices; two: the pair with the lowest mean error of all). RSVM has its own "
        "and MRSVM the same; SKFD has the SVM's C and γ, at which μ is chosen; KFD has its own γ "
        f"and ridge, 1/γ of {WIDTHS[0]:g} to {WIDTHS[-1]:g}, and the RVM its own γ, a quarter to "
        "four times the SVM's. On USPS the RVM has the SVM's γ."
    ]
    return Table("Parameters", header, rows, notes)
