"""Figure 7 of the Maxi-Min paper, with Omniglot's characters in place of CASIA's.

242 and 1,623 classes; 15 drawings of each train and five test. The nearest class mean and a
regularised quadratic classifier, over the dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import Table, number
from benchmarks.maximin.classifiers import REGULARISATION
from benchmarks.maximin.fit import Projection
from benchmarks.maximin.methods import (
    APAC,
    AUTO,
    LDA,
    LEDOIT,
    METHODS,
    OURS,
    PAIRWISE,
    PCA,
    Method,
    Results,
    by_cell,
    labels_in,
    projection,
    score_of,
)

PART = "omniglot"
SETS = ("omniglot_small_242", "omniglot_full_28x28")
DIMENSIONS = (160, 120, 80, 40, 20, 10)
QUICK_SETS = SETS[:1]
QUICK_DIMENSIONS = (5, 10)
QUICK_CLASSES = 20
CLASSIFIERS = {"mean": "nearest class mean", "quadratic": "quadratic classifier"}
SAME = ", shrinkage of MaxiMinDA"
EQUAL = {"weighting": "equal"}
OWN = [
    METHODS["auto"],
    Method(LEDOIT, OURS, {"shrinkage": "auto", "random_state": 0}),
    Method(LDA, PAIRWISE, EQUAL | {"shrinkage": "auto"}),
    Method(APAC, PAIRWISE, {"shrinkage": "auto"}),
    METHODS["pca"],
]
ONLINE = "MMDAOnline"
# The paper's own: the hard minimum, Algorithm 1 with 1000 updates, eigenvectors, λ by folds.
PRINTED = Method(
    ONLINE, "benchmarks.maximin.online.OnlineOfOurs", {"shrinkage": "auto", "classifier": "mean"}
)
NONE = "no reduction"
# All principal components: a rotation, which leaves distances as they are.
WHOLE = Method(NONE, METHODS["pca"].estimator, METHODS["pca"].params)
FEATURES = {"omniglot_small_242": 1225, "omniglot_full_28x28": 784}
LABELS = [AUTO, LEDOIT, ONLINE, LDA, APAC, LDA + SAME, APAC + SAME, PCA]
COLORS = (
    "#b30000",
    "#fc8d59",
    "#e7298a",
    "#4292c6",
    "#31a354",
    "#08519c",
    "#006d2c",
    "#777777",
)
CLAIM = (
    "Paper: MMDAOnline has lower errors than LDA and aPAC at every number of dimensions, most with "
    "few,\nand reduction has lower errors than no reduction (dashed red)"
)


def planned(methods: Sequence[Method], name: str, d: int, quick: bool) -> list[Projection]:
    few = QUICK_CLASSES if quick else None
    fields = {"classify": tuple(CLASSIFIERS), "classes": few}
    return [projection(method, name, d, PART, **fields) for method in methods]


def cells(quick: bool) -> list[tuple[str, int]]:
    sets, numbers = (QUICK_SETS, QUICK_DIMENSIONS) if quick else (SETS, DIMENSIONS)
    return [(name, d) for name in sets for d in numbers]


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    return [one for name, d in cells(quick) for one in planned(OWN, name, d, quick)]


def plan_printed(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    """What the paper's Figure 7 has: its own method, and no reduction at all."""
    if quick:
        return [one for name, d in cells(True) for one in planned([PRINTED], name, d, True)]
    found = [one for name, d in cells(False) for one in planned([PRINTED], name, d, False)]
    whole = [one for name, d in FEATURES.items() for one in planned([WHOLE], name, d, False)]
    return [*whole, *found]


