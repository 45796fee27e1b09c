"""Parameters of every estimator: read, set, documented with their defaults, and shown."""

import ast
import inspect
import re

import pytest
from sklearn.base import BaseEstimator

import widemargin
from tests.reference.data import digits

ESTIMATORS = [
    found
    for found in (getattr(widemargin, name) for name in widemargin.__all__)
    if isinstance(found, type) and issubclass(found, BaseEstimator)
]
every_estimator = pytest.mark.parametrize("Estimator", ESTIMATORS)


def test_all_estimators_are_here():
    others = {"Certificate", "load", "report", "save"}
    assert {each.__name__ for each in ESTIMATORS} == set(widemargin.__all__) - others


@every_estimator
def test_parameters_can_be_read_and_set(Estimator):
    estimator = Estimator(memory="3MB", n_jobs=4)
    parameters = estimator.get_params()
    assert (parameters["memory"], parameters["n_jobs"]) == ("3MB", 4)
    assert set(parameters) == set(inspect.signature(Estimator).parameters)
    assert estimator.set_params(memory="5MB", n_jobs=None) is estimator
    assert (estimator.memory, estimator.n_jobs) == ("5MB", None)
    with pytest.raises(ValueError, match="no_such"):
        estimator.set_params(no_such=1)


@every_estimator
def test_parameters_are_given_by_name_but_for_the_first(Estimator):
    known = list(inspect.signature(Estimator).parameters.values())
    positional = [one.name for one in known if one.kind is one.POSITIONAL_OR_KEYWORD]
    searches = {"MarginClassifierCV": "gammas", "MarginRegressorCV": "gammas"}
    two = searches | {"ReducedSetClassifier": "n_vectors"}
    assert positional[1:] == ([two[Estimator.__name__]] if Estimator.__name__ in two else [])
    with pytest.raises(TypeError, match="positional"):
        Estimator(1.0, 2, 3)


@every_estimator
def test_every_parameter_is_documented_with_its_default(Estimator):
    documentation = inspect.getdoc(Estimator)
    for name, parameter in inspect.signature(Estimator).parameters.items():
        entry = re.search(rf"^{name} : (.*)$", documentation, re.MULTILINE)
        assert entry, name
        written = entry[1].split("default=")[1]
        default = float(written) if written == "inf" else ast.literal_eval(written)
        assert default == parameter.default, name


@every_estimator
def test_the_repr_shows_what_differs_from_the_defaults(Estimator):
    name = Estimator.__name__
    assert repr(Estimator()) == f"{name}()"
    assert repr(Estimator(memory="3MB", n_jobs=4)) == f"{name}(memory='3MB', n_jobs=4)"
    assert name in Estimator().fit(*digits(2, 40))._repr_html_()
