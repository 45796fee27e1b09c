"""What linear projections share: features in the input space or in a span, and `transform`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from widemargin.discriminant.scatter import DenseColumns, VisitFeatures
from widemargin.estimator import KernelEstimator
from widemargin.kernels import Kernel
from widemargin.labelled import encoded
from widemargin.parameters import check_count
from widemargin.rows import parse_memory
from widemargin.rows.base import BlockRows, IndexArray
from widemargin.span.choice import as_strategy
from widemargin.span.map import SpanMap
from widemargin.threads import single_threaded_blas

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Bytes for matrices of the columns squared that are taken whatever the budget, which is for blocks.
_ALWAYS = 100_000_000


@dataclass(frozen=True)
class LabelledRows:
    """The rows that count.

    Attributes
    ----------
    rows : BlockRows
        Rows of positive weight.
    code : ndarray of int of shape (n,)
        Their classes, as numbers from 0.
    weight : ndarray of shape (n,)
        Their weights.
    index : ndarray of int of shape (n,)
        Where they stand among the rows that were given.
    """

    rows: BlockRows
    code: NDArray[np.intp]
    weight: Vector
    index: IndexArray


class ProjectionEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A transformer that projects rows, or their features in a span, onto a few directions.

    After fit: `components_` (n_components, n_features or span features), `mean_` (what is
    subtracted first) and `span_map_` (None in the input space).
    """

    n_vectors: int
    vectors: Any

    classes_: NDArray[Any]
    components_: Matrix
    mean_: Vector
    span_map_: SpanMap | None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the projection of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projections; float32 if X is, and float64 otherwise.
        """
        check_is_fitted(self)
        rows = self._rows(self._checked(X))
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        visit = self._projections(rows)
        first = 0
        with single_threaded_blas():
            for values in rows.scan(visit, width=visit.width):
                out[first : first + len(values)] = values
                first += len(values)
        return out

    def _projections(self, rows: BlockRows) -> Any:
        """Return the visitor that projects a block, with the `width` of what it needs for a row."""
        return Projected(self._features(), self.mean_, self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    # For the `fit` of those who inherit.

    def _check_parameters(self) -> None:
        """Raise if a parameter of the kernel, of the span or of the memory is not one."""
        check_count("n_vectors", self.n_vectors)
        if isinstance(self.vectors, str):
            as_strategy(self.vectors, 0)
        if self.kernel is None:
            parse_memory(self.memory)
        else:
            self._check_kernel()

    def _labelled(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> LabelledRows:
        """Check rows, labels and weights; set `classes_`; return the rows that count.

        `checks` go to scikit-learn's `validate_data`.
        """
        X, y = self._validated(X, y, **({"ensure_min_samples": 2} | checks))
        self._check_square(X)
        if self._precomputed():
            self._check_symmetric(X)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_, code = encoded(y, weight)
        return self._counted(X, code, weight)

    def _counted(self, X: Any, code: NDArray[np.intp], weight: Vector) -> LabelledRows:
        """Return the rows of positive weight."""
        rows = self._rows(X)
        index = np.flatnonzero(weight > 0)
        if len(index) < len(weight):
            rows = rows.subset(index)
        return LabelledRows(rows, code[index], weight[index], index)

    def _fit_span(self, data: LabelledRows) -> VisitFeatures:
        """Fit the map into the span, if there is a kernel, and return the features of a block."""
        self.span_map_ = None
        if self.kernel is None:
            self._check_columns(data.rows.shape[1])
        else:
            span_map = SpanMap(
                self.n_vectors,
                vectors=self.vectors,
                kernel=self.kernel,
                gamma=self.gamma,
                degree=self.degree,
                coef0=self.coef0,
                kernel_params=self.kernel_params,
                memory=self.memory,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
            )
            # With weight zero, rows that do not count keep their place: a kernel matrix is square.
            X = data.rows.X
            weight, code = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=np.intp)
            weight[data.index], code[data.index] = data.weight, data.code
            self.span_map_ = span_map.fit(X, code, weight)
        return self._features()

    def _check_columns(self, d: int) -> None:
        """Raise if matrices of the columns squared do not fit into memory."""
        needed = 3 * 8 * d * d
        if needed > max(parse_memory(self.memory), _ALWAYS):
            raise ValueError(
                f"X has {d:,} columns, and matrices of that size squared take {needed / 1e6:,.0f} "
                f"MB; raise memory={self.memory!r}, or use kernel='linear', which works in the "
                "span of n_vectors vectors."
            )

    def _features(self) -> VisitFeatures:
        """Return what turns a block of rows into features."""
        if self.span_map_ is None:
            return DenseColumns(int(self.n_features_in_))
        span_map = self.span_map_
        return SpanFeatures(
            self._kernel(span_map.gamma_), span_map.components_, span_map.normalization_
        )

    def _keep(self, components: Matrix, mean: Vector) -> None:
        """Set what `transform` needs; each direction with its largest number positive."""
        self.components_ = signed(components)
        self.mean_ = mean


def signed(components: Matrix) -> Matrix:
    """Return the rows, each with the sign that makes its largest number positive."""
    if not components.size:
        return components
    largest = np.argmax(np.abs(components), axis=1)
    sign = np.sign(components[np.arange(len(components)), largest])
    return np.ascontiguousarray(components * np.where(sign == 0, 1.0, sign)[:, None])


@dataclass(frozen=True)
class SpanFeatures:
    """Features of rows in the span of a few vectors: φ_z(x) = T k(Z, x)."""

    kernel: Kernel
    vectors: NDArray[Any]
    normalization: Matrix

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self.normalization)

    def __call__(self, block: Any) -> Matrix:
        """Return the features of the rows of a block."""
        # In float64: the map may enlarge the rounding of kernel values.
        values = self.kernel.block(block.astype(np.float64), self.vectors.astype(np.float64))
        features: Matrix = values @ self.normalization.T
        return features


@dataclass(frozen=True)
class Projected:
    """Visitor: projections of the features of a block of rows."""

    features: VisitFeatures
    mean: Vector
    components: Matrix

    @property
    def width(self) -> int:
        """How many numbers a row needs."""
        return self.features.width

    def __call__(self, block: Any, where: slice) -> Matrix:
        """Return the projections of the rows of a block."""
        projected: Matrix
        if sparse.issparse(block) and isinstance(self.features, DenseColumns):
            # Sparse rows lie near the origin by nature, and stay sparse.
            projected = block.astype(np.float64) @ self.components.T - self.components @ self.mean
        else:
            projected = (self.features(block) - self.mean) @ self.components.T
        return projected
