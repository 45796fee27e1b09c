"""The methods of the MMDA-CVM paper as measurements: ours, exact, and the usual extractors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.mmda import papers as paper
from benchmarks.mmda.extract import ALL, Extraction
from benchmarks.mmda.papers import CLASSES, DIRECTIONS

# The parts of the tables: as the paper has them, their times, and raw columns at 1/β.
STANDARD, TIMES, RAW = "standard", "times", "tables"
OURS = "widemargin.MaxMarginDA"
FISHER = "widemargin.KernelFisherDA"
# The paper minimises ‖w‖² + b² + C Σξ² with C = 1, which is our objective at half of it.
PAPER_C = 1.0
EPSILON = 1e-3
SAMPLE_ROWS = 3500
# γ in units of 1/β, on standardised columns: see `papers.PROTOCOL`.
WIDTH = 2.0
PRINTED = {"inner": "sor", "sample_size": 59}
OWN = {"C": 10.0, "scale": "margin"}
# The exact solver holds the kernel matrix, and runs where that is small.
EXACT_MEMORY = "10GB"
SMALL_SETS = ("optdigits", "satimage", "pendigits")
# Directions a problem in Figures 2 to 4, which are of the small sets.
SWEEP = (1, 2, 3, 5, 7)
# KernelPCA with all rows too where the paper had 3,500: 16,000² values are 2 GB, 60,000² are 29.
ALL_ROWS_SETS = ("letter",)
# What `harness.datasets` calls the paper's sets. Widths follow the distances, so that pixels in
# [0, 1] and in [0, 255] give the same features.
RECIPE = {"letter": "letter_16000", "mnist": "mnist_unit"}
# Fits of few rows use float64 throughout, and would leave the loops for float32 to be compiled in
# the timed fit.
SPAN_WARMUP_ROWS = 4500
QUICK_SETS = ("optdigits",)
QUICK_ROWS = 600
QUICK_VECTORS = 200


@dataclass(frozen=True)
class Method:
    """A line of the paper's tables: how we call it, and how the paper does."""

    label: str
    paper: str
    solver: str | None = None
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def directions(self) -> tuple[int, ...]:
        """The numbers of directions it comes with: ours have several, the others one."""
        return (ALL,) if self.solver is None else DIRECTIONS


METHODS = {
    "core": Method("MMDA core", paper.CVM, "core"),
    # As the paper has it: relaxation inside, and the furthest of 59 rows.
    "printed": Method("MMDA core, as printed", paper.CVM, "core", PRINTED),
    "span": Method("MMDA span", paper.CVM, "span"),
    # What we would take ourselves: a larger C, and features in units of their margins.
    "ours": Method("MMDA span, C = 10, by margins", paper.CVM, "span", OWN),
    "exact": Method("MMDA exact", paper.SVM, "deflation"),
    # The loss of MMDA, which MMDA(SVM) is, with its free bias.
    "hinge": Method("MMDA exact, hinge", paper.SVM, "deflation", {"loss": "hinge", "C": PAPER_C}),
    "kfd": Method("KFD", paper.KFD),
    "kpca": Method("KPCA", paper.KPCA),
    "kpca-all": Method("KPCA, all rows", ""),
    "none": Method("none", paper.NONE),
}

# Lines of Figures 2 to 4 whose features come in a sequence.
SEQUENCES = ("core", "hinge", "kpca")
# All rows as vectors and next to no ridge, which is what the paper's figures are those of.
FISHER_PARAMS = {"kernel": "rbf", "solver": "kernel", "memory": EXACT_MEMORY}
FISHER_PARAMS |= {"regularization": 1e-6}


def set_of(dataset: str) -> str:
    """The paper's name of a data set."""
    return next((name for name, recipe in RECIPE.items() if recipe == dataset), dataset)


def applies(name: str, dataset: str) -> bool:
    """Whether the method is measured on that set (of the paper's names)."""
    if name == "exact":
        return dataset in SMALL_SETS
    if name == "hinge":
        return dataset != "mnist"
    return name != "kpca-all" or dataset in ALL_ROWS_SETS


def ours(solver: str, n_directions: int, quick: bool = False, **params: Any) -> dict[str, Any]:
    """Parameters of `MaxMarginDA` as in the MMDA-CVM paper."""
    found = {"n_directions": n_directions, "solver": solver, "C": PAPER_C / 2.0}
    found |= {"kernel": "rbf", "gamma": "mean_distance", "random_state": 0}
    if solver == "core":
        found["epsilon"] = EPSILON
    if solver == "deflation":
        found["memory"] = EXACT_MEMORY
    if solver == "span":
        found["max_vectors"] = QUICK_VECTORS if quick else 1000
    return found | params


