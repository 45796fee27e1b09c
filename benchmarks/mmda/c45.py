"""C4.5 on continuous columns, the classifier of both papers: grown by gain ratio, pruned by errors.

Quinlan, "C4.5: Programs for Machine Learning" (1993), with the penalty on thresholds of "Improved
use of continuous attributes in C4.5" (JAIR 1996). A node is split in two at a threshold. That of a
column has the most information gain, less log₂(thresholds)/rows; of the columns whose gain is at
least the mean, the one with the largest gain ratio splits. A subtree becomes a leaf if, by the
upper confidence limit of the binomial errors, the leaf would not err more. Of C4.5's pruning only
the raising of a branch into its parent's place is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from scipy.stats import beta

# Confidence of the upper limit: C4.5's own.
CONFIDENCE = 0.25
# A subtree must save more than a tenth of an error.
SLACK = 0.1
# Rows of a branch at the least: a tenth of a class's share of the node's, but no more than this.
LARGEST_BRANCH = 25
NO_GAIN = 1e-9


@dataclass
class Tree:
    """A tree as lists, a place for each node; children come after their parent."""

    column: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)

    def add(self, counts: np.ndarray) -> int:
        """A leaf for rows of so many of each class; its place."""
        self.column.append(-1)
        self.threshold.append(np.nan)
        self.left.append(-1)
        self.right.append(-1)
        self.rows.append(int(counts.sum()))
        self.errors.append(int(counts.sum() - counts.max()))
        self.label.append(int(counts.argmax()))
        return len(self.rows) - 1

    def cut(self, at: int) -> None:
        self.column[at] = self.left[at] = self.right[at] = -1

    def inner(self, at: int) -> bool:
        return self.left[at] >= 0

    def size(self) -> tuple[int, int]:
        """Nodes and leaves that can be reached from the root."""
        nodes, leaves, waiting = 0, 0, [0]
        while waiting:
            at = waiting.pop()
            nodes += 1
            if self.inner(at):
                waiting += [self.left[at], self.right[at]]
            else:
                leaves += 1
        return nodes, leaves


@njit(cache=False)
def _n_log_n(count):
    return count * np.log2(count) if count > 0 else 0.0


@njit(cache=False)
def _best_threshold(values, labels, counts, fewest):
    """Information gain of the best threshold, rows below it, and how many thresholds there are.

    ``values`` are sorted, and both sides keep ``fewest`` rows.
    """
    n = len(values)
    below = np.zeros(len(counts))
    above = counts.astype(np.float64)
    whole = _n_log_n(float(n))
    for count in above:
        whole -= _n_log_n(count)
    below_sum, above_sum = 0.0, 0.0
    for count in above:
        above_sum += _n_log_n(count)
    best, place, distinct = -1.0, 0, 1
    for i in range(n - 1):
        label = labels[i]
        below_sum -= _n_log_n(below[label])
        above_sum -= _n_log_n(above[label])
        below[label] += 1.0
        above[label] -= 1.0
        below_sum += _n_log_n(below[label])
        above_sum += _n_log_n(above[label])
        if values[i + 1] <= values[i]:
            continue
        distinct += 1
        m = i + 1
        if m < fewest or n - m < fewest:
            continue
        left = _n_log_n(float(m)) - below_sum + _n_log_n(float(n - m)) - above_sum
        gain = (whole - left) / n
        if gain > best:
            best, place = gain, m
    return best, place, distinct - 1


def _split(
    X: np.ndarray, codes: np.ndarray, rows: np.ndarray, counts: np.ndarray, fewest: int
) -> tuple[int, float] | None:
    """The column and the threshold that split these rows; None if none gains anything."""
    n = len(rows)
    present = np.count_nonzero(counts)
    share = min(LARGEST_BRANCH, 0.1 * n / present)
    least = int(np.ceil(max(fewest, share)))
    gains, ratios, thresholds = [], [], []
    for column in range(X.shape[1]):
        values = X[rows, column]
        order = np.argsort(values, kind="stable")
        values = values[order]
        gain, place, candidates = _best_threshold(values, codes[rows[order]], counts, least)
        if place:
            gain -= np.log2(candidates) / n
        if not place or gain <= NO_GAIN:
            gains.append(-1.0)
            ratios.append(-1.0)
            thresholds.append(np.nan)
            continue
        part = place / n
        spread = -part * np.log2(part) - (1 - part) * np.log2(1 - part)
        gains.append(gain)
        ratios.append(gain / spread)
        # A value that was seen, not one between two.
        thresholds.append(float(values[place - 1]))
    gained = np.array(gains)
    if not (gained > 0).any():
        return None
    fair = gained >= gained[gained > 0].mean() - 1e-3
    best = int(np.argmax(np.where(fair, ratios, -1.0)))
    return best, thresholds[best]


def grown(X: np.ndarray, y: np.ndarray, n_classes: int, fewest: int) -> Tree:
    """The tree before pruning; ``y`` are codes from 0 and ``fewest`` the rows of a branch."""
    tree = Tree()
    tree.add(np.bincount(y, minlength=n_classes))
    waiting = [(0, np.arange(len(y)))]
    while waiting:
        at, rows = waiting.pop()
        counts = np.bincount(y[rows], minlength=n_classes)
        if tree.errors[at] == 0 or len(rows) < 2 * fewest:
            continue
        found = _split(X, y, rows, counts, fewest)
        if found is None:
            continue
        tree.column[at], tree.threshold[at] = found
        low = X[rows, found[0]] <= found[1]
        parts = rows[low], rows[~low]
        places = [tree.add(np.bincount(y[part], minlength=n_classes)) for part in parts]
        tree.left[at], tree.right[at] = places
        waiting += zip(places, parts, strict=True)
    return tree


def expected_errors(rows: np.ndarray, errors: np.ndarray, confidence: float) -> np.ndarray:
    """Rows times the largest probability of an error that leaves so few of them likely."""
    right = np.maximum(rows - errors, 1e-9)
    limit = beta.ppf(1.0 - confidence, errors + 1.0, right)
    return rows * np.where(errors >= rows, 1.0, limit)


def prune(tree: Tree, confidence: float = CONFIDENCE) -> None:
    """Make a leaf of every subtree that would not err less, the lowest first."""
    rows, errors = np.array(tree.rows, dtype=float), np.array(tree.errors, dtype=float)
    as_leaf = expected_errors(rows, errors, confidence)
    expected, seen = as_leaf.copy(), errors.copy()
    for at in range(len(rows) - 1, -1, -1):
        if not tree.inner(at):
            continue
        left, right = tree.left[at], tree.right[at]
        below = expected[left] + expected[right]
        on_rows = seen[left] + seen[right]
        if on_rows >= errors[at] or as_leaf[at] <= below + SLACK:
            tree.cut(at)
        else:
            expected[at], seen[at] = below, on_rows


def predicted(tree: Tree, X: np.ndarray) -> np.ndarray:
    """The code of the class of each row."""
    column, threshold = np.array(tree.column), np.array(tree.threshold)
    left, right = np.array(tree.left), np.array(tree.right)
    at = np.zeros(len(X), dtype=np.intp)
    going = np.arange(len(X))
    while len(going := going[left[at[going]] >= 0]):
        here = at[going]
        low = X[going, column[here]] <= threshold[here]
        at[going] = np.where(low, left[here], right[here])
    return np.array(tree.label)[at]
