"""The classifiers against oracles: other packages, slow references, and theorems."""

import re
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tests.reference.kernels import PAIRWISE
from tests.reference.svm import (
    dual_value,
    l2svm_dual_exact,
    l2svm_objective_primal,
    linear_svc_objective,
    rbf_via_cholesky,
    signed_kernel,
)
from widemargin import BallVectorClassifier, CoreVectorClassifier
from widemargin.balls import CoreSet
from widemargin.kernels import KERNELS, RBF

CLASSIFIERS = [CoreVectorClassifier, BallVectorClassifier]
both_classifiers = pytest.mark.parametrize("Classifier", CLASSIFIERS)


# Data, small enough to be compared with slow oracles.


def _breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def _three_or_eight():
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 8))
    return X[chosen] / 16.0, y[chosen]


def _digits(n_classes, n_rows):
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < n_classes)[:n_rows]
    return X[chosen] / 16.0, y[chosen]


def _moons(n_rows, noise=0.2):
    return make_moons(n_rows, noise=noise, random_state=0)


DATA = {"breast cancer": _breast_cancer, "digits 3 and 8": _three_or_eight}


def _signs(y, positive=None):
    return np.where(y == (np.max(y) if positive is None else positive), 1.0, -1.0)


def _objective(machine, K, sign, C, weight=None, problem=0):
    """Primal objective of a fitted machine, from its attributes alone, in float64."""
    beta = np.zeros(len(K))
    beta[machine.support_] = machine.dual_coef_[problem]
    return l2svm_objective_primal(K, sign, C, weight, beta, float(machine.intercept_[problem]))


def _leeway(*machines):
    """How far apart decision values of RBF machines within their gaps of one optimum can be.

    The objective is strongly convex: ½‖v − v*‖² ≤ gap · primal for v = (w, b), and a value is the
    product of v with a point of norm √2.
    """
    certificates = [machine.certificate_ for machine in machines]
    return sum(2.0 * np.sqrt(known.gap * known.primal) for known in certificates) + 1e-6


def _gamma_scale(X):
    return 1.0 / (X.shape[1] * X.var())


def _exact_optimum(K, sign, C, weight=None):
    Q = signed_kernel(K, sign, C, weight)
    return -dual_value(Q, l2svm_dual_exact(Q))


def _linear_svc_optimum(F, sign, C):
    oracle = LinearSVC(C=C, loss="squared_hinge", dual=False, tol=1e-10, max_iter=100_000)
    oracle.fit(F, sign)
    return linear_svc_objective(F, sign, C, None, oracle.coef_, oracle.intercept_)


# The optimum.


