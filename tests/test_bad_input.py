"""Bad input gives the right answer, or an error that names the parameter; never a hang."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.svm import (
    dual_value,
    l2svm_dual_exact,
    l2svm_objective_primal,
    signed_kernel,
)
from widemargin import BallVectorClassifier, CoreVectorClassifier, MarginClassifier


def ExactMargin(**parameters):
    return MarginClassifier(engine="exact", **parameters)


def SpanMargin(**parameters):
    return MarginClassifier(engine="span", **parameters)


BALLS = [CoreVectorClassifier, BallVectorClassifier]
every_classifier = pytest.mark.parametrize("Classifier", [*BALLS, ExactMargin, SpanMargin])


def _rows(n=60, n_features=3):
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


def _assert_near_optimum(machine, K, y, C, tol):
    """The machine's objective is within `tol` of the exact optimum over all rows, copies too."""
    sign = np.where(y == machine.classes_[1], 1.0, -1.0)
    Q = signed_kernel(K, sign, C)
    best = -dual_value(Q, l2svm_dual_exact(Q))
    beta = np.zeros(len(K))
    beta[machine.support_] = machine.dual_coef_[0]
    reached = l2svm_objective_primal(K, sign, C, None, beta, float(machine.intercept_[0]))
    assert best * (1 - 1e-6) <= reached <= best / (1 - tol) * (1 + 1e-6)


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


OF_BALLS = [{"epsilon": 0.0}, {"epsilon": "0.1"}, {"stopping": "never"}, {"stopping": None}]
OF_MARGINS = [
    {"engine": "fast"},
    {"engine": None},
    {"vectors": "good"},
    {"vectors": None},
    {"vectors": 7},
    {"vectors": np.ones(3)},
    {"max_vectors": 0},
    {"max_vectors": None},
]


@pytest.mark.parametrize(
    ("Classifier", "parameters"),
    [(ball, bad) for ball in BALLS for bad in [*BAD_PARAMETERS, *OF_BALLS, {"max_vectors": 1}]]
    + [(SpanMargin, bad) for bad in BAD_PARAMETERS]
    + [(MarginClassifier, bad) for bad in [*BAD_PARAMETERS, *OF_MARGINS]],
    ids=str,
)
def test_a_bad_parameter_is_named_in_the_error(Classifier, parameters):
    X, y = _rows()
    name = next(iter(parameters))
    # scikit-learn's own words for a bad seed do not name the parameter, but say it in full.
    pattern = "seed" if name == "random_state" else name
    with pytest.raises((ValueError, TypeError), match=pattern):
        Classifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    "parameters", [{"growth": "two"}, {"growth": None}, {"sample_size": 0}, {"sample_size": 5.5}]
)
def test_a_bad_parameter_of_growth_is_named_in_the_error(parameters):
    X, y = _rows()
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        CoreVectorClassifier(**parameters).fit(X, y)


def test_a_misspelt_kernel_is_guessed():
    X, y = _rows()
    with pytest.raises(ValueError, match="did you mean 'rbf'"):
        CoreVectorClassifier(kernel="rfb").fit(X, y)


@pytest.mark.parametrize("Classifier", [*BALLS, ExactMargin])
@pytest.mark.parametrize("limit", [{"max_vectors": 3}, {"memory": 100}], ids=str)
def test_room_for_fewer_vectors_than_classes_is_an_error(Classifier, limit):
    X, _ = _rows()
    with pytest.raises(ValueError, match=f"{next(iter(limit))}.*5 classes"):
        Classifier(**limit).fit(X, np.arange(len(X)) % 5)


@every_classifier
def test_a_bad_parameter_does_not_harm_a_fitted_machine(Classifier):
    X, y = _rows()
    machine = Classifier(tol=1e-2).fit(X, y)
    before = machine.decision_function(X)
    with pytest.raises(ValueError, match="C"):
        machine.set_params(C=-1.0).fit(X[:20] * 2, y[:20])
    assert_array_equal(machine.decision_function(X), before)


# Rows and labels.