def plan_same(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    """LDA and aPAC once more, with the shrinkage that MaxiMinDA chose for the same cell."""
    results = by_cell(list(records), PART)
    found = []
    for name, d in cells(quick):
        shrinkage = (results.get((name, AUTO, d)) or {}).get("own", {}).get("shrinkage")
        if shrinkage is None:
            continue
        methods = [
            Method(LDA + SAME, PAIRWISE, EQUAL | {"shrinkage": shrinkage}),
            Method(APAC + SAME, PAIRWISE, {"shrinkage": shrinkage}),
        ]
        found += planned(methods, name, d, quick)
    return found


# ---------------------------------------------------------------- tables and picture


def sets_in(results: Results) -> list[str]:
    return [name for name in SETS if any(key[0] == name for key in results)]


def tables(records: list[Record]) -> list[Table]:
    results = by_cell(records, PART)
    numbers = sorted({key[2] for key in results if key[1] != NONE}, reverse=True)
    header = [f"d = {d}" for d in numbers]
    found = []
    for name in sets_in(results):
        rows = []
        for classifier, title in CLASSIFIERS.items():
            for label in labels_in(results, LABELS):
                mine = [results.get((name, label, d)) for d in numbers]
                cells = [text_or_status(r, score_of(r, classifier), 1) for r in mine]
                rows.append([title, label, *cells])
            plain = results.get((name, NONE, FEATURES[name]))
            if plain is not None:
                cell = text_or_status(plain, score_of(plain, classifier), 1)
                rows.append([title, NONE, *[cell] * len(numbers)])
        for label in labels_in(results, LABELS):
            seconds = [
                number((results.get((name, label, d)) or {}).get("fit_seconds"), 1) for d in numbers
            ]
            rows.append(["fit, s", label, *seconds])
        chosen = []
        for d in numbers:
            for label in (AUTO, LEDOIT):
                own = (results.get((name, label, d)) or {}).get("own", {})
                if "sharpness" in own:
                    said = f"sharpness {own['sharpness']}, shrinkage {own['shrinkage']:.3g}"
                    chosen.append(f"d = {d}, {label}: {said}")
        notes = [
            f"Accuracy in percent. {AUTO} is the default: shrinkage and sharpness by held-out "
            f"rows. {LEDOIT}, LDA and aPAC have the shrinkage of Ledoit and Wolf; *{SAME[2:]}*: "
            f"the one that {AUTO} chose. The quadratic classifier mixes the covariance of a class "
            f"({1.0 - REGULARISATION:.1f}) with the common one ({REGULARISATION}). {ONLINE} is the "
            "paper's own: infinite sharpness, Algorithm 1 with 1000 updates, eigenvectors, and λ "
            f"by five folds and the nearest mean, with the shrinkage of Ledoit and Wolf. {NONE}: "
            "all pixels.",
            "Chosen: " + ("; ".join(chosen) or "nothing was measured") + ".",
        ]
        found.append(Table(f"Figure 7's shape: {name}", ["", "method", *header], rows, notes))
    return found


def figure(records: list[Record], path: Path) -> Path | None:
    """Error rates over the dimensions, as the paper's Figure 7."""
    results = {key: r for key, r in by_cell(records, PART).items() if r.get("scores")}
    names = sets_in(results)
    if not names:
        return None
    figure, axes = panels(len(names), 2, (10, 3.8 * len(names)))
    for row, name in zip(axes, names, strict=True):
        for panel, (classifier, title) in zip(row, CLASSIFIERS.items(), strict=True):
            for label, color in zip(LABELS, COLORS, strict=True):
                line = sorted(
                    (d, 100.0 - record["scores"][classifier])
                    for (where, method, d), record in results.items()
                    if (where, method) == (name, label)
                )
                style = "--" if label.endswith(SAME) else "-"
                if line:
                    over, error = zip(*line, strict=True)
                    panel.plot(over, error, style, color=color, marker="o", ms=3, label=label)
            plain = results.get((name, NONE, FEATURES[name]))
            if plain is not None:
                error = 100.0 - plain["scores"][classifier]
                panel.axhline(error, color="red", linestyle="--", linewidth=1, label=NONE)
            panel.set(title=f"{name}, {title}", xlabel="dimensions", ylabel="error (%)")
            panel.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="x-small")
    figure.suptitle(CLAIM, fontsize="small")
    return saved(figure, path)
