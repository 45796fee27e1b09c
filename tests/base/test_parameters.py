"""Parameters that are checked before a fit."""

from __future__ import annotations

import pytest

from widemargin.base.parameters import (
    check_choice,
    check_count,
    check_gamma,
    check_not_negative,
    check_positive,
)

# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_a_number_that_is_not_positive_is_refused_by_name_and_value(value):
    with pytest.raises(ValueError, match=rf"C={value!r} must be positive"):
        check_positive("C", value)


@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_what_is_no_number_is_refused_by_name(value):
    for check in (check_positive, check_not_negative, check_count):
        with pytest.raises(TypeError, match="C="):
            check("C", value)


def test_good_parameters_pass():
    assert check_positive("C", 2) == 2.0
    assert check_not_negative("tol", 0) == 0.0
    assert check_count("max_iter", 5) == 5
    assert check_count("max_vectors", None, none=True) is None
    assert check_choice("growth", "one", ("one", "batch")) == "one"
    for gamma in ("scale", "auto", "mean_distance", 0.5):
        check_gamma(gamma)


def test_bad_parameters_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="tol=-1"):
        check_not_negative("tol", -1)
    with pytest.raises(ValueError, match="max_iter=0 must be at least 1"):
        check_count("max_iter", 0)
    with pytest.raises(TypeError, match=r"max_iter=1\.5 must be a whole number"):
        check_count("max_iter", 1.5)
    with pytest.raises(ValueError, match=r"growth='two' .*'one', 'batch'"):
        check_choice("growth", "two", ("one", "batch"))
    with pytest.raises(ValueError, match="gamma='small'"):
        check_gamma("small")
    with pytest.raises(ValueError, match=r"gamma=-1\.0"):
        check_gamma(-1.0)