@every_classifier
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_refused(Classifier, value):
    X, y = _rows()
    machine = Classifier(tol=1e-2).fit(X, y)
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        machine.predict(X)
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        Classifier().fit(X, y)


@every_classifier
@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda X, y: (X, np.zeros_like(y)), "(?i)class"),
        (lambda X, y: (X[:1], y[:1]), "sample"),
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
    ],
)
def test_input_that_is_no_classification_problem_is_refused(Classifier, change, pattern):
    with pytest.raises(ValueError, match=pattern):
        Classifier().fit(*change(*_rows()))


@every_classifier
def test_a_class_with_one_row_is_learnt(Classifier):
    X = np.array([[0.0, 0.0], [0.1, 0.0], [3.0, 0.0], [3.0, 0.1], [0.0, 4.0]])
    y = np.array(["a", "a", "b", "b", "c"])
    machine = Classifier(C=10.0, gamma=1.0, tol=1e-2).fit(X, y)
    assert_array_equal(machine.predict(X), y)


@every_classifier
def test_one_column_is_enough(Classifier):
    x = np.linspace(-1, 1, 40)[:, None]
    y = (np.abs(x[:, 0]) > 0.5).astype(int)
    machine = Classifier(C=10.0, gamma=5.0, tol=1e-3).fit(x, y)
    _assert_near_optimum(machine, rbf_kernel(x, gamma=5.0), y, 10.0, 1e-3)


@every_classifier
def test_two_rows_are_enough(Classifier):
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    machine = Classifier(C=2.0, kernel="linear", tol=1e-3).fit(X, y)
    assert_array_equal(machine.predict(X), y)
    _assert_near_optimum(machine, X @ X.T, y, 2.0, 1e-3)
    # ½w² + 2·2 (1 − w)² is least at w = 8/9.
    assert_allclose(machine.decision_function(X), [8 / 9, -8 / 9], atol=0.05)


@every_classifier
def test_copies_with_the_same_label_count_as_often_as_they_occur(Classifier):
    X, y = _rows(20)
    copies = np.repeat(np.arange(20), np.arange(20) % 4 + 1)
    machine = Classifier(C=2.0, gamma=0.5, tol=1e-3).fit(X[copies], y[copies])
    _assert_near_optimum(machine, rbf_kernel(X[copies], gamma=0.5), y[copies], 2.0, 1e-3)


@every_classifier
def test_copies_with_contradicting_labels_are_weighed_against_each_other(Classifier):
    X, y = _rows(30)
    X2, y2 = np.concatenate([X, X[:10], X[:10]]), np.concatenate([y, 1 - y[:10], y[:10]])
    machine = Classifier(C=5.0, gamma=0.5, tol=1e-3).fit(X2, y2)
    _assert_near_optimum(machine, rbf_kernel(X2, gamma=0.5), y2, 5.0, 1e-3)


@every_classifier
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_are_all_the_same_give_the_label_of_the_majority(Classifier, kernel):
    X, y = np.ones((30, 2)), (np.arange(30) < 20).astype(int)
    machine = Classifier(kernel=kernel, tol=1e-3).fit(X, y)
    K = np.full((30, 30), 1.0 if kernel == "rbf" else 2.0)
    _assert_near_optimum(machine, K, y, 1.0, 1e-3)
    assert_array_equal(machine.predict(X), 1)


@every_classifier
def test_constant_columns_do_not_matter_to_distances(Classifier):
    X, y = _rows()
    plain = Classifier(gamma=0.5, tol=1e-2).fit(X, y)
    wide = np.column_stack([np.zeros(len(X)), X, np.full(len(X), 1e3)])
    constant = Classifier(gamma=0.5, tol=1e-2).fit(wide, y)
    _assert_near_optimum(constant, rbf_kernel(X, gamma=0.5), y, 1.0, 1e-2)
    assert (constant.predict(wide) == plain.predict(X)).mean() > 0.95


SCALES = [1e150, 1e100, 1e-100, 1e-150]


