"""Rows as a machine sees them: columns on one scale, and in a metric that is given or learned.

The map (`rows.RowMap`) is found from the training rows, and the machine is then one on mapped rows:
engines know nothing of it (``base.row_maps``).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from widemargin.base.estimator import warn_user
from widemargin.base.parameters import check_choice
from widemargin.base.row_maps import as_dense, check_own_rows, check_smooth, scaling_of
from widemargin.base.widths import listed
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.kernels import KERNELS, Kernel
from widemargin.metric import MetricOptions, learn_metric, root_of_given
from widemargin.problem import Problem
from widemargin.rows import Distinct, RowMap

_KINDS = ("diagonal", "full")
# Part of the time, where it is limited, for a metric.
_TIME_TO_LEARN = 0.5
# The gap of machines whose gradients are wanted, at the least.
_TOL = 1e-2
# Rows of a cell where nothing else is said.
_CELL_ROWS = 300


def check_metric(name: str, value: Any) -> None:
    """Raise unless a value says what the metric is."""
    if isinstance(value, str):
        check_choice(name, value, ("diagonal", "full"))
    elif value is not None and not np.iterable(value):
        raise TypeError(
            f"{name}={value!r} must be None, 'diagonal', 'full' or an array, not "
            f"{type(value).__name__}."
        )


def kinds_of(metrics: Any) -> tuple[str, ...]:
    """Return the kinds of metrics that a parameter names, or raise."""
    if metrics is None:
        return ()
    if isinstance(metrics, str):
        check_choice("metrics", metrics, ("auto",))
        return _KINDS
    named = [each for each in listed("metrics", metrics) if each is not None]
    return tuple(check_choice("metrics", each, _KINDS) for each in named)


def has_gradient(kernel: Any) -> bool:
    """Return whether a metric can be learned from machines with a kernel."""
    return isinstance(kernel, str) and KERNELS[kernel].differentiable and kernel != "precomputed"


def is_mapped(machine: Any) -> bool:
    """Return whether the parameters of a machine ask for other rows than those given."""
    return machine.scale is not None or machine.metric is not None


def check_map(machine: Any, kernel: Kernel) -> None:
    """Raise if the parameters of a machine do not go with a map of the rows."""
    if machine.metric is not None:
        check_smooth(kernel, f"metric={machine.metric!r}")
    if not is_mapped(machine):
        return
    check_own_rows(machine, ("vectors", "cells"), "both")


def check_mapped_here(machine: Any, where: str) -> None:
    """Raise if rows are to be mapped that are not in memory."""
    if is_mapped(machine):
        raise TypeError(
            f"scale={machine.scale!r} and metric={machine.metric!r} need rows of NumPy or SciPy, "
            f"but X is {where}; scale the rows before the fit, and leave both at None."
        )


def rows_for_map(machine: Any, X: Any, memory: int) -> Any:
    """Return checked rows as the map needs them: dense, where there is a metric."""
    return X if machine.metric is None else as_dense(X, memory)


def scaling_for(machine: Any, distinct: Distinct, *, centred: bool = False) -> RowMap | None:
    """Return the map of the columns; None where rows are taken as they are."""
    untouched = distinct.rows.sparse or machine.kernel == "precomputed"
    if machine.metric is None and (machine.scale is None or untouched):
        return None
    return scaling_of(machine.scale, distinct, centred=centred)


def learned_root(problem: Problem, kind: str, options: ChoiceOptions, **others: Any) -> np.ndarray:
    """Return the root of the metric of a problem, as a machine has it for itself.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    kind : {"full", "diagonal"}
        Of the metric.
    options : ChoiceOptions
        What the machine is told.
    **others
        Other fields of `MetricOptions`.
    """
    known = {each.name: getattr(options, each.name) for each in fields(options)}
    cells = _CELL_ROWS if isinstance(options.cells, str) else options.cells
    told = MetricOptions(
        **known
        | {
            "kind": kind,
            "cells": cells,
            "report": None,
            "max_vectors": None,
            "tol": max(_TOL, options.tol),
            "deadline": options.deadline.part(_TIME_TO_LEARN),
        }
        | others
    )
    found = learn_metric(problem, told)
    # Where there is no time at all, the machine says so.
    if not found.stop.converged and not options.deadline.passed:
        warn_user(
            f"The metric was learned in {found.n_rounds} rounds only ({found.stop.reason}); for "
            "more give it more time."
        )
    return found.root


def given_root(metric: Any, n_features: int) -> np.ndarray:
    """Return the root of a metric that the user gives."""
    return root_of_given(metric, n_features)
