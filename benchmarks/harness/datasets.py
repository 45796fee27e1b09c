"""Data sets by name, from the folder ``$WIDEMARGIN_DATA`` or from OpenML.

The folder holds one ``.npz`` archive a set with the arrays ``X_train, y_train, X_test, y_test`` (or
``X, y``); a sparse part is stored as ``X_train_data, X_train_indices, X_train_indptr,
X_train_shape``. What is done to the raw values is written in the `RECIPES` table and nowhere else:
values stay raw unless a recipe says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Arrays = Mapping[str, Any]
Parts = tuple[Any, np.ndarray, Any, np.ndarray]

SPLIT_SEED = 0
COVTYPE_TEST_ROWS = 50_000
TIMING_TEST_ROWS = 5_000
# Places along a side of the frame into which a digit is put.
PLACES = 11
# What a child process loads where the task itself reads or makes the set.
NOTHING = "generated"
LIBSVM_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"


class DatasetNotFound(RuntimeError):
    """The set is unknown, or its file is neither in the folder nor to be had from OpenML."""


@dataclass(frozen=True)
class Dataset:
    """A set with its training and test part; X is a float array or a float64 CSR matrix."""

    name: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray


@dataclass(frozen=True)
class Recipe:
    """How a set is found and prepared.

    ``openml`` is the data id there, for sets whose OpenML copy keeps the order of the rows
    (training part first, ``n_train`` rows, ``n_rows`` in all); ``where`` tells a user without the
    folder where the files are.
    """

    prepare: Callable[[Arrays], Parts]
    file: str | None = None
    openml: int | None = None
    n_train: int | None = None
    n_rows: int | None = None
    where: str = ""


# ---------------------------------------------------------------- reading one part of an archive


def matrix(arrays: Arrays, part: str) -> Any:
    """The matrix called ``part``: dense float64, or CSR float64 with int32 indices."""
    if part in arrays:
        return np.ascontiguousarray(arrays[part], dtype=np.float64)
    data = arrays[f"{part}_data"].astype(np.float64)
    indices, indptr = (
        arrays[f"{part}_{piece}"].astype(np.int32) for piece in ("indices", "indptr")
    )
    return sp.csr_matrix((data, indices, indptr), shape=tuple(arrays[f"{part}_shape"]))


def labels(arrays: Arrays, part: str) -> np.ndarray:
    return np.asarray(arrays[part]).astype(np.int64)


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both parts with the training part's mean and deviation; in place, columns may be constant."""
    mean = train.mean(axis=0, dtype=np.float64).astype(train.dtype)
    train -= mean
    test -= mean
    deviation = np.sqrt(np.einsum("ij,ij->j", train, train, dtype=np.float64) / len(train))
    deviation[deviation == 0.0] = 1.0
    train /= deviation.astype(train.dtype)
    test /= deviation.astype(test.dtype)
    return train, test


# ---------------------------------------------------------------- recipes


def as_given(arrays: Arrays) -> Parts:
    return (
        matrix(arrays, "X_train"),
        labels(arrays, "y_train"),
        matrix(arrays, "X_test"),
        labels(arrays, "y_test"),
    )


def first_rows(n_train: int) -> Callable[[Arrays], Parts]:
    """The first ``n_train`` rows train, the others test (rows in their published order)."""

    def prepare(arrays: Arrays) -> Parts:
        X, y = matrix(arrays, "X"), labels(arrays, "y")
        return X[:n_train], y[:n_train], X[n_train:], y[n_train:]

    return prepare


def random_rows(train: float | int) -> Callable[[Arrays], Parts]:
    """A share (or a number) of the rows of the only part there is, drawn with a fixed seed."""

    def prepare(arrays: Arrays) -> Parts:
        X, y = matrix(arrays, "X_train"), labels(arrays, "y_train")
        n_train = train if isinstance(train, int) else round(train * len(y))
        order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
        # Sorted, so that a sparse or memory-mapped matrix is read in its own order.
        kept, held = np.sort(order[:n_train]), np.sort(order[n_train:])
        return X[kept], y[kept], X[held], y[held]

    return prepare


def z_scores(prepare: Callable[[Arrays], Parts]) -> Callable[[Arrays], Parts]:
    """The same rows with every column standardised."""

    def standard(arrays: Arrays) -> Parts:
        X_train, y_train, X_test, y_test = prepare(arrays)
        X_train, X_test = standardised(X_train.astype(np.float64), X_test.astype(np.float64))
        return X_train, y_train, X_test, y_test

    return standard


