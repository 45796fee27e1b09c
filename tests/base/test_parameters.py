"""Parameters that are declared once, and errors that name the parameter and the remedy."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from widemargin.base import parameters as check
from widemargin.base.parameters import check_parameters, keyword, parameters, positional


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2.0), np.int64(3)])
def test_numbers_of_any_kind_become_floats(value):
    found = check.positive("C", value)
    assert type(found) is float
    assert found == float(value)


@pytest.mark.parametrize("value", ["1", None, True, np.nan, np.inf, 0.0, -1.0, [1.0]])
def test_what_is_not_positive_is_refused_with_its_name_and_value(value):
    with pytest.raises((TypeError, ValueError), match="C="):
        check.positive("C", value)


def test_zero_is_not_negative():
    assert check.not_negative("tol", 0) == 0.0
    with pytest.raises(ValueError, match="tol >= 0"):
        check.not_negative("tol", -1e-9)


def test_counts_are_whole_numbers():
    assert check.count("max_iter", np.int32(7)) == 7
    for wrong in (1.0, True, "3"):
        with pytest.raises(TypeError, match="whole number"):
            check.count("max_iter", wrong)
    with pytest.raises(ValueError, match="at least 1"):
        check.count("max_iter", 0)
    assert check.at_least(2, none=True)("max_vectors", None) is None
    with pytest.raises(ValueError, match="at least 2"):
        check.at_least(2)("max_vectors", 1)
    with pytest.raises(TypeError, match="whole number or None"):
        check.count_or_none("max_vectors", 1.5)


def test_choices_are_listed():
    assert check.choice("gap", "ball")("stopping", "gap") == "gap"
    with pytest.raises(ValueError, match="stopping='gab' is not known; use one of 'gap', 'ball'"):
        check.choice("gap", "ball")("stopping", "gab")


def test_gamma_is_a_word_or_positive():
    check.gamma("gamma", "scale")
    check.gamma("gamma", 0.5)
    for wrong in ("wide", 0, None):
        with pytest.raises((TypeError, ValueError), match="gamma"):
            check.gamma("gamma", wrong)


def test_a_word_or_something_else_and_none_or_something_else():
    either = check.word_or(("auto",), check.count)
    either("max_vectors", "auto")
    either("max_vectors", 3)
    with pytest.raises(ValueError, match="'auto'"):
        either("max_vectors", "many")
    perhaps = check.none_or(check.positive)
    perhaps("max_time", None)
    with pytest.raises(TypeError, match="max_time='1h' must be a number"):
        perhaps("max_time", "1h")


def test_vectors_are_a_number_or_a_share():
    check.vectors_or_share("n_vectors", 5)
    check.vectors_or_share("n_vectors", 0.5)
    for wrong in (0, 1.5, -0.1, "many", True):
        with pytest.raises((TypeError, ValueError), match="n_vectors"):
            check.vectors_or_share("n_vectors", wrong)


@parameters
class Base(BaseEstimator):
    """A base with a parameter."""

    memory: int = keyword(10, check.count)


@parameters
class Machine(Base):
    """A machine with more of them."""

    C: float = positional(1.0, check.positive)
    memory: int = keyword(20, check.count)
    tol: float = keyword(1e-3, check.not_negative)


def test_declared_parameters_make_the_constructor_that_scikit_learn_wants():
    signature = inspect.signature(Machine)
    assert list(signature.parameters) == ["C", "memory", "tol"]
    kinds = [each.kind.name for each in signature.parameters.values()]
    assert kinds == ["POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY", "KEYWORD_ONLY"]
    machine = Machine(2.0, tol=0.1)
    assert machine.get_params() == {"C": 2.0, "memory": 20, "tol": 0.1}
    assert clone(machine).get_params() == machine.get_params()
    assert repr(machine) == "Machine(C=2.0, tol=0.1)"
    assert machine != clone(machine)
    with pytest.raises(TypeError):
        Machine(2.0, 5)


def test_values_are_checked_when_that_is_asked_for_and_not_before():
    machine = Machine(C=-1.0, memory=0)
    with pytest.raises(ValueError, match=r"(memory=0|C=-1\.0)"):
        check_parameters(machine)
    check_parameters(machine.set_params(C=1.0, memory=1))
