"""A tour of widemargin: classifiers and features beside their peers, and pictures of some.

Run it with ``make demo``, or with ``python examples/demo.py`` where widemargin and Matplotlib are
installed. It takes about a minute on two cores and needs no network.

To add a part, write a function without arguments and list it in `PARTS`.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # pictures go to files, so no display is needed
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.lines import Line2D
from scipy.special import logsumexp
from sklearn.datasets import load_digits, make_moons
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    MarginClassifier,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
)
from widemargin.plot import classes as draw_classes
from widemargin.plot import projection

OUTPUT = Path(__file__).parent / "output"
BALLS = (CoreVectorClassifier, BallVectorClassifier)
OURS = (MarginClassifier, *BALLS)
N_COMPONENTS = 300  # of Nystroem
COLORS = ("tab:blue", "tab:orange")
SHADES = LinearSegmentedColormap.from_list("shades", ("#a6cbe6", "white", "#ffd0a1"))

NOTE = """
All machines of a data set share C and gamma; SVC's loss is not squared. A gap of 0.001 proves an
objective within 0.1 % of the best; near 1 it proves nothing. On the mixture an exact machine would
need tens of thousands of vectors: the core and ball vector machines stop at a limit, and the gap
says how unfinished they are. MarginClassifier chooses how it fits, which stands in brackets: exact;
all rows in the span of a few vectors, where its gap is that to the best machine with those vectors;
or a machine for each cell of a partition, where it is that to the best machines of the cells.
"""


@dataclass(frozen=True)
class Task:
    """A data set in two parts, and how the machines are set on it."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    C: float
    limits: dict[str, Any] = field(default_factory=dict)
    svc_rows: int | None = None  # SVC sees this many random rows; None means all


def digits() -> Task:
    """Return handwritten digits, ten classes, half of the rows for training."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    return Task(f"digits, {len(X)} rows", X, y, X_test, y_test, C=10.0)


def mixture(n: int = 100_000, n_test: int = 10_000, spread: float = 0.87) -> Task:
    """Return two classes that overlap, each a mixture of eight Gaussians in ten dimensions."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(2, 8, 10))
    y = rng.integers(2, size=n + n_test)
    X = centers[y, rng.integers(8, size=len(y))] + spread * rng.normal(size=(len(y), 10))
    X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
    squared = ((X_test[:, None, None, :] - centers) ** 2).sum(axis=-1)
    density = logsumexp(-squared / (2 * spread**2), axis=-1)
    best = np.mean(density.argmax(axis=1) == y_test)
    print(f"mixture: knowing the true densities would give an accuracy of {best:.4f}")
    limits = {"max_vectors": 3000, "max_time": 20}
    return Task(f"mixture, {n:,} rows", X, y, X_test, y_test, 1.0, limits, svc_rows=10_000)


def warm_up() -> None:
    """Take a few steps on a little noise, so that fits are timed without their compilation."""
    rng = np.random.default_rng(0)
    X, limits = rng.normal(size=(3000, 5)), {"max_vectors": 600, "max_iter": 5}
    for n_classes in (2, 3):
        y = rng.integers(n_classes, size=len(X))
        for machine in OURS:
            for tol in (1e-2, 1e-9):  # single and double precision
                measure(Task("", X, y, X, y, 1.0), "", machine(tol=tol, **limits))
        span = MarginClassifier(engine="span", max_vectors=2000, max_iter=5)
        measure(Task("", X, y, X, y, 1.0), "", span)


