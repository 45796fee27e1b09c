"""What no classifier can learn from is refused by name; never a hang."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.classifier_ways import (
    BALLS,
    KINDS,
    REDUCED,
    WAYS,
    every,
    machine,
    renamed,
)
from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    MarginClassifier,
    MarginClassifierCV,
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
)

# A few steps are enough here.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Sparse\w+ stopped before its rule.*\(max_iter=\d+ reached"
)

THAT_TAKE_ANY_KERNEL = ["core", "ball", "exact", "span", "cells", "search"]


def _rows(n=60, n_features=3):
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


# Parameters.

BAD_PARAMETERS = [
    {"C": 0},
    {"C": -1.0},
    {"C": np.nan},
    {"C": np.inf},
    {"C": "1"},
    {"C": None},
    {"C": True},
    {"tol": -1e-3},
    {"tol": np.nan},
    {"tol": "small"},
    {"kernel": "rfb"},
    {"kernel": None},
    {"kernel": 3},
    {"kernel_params": {"gamma": 1.0}},
    {"gamma": 0},
    {"gamma": -0.5},
    {"gamma": np.nan},
    {"gamma": "wide"},
    {"gamma": None},
    {"degree": 0},
    {"degree": 2.5},
    {"coef0": np.nan, "kernel": "poly"},
    {"coef0": "one", "kernel": "poly"},
    {"max_iter": 0},
    {"max_iter": 1.5},
    {"max_vectors": "many"},
    {"max_vectors": 0},
    {"max_vectors": 2.5},
    {"max_time": 0},
    {"max_time": -1},
    {"max_time": "1h"},
    {"memory": "lots"},
    {"memory": 0},
    {"memory": -5},
    {"memory": None},
    {"memory": np.nan},
    {"memory": np.inf},
    {"n_jobs": 0},
    {"n_jobs": 1.5},
    {"n_jobs": "two"},
    {"class_weight": {0: 0.0, 1: 1.0}},
    {"class_weight": {0: -1.0, 1: 1.0}},
    {"class_weight": {0: np.nan, 1: 1.0}},
    {"class_weight": {5: 1.0}},
    {"class_weight": "even"},
    {"random_state": "lucky"},
    {"verbose": "loud"},
]

CLASSIFIERS = [
    CoreVectorClassifier(),
    BallVectorClassifier(),
    MarginClassifier(),
    MarginClassifier(engine="span"),
    MarginClassifier(engine="cells", cells=20),
    MarginClassifierCV([1.0], cv=2),
    SparseMarginClassifier(3),
    SparseFisherClassifier(3),
    ReducedSVMClassifier(3),
    ReducedSetClassifier(n_vectors=3),
]


def _is_checked(estimator, parameters):
    """Whether an estimator has a parameter and looks at it."""
    if not set(parameters) <= set(estimator.get_params(deep=False)):
        return False
    if isinstance(estimator, MarginClassifierCV):
        return parameters != {"max_time": "1h"}  # which is added to a clock before
    # Cells are the same for any seed.
    return getattr(estimator, "engine", None) != "cells" or "random_state" not in parameters


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_a_bad_parameter_is_named_in_the_error(estimator):
    X, y = _rows()
    checked = [bad for bad in BAD_PARAMETERS if _is_checked(estimator, bad)]
    assert len(checked) >= 10
    for parameters in checked:
        name = next(iter(parameters))
        # scikit-learn's own words for a bad seed do not name the parameter, but say it in full.
        pattern = "seed" if name == "random_state" else rf"\b{name}\b"
        with pytest.raises((ValueError, TypeError), match=pattern):
            clone(estimator).set_params(**parameters).fit(X, y)


@every([way for way in WAYS if way != "reduced set"])  # whose SVC has scikit-learn's words
def test_a_misspelt_kernel_is_guessed(way):
    X, y = _rows()
    with pytest.raises(ValueError, match="did you mean 'rbf'"):
        machine(way, kernel="rfb").fit(X, y)


@every(KINDS)
def test_a_bad_parameter_does_not_harm_a_fitted_machine(way):
    X, y = _rows()
    fitted = machine(way).fit(X, y)
    before = fitted.decision_function(X)
    name = "n_jobs" if way in REDUCED else renamed(way, "C")
    bad = {name: 0 if way in REDUCED else [-1.0] if way.startswith("search") else -1.0}
    with pytest.raises(ValueError, match=name):
        fitted.set_params(**bad).fit(X[:20] * 2, y[:20])
    fitted.set_params(n_jobs=1)
    assert_array_equal(fitted.decision_function(X), before)


# Rows and labels.


@every(KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_refused(way, value):
    X, y = _rows()
    fitted = machine(way).fit(X, y)
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        fitted.predict(X)
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        machine(way).fit(X, y)


NO_PROBLEMS = [
    (lambda X, y: (X, np.zeros_like(y)), "(?i)class"),
    (lambda X, y: (X[:1], y[:1]), "sample|two classes"),
    (lambda X, y: (X[:0], y[:0]), "sample"),
    (lambda X, y: (X[:, :0], y), "feature"),
    (lambda X, y: (X[:, 0], y), "2D array"),
    (lambda X, y: (X[None], y), "dim"),
    (lambda X, y: (X + 1j, y), "(?i)complex"),
    (lambda X, y: (np.full(X.shape, "a"), y), "numeric"),
    (lambda X, y: (X, X[:, 0]), "continuous"),
    (lambda X, y: (X, np.where(y == 1, np.nan, 0.0)), "y contains NaN"),
    (lambda X, y: (X, None), "y"),
    (lambda X, y: (X, y[:-1]), "inconsistent"),
    (lambda X, y: (X, np.column_stack([y, 1 - y])), "y should be a 1d array"),
]


@every()
def test_input_that_is_no_classification_problem_is_refused(way):
    for change, pattern in NO_PROBLEMS:
        with pytest.raises(ValueError, match=pattern):
            machine(way).fit(*change(*_rows()))


@every()
def test_bad_weights_are_refused_by_name(way):
    X, y = _rows()
    one = np.ones(len(X))
    for weight in (-one, one * np.nan, one[:5], 0 * one, one * np.inf, np.c_[one, one]):
        with pytest.raises(ValueError, match=r"(?i)sample.weight"):
            machine(way).fit(X, y, sample_weight=weight)


# A reduced set leaves C and the weights to the machine that it reduces.
@every([way for way in WAYS if way not in REDUCED or "svm" in way])
def test_weights_or_a_C_that_no_arithmetic_holds_are_refused(way):
    X, y = _rows()
    for size in (1e155, 1e300, 1e-200):
        with pytest.raises(ValueError, match=r"C=.*sample_weight.*rescale C or sample_weight"):
            machine(way).fit(X, y, sample_weight=np.full(len(X), size))
    with pytest.raises(ValueError, match=r"C=1e-200 times sample_weight.*rescale"):
        machine(way, C=1e-200).fit(X, y)


# Kernels.


@every(THAT_TAKE_ANY_KERNEL)
def test_a_precomputed_matrix_of_the_wrong_shape_is_refused(way):
    X, y = _rows()
    if way == "cells":
        with pytest.raises(ValueError, match=r"kernel='precomputed'.*engine='span'"):
            machine(way, kernel="precomputed").fit(rbf_kernel(X), y)
        return
    with pytest.raises(ValueError, match=r"precomputed.*square"):
        machine(way, kernel="precomputed").fit(X, y)
    fitted = machine(way, kernel="precomputed").fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match="60"):
        fitted.predict(rbf_kernel(X, X[:10]))


@every(THAT_TAKE_ANY_KERNEL)
def test_a_kernel_of_the_wrong_shape_is_refused(way):
    X, y = _rows()
    for kernel in (lambda A, B: np.ones(len(A)), lambda A, B: np.ones((len(A) + 1, len(B)))):
        with pytest.raises(ValueError, match=r"kernel=.*shape"):
            machine(way, kernel=kernel).fit(X, y)


def _infinite_for_large_rows(A, B):
    large = (A[:, :1] > 5) | (B[:, :1] > 5).T
    with np.errstate(invalid="ignore"):
        return np.where(large, np.inf, rbf_kernel(A, B))


@every(["core", "ball", "exact", "span"])
@pytest.mark.parametrize("max_vectors", ["all", 50])
@pytest.mark.parametrize(
    "parameters", [{"kernel": _infinite_for_large_rows}, {"kernel": "poly", "gamma": 1.0}]
)
def test_a_kernel_that_overflows_is_refused_also_outside_the_core(way, max_vectors, parameters):
    X, y = _rows(200)
    X[11] = 1e150
    if max_vectors == "all":
        max_vectors = None if way in BALLS else "auto"
    for seed in range(3):
        limited = machine(way, max_vectors=max_vectors, tol=1e-2, **parameters)
        with pytest.raises(ValueError, match=r"kernel.*infinite"):
            limited.set_params(random_state=seed).fit(X, y)


@every(THAT_TAKE_ANY_KERNEL)
def test_a_kernel_of_undefined_values_is_refused(way):
    X, y = _rows()
    with pytest.raises(ValueError, match=r"kernel.*undefined"):
        machine(way, kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)


@every(THAT_TAKE_ANY_KERNEL)
def test_a_kernel_that_is_far_from_positive_is_refused(way):
    X, y = _rows()
    for growth in ("batch", "one") if way == "core" else (None,):
        own = {"max_time": 5.0} | ({"growth": growth} if growth else {})
        for kernel in (lambda A, B: -10.0 * (A @ B.T), lambda A, B: -10.0 * rbf_kernel(A, B)):
            with pytest.raises(ValueError, match="kernel"):
                machine(way, kernel=kernel, **own).fit(X, y)
        if way != "cells":
            with pytest.raises(ValueError, match="kernel"):
                machine(way, kernel="precomputed", **own).fit(-10.0 * np.eye(len(X)), y)


# Prediction.


@every()
def test_prediction_before_the_fit_is_an_error(way):
    X, _ = _rows()
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError, match=type(WAYS[way]).__name__):
            getattr(machine(way), method)(X)


@every(KINDS)
def test_prediction_of_rows_with_other_columns_is_an_error(way):
    X, y = _rows()
    fitted = machine(way).fit(X, y)
    assert fitted.n_features_in_ == 3
    for other in (X[:, :2], np.column_stack([X, X])):
        with pytest.raises(ValueError, match=r"features.*3 features"):
            fitted.predict(other)
    with pytest.raises(ValueError, match="2D array"):
        fitted.predict(X[0])