@every_classifier
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("gamma", ["scale", "mean_distance"])
def test_any_scale_of_the_rows_gives_the_same_machine_or_an_error(Classifier, scale, gamma):
    # The relative kernel widths make the machine independent of the scale.
    X, y = _rows()
    plain = Classifier(gamma=gamma, tol=1e-3).fit(X, y).decision_function(X)
    machine = Classifier(gamma=gamma, tol=1e-3)
    try:
        machine.fit(X * scale, y)
    except ValueError as error:
        assert "gamma" in str(error) or "kernel" in str(error)
        assert "cale X" in str(error)
    else:
        assert_allclose(machine.decision_function(X * scale), plain, atol=0.05)


@every_classifier
@pytest.mark.parametrize("scale", [1e150, 1e100])
def test_rows_too_large_for_a_linear_kernel_are_an_error_or_separated(Classifier, scale):
    X, y = _rows()
    machine = Classifier(kernel="linear", tol=1e-2, max_time=2.0)
    try:
        machine.fit(X * scale, y)
    except ValueError as error:
        assert "kernel" in str(error)
    except ConvergenceWarning as warning:
        assert "gap" in str(warning)
    else:
        assert machine.score(X * scale, y) == 1.0


@every_classifier
@pytest.mark.parametrize("scale", [1e-100, 1e-150, 0.0])
def test_rows_too_small_for_a_linear_kernel_leave_the_bias_alone(Classifier, scale):
    # K vanishes, and ½b² + C Σ (1 − y b)² is least at b = 2 C Σy / (1 + 2 C n).
    X, y = _rows()
    y[:20] = 1
    machine = Classifier(kernel="linear", C=0.7, tol=1e-4).fit(X * scale, y)
    bias = 2 * 0.7 * (2 * y - 1).sum() / (1 + 2 * 0.7 * len(y))
    assert_allclose(machine.decision_function(X * scale), bias, atol=0.01)


@every_classifier
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
def test_any_C_from_a_millionth_to_a_million_is_solved_to_the_gap(Classifier, C):
    X, y = _rows()
    machine = Classifier(C=C, gamma=0.5, tol=1e-2).fit(X, y)
    assert machine.certificate_.gap <= 1e-2
    _assert_near_optimum(machine, rbf_kernel(X, gamma=0.5), y, C, 1e-2)


@every_classifier
def test_more_classes_than_a_block_has_rows_of_each_work(Classifier):
    n = 120 if Classifier is BallVectorClassifier else 300
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(n, 5)) * 3, 2, axis=0) + rng.normal(size=(2 * n, 5)) * 0.01
    y = np.repeat(np.arange(n), 2)
    machine = Classifier(C=10, gamma=0.5, tol=0.3).fit(X, y)
    assert_array_equal(machine.classes_, np.arange(n))
    assert machine.decision_function(X[:7]).shape == (7, n)
    assert machine.score(X, y) > 0.98


# Weights.


@every_classifier
def test_bad_weights_are_refused_by_name(Classifier):
    X, y = _rows()
    one = np.ones(len(X))
    for weight in (-one, one * np.nan, one[:5], 0 * one, one * np.inf, np.c_[one, one]):
        with pytest.raises(ValueError, match=r"(?i)sample.weight"):
            Classifier().fit(X, y, sample_weight=weight)


@every_classifier
@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e100])
def test_weights_of_any_size_are_scaled_C_or_an_error(Classifier, factor):
    X, y = _rows()
    machine = Classifier(C=1.0 / factor, gamma=0.5, tol=1e-2)
    machine.fit(X, y, sample_weight=np.full(len(X), factor))
    _assert_near_optimum(machine, rbf_kernel(X, gamma=0.5), y, 1.0, 1e-2)
    tiny = Classifier(gamma=0.5, tol=1e-2, max_time=2.0)
    try:
        tiny.fit(X, y, sample_weight=np.full(len(X), factor))
    except ValueError as error:
        assert "weight" in str(error) or " C " in str(error)
    except ConvergenceWarning as warning:
        assert "gap" in str(warning)
    else:
        assert np.isfinite(tiny.decision_function(X)).all()
        assert tiny.certificate_.gap <= 1e-2


