"""Progress of a fit: the lines of `verbose`, and scikit-learn's callbacks (from 1.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from widemargin.certificate import Certificate

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: there are no callbacks to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return `method` as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Report", "reporting", "with_callbacks"]

Report = Callable[[Certificate], bool]


@contextmanager
def reporting(estimator: Any, n_rows: int, verbose: int, X: Any, y: Any) -> Iterator[Report]:
    """Yield the function that tells a user, and the estimator's callbacks, of each step.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted.
    n_rows : int
        Rows it is fitted to.
    verbose : int
        Print a line a step if positive.
    X, y : array
        Passed on to callbacks.

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

    def report(certificate: Certificate) -> bool:
        if verbose > 0:
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
