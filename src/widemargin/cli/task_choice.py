"""Classes, numbers or outliers: what a target asks for, and the estimator for it."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_outlier_detector, is_regressor

import widemargin
from widemargin.cli.refusal import ExitCode, Refusal

__all__ = ["TASKS", "checked_target", "chosen_estimator", "task_of_estimator", "task_of_target"]

TASKS = ("classes", "numbers", "outliers")
_USUAL = {"classes": "MarginClassifier", "numbers": "MarginRegressor", "outliers": "MarginOneClass"}
# Whole numbers with up to so many different values are taken for classes.
_FEW = 20
# Who chooses the parameters.
_SEARCHES = {"classes": "MarginClassifierCV", "numbers": "MarginRegressorCV"}


def task_of_target(y: NDArray[Any]) -> tuple[str, str]:
    """Return the task that a target asks for, and why.

    Examples
    --------
    >>> import numpy as np
    >>> task_of_target(np.array(["a", "b", "a"]))
    ('classes', 'has texts')
    >>> task_of_target(np.array([0.5, 1.25, 3.0]))
    ('numbers', 'has numbers with fractions')
    """
    if y.dtype.kind not in "iuf":
        return "classes", "has truth values" if y.dtype.kind == "b" else "has texts"
    different = np.unique(y)
    if (different != np.rint(different)).any():
        return "numbers", "has numbers with fractions"
    if len(different) <= _FEW:
        return "classes", f"has whole numbers, only {len(different)} different ones"
    return "numbers", f"has {len(different):,} different whole numbers"


def checked_target(y: pd.Series, task: str | None, name: str, where: Any) -> NDArray[Any]:
    """Return the target of rows that have one: numbers, truth values or texts.

    Parameters
    ----------
    y : Series
        Values, none of them missing.
    task : str or None
        What is asked for.
    name : str
        Of the column, for messages.
    where : callable
        Gives the place of a row in words, the file included.
    """
    if pd.api.types.is_bool_dtype(y) or y.map(lambda value: isinstance(value, bool)).all():
        return np.asarray(y.to_numpy(dtype=bool))
    numeric = pd.to_numeric(y, errors="coerce")
    if task == "numbers" and numeric.isna().any():
        row = numeric.isna().idxmax()
        raise Refusal(
            f"{where(int(row))}, column {name!r}: {str(y[row])[:60]!r} is text where a number is "
            "expected; correct it, or use --task classes.",
            ExitCode.DATA,
        )
    if numeric.isna().any() or pd.api.types.is_string_dtype(y):
        return np.asarray(y.map(str).to_numpy(dtype=str))
    found: NDArray[Any] = numeric.to_numpy()
    if np.isinf(found.astype(np.float64)).any():
        row = y.index[int(np.isinf(found).argmax())]
        raise Refusal(
            f"{where(int(row))}, column {name!r}: {y[row]} is not a finite number.", ExitCode.DATA
        )
    return found.astype(np.int64) if found.dtype.kind == "f" and _are_whole(found) else found


def _are_whole(values: NDArray[Any]) -> bool:
    return bool((values == np.rint(values)).all() and (np.abs(values) < 2**53).all())


def task_of_estimator(estimator: Any) -> str | None:
    """Return what an estimator or a pipeline is for; None for projections."""
    if is_classifier(estimator):
        return "classes"
    if is_regressor(estimator):
        return "numbers"
    return "outliers" if is_outlier_detector(estimator) else None


def chosen_estimator(
    task: str, name: str | None, search: bool, given: list[str], settings: dict[str, Any]
) -> Any:
    """Return the estimator for a task, with its parameters.

    Parameters
    ----------
    task : {"classes", "numbers", "outliers"}
        What it is for.
    name : str or None
        Its name; None is the usual one.
    search : bool
        Whether C and the kernel are to be searched for.
    given : list of str
        Parameters as ``name=value``.
    settings : dict
        Parameters by options of their own, such as "n_jobs"; None where the option was not given.
    """
    searches = _SEARCHES.get(task)
    if search and (searches is None or name not in (None, searches)):
        raise Refusal(
            f"--search is there for classes and numbers, by {' and '.join(_SEARCHES.values())}; "
            "leave it out, or give parameters such as --param C=10.",
            ExitCode.USAGE,
        )
    estimator = named_estimator((searches if search else name) or _USUAL[task])()
    own = task_of_estimator(estimator)
    if own != task:
        raise Refusal(
            f"--estimator {name} is for {own}, but the task is {task}; say --task {own}, or leave "
            "--estimator out.",
            ExitCode.USAGE,
        )
    known = estimator.get_params(deep=False)
    options = {"n_jobs": "--jobs", "max_time": "--max-time", "device": "--device"}
    for key, value in settings.items():
        if value is None:
            continue
        if key in known:
            estimator.set_params(**{key: value})
        elif key != "random_state":
            raise Refusal(
                f"{type(estimator).__name__} has no {options.get(key, '--' + key)}.", ExitCode.USAGE
            )
    for text in given:
        estimator.set_params(**_parameter(text, estimator))
    return estimator


def named_estimator(name: str) -> Any:
    """Return a class of ours by its name."""
    names = [
        each
        for each in widemargin.__all__
        if isinstance(getattr(widemargin, each), type)
        and issubclass(getattr(widemargin, each), BaseEstimator)
        and task_of_estimator(getattr(widemargin, each)()) is not None
    ]
    if name not in names:
        raise Refusal(
            f"--estimator {name} is not known; there are {', '.join(names)}.", ExitCode.USAGE
        )
    return getattr(widemargin, name)


def _parameter(text: str, estimator: Any) -> dict[str, Any]:
    """Return a parameter that is written as ``name=value``."""
    name, equals, value = text.partition("=")
    known = sorted(estimator.get_params(deep=False))
    if not equals or name not in known:
        raise Refusal(
            f"--param {text} is not name=value with a parameter of {type(estimator).__name__}; "
            f"there are {', '.join(known)}.",
            ExitCode.USAGE,
        )
    try:
        return {name: ast.literal_eval(value)}
    except (ValueError, SyntaxError):
        return {name: value}