@every_classifier
def test_a_class_of_weight_zero_is_left_out(Classifier):
    X, _ = _rows()
    y = np.arange(len(X)) % 3
    y[X[:, 0] > 0.5] = 0
    weight = np.where(y == 1, 0.0, 1.0)
    machine = Classifier(gamma=0.5, tol=1e-3, random_state=0).fit(X, y, sample_weight=weight)
    assert_array_equal(machine.classes_, [0, 2])
    without = Classifier(gamma=0.5, tol=1e-3, random_state=0).fit(X[y != 1], y[y != 1])
    assert_allclose(machine.decision_function(X), without.decision_function(X), atol=1e-6)
    only_one = np.where(y == 0, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"y .*class"):
        Classifier().fit(X, y, sample_weight=only_one)


# Kernels.


@every_classifier
def test_a_precomputed_matrix_of_the_wrong_shape_is_refused(Classifier):
    X, y = _rows()
    with pytest.raises(ValueError, match=r"precomputed.*square"):
        Classifier(kernel="precomputed").fit(X, y)
    machine = Classifier(kernel="precomputed", tol=1e-2).fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match="60"):
        machine.predict(rbf_kernel(X, X[:10]))


@every_classifier
def test_a_kernel_of_the_wrong_shape_is_refused(Classifier):
    X, y = _rows()
    for kernel in (lambda A, B: np.ones(len(A)), lambda A, B: np.ones((len(A) + 1, len(B)))):
        with pytest.raises(ValueError, match=r"kernel=.*shape"):
            Classifier(kernel=kernel).fit(X, y)


def _infinite_for_large_rows(A, B):
    large = (A[:, :1] > 5) | (B[:, :1] > 5).T
    with np.errstate(invalid="ignore"):
        return np.where(large, np.inf, rbf_kernel(A, B))


@every_classifier
@pytest.mark.parametrize("max_vectors", ["all", 50])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "parameters", [{"kernel": _infinite_for_large_rows}, {"kernel": "poly", "gamma": 1.0}]
)
def test_a_kernel_that_overflows_is_refused_also_outside_the_core(
    Classifier, max_vectors, seed, parameters
):
    X, y = _rows(200)
    X[11] = 1e150
    if max_vectors == "all":
        max_vectors = None if Classifier in BALLS else "auto"
    machine = Classifier(max_vectors=max_vectors, random_state=seed, tol=1e-2, **parameters)
    with pytest.raises(ValueError, match=r"kernel.*infinite"):
        machine.fit(X, y)


@every_classifier
def test_a_kernel_of_undefined_values_is_refused(Classifier):
    X, y = _rows()
    with pytest.raises(ValueError, match=r"kernel.*undefined"):
        Classifier(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)


@every_classifier
@pytest.mark.parametrize("growth", ["batch", "one"])
def test_a_kernel_that_is_far_from_positive_is_refused(Classifier, growth):
    X, y = _rows()
    own = {"growth": growth} if Classifier is CoreVectorClassifier else {}
    for kernel in (lambda A, B: -10.0 * (A @ B.T), lambda A, B: -10.0 * rbf_kernel(A, B)):
        with pytest.raises(ValueError, match="kernel"):
            Classifier(kernel=kernel, max_time=5.0, **own).fit(X, y)
    with pytest.raises(ValueError, match="kernel"):
        Classifier(kernel="precomputed", max_time=5.0, **own).fit(-10.0 * np.eye(len(X)), y)


# Prediction.


@every_classifier
def test_prediction_before_the_fit_is_an_error(Classifier):
    X, _ = _rows()
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError, match=type(Classifier()).__name__):
            getattr(Classifier(), method)(X)


@every_classifier
def test_prediction_of_rows_with_other_columns_is_an_error(Classifier):
    X, y = _rows()
    machine = Classifier(tol=1e-2).fit(X, y)
    for other in (X[:, :2], np.column_stack([X, X])):
        with pytest.raises(ValueError, match="features"):
            machine.predict(other)
    with pytest.raises(ValueError, match="2D array"):
        machine.predict(X[0])
