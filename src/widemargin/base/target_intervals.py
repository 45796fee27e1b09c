"""Losses of regression in linear pieces, stated as intervals.

The ε-insensitive loss C Σ s max(0, |t − f| − ε) of ``SVR``, and the quantile loss
C Σ s max(τ (t − f), (τ − 1)(t − f)), whose best constant is the τ-quantile of the targets (Takeuchi
et al., "Nonparametric quantile estimation", JMLR 2006). The bias is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.base import parameters as check
from widemargin.intervals import IntervalProblem
from widemargin.problem import Problem


def check_quantile(name: str, value: Any) -> None:
    """Raise unless a value is a number between 0 and 1."""
    if not 0.0 < check.number(name, value) < 1.0:
        raise ValueError(f"{name}={value!r} must lie between 0 and 1, such as 0.5.")


def check_quantiles(name: str, value: Any) -> None:
    """Raise unless a value is None, or several numbers between 0 and 1."""
    if value is None:
        return
    if isinstance(value, str) or not np.iterable(value) or not list(value):
        raise ValueError(f"{name}={value!r} must be None or numbers such as (0.05, 0.5, 0.95).")
    for each in value:
        check_quantile(name, float(each))


def insensitive(problem: Problem, epsilon: float, C: float) -> IntervalProblem:
    """State the ε-insensitive loss of every output."""
    assert problem.regression is not None
    target = problem.regression.of(np.arange(problem.n_problems))
    price = np.broadcast_to(C * problem.weight[:, None], target.shape)
    return _stated(problem, target - epsilon, target + epsilon, price, price)


def of_quantiles(problem: Problem, quantiles: Sequence[float], C: float) -> IntervalProblem:
    """State the loss of each quantile for each output, quantiles running fastest."""
    assert problem.regression is not None
    levels, n_outputs = np.sort(np.asarray(quantiles, dtype=np.float64)), problem.n_problems
    target = np.repeat(problem.regression.of(np.arange(n_outputs)), len(levels), axis=1)
    level = np.tile(levels, n_outputs)
    price = C * problem.weight[:, None]
    return _stated(problem, target, target, price * level, price * (1.0 - level))


def _stated(problem: Problem, low: Any, high: Any, below: Any, above: Any) -> IntervalProblem:
    pull = np.zeros(low.shape[1])
    ends = (problem.rows, problem.kernel, low, high, below, above)
    return IntervalProblem(*ends, pull, problem.number)