@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_linear_machine_reaches_the_objective_of_linear_svc(data, C):
    X, y = DATA[data]()
    sign = _signs(y)
    best = _linear_svc_optimum(X, sign, C)
    machine = CoreVectorClassifier(C=C, kernel="linear", tol=1e-8).fit(X, y)
    assert_allclose(_objective(machine, X @ X.T, sign, C), best, rtol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_rbf_machine_reaches_the_objective_of_linear_svc_on_a_factor(data, C):
    X, y = DATA[data]()
    X, sign = X[:250], _signs(y[:250])
    K = rbf_kernel(X, gamma=_gamma_scale(X))
    best = _linear_svc_optimum(rbf_via_cholesky(K), sign, C)
    machine = CoreVectorClassifier(C=C, tol=1e-8).fit(X, sign)
    assert_allclose(_objective(machine, K, sign, C), best, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_ball_vector_machine_is_within_its_certificate_of_linear_svc(data, C, kernel):
    X, y = DATA[data]()
    X, sign = X[:200], _signs(y[:200])
    K = linear_kernel(X) if kernel == "linear" else rbf_kernel(X, gamma=_gamma_scale(X))
    best = _linear_svc_optimum(rbf_via_cholesky(K), sign, C)
    machine = BallVectorClassifier(C=C, kernel=kernel, tol=1e-2).fit(X, sign)
    reached = _objective(machine, K, sign, C)
    assert machine.certificate_.gap <= 1e-2
    assert best * (1 - 1e-9) <= reached
    assert reached * (1 - machine.certificate_.gap) <= best * (1 + 1e-9)


@both_classifiers
def test_the_certificate_brackets_the_optimum_at_every_tolerance(Classifier):
    X, y = _breast_cancer()
    X, sign = X[:120], _signs(y[:120])
    K = rbf_kernel(X, gamma=0.05)
    best = _exact_optimum(K, sign, 5.0)
    for tol in (0.3, 1e-1, 1e-2):
        machine = Classifier(C=5.0, gamma=0.05, tol=tol).fit(X, sign)
        certificate = machine.certificate_
        assert certificate.gap <= tol
        assert certificate.dual <= best * (1 + 1e-6)
        assert best <= certificate.primal * (1 + 1e-6)
        assert_allclose(certificate.primal, _objective(machine, K, sign, 5.0), rtol=1e-4)


@both_classifiers
def test_with_a_growing_core_the_certificate_brackets_the_optimum(Classifier):
    X, y = _moons(600)
    sign = _signs(y)
    K = rbf_kernel(X, gamma=1.0)
    exact = CoreVectorClassifier(C=1.0, gamma=1.0, tol=1e-10).fit(X, y)
    best = _objective(exact, K, sign, 1.0)  # itself compared with LinearSVC above
    machine = Classifier(C=1.0, gamma=1.0, tol=1e-2, max_vectors=550, random_state=0).fit(X, y)
    certificate = machine.certificate_
    assert certificate.gap <= 1e-2
    assert certificate.dual <= best * (1 + 1e-6)
    assert best <= certificate.primal * (1 + 1e-6)
    assert_allclose(certificate.primal, _objective(machine, K, sign, 1.0), rtol=1e-5)


def test_the_certificate_sums_primal_and_dual_over_the_classes():
    X, y = _digits(4, 200)
    K = rbf_kernel(X, gamma=0.02)
    machine = CoreVectorClassifier(C=2.0, gamma=0.02, tol=1e-8).fit(X, y)
    primal = [
        _objective(machine, K, _signs(y, label), 2.0, problem=p)
        for p, label in enumerate(machine.classes_)
    ]
    optimum = [_exact_optimum(K, _signs(y, label), 2.0) for label in machine.classes_]
    assert_allclose(machine.certificate_.primal, sum(primal), rtol=1e-9)
    assert_allclose(machine.certificate_.dual, sum(optimum), rtol=1e-7)
    assert machine.certificate_.dual <= sum(optimum) * (1 + 1e-9)


def test_the_sampled_fit_of_many_rows_is_certified_over_all_of_them():
    C = 1.0
    X, y = _moons(40_000, noise=0.1)
    sign = _signs(y)
    machine = CoreVectorClassifier(C=C, gamma=1.0, max_vectors=6_000, random_state=0)
    machine.fit(X[:, ::-1], y)
    certificate = machine.certificate_
    f = machine.decision_function(X[:, ::-1])
    assert_array_equal(machine.predict(X[:, ::-1]), (f > 0).astype(int))
    V, beta = machine.support_vectors_, machine.dual_coef_[0]
    norm2 = beta @ rbf_kernel(V, gamma=1.0) @ beta + machine.intercept_[0] ** 2
    primal = 0.5 * norm2 + C * (np.maximum(0.0, 1.0 - sign * f) ** 2).sum()
    assert certificate.scope == "full"
    assert certificate.gap <= 1e-3
    assert_allclose(certificate.primal, primal, rtol=1e-4)
    # α on the vectors, zero elsewhere, is feasible; its value is the dual.
    alpha = np.abs(beta)
    dual = alpha.sum() - 0.5 * norm2 - 0.5 * (alpha**2).sum() / (2 * C)
    assert_allclose(certificate.dual, dual, rtol=1e-4)


# Several classes and labels.


def test_several_classes_are_one_machine_against_the_rest_each():
    X, y = _digits(4, 300)
    machine = CoreVectorClassifier(C=3.0, tol=1e-8).fit(X, y)
    columns = machine.decision_function(X)
    assert columns.shape == (len(X), 4)
    for p, label in enumerate(machine.classes_):
        binary = CoreVectorClassifier(C=3.0, tol=1e-8).fit(X, y == label)
        assert_allclose(columns[:, p], binary.decision_function(X), atol=1e-6)


@both_classifiers
def test_predict_is_exactly_the_sign_or_argmax_of_the_decision_function(Classifier):
    X, y = _digits(5, 300)
    train, test = X[:150], X[150:]
    many = Classifier(tol=1e-2).fit(train, y[:150])
    assert_array_equal(many.predict(test), many.classes_[many.decision_function(test).argmax(1)])
    two = Classifier(tol=1e-2).fit(train, y[:150] > 1)
    scores = two.decision_function(test)
    assert scores.shape == (len(test),)
    assert_array_equal(two.predict(test), scores > 0)
    assert 0 < two.predict(test).sum() < len(test)


@both_classifiers
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["zwei", "eins", "drei"]),
        np.array(["β", "α", "ω"]),
        np.array(["b", "a", "c"], dtype=object),
        np.array([7, -3, 100]),
        np.array([2, 0, 1], dtype=np.uint8),
        np.array([1.0, -1.0, 0.0]),
    ],
)
def test_labels_of_any_type_come_back_as_they_were(Classifier, labels):
    X, y = _digits(3, 150)
    plain = Classifier(tol=1e-2).fit(X, y)
    named = Classifier(tol=1e-2).fit(X, labels[y])
    assert_array_equal(named.classes_, np.sort(labels))
    assert named.predict(X).dtype == named.classes_.dtype
    assert_array_equal(named.predict(X), labels[plain.predict(X)])


@both_classifiers
def test_a_positive_value_means_the_second_of_two_sorted_labels(Classifier):
    X, y = _three_or_eight()
    X, y = X[:150], y[:150]
    number = Classifier(tol=1e-2).fit(X, y)
    assert_array_equal(number.classes_, [3, 8])
    assert (number.decision_function(X[y == 8]) > 0).mean() > 0.95
    flag = Classifier(tol=1e-2).fit(X, y == 8)
    assert flag.classes_.dtype == bool
    assert_array_equal(flag.decision_function(X), number.decision_function(X))
    # The other order of the labels is the mirrored machine.
    word = Classifier(tol=1e-2).fit(X, np.where(y == 8, "a", "b"))
    apart = np.abs(word.decision_function(X) + number.decision_function(X))
    assert apart.max() <= _leeway(word, number)
    assert ((word.predict(X) == "a") == (number.predict(X) == 8)).mean() > 0.95


# Weights.


@both_classifiers
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("gamma", ["scale", "mean_distance", 0.1])
def test_weight_k_is_the_same_as_k_copies(Classifier, as_stored, gamma):
    X, y = _digits(3, 120)
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    weighted = Classifier(C=2.0, gamma=gamma).fit(as_stored(X), y, sample_weight=k)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    copied = Classifier(C=2.0, gamma=gamma).fit(as_stored(X[copies]), y[copies])
    assert_allclose(
        weighted.decision_function(as_stored(X)), copied.decision_function(as_stored(X)), atol=1e-4
    )
    plain = Classifier(C=2.0, gamma=gamma).fit(as_stored(X), y)
    difference = weighted.decision_function(X) - plain.decision_function(X)
    assert np.abs(difference).max() > 1e-2  # the weights do something


