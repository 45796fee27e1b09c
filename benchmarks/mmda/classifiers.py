"""The classifiers of the two papers on features that an extractor made: accuracy in percent.

Each takes the features of the training and the test rows and returns a small dict with
``accuracy``; the tree adds its size. They are scikit-learn's, set as near to the papers' as these
say. Only networks get standardised features.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import standardised
from benchmarks.harness.fits import mean_distance_gamma, percent

Result = dict[str, Any]
HIDDEN = 10
# A network depends on where it starts. The mean of a few tells more, where rows are few.
SEEDS = 3
# Rows up to which they are few.
SEED_ROWS = 20_000
# C4.5 prunes; scikit-learn asks how much. The candidates are tried on a third of the rows.
ALPHAS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
CACHE_MB = 2000


def support_vectors(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> Result:
    """LIBSVM, Gaussian kernel with γ = 1/β of the features, C = 1."""
    from sklearn.svm import SVC

    machine = SVC(C=1.0, gamma=mean_distance_gamma(train), cache_size=CACHE_MB).fit(train, y)
    return {"accuracy": percent(machine.predict(test), y_test)}


def linear_vectors(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> Result:
    """LIBSVM, linear kernel, C = 1."""
    from sklearn.svm import SVC

    machine = SVC(C=1.0, kernel="linear", cache_size=CACHE_MB).fit(train, y)
    return {"accuracy": percent(machine.predict(test), y_test)}


def nearest(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> Result:
    """The class of the nearest training row."""
    from sklearn.neighbors import KNeighborsClassifier

    machine = KNeighborsClassifier(1, n_jobs=threads).fit(train, y)
    return {"accuracy": percent(machine.predict(test), y_test)}


def nearest_seen(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> Result:
    """The class of the nearest other training row: whether features keep apart what they saw."""
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=1, n_jobs=threads).fit(train).kneighbors()[1]
    return {"accuracy": percent(y[near[:, 0]], y)}


def network(
    train: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    y_test: np.ndarray,
    threads: int,
    hidden: int = HIDDEN,
    seeds: int | None = None,
    **params: Any,
) -> Result:
    """One hidden layer of tanh units on standardised features, trained by backpropagation."""
    from sklearn.neural_network import MLPClassifier

    scaled, scaled_test = standardised(
        np.array(train, dtype=np.float64), np.array(test, dtype=np.float64)
    )
    reached = []
    for seed in range(seeds or (SEEDS if len(y) <= SEED_ROWS else 1)):
        machine = MLPClassifier((hidden,), activation="tanh", random_state=seed, **params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says so when it could go on learning
            machine.fit(scaled, y)
        reached.append(percent(machine.predict(scaled_test), y_test))
    return {"accuracy": statistics.mean(reached), "accuracies": reached}


def wide_network(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> Result:
    """MMDA's: three hidden units an input, 500 steps of gradient descent at a constant rate.

    All rows at once, with momentum; the paper does not give its number of steps.
    """
    return network(
        train,
        y,
        test,
        y_test,
        threads,
        hidden=3 * train.shape[1],
        seeds=1,
        solver="sgd",
        batch_size=len(y),
        learning_rate_init=0.1,
        max_iter=500,
        n_iter_no_change=500,
    )


def pruned(alphas: Sequence[float], accuracies: Sequence[float], n_rows: int) -> float:
    """The strongest pruning whose accuracy is within one standard error of the best."""
    best = max(accuracies) / 100.0
    error = 100.0 * np.sqrt(best * (1.0 - best) / n_rows)
    near = zip(alphas, accuracies, strict=True)
    return max(alpha for alpha, reached in near if reached >= max(accuracies) - error)


def tree(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, threads: int
) -> Result:
    """As C4.5: entropy, two rows a leaf, pruned."""
    from sklearn.tree import DecisionTreeClassifier

    def grown(alpha: float, rows: np.ndarray | slice) -> DecisionTreeClassifier:
        machine = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=2, ccp_alpha=alpha, random_state=0
        )
        return machine.fit(train[rows], y[rows])

    order = np.random.default_rng(0).permutation(len(y))
    kept, held = np.split(order, [2 * len(y) // 3])
    tried = [percent(grown(alpha, kept).predict(train[held]), y[held]) for alpha in ALPHAS]
    alpha = pruned(ALPHAS, tried, len(held))
    machine = grown(alpha, slice(None))
    return {
        "accuracy": percent(machine.predict(test), y_test),
        "leaves": machine.get_n_leaves(),
        "nodes": machine.tree_.node_count,
        "alpha": alpha,
    }


CLASSIFIERS: dict[str, Callable[..., Result]] = {
    "SVM": support_vectors,
    "1-NN": nearest,
    "1-NN, seen": nearest_seen,
    "ANN": network,
    "tree": tree,
    "linear SVM": linear_vectors,
    "wide ANN": wide_network,
}
NOTE = (
    f"SVM is LIBSVM with γ = 1/β of the features and C = 1; ANN one hidden layer of {HIDDEN} tanh "
    f"units (`MLPClassifier`) on standardised features, the mean of {SEEDS} starts up to "
    f"{SEED_ROWS:,} rows; all other classifiers get the features as they are."
)