def measure(task: Task, name: str, model: Any, rows: Any = slice(None)) -> dict[str, str]:
    """Fit a model on some rows, score it, and return its line of the table."""
    start = time.perf_counter()
    with warnings.catch_warnings():  # expected where there is a limit; the table shows the gap
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(task.X[rows], task.y[rows])
    fitted = time.perf_counter()
    accuracy = np.mean(model.predict(task.X_test) == task.y_test)
    predicted = time.perf_counter()
    certificate = getattr(model, "certificate_", None)
    return {
        "data": task.name,
        "model": name,
        "accuracy": f"{accuracy:.4f}",
        "fit s": f"{fitted - start:.2f}",
        "predict s": f"{predicted - fitted:.2f}",
        "vectors": f"{len(model.support_) if hasattr(model, 'support_') else N_COMPONENTS:,}",
        "certified gap": "none" if certificate is None else f"{certificate.gap:.2g}",
    }


def compare(task: Task) -> tuple[list[dict[str, str]], list[str]]:
    """Fit our machines and their peers on a task; return lines of the table and certificates."""
    lines, certificates = [], []
    for machine in OURS:
        limits = {} if machine is MarginClassifier else task.limits
        model = machine(C=task.C, gamma="mean_distance", random_state=0, **limits)
        lines.append(measure(task, machine.__name__, model))
        if machine is MarginClassifier:
            lines[-1]["model"] += f" ({model.engine_})"
        certificates.append(f"{task.name}, {machine.__name__}:\n  {model.certificate_}")
    gamma, name, rows = model.gamma_, "SVC", slice(None)
    if task.svc_rows is not None:
        name = f"SVC on {task.svc_rows:,} of the rows"
        rows = np.random.default_rng(0).permutation(len(task.X))[: task.svc_rows]
    lines.append(measure(task, name, SVC(C=task.C, gamma=gamma), rows))
    features = Nystroem(gamma=gamma, n_components=N_COMPONENTS, random_state=0)
    pipeline = make_pipeline(features, LinearSVC(C=task.C, random_state=0))
    lines.append(measure(task, f"Nystroem({N_COMPONENTS}) + LinearSVC", pipeline))
    return lines, certificates


def print_table(lines: list[dict[str, str]], left: tuple[str, ...] = ("data", "model")) -> None:
    """Print lines under their keys, the columns `left` aligned to the left."""
    width = {key: max(len(key), *(len(line[key]) for line in lines)) for key in lines[0]}
    rule = {key: "-" * width[key] for key in width}
    for line in [{key: key for key in width}, rule, *lines]:
        cells = (f"{line[k]:{'<' if k in left else '>'}{width[k]}}" for k in width)
        print("  ".join(cells).rstrip())


def part_table() -> None:
    """Compare classifiers on real and on generated data."""
    warm_up()
    print("Tiny fits come first, so that the times below hold no just-in-time compilation.")
    results = [compare(task) for task in (digits(), mixture())]
    print()
    print_table([line for lines, _ in results for line in lines])
    print(NOTE)
    print("\n".join(line for _, certificates in results for line in certificates))