def test_the_weighted_machine_solves_the_weighted_problem():
    X, y = _breast_cancer()
    X, sign = X[:150], _signs(y[:150])
    weight = np.random.default_rng(0).exponential(size=len(X))
    K = rbf_kernel(X, gamma=0.05)
    best = _exact_optimum(K, sign, 2.0, weight)
    machine = CoreVectorClassifier(C=2.0, gamma=0.05, tol=1e-8).fit(X, sign, sample_weight=weight)
    assert_allclose(_objective(machine, K, sign, 2.0, weight), best, rtol=1e-7)


@both_classifiers
def test_class_weights_are_sample_weights(Classifier):
    X, y = _digits(3, 150)
    factor = {0: 0.5, 1: 3.0, 2: 1.0}
    by_class = Classifier(gamma=0.05, class_weight=factor).fit(X, y)
    weight = np.array([factor[label] for label in y])
    by_row = Classifier(gamma=0.05).fit(X, y, sample_weight=weight)
    assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-4)
    assert (
        np.ptp(
            by_class.decision_function(X) - Classifier(gamma=0.05).fit(X, y).decision_function(X)
        )
        > 1e-2
    )


@both_classifiers
def test_balanced_class_weights_follow_the_formula(Classifier):
    X, y = _digits(3, 150)
    kept = (y != 1) | (np.arange(len(y)) % 3 == 0)
    X, y = X[kept], y[kept]
    for weight in (np.ones(len(y)), np.random.default_rng(0).integers(1, 4, size=len(y))):
        share = weight.sum() / (3 * np.bincount(y, weights=weight))
        balanced = Classifier(gamma=0.05, class_weight="balanced").fit(X, y, sample_weight=weight)
        written = Classifier(gamma=0.05).fit(X, y, sample_weight=weight * share[y])
        assert_allclose(balanced.decision_function(X), written.decision_function(X), atol=1e-4)


@both_classifiers
def test_scaling_all_weights_is_scaling_C(Classifier):
    X, y = _digits(2, 150)
    for factor in (0.3, 2.5):
        scaled = Classifier(C=1.0).fit(X, y, sample_weight=np.full(len(X), factor))
        assert_allclose(
            scaled.decision_function(X),
            Classifier(C=factor).fit(X, y).decision_function(X),
            atol=1e-4,
        )


# Reproducibility.

REGIMES = {
    "all rows": (_digits, (3, 300), {}),
    "a growing core": (_moons, (1500, 0.1), {"max_vectors": 1200}),
    "little memory": (_moons, (1500, 0.1), {"memory": "7MB"}),
}


def _fitted(Classifier, X, y, **parameters):
    return Classifier(**{"tol": 1e-2, "random_state": 3, "gamma": 1.0} | parameters).fit(X, y)


