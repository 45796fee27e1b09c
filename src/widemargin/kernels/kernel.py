"""The kernel as a block operator, and what every kernel asks of a block of rows.

A kernel k gives four things for a block of rows x_i and a few vectors z_j, and an algorithm never
sees more of it:

* ``block``: the values k(x_i, z_j);
* ``diagonal``: k(x_i, x_i);
* ``gradient``: G_j = Σ_i w_ij ∂k(x_i, z_j)/∂z_j, by which expansion vectors are moved; and
  ``slopes``, the gradients in x of sums over the vectors.

`ProductKernel` writes ``block`` once for all kernels that are an elementwise function of one matrix
product, k(x_i, z_j) = f(a_iᵀ b_j): a kernel states how to make the operands a and b, and f. Rows
are a NumPy array, where we work in place, because a pass over the block costs as much as the
product with several features; or a SciPy CSR matrix, whose product with a dense array is dense.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from widemargin.threads import Compiled

Array: TypeAlias = Any
"""A NumPy array, or where a docstring says so a CSR matrix."""

loops = Compiled("widemargin.kernels.csr_loops")

# From this share of non-zeros on a dense product is faster than SciPy's sparse one, conversion
# included. Measured for 1024 rows, 784 and 5000 features, 200 to 4000 vectors, one thread: the two
# meet between 3 and 8 % for distances in float32 and between 8 and 16 % otherwise.
DENSE_SHARE = 0.1
# A dense copy of a CSR block must not surprise anybody's memory budget.
DENSE_BYTES = 1 << 26
# Values whose squares, and sums of them, float32 can hold.
SINGLE = (1e-12, 1e12)
# Temporaries of this size stay in a second-level cache.
CACHE_BYTES = 1 << 18
# The sparse product is made in slices of this size: the temporary is then small beside the block.
SLICE_BYTES = 1 << 22


class Kernel(ABC):
    """A kernel: values, diagonal and gradient for a block of rows against a few vectors.

    Rows `X` are a dense float32 or float64 array in any order, or a SciPy CSR matrix. Vectors `Z`
    are dense, or CSR if the rows are and the kernel says so (`sparse_vectors`). Kernels are
    immutable and hold plain numbers, so that they compare, hash and pickle.

    Attributes
    ----------
    name : str
        The name by which `make_kernel` knows it.
    differentiable : bool
        Whether `gradient` is there.
    sparse_vectors : bool
        Whether vectors may be CSR.
    """

    name: ClassVar[str]
    differentiable: ClassVar[bool] = True
    sparse_vectors: ClassVar[bool] = False

    @property
    def constant_diagonal(self) -> float | None:
        """The value of k(x, x) where it is the same for every x, else None."""
        return None

    @classmethod
    def usual_gamma(cls, variance: NDArray[np.float64]) -> float:
        """Return a width at which typical values are neither near 1 nor near 0.

        `variance` are those of the columns. Where columns differ in their means, 1 over the sum is
        narrower than ``gamma="scale"``, which takes these differences for variance.
        """
        with np.errstate(over="ignore"):
            return one_over(float(variance.sum()))

    def rounding(self, spread: float, dtype: DTypeLike) -> float:
        """Return the error of a value beside 1, for rows of a total variance.

        Above the unit roundoff for kernels of ‖x‖² + ‖z‖² − 2xᵀz, which carries the roundoff of
        its terms however near x and z are.
        """
        return float(np.finfo(dtype).eps) / 2

    @abstractmethod
    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:
        """Return the values k(x_i, z_j).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        Z : array of shape (m, d)
            Vectors.
        out : array of shape (n, m), optional
            Where to put the values. Its type is then the precision of computation.

        Returns
        -------
        array of shape (n, m)
            `out` where it is given; else float32 if `X` is float32, and float64 otherwise.
        """

    @abstractmethod
    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        """Return k(x_i, x_i) in float64.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        index : array of shape (n,), optional
            The positions of the rows in the training set. Only the precomputed kernel needs them.

        Returns
        -------
        array of shape (n,)
            The diagonal.
        """

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        """Return G_j = Σ_i weight_ij ∂k(x_i, z_j)/∂z_j in float64.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        Z : array of shape (m, d)
            Vectors.
        weight : array of shape (n, m)
            The weight of each pair.

        Returns
        -------
        array of shape (m, d)
            One gradient for each vector.
        """
        raise TypeError(
            f"The {self.name} kernel has no gradient: its vectors cannot be moved; "
            "use a kernel by name, such as 'rbf', where vectors are optimised."
        )

    def slopes(self, X: Array, Z: Array, coef: Array) -> Iterator[Array]:
        """Yield the gradients in x of each function f_p(x) = Σ_j coef_jp k(x, z_j), at every row.

        One function at a time, so that nothing of n × m × d is ever made.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        Z : array of shape (m, d)
            Vectors.
        coef : array of shape (m, n_functions)
            Coefficients.

        Yields
        ------
        array of shape (n, d)
            ∇f_p(x_i), in float32 or better.
        """
        # k(x, z) = k(z, x): the gradient in the second argument is that in the first.
        rows = X.toarray() if sparse.issparse(X) else X
        for column in coef.T:
            used = np.flatnonzero(column)
            weight = np.broadcast_to(column[used, None], (len(used), rows.shape[0]))
            yield self.gradient(Z[used], rows, weight)

    def checked_block(self, X: Array, Z: Array, out: Array) -> Array:
        """Write the values into `out`, or raise if they overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.block(X, Z, out=out)
            check_finite(self, out)
        return out


