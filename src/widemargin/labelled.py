"""What estimators that learn from classes share: labels and weights, and the rows as points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from widemargin.balls import Points
from widemargin.estimator import KernelEstimator
from widemargin.kernels.bandwidth import resolve_gamma
from widemargin.parameters import check_count, check_not_negative, check_number, check_positive
from widemargin.rows import as_rows, distinct_rows, parse_memory, weighted_moments


class LabelledEstimator(KernelEstimator):
    """An estimator with a kernel that learns from rows with classes and weights."""

    C: float
    tol: float
    max_iter: int
    max_time: float | None
    class_weight: Any
    verbose: int

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        self._check_kernel()
        check_not_negative("tol", self.tol)
        check_count("max_iter", self.max_iter)
        if self.max_time is not None:
            check_positive("max_time", self.max_time)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose)

    def _points(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        threads: int,
        apart: NDArray[np.intp] | None = None,
    ) -> Points:
        """State the problem: distinct rows, their classes, weights and kernel.

        Equal rows are merged unless their numbers in `apart` differ.
        """
        self._check_square(X)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        code = self._encode(y, weight)
        if self._precomputed():
            self._check_symmetric(X)
        class_weight = self._class_weight(y, weight)
        rows = as_rows(
            X,
            memory=parse_memory(self.memory),
            threads=threads,
            precomputed=self._precomputed(),
        )
        key = code if apart is None else code + len(self.classes_) * apart
        distinct = distinct_rows(rows, key, weight)
        code = code[distinct.index]
        self.gamma_ = 1.0
        if not self._precomputed():
            moments = weighted_moments(distinct.rows, distinct.weight)
            self.gamma_ = resolve_gamma(self.gamma, moments.mean, moments.variance)
        return Points(
            distinct.rows,
            self._kernel(self.gamma_),
            code,
            one_vs_rest(len(self.classes_)),
            distinct.weight * class_weight[code],
            self.C,
            distinct.index,
            place=distinct.place,
        )

    def _encode(self, y: NDArray[Any], weight: NDArray[np.float64]) -> NDArray[np.intp]:
        """Set the classes and return each row's number among them."""
        self.classes_, code = encoded(y, weight)
        return code

    def _class_weight(self, y: NDArray[Any], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        kept = weight > 0
        factor: NDArray[np.float64] = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y[kept], sample_weight=weight[kept]
        )
        if not (factor > 0).all():
            raise ValueError(
                f"class_weight={self.class_weight!r} must be positive for every class; leave rows "
                "out with sample_weight=0 instead."
            )
        return factor


def encoded(y: NDArray[Any], weight: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes of rows with a weight, and each row's number among them."""
    classes = np.unique(y[weight > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes with positive weight, but has {len(classes)} class; "
            "there is nothing to separate."
        )
    code = np.searchsorted(classes, y)
    # Rows of weight zero may carry other labels; they are left out later.
    return classes, np.minimum(code, len(classes) - 1).astype(np.intp)


def one_vs_rest(n_classes: int) -> NDArray[np.float64]:
    """Return the sign of each class (rows) in each problem (columns): one problem for two."""
    table = 2.0 * np.eye(n_classes) - 1.0
    return table[:, 1:] if n_classes == 2 else table