def every_row(arrays: Arrays) -> Parts:
    """All rows train and none tests: for cross-validation. Missing values: the column's median."""
    X, y = matrix(arrays, "X"), labels(arrays, "y")
    missing = np.isnan(X)
    X[missing] = np.broadcast_to(np.nanmedian(X, axis=0), X.shape)[missing]
    return X, y, X[:0], y[:0]


def ill(arrays: Arrays) -> Parts:
    """Any degree of heart disease (+1) against none (−1), all rows, as in `every_row`."""
    X, y, *none = every_row(arrays)
    return X, np.where(y > 0, 1, -1), none[0], none[1]


def only(*classes: int) -> Callable[[Arrays], Parts]:
    """The rows of these classes."""

    def prepare(arrays: Arrays) -> Parts:
        X_train, y_train, X_test, y_test = as_given(arrays)
        kept, held = np.isin(y_train, classes), np.isin(y_test, classes)
        return X_train[kept], y_train[kept], X_test[held], y_test[held]

    return prepare


def tf_idf(arrays: Arrays) -> Parts:
    """Term counts to TF-IDF with rows of unit length; the papers do not say what they used."""
    from sklearn.feature_extraction.text import TfidfTransformer

    X_train, y_train, X_test, y_test = as_given(arrays)
    weights = TfidfTransformer(norm="l2").fit(X_train)
    return weights.transform(X_train), y_train, weights.transform(X_test), y_test


def intrusion(arrays: Arrays) -> Parts:
    """Attack (+1) against normal (−1); categories as indicators; every column standardised.

    float32, because 500,000 × 119 in float64 would already be half a gigabyte.
    """
    category = [int(column) for column in arrays["cat_cols"]]
    sizes = [len(arrays[f"cat{column}"]) for column in category]
    normal = list(arrays["classes"]).index("normal")

    def encode(X: np.ndarray) -> np.ndarray:
        number = np.delete(X, category, axis=1)
        out = np.zeros((len(X), number.shape[1] + sum(sizes)), dtype=np.float32)
        out[:, : number.shape[1]] = number
        first = number.shape[1]
        for column, size in zip(category, sizes, strict=True):
            out[np.arange(len(X)), first + X[:, column].astype(np.intp)] = 1.0
            first += size
        return out

    X_train, X_test = standardised(encode(arrays["X_train"]), encode(arrays["X_test"]))
    y_train, y_test = (np.where(arrays[part] == normal, -1, 1) for part in ("y_train", "y_test"))
    return X_train, y_train, X_test, y_test


def lodgepole(
    n_train: int | None = None, *, seven: bool = False, scaled: bool = True
) -> Callable[[Arrays], Parts]:
    """Class 2 (+1) against the rest (−1), 50,000 random rows for the test, standardised.

    ``n_train`` random rows train, or all the others; the test rows are the same for any number.
    ``seven`` leaves all classes as they are, and without ``scaled`` columns are, too.
    """

    def prepare(arrays: Arrays) -> Parts:
        y = labels(arrays, "y")
        y = y if seven else np.where(y == 2, 1, -1)
        order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
        held, kept = order[:COVTYPE_TEST_ROWS], order[COVTYPE_TEST_ROWS:][:n_train]
        # Rows first, float64 then: the whole set is 16-bit integers.
        X_train, X_test = (arrays["X"][rows].astype(np.float64) for rows in (kept, held))
        if scaled:
            X_train, X_test = standardised(X_train, X_test)
        return X_train, y[kept], X_test, y[held]

    return prepare


def every_lodgepole(arrays: Arrays) -> Parts:
    """All rows train, in a random order; for timing: the test rows are some of them."""
    y = np.where(labels(arrays, "y") == 2, 1, -1)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
    X = arrays["X"][order].astype(np.float64)
    X, X_test = standardised(X, X[:TIMING_TEST_ROWS].copy())
    return X, y[order], X_test, y[order[:TIMING_TEST_ROWS]]


def pixels(arrays: Arrays) -> Parts:
    """Grey values from [0, 255] to [0, 1]."""
    X_train, y_train, X_test, y_test = as_given(arrays)
    X_train /= 255.0
    X_test /= 255.0
    return X_train, y_train, X_test, y_test