class ProductKernel(Kernel):
    """A kernel that is an elementwise function of one matrix product."""

    sparse_vectors: ClassVar[bool] = True

    @abstractmethod
    def _operands(self, X: Array, Z: Array, dtype: DTypeLike) -> tuple[Array, Array]:
        """Return A of the rows (CSR if they are) and B of the vectors; k is a function of A Bᵀ."""

    def _correct(self, product: Array, left: Array, X: Array, Z: Array) -> None:
        """Compute anew, in place, what rounding has spoilt in A Bᵀ of rows and vectors."""

    @abstractmethod
    def _finish(self, values: Array) -> None:
        """Turn A Bᵀ into kernel values, in place."""

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        out = room_for(X, Z, out)
        X = dense_if_cheap(X)
        if sparse.issparse(Z):
            Z = canonical(Z) if sparse.issparse(X) else Z.toarray()
        left, right = self._operands(X, Z, out.dtype)
        if not sparse.issparse(left):
            np.matmul(left, right.T, out=out)
            self._correct(out, left, X, Z)
            self._finish(out)
            return out
        columns: Any = right.T.tocsr() if sparse.issparse(right) else np.ascontiguousarray(right.T)
        for rows in row_slices(X.shape[0], columns.shape[1] * columns.dtype.itemsize, SLICE_BYTES):
            part = left[rows]
            product = np.empty((part.shape[0], columns.shape[1]), dtype=columns.dtype)
            entries = (part.indptr, part.indices, part.data)
            if sparse.issparse(columns):
                others = (columns.indptr, columns.indices, columns.data)
                loops.multiply_sparse(*entries, *others, product)
            else:
                loops.multiply(*entries, columns, product)
            # Rounded to the type of the result only here, after what may cancel has cancelled.
            out[rows] = product
            self._correct(out[rows], part, X[rows], Z)
            self._finish(out[rows])
        return out

    def _block64(self, X: Array, Z: Array) -> Array:
        """Return the values in float64 whatever the type of the arguments."""
        return self.block(cast(X, np.float64), cast(Z, np.float64))


def room_for(X: Array, Z: Array, out: Array | None) -> Array:
    """Return where values go: `out`, or an array in the precision of the rows."""
    if out is not None:
        return out
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return np.empty((X.shape[0], Z.shape[0]), dtype=dtype)


def check_parameter(kernel: Kernel, name: str, *, least: float | None = None) -> float:
    """Return a kernel's parameter as a plain float, or say what is wrong with it.

    A NumPy scalar must not stay: float64 ones would turn float32 blocks into float64.
    """
    value = getattr(kernel, name)
    number = float(value)
    if not math.isfinite(number) or (least is not None and number < least):
        wanted = "finite" if least is None else f"finite and at least {least:g}"
        raise ValueError(f"{name}={value!r} of the {kernel.name} kernel must be {wanted}.")
    return number