def _assert_same_bits(one, two, X):
    for name in ("support_", "dual_coef_", "intercept_", "support_vectors_"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    assert_array_equal(one.decision_function(X), two.decision_function(X))


@both_classifiers
@pytest.mark.parametrize("regime", REGIMES)
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(Classifier, regime):
    make, size, parameters = REGIMES[regime]
    X, y = make(*size)
    first = _fitted(Classifier, X, y, n_jobs=1, **parameters)
    assert first.certificate_.gap <= 1e-2
    for n_jobs in (1, 2, None):
        _assert_same_bits(first, _fitted(Classifier, X, y, n_jobs=n_jobs, **parameters), X)


def test_a_sampled_fit_has_the_same_bits_for_any_number_of_threads():
    X, y = _moons(40_000, noise=0.1)
    parameters = {"C": 1.0, "max_vectors": 6_000, "tol": 1e-2}
    one = _fitted(CoreVectorClassifier, X, y, n_jobs=1, **parameters)
    _assert_same_bits(one, _fitted(CoreVectorClassifier, X, y, n_jobs=2, **parameters), X)


@pytest.mark.parametrize("sample_size", [59, None])
def test_the_papers_growth_has_the_same_bits_for_any_number_of_threads(sample_size):
    X, y = _digits(3, 300)
    parameters = {"growth": "one", "sample_size": sample_size, "tol": 1e-1, "gamma": "scale"}
    one = _fitted(CoreVectorClassifier, X, y, n_jobs=1, **parameters)
    _assert_same_bits(one, _fitted(CoreVectorClassifier, X, y, n_jobs=2, **parameters), X)


@both_classifiers
@pytest.mark.parametrize("regime", REGIMES)
def test_the_order_of_the_rows_does_not_matter(Classifier, regime):
    make, size, parameters = REGIMES[regime]
    X, y = make(*size)
    order = np.random.default_rng(5).permutation(len(X))
    straight = _fitted(Classifier, X, y, **parameters)
    shuffled = _fitted(Classifier, X[order], y[order], **parameters)
    assert set(order[shuffled.support_]) == set(straight.support_)
    assert_allclose(shuffled.decision_function(X), straight.decision_function(X), atol=1e-9)


# The certificate, limits and interrupts.


@both_classifiers
def test_the_certificate_prints_as_one_line_with_the_gap_and_the_reason(Classifier):
    X, y = _digits(3, 150)
    certificate = Classifier(tol=1e-2).fit(X, y).certificate_
    line = str(certificate)
    assert "\n" not in line
    assert f"gap {certificate.gap:.1e}" in line
    assert certificate.stopped in line
    assert "0.01" in certificate.stopped
    assert_allclose(certificate.gap, 1 - certificate.dual / certificate.primal, atol=1e-4)


@both_classifiers
def test_the_certificate_counts_what_the_machine_has(Classifier):
    X, y = _digits(3, 150)
    machine = Classifier(tol=1e-2).fit(X, y)
    certificate = machine.certificate_
    assert certificate.n_vectors == len(machine.support_) == machine.dual_coef_.shape[1]
    assert certificate.n_iter == machine.n_iter_ >= 1
    assert certificate.n_passes >= 1
    assert certificate.n_kernel >= len(machine.support_)
    assert certificate.seconds > 0


def _assert_usable(machine, X, y, least=0.7):
    """A fit that was stopped is a feasible machine whose certificate is true."""
    assert machine.score(X, y) >= least
    sign = _signs(y)
    assert (machine.dual_coef_[0] * sign[machine.support_] >= 0).all()
    reached = _objective(machine, rbf_kernel(X, gamma=machine.gamma_), sign, machine.C)
    assert_allclose(machine.certificate_.primal, reached, rtol=1e-4)
    assert machine.certificate_.scope == "full"
    assert machine.certificate_.dual <= reached


@both_classifiers
@pytest.mark.parametrize(
    ("limit", "value"), [("max_iter", 1), ("max_time", 1e-9), ("max_vectors", 60)]
)
def test_a_limit_stops_the_fit_with_a_warning_that_states_the_gap(Classifier, limit, value):
    X, y = _moons(1500)
    parameters = {"max_vectors": 1000} | {limit: value}
    machine = Classifier(C=10, gamma=2.0, tol=1e-6, random_state=0, **parameters)
    with pytest.warns(ConvergenceWarning, match=f"{limit}.*gap of ") as caught:
        machine.fit(X, y)
    certificate = machine.certificate_
    assert f"{certificate.gap:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert limit in certificate.stopped
    assert certificate.gap > 1e-6
    assert len(machine.support_) <= parameters["max_vectors"]
    # A ball of fixed radius knows little after one step; a full core can still be refined.
    early_ball = Classifier is BallVectorClassifier and limit != "max_vectors"
    _assert_usable(machine, X, y, least=0.4 if early_ball else 0.7)


@pytest.mark.parametrize(("limit", "value"), [("max_iter", 30), ("max_time", 1e-9)])
def test_a_stop_between_samples_is_certified_over_all_rows(limit, value):
    X, y = _moons(1500)
    machine = CoreVectorClassifier(
        C=10, gamma=2.0, tol=1e-6, growth="one", random_state=0, **{limit: value}
    )
    with pytest.warns(ConvergenceWarning, match=limit):
        machine.fit(X, y)
    _assert_usable(machine, X, y, least=0.4)


@pytest.mark.parametrize(
    ("Classifier", "parameters", "calls"),
    [
        (CoreVectorClassifier, {"max_vectors": 1400}, 1),
        (CoreVectorClassifier, {"growth": "one"}, 25),
        (BallVectorClassifier, {"max_vectors": 1400}, 1),
        (BallVectorClassifier, {}, 3),
    ],
)
def test_an_interrupt_in_the_middle_of_a_step_leaves_a_valid_machine(
    monkeypatch, Classifier, parameters, calls
):
    X, y = _moons(1500)
    step, made = CoreSet.step, []

    def interrupted_step(self, state):
        made.append(1)
        after = step(self, state)
        if len(made) > calls:
            raise KeyboardInterrupt
        return after

    monkeypatch.setattr(CoreSet, "step", interrupted_step)
    machine = Classifier(C=10, gamma=2.0, tol=1e-7, random_state=0, **parameters)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*gap of"):
        machine.fit(X, y)
    assert len(made) == calls + 1
    assert machine.certificate_.stopped == "interrupted"
    _assert_usable(machine, X, y, least=0.4 if Classifier is BallVectorClassifier else 0.7)


def test_a_gap_of_zero_that_cannot_be_proved_ends_with_a_warning_and_the_optimum():
    X, y = _breast_cancer()
    X, sign = X[:120], _signs(y[:120])
    machine = CoreVectorClassifier(gamma=0.05, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="gap"):
        machine.fit(X, sign)
    K = rbf_kernel(X, gamma=0.05)
    assert_allclose(_objective(machine, K, sign, 1.0), _exact_optimum(K, sign, 1.0), rtol=1e-9)


# Warm starts.


def test_a_warm_path_over_C_ends_where_cold_fits_do():
    X, y = _digits(3, 300)
    path = CoreVectorClassifier(tol=1e-8, warm_start=True)
    for C in (0.1, 1, 10):
        path.set_params(C=C).fit(X, y)
        cold = CoreVectorClassifier(C=C, tol=1e-8).fit(X, y)
        assert_allclose(path.decision_function(X), cold.decision_function(X), atol=1e-5)


def test_a_warm_path_of_growing_cores_ends_where_cold_fits_do():
    X, y = _moons(2000)
    path = CoreVectorClassifier(gamma=1.0, tol=1e-11, warm_start=True, max_vectors=1900)
    for C in (0.1, 1, 10):
        path.set_params(C=C).fit(X, y)
        cold = CoreVectorClassifier(C=C, gamma=1.0, tol=1e-11).fit(X, y)
        assert_allclose(path.decision_function(X), cold.decision_function(X), atol=1e-5)


def test_a_warm_path_of_ball_vector_machines_keeps_its_certificate():
    X, y = _three_or_eight()
    X, sign = X[:150], _signs(y[:150])
    K = rbf_kernel(X, gamma=0.05)
    path = BallVectorClassifier(gamma=0.05, tol=1e-2, warm_start=True)
    for C in (0.1, 1, 10):
        path.set_params(C=C).fit(X, sign)
        best = _exact_optimum(K, sign, C)
        assert best * (1 - 1e-9) <= _objective(path, K, sign, C) <= best / (1 - 1e-2) * (1 + 1e-6)


@pytest.mark.parametrize("growth", ["batch", "one"])
@pytest.mark.parametrize("max_vectors", [None, 900])
def test_a_warm_start_needs_no_more_steps_or_kernel_values(growth, max_vectors):
    X, y = _moons(1000, noise=0.1)
    parameters = {"gamma": 1.0, "max_vectors": max_vectors, "growth": growth, "tol": 1e-2}
    machine = CoreVectorClassifier(C=1.0, random_state=0, warm_start=True, **parameters)
    cold = machine.fit(X, y).certificate_
    warm = machine.set_params(C=1.01).fit(X, y).certificate_
    assert warm.gap <= 1e-2
    assert warm.n_iter <= cold.n_iter
    assert warm.n_kernel <= cold.n_kernel
    if growth == "one":
        assert warm.n_iter < cold.n_iter / 2


def _other_rows(X, y):
    return X[::-1] * 0.5 + 0.1, y[::-1], None


def _fewer_rows(X, y):
    return X[:90], y[:90], None


def _more_rows(X, y):
    return np.concatenate([X, X[:, ::-1]]), np.concatenate([y, y]), None


def _other_labels(X, y):
    return X, np.roll(y, 1), None


def _fewer_columns(X, y):
    return X[:, 20:40], y, None


def _other_classes(X, y):
    return X, y + 1, None


def _one_class_more(X, y):
    return X, np.where(np.arange(len(y)) % 7 == 0, 9, y), None


def _weights(X, y):
    return X, y, np.linspace(0.0, 3.0, len(y))


def _sparse(X, y):
    return sparse.csr_array(X), y, None


@both_classifiers
@pytest.mark.parametrize(
    "change",
    [
        _other_rows,
        _fewer_rows,
        _more_rows,
        _other_labels,
        _fewer_columns,
        _other_classes,
        _one_class_more,
        _weights,
        _sparse,
    ],
)
def test_a_warm_start_on_changed_data_gives_the_cold_answer(Classifier, change):
    X, y = _digits(3, 150)
    core = Classifier is CoreVectorClassifier
    parameters = {"gamma": 0.05, "tol": 1e-8 if core else 1e-2}
    X2, y2, weight = change(X, y)
    warm = Classifier(warm_start=True, **parameters).fit(X, y)
    warm.fit(X2, y2, sample_weight=weight)
    cold = Classifier(**parameters).fit(X2, y2, sample_weight=weight)
    assert warm.certificate_.gap <= parameters["tol"]
    leeway = 1e-5 if core else _leeway(warm, cold)
    assert_allclose(warm.decision_function(X2), cold.decision_function(X2), atol=leeway)


@pytest.mark.parametrize(
    "change",
    [{"max_vectors": 40}, {"kernel": "linear"}, {"gamma": 1.0}, {"memory": "10kB"}],
    ids=str,
)
def test_a_warm_start_with_changed_parameters_gives_the_cold_answer(change):
    X, y = _digits(3, 150)
    parameters = {"gamma": 0.05, "tol": 1e-11}
    warm = CoreVectorClassifier(warm_start=True, **parameters).fit(X, y)
    warm.set_params(**change)
    cold = CoreVectorClassifier(**parameters | change)
    if {"max_vectors", "memory"} & set(change):
        for machine in (warm, cold):
            with pytest.warns(ConvergenceWarning, match=next(iter(change))):
                machine.fit(X, y)
            assert len(machine.support_) <= 40
            assert machine.score(X, y) > 0.9
    else:
        difference = warm.fit(X, y).decision_function(X) - cold.fit(X, y).decision_function(X)
        assert_allclose(difference, 0.0, atol=1e-5)


# Kernels.


@both_classifiers
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_precomputed_kernel_equals_the_named_one(Classifier, as_stored):
    X, y = _digits(3, 200)
    new = X[120:]
    copies = np.concatenate([np.arange(100), np.arange(40), np.arange(20)])
    X, y = X[copies], y[copies]
    weight = np.random.default_rng(0).exponential(size=len(X))
    weight[::7] = 0.0
    named = Classifier(gamma=0.05, tol=1e-3).fit(X, y, sample_weight=weight)
    given = Classifier(kernel="precomputed", tol=1e-3)
    given.fit(as_stored(rbf_kernel(X, gamma=0.05)), y, sample_weight=weight)
    assert_allclose(
        given.decision_function(as_stored(rbf_kernel(new, X, gamma=0.05))),
        named.decision_function(new),
        atol=2e-2,
    )
    K = rbf_kernel(X, gamma=0.05)
    for p, label in enumerate(given.classes_):
        sign = _signs(y, label)
        best = _exact_optimum(
            K[np.ix_(weight > 0, weight > 0)], sign[weight > 0], 1.0, weight[weight > 0]
        )
        assert best * (1 - 1e-6) <= _objective(given, K, sign, 1.0, weight, p)
        assert _objective(given, K, sign, 1.0, weight, p) <= best * (1 + 1.1e-3)


def test_a_precomputed_kernel_equals_the_named_one_to_the_last_digits():
    X, y = _digits(3, 200)
    named = CoreVectorClassifier(gamma=0.05, tol=1e-8).fit(X[:120], y[:120])
    given = CoreVectorClassifier(kernel="precomputed", tol=1e-8)
    given.fit(rbf_kernel(X[:120], gamma=0.05), y[:120])
    assert_allclose(
        given.decision_function(rbf_kernel(X[120:], X[:120], gamma=0.05)),
        named.decision_function(X[120:]),
        atol=1e-6,
    )


@both_classifiers
def test_a_function_or_a_kernel_object_equals_the_name(Classifier):
    X, y = _digits(3, 150)
    core = Classifier is CoreVectorClassifier
    tol = 1e-8 if core else 1e-2
    machine = Classifier(gamma=0.05, tol=tol).fit(X, y)
    named = machine.decision_function(X)
    function = Classifier(kernel=rbf_kernel, kernel_params={"gamma": 0.05}, tol=tol).fit(X, y)
    assert_allclose(
        function.decision_function(X), named, atol=1e-6 if core else _leeway(machine, function)
    )
    thing = Classifier(kernel=RBF(gamma=0.05), tol=tol).fit(X, y)
    assert_allclose(thing.decision_function(X), named, atol=1e-9)


def test_a_function_gets_sparse_rows_and_gives_the_dense_answer():
    X, y = _digits(3, 150)
    machine = CoreVectorClassifier(kernel=rbf_kernel, kernel_params={"gamma": 0.05}, tol=1e-8)
    dense = machine.fit(X, y).decision_function(X)
    stored = machine.fit(sparse.csr_matrix(X), y).decision_function(sparse.csr_matrix(X))
    assert_allclose(stored, dense, atol=1e-6)


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"precomputed"}))
@both_classifiers
def test_every_named_kernel_fits_digits(Classifier, kernel):
    X, y = _digits(3, 75)
    tol = 1e-8 if Classifier is CoreVectorClassifier else 1e-2
    machine = Classifier(kernel=kernel, gamma=0.05, degree=2, coef0=1.0, tol=tol)
    values = np.array([[PAIRWISE[kernel](x, z, 0.05, 2, 1.0) for z in X] for x in X])
    if np.linalg.eigvalsh(values)[0] < -0.5 / (2 * machine.C):
        with pytest.raises(ValueError, match="kernel"):
            machine.fit(X, y)
        return
    machine.fit(X, y)
    assert machine.score(X, y) > 0.97
    for p, label in enumerate(machine.classes_):
        sign = _signs(y, label)
        best = _exact_optimum(values, sign, 1.0)
        reached = _objective(machine, values, sign, 1.0, problem=p)
        assert best * (1 - 1e-6) <= reached <= best / (1 - tol) * (1 + 1e-6)


