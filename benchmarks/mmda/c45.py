"""C4.5 on continuous columns, the classifier of both papers: grown by gain ratio, pruned by errors.

Quinlan, "C4.5: Programs for Machine Learning" (1993), with the penalty on thresholds of "Improved
use of continuous attributes in C4.5" (JAIR 1996). A node is split in two at a threshold. That of a
column has the most information gain, less log₂(thresholds)/rows; of the columns whose gain is at
least the mean, the one with the largest gain ratio splits. Errors are expected by the upper
confidence limit of the binomial; a subtree becomes a leaf, or its larger branch takes its place, if
that would not err more.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

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
class Node:
    """A leaf, or a column and a threshold with what lies up to it and what beyond."""

    label: int
    column: int = -1
    threshold: float = np.nan
    low: Node | None = None
    high: Node | None = None

    def branches(self) -> tuple[Node, Node] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def nodes(self) -> Iterator[Node]:
        yield self
        for branch in self.branches() or ():
            yield from branch.nodes()

    def size(self) -> tuple[int, int]:
        """All nodes, and the leaves among them."""
        every = list(self.nodes())
        return len(every), sum(node.low is None for node in every)

    def become(self, other: Node) -> None:
        self.label, self.column, self.threshold = other.label, other.column, other.threshold
        self.low, self.high = other.low, other.high

    def sides(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of either branch."""
        below = X[rows, self.column] <= self.threshold
        return rows[below], rows[~below]


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


def grown(X: np.ndarray, y: np.ndarray, n_classes: int, fewest: int) -> Node:
    """The tree before pruning; ``y`` are codes from 0 and ``fewest`` the rows of a branch."""
    root = Node(0)
    waiting = [(root, np.arange(len(y)))]
    while waiting:
        node, rows = waiting.pop()
        counts = np.bincount(y[rows], minlength=n_classes)
        node.label = int(counts.argmax())
        if counts.max() == len(rows) or len(rows) < 2 * fewest:
            continue
        found = _split(X, y, rows, counts, fewest)
        if found is None:
            continue
        node.column, node.threshold = found
        node.low, node.high = Node(0), Node(0)
        waiting += zip((node.low, node.high), node.sides(X, rows), strict=True)
    return root


# ---------------------------------------------------------------- pruning


@functools.lru_cache(maxsize=100_000)
def expected_errors(rows: int, errors: int, confidence: float) -> float:
    """Rows times the largest probability of an error that leaves so few of them likely."""
    if errors >= rows:
        return float(rows)
    return float(rows * beta.ppf(1.0 - confidence, errors + 1.0, rows - errors))


@dataclass(frozen=True)
class Pruning:
    """The rows that a tree was grown from, and the confidence."""

    X: np.ndarray
    y: np.ndarray
    confidence: float = CONFIDENCE

    def as_leaf(self, rows: np.ndarray) -> tuple[int, int, float]:
        """The class of most of these rows, how many are of others, and the errors expected."""
        if not len(rows):
            return 0, 0, 0.0
        counts = np.bincount(self.y[rows])
        errors = int(len(rows) - counts.max())
        return int(counts.argmax()), errors, expected_errors(len(rows), errors, self.confidence)

    def expected(self, node: Node, rows: np.ndarray) -> tuple[int, float]:
        """Errors on these rows if they went down here, seen and expected."""
        branches = node.branches()
        if branches is None or not len(rows):
            return self.as_leaf(rows)[1:]
        sides = zip(branches, node.sides(self.X, rows), strict=True)
        found = [self.expected(*side) for side in sides]
        return sum(seen for seen, _ in found), sum(more for _, more in found)

    def prune(self, node: Node, rows: np.ndarray) -> None:
        """The lowest subtrees first."""
        label, errors, leaf = self.as_leaf(rows)
        if len(rows):
            node.label = label
        branches = node.branches()
        if branches is None:
            return
        sides = node.sides(self.X, rows)
        for branch, part in zip(branches, sides, strict=True):
            self.prune(branch, part)
        seen, below = self.expected(node, rows)
        larger = branches[int(len(sides[1]) > len(sides[0]))]
        raised = self.expected(larger, rows)[1]
        if seen >= errors or (leaf <= below + SLACK and leaf <= raised + SLACK):
            node.become(Node(node.label))
        elif raised <= below + SLACK:
            node.become(larger)
            self.prune(node, rows)


def prune(root: Node, X: np.ndarray, y: np.ndarray, confidence: float = CONFIDENCE) -> None:
    """Make the tree smaller where that would not err more; ``X`` and ``y`` are what it grew on."""
    Pruning(X, y, confidence).prune(root, np.arange(len(y)))


def predicted(root: Node, X: np.ndarray) -> np.ndarray:
    """The code of the class of each row."""
    found = np.empty(len(X), dtype=np.intp)
    waiting = [(root, np.arange(len(X)))]
    while waiting:
        node, rows = waiting.pop()
        branches = node.branches()
        if branches is None:
            found[rows] = node.label
        else:
            waiting += zip(branches, node.sides(X, rows), strict=True)
    return found
