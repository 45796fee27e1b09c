"""`SpanMap` against scikit-learn's Nystroem, and against the formula of its kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tests.reference.data import digits, whole_digits
from tests.reference.svm import linear_svc_objective
from widemargin import MarginClassifier, SpanMap
from widemargin.kernels import RBF
from widemargin.span import LeverageVectors

STRATEGIES = ["kmeans", "random", "leverage", "core"]
every_strategy = pytest.mark.parametrize("vectors", STRATEGIES)
GAMMA = 0.05
KERNELS = {
    "linear": linear_kernel,
    "rbf": lambda A, B: rbf_kernel(A, B, gamma=GAMMA),
    "laplacian": lambda A, B: laplacian_kernel(A, B, gamma=GAMMA),
    "poly": lambda A, B: polynomial_kernel(A, B, degree=2, gamma=GAMMA, coef0=1.0),
}


def _digits(n_rows=200, n_classes=4):
    return digits(n_classes, n_rows)


def _map(n_vectors=30, **parameters):
    return SpanMap(n_vectors, **{"gamma": GAMMA, "random_state": 0, "n_jobs": 1} | parameters)


def _projected(kernel, left, vectors, right):
    """k(x, Z) K_z⁻¹ k(Z, x'), by least squares: K_z may be singular."""
    inner = np.linalg.lstsq(kernel(vectors, vectors), kernel(vectors, right), rcond=1e-12)[0]
    return kernel(left, vectors) @ inner


# What the features are.


@pytest.mark.parametrize(
    ("vectors", "kernel"),
    [
        *((vectors, "rbf") for vectors in STRATEGIES),
        ("kmeans", "linear"),
        ("leverage", "laplacian"),
        ("random", "poly"),
    ],
)
def test_inner_products_are_the_kernel_projected_onto_the_span(vectors, kernel):
    X, y = _digits()
    span = _map(vectors=vectors, kernel=kernel, degree=2, coef0=1.0).fit(X[:150], y[:150])
    assert span.components_.shape == (30, 64)
    features = span.transform(X)
    expected = _projected(KERNELS[kernel], X, span.components_, X)
    assert_allclose(features @ features.T, expected, atol=1e-7 * expected.max())


def test_the_features_are_the_normalization_times_the_kernel_values():
    X, _ = _digits()
    span = _map().fit(X)
    T = span.normalization_
    assert_array_equal(T, np.tril(T))
    K = rbf_kernel(span.components_, gamma=GAMMA)
    assert_allclose(T @ K @ T.T, np.eye(30), atol=1e-9)
    values = rbf_kernel(X, span.components_, gamma=GAMMA)
    assert_allclose(span.transform(X), values @ T.T, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_with_all_rows_the_features_reproduce_the_kernel_matrix(kernel):
    X, _ = _digits(120)
    span = _map(120, vectors="random", kernel=kernel, degree=2, coef0=1.0).fit(X)
    K = KERNELS[kernel](X, X)
    features = span.transform(X)
    assert features.shape[1] == np.linalg.matrix_rank(K) == len(span.components_)
    assert_allclose(features @ features.T, K, atol=1e-7 * K.max())


def test_the_projected_kernel_never_exceeds_the_kernel_on_the_diagonal_and_grows_with_vectors():
    X, _ = _digits()
    before = np.zeros(len(X))
    for m in (5, 20, 80):
        span = _map(m, vectors="random").fit(X)
        norm2 = (span.transform(X) ** 2).sum(axis=1)
        assert (norm2 <= 1 + 1e-9).all()
        assert (norm2 >= before - 1e-9).all()  # one seed draws the same rows first
        before = norm2
    assert norm2.mean() > 0.8


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_the_same_vectors_give_the_gram_matrix_of_nystroem(kernel):
    X, _ = _digits()
    parameters = {"kernel": kernel, "gamma": GAMMA, "degree": 2, "coef0": 1.0}
    if kernel != "poly":
        parameters = {"kernel": kernel, "gamma": GAMMA}
    peer = Nystroem(n_components=40, random_state=0, **parameters).fit(X)
    span = SpanMap(40, vectors=peer.components_, **parameters).fit(X)
    assert span.component_indices_ is None
    theirs, ours = peer.transform(X), span.transform(X)
    assert ours.shape == theirs.shape
    expected = theirs @ theirs.T
    assert_allclose(ours @ ours.T, expected, atol=1e-6 * expected.max())


@pytest.mark.parametrize("vectors", ["kmeans", "leverage"])
def test_chosen_vectors_hold_more_of_the_kernel_than_random_ones(vectors):
    X, _ = _digits(500, n_classes=10)

    def held(**parameters):
        maps = (_map(50, random_state=seed, **parameters).fit(X) for seed in range(3))
        return np.mean([(span.transform(X) ** 2).sum() for span in maps])

    assert held(vectors=vectors) > held(vectors="random")


# Which vectors.


@pytest.mark.parametrize("vectors", ["random", "leverage", "core"])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_components_are_the_rows_that_the_indices_name(vectors, as_stored):
    X, y = _digits()
    span = _map(vectors=vectors).fit(as_stored(X), y)
    assert len(set(span.component_indices_)) == 30
    assert_array_equal(span.components_, X[span.component_indices_])


def test_centres_of_k_means_are_not_rows():
    X, _ = _digits()
    span = _map().fit(X)
    assert span.component_indices_ is None
    distance = ((span.components_[:, None] - X[None]) ** 2).sum(axis=2)
    assert (distance.min(axis=1) > 0).mean() > 0.5
    # A centre lies among the rows.
    assert (span.components_ >= X.min(axis=0) - 1e-9).all()
    assert (span.components_ <= X.max(axis=0) + 1e-9).all()


def test_core_vectors_need_labels():
    X, y = _digits()
    with pytest.raises(ValueError, match=r"vectors='core'.*y.*kmeans"):
        _map(vectors="core").fit(X)
    assert len(_map(vectors="core").fit(X, y).components_) == 30


def test_core_vectors_are_those_of_a_margin_classifier():
    X, y = _digits()
    span = _map(vectors="core").fit(X, y)
    machine = MarginClassifier(
        gamma=GAMMA, engine="span", max_vectors=30, tol=1e-2, random_state=0
    ).fit(X, y)
    assert_array_equal(np.sort(span.component_indices_), machine.support_)


def test_the_labels_do_not_matter_to_other_vectors():
    X, y = _digits()
    for vectors in ("kmeans", "random", "leverage"):
        with_labels = _map(vectors=vectors).fit(X, y)
        without = _map(vectors=vectors).fit(X)
        assert_array_equal(with_labels.components_, without.components_)


def test_a_strategy_object_equals_its_name():
    X, _ = _digits()
    named = _map(vectors="leverage").fit(X)
    given = _map(vectors=LeverageVectors()).fit(X)
    assert_array_equal(given.transform(X), named.transform(X))


@pytest.mark.parametrize("vectors", ["random", "leverage", "core"])
def test_a_precomputed_kernel_equals_the_named_one(vectors):
    X, y = _digits()
    K = rbf_kernel(X, gamma=GAMMA)
    span = SpanMap(20, vectors=vectors, kernel="precomputed", random_state=0)
    span.fit(K[:150, :150], y[:150])
    rows = span.component_indices_
    assert len(rows) == 20
    features = span.transform(K[:, :150])
    expected = _projected(KERNELS["rbf"], X, X[rows], X)
    assert_allclose(features @ features.T, expected, atol=1e-8)
    stored = clone(span).fit(sparse.csr_array(K[:150, :150]), y[:150])
    assert_allclose(stored.transform(sparse.csr_array(K[:, :150])), features, atol=1e-9)


def test_a_precomputed_kernel_must_be_square_and_has_no_centres():
    X, _ = _digits()
    with pytest.raises(ValueError, match=r"precomputed.*square.*\(200, 64\)"):
        SpanMap(kernel="precomputed", vectors="random").fit(X)
    with pytest.raises(ValueError, match=r"kmeans.*precomputed.*'random'"):
        SpanMap(kernel="precomputed").fit(rbf_kernel(X))


def test_a_function_or_a_kernel_object_equals_the_name():
    X, _ = _digits()
    named = _map().fit_transform(X)
    function = _map(kernel=rbf_kernel, kernel_params={"gamma": GAMMA}).fit_transform(X)
    assert_allclose(function @ function.T, named @ named.T, atol=1e-8)
    assert_allclose(_map(kernel=RBF(gamma=GAMMA)).fit_transform(X), named, atol=1e-9)


# Vectors that say nothing new.


@every_strategy
def test_fewer_different_rows_than_vectors_give_as_many_features_as_rows(vectors):
    X, y = _digits(7)
    copies = np.repeat(np.arange(7), 20)
    span = _map(50, vectors=vectors).fit(X[copies], y[copies])
    assert len(span.components_) == 7
    K = rbf_kernel(X, gamma=GAMMA)
    features = span.transform(X)
    assert_allclose(features @ features.T, K, atol=1e-8)


@pytest.mark.parametrize("vectors", ["kmeans", "random", "leverage"])
@pytest.mark.parametrize("gamma", [1e-6, 1e-20])
def test_a_very_wide_kernel_needs_fewer_features(vectors, gamma):
    X, _ = _digits()
    span = _map(60, vectors=vectors, gamma=gamma).fit(X)
    assert 1 <= len(span.components_) < 60
    features = span.transform(X)
    assert np.isfinite(features).all()
    assert_allclose(features @ features.T, rbf_kernel(X, gamma=gamma), atol=1e-6)


def test_rows_that_are_all_the_same_give_one_feature():
    features = _map().fit_transform(np.ones((20, 3)))
    assert_allclose(features, np.ones((20, 1)))


def test_the_tolerance_decides_which_vectors_are_redundant():
    X, _ = _digits()
    sizes = [len(_map(100, gamma=1e-3, tol=tol).fit(X).components_) for tol in (0.0, 1e-4, 1e-2)]
    assert sizes[0] > sizes[1] > sizes[2] >= 1
    K, gamma = rbf_kernel(X, gamma=1e-3), {"gamma": 1e-3}
    coarse = _map(200, vectors="random", tol=1e-2, **gamma).fit_transform(X)
    # Each row that was left out lies within the tolerance of the span.
    assert (np.diagonal(K) - (coarse**2).sum(axis=1)).max() <= 1e-2 * (1 + 1e-9)


def test_a_kernel_that_is_zero_everywhere_spans_nothing_and_is_an_error():
    with pytest.raises(ValueError, match=r"kernel='linear'.*span nothing"):
        _map(kernel="linear", vectors="random").fit(np.zeros((10, 2)))


def test_heavy_rows_are_drawn_first():
    X, _ = _digits()
    weight = np.where(np.arange(200) < 20, 1e6, 1.0)
    span = _map(20, vectors="random").fit(X, sample_weight=weight)
    assert_array_equal(np.sort(span.component_indices_), np.arange(20))


# Seeds and memory.


@every_strategy
def test_another_seed_gives_other_vectors(vectors):
    X, y = _digits(300, n_classes=10)
    first, other = (_map(vectors=vectors, random_state=seed).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(other.components_, first.components_)


def test_the_memory_budget_does_not_change_the_features():
    X, _ = _digits()
    span = _map().fit(X)
    features = span.transform(X)
    assert_allclose(span.set_params(memory="10kB").transform(X), features, atol=1e-12)


def test_flags_give_the_answer_of_zeros_and_ones():
    X = whole_digits(10, 100)[0].astype(bool)
    features = _map(vectors="random").fit_transform(X)
    assert features.dtype == np.float64
    expected = _map(vectors="random").fit_transform(X.astype(np.float64))
    assert_allclose(features, expected, atol=1e-12)


@every_strategy
@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_any_scale_of_the_rows_gives_the_same_features_or_an_error(vectors, scale):
    X, y = _digits(100)
    plain = _map(20, vectors=vectors, gamma="scale").fit(X, y).transform(X)
    span = _map(20, vectors=vectors, gamma="scale")
    try:
        features = span.fit(X * scale, y).transform(X * scale)
    except ValueError as error:
        assert "cale X" in str(error)
    else:
        # The rounding of another scale may draw other rows.
        assert features.shape == plain.shape
        expected = _projected(
            lambda A, B: rbf_kernel(A, B, gamma=span.gamma_ * scale**2),
            X,
            span.components_ / scale,
            X,
        )
        assert_allclose(features @ features.T, expected, atol=1e-6)


# With the rest of scikit-learn.


@every_strategy
def test_a_linear_machine_behind_the_map_is_the_kernel_machine_of_the_span(vectors):
    X, y = _digits(300, n_classes=2)
    pipeline = make_pipeline(
        _map(vectors=vectors), LinearSVC(C=2.0, dual=False, tol=1e-10, max_iter=100_000)
    ).fit(X, y)
    span, linear = pipeline.named_steps.values()
    machine = MarginClassifier(
        C=2.0, gamma=GAMMA, engine="span", vectors=span.components_, tol=1e-9
    ).fit(X, y)
    assert_allclose(pipeline.decision_function(X), machine.decision_function(X), atol=1e-4)
    reached = linear_svc_objective(
        span.transform(X), 2.0 * y - 1, 2.0, None, linear.coef_, linear.intercept_
    )
    assert_allclose(machine.certificate_.primal, reached, rtol=1e-7)


# Bad input.


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_vectors": 0},
        {"n_vectors": 2.5},
        {"n_vectors": "auto"},
        {"vectors": "centres"},
        {"vectors": np.zeros((3, 5))},
        {"vectors": np.zeros((0, 64))},
        {"vectors": np.full((3, 64), np.inf)},
        {"kernel": "rfb"},
        {"kernel_params": {"gamma": 1.0}},
        {"gamma": 0.0},
        {"gamma": "wide"},
        {"degree": 0},
        {"coef0": np.nan, "kernel": "poly"},
        {"tol": -1e-3},
        {"tol": np.nan},
        {"memory": "lots"},
        {"n_jobs": 0},
    ],
    ids=str,
)
def test_a_bad_parameter_is_named_in_the_error(parameters):
    X, _ = _digits()
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        SpanMap(**parameters).fit(X)


@pytest.mark.parametrize("vectors", ["kmeans", "random", "leverage"])
def test_one_row_and_one_column_are_enough(vectors):
    one = _map(vectors=vectors).fit_transform(np.array([[3.0]]))
    assert_allclose(one, [[1.0]])
    column = np.linspace(-1, 1, 9)[:, None]
    features = _map(9, vectors=vectors, gamma=3.0).fit_transform(column)
    assert_allclose(features @ features.T, rbf_kernel(column, gamma=3.0), atol=1e-6)
