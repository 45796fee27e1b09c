"""Data frames with categories and missing values, as rows of numbers.

* Numbers are put on one scale (``rows.robust_map``). Missing ones become the median, and a column
  of its own tells where they were, if there were any in training.
* A category becomes a column that is √½ for its rows and 0 for others, so that rows of two
  categories are at distance 1: what a number is away at one standard deviation. Missing values are
  a category of their own. One that training has not seen is 0 in all columns.

All these columns are features like others: a metric learns how much each of them counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.places.partitions import is_collection
from widemargin.rows import RowMap, as_rows, robust_map

# What a column of a category has for its rows.
_WEIGHT = np.sqrt(0.5)
# Beginnings of the names of types whose values are categories.
_CATEGORIES = ("category", "object", "str", "String", "Utf8", "Categorical", "Enum", "string")


def is_mixed_frame(X: Any) -> bool:
    """Return whether X is a data frame with categories or missing values, of pandas or Polars."""
    if is_collection(X) or not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return False
    return any(_is_category(X[name]) or bool(_missing(X[name]).any()) for name in X.columns)


class FrameColumns(TransformerMixin, BaseEstimator):
    """The transformer of a data frame's columns into numbers.

    Attributes
    ----------
    columns_ : list of str
        Names of the frame's columns.
    categories_ : dict
        For each column of categories its values as text, in order.
    of_missing_ : dict
        For each column whether values were missing.
    medians_, factors_ : dict
        For each column of numbers what is subtracted, and what it is then multiplied with.
    bend_ : float
        Where values far away are bent to.

    Examples
    --------
    >>> import pandas
    >>> from widemargin.base.frame_columns import FrameColumns
    >>> frame = pandas.DataFrame({"age": [20.0, None, 40.0], "city": ["Rome", "Oslo", None]})
    >>> columns = FrameColumns().fit(frame)
    >>> columns.get_feature_names_out().tolist()
    ['age', 'age missing', 'city=Oslo', 'city=Rome', 'city missing']
    >>> columns.transform(frame).shape
    (3, 5)
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FrameColumns:
        """Take note of categories, medians and scales.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_columns)
            Of pandas or Polars.
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k counts as k copies.

        Returns
        -------
        self
            The fitted transformer.
        """
        self.columns_ = [str(name) for name in X.columns]
        if len(set(self.columns_)) < len(self.columns_):
            raise ValueError("X has several columns of the same name; give each its own.")
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
        counted = weight > 0
        self.categories_: dict[str, list[str]] = {}
        self.of_missing_: dict[str, bool] = {}
        self.medians_: dict[str, float] = {}
        self.factors_: dict[str, float] = {}
        self.bend_ = float("inf")
        for name in X.columns:
            column = X[name]
            missing = _missing(column)
            known = counted & ~missing
            self.of_missing_[str(name)] = bool(missing[counted].any())
            if _is_category(column):
                self.categories_[str(name)] = sorted(set(_texts(column)[known].tolist()))
            else:
                self._note_numbers(str(name), _numbers(column, name)[known], weight[known])
        self.n_features_in_ = len(self.columns_)
        return self

    def _note_numbers(self, name: str, values: Vector, weight: Vector) -> None:
        self.medians_[name] = self.factors_[name] = 0.0
        if len(values):
            rows = as_rows(values[:, None], memory=10**9, threads=1)
            found = robust_map(rows, weight)
            self.medians_[name], self.factors_[name] = (
                float(found.center[0]),
                float(found.factor[0]),
            )
            self.bend_ = float(found.bend)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the rows of a data frame as numbers.

        Parameters
        ----------
        X : data frame
            With the columns of the fit, in any order.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Numbers.
        """
        check_is_fitted(self)
        here = [str(name) for name in getattr(X, "columns", ())]
        absent = [name for name in self.columns_ if name not in here]
        if absent:
            raise ValueError(
                f"X lacks the columns {absent}; give a data frame with all columns of the fit."
            )
        names = dict(zip(here, getattr(X, "columns", ()), strict=True))
        parts = [self._columns_of(name, X[names[name]]) for name in self.columns_]
        return np.column_stack([each for part in parts for each in part])

    def _columns_of(self, name: str, column: Any) -> list[NDArray[np.float64]]:
        missing = _missing(column)
        found: list[NDArray[np.float64]] = []
        if name in self.categories_:
            texts = _texts(column)
            found = [_WEIGHT * ((texts == each) & ~missing) for each in self.categories_[name]]
        else:
            numbers = np.where(missing, self.medians_[name], _numbers(column, name))
            center, factor = np.array([self.medians_[name]]), np.array([self.factors_[name]])
            found = [RowMap(center, factor, self.bend_)(numbers[:, None])[:, 0]]
        if self.of_missing_[name]:
            found.append(_WEIGHT * missing)
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of numbers.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        ndarray of str
            Names.
        """
        names: list[str] = []
        for name in self.columns_:
            values = self.categories_.get(name)
            names += [name] if values is None else [f"{name}={value}" for value in values]
            names += [f"{name} missing"] if self.of_missing_[name] else []
        return np.array(names, dtype=object)


def _is_category(column: Any) -> bool:
    return str(column.dtype).startswith(_CATEGORIES)


def _missing(column: Any) -> NDArray[np.bool_]:
    """Return where a column has no value."""
    if hasattr(column, "isna"):
        return np.asarray(column.isna(), dtype=bool)
    # Polars tells nulls from numbers that are none.
    values = column.to_list()
    return np.array([value is None or value != value for value in values], dtype=bool)


def _texts(column: Any) -> NDArray[Any]:
    return np.array([str(value) for value in column.to_list()], dtype=object)


def _numbers(column: Any, name: Any) -> Vector:
    """Return a column of numbers, NaN where they are missing, or raise."""
    values = column.to_list()
    try:
        missing = _missing(column)
        found = [np.nan if none else float(v) for v, none in zip(values, missing, strict=True)]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the column {name!r} of X has values of type {column.dtype}, which are neither "
            "numbers nor categories; turn them into one of these."
        ) from error
    numbers = np.array(found)
    if np.isinf(numbers).any():
        raise ValueError(f"the column {name!r} of X has infinite values; give finite numbers.")
    return numbers


def numbers_of_frame(X: Any, sample_weight: Any) -> tuple[FrameColumns | None, Any]:
    """Return what makes numbers of a frame with other columns, and its rows; None for other X."""
    if not is_mixed_frame(X):
        return None, X
    prepare = FrameColumns()
    return prepare, prepare.fit(X, sample_weight=sample_weight).transform(X)
