"""What others do with the same rows: random features with stochastic gradients, boosted trees."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec
from benchmarks.harness.records import Record
from benchmarks.harness.report import Table
from benchmarks.places.files import TEST_ROWS, mapped, test_rows
from benchmarks.places.fit import answers
from benchmarks.places.generator import BLOCK_ROWS, TRAIN
from benchmarks.places.growth import HEADER, line_of
from benchmarks.places.plan import (
    GAMMA,
    QUICK_ROWS,
    QUICK_VECTORS,
    ROWS,
    VECTORS,
    Place,
    on_rows,
    remarks,
)
from benchmarks.places.watch import Watch

PART = "peers"
GRADIENTS = "SGDClassifier on RBFSampler"
TREES = "HistGradientBoosting"
LABELS = (GRADIENTS, TREES)
# More rows than these are not given to the trees, which hold them in memory.
MOST_TREE_ROWS = 1_000_000
TREE_ROUNDS = 300
# By the accuracy on rows of seeds that neither train nor test, after 100,000 rows: the best after
# one pass; from 1e-8 to 1e-6 the accuracy changes by 0.2 points.
ALPHA = 1e-7
# Rows that the gradients see at the least, in several passes over few rows, and passes at the most.
LEAST_SEEN = 5_000_000
MOST_PASSES = 20


def plan(quick: bool, most: int) -> list[Place]:
    found = []
    for rows in [rows for rows in (QUICK_ROWS if quick else ROWS) if rows <= most]:
        test_rows_ = QUICK_ROWS[0] if quick else None
        passes = 1 if quick else min(MOST_PASSES, max(1, LEAST_SEEN // rows))
        found.append(
            on_rows(
                PART,
                GRADIENTS,
                rows,
                {"features": QUICK_VECTORS if quick else VECTORS, "passes": passes, "alpha": ALPHA},
                estimator="sklearn.linear_model.SGDClassifier",
                task="benchmarks.places.peers.gradients",
                test_rows=test_rows_,
            )
        )
        if rows <= MOST_TREE_ROWS:
            found.append(
                on_rows(
                    PART,
                    TREES,
                    rows,
                    {"max_iter": 20 if quick else TREE_ROUNDS, "random_state": 0},
                    estimator="sklearn.ensemble.HistGradientBoostingClassifier",
                    task="benchmarks.places.peers.trees",
                    test_rows=test_rows_,
                )
            )
    return found


# ---------------------------------------------------------------- tasks


def gradients(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """Block after block from disk, by ``partial_fit``."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    given = spec["params"]
    X, y = mapped(TRAIN, spec["rows"])
    machine = SGDClassifier(alpha=given["alpha"], average=True, random_state=0)
    sampler = RBFSampler(n_components=given["features"], gamma=GAMMA, random_state=0).fit(X[:2])
    with Watch() as watch:
        start = time.perf_counter()
        for _ in range(given["passes"]):
            for first in range(0, len(y), BLOCK_ROWS):
                some = slice(first, first + BLOCK_ROWS)
                machine.partial_fit(sampler.transform(X[some]), y[some], classes=[-1, 1])
        seconds = time.perf_counter() - start
    found = {"fit_seconds": seconds, "n_train": len(y), "n_vectors": None} | watch.found()
    keep(found)
    return found | answers(make_pipeline(sampler, machine), *test_rows(test_count(spec)))


def trees(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """All rows in memory."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = (np.array(part) for part in mapped(TRAIN, spec["rows"]))
    machine = HistGradientBoostingClassifier(**spec["params"])
    with Watch() as watch:
        start = time.perf_counter()
        machine.fit(X, y)
        seconds = time.perf_counter() - start
    found = {"fit_seconds": seconds, "n_train": len(y), "n_vectors": None} | watch.found()
    keep(found)
    return found | answers(machine, *test_rows(test_count(spec)))


def test_count(spec: Spec) -> int:
    return spec["test_rows"] or TEST_ROWS


# ---------------------------------------------------------------- tables


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: (LABELS.index(record["label"]), record["rows"]))
    note = (
        f"The same rows, which the generator has standardised. {GRADIENTS}: {VECTORS:,} features "
        f"of the same width, averaged hinge, α = {ALPHA:g}, blocks of {BLOCK_ROWS:,} rows by "
        f"partial_fit; as many passes as it takes to see {LEAST_SEEN:,} rows, at most "
        f"{MOST_PASSES}. {TREES}: {TREE_ROUNDS} rounds, in memory, so on {MOST_TREE_ROWS:,} rows "
        "at the most: of ten million a subsample."
    )
    return Table(
        "Others, on the same rows", HEADER, [*map(line_of, order)], [note, *remarks(order)]
    )
