"""The exact machines of several problems, each a few terms, and the fitted value of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted
from widemargin.loop import Stop
from widemargin.problem import Problem


@dataclass(frozen=True)
class PairMachines:
    """The machines of some pairs, one after another.

    Attributes
    ----------
    index : ndarray of int of shape (n_terms,)
        Rows of the problem that support them.
    coef : ndarray of shape (n_terms,)
        Their coefficients, y α.
    n_terms : ndarray of int of shape (n_pairs,)
        How many of these each pair has.
    proved : ndarray of shape (n_pairs, 3)
        Primal, dual, and the relative gap with what rounding may hide of it.
    n_kernel : int
        Kernel values that were made.
    """

    index: IndexArray
    coef: Vector
    n_terms: IndexArray
    proved: Matrix
    n_kernel: int

    def __len__(self) -> int:
        return len(self.n_terms)

    def one(self, i: int) -> PairMachines:
        """Return the machine of one pair."""
        begin = int(self.n_terms[:i].sum())
        own = slice(begin, begin + int(self.n_terms[i]))
        only = slice(i, i + 1)
        return PairMachines(
            self.index[own], self.coef[own], self.n_terms[only], self.proved[only], 0
        )

    @classmethod
    def joined(cls, parts: Sequence[PairMachines]) -> PairMachines:
        """Return the machines of all parts."""
        return cls(
            np.concatenate([each.index for each in parts]),
            np.concatenate([each.coef for each in parts]),
            np.concatenate([each.n_terms for each in parts]),
            np.concatenate([each.proved for each in parts]),
            sum(each.n_kernel for each in parts),
        )

    @classmethod
    def unsolved(cls, loss: Sequence[float]) -> PairMachines:
        """Return machines without vectors, for pairs of which nothing but the loss is known."""
        n = len(loss)
        proved = np.stack([np.asarray(loss, dtype=np.float64), np.zeros(n), np.ones(n)], axis=1)
        nothing = np.zeros(0, dtype=np.intp)
        return cls(nothing, np.zeros(0), np.zeros(n, dtype=np.intp), proved, 0)


def fitted_machines(
    problem: Problem, machines: PairMachines, certificate: Certificate, stop: Stop
) -> Fitted:
    """Return the machines of all problems on common vectors."""
    index = np.unique(machines.index)
    coef = np.zeros((len(index), problem.n_problems))
    pair = np.repeat(np.arange(problem.n_problems), machines.n_terms)
    coef[np.searchsorted(index, machines.index), pair] = machines.coef
    return Fitted(
        problem.rows.take(index),
        index,
        coef,
        coef.sum(axis=0),
        certificate,
        stop,
        of_pairs=problem.partial,
    )
