"""The base of all estimators: kernel, validation, the context of a fit, and its progress."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from widemargin.arrays import Vector
from widemargin.base import doc_links
from widemargin.base import parameters as check
from widemargin.base.parameters import check_parameters, keyword, parameters
from widemargin.base.placing import (
    check_no_device,
    checked_labels,
    checked_rows,
    device_for,
    stand_in,
    travels_whole,
)
from widemargin.certificate import Certificate
from widemargin.device import (
    Array,
    Device,
    DeviceRows,
    exact_products,
    given_back,
    is_device_array,
    moments,
    to_numpy,
)
from widemargin.kernels import Kernel, make_kernel, resolve_gamma
from widemargin.loop import Deadline, Report, Resources
from widemargin.places.loading import Facts
from widemargin.places.opened import Opened
from widemargin.places.partitions import is_collection, mapped
from widemargin.problem import Problem, check_prices, class_factors, encoded, one_vs_rest
from widemargin.rows import (
    Distinct,
    Rows,
    as_rows,
    check_memory,
    distinct_rows,
    parse_memory,
)
from widemargin.threads import n_threads, single_threaded_blas, threads_kept

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: there are no callbacks to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return `method` as it is."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "KernelEstimator",
    "Labelled",
    "as_stored",
    "dense",
    "reporting",
    "warn_user",
    "with_callbacks",
]


@dataclass(frozen=True)
class Labelled:
    """Checked rows with their classes and weights.

    Attributes
    ----------
    X : ndarray or CSR matrix
        The rows, as scikit-learn's checks leave them.
    y : ndarray
        Their labels.
    weight : ndarray of shape (n,)
        Their weights.
    classes : ndarray
        The labels of rows with a weight.
    code : ndarray of int of shape (n,)
        Each row's number among the classes.
    """

    X: Any
    y: NDArray[Any]
    weight: Vector
    classes: NDArray[Any]
    code: NDArray[np.intp]


@parameters
class KernelEstimator(BaseEstimator):
    """An estimator with the parameters of a kernel, a memory budget and threads."""

    _doc_link_module = doc_links.MODULE
    _doc_link_template = doc_links.TEMPLATE

    kernel: Any = keyword("rbf")
    degree: int = keyword(3, check.count)
    coef0: float = keyword(0.0, check.number)
    kernel_params: dict[str, Any] | None = keyword(None)
    memory: int | str = keyword("auto")
    n_jobs: int | None = keyword(None)
    random_state: Any = keyword(None)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed()
        return tags

    # The context of a fit.

    @contextmanager
    def _fitting(self, X: Any = None) -> Iterator[Resources]:
        """Check the parameters, start the clock, and let our own threads decide inside.

        `X` are the rows, of those who can work on a device.
        """
        self._check_parameters()
        deadline = Deadline.after(getattr(self, "max_time", None))
        device = self._device(X)
        if device is not None:
            self._check_on_device(device)
        with self._computing(device) as resources:
            yield replace(resources, deadline=deadline, seed=self._seed())

    @contextmanager
    def _computing(self, device: Device | None = None) -> Iterator[Resources]:
        """Yield threads and memory, that of the device if there is one; BLAS has one thread."""
        threads, memory = n_threads(self.n_jobs), parse_memory(self.memory)
        if device is not None and isinstance(self.memory, str) and self.memory == "auto":
            memory = device.free_memory() or memory
        with single_threaded_blas(), threads_kept(threads), exact_products(device):
            yield Resources(threads=threads, memory=memory)

    def _check_parameters(self) -> None:
        """Raise if a parameter is not what it should be."""
        check_parameters(self)
        check_memory(self.memory)
        if self.kernel is not None:
            self._kernel(1.0)

    def _seed(self) -> int:
        """Return a number that `random_state` decides."""
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _drop(self, *names: str) -> None:
        """Forget what an earlier fit has found, where this one finds nothing of the kind."""
        for name in names:
            if hasattr(self, name):
                delattr(self, name)

    # Devices.

    def _device(self, X: Any) -> Device | None:
        """Return the device that rows are worked on; None is this machine, with NumPy."""
        return device_for(getattr(self, "device", None), X)

    def _check_on_device(self, device: Device) -> None:
        """Raise if the estimator, with its parameters, cannot be fitted on a device."""
        raise TypeError(self._not_there(device))

    def _not_there(self, device: Device) -> str:
        name = type(self).__name__
        return (
            f"X is an array on the device {str(device)!r}, where {name} cannot work; pass a NumPy "
            "array, such as X.cpu().numpy()."
        )

    def _features_of(
        self, X: Any, here: Callable[[Rows], NDArray[Any]], there: Callable[[Rows], Array]
    ) -> Any:
        """Return features of a user's rows, found and given back where these are.

        Parameters
        ----------
        X : array-like
            The rows.
        here, there : callable
            Give the features of rows of this machine, and of rows on a device.
        """
        check_is_fitted(self)
        device, given = self._device(X), X
        X = self._validated(X, reset=False)
        with self._computing(device) as resources:
            rows = self._rows(X, resources)
            return given_back(here(rows) if device is None else there(rows), given)

    # The kernel.

    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel(self, gamma: float, kernel: Any = None) -> Kernel:
        return make_kernel(
            self.kernel if kernel is None else kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )

    def _resolved_gamma(self, gamma: Any, distinct: Distinct) -> float:
        """Return a kernel width as a number."""
        if self._precomputed():
            return 1.0
        if not isinstance(gamma, str):
            return float(gamma)
        found = moments(distinct.rows, distinct.weight)
        return resolve_gamma(gamma, found.mean, found.variance)

    def _gamma_of(self, gamma: Any, facts: Facts) -> float:
        """Return a kernel width as a number, given what is known of a Dask collection."""
        if not isinstance(gamma, str):
            return float(gamma)
        return resolve_gamma(gamma, facts.mean, facts.variance)

    # From what a user passes to rows and problems.

    def _validated(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Return rows, and labels if there are any, as scikit-learn's checks leave them.

        `checks` go to scikit-learn's `validate_data`.
        """
        if is_collection(X):
            raise TypeError(
                f"X is a Dask collection, which {type(self).__name__} cannot work on with these "
                "parameters; pass X.compute() if the rows fit into memory."
            )
        if is_device_array(X):
            device, labelled = self._device(X), not (isinstance(y, str) and y == "no_validation")
            if device is not None:
                reset, least = checks.get("reset", True), checks.get("ensure_min_samples", 1)
                if not hasattr(self, "device"):
                    raise TypeError(self._not_there(device))
                labels = checked_labels(X, y, self) if labelled else None
                rows = checked_rows(self, X, device, reset, least)
                return (rows, labels) if labelled else rows
            X, y = to_numpy(X), to_numpy(y) if is_device_array(y) else y
        elif is_device_array(y):
            y = to_numpy(y)
        return validate_data(
            self, X, y, dtype="numeric", accept_sparse="csr", accept_large_sparse=True, **checks
        )

    def _note_columns(self, X: Any, *, reset: bool) -> None:
        """Take note of the columns of a Dask collection, or compare them with those of the fit."""
        meta = getattr(X, "_meta", None) if hasattr(X, "columns") else np.empty((1, X.shape[1]))
        validate_data(self, meta, reset=reset, skip_check_array=True)

    def _opened(self, X: Any, y: Any, sample_weight: Any, resources: Resources) -> Opened:
        """Return a Dask collection whose rows were all found to be good; y may be None."""
        check_no_device(getattr(self, "device", None))
        if self._precomputed():
            raise TypeError(
                "kernel='precomputed' needs the kernel matrix in memory, but X is a Dask "
                "collection; pass X.compute(), or the rows themselves with their kernel."
            )
        return Opened.of(X, y, sample_weight, self.memory, resources)

    def _lazily(self, method: Any, X: Any) -> Any:
        """Return a lazy Dask array of what a method says of the rows of a collection."""
        check_is_fitted(self)
        self._note_columns(X, reset=False)
        # Of one row of zeros: the type and the dimensions of an answer.
        names = getattr(X, "_meta", None) if hasattr(X, "columns") else None
        kinds = [X.dtype] if names is None else names.dtypes.tolist()
        single = all(kind == np.float32 for kind in kinds)
        one = np.zeros((1, self.n_features_in_), dtype=np.float32 if single else np.float64)
        meta = method(self, one if names is None else type(names)(one, columns=names.columns))
        return mapped(partial(method, self), X, meta[:0])

    def _weights(self, X: Any, sample_weight: Any) -> Vector:
        """Return the weights of rows, and raise if a kernel matrix is not one."""
        if self._precomputed():
            _check_kernel_matrix(X)
        return checked_weights(X, sample_weight)

    def _labelled(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> Labelled:
        """Check rows, labels and weights."""
        X, y = self._validated(X, y, **({"ensure_min_samples": 2} | checks))
        weight = self._weights(X, sample_weight)
        # First, for scikit-learn says only that mixed labels are of an unknown type.
        classes, code = encoded(y, weight)
        check_classification_targets(y)
        return Labelled(X, y, weight, classes, code)

    def _rows(self, X: Any, resources: Resources) -> Rows:
        device = self._device(X)
        if device is not None and travels_whole(X, resources.memory):
            X = device.array(X)
        if device is not None and is_device_array(X):
            return DeviceRows(X, device, resources.memory, resources.threads)
        rows = as_rows(
            X,
            memory=resources.memory,
            threads=resources.threads,
            precomputed=self._precomputed(),
        )
        return rows if device is None else rows.placed(device)

    def _distinct(
        self, data: Labelled, resources: Resources, apart: NDArray[np.intp] | None = None
    ) -> Distinct:
        """Merge equal rows of a class, unless their numbers in `apart` differ."""
        key = data.code if apart is None else data.code + len(data.classes) * apart
        return distinct_rows(self._rows(data.X, resources), key, data.weight)

    def _problem(
        self, data: Labelled, distinct: Distinct, *, C: float, gamma: float, class_weight: Any
    ) -> Problem:
        """State the problems of the classes against each other."""
        factor = class_factors(class_weight, data.classes, data.y, data.weight)
        code = data.code[distinct.index]
        with np.errstate(over="ignore"):
            weight = distinct.weight * factor[code]
        check_prices(C, weight)
        return Problem.of(
            distinct.rows,
            self._kernel(gamma),
            code,
            one_vs_rest(len(data.classes)),
            weight,
            C,
            distinct.index,
            distinct.place,
        )


@contextmanager
def reporting(
    estimator: Any, n_rows: int, X: Any = None, y: Any = None, *, verbose: bool | None = None
) -> Iterator[Report]:
    """Yield the function that tells a user, and the estimator's callbacks, of each step.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted.
    n_rows : int
        Rows it is fitted to.
    X, y : array
        Passed on to callbacks.
    verbose : bool, default=None
        Whether to print a line a step; None if the estimator's `verbose` asks for it.

    Yields
    ------
    callable
        Takes a certificate and returns whether a callback wants to stop.
    """
    task = None
    if getattr(estimator, "_skl_callbacks", None):
        task = estimator._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    name = type(estimator).__name__
    verbose = estimator.verbose > 0 if verbose is None else verbose

    def report(certificate: Certificate) -> bool:
        if verbose:
            print(
                f"[{name}] step {certificate.n_iter}: {n_rows:,} rows, "
                f"{certificate.n_vectors:,} vectors, gap {certificate.gap:.2e} "
                f"({certificate.scope}), {certificate.seconds:.2f} s",
                flush=True,
            )
        if task is None:
            return False
        step = task.subcontext(task_name="step")
        step.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        return bool(step.call_on_fit_task_end(estimator=estimator, X=X, y=y))

    yield report
    if task is not None:
        task.call_on_fit_task_end(estimator=estimator, X=X, y=y)


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the line of the user's that called us, through however many of ours it came."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("widemargin", "sklearn", "contextlib")


def _check_kernel_matrix(X: Any) -> None:
    """Raise if a kernel matrix is not square, or not symmetric as far as its first rows show."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a square matrix of kernel values between the training "
            f"rows, but X has shape {X.shape}; pass kernel_function(X, X)."
        )
    part = X[:1000, :1000]
    part = part.toarray() if sparse.issparse(part) else np.asarray(part, dtype=np.float64)
    if not np.abs(part - part.T).max() <= 1e-5 * np.abs(part).max():
        raise ValueError(
            "kernel='precomputed' needs a symmetric matrix of kernel values, but X is not; "
            "pass kernel_function(X, X)."
        )


def as_stored(vectors: NDArray[Any], rows: Rows) -> Any:
    """Return vectors as the rows are stored: CSR if they are."""
    return sparse.csr_array(vectors) if rows.sparse else vectors


def checked_weights(X: Any, sample_weight: Any) -> Vector:
    """Return the weights of rows, or say what is wrong with them."""
    if is_device_array(sample_weight):
        sample_weight = to_numpy(sample_weight)
    weight: Vector = _check_sample_weight(
        sample_weight, stand_in(X), dtype=np.float64, ensure_non_negative=True
    )
    if not weight.any():
        # Not all versions of scikit-learn look at this.
        raise ValueError("sample_weight must hold at least one non-zero number; all are zero.")
    return weight


def dense(vectors: Any) -> NDArray[Any]:
    """Return stored vectors as an array."""
    found: NDArray[Any] = vectors.toarray() if sparse.issparse(vectors) else vectors
    return found
