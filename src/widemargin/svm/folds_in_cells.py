"""Cross-validation in cells: every value of C and every fold on one kernel matrix a cell.

Only the decision values of the rows that a fold holds out are kept, and of as many folds and values
of C at a time as there is memory for. Folds are independent; values of C are not, as each starts
from the solution of the one before. So folds are parted first. The kernel matrices are then made
again, which is little beside the machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.kernels.finite import check_finite
from widemargin.qp import solve_margin_dual
from widemargin.rows.base import IndexArray
from widemargin.svm.folds import Folds
from widemargin.svm.in_cells import MATRIX_ROWS, InCells
from widemargin.threads import ordered_map

Matrix = NDArray[np.float64]

# Shares of the memory budget for decision values, and for the matrices of the cells that are worked
# on at a time: of each its kernel values, those of the rows of a fold, and those held out.
_VALUES_SHARE, _MATRICES_SHARE, _MATRICES = 0.25, 0.5, 3


@dataclass(frozen=True)
class HeldOutValues:
    """Decision values of the rows that one fold holds out.

    Attributes
    ----------
    fold : int
        The fold.
    rows : ndarray of int of shape (n_held_out,)
        Its points, ascending.
    values : ndarray of shape (n_held_out, n_Cs, n_problems)
        What the machines of their own cells say. NaN in cells for which there was no time, and
        where the fold trains on no row of the cell.
    """

    fold: int
    rows: IndexArray
    values: Matrix

    @classmethod
    def room(cls, points: Points, folds: Folds, fold: int, n_Cs: int) -> HeldOutValues:
        """Return the values of a fold before any is known."""
        rows = held_out_points(points, folds, fold)
        return cls(fold, rows, np.full((len(rows), n_Cs, points.n_problems), np.nan))

    def among(self, points: IndexArray) -> IndexArray:
        """Return those of the points that are held out."""
        place = np.minimum(np.searchsorted(self.rows, points), len(self.rows) - 1)
        among: IndexArray = points[self.rows[place] == points]
        return among

    def of(self, points: IndexArray, C: int) -> Matrix:
        """Return the values of some of the points for the value of C with this number."""
        values: Matrix = self.values[np.searchsorted(self.rows, points), C]
        return values


def held_out_points(points: Points, folds: Folds, fold: int) -> IndexArray:
    """Return the points that a fold holds out, in ascending order."""
    assert points.place is not None
    rows: IndexArray = np.unique(points.place[folds.test[fold]])
    return rows[rows >= 0]


def batches(
    points: Points, n_Cs: int, folds: Folds, memory: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield numbers of folds, and of values of C, whose decision values fit into memory together.

    There is at least one of both: a score needs all decision values of a fold.
    """
    most = max(len(held_out_points(points, folds, k)) for k in range(folds.n))
    room = max(1, int(_VALUES_SHARE * memory / (8 * most * points.n_problems)))
    some_folds, some_Cs = max(1, room // n_Cs), min(n_Cs, room)
    for k in range(0, folds.n, some_folds):
        for c in range(0, n_Cs, some_Cs):
            yield (
                list(range(k, min(folds.n, k + some_folds))),
                list(range(c, min(n_Cs, c + some_Cs))),
            )


def held_out_values(
    cut: InCells,
    Cs: NDArray[np.float64],
    folds: Folds,
    chosen: list[int],
    tol: float,
    memory: int,
    threads: int,
    deadline: Deadline,
) -> list[HeldOutValues]:
    """Return the decision values of the rows held out by some folds, for every C.

    Parameters
    ----------
    cut : InCells
        Points, cut into cells.
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending: each starts from the solution of the one before.
    folds : Folds
        Which rows each fold trains on.
    chosen : list of int
        The folds that are wanted.
    tol : float
        Relative gap.
    memory : int
        Budget in bytes; where cells are large, fewer are worked on at a time.
    threads : int
        Threads.
    deadline : Deadline
        Cells come in a random order until then, at least one of them.
    """
    points, own = cut.points, cut.own()
    largest = max(len(index) for index in cut.members)
    if largest > MATRIX_ROWS:
        raise ValueError(
            f"A cell has {largest:,} rows, and the search keeps the kernel matrix of a cell; give "
            f"cells of at most {MATRIX_ROWS:,} rows (a smaller size, or more centres)."
        )
    found = [HeldOutValues.room(points, folds, k, len(Cs)) for k in chosen]
    order = np.random.default_rng(0).permutation(len(own))
    at_a_time = int(_MATRICES_SHARE * memory / (8 * _MATRICES * largest**2))

    def values_of(cell: int) -> list[tuple[IndexArray, Matrix]]:
        members = cut.members[cell]
        wanted = [each.among(own[cell]) for each in found]
        return _cell_values(points, members, wanted, chosen, Cs, folds, tol)

    for parts in ordered_map(values_of, order, max(1, min(threads, at_a_time))):
        for each, (index, values) in zip(found, parts, strict=True):
            each.values[np.searchsorted(each.rows, index)] = values
        if deadline.passed:
            break
    return found


def _cell_values(
    points: Points,
    members: IndexArray,
    wanted: list[IndexArray],
    chosen: list[int],
    Cs: NDArray[np.float64],
    folds: Folds,
    tol: float,
) -> list[tuple[IndexArray, Matrix]]:
    """Return, for each of the chosen folds, the rows of a cell that are wanted and their values."""
    X = points.rows.take(members)
    K = np.empty((len(members), len(members)))
    with np.errstate(over="ignore", invalid="ignore"):
        points.kernel.block(X, X, out=K)
        check_finite(points.kernel, K)
    # How often each fold trains on each row.
    counts = folds.counts[folds.kind[points.number[members]]]
    found = []
    for k, index in zip(chosen, wanted, strict=True):
        # A fold that trains on no row of the cell has no answer there.
        values = np.full((len(index), len(Cs), points.n_problems), np.nan)
        found.append((index, values))
        train = np.flatnonzero(counts[:, k])
        if not len(train) or not len(index):
            continue
        inner = np.ascontiguousarray(K[np.ix_(train, train)])
        outer = K[np.ix_(np.searchsorted(members, index), train)]
        signs = points.table[points.code[members[train]]]
        weight = points.weight[members[train]] * counts[train, k]
        for p in range(points.n_problems):
            sign = np.ascontiguousarray(signs[:, p])
            if abs(sign.sum()) == len(sign):
                # The constant that `cell_machine` puts there.
                total = 2.0 * Cs * weight.sum()
                values[:, :, p] = sign[0] * total / (1.0 + total)
                continue
            alpha: NDArray[np.float64] | None = None
            before = 0.0
            for c, C in enumerate(Cs):
                start = None if alpha is None else alpha * min(C / before, 2.0)
                solved = solve_margin_dual(
                    inner, sign, 1.0 / (2.0 * C * weight), start=start, gap=tol
                )
                alpha, before = solved.alpha, C
                beta = sign * alpha
                values[:, c, p] = outer @ beta + beta.sum()
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