# Ways to store the rows.


def test_single_precision_rows_give_nearly_the_values_of_double():
    X, y = _breast_cancer()
    X, y = X[:200], y[:200]
    double = CoreVectorClassifier(tol=1e-6).fit(X, y).decision_function(X)
    single = CoreVectorClassifier(tol=1e-6).fit(X.astype(np.float32), y)
    values = single.decision_function(X.astype(np.float32))
    assert values.dtype == np.float64
    assert_allclose(values, double, atol=1e-3)


def test_single_precision_rows_keep_the_certificate_of_the_ball_vector_machine():
    X, y = _breast_cancer()
    X, sign = X[:200].astype(np.float32), _signs(y[:200])
    machine = BallVectorClassifier(gamma=0.05, tol=1e-2).fit(X, sign)
    K = rbf_kernel(X.astype(np.float64), gamma=0.05)
    best = _exact_optimum(K, sign, 1.0)
    assert best * (1 - 1e-9) <= _objective(machine, K, sign, 1.0) <= best / (1 - 1e-2)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_equal_dense_ones(kernel, index):
    X, y = _digits(3, 150)
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(index), stored.indptr.astype(index)
    dense = CoreVectorClassifier(kernel=kernel, tol=1e-8).fit(X, y)
    machine = CoreVectorClassifier(kernel=kernel, tol=1e-8).fit(stored, y)
    assert_allclose(machine.decision_function(stored), dense.decision_function(X), atol=1e-6)
    assert_allclose(machine.decision_function(X), dense.decision_function(X), atol=1e-6)
    assert sparse.issparse(machine.support_vectors_)
    assert_array_equal(machine.support_vectors_.toarray(), X[machine.support_])


