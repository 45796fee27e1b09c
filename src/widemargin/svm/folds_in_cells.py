"""Cross-validation in cells: every value of C and every fold on one kernel matrix a cell."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.kernels.finite import check_finite
from widemargin.qp import solve_margin_dual
from widemargin.rows.base import IndexArray
from widemargin.svm.folds import Folds
from widemargin.svm.in_cells import MATRIX_ROWS, InCells
from widemargin.threads import ordered_map

Matrix = NDArray[np.float64]


def held_out_scores(
    cut: InCells,
    Cs: NDArray[np.float64],
    folds: Folds,
    tol: float,
    threads: int,
    max_time: float | None = None,
) -> Matrix:
    """Return the decision values of all rows by the machines of every C and every fold.

    Parameters
    ----------
    cut : InCells
        Points, cut into cells.
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending: each starts from the solution of the one before.
    folds : Folds
        Which rows each fold trains on.
    tol : float
        Relative gap.
    threads : int
        Threads.
    max_time : float, default=None
        Seconds at the most: cells come in a random order until then, at least one of them.

    Returns
    -------
    ndarray of shape (n, n_Cs, n_folds, n_problems)
        Values of each row by the machines of its own cell; those of the folds that hold it out are
        wanted. NaN in cells for which there was no time.
    """
    points, begun = cut.points, perf_counter()
    values = np.full((points.n, len(Cs), folds.n, points.n_problems), np.nan)
    own = cut.own()
    largest = max(len(index) for index in cut.members)
    if largest > MATRIX_ROWS:
        raise ValueError(
            f"A cell has {largest:,} rows, and the search keeps the kernel matrix of a cell; give "
            f"cells of at most {MATRIX_ROWS:,} rows (a smaller size, or more centres)."
        )
    order = np.random.default_rng(0).permutation(len(own))

    def scores_of(cell: int) -> tuple[IndexArray, Matrix]:
        return own[cell], _cell_scores(points, cut.members[cell], own[cell], Cs, folds, tol)

    for index, part in ordered_map(scores_of, order, threads):
        values[index] = part
        if max_time is not None and perf_counter() - begun >= max_time:
            break
    return values


def _cell_scores(
    points: Points,
    members: IndexArray,
    own: IndexArray,
    Cs: NDArray[np.float64],
    folds: Folds,
    tol: float,
) -> Matrix:
    """Return the values of the rows of a cell."""
    X = points.rows.take(members)
    K = np.empty((len(members), len(members)))
    with np.errstate(over="ignore", invalid="ignore"):
        points.kernel.block(X, X, out=K)
        check_finite(points.kernel, K)
    place = np.searchsorted(members, own)
    # How often each fold trains on each row.
    counts = folds.counts[folds.kind[points.number[members]]]
    # A fold that trains on no row of the cell has no answer there.
    values = np.full((len(own), len(Cs), folds.n, points.n_problems), np.nan)
    for k in range(folds.n):
        train = np.flatnonzero(counts[:, k])
        if not len(train):
            continue
        inner = np.ascontiguousarray(K[np.ix_(train, train)])
        outer = K[np.ix_(place, train)]
        signs = points.table[points.code[members[train]]]
        weight = points.weight[members[train]] * counts[train, k]
        for p in range(points.n_problems):
            sign = np.ascontiguousarray(signs[:, p])
            if abs(sign.sum()) == len(sign):
                # The constant that `cell_machine` puts there.
                total = 2.0 * Cs * weight.sum()
                values[:, :, k, p] = sign[0] * total / (1.0 + total)
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
                values[:, c, k, p] = outer @ beta + beta.sum()
    return values


class CellChoices:
    """Which kernel width and which C suit each cell: accuracies on held-out rows, cell by cell.

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
        self.right: list[NDArray[np.float64]] = []
        self.centers: NDArray[np.float64] = np.zeros((0, 0))

    def add(self, gamma: float, cut: InCells, values: Matrix, folds: Folds) -> None:
        """Judge all values of C for one kernel width."""
        points = cut.points
        self.gammas.append(gamma)
        self.centers = cut.partition.centers
        held_out = np.zeros((points.n, folds.n), dtype=bool)
        assert points.place is not None
        for k, test in enumerate(folds.test):
            place = points.place[test]
            held_out[place[place >= 0], k] = True
        if values.shape[3] == 1:
            answer = (values[..., 0] > 0).astype(np.intp)
        else:
            answer = values.argmax(axis=3)
        right = (answer == points.code[:, None, None]) & held_out[:, None, :]
        right &= np.isfinite(values).all(axis=3)
        weighted = right.sum(axis=2) * points.weight[:, None]
        self.right.append(np.stack([weighted[index].sum(axis=0) for index in cut.own()]))

    def best(self, Cs: list[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the width and the C of each cell.

        Of equals in a cell, the one that is better in all cells: most cells are too small to tell
        all pairs apart.
        """
        right = np.stack(self.right, axis=1).reshape(len(self.centers), -1)
        everywhere = right.sum(axis=0)
        # Sums of weights are equal up to rounding.
        best = right >= right.max(axis=1, keepdims=True) * (1.0 - 1e-12)
        chosen = np.where(best, everywhere, -1.0).argmax(axis=1)
        gamma, C = np.divmod(chosen, self.n_Cs)
        return np.array(self.gammas)[gamma], np.array(Cs)[C]
