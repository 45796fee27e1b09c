"""What the columns of a table are, and how they become numbers.

Numbers: missing values become the median, with a column that says where that was; then each column
is centred and divided by its standard deviation. Texts: one column of zeros and ones a category, a
missing value being a category of its own. All of it is a `ColumnTransformer` in front of the
machine, so that new rows are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.table_files import Table

__all__ = ["Kinds", "as_kinds", "find_kinds", "numeric_column", "preparation"]

# A column of texts of which this share are numbers was meant to be one of numbers.
_MOSTLY = 0.8
# Categories of a column at the most; rarer ones share one.
_CATEGORIES = 100
# Texts that nearly all differ, and are many, name the rows: nothing can be learned from them.
_NAMING_SHARE = 0.9
_NAMING_LEAST = 50


@dataclass(frozen=True)
class Kinds:
    """Columns by what they are.

    Attributes
    ----------
    numbers, categories : list of str
        Their names, in the order of the file.
    left_out : dict of str
        Why other columns are not used.
    """

    numbers: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def used(self) -> list[str]:
        """Columns that the model reads."""
        return [*self.numbers, *self.categories]


def find_kinds(
    table: Table, frame: pd.DataFrame, apart: Sequence[str], texts: Sequence[str], whole: bool
) -> Kinds:
    """Return what the columns of a table are, by its first rows.

    Parameters
    ----------
    table : Table
        The file, for messages.
    frame : DataFrame
        Rows of it.
    apart : sequence of str
        Columns that are no features: target, weights, those to ignore.
    texts : sequence of str
        Columns whose values are categories, even if they look like numbers.
    whole : bool
        Whether the rows are all there are.
    """
    kinds = Kinds()
    for name in table.columns:
        if name in apart:
            continue
        why = None if name in texts else _why_not(frame[name], whole)
        if why is not None:
            kinds.left_out[name] = why
        elif name in texts or not _is_numeric(table, name, frame[name]):
            kinds.categories.append(name)
        else:
            kinds.numbers.append(name)
    return kinds


def _why_not(column: pd.Series, whole: bool) -> str | None:
    """Return why nothing can be learned from a column, or None."""
    there = column.dropna()
    if whole and there.empty:
        return "it has no values"
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return "it has times; turn them into numbers to use them"
    if pd.api.types.is_complex_dtype(column):
        return "it has complex numbers"
    full = whole and len(there) == len(column)
    if not _is_text(column):
        return "it has the same value in all rows" if full and there.nunique() == 1 else None
    try:
        different = there.nunique()
    except TypeError:
        return "its values are lists or other objects"
    if full and different == 1:
        return "it has the same value in all rows"
    many = different >= _NAMING_LEAST and different >= _NAMING_SHARE * len(there)
    if many and _share_of_numbers(there) < _MOSTLY:
        return f"its {different:,} texts are nearly all different"
    return None


def _is_text(column: pd.Series) -> bool:
    return not (
        pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)
    ) and not _only_truths(column)


def _only_truths(column: pd.Series) -> bool:
    """Return whether a column has True and False, and missing values."""
    there = column.dropna()
    return len(there) > 0 and bool(there.map(lambda value: isinstance(value, bool)).all())


def _share_of_numbers(there: pd.Series) -> float:
    return float(pd.to_numeric(there, errors="coerce").notna().mean()) if len(there) else 0.0


def _is_numeric(table: Table, name: str, column: pd.Series) -> bool:
    """Return whether a column is one of numbers; refuse one that nearly is."""
    if not _is_text(column):
        return True
    there = column.dropna()
    if there.empty:
        return True
    if _share_of_numbers(there) < _MOSTLY:
        return False
    numeric_column(table, name, column, hint=f", or --categories {name} if they are names")
    return True


def numeric_column(
    table: Table, name: str, column: pd.Series, *, hint: str = "", infinite: bool = False
) -> pd.Series:
    """Return a column as float64, or refuse it with the line of the first text or infinity."""
    if _only_truths(column):
        return column.map({True: 1.0, False: 0.0}, na_action="ignore").astype(np.float64)
    found = pd.to_numeric(column, errors="coerce")
    bad = found.isna() & column.notna()
    if bad.any():
        row = bad.idxmax()
        raise Refusal(
            f"{table.path}, {table.where(int(row))}, column {name!r}: {str(column[row])[:60]!r} is "
            "text where numbers are expected; correct it, say what stands for a missing value "
            f"with --missing{hint}.",
            ExitCode.DATA,
        )
    values = found.astype(np.float64)
    if not infinite and np.isinf(values).any():
        row = np.isinf(values).idxmax()
        raise Refusal(
            f"{table.path}, {table.where(int(row))}, column {name!r}: {values[row]} is not a "
            "finite number; correct it, or leave the field empty.",
            ExitCode.DATA,
        )
    return values


def as_kinds(table: Table, frame: pd.DataFrame, kinds: Kinds) -> pd.DataFrame:
    """Return the columns of a block that a model reads: float64, and texts with NaN."""
    columns: dict[str, Any] = {}
    for name in kinds.numbers:
        columns[name] = numeric_column(table, name, frame[name])
    for name in kinds.categories:
        there = frame[name].notna()
        columns[name] = frame[name].astype(object).map(str).where(there, np.nan)
    return pd.DataFrame(columns, index=frame.index)


def preparation(kinds: Kinds, scale: bool) -> ColumnTransformer:
    """Return what makes numbers of the columns, not fitted yet."""
    steps: list[tuple[str, Pipeline, list[str]]] = []
    if kinds.numbers:
        filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        chain = [filled, StandardScaler()] if scale else [filled]
        steps.append(("numbers", make_pipeline(*chain), kinds.numbers))
    if kinds.categories:
        named = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="(missing)", keep_empty_features=True),
            OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                max_categories=_CATEGORIES,
                sparse_output=False,
            ),
        )
        steps.append(("categories", named, kinds.categories))
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)