@both_classifiers
@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16, np.float64]
)
def test_integers_and_half_precision_give_the_answer_of_the_same_numbers(Classifier, dtype):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:150], y[:150]
    expected = Classifier(tol=1e-2).fit(X, y)
    machine = Classifier(tol=1e-2).fit(X.astype(dtype), y)
    assert_array_equal(machine.support_, expected.support_)
    assert_allclose(
        machine.decision_function(X.astype(dtype)), expected.decision_function(X), atol=1e-12
    )


@both_classifiers
def test_fortran_order_lists_and_files_on_disk_give_the_same_answer(Classifier, tmp_path):
    X, y = _digits(3, 150)
    expected = Classifier(tol=1e-2).fit(X, y).decision_function(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    frozen = X.copy()
    frozen.setflags(write=False)
    strided = np.repeat(X, 2, axis=0)[::2]
    for stored in (np.asfortranarray(X), mapped, frozen, strided, X.tolist()):
        machine = Classifier(tol=1e-2).fit(stored, y)
        assert_array_equal(machine.decision_function(stored), expected)


# Attributes.


@both_classifiers
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_attributes_are_the_machine(Classifier, n_classes):
    X, y = _digits(n_classes, 200)
    machine = Classifier(C=2.0, tol=1e-2).fit(X[:150], y[:150])
    assert_array_equal(machine.support_vectors_, X[machine.support_])
    assert (np.diff(machine.support_) > 0).all()
    n_problems = 1 if n_classes == 2 else n_classes
    assert machine.dual_coef_.shape == (n_problems, len(machine.support_))
    assert machine.intercept_.shape == (n_problems,)
    K = rbf_kernel(X[150:], machine.support_vectors_, gamma=machine.gamma_)
    by_hand = K @ machine.dual_coef_.T + machine.intercept_
    assert_allclose(
        machine.decision_function(X[150:]).reshape(len(K), -1), by_hand, rtol=1e-9, atol=1e-9
    )
    for p in range(n_problems):
        sign = _signs(y, machine.classes_[1] if n_classes == 2 else machine.classes_[p])
        assert (machine.dual_coef_[p] * sign[machine.support_] >= 0).all()
        assert_allclose(machine.intercept_[p], machine.dual_coef_[p].sum(), rtol=1e-9)


def test_the_dual_variables_are_the_slacks_at_the_optimum():
    X, y = _digits(2, 150)
    machine = CoreVectorClassifier(C=0.5, tol=1e-12, gamma=0.05).fit(X, y)
    sign = _signs(y)
    slack = np.maximum(0.0, 1.0 - sign * machine.decision_function(X))
    alpha = np.zeros(len(X))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    assert_allclose(alpha, 2 * 0.5 * slack, atol=1e-6)


@both_classifiers
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_words_for_gamma_mean_what_brute_force_says(Classifier, as_stored):
    X, y = _digits(3, 80)
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    for weight, rows in ((None, X), (k, np.repeat(X, k, axis=0))):
        pairs = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
        expected = {
            "scale": SVC(gamma="scale").fit(rows, np.arange(len(rows)) % 2)._gamma,
            "mean_distance": 1.0 / pairs.mean(),
            "auto": 1.0 / X.shape[1],
            0.25: 0.25,
        }
        for gamma, value in expected.items():
            machine = Classifier(gamma=gamma, tol=0.1).fit(as_stored(X), y, sample_weight=weight)
            assert_allclose(machine.gamma_, value, rtol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("linear", linear_kernel),
        ("laplacian", lambda A, B: laplacian_kernel(A, B, gamma=0.05)),
        ("poly", lambda A, B: polynomial_kernel(A, B, degree=2, gamma=0.05, coef0=1.0)),
    ],
)
def test_new_rows_meet_the_kernel_that_the_machine_was_fitted_with(kernel, function):
    X, y = _digits(3, 200)
    machine = CoreVectorClassifier(kernel=kernel, gamma=0.05, degree=2, coef0=1.0)
    machine.fit(X[:150], y[:150])
    K = function(X[150:], X[machine.support_])
    assert_allclose(
        machine.decision_function(X[150:]), K @ machine.dual_coef_.T + machine.intercept_, atol=1e-9
    )


