"""The base of the one-class machines: scale, width and offset without labels, and the answers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.base import parameters as check
from widemargin.base.estimator import (
    CallbackSupportMixin,
    KernelEstimator,
    as_stored,
    dense,
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.unlabelled import ColumnScale, median_distance_gamma, offset_of_share
from widemargin.expansion import Expansion, Fitted
from widemargin.loop import Resources
from widemargin.rows import Distinct, Rows, distinct_rows

# Scores that differ by less than this share of the offset are equal but for their rounding. Rows on
# the border are inside.
_ROUNDING = 1e-8

_gamma = check.word_or(("median_distance", "scale", "auto", "mean_distance"), check.positive)


def share_of_rows(name: str, value: Any) -> None:
    """Raise unless a value is a share of the rows."""
    if not 0.0 < check.number(name, value) <= 1.0:
        raise ValueError(f"{name}={value!r} must be a share of the rows, above 0 and at most 1.")


def _half(name: str, value: Any) -> None:
    if not 0.0 < check.number(name, value) <= 0.5:
        raise ValueError(f"{name}={value!r} must be 'auto', or a share above 0 and at most 0.5.")


@parameters
class KernelDetector(CallbackSupportMixin, OutlierMixin, KernelEstimator):
    """A one-class machine as an outlier detector: a subclass says how the machine is found."""

    nu: float = positional(0.5, share_of_rows)
    gamma: Any = keyword("median_distance", _gamma)
    scale: str = keyword("auto", check.choice("auto", "robust", "standard", "none"))
    contamination: Any = keyword("auto", check.word_or(("auto",), _half))
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    @abstractmethod
    def _fit(self, rows: Rows, distinct: Distinct, resources: Resources) -> Fitted:
        """Return the machine of the scaled rows, which are those of `distinct`."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.scale in ("auto", "none")
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDetector:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : ignored
            There are no labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted detector.
        """
        with self._fitting(X) as resources:
            X = self._validated(X, ensure_min_samples=2)
            weight = self._weights(X, sample_weight)
            if not weight.any():
                raise ValueError("sample_weight is zero for every row; give some a weight.")
            code = np.zeros(len(weight), dtype=np.intp)
            distinct = distinct_rows(self._rows(X, resources), code, weight)
            rows = self._scaled(distinct, resources)
            self.gamma_ = self._width(distinct, rows)
            with reporting(self, len(weight), X) as report:
                fitted = self._fit(rows, distinct, replace(resources, report=report))
            self._keep(rows, distinct, fitted)
        self._warn(fitted)
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return how normal rows are: large inside, small outside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            wᵀφ(x); that of the border where only rounding is between them.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            scores = self._scores(self._rows(self._to_scale(X), resources))
        on_border = np.abs(scores - self.offset_) <= 2.0 * _ROUNDING * abs(self.offset_)
        scores[on_border] = self.offset_
        return scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the signed distance from the border: negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            `score_samples` minus `offset_`.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return 1 for rows inside and −1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The sign of `decision_function`.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    # Columns and widths.

    def _scaled(self, distinct: Distinct, resources: Resources) -> Rows:
        """Return the different rows, their columns scaled."""
        self.center_: Vector | None = None
        self.spread_: Vector | None = None
        self.clip_: float | None = None
        unscaled = distinct.rows.sparse or self._precomputed()
        if self.scale == "none" or (unscaled and self.scale == "auto"):
            return distinct.rows
        if unscaled:
            raise ValueError(
                f"scale={self.scale!r} would make sparse rows or a kernel matrix another; use "
                "scale='none', or scale them first, for example by MaxAbsScaler."
            )
        X = distinct.rows.take(np.arange(len(distinct.weight)))
        kind = "robust" if self.scale == "auto" else self.scale
        found = ColumnScale.of(kind, X, distinct.weight)
        self.center_, self.spread_, self.clip_ = found.center, found.spread, found.most
        return self._rows(found(X), resources)

    def _to_scale(self, X: Any) -> Any:
        if self.center_ is None or self.spread_ is None or self.clip_ is None:
            return X
        X = X.toarray() if sparse.issparse(X) else X
        return ColumnScale(self.center_, self.spread_, self.clip_)(X)

    def _width(self, distinct: Distinct, rows: Rows) -> float:
        if self._precomputed() or self.gamma != "median_distance":
            scaled = replace(distinct, rows=rows)
            return self._resolved_gamma(self.gamma, scaled)
        few = rows.take(np.arange(min(rows.shape[0], 1000)))
        return median_distance_gamma(few, distinct.weight)

    # The decision function.

    def _keep(self, rows: Rows, distinct: Distinct, fitted: Fitted) -> None:
        """Set the attributes of the decision function."""
        self.support_ = None if fitted.index is None else distinct.index[fitted.index]
        self.support_vectors_ = as_stored(fitted.vectors, rows)
        self.dual_coef_ = np.ascontiguousarray(fitted.coef.T)
        self.intercept_ = fitted.intercept
        self.certificate_, self.n_iter_ = fitted.certificate, fitted.certificate.n_iter
        # Where there are cells, all have the same.
        offset = -float(fitted.intercept.flat[0])
        self.offset_ = offset - _ROUNDING * abs(offset)
        if self.contamination != "auto":
            scores, share = self._scores(rows), float(self.contamination)
            self.offset_ = offset_of_share(scores, distinct.weight, share, _ROUNDING)

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        coef = np.ascontiguousarray(self.dual_coef_.T)
        kernel, vectors = self._kernel(self.gamma_), dense(self.support_vectors_)
        scores: NDArray[np.float64] = Expansion(kernel, vectors, coef).values(rows)[:, 0]
        return scores

    def _warn(self, fitted: Fitted) -> None:
        if not fitted.stop.converged:
            reached = fitted.certificate
            warn_user(
                f"{type(self).__name__} stopped before its rule was met ({reached.stopped}), with "
                f"a relative gap of {reached.gap:.2e}. The model is valid; for a better one raise "
                "the limit, or loosen tol to accept it."
            )
