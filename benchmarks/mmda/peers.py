"""All of MNIST beside `KernelPCA` on 3,500 rows of it: fit, and transform of all rows."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, ratio, text_or_status
from benchmarks.harness.report import Table, number
from benchmarks.mmda.extract import ALL, Extraction
from benchmarks.mmda.plan import OURS, SAMPLE_ROWS, SPAN_WARMUP_ROWS, kernel_pca, ours

PART = "peers"
SPAN = "MMDA span"
DEFAULT = "KPCA"
ARPACK = "KPCA, ARPACK"
DIRECTIONS = 5
FEATURES = 50
ASKED = 3.0
REPEATS = 3
QUICK_ROWS = 3000
QUICK_SAMPLE = 500


def plan(quick: bool) -> list[Extraction]:
    """KPCA with the default eigensolver, and with the one that is faster for few components."""
    dataset = "optdigits" if quick else "mnist_unit"
    rows = QUICK_ROWS if quick else None
    sample = QUICK_SAMPLE if quick else SAMPLE_ROWS
    path = "sklearn.decomposition.KernelPCA"
    nearest = {"1-NN": (ALL,)}
    repeats = 1 if quick else REPEATS
    return [
        *(
            Extraction(
                label,
                dataset,
                path,
                kernel_pca(FEATURES, eigen_solver),
                rows=rows,
                part=PART,
                sample=sample,
                repeats=repeats,
                classify=nearest,
            )
            for label, eigen_solver in ((DEFAULT, "auto"), (ARPACK, "arpack"))
        ),
        Extraction(
            SPAN,
            dataset,
            OURS,
            ours("span", DIRECTIONS, quick),
            rows=rows,
            warmup_rows=SPAN_WARMUP_ROWS,
            part=PART,
            repeats=repeats,
            classify=nearest,
        ),
    ]


def seconds_of(record: Record | None) -> float | None:
    """Fit and transform; None where either did not finish."""
    spent = [(record or {}).get(key) for key in ("fit_seconds", "transform_seconds")]
    return None if None in spent else sum(spent)


def ratio_over(records: Sequence[Record], peer: str) -> float | None:
    """Ours over that peer; None where they are not of one run."""
    found = {record["label"]: record for record in records}
    if SPAN not in found or peer not in found or found[SPAN]["run"] != found[peer]["run"]:
        return None
    return ratio(seconds_of(found[SPAN]), seconds_of(found[peer]))


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        scores = record.get("scores", {}).get("1-NN", {}).get(str(ALL), {})
        rows.append(
            [
                record["label"],
                number(record.get("n_fit"), 0),
                number(record.get("n_train"), 0),
                number(record.get("n_features_out"), 0),
                *(number(record.get(key)) for key in ("fit_seconds", "transform_seconds")),
                text_or_status(record, seconds_of(record)),
                number(ratio_over(records, record["label"]), unit="×"),
                number(record.get("peak_mb"), 0),
                text_or_status(record, scores.get("accuracy")),
            ]
        )
    header = ["method", "rows fitted", "rows transformed", "features", "fit, s", "transform, s"]
    header += ["both, s", "ours over it", "peak of the fit, MB", "1-NN, %"]
    names = ", ".join(sorted({record["dataset"] for record in records}))
    notes = [
        f"{names}, Gaussian, γ = 1/β, all in one run (asked: ours at most {ASKED:g} times KPCA). "
        'KPCA is scikit-learn\'s with `eigen_solver="auto"`, its default, which is dense here, and '
        "with ARPACK, as the paper's. Medians of the fits after a warm-up, one transform."
    ]
    return Table("Beside KernelPCA on a sample", header, rows, notes)
