"""Where the training rows live, and the three things one may ask of them.

``take`` a few, draw a ``sample``, or ``scan`` all of them block by block. Engines touch training
data in no other way, so an array, a memory-mapped file and a CSR matrix are the same program to
them.
"""

from widemargin.rows.base import BlockRows, Rows, Visit
from widemargin.rows.budget import parse_memory
from widemargin.rows.dense import ArrayRows
from widemargin.rows.distinct import Distinct, distinct_rows, row_keys
from widemargin.rows.moments import Moments, weighted_moments
from widemargin.rows.precomputed import PrecomputedRows
from widemargin.rows.source import as_rows
from widemargin.rows.sparse import CSRRows

__all__ = [
    "ArrayRows",
    "BlockRows",
    "CSRRows",
    "Distinct",
    "Moments",
    "PrecomputedRows",
    "Rows",
    "Visit",
    "as_rows",
    "distinct_rows",
    "parse_memory",
    "row_keys",
    "weighted_moments",
]
