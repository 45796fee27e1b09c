"""Checks of parameters that only discriminants have: each takes a name and a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.base import parameters as check


def number_of_directions(name: str, value: Any) -> None:
    """Raise unless a value is a number of directions, "auto", None, or a share of a distance."""
    if not isinstance(value, float):
        check.word_or(("auto",), check.count_or_none)(name, value)
    elif not 0.0 < value <= 1.0:
        raise ValueError(
            f"{name}={value!r} must be a whole number, 'auto', or a share between 0 and 1 of the "
            "smallest distance between classes."
        )


def sharpness(name: str, value: Any) -> None:
    """Raise unless a value is a number that is not negative, infinity among them."""
    if not check.number(name, value) >= 0:
        raise ValueError(f"{name}={value!r} must not be negative; 0 is LDA.")


def weight_of_errors(name: str, value: Any) -> None:
    """Raise unless a value is a positive number, infinity among them."""
    if not check.number(name, value) > 0:
        raise ValueError(f"{name}={value!r} must be positive; infinite {name} allows no errors.")


def share(name: str, value: Any) -> None:
    """Raise unless a value is above 0 and at most 1."""
    if not 0.0 < check.number(name, value) <= 1.0:
        raise ValueError(f"{name}={value!r} must be a share: give 0 < {name} <= 1.")


def truth(name: str, value: Any) -> None:
    """Raise unless a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} must be True or False.")
