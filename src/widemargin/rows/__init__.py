"""Where the training rows live, and the three things one may ask of them.

``take`` a few, draw a ``sample``, or ``scan`` all of them block by block. Engines touch training
data in no other way, so an array, a memory-mapped file and a CSR matrix are the same program to
them.
"""

from widemargin.rows.distinct import (
    Distinct,
    Moments,
    distinct_rows,
    row_keys,
    weighted_moments,
)
from widemargin.rows.memory import check_memory, parse_memory, rows_per_block, threads_within
from widemargin.rows.row_map import RowMap, mapped_rows, robust_map
from widemargin.rows.rows import (
    TALL,
    ArrayRows,
    CSRRows,
    PrecomputedRows,
    Rows,
    Visit,
    as_rows,
)

__all__ = [
    "TALL",
    "ArrayRows",
    "CSRRows",
    "Distinct",
    "Moments",
    "PrecomputedRows",
    "RowMap",
    "Rows",
    "Visit",
    "as_rows",
    "check_memory",
    "distinct_rows",
    "mapped_rows",
    "parse_memory",
    "robust_map",
    "row_keys",
    "rows_per_block",
    "threads_within",
    "weighted_moments",
]
