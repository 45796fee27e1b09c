"""Figures 3, 4 and 6 of the Maxi-Min paper: similar characters in three dimensions.

The paper takes five similar Chinese characters and one that is different. Ours are of Omniglot:
the closest pair of class means, the classes nearest to these, and the one furthest from all five.
Features are as in section 4.2, gradients in eight directions on a grid of 8 × 8 (512 columns),
without its normalisation of the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import NOTHING, Dataset
from benchmarks.harness.fits import Found, Keep, Spec
from benchmarks.harness.pictures import panels, pyplot, saved
from benchmarks.harness.records import Record, finished, text_of, text_or_status
from benchmarks.harness.report import Table
from benchmarks.maximin import papers as paper
from benchmarks.maximin.classifiers import class_means, nearest_mean, smallest_distance
from benchmarks.maximin.data import set_of
from benchmarks.maximin.fit import Projection, made
from benchmarks.maximin.methods import METHODS, OURS, PAIRWISE, Method, score_of
from benchmarks.maximin.printed import LPP

PART = "similar"
SET = "omniglot_small_242"
DRAWINGS = "drawings"
SIDE = 35
N_SIMILAR = 5
DIRECTIONS = 8
GRID = 8
# Width of the blur, in the distance of two points of the grid.
BLUR = 0.5
SHOWN = 12
SAMPLES = (8, 9)
SHRUNK = {"shrinkage": "auto"}
REFINED = "MaxiMinDA, refine"
MACHINES = (
    METHODS["pca"],
    Method(paper.LDA, PAIRWISE, {"weighting": "equal", **SHRUNK}),
    Method(paper.LFDA, METHODS["lfda"].estimator, SHRUNK),
    Method(paper.APAC, PAIRWISE, SHRUNK),
    Method(paper.LPP, METHODS["lpp"].estimator, LPP | {"variance": 0.95}),
    Method(paper.MMDA, OURS, METHODS["exact-eigen"].params | SHRUNK),
    Method(REFINED, OURS, METHODS["exact-refine"].params | SHRUNK),
)
COLORS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#222222")
CLAIM_3 = "Paper: the first five classes look similar, the last one does not"
CLAIM_4 = "Paper: PCA, LDA, LFDA, aPAC and LPP mix similar classes; MMDA separates them best"
CLAIM_6 = "Paper: samples of the set; ours are of Omniglot in place of CASIA-HWDB"


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    shown = Projection(
        DRAWINGS,
        NOTHING,
        "",
        {"n_components": 3},
        point={"d": 3},
        part=PART,
        set_name=SET,
        task="benchmarks.maximin.similar.show",
    )
    return [
        shown,
        *(
            Projection(
                method.label,
                NOTHING,
                method.estimator,
                {"n_components": 3, **method.params},
                point={"d": 3},
                part=PART,
                set_name=SET,
                task="benchmarks.maximin.similar.measure",
            )
            for method in MACHINES
        ),
    ]


# ---------------------------------------------------------------- classes and features


def gradients(images: np.ndarray) -> np.ndarray:
    """Gradients split between the two nearest of eight directions, blurred onto a grid."""
    down, right = np.gradient(images.astype(np.float64), axis=(1, 2))
    size = np.hypot(down, right)
    turn = np.arctan2(down, right) / (2.0 * np.pi) * DIRECTIONS % DIRECTIONS
    side = images.shape[1]
    centres = (np.arange(GRID) + 0.5) * side / GRID - 0.5
    away = (np.arange(side) - centres[:, None]) / (BLUR * side / GRID)
    blur = np.exp(-0.5 * away**2)
    parts = []
    for direction in range(DIRECTIONS):
        apart = np.abs(turn - direction)
        share = np.maximum(0.0, 1.0 - np.minimum(apart, DIRECTIONS - apart))
        parts.append(blur @ (share * size) @ blur.T)
    return np.stack(parts, axis=1).reshape(len(images), -1)


def chosen(means: np.ndarray) -> list[int]:
    """Five classes with means near each other, and the one furthest from them."""
    from scipy.spatial.distance import pdist, squareform

    apart = squareform(pdist(means))
    np.fill_diagonal(apart, np.inf)
    kept = [int(each) for each in np.unravel_index(np.argmin(apart), apart.shape)]
    np.fill_diagonal(apart, 0.0)
    while len(kept) < N_SIMILAR:
        furthest = apart[kept].max(axis=0)
        furthest[kept] = np.inf
        kept.append(int(np.argmin(furthest)))
    return [*kept, int(np.argmax(apart[kept].min(axis=0)))]


def six_classes() -> Dataset:
    """The features of the six classes, numbered in the order of the choice."""
    whole = set_of(SET, Dataset(SET, None, np.empty(0), None, np.empty(0)))
    train, test = (gradients(X.reshape(-1, SIDE, SIDE)) for X in (whole.X_train, whole.X_test))
    labels, code = np.unique(whole.y_train, return_inverse=True)
    order = chosen(class_means(train, code, len(labels)))
    code_test = np.searchsorted(labels, whole.y_test)
    parts: list[np.ndarray] = []
    for X, c in ((train, code), (test, code_test)):
        rows = np.concatenate([np.flatnonzero(c == number) for number in order])
        parts += [X[rows], np.searchsorted(np.sort(order), c[rows])]
    place = {int(np.searchsorted(np.sort(order), each)): at for at, each in enumerate(order)}
    y, y_test = (np.array([place[int(each)] for each in part]) for part in parts[1::2])
    return Dataset("six", parts[0], y, parts[2], y_test)


# ---------------------------------------------------------------- tasks


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """Projections of all drawings, what is right of those held out, and the closest classes."""
    six = six_classes()
    estimator = made(spec, six.X_train).fit(six.X_train, six.y_train)
    train, test = (np.asarray(estimator.transform(X)) for X in (six.X_train, six.X_test))
    scale = train.std()
    return {
        "min_distance": smallest_distance(np.vstack([train, test]), np.r_[six.y_train, six.y_test]),
        "held_out_distance": smallest_distance(test, six.y_test),
        "scores": {"mean": nearest_mean(train, six.y_train, test, six.y_test)},
        "train": np.round(train / scale, 3),
        "test": np.round(test / scale, 3),
        "y": six.y_train,
        "y_test": six.y_test,
    }


def packed(images: np.ndarray) -> list[str]:
    """Images as text: a bit a pixel."""
    return [np.packbits(image.ravel() > 0).tobytes().hex() for image in images]


def show(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """Drawings of the six classes, and the first of many classes."""
    whole = set_of(SET, Dataset(SET, None, np.empty(0), None, np.empty(0)))
    labels, code = np.unique(whole.y_train, return_inverse=True)
    features = gradients(whole.X_train.reshape(-1, SIDE, SIDE))
    order = chosen(class_means(features, code, len(labels)))
    rows = [packed(whole.X_train[code == number][:SHOWN]) for number in order]
    firsts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
    many = np.linspace(0, len(firsts) - 1, SAMPLES[0] * SAMPLES[1]).astype(int)
    return {
        "classes_shown": [int(labels[number]) for number in order],
        "similar": rows,
        "samples": packed(whole.X_train[firsts[many]]),
    }


# ---------------------------------------------------------------- table and pictures


def table(records: list[Record]) -> Table:
    rows = [
        [
            record["label"],
            text_or_status(record, score_of(record, "mean"), 1),
            text_of(record, "min_distance"),
            text_of(record, "held_out_distance"),
        ]
        for record in records
        if record["label"] != DRAWINGS
    ]
    header = ["method", "nearest mean, held out, %", "smallest distance", "of held-out drawings"]
    notes = [
        "Six classes of Omniglot (242 classes, 35 × 35 pixels): the closest pair of class means, "
        "the three nearest to these, and the class furthest away; gradients in 8 directions on "
        "8 × 8 points. 15 drawings of a class train, five are held out; d = 3; all with the "
        "shrinkage of Ledoit and Wolf, LPP after a PCA. Distances are squared, between the means "
        "of two classes, in deviations of the projected drawings; crosses in the picture are "
        "drawings that are held out.",
    ]
    return Table("Figure 4: six classes, five of them similar", header, rows, notes)


def images(figure: Any, axes: Any, texts: Sequence[str], claim: str, path: Path) -> Path:
    for panel, text in zip(axes.ravel(), texts, strict=True):
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(text), dtype=np.uint8))
        panel.imshow(1 - bits[: SIDE * SIDE].reshape(SIDE, SIDE), cmap="gray")
        panel.axis("off")
    figure.suptitle(claim, fontsize="small")
    return saved(figure, path)


def drawings_in(records: Sequence[Record]) -> Record | None:
    return next((each for each in finished(records) if each["label"] == DRAWINGS), None)


def figure_3(records: list[Record], path: Path) -> Path | None:
    record = drawings_in(records)
    if record is None:
        return None
    rows = record["similar"]
    figure, axes = panels(len(rows), len(rows[0]), (7.5, 4.2))
    return images(figure, axes, [text for row in rows for text in row], CLAIM_3, path)


def figure_6(records: list[Record], path: Path) -> Path | None:
    record = drawings_in(records)
    if record is None:
        return None
    figure, axes = panels(*SAMPLES, (6, 5.6))
    return images(figure, axes, record["samples"], CLAIM_6, path)


def figure_4(records: list[Record], path: Path) -> Path | None:
    known = [each for each in finished(records) if each["label"] != DRAWINGS]
    if not known:
        return None
    figure = pyplot().figure(figsize=(14, 7.4), layout="constrained")
    for number, record in enumerate(known):
        panel = figure.add_subplot(2, 4, number + 1, projection="3d")
        for part, y, looks in (("train", "y", {"s": 9}), ("test", "y_test", {"marker": "x"})):
            points, code = np.array(record[part]), np.array(record[y])
            panel.scatter(*points.T, c=[COLORS[each] for each in code], **looks)
        reached = score_of(record, "mean")
        panel.set_title(f"{record['label']}: {reached:.0f} % held out", fontsize="small")
        panel.tick_params(labelsize=5)
    figure.suptitle(f"{CLAIM_4} (black: the class that differs)", fontsize="small")
    return saved(figure, path)
