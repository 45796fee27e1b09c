"""The package: what an import costs, its public names, and what its objects promise."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

import widemargin
from widemargin import BallVectorClassifier, CoreVectorClassifier

SOURCES = Path(widemargin.__file__).parent
both_classifiers = pytest.mark.parametrize(
    "Classifier", [CoreVectorClassifier, BallVectorClassifier]
)


def _digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:150] / 16.0, y[:150]


def _python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Imports.


def test_the_import_leaves_heavy_packages_alone():
    heavy = {"numba", "llvmlite", "matplotlib", "dask", "pandas", "torch"}
    code = (
        "import sys, sklearn.base; before = set(sys.modules); import widemargin; "
        "print(*(set(sys.modules) - before))"
    )
    loaded = set(_python(code).split())
    assert "widemargin.classifier" in loaded
    assert not heavy & loaded


def test_the_import_is_cheap_beyond_scikit_learn():
    code = (
        "from time import perf_counter; import sklearn.base, sklearn.utils.multiclass; "
        "begun = perf_counter(); import widemargin; print(perf_counter() - begun)"
    )
    assert min(float(_python(code)) for _ in range(2)) < 1.5


def test_the_public_names_exist_and_are_sorted():
    assert widemargin.__all__ == sorted(widemargin.__all__)
    assert {"CoreVectorClassifier", "BallVectorClassifier"} <= set(widemargin.__all__)
    for name in widemargin.__all__:
        assert inspect.getdoc(getattr(widemargin, name))
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", widemargin.__version__)


def test_every_module_has_a_docstring_and_the_names_it_lists():
    found = [m.name for m in pkgutil.walk_packages(widemargin.__path__, "widemargin.")]
    assert "widemargin.classifier" in found
    for name in found:
        module = importlib.import_module(name)
        assert module.__doc__, name
        for public in getattr(module, "__all__", ()):
            assert hasattr(module, public), f"{name}.{public}"


def test_no_private_module_of_scikit_learn_is_imported():
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 10
    private = re.compile(r"(from|import) sklearn\.(\w+\.)*_\w+")
    assert private.search("from sklearn.utils._param_validation import Interval")
    guilty = [str(file) for file in files if private.search(file.read_text(encoding="utf-8"))]
    assert guilty == []


def test_the_package_is_marked_as_typed():
    assert (SOURCES / "py.typed").is_file()


# Storing machines.

MACHINES = [
    {},
    {"kernel": "linear"},
    {"kernel": "laplacian", "gamma": "mean_distance"},
    {"class_weight": "balanced", "random_state": 0},
]


@both_classifiers
@pytest.mark.parametrize("parameters", MACHINES, ids=str)
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_pickled_machine_gives_the_same_bits(Classifier, parameters, as_stored):
    X, y = _digits()
    machine = Classifier(tol=1e-2, **parameters).fit(as_stored(X), y)
    copy = pickle.loads(pickle.dumps(machine))
    assert_array_equal(copy.decision_function(X), machine.decision_function(X))
    assert_array_equal(copy.predict(X), machine.predict(X))
    assert copy.certificate_ == machine.certificate_
    assert copy.get_params() == machine.get_params()


@both_classifiers
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_machine_stored_with_skops_gives_the_same_bits(Classifier, as_stored):
    skops = pytest.importorskip("skops.io")
    X, y = _digits()
    machine = Classifier(tol=1e-2).fit(as_stored(X), np.array(["a", "b", "c"])[y])
    stored = skops.dumps(machine)
    unknown = skops.get_untrusted_types(data=stored)
    # Nothing of the fitted state is foreign to skops except our own classes.
    assert all(name.startswith(("widemargin.", "scipy.sparse.")) for name in unknown)
    copy = skops.loads(stored, trusted=unknown)
    assert_array_equal(copy.decision_function(X), machine.decision_function(X))
    assert_array_equal(copy.predict(X), machine.predict(X))
    assert str(copy.certificate_) == str(machine.certificate_)


@both_classifiers
def test_the_fitted_state_is_plain_arrays_numbers_and_strings(Classifier):
    X, y = _digits()
    machine = Classifier(tol=1e-2).fit(X, y)
    plain = (np.ndarray, np.generic, int, float, str, bool, type(None), widemargin.Certificate)
    fitted = {
        name: value for name, value in vars(machine).items() if name not in machine.get_params()
    }
    assert {"support_", "dual_coef_", "intercept_", "classes_", "gamma_"} <= set(fitted)
    for name, value in fitted.items():
        assert isinstance(value, plain), name
        assert not (isinstance(value, np.ndarray) and value.dtype == object), name


def test_a_pickle_does_not_hold_the_training_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    X[:, 0] += np.where(np.arange(3000) % 2, 4.0, -4.0)
    machine = CoreVectorClassifier(gamma=0.01, tol=1e-2).fit(X, np.arange(3000) % 2)
    assert len(machine.support_) < 1500
    assert len(pickle.dumps(machine)) < 1.2 * 8 * len(machine.support_) * 32 + 20_000 < X.nbytes


# Parameters.


@both_classifiers
def test_parameters_can_be_read_and_set(Classifier):
    machine = Classifier(3.0, kernel="poly", degree=4)
    parameters = machine.get_params()
    assert (parameters["C"], parameters["kernel"], parameters["degree"]) == (3.0, "poly", 4)
    assert set(parameters) == set(inspect.signature(Classifier).parameters)
    assert machine.set_params(C=0.5, tol=1e-2) is machine
    assert (machine.C, machine.tol) == (0.5, 1e-2)
    with pytest.raises(ValueError, match="no_such"):
        machine.set_params(no_such=1)


@both_classifiers
def test_every_parameter_but_C_is_given_by_name(Classifier):
    with pytest.raises(TypeError, match="positional"):
        Classifier(1.0, "linear")


@both_classifiers
def test_every_parameter_is_documented_with_its_default(Classifier):
    documentation = inspect.getdoc(Classifier)
    for name, parameter in inspect.signature(Classifier).parameters.items():
        entry = re.search(rf"^{name} : (.*)$", documentation, re.MULTILINE)
        assert entry, name
        written = ast.literal_eval(entry[1].split("default=")[1])
        assert written == parameter.default, name


@both_classifiers
def test_the_repr_shows_what_differs_from_the_defaults(Classifier):
    assert repr(Classifier()) == f"{Classifier.__name__}()"
    assert repr(Classifier(C=2.0, kernel="linear")) == (
        f"{Classifier.__name__}(C=2.0, kernel='linear')"
    )
    X, y = _digits()
    assert Classifier.__name__ in Classifier(tol=1e-2).fit(X, y)._repr_html_()
