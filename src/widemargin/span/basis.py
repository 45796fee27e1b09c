"""A subspace of the feature space that a few vectors span.

φ_z(x) = L⁻¹ ψ_z(x) with ψ_z(x) = k(Z, x) and K_z = L Lᵀ is the projection of φ(x) onto the span of
φ(Z), in an orthonormal basis: (31), (40)–(43) and section 3.4 of SLMC, with a Cholesky factor for
its T = Λ^{-1/2} Vᵀ (any T with TᵀT = K_z⁻¹ will do; eigenvectors cost thirty times as much).

The factor is pivoted: the vector that lies furthest outside the span so far comes next, and vectors
that lie in it (duplicates, or nearly so) are left out. What remains is a well-conditioned subset,
and the span of the others is lost by no more than the tolerance. Factors are nested: vectors that
join later leave the coordinates of the former ones as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import lapack, solve_triangular

from widemargin.arrays import IndexArray, Matrix
from widemargin.factors import cholesky_in_place, solve_cholesky
from widemargin.kernel_between import kernel_values
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_diagonal
from widemargin.rows import Rows
from widemargin.threads import ordered_map


@dataclass(frozen=True)
class Vectors:
    """Vectors that may join a basis: landmarks, as they are called in Nyström's method.

    Attributes
    ----------
    values : ndarray of shape (m, n_features)
        The vectors, dense.
    index : ndarray of int of shape (m,) or None
        The training rows that they are, if they are rows.
    """

    values: NDArray[Any]
    index: IndexArray | None

    def __getitem__(self, chosen: IndexArray | slice) -> Vectors:
        """Return some of the vectors."""
        return Vectors(self.values[chosen], None if self.index is None else self.index[chosen])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.values)


@dataclass(frozen=True)
class Basis:
    """Vectors whose images are linearly independent.

    Attributes
    ----------
    vectors : Vectors
        The vectors Z that were kept, in the order of the pivots.
    gram : ndarray of shape (r, r)
        K_z, their kernel values.
    factor : ndarray of shape (r, r)
        L, lower triangular, with K_z = L Lᵀ.
    """

    vectors: Vectors
    gram: Matrix
    factor: Matrix

    @property
    def size(self) -> int:
        """Number of vectors, the dimension of the span."""
        return len(self.factor)

    @property
    def gram_here(self) -> Matrix:
        """K_z on this machine."""
        return self.gram

    @classmethod
    def empty(cls) -> Basis:
        """Return the basis of no vectors."""
        nothing = np.empty((0, 0))
        return cls(Vectors(nothing, np.empty(0, dtype=np.intp)), nothing, nothing)

    @classmethod
    def of(cls, kernel: Kernel, vectors: Vectors, tolerance: float, rows: Rows) -> Basis:
        """Return the basis of the span of `vectors`; see `extended`."""
        return cls.empty().extended(kernel, vectors, tolerance, rows)

    def extended(self, kernel: Kernel, new: Vectors, tolerance: float, rows: Rows) -> Basis:
        """Return the basis with those of `new` that lie outside its span.

        Parameters
        ----------
        kernel : Kernel
            k.
        new : Vectors
            Vectors that may join.
        tolerance : float
            A vector joins if its squared distance from the span, relative to the largest k(z, z),
            exceeds this.
        rows : Rows
            The training rows, for vectors that are known by their numbers; and how many threads.

        Returns
        -------
        Basis
            The larger basis.
        """
        cross = kernel_matrix(kernel, rows, new, self.vectors)
        square = kernel_matrix(kernel, rows, new, new)
        if kernel.constant_diagonal is not None:
            # Exactly, or rounding would decide which of equal ones is the first pivot.
            np.fill_diagonal(square, kernel.constant_diagonal)
        old = self.size
        below = np.empty((len(new), 0))
        if old:
            below = solve_triangular(self.factor, cross.T, lower=True, check_finite=False).T
        diagonal = np.diagonal(square)
        check_diagonal(kernel, diagonal)
        largest = float(diagonal.max(initial=0.0))
        largest = max(largest, float(np.diagonal(self.gram).max(initial=0.0)))
        remainder = square - below @ below.T
        # What rounding leaves of a vector in the span is no vector.
        least = largest * max(tolerance, (old + len(new)) * float(np.finfo(float).eps))
        # LAPACK stops at the first pivot that is no larger than this, but takes the very first
        # whatever it is.
        packed, pivots, rank, _ = lapack.dpstrf(remainder, lower=1, tol=least, overwrite_a=1)
        if rank and not packed[0, 0] ** 2 > least:
            rank = 0
        chosen = pivots[:rank] - 1
        corner = np.tril(packed[:rank, :rank])
        factor = np.block([[self.factor, np.zeros((old, rank))], [below[chosen], corner]])
        # There may be thousands of vectors: no matrix stays longer than it must.
        del packed, corner, below
        cross = cross[chosen]
        gram = np.block([[self.gram, cross.T], [cross, square[np.ix_(chosen, chosen)]]])
        return Basis(joined(self.vectors, new[chosen]), gram, factor)

    def metric(self, beta: Matrix) -> Matrix:
        """Return K_z β of coefficients whose last row, the bias, stays as it is."""
        return np.vstack([self.gram @ beta[:-1], beta[-1]])

    def whitened(self, products: Matrix) -> Matrix:
        """Return L⁻¹ b for the columns b: coordinates of the vectors with products b = k(Z, ·)."""
        whitened: Matrix = solve_triangular(self.factor, products, lower=True, check_finite=False)
        return whitened

    def coefficients(self, coordinates: Matrix) -> Matrix:
        """Return L⁻ᵀ w for the columns w: coefficients β with Σ β φ(z) the vector w."""
        coefficients: Matrix = solve_triangular(
            self.factor, coordinates, lower=True, trans=1, check_finite=False
        )
        return coefficients

    # Newton matrices.

    def factorised(self, matrix: Matrix, dtype: DTypeLike, threads: int = 1) -> NDArray[Any]:
        """Return the Cholesky factor of K_z plus a matrix, which is overwritten."""
        r = self.size
        matrix[:r, :r] += self.gram
        matrix[r, r] += 1.0
        diagonal = np.diagonal(matrix).copy()
        jitter = 0.0
        while not cholesky_in_place(matrix, threads) and jitter < float(diagonal.max()):
            # Rounding, at extreme weights. A preconditioner may be changed at will.
            jitter = max(10.0 * jitter, 1e-14 * float(diagonal.max()))
            upper = np.triu_indices(r + 1, 1)
            matrix[upper] = matrix.T[upper]
            matrix[np.diag_indices(r + 1)] = diagonal + jitter
        return matrix.astype(dtype, copy=False)

    def factorised_each(
        self, matrices: Iterable[Matrix], dtype: DTypeLike, threads: int = 1
    ) -> list[Any]:
        """Return the Cholesky factors of K_z plus matrices, which are overwritten one by one."""
        return [self.factorised(matrix, dtype, threads) for matrix in matrices]

    def solved(self, factor: NDArray[Any], right: Matrix) -> Matrix:
        """Return the solution for the columns of `right`, in the factor's precision."""
        return solve_cholesky(factor, right)

    def solved_each(self, factors: list[Any], right: Matrix, threads: int) -> Matrix:
        """Return the solution for each column of `right` by its own factor; they may be shared."""
        answer = np.empty_like(right)
        alike: dict[int, list[int]] = {}
        for column, factor in enumerate(factors):
            alike.setdefault(id(factor), []).append(column)

        def work(columns: list[int]) -> None:
            answer[:, columns] = self.solved(factors[columns[0]], right[:, columns])

        for _ in ordered_map(work, alike.values(), threads):
            pass
        return answer


def joined(old: Vectors, new: Vectors) -> Vectors:
    """Return vectors with others behind them."""
    if not len(old):
        return new
    index = None
    if old.index is not None and new.index is not None:
        index = np.concatenate([old.index, new.index])
    return Vectors(np.concatenate([old.values, new.values]), index)


def kernel_matrix(kernel: Kernel, rows: Rows, left: Vectors, right: Vectors) -> Matrix:
    """Return k(left, right) in float64."""
    values = np.empty((len(left), len(right)))
    if not values.size:
        return values
    if left.index is None:
        return np.asarray(kernel.checked_block(left.values, right.values, values))
    return kernel_values(kernel, rows, right.values, values, left.index)
