"""Folds of a cross-validation: what they make of rows, and which ones a number stands for.

A number of folds stands for rows in random order, the same one every time. Files are often sorted,
by their labels or by what was measured together: folds of rows that follow each other then say
little about rows of all kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.multiclass import type_of_target

from widemargin.arrays import Codes, IndexArray, Matrix

# Folds where a user says None.
_USUAL = 5


def splits_of(cv: Any, rows: Any, y: NDArray[Any], *, classifier: bool) -> Iterable[Any]:
    """Return the splits that `cv` stands for.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As users give it; a number stands for shuffled folds, with all classes in each if there are
        classes.
    rows : array-like
        What splitters are shown.
    y : ndarray
        Labels or targets.
    classifier : bool
        Which of the two.
    """
    if cv is not None and not isinstance(cv, Integral):
        given: Iterable[Any] = check_cv(cv, y, classifier=classifier).split(rows, y)
        return given
    n = _USUAL if cv is None else int(cv)
    labelled = classifier and type_of_target(y) in ("binary", "multiclass")
    kind = StratifiedKFold if labelled else KFold
    found: Iterable[Any] = kind(n, shuffle=True, random_state=0).split(rows, y)
    return found


class Folds:
    """Which rows each fold of a cross-validation trains on and holds out.

    Attributes
    ----------
    n : int
        Number of folds.
    test : list of ndarray of int
        Rows that each fold holds out.
    kind : ndarray of int of shape (n_samples,)
        Rows of one kind are trained on and held out by the same folds.
    counts : ndarray of shape (n_kinds, n)
        How often a fold trains on rows of a kind: 0 or 1, or more with a bootstrap.
    held : ndarray of shape (n_kinds, n)
        How often a fold holds out rows of a kind.
    """

    def __init__(self, splits: Iterable[tuple[Any, Any]], weight: NDArray[Any]) -> None:
        # Indices may also be masks.
        everything = np.arange(len(weight))
        self.test: list[IndexArray] = []
        kind = np.zeros(len(weight), dtype=np.intp)
        trained, held = np.zeros((2, 1, 0), dtype=np.intp)
        # One fold at a time: all of them would be many times as large as the rows' numbers.
        for k, split in enumerate(splits):
            train, test = (everything[part] for part in split)
            if not (weight[train].any() and weight[test].any()):
                raise ValueError(
                    f"Fold {k} of cv has no row of positive sample_weight to train on or to hold "
                    "out; use fewer folds, or leave rows of weight zero out."
                )
            self.test.append(test)
            of_train, of_test = (np.bincount(part, minlength=len(kind)) for part in (train, test))
            many = int(of_test.max()) + 1
            most = (int(of_train.max()) + 1) * many
            found, kind = _renumbered((kind * most) + (of_train * many + of_test))
            before, now = found // most, found % most
            trained = np.column_stack([trained[before], now // many])
            held = np.column_stack([held[before], now % many])
        self.n = len(self.test)
        if not self.n:
            raise ValueError("cv gives no folds; use a number such as cv=5, or a splitter.")
        kinds, place = np.unique(np.hstack([trained, held]), axis=0, return_inverse=True)
        self.kind: Codes = place.ravel()[kind].astype(np.intp)
        self.counts: Matrix = kinds[:, : self.n].astype(np.float64)
        self.held: Matrix = kinds[:, self.n :].astype(np.float64)

    @property
    def small_kind(self) -> NDArray[Any]:
        """The kinds in numbers as small as they can be: they may travel."""
        return self.kind.astype(np.min_scalar_type(len(self.counts)))

    def some(self, chosen: Sequence[int], known: NDArray[np.bool_] | None = None) -> Folds:
        """Return some of the folds; of the rows that they hold out, those that are known."""
        folds = Folds.__new__(Folds)
        folds.n, folds.kind = len(chosen), self.kind
        folds.counts, folds.held = self.counts[:, chosen], self.held[:, chosen]
        folds.test = [self.test[k] for k in chosen]
        if known is not None:
            folds.test = [test[known[test]] for test in folds.test]
        return folds

    @classmethod
    def of_kinds(
        cls, kind: NDArray[Any], counts: Matrix, held: Matrix, judged: NDArray[np.bool_]
    ) -> Folds:
        """Return folds from what they make of some rows; only `judged` ones are held out."""
        folds = cls.__new__(cls)
        folds.n, folds.kind, folds.counts, folds.held = len(counts.T), kind, counts, held
        folds.test = [np.flatnonzero((each > 0)[kind] & judged) for each in held.T]
        return folds


def _renumbered(numbers: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the different numbers in their order, and which of them each is."""
    most = int(numbers.max(initial=0)) + 1
    if most > 4 * len(numbers):
        found, place = np.unique(numbers, return_inverse=True)
        return found, place.ravel()
    found = np.flatnonzero(np.bincount(numbers, minlength=most))
    place = np.zeros(most, dtype=np.intp)
    place[found] = np.arange(len(found))
    return found, place[numbers]
