"""What is to be solved: rows, labels, weights and C of several problems, stated once.

Row i with label y_i = ±1 and weight s_i; the problems p share rows and kernel values and nothing
else:

    min  ½‖w‖² + ½b² + C_p Σ_i s_i max(0, 1 − y_ip f(x_i))².

One-vs-rest classes, pairs of classes (a problem takes no notice of the others), values of C, and
folds of a cross-validation (nor of the fold that it holds out) are all columns of the same
statement.

Every squared loss here is one of an interval: row i wants f(x_i) in [l_i, h_i], and pays C s r² for
r = max(0, l − f) − max(0, f − h). A label +1 asks for [1, ∞), a label −1 for (−∞, −1], a target t
of regression for [t − ε, t + ε].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from widemargin.arrays import Codes, IndexArray, Matrix, Values, Vector
from widemargin.device import Array, device_of, is_device_array
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.rows import Rows, weighted_moments

# C times a weight must lie between these: beyond, squares and products of dual variables leave the
# range of float64.
_LEAST_PRICE = 1e-140
_MOST_PRICE = 1e140


@dataclass(frozen=True)
class Targets:
    """What the problems of regression want of the rows: to be within ε of a target.

    Attributes
    ----------
    values : ndarray of shape (n, n_outputs)
        Targets.
    output : ndarray of int of shape (n_problems,)
        Which of them each problem has.
    epsilon : ndarray of shape (n_problems,)
        Half the width of the interval in each problem.
    """

    values: Matrix
    output: IndexArray
    epsilon: Vector

    def columns(self, chosen: NDArray[Any]) -> Targets:
        """Return those of some problems."""
        return replace(self, output=self.output[chosen], epsilon=self.epsilon[chosen])

    def subset(self, index: IndexArray) -> Targets:
        """Return those of some rows."""
        return replace(self, values=self.values[index])

    def of(self, problems: IndexArray, index: IndexArray | slice = slice(None)) -> Matrix:
        """Return the targets of rows, a column for each of some problems."""
        return self.values[index][:, self.output[problems]]

    def explained(self, scores: Values, weight: Vector) -> float:
        """Return the share of the variance of the targets, of all outputs, that scores explain."""
        centred = self.values - np.average(self.values, axis=0, weights=weight)
        spread = float((weight @ (centred * centred)).sum())
        left = float((weight @ (self.values - scores) ** 2).sum())
        return 1.0 - left / spread if spread > 0 else 0.0

    def residuals(self, scores: Values, problems: IndexArray, index: IndexArray | slice) -> Matrix:
        """Return how far scores are outside the intervals, signed towards them."""
        distance = self.of(problems, index) - scores
        beyond = np.maximum(0.0, np.abs(distance) - self.epsilon[problems])
        found: Matrix = np.sign(distance) * beyond
        return found


@dataclass(frozen=True)
class Problem:
    """Labelled, weighted rows, and the problems to be solved on them.

    Attributes
    ----------
    rows : Rows
        The rows, each different one once, in the order of a hash: the first ones are a sample.
    kernel : Kernel
        Their kernel.
    code : ndarray of int of shape (n,)
        Class of each row.
    table : ndarray of shape (n_classes, n_problems)
        Sign of each class in each problem, ±1; 0 where a problem leaves the class out.
    weight : ndarray of shape (n,)
        Weight s of each row, positive.
    C : ndarray of shape (n_problems,)
        As in ``LinearSVC(loss="squared_hinge")``.
    number : ndarray of int of shape (n,)
        The rows' numbers in the user's data (columns of a precomputed kernel).
    place : ndarray of int or None
        Which of the rows each row of the user's data is; −1 for rows that are left out.
    fold : ndarray of int of shape (n,)
        Group of each row: rows of one group are counted, or left out, together. Groups are folds,
        classes where problems are pairs of them, or both.
    counts : ndarray of shape (n_groups, n_problems)
        How often a problem counts the rows of a group: 1, 0 where it leaves them out, or more.
    regression : Targets or None
        What rows are to be near, where problems are those of regression: classes then tell
        nothing.
    bias : float
        1, or 0 where machines have none.
    """

    rows: Rows
    kernel: Kernel
    code: Codes
    table: Matrix
    weight: Vector
    C: Vector
    number: IndexArray
    place: IndexArray | None
    fold: NDArray[np.int32]
    counts: Matrix
    regression: Targets | None = None
    bias: float = 1.0

    @classmethod
    def of(
        cls,
        rows: Rows,
        kernel: Kernel,
        code: Codes,
        table: Matrix,
        weight: Vector,
        C: float,
        number: IndexArray | None = None,
        place: IndexArray | None = None,
    ) -> Problem:
        """State problems of one C without folds."""
        n, n_problems = len(code), table.shape[1]
        return cls(
            rows,
            kernel,
            code,
            table,
            weight,
            np.full(n_problems, float(C)),
            np.arange(n) if number is None else number,
            place,
            np.zeros(n, dtype=np.int32),
            np.ones((1, n_problems)),
        )

    def with_targets(self, values: Matrix, epsilon: float, bias: float) -> Problem:
        """Return the problems of regression on these rows, one for each column of targets."""
        n_problems = values.shape[1]
        return replace(
            self,
            code=np.zeros(self.n, dtype=np.intp),
            table=np.ones((1, n_problems)),
            C=np.full(n_problems, self.C[0]),
            counts=np.ones((len(self.counts), n_problems)),
            regression=Targets(values, np.arange(n_problems), np.full(n_problems, epsilon)),
            bias=bias,
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.code)

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return len(self.C)

    @cached_property
    def spread(self) -> float:
        """The total variance of the rows."""
        return float(weighted_moments(self.rows, self.weight).variance.sum())

    @property
    def threads(self) -> int:
        """Threads that work on the rows."""
        return self.rows.threads

    def sign(self, problem: int, index: IndexArray | slice = slice(None)) -> Vector:
        """Return the labels ±1 of rows in one problem."""
        return np.ascontiguousarray(self.table[self.code[index], problem])

    def signs(self, index: IndexArray | slice = slice(None)) -> Matrix:
        """Return the labels ±1 of rows, a column for each problem."""
        return self.table[self.code[index]]

    @property
    def labelling(self) -> Matrix:
        """Columns that are the same for problems that differ in C and folds only."""
        if self.regression is None:
            return self.table
        return np.vstack([self.regression.output, self.regression.epsilon])

    @property
    def feels_all(self) -> bool:
        """Whether every row is felt by every problem that counts it, whatever the machine."""
        return self.regression is not None and not self.regression.epsilon.any()

    def residuals(self, scores: Values, index: IndexArray | slice = slice(None)) -> Matrix:
        """Return r of rows, a column for each problem: what their scores lack, with its sign."""
        if self.regression is not None:
            return self.regression.residuals(scores, np.arange(self.n_problems), index)
        sign = self.signs(index)
        found: Matrix = sign * np.maximum(0.0, 1.0 - sign * scores)
        return found

    def lacking(self, scores: Values, index: IndexArray | slice = slice(None)) -> Matrix:
        """Return how far scores are from where they cost nothing; below zero where they are."""
        if self.regression is None:
            return 1.0 - self.signs(index) * scores
        distance = np.abs(self.regression.of(np.arange(self.n_problems), index) - scores)
        found: Matrix = distance - self.regression.epsilon
        return found

    def ridge(self, problem: int, index: IndexArray | slice = slice(None)) -> Vector:
        """Return 1 / (2 C s) of rows, what the squared loss adds to the diagonal of the dual."""
        ridge: Vector = 1.0 / (2.0 * self.C[problem] * self.weight[index])
        return ridge

    def subset(self, index: IndexArray) -> Problem:
        """Return the problems on some of the rows."""
        return replace(
            self,
            rows=self.rows.subset(index),
            code=self.code[index],
            weight=self.weight[index],
            number=self.number[index],
            place=None,
            fold=self.fold[index],
            regression=None if self.regression is None else self.regression.subset(index),
        )

    def columns(self, chosen: Sequence[int] | NDArray[Any]) -> Problem:
        """Return some of the problems."""
        picked = np.asarray(chosen)
        return replace(
            self,
            table=self.table[:, picked],
            C=self.C[picked],
            counts=self.counts[:, picked],
            regression=None if self.regression is None else self.regression.columns(picked),
        )

    def with_signs(self, table: Matrix) -> Problem:
        """Return the problems of other signs, with the C of the first."""
        n_problems = table.shape[1]
        C, counts = np.full(n_problems, self.C[0]), np.ones((len(self.counts), n_problems))
        if table.all():
            return replace(self, table=table, C=C, counts=counts)
        fold = self.code.astype(np.int32)
        return replace(self, table=table, C=C, fold=fold, counts=(table != 0).astype(float))

    @property
    def partial(self) -> bool:
        """Whether problems leave out classes."""
        return not self.table.all()

    def members(self, problem: int) -> IndexArray:
        """Return the rows of the classes that take part in one problem."""
        return np.flatnonzero(self.table[self.code, problem])

    def alone(self, problem: int) -> Problem:
        """Return one problem, on the rows and of the classes that take part in it."""
        found = self.columns([problem]).subset(self.members(problem))
        classes = np.flatnonzero(self.table[:, problem])
        return replace(
            found,
            code=np.searchsorted(classes, found.code).astype(np.intp),
            table=found.table[classes],
            fold=np.zeros(found.n, dtype=np.int32),
            counts=np.ones((1, 1)),
        )

    def with_C(self, C: float) -> Problem:
        """Return the problems with another C."""
        return replace(self, C=np.full(self.n_problems, float(C)))

    def in_folds(self, folds: Folds, Cs: Vector) -> Problem:
        """Return the problems of all values of C and all folds, classes running fastest."""
        return self.in_kinds(folds.kind[self.number], folds.counts, Cs)

    def in_kinds(self, kind: NDArray[Any], kind_counts: Matrix, Cs: Vector) -> Problem:
        """Return the problems of all values of C and all folds, from the kind of each row.

        Parameters
        ----------
        kind : ndarray of int of shape (n,)
            Kind of each row.
        kind_counts : ndarray of shape (n_kinds, n_folds)
            How often a fold trains on rows of a kind.
        Cs : ndarray
            Values of C.
        """
        n_groups, each = self.counts.shape
        n_folds = kind_counts.shape[1]
        # Of each kind of rows and each group, in each fold and each problem.
        counts = kind_counts[:, None, :, None] * self.counts[None, :, None, :]
        repeated = np.tile(np.arange(each), len(Cs) * n_folds)
        return replace(
            self,
            table=self.table[:, repeated],
            regression=None if self.regression is None else self.regression.columns(repeated),
            C=np.repeat(Cs, n_folds * each),
            fold=(n_groups * kind.astype(np.int64) + self.fold).astype(np.int32),
            counts=np.tile(counts.reshape(-1, n_folds * each), len(Cs)),
        )


# Labels.


def distinct_labels(labels: NDArray[Any], name: str = "y") -> NDArray[Any]:
    """Return the different labels in their order, or raise if they have none."""
    try:
        return np.unique(labels)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"{name} mixes labels of the types {', '.join(kinds)}, which cannot be put in order; "
            f"make them all text or all numbers, for example {name}.astype(str)."
        ) from error


def encoded(y: NDArray[Any], weight: Vector) -> tuple[NDArray[Any], Codes]:
    """Return the classes of rows with a weight, and each row's number among them."""
    classes = distinct_labels(y[weight > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes with positive weight, but has {len(classes)} class; "
            "there is nothing to separate."
        )
    code = np.searchsorted(classes, y)
    # Rows of weight zero may carry other labels; they are left out later.
    return classes, np.minimum(code, len(classes) - 1).astype(np.intp)


def codes_among(known: NDArray[Any], y: NDArray[Any], weight: Vector, complaint: str) -> Codes:
    """Return each row's number among known classes, or complain of a row of weight without one."""
    code = np.minimum(np.searchsorted(known, y), len(known) - 1)
    strange = (known[code] != y) & (weight > 0)
    if strange.any():
        raise ValueError(f"y holds {y[strange][0]!r}, {complaint}")
    return code.astype(np.intp)


def one_vs_rest(n_classes: int) -> Matrix:
    """Return the sign of each class (rows) in each problem (columns): one problem for two."""
    table = 2.0 * np.eye(n_classes) - 1.0
    return table[:, 1:] if n_classes == 2 else table


def one_vs_one(n_classes: int) -> Matrix:
    """Return the sign of each class (rows) in each pair of classes (columns), first ones first.

    Pairs are in the order of ``SVC``: 0 with 1, 0 with 2, ..., 1 with 2, ...; the first of a pair
    is positive.
    """
    first, second = np.triu_indices(n_classes, 1)
    table = np.zeros((n_classes, len(first)))
    table[first, np.arange(len(first))] = 1.0
    table[second, np.arange(len(first))] = -1.0
    return table


def class_scores(values: Any, n_classes: int) -> Any:
    """Return a score for each class from the decision values of all pairs, votes above all.

    A class has a vote from each pair that it wins, and less than half a vote for how clearly it
    wins and loses: that decides between equals.
    """
    table = one_vs_one(n_classes)
    won, lost = np.maximum(table, 0.0).T, np.maximum(-table, 0.0).T
    if is_device_array(values):
        return _class_scores_there(values, table, won, lost)
    votes = (values > 0) @ won + (values < 0) @ lost
    clearly = values @ table.T
    scores: Matrix = votes + clearly / (3.0 * (np.abs(clearly) + 1.0))
    return scores


def _class_scores_there(values: Array, table: Matrix, won: Matrix, lost: Matrix) -> Array:
    device = device_of(values)
    xp = device.xp
    positive, negative = (xp.astype(each, xp.float64) for each in (values > 0, values < 0))
    votes = xp.matmul(positive, device.array(won)) + xp.matmul(negative, device.array(lost))
    clearly = xp.matmul(values, device.array(np.ascontiguousarray(table.T)))
    return votes + clearly / (3.0 * (xp.abs(clearly) + 1.0))


def differences(values: Any, n_classes: int) -> Any:
    """Return the differences of the values of classes, a column for each pair of them."""
    first, second = np.triu_indices(n_classes, 1)
    if not is_device_array(values):
        return values[:, first] - values[:, second]
    device = device_of(values)
    left, right = (device.xp.take(values, device.index(i), axis=1) for i in (first, second))
    return left - right


def class_factors(
    setting: Any, classes: NDArray[Any], y: NDArray[Any], weight: Vector
) -> NDArray[np.float64]:
    """Return the factors that `class_weight` puts on the weights of the classes' rows."""
    if setting is None:
        return np.ones(len(classes))
    kept = weight > 0
    factor: NDArray[np.float64] = compute_class_weight(
        setting, classes=classes, y=y[kept], sample_weight=weight[kept]
    )
    if not (factor > 0).all():
        raise ValueError(
            f"class_weight={setting!r} must be positive for every class; leave rows out with "
            "sample_weight=0 instead."
        )
    return factor


def check_prices(C: float, weight: Vector) -> None:
    """Raise if C times a weight is so large or so small that arithmetic with it breaks down."""
    with np.errstate(over="ignore", under="ignore"):
        least, most = C * float(weight.min()), C * float(weight.max())
    if not (least >= _LEAST_PRICE and most <= _MOST_PRICE):
        raise ValueError(
            f"C={C:g} times sample_weight (from {weight.min():g} to {weight.max():g}, with "
            f"class_weight) must lie between {_LEAST_PRICE:g} and {_MOST_PRICE:g} to be computed "
            "with; rescale C or sample_weight."
        )


def winners(classes: NDArray[Any], scores: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that decision values speak for: their sign, or their argmax."""
    labels: NDArray[Any] = classes[places_of_winners(scores)]
    return labels


def places_of_winners(scores: Any) -> Any:
    """Return the numbers of the classes that decision values speak for."""
    if not is_device_array(scores):
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    xp = device_of(scores).xp
    return xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)


def labels_at(classes: NDArray[Any], place: Any) -> Any:
    """Return labels by their numbers, where the numbers are."""
    if not is_device_array(place):
        return classes[place]
    device = device_of(place)
    return device.xp.take(device.array(classes), place)
