"""A Dask collection, or a mapped file, whose partitions were all looked at and found to be good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from widemargin.arrays import Matrix
from widemargin.kernels import Kernel, resolve_gamma
from widemargin.loop import Resources
from widemargin.places.loading import Facts, joined
from widemargin.places.partitions import is_collection, partitions_of
from widemargin.places.sources import Source, current_client, source_of
from widemargin.places.span_of_shards import Statement
from widemargin.problem import class_factors, encoded, one_vs_one, one_vs_rest


@dataclass(frozen=True)
class Collection:
    """Rows, labels and weights in partitions.

    Attributes
    ----------
    given : tuple
        What the user has passed: rows, labels and weights or None.
    source : Source
        Where shards of it are made.
    facts : sequence of Facts
        What is known of the rows of each shard,
    every : Facts
        and of all.
    classes : ndarray
        The labels of rows with a weight.
    """

    given: tuple[Any, Any, Any]
    source: Source
    facts: Sequence[Facts]
    every: Facts
    classes: NDArray[Any]

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any, memory: int | str, resources: Resources
    ) -> Collection:
        """Look at all partitions, or raise if there is something wrong with one of them."""
        source = source_of(partitions_of(X, y, sample_weight), memory, resources)
        facts = source.facts()
        every = joined(facts)
        classes, _ = encoded(every.classes, every.weights)
        check_classification_targets(classes)
        return cls((X, y, sample_weight), source, facts, every, classes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.every.n

    def in_memory(self) -> tuple[Any, Any, Any]:
        """Return rows, labels and weights in the memory of this process."""
        if not is_collection(self.given[0]):
            return self.given
        import dask

        found: tuple[Any, Any, Any] = dask.compute(
            *self.given, scheduler="threads" if current_client() is None else None
        )
        return found

    def gamma(self, gamma: Any) -> float:
        """Return a kernel width as a number."""
        if not isinstance(gamma, str):
            return float(gamma)
        return resolve_gamma(gamma, self.every.mean, self.every.variance)

    def table(self, multi_class: str) -> Matrix:
        """Return the sign of each class in each problem: classes, or pairs if the user says so."""
        n_classes = len(self.classes)
        pairs = multi_class == "ovo" and n_classes > 2
        return one_vs_one(n_classes) if pairs else one_vs_rest(n_classes)

    def stated(self, kernel: Kernel, multi_class: str, class_weight: Any, C: float) -> Statement:
        """Return what is to be fitted."""
        factor = class_factors(class_weight, self.classes, self.classes, self.every.weights)
        return Statement(kernel, self.table(multi_class), factor, C)