def draw_boundary(axes: Any, model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Draw a fitted two-class model over its two-dimensional rows; return the filled contours."""
    (left, bottom), (right, top) = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    across, up = np.meshgrid(np.linspace(left, right, 300), np.linspace(bottom, top, 300))
    values = model.decision_function(np.c_[across.ravel(), up.ravel()]).reshape(across.shape)
    levels = np.linspace(-2, 2, 17)
    filled = axes.contourf(across, up, values, levels, cmap=SHADES, extend="both")
    axes.contour(across, up, values, (-1, 1), colors="k", linestyles="--", linewidths=1)
    axes.contour(across, up, values, (0,), colors="k", linewidths=2)
    axes.scatter(*X.T, c=y, cmap=ListedColormap(COLORS), s=14, linewidths=0)
    axes.scatter(*model.support_vectors_.T, s=46, facecolors="none", edgecolors="k", linewidths=0.8)
    share = f"{len(model.support_)} core vectors of {len(X)} rows"
    axes.set_title(f"{type(model).__name__}\n{share}, gap {model.certificate_.gap:.1e}")
    axes.set(xticks=[], yticks=[], aspect="equal")
    return filled


def part_boundary() -> None:
    """Save a picture of both ball machines on two moons."""
    X, y = make_moons(400, noise=0.2, random_state=0)
    figure, panels = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axes, machine in zip(panels, BALLS, strict=True):
        model = machine(C=10, gamma="mean_distance", random_state=0).fit(X, y)
        filled = draw_boundary(axes, model, X, y)
    dot = {"marker": "o", "linestyle": "none"}
    handles = [
        Line2D([], [], color=COLORS[0], markersize=5, label="class 0", **dot),
        Line2D([], [], color=COLORS[1], markersize=5, label="class 1", **dot),
        Line2D([], [], color="k", markersize=8, fillstyle="none", label="core vector", **dot),
        Line2D([], [], color="k", linewidth=2, label="boundary, f(x) = 0"),
        Line2D([], [], color="k", linewidth=1, linestyle="--", label="margin, f(x) = ±1"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.colorbar(filled, ax=panels, ticks=range(-2, 3), label="decision function f(x)")
    figure.suptitle("Decision boundary and core vectors on two moons", fontsize=15)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    figure.savefig(path := OUTPUT / "boundary.png", dpi=150)
    plt.close(figure)
    print(f"\nDecision boundaries and core vectors: {os.path.relpath(path)}")


def part_features() -> None:
    """Compare features for a nearest-neighbour classifier, and draw two of them."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    gamma = 1.0 / (2.0 * X.var(axis=0).sum())
    ours = {"C": 10.0, "kernel": "rbf", "gamma": gamma, "scale": "margin", "random_state": 0}
    extractors = {
        "MaxMarginDA, 30 features": MaxMarginDA(3, **ours),
        "MaxMarginDA, 10 features": MaxMarginDA(1, **ours),
        "LDA, 9 features": LinearDiscriminantAnalysis(),
        "KernelPCA, 30 features": KernelPCA(30, kernel="rbf", gamma=gamma),
        "all 64 pixels": FunctionTransformer(),
    }
    lines = []
    for name, extractor in extractors.items():
        model = make_pipeline(extractor, KNeighborsClassifier(1)).fit(X, y)
        accuracy = f"{model.score(X_test, y_test):.4f}"
        lines.append({"features of digits": name, "1-NN accuracy": accuracy})
    print()
    print_table(lines, left=("features of digits",))
    some = np.isin(y_test, (0, 6, 9))
    two = extractors["MaxMarginDA, 10 features"].transform(X_test[some])[:, [6, 9]]
    axes = projection(two, y_test[some], names=("6 against the rest", "9 against the rest"))
    axes.set_title("Digits 0, 6 and 9 in two features of MaxMarginDA (rows not trained on)")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path := OUTPUT / "features.png", dpi=150)
    plt.close(axes.figure)
    print(f"\nTwo of the features: {os.path.relpath(path)}")


def part_classes() -> None:
    """Compare projections to few dimensions, and draw the class means in one of them."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    lines = []
    for d in (2, 3, 4):
        projections = {
            "LDA": LinearDiscriminantAnalysis(n_components=d),
            "PairwiseAccuracyDA": PairwiseAccuracyDA(d),
            "MaxiMinDA": MaxiMinDA(d, random_state=0),
        }
        line = {"digits in": f"{d} dimensions"}
        for name, projected in projections.items():
            model = make_pipeline(projected, NearestCentroid()).fit(X, y)
            line[name] = f"{model.score(X_test, y_test):.4f}"
        lines.append(line)
    print("\nAccuracy of the nearest class mean:")
    print_table(lines, left=("digits in",))
    axes = draw_classes(MaxiMinDA(2, random_state=0).fit(X, y))
    axes.set_title("Class means of the digits in two dimensions, the closest pairs joined")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path := OUTPUT / "classes.png", dpi=150)
    plt.close(axes.figure)
    print(f"\nThe class means: {os.path.relpath(path)}")


PARTS = (part_table, part_boundary, part_features, part_classes)

if __name__ == "__main__":
    for part in PARTS:
        part()
