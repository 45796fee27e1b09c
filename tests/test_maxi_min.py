"""`MaxiMinDA` against LDA, the other discriminants, and itself: whole, streamed, sliced."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import scale

from tests.reference.fisher_da import angle_between, fisher
from tests.reference.maxi_min import smallest_distance, soft_criterion, whitened_means
from widemargin import MaxiMinDA, PairwiseAccuracyDA
from widemargin.discriminant import maxi_min, sharpness

INF = float("inf")
WAYS = {
    "default": MaxiMinDA(random_state=0),
    "hard": MaxiMinDA(1, sharpness=INF, shrinkage="auto", n_init=2, random_state=0),
    "soft": MaxiMinDA(1, sharpness=1.0, shrinkage=0.1, n_init=1, random_state=0),
    "eigen": MaxiMinDA(1, rounding="eigen", shrinkage="auto"),
    "online": MaxiMinDA(
        1, rounding="eigen", solver="online", n_updates=300, shrinkage=0.1, random_state=0
    ),
    "kernel": MaxiMinDA(kernel="rbf", n_vectors=20, random_state=0),
}
every_way = pytest.mark.parametrize("way", WAYS)


def _wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def _groups(c=6, d=8, n=300, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % c)
    mix = rng.normal(size=(d, d))
    return spread * rng.normal(size=(c, d))[y] @ mix + rng.normal(size=(n, d)) @ mix, y


def _same_up_to_signs(one, other, **tolerance):
    """The same subspace, and the same class means in it, but for the signs of directions."""
    sign = np.sign((one.components_ * other.components_).sum(axis=1))
    assert angle_between(one.components_.T, other.components_.T) <= tolerance.get("atol", 1e-8)
    size = np.abs(other.components_).max()
    tolerance = {"rtol": 0.0, **tolerance}
    assert_allclose(one.components_ / size, sign[:, None] * other.components_ / size, **tolerance)
    size = np.abs(np.nan_to_num(other.class_means_)).max()
    assert_allclose(one.class_means_ / size, sign * other.class_means_ / size, **tolerance)
    assert one.min_distance_ == pytest.approx(other.min_distance_, rel=1e-5)


# The criterion.


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize("shrinkage", [None, 0.01, 0.3])
def test_sharpness_0_is_lda(load, shrinkage):
    X, y = load(return_X_y=True)
    X = scale(X[:, X.std(axis=0) > 1.5] if load is load_digits else X)
    S = _pooled(X, y, shrinkage or 0.0)
    for d in (1, 2):
        model = MaxiMinDA(d, sharpness=0.0, shrinkage=shrinkage).fit(X, y)
        if shrinkage is None:
            expected = LinearDiscriminantAnalysis("eigen", n_components=d).fit(X, y).scalings_
        else:
            # scikit-learn shrinks the covariance of every class by itself.
            expected = fisher(X, y, covariance=S)[0]
        assert angle_between(model.components_.T, expected[:, :d]) <= 1e-6
        assert model.sharpness_ == 0.0
        # Projections are whitened.
        assert_allclose(model.components_ @ S @ model.components_.T, np.eye(d), atol=1e-9)


def _pooled(X, y, shrinkage):
    """The within-class covariance, shrunk."""
    mean = np.array([X[y == k].mean(axis=0) for k in np.unique(y)])
    rest = X - mean[np.searchsorted(np.unique(y), y)]
    S = rest.T @ rest / len(X)
    return (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S))


@pytest.mark.parametrize("sharpness", [0.0, 1.0, INF, "auto"])
@pytest.mark.parametrize("rounding", ["refine", "eigen"])
@pytest.mark.parametrize("solver", ["exact", "online", "sdp"])
def test_two_classes_have_one_direction(sharpness, rounding, solver):
    X, y = _wine()
    X, y = X[y > 0], y[y > 0]
    model = MaxiMinDA(
        sharpness=sharpness, rounding=rounding, solver=solver, shrinkage=0.1, n_updates=50
    ).fit(X, y)
    pairwise = PairwiseAccuracyDA(shrinkage=0.1).fit(X, y)
    assert model.components_.shape == (1, 13)
    assert angle_between(model.components_.T, pairwise.components_.T) <= 1e-6
    normal = np.linalg.solve(_pooled(X, y, 0.1), X[y == 1].mean(axis=0) - X[y == 2].mean(axis=0))
    assert angle_between(model.components_.T, normal[:, None]) <= 1e-6
    assert model.min_distance_ == pytest.approx(model.upper_bound_, rel=1e-9)


def test_two_classes_and_no_shrinkage_are_scikit_learns_lda():
    X, y = _wine()
    X, y = X[y > 0], y[y > 0]
    lda = LinearDiscriminantAnalysis("lsqr").fit(X, y)
    for way in ({"sharpness": INF}, {"sharpness": 0.3}, {"rounding": "eigen"}):
        model = MaxiMinDA(shrinkage=None, **way).fit(X, y)
        assert angle_between(model.components_.T, lda.coef_.T) <= 1e-6


def _distances_of_all(X, y, d, shrinkage=0.1):
    """The smallest distance of refine, eigen, LDA and aPAC, and the upper bound."""
    share = {"shrinkage": shrinkage, "random_state": 0}
    refined = MaxiMinDA(d, sharpness=INF, n_init=2, **share).fit(X, y)
    eigen = MaxiMinDA(d, rounding="eigen", **share).fit(X, y)
    lda = MaxiMinDA(d, sharpness=0.0, **share).fit(X, y)
    pairwise = PairwiseAccuracyDA(d, shrinkage=shrinkage).fit(X, y)
    means = np.array([pairwise.transform(X[y == k]).mean(axis=0) for k in np.unique(y)])
    others = (eigen.min_distance_, lda.min_distance_, smallest_distance(means))
    assert eigen.upper_bound_ >= eigen.min_distance_
    return refined.min_distance_, others, refined.upper_bound_


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_refine_is_the_best_and_below_the_bound(load):
    X, y = load(return_X_y=True)
    for d in (2, 5) if load is load_digits else (1, 2):
        refined, others, bound = _distances_of_all(scale(X), y, d)
        # The search ends where the bound leaves less than this.
        assert refined >= max(others) * (1 - 1e-6)
        assert refined <= bound
        if load is load_digits:
            assert refined > 1.2 * max(others)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(3, 7), st.integers(2, 6), st.floats(0.3, 5.0))
def test_refine_is_the_best_on_generated_sets(seed, c, columns, spread):
    X, y = _groups(c, columns, 15 * c, seed, spread)
    d = 1 + seed % min(c - 1, columns)
    refined, others, bound = _distances_of_all(X, y, d)
    assert refined >= max(others) * (1 - 1e-6)
    assert refined <= bound


def test_what_is_reported_is_what_the_projection_does():
    X, y = _groups(spread=1.0)
    for way in ({"sharpness": INF}, {"sharpness": 1.0}, {"rounding": "eigen"}, {}):
        model = MaxiMinDA(2, shrinkage=0.05, random_state=0, **way).fit(X, y)
        features = model.transform(X)
        means = np.array([features[y == k].mean(axis=0) for k in range(6)])
        assert_allclose(means, model.class_means_, atol=1e-9)
        assert smallest_distance(means) == pytest.approx(model.min_distance_, rel=1e-9)
        assert_allclose(features.mean(axis=0), 0.0, atol=1e-9)
        # No other projection of the whitened means does better than the bound.
        white = whitened_means(X, y, shrinkage=0.05)
        rng = np.random.default_rng(0)
        for _ in range(30):
            W = np.linalg.qr(rng.normal(size=(8, 2)))[0]
            assert smallest_distance(white, W) <= model.upper_bound_
        certificate = model.certificate_
        assert certificate.primal == pytest.approx(1 / model.min_distance_, rel=1e-6)
        assert certificate.dual == pytest.approx(1 / model.upper_bound_, rel=1e-6)
        assert certificate.dual <= certificate.primal
        # Directions in the order of the spread of the classes.
        spread = ((means - means.mean(axis=0)) ** 2).sum(axis=0)
        assert spread[0] >= spread[1]


@pytest.mark.parametrize("sharpness", [0.3, 3.0])
def test_the_soft_minimum_of_the_whitened_means_is_the_largest(sharpness):
    X, y = _groups()
    priors = np.array([0.3, 0.1, 0.1, 0.2, 0.2, 0.1])
    model = MaxiMinDA(2, sharpness=sharpness, shrinkage=0.05, priors=priors, tol=1e-10).fit(X, y)
    white = whitened_means(X, y, shrinkage=0.05)
    # The directions in the whitened space, from the projected means.
    W = np.linalg.lstsq(white - white[0], model.class_means_ - model.class_means_[0], rcond=None)[0]
    assert_allclose(W.T @ W, np.eye(2), atol=1e-6)
    reached = soft_criterion(white, priors, W, sharpness)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert soft_criterion(white, priors, W + 1e-3 * rng.normal(size=W.shape), sharpness) <= (
            reached * (1 + 1e-6)
        )
        assert soft_criterion(white, priors, rng.normal(size=W.shape), sharpness) <= reached


def test_pairs_are_given_by_their_labels():
    X, y = _groups(5, 4)
    names = np.array(["α", "beta", "中", "d", "e"])
    model = MaxiMinDA(1, sharpness=INF, shrinkage=0.1, random_state=0).fit(X, names[y])
    near = model.closest_pairs(100)
    assert len(near["first"]) == 10
    position = {name: k for k, name in enumerate(model.classes_)}
    for first, second, distance in zip(*near.values(), strict=True):
        delta = model.class_means_[position[first]] - model.class_means_[position[second]]
        assert delta @ delta == pytest.approx(distance)
    assert (np.diff(near["distance"]) >= 0).all()
    assert near["distance"][0] == pytest.approx(model.min_distance_)
    assert {frozenset(p) for p in zip(near["first"], near["second"], strict=True)} == {
        frozenset((a, b)) for a in names for b in names if a != b
    }
    active = model.active_pairs_
    n_active = len(active["first"])
    assert n_active >= 2  # where it is best, several pairs are equally close
    assert (active["distance"] <= 1.01 * model.min_distance_).all()
    assert near["distance"][n_active] > 1.01 * near["distance"][0]
    assert len(model.closest_pairs(3)["first"]) == 3
    with pytest.raises(ValueError, match="n_pairs=0"):
        model.closest_pairs(0)


def test_the_paper_s_figure_2():
    # Three classes of which LDA merges two.
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 250)
    X = rng.normal(size=(750, 2)) + np.array([[-20.0, 0.0], [20.0, 5.0], [20.0, -5.0]])[y]
    score = {}
    for name, way in {"lda": {"sharpness": 0.0}, "hard": {"sharpness": INF}, "auto": {}}.items():
        model = MaxiMinDA(1, shrinkage=None, random_state=0, **way).fit(X, y)
        features = model.transform(X)
        score[name] = NearestCentroid().fit(features, y).score(features, y)
    assert score["lda"] < 0.8
    assert score["hard"] > 0.98
    assert score["auto"] > 0.98


# Sharpness and shrinkage by held-out rows.


def _nearest_mean_score(model, X, y):
    features = model.transform(X)
    nearest = ((features[:, None] - model.class_means_[None]) ** 2).sum(axis=-1).argmin(axis=1)
    return (model.classes_[nearest] == y).mean()


def _clusters(n, seed, n_clusters=6, size=4, d=12):
    """Classes in tight clusters, the clusters far apart."""
    rng = np.random.default_rng(1)
    center = 25 * rng.normal(size=(n_clusters, d))
    means = (center[:, None] + 2.0 * rng.normal(size=(n_clusters, size, d))).reshape(-1, d)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % len(means))
    return means[y] + rng.normal(size=(n, d)), y


def test_auto_is_sharp_where_classes_are_in_tight_clusters():
    X, y = _clusters(2400, 0)
    new, labels = _clusters(2400, 1)
    auto = MaxiMinDA(4, shrinkage=0.01, random_state=0).fit(X, y)
    lda = MaxiMinDA(4, shrinkage=0.01, sharpness=0.0).fit(X, y)
    assert auto.sharpness_ > 0
    assert _nearest_mean_score(auto, new, labels) > _nearest_mean_score(lda, new, labels) + 0.05
    table = auto.cv_accuracy_
    assert set(table) == {"shrinkage", "sharpness", "accuracy"}
    chosen = table["sharpness"] == auto.sharpness_
    assert table["accuracy"][chosen] == table["accuracy"].max()
    # It is what new rows see, within sampling error.
    assert abs(table["accuracy"].max() - _nearest_mean_score(auto, new, labels)) < 0.05


def test_auto_is_not_hard_where_the_closest_pair_is_noise():
    rng = np.random.default_rng(0)
    c, d = 40, 30
    means = rng.normal(size=(c, d))
    y = np.repeat(np.arange(c), 6)
    X = means[y] + rng.normal(size=(len(y), d))
    labels = np.repeat(np.arange(c), 50)
    new = means[labels] + rng.normal(size=(len(labels), d))
    auto = MaxiMinDA(5, shrinkage=0.1, random_state=0).fit(X, y)
    hard = MaxiMinDA(5, shrinkage=0.1, sharpness=INF, n_init=0, random_state=0).fit(X, y)
    lda = MaxiMinDA(5, shrinkage=0.1, sharpness=0.0).fit(X, y)
    scores = [_nearest_mean_score(model, new, labels) for model in (auto, hard, lda)]
    assert auto.sharpness_ < INF
    assert scores[0] > scores[1] + 0.02
    assert scores[0] >= scores[2] - 0.02


def test_shrinkage_is_chosen_too():
    X, y = load_digits(return_X_y=True)
    X, y = X[:150] / 16, y[:150]
    model = MaxiMinDA(3, sharpness=1.0, random_state=0).fit(X, y)
    table = model.cv_accuracy_
    assert len(table["shrinkage"]) == len(maxi_min.SHRINKAGES) + 1
    # The least of those within a standard error of the best.
    best = table["accuracy"].max()
    good = table["accuracy"] >= best - np.sqrt(best * (1 - best) / len(y))
    assert model.shrinkage_ == table["shrinkage"][good].min() > 0
    assert table["shrinkage"][table["accuracy"].argmax()] > model.shrinkage_
    fixed = MaxiMinDA(3, sharpness=1.0, shrinkage=model.shrinkage_, random_state=0).fit(X, y)
    assert_allclose(fixed.components_, model.components_, atol=1e-8)
    assert len(fixed.cv_accuracy_["accuracy"]) == 0
    assert MaxiMinDA(1, sharpness=0.0, shrinkage=None).fit(X, y).shrinkage_ == 0.0


# Streams.


def _streamed(model, X, y, cuts, weight=None, order=None):
    model = clone(model)
    weight = np.ones(len(y)) if weight is None else weight
    parts = np.split(np.arange(len(y)), cuts)
    for k in order if order is not None else range(len(parts)):
        part = parts[k]
        model.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=weight[part])
    return model


STREAMED = {
    "auto": MaxiMinDA(2, random_state=0),
    "hard": MaxiMinDA(2, sharpness=INF, shrinkage="auto", n_init=1, random_state=0),
    "eigen": MaxiMinDA(2, rounding="eigen", shrinkage=0.1),
    "auto components": MaxiMinDA("auto", sharpness=1.0, shrinkage=0.1, random_state=0),
}


@pytest.mark.parametrize(
    ("way", "capacity", "weighted"),
    [
        ("auto", 30, True),
        ("auto", 20_000, False),
        ("hard", 20_000, True),
        ("eigen", 20_000, False),
        ("auto components", 30, True),
    ],
)
def test_a_stream_gives_what_fit_gives_in_any_order(way, capacity, weighted, monkeypatch):
    monkeypatch.setattr(maxi_min, "_HELD_OUT", capacity)
    X, y = _groups(5, 6, 120, spread=1.0)
    weight = np.ones(120)
    if weighted:
        weight[60:] = np.random.default_rng(0).integers(0, 3, 60)
    whole = clone(STREAMED[way]).fit(X, y, sample_weight=weight)
    for cuts, order in (([3, 40, 41, 100], [4, 2, 0, 3, 1]), (list(range(1, 61)), None)):
        model = _streamed(STREAMED[way], X, y, cuts, weight, order)
        assert len(model._stream.sample) <= capacity
        _same_up_to_signs(model, whole, atol=1e-8)
        assert (model.sharpness_, model.n_components_) == (whole.sharpness_, whole.n_components_)
        assert model.shrinkage_ == pytest.approx(whole.shrinkage_, rel=1e-9)
        assert_allclose(model.cv_accuracy_["accuracy"], whole.cv_accuracy_["accuracy"])
        assert_allclose(model.mean_, whole.mean_, rtol=1e-9, atol=1e-12)
        assert_allclose(model.priors_, whole.priors_, rtol=1e-12)


def test_a_stream_in_the_span_gives_what_fit_gives():
    X, y = _wine()
    model = MaxiMinDA(2, kernel="rbf", vectors=X[::6], n_vectors=30, gamma=0.1, random_state=0)
    whole = clone(model).fit(X, y)
    streamed = _streamed(model, X, y, [20, 100], order=[2, 0, 1])
    assert_allclose(
        np.abs(streamed.transform(X)), np.abs(whole.transform(X)), atol=1e-5 * np.abs(X).max()
    )
    assert streamed.sharpness_ == whole.sharpness_


def test_a_fit_may_be_followed_by_a_stream():
    X, y = _groups(5, 6, 200)
    fixed = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1, random_state=0)
    whole = clone(fixed).fit(X, y)
    model = clone(fixed).fit(X[:120], y[:120])
    before = model.components_.copy()
    model.partial_fit(X[120:], y[120:])
    _same_up_to_signs(model, whole, atol=1e-8)
    assert angle_between(before.T, model.components_.T) > 1e-4
    # With a choice to be made, the rows of the stream are those that can be held out.
    auto = MaxiMinDA(2, random_state=0).fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    assert len(auto._stream.sample) == 80
    assert np.isfinite(auto.components_).all()
    # A new fit forgets the stream.
    again = model.fit(X[:120], y[:120])
    assert_array_equal(again.components_, before)


def test_directions_are_found_when_they_are_asked_for(monkeypatch):
    solved = []
    solve = MaxiMinDA._solve
    monkeypatch.setattr(MaxiMinDA, "_solve", lambda self, s: solved.append(1) or solve(self, s))
    X, y = _groups(4, 5, 120)
    model = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1, random_state=0)
    assert not hasattr(model, "components_")
    with pytest.raises(AttributeError, match="no attribute 'components_'"):
        model.components_  # noqa: B018
    with pytest.raises(NotFittedError):
        model.transform(X)
    with pytest.raises(NotFittedError):
        model.closest_pairs()
    for part in np.split(np.arange(120), 4):
        model.partial_fit(X[part], y[part], classes=range(4))
    assert not solved
    assert "MaxiMinDA" in repr(model)
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    assert not solved
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        model.nothing_  # noqa: B018
    assert not solved
    assert model.transform(X).shape == (120, 2)
    assert len(solved) == 1
    for name in maxi_min._SOLVED:
        assert hasattr(model, name), name
    assert len(solved) == 1
    for other in others:
        assert_array_equal(other.transform(X), model.transform(X))
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        n_solved = len(solved)
        assert_array_equal(other.components_, model.components_)
        assert len(solved) == n_solved
        other.partial_fit(X[:5] + 1.0, y[:5])
        assert np.abs(other.components_ - model.components_).max() > 1e-6
    assert not hasattr(clone(model), "components_")
    assert model.get_feature_names_out().tolist() == ["maximinda0", "maximinda1"]
    # Other rows: other directions.
    n_solved = len(solved)
    model.partial_fit(X[:10] + 5.0, y[:10])
    assert len(solved) == n_solved
    assert hasattr(model, "min_distance_")
    assert len(solved) == n_solved + 1


def test_classes_may_be_announced_that_have_no_rows_yet():
    X, y = _groups(3, 5, 90)
    few = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1).fit(X, y)
    model = clone(few).partial_fit(X, y, classes=[0, 1, 2, 7])
    assert_array_equal(model.classes_, [0, 1, 2, 7])
    assert np.isnan(model.class_means_[3]).all()
    assert_allclose(model.class_means_[:3], few.class_means_, atol=1e-8)
    assert model.priors_[3] == 0.0
    assert set(model.closest_pairs()["first"]) <= {0, 1, 2}
    model.partial_fit(X[:20] + 10.0, np.full(20, 7))
    assert np.isfinite(model.class_means_).all()
    assert 7 in model.closest_pairs()["second"]
    # Two classes are needed, but not in the first block.
    single = clone(few).set_params(n_components=1)
    single.partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    with pytest.raises(ValueError, match=r"at least two classes.* 1 class has rows"):
        single.transform(X)
    single.partial_fit(X[y == 1], y[y == 1])
    assert single.transform(X).shape == (90, 1)
    # Without `classes`, the first block has them all.
    assert_allclose(clone(few).partial_fit(X, y).components_, few.components_, atol=1e-9)


def test_wrong_blocks_are_named_and_change_nothing():
    X, y = _groups(3, 5, 90)
    model = MaxiMinDA(1, sharpness=1.0, shrinkage=0.1).partial_fit(X, y, classes=range(3))
    before = model.components_.copy()
    for bad, match in (
        ((X, np.where(y == 1, 5, y)), r"y holds .*5.*not among the classes.*classes="),
        ((X[:, :4], y), "4 features.*5 features"),
        ((np.where(X.max() - 1e-9 < X, np.nan, X), y), "NaN"),
        ((X, y[:5]), "inconsistent"),
        ((X, X[:, 0]), "(?i)continuous"),
        ((X, y, [0, 1]), "classes differs"),
        ((X, y, None, -np.ones(90)), "(?i)negative"),
    ):
        with pytest.raises(ValueError, match=match):
            model.partial_fit(*bad)
    assert_array_equal(model.components_, before)
    words = np.array(["a", "bb", "c"])[y]
    named = clone(model).partial_fit(X, words, classes=["a", "bb", "c"])
    with pytest.raises(ValueError, match=r"y holds .*bbb"):
        named.partial_fit(X[:2], ["bbb", "a"])
    with pytest.raises(ValueError, match=r"precomputed.*does not stream"):
        MaxiMinDA(kernel="precomputed").partial_fit(X @ X.T, y, classes=range(3))


def test_rows_without_weight_add_nothing():
    X, y = _groups(3, 5, 90)
    for model in (MaxiMinDA(1, sharpness=1.0, shrinkage=0.1), MaxiMinDA(1, random_state=0)):
        other = clone(model).partial_fit(X, y)
        weight = np.r_[np.zeros(7), np.ones(90)]
        model.partial_fit(np.vstack([X[:7] + 9.0, X]), np.r_[y[:7], y], sample_weight=weight)
        assert_array_equal(model.components_, other.components_)
        with pytest.raises(ValueError, match="non-zero"):
            model.partial_fit(X[:7] + 9.0, y[:7], sample_weight=np.zeros(7))
        assert_array_equal(model.components_, other.components_)


# How many directions.


def test_the_number_of_directions():
    X, y = _groups(6, 8, spread=1.0)
    model = MaxiMinDA(sharpness=1.0, shrinkage=0.1, random_state=0)
    assert model.fit(X, y).n_components_ == 5
    full = model.min_distance_
    assert full == pytest.approx(smallest_distance(whitened_means(X, y, shrinkage=0.1)))
    numbers = []
    for share in (0.01, 0.5, "auto", 1.0):
        kept = clone(model).set_params(n_components=share, sharpness=INF).fit(X, y)
        assert kept.components_.shape == (kept.n_components_, 8)
        if share != 1.0:
            assert kept.min_distance_ >= (0.9 if share == "auto" else share) * full * (1 - 1e-9)
        numbers.append(kept.n_components_)
    assert numbers == sorted(numbers)
    assert numbers[0] < 5
    fewer = clone(model).set_params(n_components=np.int64(2)).fit(X, y)
    assert fewer.transform(X).shape == (len(X), 2)
    with pytest.raises(ValueError, match=r"n_components=6 is more than 5"):
        clone(model).set_params(n_components=6).fit(X, y)
    # More classes than columns.
    many, labels = _groups(9, 3, 200)
    assert clone(model).fit(many, labels).n_components_ == 3


# What users feed it with.


def test_classes_with_one_mean_are_told_of():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    X, y = np.vstack([rows, rows, rows + 2.0]), np.repeat([0, 1, 2], 30)
    for way in ("soft", "hard", "eigen"):
        with pytest.warns(UserWarning, match="1 of 3 classes have the same mean as another"):
            model = clone(WAYS[way]).fit(X, y)
        assert model.min_distance_ == 0.0
        assert model.upper_bound_ == 0.0
        assert_allclose(model.class_means_[0], model.class_means_[1], atol=1e-9)
        assert np.abs(model.class_means_[2] - model.class_means_[0]).max() > 1.0
    for same in (np.ones((6, 2)), np.vstack([rows, rows])):
        labels = np.arange(len(same)) * 2 // len(same)
        with pytest.raises(ValueError, match="same mean in every class"):
            MaxiMinDA().fit(same, labels)


@every_way
def test_weight_k_is_the_same_as_k_copies(way):
    X, y = _wine()
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    weighted = clone(WAYS[way]).fit(X, np.where(k, y, 7), sample_weight=k)
    copied = clone(WAYS[way]).fit(X[copies], y[copies])
    assert_array_equal(weighted.classes_, [0, 1, 2])
    assert weighted.sharpness_ == copied.sharpness_
    assert_allclose(np.abs(weighted.transform(X)), np.abs(copied.transform(X)), atol=1e-6)


@every_way
def test_threads_do_not_change_a_bit(way):
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:300], y[:300]
    one, two = (clone(WAYS[way]).set_params(n_jobs=n, memory="16MB") for n in (1, 3))
    assert_array_equal(two.fit(X, y).transform(X), one.fit(X, y).transform(X))


@every_way
def test_the_storage_does_not_matter(way, tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:200], y[:200]
    model = clone(WAYS[way])
    if way == "kernel":
        # Rounding may decide between values that are as good on held-out rows, and which of two
        # centres is nearer.
        model.set_params(sharpness=1.0, shrinkage=0.1, vectors=X[:20])
    plain = clone(model).fit(X, y).transform(X)
    np.save(tmp_path / "X.npy", X)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for stored in (
        np.asfortranarray(X),
        X.astype(np.int8),
        X.astype(np.float32),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        wide,
        sparse.csc_matrix(X),
    ):
        features = clone(model).fit(stored, y).transform(stored)
        single = stored.dtype == np.float32
        assert features.dtype == (np.float32 if single else np.float64)
        assert_allclose(features, plain, atol=1e-3 if single else 1e-6)


@every_way
@pytest.mark.parametrize("size", [2.0**-332, 2.0**-66, 2.0**66, 2.0**332])
def test_rows_of_any_size_give_the_same_features(way, size):
    X, y = _wine()
    # The choice of vectors depends on the bits of the rows, and so do the folds.
    plain = clone(WAYS[way]).set_params(vectors=X[:20], sharpness=1.0, shrinkage=0.1)
    sized = clone(plain).set_params(vectors=X[:20] * size).fit(X * size, y)
    plain.fit(X, y)
    assert_allclose(np.abs(sized.transform(X * size)), np.abs(plain.transform(X)), atol=1e-5)
    assert sized.min_distance_ == pytest.approx(plain.min_distance_, rel=1e-5)


@every_way
def test_few_rows_many_columns_constant_columns_and_a_class_of_one_row(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:30], y[:30].copy()
    y[4] = 9
    model = clone(WAYS[way]).fit(X, y)
    features = model.transform(X)
    assert np.isfinite(features).all()
    assert 0 < model.min_distance_ <= model.upper_bound_
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])[[0, 1, 2, 0, 1, 2]]
    equal = clone(WAYS[way]).fit(corners, [0, 1, 2, 0, 1, 2])
    assert equal.upper_bound_ > 0
    assert np.isfinite(equal.components_).all()
    two = clone(WAYS[way]).fit(np.array([[0.0], [1.0]]), ["a", "b"])
    assert two.transform([[0.0], [1.0]]).shape == (2, 1)


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
    fitted = clone(WAYS[way]).fit(X, y)
    with pytest.raises(ValueError, match="13 features"):
        fitted.transform(X[:, :5])


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"n_components": 0.0}, "n_components=0.0"),
        ({"n_components": "all"}, "n_components='all'"),
        ({"sharpness": -1.0}, "sharpness=-1.0"),
        ({"sharpness": float("nan")}, "sharpness=nan"),
        ({"sharpness": "hard"}, "sharpness='hard'"),
        ({"shrinkage": 2.0}, "shrinkage=2.0"),
        ({"shrinkage": "lw"}, "shrinkage='lw'"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"rounding": "qr"}, "rounding='qr'"),
        ({"loss": "log"}, "loss='log'"),
        ({"C": 0.0}, "C=0.0"),
        ({"lam": 0.0}, "lam=0.0"),
        ({"n_updates": 0}, "n_updates=0"),
        ({"n_init": -1}, "n_init=-1"),
        ({"n_init": "many"}, "n_init='many'"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_time": 0.0}, "max_time=0.0"),
        ({"memory": "much"}, "memory='much'"),
        ({"kernel": "rfb"}, "did you mean 'rbf'"),
        ({"priors": [0.5, 0.5]}, "priors="),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters, match):
    X, y = _wine()
    with pytest.raises(ValueError, match=match):
        MaxiMinDA(**parameters).fit(X, y)


def test_precomputed_kernels_are_the_kernel():
    X, y = _wine()
    share = {"sharpness": 1.0, "shrinkage": 0.1, "vectors": "random", "random_state": 0}
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    given = MaxiMinDA(2, kernel="precomputed", n_vectors=178, **share).fit(K, y)
    named = MaxiMinDA(2, kernel="rbf", gamma=0.1, n_vectors=178, **share).fit(X, y)
    assert_allclose(np.abs(given.transform(K)), np.abs(named.transform(X)), atol=1e-5)


# Waiting.


def test_little_time_leaves_a_valid_model():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    with pytest.warns(ConvergenceWarning, match=r"stopped early \(max_time=1e-09 reached\)"):
        model = MaxiMinDA(2, sharpness=INF, shrinkage=0.1, max_time=1e-9).fit(X, y)
    lda = MaxiMinDA(2, sharpness=0.0, shrinkage=0.1).fit(X, y)
    assert_allclose(np.abs(model.transform(X)), np.abs(lda.transform(X)), atol=1e-8)
    assert model.min_distance_ <= model.upper_bound_
    # What needs one step only has enough time.
    MaxiMinDA(2, sharpness=0.0, shrinkage=0.1, max_time=1e-9).fit(X, y)


def test_an_interrupt_leaves_what_was_found(monkeypatch):
    from widemargin.discriminant import refine

    X, y = _groups(6, 8)
    calls = []
    pushed = refine.pushed_apart

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return pushed(*args, **kwargs)

    monkeypatch.setattr(refine, "pushed_apart", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1, random_state=0).fit(X, y)
    assert len(calls) == 2
    assert model.certificate_.stopped == "interrupted"
    assert model.transform(X).shape == (len(X), 2)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupt_of_the_choice_leaves_a_model(streamed, monkeypatch):
    X, y = _groups(6, 8)
    whole = MaxiMinDA(2, random_state=0).fit(X, y)
    tried = whole.cv_accuracy_
    n_folds = 5
    calls = []
    right = sharpness._Search._right

    def interrupted(self):
        calls.append(1)
        # In the third fold of the fourth value.
        if len(calls) == 3 * n_folds + 3:
            raise KeyboardInterrupt
        return right(self)

    monkeypatch.setattr(sharpness._Search, "_right", interrupted)
    model = MaxiMinDA(2, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"stopped early \(interrupted\).* best of 3 values"
    ):
        if streamed:
            model.partial_fit(X, y).transform(X)
        else:
            model.fit(X, y)
    assert len(calls) == 3 * n_folds + 3
    for name, column in model.cv_accuracy_.items():
        assert_allclose(column, tried[name][:3], atol=1e-12)
    assert model.sharpness_ == 1.0
    assert model.shrinkage_ in tried["shrinkage"][:3]
    given = MaxiMinDA(2, sharpness=1.0, shrinkage=model.shrinkage_, random_state=0).fit(X, y)
    assert_allclose(model.transform(X), given.transform(X), atol=1e-6)


def test_little_time_for_the_choice_leaves_a_model():
    X, y = _groups(6, 8)
    # LDA, which needs no more time.
    with pytest.warns(ConvergenceWarning, match=r"choice of .* \(max_time=1e-09 reached\)"):
        model = MaxiMinDA(2, max_time=1e-9).fit(X, y)
    assert (model.sharpness_, model.shrinkage_) == (0.0, 0.0)
    assert not len(model.cv_accuracy_["accuracy"])
    lda = MaxiMinDA(2, sharpness=0.0, shrinkage=None).fit(X, y)
    assert_allclose(model.transform(X), lda.transform(X), atol=1e-8)


def test_verbose_prints_a_line_a_step(capsys):
    X, y = _groups(4, 5, 120)
    MaxiMinDA(1, sharpness=INF, shrinkage=0.1, n_init=2, random_state=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4
    assert all(line.startswith("[MaxiMinDA] step ") and "gap" in line for line in lines)
    MaxiMinDA(1, sharpness=INF, shrinkage=0.1).fit(X, y)
    assert not capsys.readouterr().out


@pytest.mark.parametrize("solver", ["exact", "online", "sdp"])
def test_relaxations_have_a_certificate_where_they_prove_something(solver):
    X, y = _groups(5, 6)
    model = MaxiMinDA(2, rounding="eigen", solver=solver, shrinkage=0.1, random_state=0).fit(X, y)
    if solver == "exact":
        assert model.relaxation_.gap <= 1e-8
    elif solver == "sdp":
        assert model.relaxation_ is None
        exact = clone(model).set_params(solver="exact").fit(X, y)
        assert angle_between(exact.components_.T, model.components_.T) <= 1e-2
    else:
        assert "10000 updates" in model.relaxation_.stopped
    assert MaxiMinDA(2, sharpness=1.0, shrinkage=0.1).fit(X, y).relaxation_ is None


def test_the_semidefinite_solver_says_what_it_needs(monkeypatch):
    from widemargin.discriminant import semidefinite

    X, y = _groups(5, 6)
    model = MaxiMinDA(1, rounding="eigen", solver="sdp", shrinkage=0.1)
    monkeypatch.setattr(semidefinite, "_MOST_PAIRS", 5)
    with pytest.raises(ValueError, match=r"10 pairs of classes; use solver='exact'"):
        model.fit(X, y)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(semidefinite, "import_module", missing)
    with pytest.raises(ImportError, match=r"needs CVXPY.*solver='exact'"):
        model.fit(X, y)


def test_lambda_and_C_of_the_online_solver_mean_the_same():
    X, y = _groups(5, 6)
    ways = [{"C": 2.0}, {"lam": 1.0 / (2.0 * 10)}]
    models = [
        MaxiMinDA(
            2,
            rounding="eigen",
            solver="online",
            shrinkage=0.1,
            n_updates=500,
            random_state=0,
            **way,
        ).fit(X, y)
        for way in ways
    ]
    assert_array_equal(models[0].components_, models[1].components_)
    averaged = clone(models[0]).set_params(average=True).fit(X, y)
    assert np.abs(averaged.components_ - models[0].components_).max() > 1e-8
