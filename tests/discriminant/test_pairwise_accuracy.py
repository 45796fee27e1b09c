"""`PairwiseAccuracyDA` against LDA and plain eigenproblems; odd data for both discriminants."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from tests.reference.data import groups, wine
from tests.reference.fisher_da import accuracy_weight, angle_between, fisher, same_up_to_signs
from tests.reference.projection_ways import FISHER, every, projection
from widemargin import KernelFisherDA, PairwiseAccuracyDA
from widemargin.pairs.class_pairs import BLOCK
from widemargin.pairs.pairwise_accuracy_weights import pull

# Pairwise accuracy: the criterion.


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighting", ["accuracy", "equal"])
def test_the_directions_solve_the_plain_eigenproblem(seed, weighting):
    X, y = groups(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    plain = accuracy_weight if weighting == "accuracy" else lambda distance: 1.0
    vectors, values = fisher(X, y, weight, pair_weight=plain)
    model = PairwiseAccuracyDA(weighting=weighting).fit(X, y, sample_weight=weight)
    assert_allclose(model.criterion_, values[:5], rtol=1e-9)
    same_up_to_signs(model.components_.T, vectors[:, :5], rtol=1e-7, atol=1e-9)
    two = clone(model).set_params(n_components=2).fit(X, y, sample_weight=weight)
    assert_allclose(two.components_, model.components_[:2], rtol=1e-12)
    # The weights do something.
    if weighting == "accuracy":
        other = fisher(X, y, weight)[0]
        assert angle_between(two.components_.T, other[:, :2]) > 1e-3


def test_the_whole_criterion_is_the_mean_accuracy_of_the_pairs():
    # With all directions: Σ_{i<j} p_i p_j ½ erf(D / 2√2), the trace of the between-class matrix.
    from scipy.special import erf

    X, y = groups()
    model = PairwiseAccuracyDA().fit(X, y)
    means = np.array([model.transform(X[y == k]).mean(axis=0) for k in range(6)])
    i, j = np.triu_indices(6, 1)
    distance = np.linalg.norm(means[i] - means[j], axis=1)
    accuracy = (0.5 * erf(distance / np.sqrt(8)) / 36).sum()
    assert_allclose(model.criterion_.sum(), accuracy, rtol=1e-10)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_with_equal_weights_it_is_lda(load):
    X, y = load(return_X_y=True)
    if load is load_digits:
        X = X[:, X.std(axis=0) > 1.5]
    for n_components in (1, 2):
        model = PairwiseAccuracyDA(n_components, weighting="equal").fit(X, y)
        lda = LinearDiscriminantAnalysis("eigen", n_components=n_components).fit(X, y)
        assert angle_between(model.components_.T, lda.scalings_[:, :n_components]) <= 1e-7
        expected = lda.transform(X)
        same_up_to_signs(model.transform(X), expected - expected.mean(axis=0), atol=1e-7)


def test_columns_that_do_not_vary_or_depend_on_others_are_left_out_as_lda_does():
    X, y = load_digits(return_X_y=True)
    X = np.column_stack([X, X[:, 10:20] + X[:, 20:30]])
    model = PairwiseAccuracyDA(4, weighting="equal").fit(X, y)
    lda = LinearDiscriminantAnalysis("svd", n_components=4).fit(X, y)
    found, expected = model.transform(X), lda.transform(X)
    # Whether its covariance is divided by the rows or the degrees of freedom is not the point.
    expected *= np.linalg.norm(found) / np.linalg.norm(expected)
    same_up_to_signs(found, expected, atol=1e-7)


@pytest.mark.parametrize("shrinkage", [None, 0.1, 1.0])
@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]])
def test_all_directions_span_the_subspace_of_lda(shrinkage, priors):
    X, y = load_wine(return_X_y=True)
    model = PairwiseAccuracyDA(shrinkage=shrinkage, priors=priors).fit(X, y)
    lda = LinearDiscriminantAnalysis("lsqr", shrinkage=shrinkage, priors=priors).fit(X, y)
    normals = (lda.coef_ - lda.coef_[0])[1:].T
    size = X.std(axis=0)
    assert angle_between(model.components_.T * size[:, None], normals * size[:, None]) <= 1e-6


@pytest.mark.parametrize("shrinkage", [None, 0.3, "auto"])
def test_two_classes_have_one_direction(shrinkage):
    X, y = wine()
    X, y = X[y > 0], y[y > 0]
    model = PairwiseAccuracyDA(shrinkage=shrinkage).fit(X, y)
    lda = LinearDiscriminantAnalysis("lsqr", shrinkage=model.shrinkage_).fit(X, y)
    assert model.components_.shape == (1, 13)
    assert angle_between(model.components_.T, lda.coef_.T) <= 1e-9


def test_priors_weigh_pairs_and_covariance():
    X, y = groups(4)
    priors = np.array([0.1, 0.4, 0.2, 0.3])
    vectors, values = fisher(X, y, priors=priors, pair_weight=accuracy_weight)
    model = PairwiseAccuracyDA(priors=priors).fit(X, y)
    assert_array_equal(model.priors_, priors)
    assert_allclose(model.criterion_, values[:3], rtol=1e-9)
    same_up_to_signs(model.components_.T, vectors[:, :3], rtol=1e-7, atol=1e-9)
    for bad in ([0.5, 0.5], [0.1, 0.4, 0.2, 0.4], [0.6, 0.6, -0.2, 0.0], "even", [[0.25] * 4]):
        with pytest.raises(ValueError, match=r"priors="):
            PairwiseAccuracyDA(priors=bad).fit(X, y)


@every(["pairwise", "pairwise kernel"])
def test_projections_have_the_identity_as_within_class_covariance(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    model = projection(way).set_params(shrinkage=None).fit(X, y)
    features = model.transform(X)
    centred = features - np.array([features[y == k].mean(axis=0) for k in range(3)])[y]
    assert_allclose(centred.T @ centred / len(X), np.eye(2), atol=1e-9)
    assert_allclose(features.mean(axis=0), 0.0, atol=1e-9)


def test_close_pairs_count_more():
    # Four classes side by side, and one so far away that LDA looks at nothing else.
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 5
    X = rng.normal(size=(1000, 2)) + np.array([[0, 0], [0, 3], [0, 6], [0, 9], [30, 4.5]])[y]
    near = y < 4

    def accuracy(model):
        features = model.fit(X, y).transform(X)
        return NearestCentroid().fit(features[near], y[near]).score(features[near], y[near])

    assert accuracy(PairwiseAccuracyDA(1, weighting="equal")) < 0.4
    assert accuracy(PairwiseAccuracyDA(1)) > 0.85


def test_pairs_come_in_blocks_and_equal_or_close_means_are_harmless():
    rng = np.random.default_rng(1)
    means = 100 * rng.normal(size=(60, 5))
    means[10] = means[11]
    means[20] = means[21] + 1e-7
    priors = rng.dirichlet(np.ones(60))
    expected = np.zeros((60, 60))
    for i in range(60):
        for j in range(60):
            distance = np.linalg.norm(means[i] - means[j])
            if distance > 0:
                expected[i, j] = -priors[i] * priors[j] * accuracy_weight(distance)
    np.fill_diagonal(expected, -expected.sum(axis=1))
    for block, threads in ((1, 1), (500, 3), (BLOCK, 1)):
        found = pull(means, priors, "accuracy", threads, block=block)
        # Two means that are 1e-7 apart have a weight of 1e6.
        assert_allclose(found, expected @ means, rtol=1e-7, atol=1e-10)


def test_thousands_of_classes_need_no_matrix_of_pairs():
    import tracemalloc

    means = np.random.default_rng(0).normal(size=(3000, 8))
    priors = np.full(3000, 1 / 3000)
    tracemalloc.start()
    found = pull(means, priors, "accuracy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All pairs would take 72 MB.
    assert peak < 20_000_000
    assert_array_equal(found, pull(means, priors, "accuracy", 2))


@every(FISHER)
# Powers of two, which keep all digits: other factors round, and features from nearly equal vectors
# multiply that by much.
@pytest.mark.parametrize("size", [2.0**-498, 2.0**-66, 2.0**66, 2.0**480])
def test_rows_of_any_size_give_the_same_features(way, size):
    X, y = wine()
    # The choice of vectors depends on the bits of the rows.
    plain = projection(way).set_params(vectors=X[:20]).fit(X, y)
    sized = projection(way).set_params(vectors=X[:20] * size).fit(X * size, y)
    assert_allclose(np.abs(sized.transform(X * size)), np.abs(plain.transform(X)), atol=1e-6)


@every(FISHER)
def test_an_offset_costs_few_digits(way):
    X, y = load_iris(return_X_y=True)
    X = np.round(X * 64) / 64
    # Kernels subtract nothing from the rows.
    offset = 1e8 if FISHER[way].kernel is None else 1e3
    near = projection(way).set_params(gamma=0.5, vectors=X[:50]).fit(X, y)
    far = projection(way).set_params(gamma=0.5, vectors=X[:50] + offset).fit(X + offset, y)
    assert_allclose(np.abs(far.transform(X + offset)), np.abs(near.transform(X)), atol=1e-5)


@every(FISHER)
def test_fewer_rows_than_columns_and_constant_columns(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:30], y[:30]
    model = projection(way).fit(X, y)
    features = model.transform(X)
    assert np.isfinite(features).all()
    assert features.shape == (30, 2)
    assert NearestCentroid().fit(features, y).score(features, y) == 1.0


@every(FISHER)
def test_a_class_of_one_row_and_rows_that_are_all_equal_in_a_class(way):
    X, y = wine()
    y = y.copy()
    y[-1] = 9
    features = projection(way).fit(X, y).transform(X)
    assert features.shape == (178, 3)
    assert np.isfinite(features).all()
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    equal, labels = corners[[0, 1, 2, 0, 1, 2]], np.array([0, 1, 2, 0, 1, 2])
    model = projection(way).fit(equal, labels)
    means = model.transform(corners)
    assert means.shape == (3, 2)
    assert np.linalg.matrix_rank(means - means[0], tol=1e-6) == 2
    two = projection(way).fit(np.array([[0.0], [1.0]]), ["a", "b"])
    assert two.transform([[0.0], [1.0]]).shape == (2, 1)


@every(FISHER)
def test_rows_without_any_difference_are_refused(way):
    with pytest.raises(ValueError, match=r"(?i)same mean"):
        projection(way).fit(np.ones((6, 2)), [0, 1, 2, 0, 1, 2])


@every(FISHER)
def test_too_many_components_are_refused_with_the_reason(way):
    X, y = wine()
    with pytest.raises(ValueError, match=r"n_components=3 must be at most 2.*3 classes.*rank 2"):
        projection(way).set_params(n_components=3).fit(X, y)
    for bad, error in ((0, ValueError), (1.5, TypeError), ("auto", TypeError)):
        with pytest.raises(error, match="n_components="):
            projection(way).set_params(n_components=bad).fit(X, y)


def test_collinear_means_give_one_direction():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, 4))
    noise = np.vstack([noise, -noise])
    X = np.vstack([noise + k * np.array([1.0, 2.0, 0.0, 0.0]) for k in range(3)])
    y = np.repeat(np.arange(3), 40)
    assert PairwiseAccuracyDA().fit(X, y).components_.shape == (1, 4)
    assert PairwiseAccuracyDA(2).fit(X, y).components_.shape == (2, 4)


@pytest.mark.parametrize(
    ("kind", "parameters", "match"),
    [
        (PairwiseAccuracyDA, {"shrinkage": 2.0}, "shrinkage=2.0"),
        (PairwiseAccuracyDA, {"weighting": "erf"}, "weighting='erf'"),
        (PairwiseAccuracyDA, {"kernel": "rfb"}, "did you mean 'rbf'"),
        (PairwiseAccuracyDA, {"vectors": "best", "kernel": "rbf"}, "vectors='best'"),
        (PairwiseAccuracyDA, {"memory": "much"}, "memory='much'"),
        (KernelFisherDA, {"regularization": -1.0}, "regularization=-1.0"),
        (KernelFisherDA, {"solver": "eigen"}, "solver='eigen'"),
        (KernelFisherDA, {"kernel": None}, "kernel=None"),
        (KernelFisherDA, {"n_vectors": 0}, "n_vectors=0"),
        (KernelFisherDA, {"kernel": "precomputed"}, "square"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(kind, parameters, match):
    X, y = wine()
    with pytest.raises(ValueError, match=match):
        kind(**parameters).fit(X, y)


def test_more_columns_than_memory_are_refused_with_a_remedy():
    X = sparse.random_array((20, 9000), density=0.01, format="csr", rng=0)
    with pytest.raises(ValueError, match=r"X has 9,000 columns.*kernel='linear'"):
        PairwiseAccuracyDA(memory="1GB").fit(X, np.arange(20) % 3)
    kept = PairwiseAccuracyDA(kernel="linear", n_vectors=10).fit(X, np.arange(20) % 3)
    assert kept.transform(X).shape == (20, 2)
