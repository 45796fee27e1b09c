"""`KernelFisherDA` against the plain eigenproblem and LDA."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris, load_wine, make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline

from tests.reference.data import wine
from tests.reference.fisher_da import angle_between, kernel_fisher, same_up_to_signs
from widemargin import KernelFisherDA


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_kernel_fisher_solves_the_plain_eigenproblem(regularization):
    X, y = wine()
    X, y = X[::2], y[::2]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    expected, values = kernel_fisher(rbf_kernel(X, gamma=0.3), y, weight, regularization)
    for kernel, rows in (("rbf", X), ("precomputed", rbf_kernel(X, gamma=0.3))):
        model = KernelFisherDA(kernel=kernel, gamma=0.3, regularization=regularization)
        found = model.fit(rows, y, sample_weight=weight).transform(rows)
        assert model.solver_ == "kernel"
        assert_allclose(model.criterion_, values, rtol=1e-8)
        same_up_to_signs(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_the_span_of_all_rows_is_the_whole_problem(kernel):
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    full = KernelFisherDA(kernel=kernel, solver="kernel").fit(X, y)
    span = KernelFisherDA(kernel=kernel, vectors=X, n_vectors=200).fit(X, y)
    assert (full.solver_, span.solver_) == ("kernel", "span")
    assert_allclose(span.criterion_, full.criterion_, rtol=1e-6)
    new = load_digits(n_class=4).data[200:300] / 16
    same_up_to_signs(span.transform(new), full.transform(new), rtol=1e-4, atol=1e-5)


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


def test_auto_takes_all_distinct_rows_up_to_2000():
    many = np.random.default_rng(0).normal(size=(2001, 2))
    sides = (many[:, 0] > 0).astype(int)
    few_vectors = KernelFisherDA(n_vectors=5)
    assert few_vectors.fit(many, sides).solver_ == "span"
    assert few_vectors.fit(many[:2000], sides[:2000]).solver_ == "kernel"
    assert few_vectors.fit(many, sides, sample_weight=np.arange(2001) > 0).solver_ == "kernel"
    copies = np.repeat(np.arange(1000), 3)
    assert few_vectors.fit(many[copies], sides[copies]).solver_ == "kernel"
    assert KernelFisherDA(solver="kernel").fit(many, sides).solver_ == "kernel"


def test_the_solver_says_which_rows_are_vectors():
    X, y = wine()
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


def test_a_kernel_matrix_that_is_not_symmetric_is_refused():
    K = np.random.default_rng(0).normal(size=(12, 12))
    with pytest.raises(ValueError, match="symmetric"):
        KernelFisherDA(kernel="precomputed", solver="kernel").fit(K, np.arange(12) % 2)