def kernel_pca(n_components: int, eigen_solver: str = "arpack") -> dict[str, Any]:
    """Parameters of `KernelPCA`; the paper's eigs is ARPACK too."""
    params = {"n_components": n_components, "kernel": "rbf", "gamma": "mean_distance"}
    return params | {"eigen_solver": eigen_solver, "random_state": 0}


def extraction(
    name: str,
    dataset: str,
    n_directions: int,
    classify: dict[str, tuple[int, ...]],
    part: str,
    quick: bool = False,
    width: float = 1.0,
    **fields: Any,
) -> Extraction:
    """One method on one of the paper's sets; ``n_directions`` gives the number of features.

    ``width`` is γ, of the extraction and of an SVM on its features, in units of 1/β.
    """
    method = METHODS[name]
    sample = None
    warmup = 200
    gamma = width_of(width)
    if method.solver is not None:
        changes = {"gamma": gamma} | method.params
        estimator, params = OURS, ours(method.solver, n_directions, quick, **changes)
        warmup = SPAN_WARMUP_ROWS if method.solver == "span" else warmup
    elif name in {"kpca", "kpca-all"}:
        estimator = "sklearn.decomposition.KernelPCA"
        params = kernel_pca(n_directions * CLASSES[dataset]) | {"gamma": gamma}
        sample = SAMPLE_ROWS if name == "kpca" and dataset not in SMALL_SETS else None
    elif name == "kfd":
        estimator, params = FISHER, FISHER_PARAMS | {"gamma": gamma}
        sample = SAMPLE_ROWS if dataset not in SMALL_SETS else None
    else:
        estimator, params = "sklearn.preprocessing.FunctionTransformer", {}
    return Extraction(
        method.label,
        RECIPE.get(dataset, dataset),
        estimator,
        params,
        rows=QUICK_ROWS if quick else None,
        warmup_rows=warmup,
        width=width,
        point={"directions": n_directions},
        part=part,
        classify=classify,
        sample=sample,
        **fields,
    )


def width_of(factor: float) -> Any:
    """γ of so many times 1/β, as an estimator or `fits.build` takes it."""
    return "mean_distance" if factor == 1.0 else {"mean_distance": factor}


def standard_plan(sets: Sequence[str], names: Sequence[str], quick: bool) -> list[Extraction]:
    """Tables II, IV and V and Figures 2 and 4: one fit serves every number of features.

    Directions come one after the other, so that the first of many are those of a fit of fewer.
    """
    plan = []
    for dataset in sets:
        for name in names:
            if not applies(name, dataset):
                continue
            orders = DIRECTIONS[-1:] if name == "kpca" else METHODS[name].directions
            drawn = dataset in SMALL_SETS and name in SEQUENCES
            more = SWEEP if drawn else orders
            # The slow one last: what it may not finish is lost alone.
            classify = {"1-NN": orders, "tree": orders[-1:], "ANN": more, "SVM": orders}
            most = max(*DIRECTIONS, *more)
            one = extraction(name, dataset, most, classify, STANDARD, quick, WIDTH, scaled=True)
            plan.append(replace(one, point={}))
    return plan


def times_plan(sets: Sequence[str], names: Sequence[str], quick: bool) -> list[Extraction]:
    """Table III and Figure 3: fits alone, every number of features anew."""
    plan = []
    for dataset in sets:
        for name in names:
            if name == "none" or not applies(name, dataset):
                continue
            one = METHODS[name].solver is None
            drawn = dataset in SMALL_SETS and name in SEQUENCES
            orders = SWEEP if drawn else DIRECTIONS[-1:] if one else DIRECTIONS
            plan += [
                extraction(name, dataset, k, {}, TIMES, quick, WIDTH, scaled=True, transform=False)
                for k in orders
            ]
    return plan


def table_plan(sets: Sequence[str], names: Sequence[str], quick: bool) -> list[Extraction]:
    """Tables II to V of raw columns at 1/β, set by set, so that times lie close together.

    Features of one direction are the first of five, so that one fit serves the accuracies of all;
    the smaller numbers are fitted again for their times.
    """
    most = max(DIRECTIONS)
    plan = []
    for dataset in sets:
        for name in names:
            if not applies(name, dataset):
                continue
            orders = METHODS[name].directions
            # The slow one last: what it may not finish is lost alone.
            classify = {"1-NN": orders, "ANN": orders, "tree": orders[-1:], "SVM": orders}
            if METHODS[name].solver is not None:
                plan += [
                    extraction(name, dataset, few, {}, RAW, quick, transform=False)
                    for few in DIRECTIONS[:-1]
                ]
            plan.append(extraction(name, dataset, most, classify, RAW, quick))
    return plan
