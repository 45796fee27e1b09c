"""Sparse machines: few vectors, placed where they serve the machine best.

``marginal`` is the one notion: W(Z), the optimum of a machine in the span of the vectors Z, with
its gradient. ``hinge``, ``squared_hinge``, ``fisher`` and ``one_class`` are its instances,
``search`` moves the vectors downhill, ``growth`` lets more of them join. ``reduced_set`` compresses
a machine that is there already, ``reduced_svm`` takes random rows.
"""

from widemargin.sparse.fisher_classifier import SparseFisherClassifier
from widemargin.sparse.margin import SparseMarginClassifier
from widemargin.sparse.reduced_set import ReducedSetClassifier
from widemargin.sparse.reduced_svm import ReducedSVMClassifier

__all__ = [
    "ReducedSVMClassifier",
    "ReducedSetClassifier",
    "SparseFisherClassifier",
    "SparseMarginClassifier",
]
