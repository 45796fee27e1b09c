"""Checks of an estimator's parameters, with errors that name the parameter and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_positive(name: str, value: Any) -> float:
    """Return a positive finite number, or raise."""
    number = check_number(name, value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name}={value!r} must be positive and finite; give {name} > 0.")
    return number


def check_not_negative(name: str, value: Any) -> float:
    """Return a finite number that is not negative, or raise."""
    number = check_number(name, value)
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"{name}={value!r} must not be negative; give {name} >= 0.")
    return number


def check_number(name: str, value: Any) -> float:
    """Return a real number, or raise."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}.")
    return float(value)


def check_count(name: str, value: Any, *, none: bool = False, least: int = 1) -> int | None:
    """Return a whole number of at least `least` (or None where allowed), or raise."""
    if value is None and none:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        allowed = " or None" if none else ""
        raise TypeError(f"{name}={value!r} must be a whole number{allowed}.")
    if value < least:
        raise ValueError(f"{name}={value!r} must be at least {least}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of the choices, or raise."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r} is not known; use one of {listed}.")
    return value


def check_gamma(gamma: Any) -> None:
    """Raise unless `gamma` is a known word or a positive number."""
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "auto", "mean_distance"))
    else:
        check_positive("gamma", gamma)
