"""`PairwiseAccuracyDA` and `KernelFisherDA` against LDA, plain eigenproblems and each other."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from tests.reference.fisher_da import accuracy_weight, angle_between, fisher, kernel_fisher
from widemargin import KernelFisherDA, PairwiseAccuracyDA
from widemargin.discriminant import pairs
from widemargin.discriminant.pairwise_accuracy import pull

WAYS = {
    "linear": PairwiseAccuracyDA(),
    "shrunk": PairwiseAccuracyDA(shrinkage="auto"),
    "span": PairwiseAccuracyDA(kernel="rbf", shrinkage="auto", n_vectors=20, random_state=0),
    "kernel Fisher": KernelFisherDA(solver="kernel"),
    "span Fisher": KernelFisherDA(solver="span", n_vectors=20, random_state=0),
}
every_way = pytest.mark.parametrize("way", WAYS)


def _wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def _classes(c=6, d=8, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % c)
    mix = rng.normal(size=(d, d))
    return 2 * rng.normal(size=(c, d))[y] @ mix + rng.normal(size=(n, d)) @ mix, y


def _same_up_to_signs(found, expected, **tolerance):
    sign = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * sign, expected, **tolerance)


# Pairwise accuracy: the criterion.


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighting", ["accuracy", "equal"])
def test_the_directions_solve_the_plain_eigenproblem(seed, weighting):
    X, y = _classes(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    plain = accuracy_weight if weighting == "accuracy" else lambda distance: 1.0
    vectors, values = fisher(X, y, weight, pair_weight=plain)
    model = PairwiseAccuracyDA(weighting=weighting).fit(X, y, sample_weight=weight)
    assert_allclose(model.criterion_, values[:5], rtol=1e-9)
    _same_up_to_signs(model.components_.T, vectors[:, :5], rtol=1e-7, atol=1e-9)
    two = clone(model).set_params(n_components=2).fit(X, y, sample_weight=weight)
    assert_allclose(two.components_, model.components_[:2], rtol=1e-12)
    # The weights do something.
    if weighting == "accuracy":
        other = fisher(X, y, weight)[0]
        assert angle_between(two.components_.T, other[:, :2]) > 1e-3


def test_the_whole_criterion_is_the_mean_accuracy_of_the_pairs():
    # With all directions: Σ_{i<j} p_i p_j ½ erf(D / 2√2), the trace of the between-class matrix.
    from scipy.special import erf

    X, y = _classes()
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
        _same_up_to_signs(model.transform(X), expected - expected.mean(axis=0), atol=1e-7)


def test_columns_that_do_not_vary_or_depend_on_others_are_left_out_as_lda_does():
    X, y = load_digits(return_X_y=True)
    X = np.column_stack([X, X[:, 10:20] + X[:, 20:30]])
    model = PairwiseAccuracyDA(4, weighting="equal").fit(X, y)
    lda = LinearDiscriminantAnalysis("svd", n_components=4).fit(X, y)
    found, expected = model.transform(X), lda.transform(X)
    # Whether its covariance is divided by the rows or the degrees of freedom is not the point.
    expected *= np.linalg.norm(found) / np.linalg.norm(expected)
    _same_up_to_signs(found, expected, atol=1e-7)


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
    X, y = _wine()
    X, y = X[y > 0], y[y > 0]
    model = PairwiseAccuracyDA(shrinkage=shrinkage).fit(X, y)
    lda = LinearDiscriminantAnalysis("lsqr", shrinkage=model.shrinkage_).fit(X, y)
    assert model.components_.shape == (1, 13)
    assert angle_between(model.components_.T, lda.coef_.T) <= 1e-9


def test_priors_weigh_pairs_and_covariance():
    X, y = _classes(4)
    priors = np.array([0.1, 0.4, 0.2, 0.3])
    vectors, values = fisher(X, y, priors=priors, pair_weight=accuracy_weight)
    model = PairwiseAccuracyDA(priors=priors).fit(X, y)
    assert_array_equal(model.priors_, priors)
    assert_allclose(model.criterion_, values[:3], rtol=1e-9)
    _same_up_to_signs(model.components_.T, vectors[:, :3], rtol=1e-7, atol=1e-9)
    for bad in ([0.5, 0.5], [0.1, 0.4, 0.2, 0.4], [0.6, 0.6, -0.2, 0.0], "even", [[0.25] * 4]):
        with pytest.raises(ValueError, match=r"priors="):
            PairwiseAccuracyDA(priors=bad).fit(X, y)


@pytest.mark.parametrize("way", ["linear", "span"])
def test_projections_have_the_identity_as_within_class_covariance(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    model = clone(WAYS[way]).set_params(shrinkage=None).fit(X, y)
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


def test_pairs_come_in_blocks_and_equal_or_close_means_are_harmless(monkeypatch):
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
    for block, threads in ((1, 1), (500, 3), (pairs._BLOCK, 1)):
        monkeypatch.setattr(pairs, "_BLOCK", block)
        found = pull(means, priors, "accuracy", threads)
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


# Kernel Fisher.


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_kernel_fisher_solves_the_plain_eigenproblem(regularization):
    X, y = _wine()
    X, y = X[::2], y[::2]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    expected, values = kernel_fisher(rbf_kernel(X, gamma=0.3), y, weight, regularization)
    for kernel, rows in (("rbf", X), ("precomputed", rbf_kernel(X, gamma=0.3))):
        model = KernelFisherDA(kernel=kernel, gamma=0.3, regularization=regularization)
        found = model.fit(rows, y, sample_weight=weight).transform(rows)
        assert model.solver_ == "kernel"
        assert_allclose(model.criterion_, values, rtol=1e-8)
        _same_up_to_signs(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_the_span_of_all_rows_is_the_whole_problem(kernel):
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    full = KernelFisherDA(kernel=kernel, solver="kernel").fit(X, y)
    span = KernelFisherDA(kernel=kernel, vectors=X, n_vectors=200).fit(X, y)
    assert (full.solver_, span.solver_) == ("kernel", "span")
    assert_allclose(span.criterion_, full.criterion_, rtol=1e-6)
    new = load_digits(n_class=4).data[200:300] / 16
    _same_up_to_signs(span.transform(new), full.transform(new), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", ["kernel", "span"])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_the_linear_kernel_spans_the_subspace_of_lda(solver, load):
    X, y = load(return_X_y=True)
    size = X.std(axis=0)
    for regularization in (0.0, 1e-3):
        model = KernelFisherDA(
            kernel="linear", solver=solver, regularization=regularization, random_state=0
        ).fit(X, y)
        # In units of the ridge, (1 − s) S + s μ I is the same direction.
        mean = np.array([X[y == k].mean(axis=0) for k in range(3)])
        variance = ((X - mean[y]) ** 2).sum() / len(X) / X.shape[1]
        ridge = regularization * ((X - X.mean(axis=0)) ** 2).sum() / len(X)
        shrinkage = ridge / (ridge + variance) if ridge else None
        lda = LinearDiscriminantAnalysis("lsqr", shrinkage=shrinkage).fit(X, y)
        normals = (lda.coef_ - lda.coef_[0])[1:].T
        directions = (model.coef_ @ model.vectors_).T
        assert angle_between(directions * size[:, None], normals * size[:, None]) <= 1e-6


def test_features_have_mean_zero_and_unit_variance_with_the_ridge():
    X, y = load_digits(n_class=3, return_X_y=True)
    model = KernelFisherDA(regularization=1e-2).fit(X, y)
    features = model.transform(X)
    centred = features - np.array([features[y == k].mean(axis=0) for k in range(3)])[y]
    K = rbf_kernel(X, gamma=model.gamma_)
    variance = 1.0 - K.mean()
    norm2 = model.coef_ @ rbf_kernel(model.vectors_, gamma=model.gamma_) @ model.coef_.T
    ridged = centred.T @ centred / len(X) + 1e-2 * variance * norm2
    assert_allclose(ridged, np.eye(2), atol=1e-8)
    assert_allclose(features.mean(axis=0), 0.0, atol=1e-8)


def test_kernels_separate_what_lines_cannot():
    X, y = make_moons(300, noise=0.1, random_state=0)
    model = make_pipeline(KernelFisherDA(gamma=2.0), NearestCentroid())
    assert model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.97
    digits, labels = load_digits(return_X_y=True)
    model = make_pipeline(KernelFisherDA(solver="span", random_state=0), NearestCentroid())
    assert model.fit(digits[:1000], labels[:1000]).score(digits[1000:], labels[1000:]) > 0.93


def test_auto_takes_all_distinct_rows_up_to_a_number(monkeypatch):
    monkeypatch.setattr("widemargin.discriminant.kernel_fisher._EXACT_ROWS", 100)
    X, y = _wine()
    assert KernelFisherDA().fit(X, y).solver_ == "span"
    assert KernelFisherDA(solver="kernel").fit(X, y).solver_ == "kernel"
    copies = np.repeat(np.arange(0, 178, 2), 3)
    few = KernelFisherDA().fit(X[copies], y[copies])
    assert few.solver_ == "kernel"
    assert len(few.vectors_) == 89
    assert_array_equal(X[copies][few.support_], few.vectors_)
    counted = KernelFisherDA().fit(X, y, sample_weight=np.arange(178) % 2)
    assert_array_equal(X[counted.support_], counted.vectors_)
    assert set(counted.support_) == set(range(1, 178, 2))
    assert KernelFisherDA(vectors=X[:9]).fit(X[copies], y[copies]).solver_ == "span"
    assert KernelFisherDA(kernel="precomputed").fit(X @ X.T, y).solver_ == "kernel"
    with pytest.raises(ValueError, match=r"memory='10kB'.*solver='span'"):
        KernelFisherDA(solver="kernel", memory="10kB").fit(X, y)
    precomputed = KernelFisherDA(kernel="precomputed", solver="span", vectors="random")
    assert precomputed.fit(rbf_kernel(X), y).solver_ == "span"


# What users feed them with.


@every_way
def test_weight_k_is_the_same_as_k_copies(way):
    X, y = _wine()
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    weighted = clone(WAYS[way]).fit(X, np.where(k, y, 7), sample_weight=k)
    copied = clone(WAYS[way]).fit(X[copies], y[copies])
    if way == "kernel Fisher":
        # A kernel matrix keeps the rows that do not count.
        K = rbf_kernel(X, gamma=weighted.gamma_)
        precomputed = KernelFisherDA(kernel="precomputed").fit(K, y, sample_weight=k)
        assert_allclose(precomputed.transform(K), weighted.transform(X), atol=1e-7)
    assert_array_equal(weighted.classes_, [0, 1, 2])
    assert_allclose(weighted.transform(X), copied.transform(X), atol=1e-7)
    assert_allclose(weighted.criterion_, copied.criterion_, rtol=1e-8)


@every_way
def test_threads_do_not_change_a_bit_and_order_changes_little(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    one, two = (clone(WAYS[way]).set_params(n_jobs=n, memory="16MB") for n in (1, 3))
    first = one.fit(X, y).transform(X)
    assert_array_equal(two.fit(X, y).transform(X), first)
    order = np.random.default_rng(0).permutation(len(X))
    assert_allclose(one.fit(X[order], y[order]).transform(X), first, atol=1e-6)


@every_way
@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda X: X.astype(np.int8),
        lambda X: X.astype(np.float32),
        sparse.csr_array,
        sparse.csc_matrix,
    ],
    ids=["Fortran", "int8", "float32", "csr", "csc"],
)
def test_the_storage_does_not_matter(way, form):
    X, y = load_digits(n_class=3, return_X_y=True)
    plain = clone(WAYS[way]).fit(X, y).transform(X)
    stored = form(X)
    features = clone(WAYS[way]).fit(stored, y).transform(stored)
    single = stored.dtype == np.float32
    assert features.dtype == (np.float32 if single else np.float64)
    assert_allclose(features, plain, atol=1e-2 if single else 1e-7)


@every_way
def test_memory_mapped_rows_and_wide_indices(way, tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    plain = clone(WAYS[way]).fit(X, y).transform(X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_array_equal(clone(WAYS[way]).fit(mapped, y).transform(mapped), plain)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_allclose(clone(WAYS[way]).fit(wide, y).transform(wide), plain, atol=1e-7)


@every_way
def test_labels_of_any_type_and_names(way):
    X, y = _wine()
    words = np.array(["rouge", "blanc", "rosé"])[y]
    plain, named = clone(WAYS[way]).fit(X, y), clone(WAYS[way]).fit(X, words)
    assert_array_equal(named.classes_, ["blanc", "rosé", "rouge"])
    assert_allclose(np.abs(named.transform(X)), np.abs(plain.transform(X)), atol=1e-7)
    prefix = type(plain).__name__.lower()
    assert plain.get_feature_names_out().tolist() == [f"{prefix}0", f"{prefix}1"]
    again = pickle.loads(pickle.dumps(plain))
    assert_array_equal(again.transform(X), plain.transform(X))


@every_way
# Powers of two, which keep all digits: other factors round, and features from nearly equal vectors
# multiply that by much.
@pytest.mark.parametrize("size", [2.0**-498, 2.0**-66, 2.0**66, 2.0**480])
def test_rows_of_any_size_give_the_same_features(way, size):
    X, y = _wine()
    # The choice of vectors depends on the bits of the rows.
    plain = clone(WAYS[way]).set_params(vectors=X[:20]).fit(X, y)
    sized = clone(WAYS[way]).set_params(vectors=X[:20] * size).fit(X * size, y)
    assert_allclose(np.abs(sized.transform(X * size)), np.abs(plain.transform(X)), atol=1e-6)


@every_way
def test_an_offset_costs_few_digits(way):
    X, y = load_iris(return_X_y=True)
    X = np.round(X * 64) / 64
    # Kernels subtract nothing from the rows.
    offset = 1e8 if WAYS[way].kernel is None else 1e3
    near = clone(WAYS[way]).set_params(gamma=0.5, vectors=X[:50]).fit(X, y)
    far = clone(WAYS[way]).set_params(gamma=0.5, vectors=X[:50] + offset).fit(X + offset, y)
    assert_allclose(np.abs(far.transform(X + offset)), np.abs(near.transform(X)), atol=1e-5)


@every_way
def test_fewer_rows_than_columns_and_constant_columns(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:30], y[:30]
    model = clone(WAYS[way]).fit(X, y)
    features = model.transform(X)
    assert np.isfinite(features).all()
    assert features.shape == (30, 2)
    assert NearestCentroid().fit(features, y).score(features, y) == 1.0


@every_way
def test_a_class_of_one_row_and_rows_that_are_all_equal_in_a_class(way):
    X, y = _wine()
    y = y.copy()
    y[-1] = 9
    features = clone(WAYS[way]).fit(X, y).transform(X)
    assert features.shape == (178, 3)
    assert np.isfinite(features).all()
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    equal, labels = corners[[0, 1, 2, 0, 1, 2]], np.array([0, 1, 2, 0, 1, 2])
    model = clone(WAYS[way]).fit(equal, labels)
    means = model.transform(corners)
    assert means.shape == (3, 2)
    assert np.linalg.matrix_rank(means - means[0], tol=1e-6) == 2
    two = clone(WAYS[way]).fit(np.array([[0.0], [1.0]]), ["a", "b"])
    assert two.transform([[0.0], [1.0]]).shape == (2, 1)


@every_way
def test_rows_without_any_difference_are_refused(way):
    with pytest.raises(ValueError, match=r"(?i)same mean"):
        clone(WAYS[way]).fit(np.ones((6, 2)), [0, 1, 2, 0, 1, 2])


@every_way
def test_too_many_components_are_refused_with_the_reason(way):
    X, y = _wine()
    with pytest.raises(ValueError, match=r"n_components=3 must be at most 2.*3 classes.*rank 2"):
        clone(WAYS[way]).set_params(n_components=3).fit(X, y)
    for bad, error in ((0, ValueError), (1.5, TypeError), ("auto", TypeError)):
        with pytest.raises(error, match="n_components="):
            clone(WAYS[way]).set_params(n_components=bad).fit(X, y)


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
    X, y = _wine()
    with pytest.raises(ValueError, match=match):
        kind(**parameters).fit(X, y)


@every_way
def test_wrong_input_is_named(way):
    X, y = _wine()
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(WAYS[way]).fit(bad, y)
    with pytest.raises(ValueError, match="two classes"):
        clone(WAYS[way]).fit(X, np.zeros(178))
    with pytest.raises(ValueError, match="minimum of 2"):
        clone(WAYS[way]).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"(?i)sample.weight|two classes"):
        clone(WAYS[way]).fit(X, y, sample_weight=np.zeros(178))
    with pytest.raises(ValueError, match=r"(?i)unknown label type|continuous"):
        clone(WAYS[way]).fit(X, X[:, 0])
    fitted = clone(WAYS[way]).fit(X, y)
    with pytest.raises(ValueError, match="13 features"):
        fitted.transform(X[:, :5])


@every_way
def test_a_second_fit_leaves_nothing_of_the_first(way):
    X, y = _wine()
    model = clone(WAYS[way]).fit(X[:, :5], y == 1)
    again = model.fit(X, y).transform(X)
    assert_array_equal(again, clone(WAYS[way]).fit(X, y).transform(X))


def test_more_columns_than_memory_are_refused_with_a_remedy():
    X = sparse.random_array((20, 9000), density=0.01, format="csr", rng=0)
    with pytest.raises(ValueError, match=r"X has 9,000 columns.*kernel='linear'"):
        PairwiseAccuracyDA().fit(X, np.arange(20) % 3)
    kept = PairwiseAccuracyDA(kernel="linear", n_vectors=10).fit(X, np.arange(20) % 3)
    assert kept.transform(X).shape == (20, 2)


def test_a_kernel_matrix_that_is_not_symmetric_is_refused():
    K = np.random.default_rng(0).normal(size=(12, 12))
    with pytest.raises(ValueError, match="symmetric"):
        KernelFisherDA(kernel="precomputed", solver="kernel").fit(K, np.arange(12) % 2)
