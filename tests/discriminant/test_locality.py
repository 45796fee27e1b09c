"""Both projections that look at neighbours: kernels, scales, memory, odd data."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone

from tests.reference.data import pairs_of_clusters, wine
from tests.reference.locality import (
    assert_same_features,
    largest_angle,
    local_fisher,
    locality_preserving,
    neighbour_graph,
)
from tests.reference.projection_ways import LOCAL, LPP, every, projection
from widemargin import LocalFisherDA

# Memory for blocks of 16 rows that are read again and again.
LITTLE = 2000


@pytest.mark.parametrize(
    ("way", "size"),
    [
        (way, size)
        for way in LOCAL
        for size in (1e-150, 1e-3, 1.0, 1e150)
        # A kernel width of such rows would be no number.
        if "kernel" not in way or 1e-100 < size < 1e100
    ],
)
def test_rotations_shifts_and_scales_change_nothing(way, size):
    X, y = wine()
    turn = ortho_group.rvs(13, random_state=3)
    model = projection(way)
    moved = X @ turn * size + (0 if size != 1 else 50.0)
    if "kernel" in way:
        model.set_params(n_vectors=len(X))
    first = model.fit(X, y).transform(X)
    gamma = {"gamma": 0.02 / size**2} if "kernel" in way else {}
    second = clone(model).set_params(**gamma).fit(moved, y).transform(moved)
    assert_same_features(first, second, 1e-6)


@pytest.mark.parametrize("way", ["local fisher", "local fisher plain", "preserving"])
def test_rotations_change_nothing_with_fewer_rows_than_columns(way):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 60)) * np.geomspace(1, 30, 60), np.arange(50) % 3
    turn = ortho_group.rvs(60, random_state=3)
    model = projection(way).fit(X[:40], y[:40])
    turned = projection(way).fit(X[:40] @ turn, y[:40])
    # Also of rows that were not there.
    assert_same_features(model.transform(X), turned.transform(X @ turn), 1e-6)


@every(LOCAL)
def test_the_largest_coefficient_of_a_direction_is_positive(way):
    model = projection(way).fit(*wine())
    largest = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(2), largest] > 0).all()


# Kernels.


@pytest.mark.parametrize("way", ["local fisher plain", "preserving", "preserving supervised"])
def test_the_linear_kernel_in_a_full_span_is_the_linear_method(way):
    X, y = wine()
    linear = projection(way).fit(X, y)
    kernel = projection(way, kernel="linear", n_vectors=100, random_state=0).fit(X, y)
    assert_same_features(kernel.transform(X), linear.transform(X), 1e-6)
    assert linear.span_map_ is None
    assert kernel.components_.shape == (2, 13)


@pytest.mark.parametrize("vectors", ["kmeans", "random", "core"])
def test_the_kernel_method_is_the_linear_one_in_the_span(vectors):
    X, y = wine()
    parameters = {"kernel": "rbf", "gamma": 0.02, "vectors": vectors, "n_vectors": 20}
    model = LocalFisherDA(3, shrinkage=None, random_state=0, **parameters).fit(X, y)
    features = model.span_map_.transform(X)
    _, reference = local_fisher(features, y, 3)
    assert largest_angle(model.components_.T, reference) < 1e-6
    assert_allclose(model.transform(X), (features - model.mean_) @ model.components_.T, atol=1e-8)
    preserving = LPP(3, supervised=True, random_state=0, **parameters).fit(X, y)
    features = preserving.span_map_.transform(X)
    _, reference = locality_preserving(features, neighbour_graph(features, 5, y=y), 3)
    assert largest_angle(preserving.components_.T, reference) < 1e-6


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e200])
@pytest.mark.parametrize("way", ["local fisher", "preserving", "preserving supervised"])
def test_the_unit_of_the_weights_does_not_matter(way, factor):
    X, y = wine()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    first = projection(way).fit(X, y, sample_weight=weight)
    second = projection(way).fit(X, y, sample_weight=weight * factor)
    assert_allclose(second.components_, first.components_, rtol=1e-6, atol=1e-8)


@every(LOCAL)
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(way):
    X, y = pairs_of_clusters(2600, 20, 2, 0)  # more than a block of rows in each class
    first = projection(way, n_jobs=1).fit(X, y)
    again = projection(way, n_jobs=2).fit(X, y)
    assert_array_equal(again.components_, first.components_)
    assert_array_equal(again.transform(X), first.transform(X))


@every(LOCAL)
def test_a_small_memory_budget_gives_the_same_features(way):
    X, y = wine()
    plain = projection(way).fit(X, y)
    small = projection(way, memory=LITTLE).fit(X, y)
    assert_allclose(small.transform(X), plain.transform(X), atol=1e-7)


@pytest.mark.parametrize("way", ["local fisher plain", "preserving", "preserving supervised"])
def test_constant_columns_say_nothing(way):
    X, y = wine()
    wide = np.column_stack([np.full(len(X), 0.1), X, np.full(len(X), 12345.678)])
    model = projection(way).fit(wide, y)
    assert_allclose(model.transform(wide), projection(way).fit(X, y).transform(X), atol=1e-8)
    assert_array_equal(model.components_[:, [0, -1]], 0)


def test_rows_with_the_same_features_but_different_columns():
    # The kernel does not see the sign: rows and their mirror images have one place in the span.
    X, y = wine(2)
    X, y = np.concatenate([X, -X]), np.concatenate([y, y])
    for n_neighbors in (1, 3):
        for model in (LocalFisherDA(2, shrinkage=None), LPP(2)):
            model.set_params(
                kernel="poly", degree=2, n_vectors=30, random_state=0, n_neighbors=n_neighbors
            )
            features = model.fit(X, y).transform(X)
            assert np.isfinite(features).all()
            assert_allclose(features[: len(X) // 2], features[len(X) // 2 :], atol=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e200])
@pytest.mark.parametrize("way", ["local fisher", "local fisher plain", "preserving"])
def test_extreme_sizes_are_answered(way, size):
    X, y = wine()
    first = projection(way).fit(X, y).transform(X)
    second = projection(way).fit(X * size, y).transform(X * size)
    assert_same_features(first, second, 1e-6)


def test_rows_that_are_all_equal_have_no_neighbours():
    X, y = np.ones((6, 3)), np.arange(6) % 2
    with pytest.raises(ValueError, match="no two different rows"):
        LPP(1).fit(X)
    with pytest.raises(ValueError, match="no two different rows to join as neighbours in any"):
        LPP(1, supervised=True).fit(X, y)
    # Equal rows of different classes: nothing can be told apart, and nothing is.
    assert_array_equal(LocalFisherDA(1).fit_transform(X, y), np.zeros((6, 1)))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LocalFisherDA(0), ValueError, "n_components=0"),
        (LocalFisherDA(2.5), TypeError, "n_components=2.5"),
        (LocalFisherDA(14), ValueError, "n_components=14 is more than the 13 features"),
        (LocalFisherDA(n_neighbors=0), ValueError, "n_neighbors=0"),
        (LocalFisherDA(embedding="other"), ValueError, "embedding='other'"),
        (LocalFisherDA(shrinkage=1.5), ValueError, "shrinkage=1.5"),
        (LocalFisherDA(shrinkage="none"), ValueError, "shrinkage='none'"),
        (LocalFisherDA(kernel="other"), ValueError, "other"),
        (LocalFisherDA(kernel="rbf", n_vectors=0), ValueError, "n_vectors=0"),
        (LocalFisherDA(memory="much"), ValueError, "memory='much'"),
        (LPP(14), ValueError, "n_components=14 is more than the 13 features"),
        (LPP(5, variance=0.5), ValueError, r"n_components=5, but these rows have \d directions"),
        (LPP(n_neighbors=1.5), TypeError, "n_neighbors=1.5"),
        (LPP(affinity="cosine"), ValueError, "affinity='cosine'"),
        (LPP(bandwidth="wide"), ValueError, "bandwidth='wide'"),
        (LPP(bandwidth=-1.0), ValueError, "bandwidth=-1.0"),
        (LPP(bandwidth=1e-9), ValueError, "bandwidth=1e-09 gives all edges the weight zero"),
        (LPP(supervised="yes"), TypeError, "supervised='yes'"),
        (LPP(kernel="rbf", vectors="core"), ValueError, "vectors='core'.*supervised=True"),
        (LPP(variance=0.0), ValueError, "variance=0.0"),
        (LPP(variance=1.1), ValueError, "variance=1.1"),
    ],
    ids=lambda value: re.sub(r"\W+", " ", value) if isinstance(value, str) else "",
)
def test_bad_parameters_are_refused_by_name(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(*wine())