def shifted(digits: Sequence[int], rows: int | None = None) -> Callable[[Arrays], Parts]:
    """Two digits of 16 × 16 pixels in a frame of 26 × 26, at all places that it has for them.

    As the authors of the core vector machine made their larger usps: every image is moved by up to
    five pixels each way, 11² copies of it. ``rows`` random ones train, and half as many test.
    """

    def copies(images: np.ndarray, n: int | None) -> tuple[np.ndarray, np.ndarray]:
        chosen = np.arange(len(images) * PLACES**2)
        if n is not None and n < len(chosen):
            chosen = np.sort(np.random.default_rng(SPLIT_SEED).permutation(len(chosen))[:n])
        number, place = chosen // PLACES**2, chosen % PLACES**2
        frames = np.zeros((len(chosen), 15 + PLACES, 15 + PLACES), dtype=np.float32)
        for each in range(PLACES**2):
            here = np.flatnonzero(place == each)
            top, left = divmod(each, PLACES)
            frames[here, top : top + 16, left : left + 16] = images[number[here]]
        return frames.reshape(len(frames), -1), number

    def prepare(arrays: Arrays) -> Parts:
        X_train, y_train, X_test, y_test = only(*digits)(arrays)
        found: list[np.ndarray] = []
        for X, y, n in ((X_train, y_train, rows), (X_test, y_test, rows and rows // 2)):
            frames, number = copies(X.reshape(-1, 16, 16).astype(np.float32), n)
            found += [frames, np.where(y[number] == digits[0], 1, -1)]
        return found[0], found[1], found[2], found[3]

    return prepare


def published_split(number: int) -> Callable[[Arrays], Parts]:
    """One of the published splits of a set for regression, counted from 0.

    Columns and targets have the mean and the deviation of the training rows: an error is in units
    of the target's deviation.
    """

    def prepare(arrays: Arrays) -> Parts:
        X, y = matrix(arrays, "X"), np.asarray(arrays["y"], dtype=np.float64)
        held = np.unpackbits(arrays["test_mask"], axis=0)[: len(y), number].astype(bool)
        X_train, X_test = standardised(X[~held], X[held])
        y_train, y_test = standardised(y[~held][:, None], y[held][:, None])
        return X_train, y_train[:, 0], X_test, y_test[:, 0]

    return prepare


def waves(_: Arrays) -> Parts:
    """A smooth function of three columns with noise: regression that needs no file."""
    rng = np.random.default_rng(SPLIT_SEED)
    X = rng.standard_normal((400, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(400)
    return X[:300], y[:300], X[300:], y[300:]


def all_scored(arrays: Arrays) -> Parts:
    """All rows, which train without labels and are scored; y is 1 for an anomaly."""
    X, y = matrix(arrays, "X"), labels(arrays, "y")
    return X, y, X, y


def scattered(_: Arrays) -> Parts:
    """A cloud with one row in twenty from a wider one: anomalies that need no file."""
    rng = np.random.default_rng(SPLIT_SEED)
    y = (np.arange(400) % 20 == 0).astype(np.int64)
    X = rng.standard_normal((400, 3)) * np.where(y == 1, 5.0, 1.0)[:, None]
    return X, y, X, y


def mixture(_: Arrays) -> Parts:
    """Two overlapping classes, each of eight Gaussians in ten dimensions, as in the demonstration.

    100,000 rows train and 10,000 test; a test holds this and ``examples/demo.py`` together.
    """
    n_train, n_test, spread = 100_000, 10_000, 0.87
    rng = np.random.default_rng(SPLIT_SEED)
    centers = rng.normal(size=(2, 8, 10))
    y = rng.integers(2, size=n_train + n_test)
    X = centers[y, rng.integers(8, size=len(y))] + spread * rng.normal(size=(len(y), 10))
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def far_mass(_: Arrays) -> Parts:
    """Two classes that the second column separates, as in Figure 1 of the MMDA paper.

    Most rows of the one class lie far from the boundary and draw the means, the covariances and
    the principal component their way. 1,000 rows train, and as many test.
    """
    rng = np.random.default_rng(SPLIT_SEED)
    y = np.where(np.arange(2000) % 2, 1, -1)
    far = (y == 1) & (rng.random(len(y)) < 0.85)
    X = np.column_stack((rng.standard_normal(len(y)), y * rng.uniform(-0.8, -0.3, len(y))))
    X[far] = np.column_stack((6.0 + X[far, 0], rng.uniform(-6.0, -0.3, far.sum())))
    return X[:1000], y[:1000], X[1000:], y[1000:]


def generated(_: Arrays) -> Parts:
    """Three overlapping Gaussian classes: needs no file, for trying the machinery."""
    rng = np.random.default_rng(SPLIT_SEED)
    y = np.arange(600) % 3
    X = rng.standard_normal((600, 5)) + 2.0 * np.eye(5)[y]
    return X[:400], y[:400], X[400:], y[400:]


RECIPES: dict[str, Recipe] = {
    "optdigits": Recipe(as_given, "optdigits", openml=28, n_train=3823, n_rows=5620),
    "optdigits_069": Recipe(only(0, 6, 9), "optdigits", openml=28, n_train=3823, n_rows=5620),
    "satimage": Recipe(
        as_given,
        "satimage",
        where="UCI, Statlog (Landsat Satellite): sat.trn and sat.tst (OpenML's copy lacks rows)",
    ),
    "pendigits": Recipe(as_given, "pendigits", openml=32, n_train=7494, n_rows=10992),
    "letter": Recipe(first_rows(15_000), "letter", openml=6, n_rows=20_000),
    "letter_16000": Recipe(first_rows(16_000), "letter", openml=6, n_rows=20_000),
    "mnist": Recipe(as_given, "mnist", openml=554, n_train=60_000, n_rows=70_000),
    "mnist_unit": Recipe(pixels, "mnist", openml=554, n_train=60_000, n_rows=70_000),
    "usps": Recipe(as_given, "usps", where=LIBSVM_PAGE + " (usps, usps.t; values in [0, 1])"),
    "usps_shifted": Recipe(shifted((0, 1)), "usps", where=LIBSVM_PAGE + " (usps, usps.t)"),
    "usps_shifted_20000": Recipe(
        shifted((0, 1), 20_000), "usps", where=LIBSVM_PAGE + " (usps, usps.t)"
    ),
    "ijcnn1": Recipe(random_rows(0.8), "ijcnn1_train", where=LIBSVM_PAGE + " (ijcnn1)"),
    "ijcnn1_40000": Recipe(random_rows(40_000), "ijcnn1_train", where=LIBSVM_PAGE + " (ijcnn1)"),
    "w8a": Recipe(random_rows(0.8), "w8a", where=LIBSVM_PAGE + " (w8a)"),
    # The BVM paper's w3a has 4,912 training rows of w8a, and the other 44,837 test.
    "w3a": Recipe(random_rows(4912), "w8a", where=LIBSVM_PAGE + " (w8a)"),
    "w8a_5000": Recipe(random_rows(5000), "w8a", where=LIBSVM_PAGE + " (w8a)"),
    "reuters": Recipe(
        tf_idf,
        "reuters21578_modapte",
        where="http://www.daviddlewis.com/resources/testcollections/reuters21578/ (ModApte split)",
    ),
    "kddcup99_10pct": Recipe(
        intrusion,
        "kddcup99_10pct",
        where="http://kdd.ics.uci.edu/databases/kddcup99/ (kddcup.data_10_percent, corrected)",
    ),
    "covtype": Recipe(lodgepole(), "covtype", openml=1596, n_rows=581_012),
    "covtype_20000": Recipe(lodgepole(20_000), "covtype", openml=1596, n_rows=581_012),
    "covtype_100000": Recipe(lodgepole(100_000), "covtype", openml=1596, n_rows=581_012),
    "covtype_seven": Recipe(lodgepole(seven=True), "covtype", openml=1596, n_rows=581_012),
    "covtype_seven_100000": Recipe(
        lodgepole(100_000, seven=True), "covtype", openml=1596, n_rows=581_012
    ),
    "covtype_seven_100000_raw": Recipe(
        lodgepole(100_000, seven=True, scaled=False), "covtype", openml=1596, n_rows=581_012
    ),
    "covtype_all": Recipe(every_lodgepole, "covtype", openml=1596, n_rows=581_012),
    "dna": Recipe(as_given, "dna", where=LIBSVM_PAGE + " (dna.scale, dna.scale.t)"),
    "wine": Recipe(every_row, "wine", openml=187, n_rows=178),
    "ionosphere": Recipe(every_row, "ionosphere", openml=59, n_rows=351),
    "pima": Recipe(every_row, "pima", openml=37, n_rows=768),
    "bupa": Recipe(every_row, "bupa", where="UCI, Liver Disorders: bupa.data"),
    "heart": Recipe(ill, "heart_cleveland", where="UCI, Heart Disease: processed.cleveland.data"),
    "far_mass": Recipe(far_mass),
    "waves": Recipe(waves),
    "scattered": Recipe(scattered),
    "mixture": Recipe(mixture),
    "generated": Recipe(generated),
}

# With every column standardised, under the name with this ending.
STANDARD = "_standard"
RECIPES |= {
    name + STANDARD: replace(RECIPES[name], prepare=z_scores(RECIPES[name].prepare))
    for name in ("optdigits", "satimage", "pendigits", "letter")
}

# Regression: the first of the published splits has the name of the set.
REGRESSION = ("concrete", "airfoil", "energy", "pumadyn32nm", "pol", "elevators", "bike")
REGRESSION += ("kin40k", "protein", "keggundirected")
SPLITS = 3
UCI = "UCI or DELVE, by the name after reg_; splits: treforevans/uci_datasets on GitHub"


def split_name(name: str, number: int) -> str:
    """The name of a set for regression at one of its splits."""
    return f"reg_{name}" + (f"_split{number + 1}" if number else "")


RECIPES |= {
    split_name(name, number): Recipe(published_split(number), f"reg_{name}", where=UCI)
    for name in REGRESSION
    for number in range(SPLITS)
}

# The "classical" sets of ADBench, the small ones first.
OUTLIERS = ("wdbc", "vowels", "letter", "cardio", "fault", "musk", "waveform", "thyroid", "wilt")
OUTLIERS += ("optdigits", "pageblocks", "satimage_2", "landsat", "satellite", "pendigits")
OUTLIERS += ("annthyroid", "mnist", "mammography", "smtp", "celeba", "skin", "cover", "http")
OUTLIERS += ("donors",)
RECIPES |= {
    f"ad_{name}": Recipe(all_scored, f"ad_{name}", where="ADBench on GitHub, datasets/Classical")
    for name in OUTLIERS
}


# ---------------------------------------------------------------- finding the arrays


def from_folder(name: str, recipe: Recipe, folder: Path) -> Arrays:
    path = folder / f"{recipe.file}.npz"
    if not path.is_file():
        hint = f" It comes from {recipe.where}." if recipe.where else ""
        raise DatasetNotFound(
            f"data set {name!r}: no file {path}. Put it there, or unset WIDEMARGIN_DATA to "
            f"fetch from OpenML what OpenML has.{hint}"
        )
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def from_openml(name: str, recipe: Recipe) -> Arrays:
    if recipe.openml is None:
        raise DatasetNotFound(
            f"data set {name!r} is not on OpenML in the form needed. Get it from {recipe.where}, "
            f"store it as {recipe.file}.npz and set WIDEMARGIN_DATA to the folder."
        )
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(data_id=recipe.openml, as_frame=False, parser="auto")
    except Exception as error:  # offline shows as URLError, timeout, ConnectionError or OSError
        raise DatasetNotFound(
            f"data set {name!r}: OpenML (data id {recipe.openml}) did not answer: {error}. "
            f"Without a network, set WIDEMARGIN_DATA to a folder with {recipe.file}.npz."
        ) from error
    X, y = bunch.data, np.unique(bunch.target, return_inverse=True)[1]
    if name.startswith("covtype"):
        y = y + 1  # its labels are 1 to 7, and the recipe asks for 2
    if recipe.n_rows is not None and len(y) != recipe.n_rows:
        raise DatasetNotFound(
            f"data set {name!r}: OpenML gave {len(y)} rows where {recipe.n_rows} were expected, "
            f"so its split is unknown. Set WIDEMARGIN_DATA to a folder with {recipe.file}.npz."
        )
    if recipe.n_train is None:
        return {"X": X, "y": y}
    n = recipe.n_train
    return {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]}


def arrays_of(name: str, recipe: Recipe) -> Arrays:
    """The raw arrays of a set, from the folder if there is one; none of a generated set."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if recipe.file is None:
        return {}
    return from_folder(name, recipe, Path(folder)) if folder else from_openml(name, recipe)


def load(name: str, rows: int | None = None) -> Dataset:
    """The set called ``name``; ``rows`` keeps that many random training rows (fixed seed)."""
    if name not in RECIPES:
        raise DatasetNotFound(f"unknown data set {name!r}; known: {', '.join(sorted(RECIPES))}")
    recipe = RECIPES[name]
    X_train, y_train, X_test, y_test = recipe.prepare(arrays_of(name, recipe))
    if rows is not None and rows < len(y_train):
        kept = np.sort(np.random.default_rng(SPLIT_SEED).permutation(len(y_train))[:rows])
        X_train, y_train = X_train[kept], y_train[kept]
    return Dataset(name, X_train, y_train, X_test, y_test)
