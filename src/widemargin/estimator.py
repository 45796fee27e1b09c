"""What all estimators with a kernel share: its parameters, and the way from X to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from widemargin.kernels import Kernel, make_kernel
from widemargin.parameters import check_count, check_gamma, check_number
from widemargin.rows import BlockRows, as_rows, parse_memory
from widemargin.threads import n_threads


class KernelEstimator(BaseEstimator):
    """An estimator with the parameters of a kernel, a memory budget and threads."""

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    kernel_params: Any
    memory: int | str
    n_jobs: int | None
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed()
        return tags

    def _check_kernel(self) -> None:
        """Raise if a parameter of the kernel, or the memory, is not one."""
        check_gamma(self.gamma)
        check_count("degree", self.degree)
        check_number("coef0", self.coef0)
        parse_memory(self.memory)
        self._kernel(1.0)

    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel(self, gamma: float) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )

    def _validated(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Return training rows, and labels if there are any, as scikit-learn's checks leave them.

        `checks` go to scikit-learn's `validate_data`.
        """
        return validate_data(
            self, X, y, dtype="numeric", accept_sparse="csr", accept_large_sparse=True, **checks
        )

    def _checked(self, X: Any) -> Any:
        """Return new rows as a fitted estimator wants them."""
        return self._validated(X, reset=False)

    def _rows(self, X: Any) -> BlockRows:
        return as_rows(
            X,
            memory=parse_memory(self.memory),
            threads=n_threads(self.n_jobs),
            precomputed=self._precomputed(),
        )

    def _rng(self) -> np.random.Generator:
        """Return a generator that `random_state` decides."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return np.random.default_rng(seed)

    def _check_symmetric(self, X: Any) -> None:
        """Raise if a kernel matrix is not symmetric, as far as its first rows show."""
        part = X[:1000, :1000]
        part = part.toarray() if sparse.issparse(part) else np.asarray(part, dtype=np.float64)
        if not np.abs(part - part.T).max() <= 1e-5 * np.abs(part).max():
            raise ValueError(
                "kernel='precomputed' needs a symmetric matrix of kernel values, but X is not; "
                "pass kernel_function(X, X)."
            )

    def _check_square(self, X: Any) -> None:
        if self._precomputed() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs a square matrix of kernel values between the training "
                f"rows, but X has shape {X.shape}; pass kernel_function(X, X)."
            )
