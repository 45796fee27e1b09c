"""Sparse machines: few vectors, placed where they serve the machine best.

``marginal`` is the one notion: W(Z), the optimum of a machine in the span of the vectors Z, with
its gradient. ``squared_marginal``, ``interval_marginal`` with ``hinge_marginal``, and
``fisher_marginal`` are its instances, ``vector_search`` moves the vectors downhill, ``placement``
says how many there are and where they start (``vector_start``, ``reduced_start``), and lets more of
them join. ``reduced_set`` compresses a machine that is there already (``trained``, ``pre_image``),
``reduced_svm`` takes random rows.
"""

from widemargin.sparse.reduced_set import ReducedSetClassifier
from widemargin.sparse.reduced_svm import ReducedSVMClassifier
from widemargin.sparse.sparse_fisher import SparseFisherClassifier
from widemargin.sparse.sparse_margin import SparseMarginClassifier
from widemargin.sparse.sparse_one_class import SparseOneClass
from widemargin.sparse.sparse_regressor import SparseMarginRegressor

__all__ = [
    "ReducedSVMClassifier",
    "ReducedSetClassifier",
    "SparseFisherClassifier",
    "SparseMarginClassifier",
    "SparseMarginRegressor",
    "SparseOneClass",
]
