"""Parameters of estimators: declared once, as fields of a dataclass, each with its check.

    @parameters
    class Machine(KernelEstimator):
        C: float = positional(1.0, positive)
        tol: float = keyword(1e-3, not_negative)

The dataclass writes ``__init__``, as scikit-learn wants it: every parameter by name, stored as it
is. Values are checked when a fit begins, with errors that name the parameter and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from widemargin.span.landmarks import as_strategy

Check = Callable[[str, Any], Any]
Class = TypeVar("Class", bound=type)


def positional(default: Any, check: Check | None = None) -> Any:
    """Declare a parameter that may also be given by its place."""
    return field(default=default, kw_only=False, metadata={"check": check})


def keyword(default: Any, check: Check | None = None) -> Any:
    """Declare a parameter that is given by its name."""
    return field(default=default, kw_only=True, metadata={"check": check})


@dataclass_transform(field_specifiers=(positional, keyword))
def parameters(cls: Class) -> Class:
    """Make a class whose fields are parameters; comparison and text stay scikit-learn's."""
    dataclass(eq=False, repr=False)(cls)
    return cls


def check_parameters(estimator: Any) -> None:
    """Raise if a parameter has a value that its check does not accept."""
    for each in fields(estimator):
        check = each.metadata.get("check")
        if check is not None:
            check(each.name, getattr(estimator, each.name))


# Checks: each takes the name and the value of a parameter.


def number(name: str, value: Any) -> float:
    """Return a real number, or raise."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}.")
    return float(value)


def positive(name: str, value: Any) -> float:
    """Return a positive finite number, or raise."""
    found = number(name, value)
    if not (np.isfinite(found) and found > 0):
        raise ValueError(f"{name}={value!r} must be positive and finite; give {name} > 0.")
    return found


def not_negative(name: str, value: Any) -> float:
    """Return a finite number that is not negative, or raise."""
    found = number(name, value)
    if not (np.isfinite(found) and found >= 0):
        raise ValueError(f"{name}={value!r} must not be negative; give {name} >= 0.")
    return found


def verbosity(name: str, value: Any) -> None:
    """Raise unless a value says how much to print."""
    if not isinstance(value, bool):
        number(name, value)


def count(name: str, value: Any) -> int:
    """Return a whole number of at least 1, or raise."""
    return check_count(name, value)


def check_count(name: str, value: Any, *, least: int = 1, also: str = "") -> int:
    """Return a whole number of at least `least`, or raise; `also` says what else is allowed."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} must be a whole number{also}.")
    if value < least:
        raise ValueError(f"{name}={value!r} must be at least {least}.")
    return int(value)


def count_or_none(name: str, value: Any) -> None:
    """Raise unless a value is a whole number of at least 1, or None."""
    if value is not None:
        check_count(name, value, also=" or None")


def at_least(least: int, *, none: bool = False) -> Check:
    """Return the check for whole numbers that are not below `least`, or None where allowed."""

    def check(name: str, value: Any) -> None:
        if not (none and value is None):
            check_count(name, value, least=least, also=" or None" if none else "")

    return check


def choice(*choices: str) -> Check:
    """Return the check for one of several words."""

    def check(name: str, value: Any) -> str:
        return check_choice(name, value, choices)

    return check


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return one of the choices, or raise."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(each) for each in choices)
        raise ValueError(f"{name}={value!r} is not known; use one of {listed}.")
    return value


def word_or(words: tuple[str, ...], check: Check) -> Check:
    """Return the check for one of some words, or for what another check accepts."""

    def either(name: str, value: Any) -> None:
        if isinstance(value, str):
            check_choice(name, value, words)
        else:
            check(name, value)

    return either


def none_or(check: Check) -> Check:
    """Return the check for None, or for what another check accepts."""

    def either(name: str, value: Any) -> None:
        if value is not None:
            check(name, value)

    return either


def vectors_or_share(name: str, value: Any) -> None:
    """Raise unless a value is a number of vectors, or a share of an SVM's support vectors."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        check_count(name, value)
    elif not 0.0 < number(name, value) <= 1.0:
        raise ValueError(
            f"{name}={value!r} must be a whole number, or a share between 0 and 1 of the exact "
            "machine's support vectors."
        )


def size_or_rows(name: str, value: Any) -> None:
    """Raise unless a value is "auto", a number of at least two, or something like rows."""
    if isinstance(value, str) or not np.iterable(value):
        word_or(("auto",), at_least(2))(name, value)


def landmarks(name: str, value: Any) -> None:
    """Raise unless a value can say where the vectors of a span come from."""
    if isinstance(value, str):
        as_strategy(value, 0)


gamma = word_or(("scale", "auto", "mean_distance"), positive)
"""The check for kernel widths."""


def shrinkage(name: str, value: Any) -> None:
    """Raise unless a value is None, "auto" or a number in [0, 1]."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    if isinstance(value, str) or not 0.0 <= number(name, value) <= 1.0:
        raise ValueError(
            f"{name}={value!r} must be 'auto' (Ledoit and Wolf), None, or a number from 0 "
            "(none) to 1 (a multiple of the identity)."
        )