# Values that no kernel should give.


def check_finite(kernel: Kernel, values: NDArray[Any]) -> None:
    """Raise if a kernel's values, or sums of them, overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum of finite values may overflow too, but it is quick to look at first.
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    raise ValueError(
        f"kernel={kernel.name!r} gives infinite or undefined values on this data: scale X (for "
        "example with StandardScaler) or use smaller kernel parameters."
    )


def check_diagonal(kernel: Kernel, diagonal: NDArray[Any]) -> None:
    """Raise if a kernel has negative values k(x, x)."""
    if not (diagonal >= 0).all():
        raise ValueError(
            f"kernel={kernel.name!r} gives negative values k(x, x) on this data, which no "
            "Mercer kernel does; use another kernel or other kernel parameters."
        )


# Blocks of rows, dense or CSR.


def row_slices(rows: int, row_bytes: int, budget: int = CACHE_BYTES) -> Iterator[slice]:
    """Cut `rows` rows into slices of at most `budget` bytes, of at least one row."""
    step = max(1, budget // max(1, row_bytes))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def canonical(X: Array) -> Array:
    """Return a CSR matrix in which every entry is in one piece, as squares and moduli need it."""
    if not X.has_canonical_format:
        X = X.copy()  # never the caller's own
        X.sum_duplicates()
    return X


def dense_if_cheap(X: Array, share: float = DENSE_SHARE) -> Array:
    """Return a CSR block as a dense array where its products are then faster; others as they are.

    That is from a `share` of non-zeros on. What stays CSR is in canonical form.
    """
    if not sparse.issparse(X):
        return X
    cells = X.shape[0] * X.shape[1]
    if X.nnz >= share * cells and cells * X.dtype.itemsize <= DENSE_BYTES:
        return X.toarray()
    return canonical(X)


def cast(X: Array, dtype: DTypeLike) -> Array:
    """Return `X`, dense or CSR, in `dtype`; without a copy where it has that type already."""
    if sparse.issparse(X):
        return X.astype(dtype, copy=False)
    return np.asarray(X, dtype=dtype)  # asarray also drops the memmap subclass


def square_norms(X: Array, dtype: Any) -> Array:
    """Return ‖x_i‖² for every row, dense or CSR, summed in `dtype`."""
    if not sparse.issparse(X):
        return np.einsum("ij,ij->i", X, X, dtype=dtype, casting="same_kind")
    X = canonical(X)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = np.square(X.data, dtype=np.float64)
    return np.bincount(row, weights=squares, minlength=X.shape[0]).astype(dtype, copy=False)


def common_point(X: Array, Z: Array) -> Array:
    """Return a point amid the vectors that may be subtracted from X and Z with little rounding.

    It has the coarser of the two types: subtracting nearby numbers of one type is exact.
    """
    dtype = np.float32 if np.float32 in (X.dtype, Z.dtype) else np.float64
    return np.mean(cast(Z, np.float64), axis=0).astype(dtype, copy=False)


def centred(X: Array, Z: Array) -> tuple[Array, Array, float]:
    """Return rows and vectors less a common point, dense, in float32 and in a unit that is told.

    The unit is 1, unless values are so large or small that their squares leave float32.
    """
    rows = X.toarray() if sparse.issparse(X) else X
    centre = common_point(rows, Z)
    left, right = (cast(each, np.float64) - centre for each in (rows, Z))
    largest = max(float(np.abs(each).max(initial=0.0)) for each in (left, right))
    unit = largest if largest > 0 and not SINGLE[0] < largest < SINGLE[1] else 1.0
    return (left / unit).astype(np.float32), (right / unit).astype(np.float32), unit


def wide_rows(function: np.ufunc, X: Array, operand: Array, dtype: DTypeLike, spare: int) -> Array:
    """Return function(X, operand) in `dtype` with `spare` more columns for the caller to set.

    The operation is done in the widest of the types and rounded once, so float64 rows are centred
    in float64 even where the product is to be in float32.
    """
    rows, features = X.shape
    wide = np.empty((rows, features + spare), dtype=dtype)
    widest = np.result_type(X, operand, dtype)
    function(X, operand, out=wide[:, :features], dtype=widest, casting="same_kind")
    return wide


def with_columns(X: Array, *columns: Array) -> Array:
    """Return the CSR matrix `X` with dense columns appended, in the type of `X`."""
    extra = [sparse.csr_array(column[:, None].astype(X.dtype, copy=False)) for column in columns]
    return sparse.hstack([sparse.csr_array(X), *extra], format="csr")


def weighted_rows(weight: Array, X: Array) -> Array:
    """Return weightᵀ X in float64, for X dense or CSR."""
    if sparse.issparse(X):
        return np.ascontiguousarray((X.T @ weight).T)
    return weight.T @ cast(X, np.float64)


# From the parameters of an estimator to a kernel.

KERNELS: dict[str, type[Kernel]] = {}
"""The kernels that have a name."""


def make_kernel(
    kernel: str | Kernel | Callable[..., Any],
    *,
    gamma: float = 1.0,
    degree: float = 3,
    coef0: float = 0.0,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the kernel that an estimator's parameters describe.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name of `KERNELS`, a kernel, which is returned as it is, or a function ``k(X, Z,
        **kernel_params)`` that returns a matrix.
    gamma : float, default=1.0
        γ of the kernels that have one.
    degree : float, default=3
        The exponent of ``"poly"``, ``"normalized_poly"`` and ``"cosine_power"``.
    coef0 : float, default=0.0
        The constant term of ``"poly"``, ``"normalized_poly"`` and ``"sigmoid"``.
    kernel_params : mapping, optional
        Keyword arguments for a callable.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> from widemargin.kernels import make_kernel
    >>> make_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    >>> make_kernel("rfb")
    Traceback (most recent call last):
    ...
    ValueError: kernel='rfb' is not known; did you mean 'rbf'? Valid names: 'linear', ...
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        from widemargin.kernels.given import CallableKernel

        return CallableKernel(kernel, dict(kernel_params or {}))
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(_unknown(kernel))
    if kernel_params:
        raise ValueError(
            f"kernel_params={dict(kernel_params)!r} is only for a callable kernel, and "
            f"kernel={kernel!r} is a name; set gamma, degree or coef0 instead."
        )
    cls = KERNELS[kernel]
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    wanted = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in given.items() if name in wanted})


def _unknown(kernel: object) -> str:
    close = difflib.get_close_matches(kernel, KERNELS, n=1) if isinstance(kernel, str) else []
    hint = f"; did you mean {close[0]!r}?" if close else "."
    names = ", ".join(repr(name) for name in KERNELS)
    return (
        f"kernel={kernel!r} is not known{hint} Valid names: {names}; "
        "or give a Kernel object or a callable k(X, Z)."
    )


def resolve_gamma(gamma: Any, mean: NDArray[np.float64], variance: NDArray[np.float64]) -> float:
    """Return the kernel width that `gamma` stands for.

    Parameters
    ----------
    gamma : {"scale", "auto", "mean_distance"} or float
        "scale" is 1 / (n_features · variance of all values of X), as in scikit-learn; "auto" is
        1 / n_features; "mean_distance" is the papers' 1/β with β the mean squared distance between
        rows, which is twice the sum of the columns' variances.
    mean, variance : ndarray of shape (n_features,)
        Weighted moments of the columns.

    Returns
    -------
    float
        Positive and finite. Data without variance gives 1, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_gamma("mean_distance", np.zeros(2), np.array([1.0, 3.0]))
    0.125
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / len(mean)
    with np.errstate(over="ignore", invalid="ignore"):
        if gamma == "scale":
            spread = len(mean) * (variance.mean() + mean.var())
        else:
            spread = 2.0 * variance.sum()
        return one_over(float(spread), f"gamma={gamma!r}")


def one_over(spread: float, name: str = "gamma") -> float:
    """Return a kernel width that is 1 over a spread of rows: positive and finite, 1 if all is 0."""
    if not np.isfinite(spread):
        raise ValueError(
            f"{name} cannot be computed: X has too large a variance. Scale X (for example "
            "with StandardScaler) or give gamma as a number."
        )
    if spread <= 0.0:
        return 1.0
    return float(min(1.0 / spread, np.finfo(np.float64).max)) if spread > 1e-300 else 1e300
