"""Cross-validation in cells: every value of C and every fold on one kernel matrix a cell.

Only the decision values of the rows that a fold holds out are kept, and of as many folds and values
of C at a time as there is memory for. Folds are independent; values of C are not: all of them are
one compiled call, each from the solution of the next larger one. So folds are parted first. The
kernel matrices are then made again, which is little beside the machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.cells.members import Members
from widemargin.folds import Folds
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.qp.margin_dual import path_values
from widemargin.threads import ordered_map

# Share of the memory budget for decision values.
_VALUES_SHARE = 0.25
# Share of it for the matrices of the cells that are worked on at a time.
_MATRICES_SHARE = 0.5
# Matrices of a cell: its kernel values, those of the rows of a fold, and those held out.
_MATRICES = 3


@dataclass(frozen=True)
class HeldOutValues:
    """Decision values of the rows that one fold holds out.

    Attributes
    ----------
    fold : int
        The fold.
    rows : ndarray of int of shape (n_held_out,)
        Its rows, ascending.
    values : ndarray of shape (n_held_out, n_Cs, n_problems)
        What the machines of their own cells say. NaN in cells for which there was no time, and
        where the fold trains on no row of the cell.
    """

    fold: int
    rows: IndexArray
    values: Matrix

    @classmethod
    def room(cls, problem: Problem, folds: Folds, fold: int, n_Cs: int) -> HeldOutValues:
        """Return the values of a fold before any is known."""
        rows = held_out_rows(problem, folds, fold)
        return cls(fold, rows, np.full((len(rows), n_Cs, problem.n_problems), np.nan))

    def among(self, index: IndexArray) -> IndexArray:
        """Return those of some rows that are held out."""
        place = np.minimum(np.searchsorted(self.rows, index), len(self.rows) - 1)
        among: IndexArray = index[self.rows[place] == index]
        return among

    def of(self, index: IndexArray, C: int) -> Matrix:
        """Return the values of some of the rows for the value of C with this number."""
        values: Matrix = self.values[np.searchsorted(self.rows, index), C]
        return values


def held_out_rows(problem: Problem, folds: Folds, fold: int) -> IndexArray:
    """Return the rows of the problem that a fold holds out, in ascending order."""
    assert problem.place is not None
    rows: IndexArray = np.unique(problem.place[folds.test[fold]])
    return rows[rows >= 0]


def batches(
    problem: Problem, n_Cs: int, folds: Folds, memory: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield numbers of folds, and of values of C, whose decision values fit into memory together.

    There is at least one of both: a score needs all decision values of a fold.
    """
    most = max(len(held_out_rows(problem, folds, k)) for k in range(folds.n))
    room = max(1, int(_VALUES_SHARE * memory / (8 * most * problem.n_problems)))
    folds_at_a_time, Cs_at_a_time = max(1, room // n_Cs), min(n_Cs, room)
    for k in range(0, folds.n, folds_at_a_time):
        for c in range(0, n_Cs, Cs_at_a_time):
            yield (
                list(range(k, min(folds.n, k + folds_at_a_time))),
                list(range(c, min(n_Cs, c + Cs_at_a_time))),
            )


@dataclass(frozen=True)
class HeldOutOptions:
    """How machines in cells are fitted for a search.

    Attributes
    ----------
    tol : float
        Relative gap.
    memory : int
        Budget in bytes; where cells are large, fewer are worked on at a time.
    threads : int
        Threads.
    deadline : Deadline
        Cells come in a random order until then, at least one of them.
    matrix_rows : int
        Rows that the machines of a cell learn from, at the most.
    """

    tol: float
    memory: int
    threads: int
    deadline: Deadline
    matrix_rows: int = 5000


def held_out_values(
    problem: Problem,
    members: Members,
    Cs: NDArray[np.float64],
    folds: Folds,
    chosen: list[int],
    options: HeldOutOptions,
) -> list[HeldOutValues]:
    """Return the decision values of the rows held out by some folds, for every C.

    Parameters
    ----------
    problem : Problem
        All rows.
    members : Members
        Which rows train in which cell.
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending.
    folds : Folds
        Which rows each fold trains on.
    chosen : list of int
        The folds that are wanted.
    options : HeldOutOptions
        How.
    """
    sizes = [len(index) for index in members.train]
    largest, learnt = max(sizes), min(max(sizes), options.matrix_rows)
    if np.median(sizes) > options.matrix_rows:
        raise ValueError(
            f"A cell has {largest:,} rows, and the search keeps the kernel matrix of a cell; give "
            f"cells of at most {options.matrix_rows:,} rows (a smaller size, or more centres)."
        )
    found = [HeldOutValues.room(problem, folds, k, len(Cs)) for k in chosen]
    order = np.random.default_rng(0).permutation(len(members.inside))
    at_a_time = int(_MATRICES_SHARE * options.memory / (8 * _MATRICES * largest * learnt))

    def values_of(cell: int) -> list[tuple[IndexArray, Matrix]]:
        wanted = [each.among(members.inside[cell]) for each in found]
        train = members.train[cell]
        return _cell_values(problem, train, learnt, wanted, chosen, Cs, folds, options.tol)

    with options.deadline.ends_on_interrupt():
        for parts in ordered_map(values_of, order, max(1, min(options.threads, at_a_time))):
            for each, (index, values) in zip(found, parts, strict=True):
                each.values[np.searchsorted(each.rows, index)] = values
            if options.deadline.passed:
                break
    return found


def _cell_values(
    problem: Problem,
    members: IndexArray,
    learnt: int,
    wanted: list[IndexArray],
    chosen: list[int],
    Cs: NDArray[np.float64],
    folds: Folds,
    tol: float,
) -> list[tuple[IndexArray, Matrix]]:
    """Return, for each of the chosen folds, the rows of a cell that are wanted and their values.

    Where a cell is far larger than others, its machines learn from the first so many of its rows,
    which are a sample.
    """
    X = problem.rows.take(members)
    columns = X[:learnt]
    K = problem.kernel.checked_block(X, columns, np.empty((len(members), len(columns))))
    # How often each fold trains on each row.
    counts = folds.counts[folds.kind[problem.number[members]]]
    signs, weights = problem.signs(members), problem.weight[members]
    found = []
    for k, index in zip(chosen, wanted, strict=True):
        # A fold that trains on no row of the cell has no answer there.
        values = np.full((len(index), len(Cs), problem.n_problems), np.nan)
        found.append((index, values))
        if not counts[:, k].any() or not len(index):
            continue
        held, weight = np.searchsorted(members, index), weights * counts[:, k]
        for p, sign in enumerate(np.ascontiguousarray(signs.T)):
            # Pairs of classes leave the others out.
            train = np.flatnonzero(((sign != 0.0) & (counts[:, k] > 0))[:learnt])
            if abs(sign[train].sum()) == len(train):
                # The constant that `cell_machine` puts there.
                total = 2.0 * Cs * weight[train].sum()
                values[:, :, p] = sign[train[:1]].sum() * total / (1.0 + total)
            else:
                values[:, :, p] = path_values(K, train, held, sign, weight, Cs, tol)
    return found


class CellChoices:
    """Which kernel width and which C suit each cell: scores on held-out rows, cell by cell.

    Parameters
    ----------
    n_Cs : int
        Values of C.

    Attributes
    ----------
    centers : ndarray of shape (n_cells, n_features)
        Centres of the cells.
    """

    def __init__(self, n_Cs: int) -> None:
        self.n_Cs = n_Cs
        self.gammas: list[float] = []
        # Of each kernel width: sums of weighted scores over the folds, and of the weights.
        self.sums: list[Matrix] = []
        self.weights: list[Matrix] = []
        self.centers: Matrix = np.zeros((0, 0))

    def begin(self, gamma: float, centers: Matrix) -> None:
        """Go on to another kernel width."""
        self.gammas.append(gamma)
        self.centers = centers
        self.sums.append(np.zeros((len(centers), self.n_Cs)))
        self.weights.append(np.zeros((len(centers), self.n_Cs)))

    def add(self, C: int, score: Matrix, weight: Matrix) -> None:
        """Add what a fold says of a value of C in each cell, and with how much weight."""
        self.sums[-1][:, C] += weight * score
        self.weights[-1][:, C] += weight

    def best(self, Cs: list[float], everywhere: Matrix) -> tuple[Matrix, Matrix]:
        """Return the width and the C of each cell.

        Of equals in a cell, the one that is better in all cells, by the scores `everywhere` of
        shape (n_gammas, n_Cs): most cells are too small to tell all pairs apart. So it is where
        nothing is known.
        """
        n_cells = len(self.centers)
        sums, weights = (
            np.stack(each, axis=1).reshape(n_cells, -1) for each in (self.sums, self.weights)
        )
        score = np.divide(sums, weights, out=np.full(sums.shape, -np.inf), where=weights > 0)
        most = score.max(axis=1, keepdims=True)
        # Sums of weights are equal up to rounding.
        with np.errstate(invalid="ignore"):
            best = (score >= most - 1e-12 * np.abs(most)) | np.isneginf(most)
        overall = np.where(np.isnan(everywhere), -np.inf, everywhere).ravel()
        # Equals have the same rank, and the first of them is taken.
        rank = np.searchsorted(np.sort(overall), overall)
        chosen = np.where(best, rank, -1).argmax(axis=1)
        gamma, C = np.divmod(chosen, self.n_Cs)
        return np.array(self.gammas)[gamma], np.array(Cs)[C]
