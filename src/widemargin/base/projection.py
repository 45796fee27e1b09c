"""The base of the projections: features in the input space or in a span, and `transform`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets

from widemargin.arrays import Matrix, Vector
from widemargin.base import parameters as check
from widemargin.base.estimator import KernelEstimator
from widemargin.base.parameters import keyword, parameters
from widemargin.base.span_map import SpanMap
from widemargin.device import Array, Device, blocks_on_device, check_on_device
from widemargin.expansion import Expansion
from widemargin.loop import Resources
from widemargin.places.loading import Loaded
from widemargin.places.partitions import is_collection
from widemargin.problem import encoded
from widemargin.rows import Rows, as_rows
from widemargin.scatter.class_scatter import (
    ClassScatter,
    DenseColumns,
    LabelledRows,
    VisitFeatures,
)
from widemargin.scatter.stream import Stream
from widemargin.scatter.whitening import SAME_MEAN
from widemargin.threads import single_threaded_blas

# Bytes for matrices of the columns squared that are taken whatever the budget, which is for blocks.
_ALWAYS = 100_000_000
# Bytes for blocks of rows on a worker.
_BLOCKS = 200_000_000
# What rounding may leave of a kernel value, relative to it.
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)


@parameters
class ProjectionEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A transformer that projects rows, or their features in a span, onto a few directions.

    After fit: `components_` (n_components, n_features or span features), `mean_` (what is
    subtracted first) and `span_map_` (None in the input space).
    """

    kernel: Any = keyword(None)
    gamma: Any = keyword("scale", check.gamma)
    n_vectors: int = keyword(500, check.count)
    vectors: Any = keyword("kmeans", check.landmarks)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the projection of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projections; float32 if X is, and float64 otherwise. A lazy Dask array if X is a Dask
            collection.
        """
        if is_collection(X):
            lazy: NDArray[Any] = self._lazily(type(self)._transformed, X)
            return lazy
        return self._transformed(X)

    def _transformed(self, X: Any) -> NDArray[Any]:
        features: NDArray[Any] = self._features_of(X, self._projected, self._projected_there)
        return features

    def _projected(self, rows: Rows) -> NDArray[Any]:
        """Return the projections of rows."""
        visit = Projected(self._features(), self.mean_, self.components_)
        return rows.gather(visit, width=visit.width, dtype=rows.dtype)

    def _projected_there(self, rows: Rows) -> Array:
        """Return the projections of rows on a device."""
        found = projected_there(rows, self._features(), self.mean_, self.components_)
        return rows.device.rounded(found, rows.dtype)

    def _check_on_device(self, device: Device) -> None:
        if not hasattr(self, "device"):
            super()._check_on_device(device)
        if self.kernel is not None:
            check_on_device(self._kernel(1.0), device)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    # For the `fit` of those who inherit.

    def _rows_with_classes(
        self, X: Any, y: Any, sample_weight: Any, resources: Resources
    ) -> LabelledRows:
        """Check rows, labels and weights; set `classes_`; return the rows that count."""
        data = self._labelled(X, y, sample_weight)
        self.classes_: NDArray[Any] = data.classes
        return self._counted(data.X, data.code, data.weight, resources)

    def _counted(
        self, X: Any, code: NDArray[np.intp], weight: Vector, resources: Resources
    ) -> LabelledRows:
        """Return the rows of positive weight."""
        rows = self._rows(X, resources)
        index = np.flatnonzero(weight > 0)
        if len(index) < len(weight):
            rows = rows.subset(index)
        return LabelledRows(rows, code[index], weight[index], index)

    def _fit_span(self, data: LabelledRows) -> VisitFeatures:
        """Fit the map into the span, if there is a kernel, and return the features of a block."""
        self.span_map_: SpanMap | None = None
        if self.kernel is None:
            self._check_columns(data.rows)
        else:
            # With weight zero, rows that do not count keep their place: a kernel matrix is square.
            X = data.rows.X
            weight, code = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=np.intp)
            weight[data.index], code[data.index] = data.weight, data.code
            self.span_map_ = self._new_span_map().fit(X, code, weight)
        return self._features()

    def _new_span_map(self) -> SpanMap:
        """Return the map into the span before it is fitted."""
        shared = SpanMap().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        return SpanMap(**{name: getattr(self, name) for name in shared - {"tol"}})

    def _check_columns(self, rows: Rows) -> None:
        """Raise if matrices of the columns squared do not fit into memory."""
        d = rows.shape[1]
        needed = 3 * 8 * d * d
        if needed > max(rows.memory, _ALWAYS):
            raise ValueError(
                f"X has {d:,} columns, and matrices of that size squared take {needed / 1e6:,.0f} "
                f"MB; raise memory={self.memory!r}, or use kernel='linear', which works in the "
                "span of n_vectors vectors."
            )

    def _features(self) -> VisitFeatures:
        """Return what turns a block of rows into features."""
        if self.span_map_ is None:
            return DenseColumns(int(self.n_features_in_))
        return self.span_map_.expansion()

    def _scatters(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        resources: Resources,
        capacity: Callable[[int, int], int],
        factors: Callable[[Vector], Vector] = np.ones_like,
    ) -> Stream:
        """Return the scatter and a sample of all rows of a Dask collection; set `classes_`.

        Parameters
        ----------
        X, y, sample_weight : Dask collection
            Rows, labels and weights.
        resources : Resources
            Memory and threads.
        capacity : callable
            Returns how many rows the sample has at the most, for a number of columns and memory.
        factors : callable
            Returns the factors on the weights of the classes' rows, given their shares.
        """
        opened = self._opened(X, y, sample_weight, resources)
        every, d = opened.every, opened.n_features
        classes, _ = encoded(every.classes, every.weights)
        check_classification_targets(classes)
        span_map = None
        if self.kernel is None:
            nothing = np.empty((0, d))
            self._check_columns(
                as_rows(nothing, memory=resources.memory, threads=resources.threads)
            )
        else:
            span_map = self._new_span_map().fit_opened(opened)
        # Not before all rows were found to be good: nothing shall be half fitted.
        self._note_columns(X, reset=True)
        self.classes_, self.span_map_ = classes, span_map
        features = self._features()
        most = capacity(features.width, resources.memory)
        factor = factors(every.weights / every.weights.sum())
        threads = opened.source.threads
        streams = opened.source.ask("scatter", stream_of, classes, factor, most, features, threads)
        for other in streams[1:]:
            streams[0].merge(other)
        found: Stream = streams[0]
        return found

    def _keep(self, components: Matrix, mean: Vector) -> None:
        """Set what `transform` needs; each direction with its largest number positive."""
        self.components_ = signed(components)
        self.mean_ = mean


def stream_of(
    loaded: Loaded,
    classes: NDArray[Any],
    factor: Vector,
    capacity: int,
    features: VisitFeatures,
    threads: int,
) -> Stream:
    """Return the scatter and a sample of the features of some rows of a Dask collection."""
    counted = loaded.weight > 0
    X, y, weight = loaded.X[counted], loaded.y[counted], loaded.weight[counted]
    stream = Stream.empty(len(classes), features.width, capacity)
    rows = as_rows(X, memory=_BLOCKS, threads=threads)
    code = np.searchsorted(classes, y)
    data = LabelledRows(rows, code, weight * factor[code], np.arange(len(weight)))
    with single_threaded_blas():
        stream.add(data, features)
    return stream


def check_apart(scatter: ClassScatter, features: VisitFeatures) -> None:
    """Raise if features of a kernel differ by no more than their rounding, as those of equal rows.

    Parameters
    ----------
    scatter : ClassScatter
        Of the features.
    features : callable
        What they were made by; columns of the rows themselves have no rounding.
    """
    if not isinstance(features, Expansion):
        return
    # The origin is the features of a row: back to the kernel values that made them.
    values = solve_triangular(features.coef.T, scatter.origin, lower=True)
    rounding = _ROUNDING * (np.abs(values) @ np.abs(features.coef))
    if (scatter.spread() <= rounding).all():
        raise ValueError(SAME_MEAN)


def signed(components: Matrix) -> Matrix:
    """Return the rows, each with the sign that makes its largest number positive."""
    if not components.size:
        return components
    largest = np.argmax(np.abs(components), axis=1)
    sign = np.sign(components[np.arange(len(components)), largest])
    return np.ascontiguousarray(components * np.where(sign == 0, 1.0, sign)[:, None])


def projected_there(rows: Rows, features: VisitFeatures, mean: Vector, components: Matrix) -> Array:
    """Return the projections of the features of rows on a device, in float64."""
    device, visit = rows.device, features.there(rows.device)
    about, directions = device.array(mean), device.array(np.ascontiguousarray(components.T))
    total = device.empty((rows.shape[0], len(components)), np.float64)
    for block, where in blocks_on_device(rows, 3 * features.width + rows.shape[1]):
        total[where, :] = device.xp.matmul(visit(block) - about, directions)
    return total


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
