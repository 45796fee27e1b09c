"""The methods of the SLMC paper as measurements, and the plan of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.records import Record
from benchmarks.slmc import papers as paper
from benchmarks.slmc.choice import RSVM_PATH, SKFD_PATH, chosen
from benchmarks.slmc.data import (
    ALL_SETS,
    DRAWN,
    MOST_SPLITS,
    OF_USPS,
    RAETSCH,
    loaded_as,
    split_numbers,
)
from benchmarks.slmc.fit import Sparse
from benchmarks.slmc.machines import FISHER, REDUCED_SET

PART = "tables"
SLMC_PATH = "widemargin.SparseMarginClassifier"
PER_CLASS = "benchmarks.slmc.machines.PerClass"
FISHER_SVM = "benchmarks.slmc.machines.FisherSVM"
REDUCED = "SLMC, reduced set"
SQUARED = "SLMC, squared hinge"
SHARED = "SLMC, squared hinge, shared vectors"
KFD_HUNDRED = "KFD, 100 splits"
RVM_MARGIN = "RVM, coefficients by (45)"
RELEVANCE = "benchmarks.slmc.relevance.RelevanceVectorMachine"
RAETSCH_SETS = RAETSCH
TRIALS = 3


@dataclass(frozen=True)
class Method:
    """A line of the tables: its machine, and where it is measured.

    ``choice`` names the method whose parameters it has, ``whole`` means that no share applies,
    ``native`` that the machine makes one-vs-rest problems itself, ``drawn`` that its splits are not
    the first ten but a hundred that are drawn here.
    """

    label: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    sets: Sequence[str] = ALL_SETS
    choice: str = paper.SVM
    whole: bool = False
    native: bool = False
    drawn: bool = False

    def splits(self, dataset: str, most: int = MOST_SPLITS) -> tuple[int, ...]:
        return DRAWN if self.drawn else split_numbers(dataset, most)


def slmc(label: str, sets: Sequence[str] = ALL_SETS, **params: Any) -> Method:
    return Method(label, SLMC_PATH, params, sets=sets, native=True)


METHODS: dict[str, Method] = {
    "svm": Method(paper.SVM, "", whole=True),
    "kfd": Method(paper.KFD, FISHER, sets=RAETSCH_SETS, choice=paper.KFD, whole=True),
    "kfd-hundred": Method(
        KFD_HUNDRED, FISHER, sets=RAETSCH_SETS, choice=paper.KFD, whole=True, drawn=True
    ),
    "rvm": Method(paper.RVM, RELEVANCE, choice=paper.RVM, whole=True),
    "rvm-margin": Method(RVM_MARGIN, RELEVANCE, choice=paper.RVM, whole=True),
    "rs": Method(paper.RS, REDUCED_SET, {"method": "rs"}),
    "mrs": Method(paper.MRS, REDUCED_SET, {"method": "mrs"}),
    "rsvm": Method(paper.RSVM, RSVM_PATH, {"method": "rsvm"}, choice=paper.RSVM),
    "mrsvm": Method(paper.MRSVM, RSVM_PATH, {"method": "mrsvm"}, choice=paper.RSVM),
    "slmc-random": slmc(paper.SLMC, init="random"),
    "slmc-kmeans": slmc(paper.SLMC_KMEANS, init="kmeans"),
    "slmc-reduced": slmc(REDUCED, init="reduced_set"),
    "slmc-squared": slmc(SQUARED, init="kmeans", loss="squared_hinge"),
    "slmc-shared": slmc(SHARED, OF_USPS, init="kmeans", loss="squared_hinge", share_vectors=True),
    "skfd": Method(paper.SKFD, SKFD_PATH, sets=RAETSCH_SETS, choice=paper.SKFD, native=True),
}


def applies(name: str, dataset: str) -> bool:
    """Whether a method is measured on a set."""
    return dataset in METHODS[name].sets


def sized(name: str, dataset: str, size: float | int | None) -> Any:
    """What ``n_vectors`` is where the machine makes its problems itself.

    Our estimators count the support vectors among different rows, and Rätsch's sets have many equal
    ones: the share is made a number there, as for shared vectors, so that all methods have as many.
    """
    counted = name == "slmc-shared" or dataset in RAETSCH
    return {"share": size} if counted and isinstance(size, float) else size


def machine(
    name: str,
    dataset: str,
    size: float | int | None,
    svm: dict[str, float],
    own: dict[str, float],
) -> tuple[str, dict[str, Any]]:
    """Import path and parameters of a method with a share (float) or number (int) of vectors."""
    method = METHODS[name]
    if name == "svm":
        return PER_CLASS, {"svm": svm}
    if method.path == FISHER:
        return FISHER_SVM, own
    if method.path == RELEVANCE:
        return RELEVANCE, {**own, "C": svm["C"] if name == "rvm-margin" else None}
    if method.native:
        given = {**own, "n_vectors": sized(name, dataset, size), "random_state": 0}
        return method.path, {**method.params, **given}
    # What compresses the SVM has its parameters from there.
    given = {} if method.path == REDUCED_SET else own
    params = {**method.params, **given, "random_state": 0}
    key = "share" if isinstance(size, float) else "n_vectors"
    found = {"machine": method.path, "svm": svm, key: size, "params": params}
    if dataset in RAETSCH:
        found["up"] = True
        # It takes long on USPS, and vectors are many enough there not to depend on the start.
        found |= {"trials": TRIALS} if method.path == REDUCED_SET else {}
    return PER_CLASS, found


def measurement(
    name: str,
    dataset: str,
    size: float | int | None,
    records: Sequence[Record],
    part: str = PART,
    **fields: Any,
) -> Sparse | None:
    """One method on a set; None where its parameters are not chosen."""
    share = size if isinstance(size, float) else None
    svm = chosen(records, paper.SVM, dataset)
    # A number of vectors instead of a share has no choice of its own.
    choice = paper.SVM if isinstance(size, int) else METHODS[name].choice
    own_share = None if choice == paper.SVM else share
    own = chosen(records, choice, dataset, own_share)
    if svm is None or own is None:
        return None
    path, params = machine(name, dataset, size, svm, own)
    key = "share" if share is not None else "vectors"
    point = {} if size is None else {key: size}
    return Sparse(
        METHODS[name].label,
        loaded_as(dataset),
        path,
        params,
        point=point,
        part=part,
        set_name=dataset,
        svm=svm,
        **fields,
    )


def table_plan(
    records: Sequence[Record],
    sets: Sequence[str],
    names: Sequence[str],
    shares: Sequence[float],
    splits: int = MOST_SPLITS,
    rows: int | None = None,
) -> list[Sparse]:
    """Tables 1 to 3, set by set."""
    found = []
    for dataset in sets:
        for name in names:
            if not applies(name, dataset):
                continue
            for share in (None,) if METHODS[name].whole else shares:
                numbers = METHODS[name].splits(dataset, splits)
                one = measurement(name, dataset, share, records, splits=numbers, rows=rows)
                found += [] if one is None else [one]
    return found