# Progress.


@both_classifiers
def test_verbose_prints_rows_vectors_gap_and_seconds_for_each_step(Classifier, capsys):
    X, y = _moons(1500)
    machine = Classifier(verbose=1, max_vectors=1400, gamma=1.0, tol=1e-2, random_state=0)
    machine.fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == machine.n_iter_ > 1
    pattern = (
        rf"\[{Classifier.__name__}\] step (\d+): 1,500 rows, ([\d,]+) vectors, "
        r"gap (\S+) \(full\), (\S+) s"
    )
    found = [re.fullmatch(pattern, line) for line in lines]
    assert all(found)
    assert [int(match[1]) for match in found] == list(range(1, len(lines) + 1))
    seconds = [float(match[4]) for match in found]
    assert all(a <= b for a, b in pairwise(seconds))
    assert int(found[-1][2].replace(",", "")) == len(machine.support_)
    assert float(found[-1][3]) == pytest.approx(machine.certificate_.gap, rel=0.01)
    assert float(found[0][3]) > 1e-2 >= float(found[-1][3])


@both_classifiers
def test_without_verbose_nothing_is_printed(Classifier, capsys):
    X, y = _moons(200)
    Classifier(tol=1e-2).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


class _Recorder:
    """A fit callback that notes what it is told, and stops the fit after some steps."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", context.task_name))
        self.shape = X.shape

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        return self.stop_after is not None and self.n_steps() >= self.stop_after

    def n_steps(self):
        return self.events.count(("end", "step"))


@both_classifiers
def test_callbacks_see_the_fit_and_every_step(Classifier):
    pytest.importorskip("sklearn.callback")
    X, y = _moons(1500)
    recorder = _Recorder()
    machine = Classifier(max_vectors=1400, gamma=1.0, tol=1e-2, random_state=0)
    machine.set_callbacks(recorder).fit(X, y)
    assert recorder.n_steps() == machine.n_iter_ > 1
    assert recorder.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert recorder.events.count(("begin", "step")) == recorder.n_steps()
    assert recorder.shape == X.shape


@both_classifiers
def test_a_callback_can_stop_the_fit(Classifier):
    pytest.importorskip("sklearn.callback")
    X, y = _moons(1500)
    recorder = _Recorder(stop_after=2)
    machine = Classifier(C=10, max_vectors=1400, gamma=2.0, tol=1e-7, random_state=0)
    machine.set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match=r"callback.*gap of"):
        machine.fit(X, y)
    assert recorder.n_steps() == machine.n_iter_ == 2
    assert recorder.events[-1] == ("teardown", "fit")
    _assert_usable(machine, X, y, least=0.4 if Classifier is BallVectorClassifier else 0.7)


def test_the_progress_bar_of_scikit_learn_shows_the_fit(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y = _moons(300)
    machine = CoreVectorClassifier(tol=1e-2).set_callbacks(callback.ProgressBar())
    assert machine.fit(X, y).score(X, y) > 0.9
    assert "CoreVectorClassifier" in capsys.readouterr().out


# The papers' rules.


@pytest.mark.parametrize("sample_size", [59, None])
def test_growth_by_one_row_reaches_the_certificate_of_batches(sample_size):
    X, y = _digits(3, 400)
    K = rbf_kernel(X[:250], gamma=0.05)
    machine = CoreVectorClassifier(
        gamma=0.05, growth="one", sample_size=sample_size, tol=1e-2, random_state=0
    ).fit(X[:250], y[:250])
    batch = CoreVectorClassifier(gamma=0.05, tol=1e-2).fit(X[:250], y[:250])
    assert abs(machine.score(X[250:], y[250:]) - batch.score(X[250:], y[250:])) <= 0.02
    assert machine.certificate_.gap <= 1e-2
    assert machine.certificate_.scope == "full"
    for p, label in enumerate(machine.classes_):
        best = _exact_optimum(K, _signs(y[:250], label), 1.0)
        reached = _objective(machine, K, _signs(y[:250], label), 1.0, problem=p)
        assert best * (1 - 1e-9) <= reached <= best * 1.0102


@pytest.mark.parametrize("growth", ["batch", "one"])
@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-5])
def test_the_ball_rule_holds_every_point_within_one_plus_epsilon(growth, epsilon):
    X, y = _three_or_eight()
    X, sign = X[:200], _signs(y[:200])
    machine = CoreVectorClassifier(
        C=2.0,
        gamma=0.05,
        stopping="ball",
        epsilon=epsilon,
        growth=growth,
        sample_size=None,
        random_state=0,
    ).fit(X, sign)
    assert machine.certificate_.eps <= epsilon * (1 + 1e-6)
    Q = signed_kernel(rbf_kernel(X, gamma=0.05), sign, 2.0)
    share = np.zeros(len(X))
    share[machine.support_] = np.abs(machine.dual_coef_[0])
    share /= share.sum()
    center2 = share @ Q @ share
    distance = np.sqrt(Q.diagonal() + center2 - 2 * Q @ share)
    best = l2svm_dual_exact(Q)
    best /= best.sum()
    radius = np.sqrt(Q[0, 0] - best @ Q @ best)  # the smallest enclosing ball's
    assert distance.max() <= (1 + epsilon) * radius * (1 + 1e-6)
    assert distance.max() >= radius * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-4])
def test_the_ball_vector_rule_holds_every_point(epsilon):
    X, y = _three_or_eight()
    X, sign = X[:200], _signs(y[:200])
    machine = BallVectorClassifier(C=2.0, gamma=0.05, stopping="ball", epsilon=epsilon)
    machine.fit(X, sign)
    Q = signed_kernel(rbf_kernel(X, gamma=0.05), sign, 2.0)
    share = np.zeros(len(X))
    share[machine.support_] = np.abs(machine.dual_coef_[0])
    share /= share.sum()
    distance = np.sqrt(Q.diagonal() + share @ Q @ share - 2 * Q @ share)
    best = l2svm_dual_exact(Q)
    best /= best.sum()
    radius = np.sqrt(Q[0, 0] - best @ Q @ best)
    assert distance.max() <= (1 + machine.certificate_.eps) * radius * (1 + 1e-6)
    # Algorithm 4 promises 1 + ε twice over: once for the ball, once for its radius.
    assert distance.max() <= (1 + 4 * epsilon) * radius


@both_classifiers
def test_the_ball_rule_with_a_small_epsilon_classifies_like_the_gap_rule(Classifier):
    X, y = _digits(4, 500)
    gap = Classifier(gamma=0.05, tol=1e-2).fit(X[:300], y[:300])
    score = gap.score(X[300:], y[300:])
    for epsilon in (1e-3, 1e-4):
        ball = Classifier(gamma=0.05, stopping="ball", epsilon=epsilon).fit(X[:300], y[:300])
        assert "ball" in ball.certificate_.stopped
        assert abs(ball.score(X[300:], y[300:]) - score) <= 0.02


# With the rest of scikit-learn.


@both_classifiers
def test_the_classifier_works_in_a_pipeline_and_a_grid_search(Classifier):
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), Classifier(tol=1e-2))
    name = Classifier.__name__.lower()
    grid = {f"{name}__C": [1e-4, 1.0], f"{name}__kernel": ["rbf", "laplacian"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_[f"{name}__C"] == 1.0
    assert search.best_score_ > 0.95


@both_classifiers
def test_a_grid_search_cuts_a_precomputed_kernel_both_ways(Classifier):
    X, y = _digits(3, 150)
    named = GridSearchCV(Classifier(gamma=0.05, tol=1e-3), {"C": [0.001, 1.0]}, cv=3).fit(X, y)
    given = GridSearchCV(Classifier(kernel="precomputed", tol=1e-3), {"C": [0.001, 1.0]}, cv=3)
    given.fit(rbf_kernel(X, gamma=0.05), y)
    scores = named.cv_results_["mean_test_score"]
    assert_allclose(given.cv_results_["mean_test_score"], scores, atol=0.01)
    assert scores[1] > 0.9


@both_classifiers
def test_calibration_turns_decision_values_into_probabilities(Classifier):
    X, y = _digits(3, 300)
    calibrated = CalibratedClassifierCV(Classifier(tol=1e-2), ensemble=False, cv=3)
    probability = calibrated.fit(X[:200], y[:200]).predict_proba(X[200:])
    assert_allclose(probability.sum(axis=1), 1.0)
    assert (probability.argmax(axis=1) == y[200:]).mean() > 0.95
    assert probability.max(axis=1).mean() > 0.8


@both_classifiers
def test_a_clone_is_unfitted_and_fits_alike(Classifier):
    X, y = _digits(3, 150)
    machine = Classifier(C=3.0, gamma="mean_distance", tol=1e-2, random_state=0).fit(X, y)
    twin = clone(machine)
    assert not hasattr(twin, "support_")
    assert twin.get_params() == machine.get_params()
    assert_array_equal(twin.fit(X, y).decision_function(X), machine.decision_function(X))
