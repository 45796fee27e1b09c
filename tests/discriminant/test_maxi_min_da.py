"""`MaxiMinDA` against LDA and the other discriminants, and its choice of sharpness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import scale

from tests.reference.data import groups, wine
from tests.reference.fisher_da import angle_between, fisher
from tests.reference.maxi_min import smallest_distance, soft_criterion, whitened_means
from tests.reference.projection_ways import INF, MAXI_MIN, every, projection
from widemargin import MaxiMinDA, PairwiseAccuracyDA
from widemargin.pairs import sharpness

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
    X, y = wine()
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
    X, y = wine()
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
    X, y = groups(c, columns, 15 * c, seed, spread)
    d = 1 + seed % min(c - 1, columns)
    refined, others, bound = _distances_of_all(X, y, d)
    assert refined >= max(others) * (1 - 1e-6)
    assert refined <= bound


def test_what_is_reported_is_what_the_projection_does():
    X, y = groups(spread=1.0)
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
    X, y = groups()
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
    X, y = groups(5, 4)
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
    assert len(table["shrinkage"]) == len(sharpness.SHRINKAGES) + 1
    # The least of those within a standard error of the best.
    best = table["accuracy"].max()
    good = table["accuracy"] >= best - np.sqrt(best * (1 - best) / len(y))
    assert model.shrinkage_ == table["shrinkage"][good].min() > 0
    assert table["shrinkage"][table["accuracy"].argmax()] > model.shrinkage_
    fixed = MaxiMinDA(3, sharpness=1.0, shrinkage=model.shrinkage_, random_state=0).fit(X, y)
    assert_allclose(fixed.components_, model.components_, atol=1e-8)
    assert len(fixed.cv_accuracy_["accuracy"]) == 0
    assert MaxiMinDA(1, sharpness=0.0, shrinkage=None).fit(X, y).shrinkage_ == 0.0


# What users feed it with.


def test_classes_with_one_mean_are_told_of():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    X, y = np.vstack([rows, rows, rows + 2.0]), np.repeat([0, 1, 2], 30)
    for way in ("maxi-min soft", "maxi-min hard", "maxi-min eigen"):
        with pytest.warns(UserWarning, match="1 of 3 classes have the same mean as another"):
            model = projection(way).fit(X, y)
        assert model.min_distance_ == 0.0
        assert model.upper_bound_ == 0.0
        assert_allclose(model.class_means_[0], model.class_means_[1], atol=1e-9)
        assert np.abs(model.class_means_[2] - model.class_means_[0]).max() > 1.0
    for same in (np.ones((6, 2)), np.vstack([rows, rows])):
        labels = np.arange(len(same)) * 2 // len(same)
        with pytest.raises(ValueError, match="same mean in every class"):
            MaxiMinDA().fit(same, labels)


@every(MAXI_MIN)
@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-332, 2.0**-66, 2.0**66, 2.0**332])
def test_rows_of_any_size_give_the_same_features(way, size):
    if "kernel" in way and size < 2.0**-900:
        pytest.skip("a kernel width of such rows would be no number")
    X, y = wine()
    # The choice of vectors depends on the bits of the rows, and so do the folds.
    plain = projection(way).set_params(vectors=X[:20], sharpness=1.0, shrinkage=0.1)
    sized = clone(plain).set_params(vectors=X[:20] * size).fit(X * size, y)
    plain.fit(X, y)
    assert_allclose(np.abs(sized.transform(X * size)), np.abs(plain.transform(X)), atol=1e-5)
    assert sized.min_distance_ == pytest.approx(plain.min_distance_, rel=1e-5)


@every(MAXI_MIN)
def test_few_rows_many_columns_constant_columns_and_a_class_of_one_row(way):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:30], y[:30].copy()
    y[4] = 9
    model = projection(way).fit(X, y)
    features = model.transform(X)
    assert np.isfinite(features).all()
    assert 0 < model.min_distance_ <= model.upper_bound_
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])[[0, 1, 2, 0, 1, 2]]
    equal = projection(way).fit(corners, [0, 1, 2, 0, 1, 2])
    assert equal.upper_bound_ > 0
    assert np.isfinite(equal.components_).all()
    two = projection(way).fit(np.array([[0.0], [1.0]]), ["a", "b"])
    assert two.transform([[0.0], [1.0]]).shape == (2, 1)


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
    X, y = wine()
    with pytest.raises(ValueError, match=match):
        MaxiMinDA(**parameters).fit(X, y)


@pytest.mark.parametrize("solver", ["exact", "online", "sdp"])
def test_relaxations_have_a_certificate_where_they_prove_something(solver):
    X, y = groups(5, 6)
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
    from widemargin.pairs import semidefinite

    model = MaxiMinDA(1, rounding="eigen", solver="sdp", shrinkage=0.1)
    with pytest.raises(ValueError, match=r"20,100 pairs of classes; use solver='exact'"):
        model.fit(*groups(201, 6, 402))
    X, y = groups(5, 6)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(semidefinite, "import_module", missing)
    with pytest.raises(ImportError, match=r"needs CVXPY.*solver='exact'"):
        model.fit(X, y)


@pytest.mark.parametrize("seed", range(6))
def test_the_semidefinite_solver_has_an_answer_where_some_classes_are_very_close(seed):
    # Thirty classes in one dimension: some are a thousandth as far apart as others.
    X, y = np.random.default_rng(seed).normal(size=(60, 1)), np.arange(60) % 30
    ways = {"rounding": "eigen", "shrinkage": "auto"}
    model = MaxiMinDA("auto", solver="sdp", **ways).fit(X, y)
    exact = MaxiMinDA("auto", solver="exact", **ways).fit(X, y)
    assert_allclose(model.components_, exact.components_, rtol=1e-9)
    assert model.min_distance_ == pytest.approx(exact.min_distance_, rel=1e-6)
    assert model.min_distance_ <= model.upper_bound_ * (1 + 1e-9)


def test_a_semidefinite_program_without_a_solution_is_told_with_a_remedy():
    X, y = np.random.default_rng(1).normal(size=(60, 1)), np.arange(60) % 30
    model = MaxiMinDA(1, solver="sdp", rounding="eigen", shrinkage=None, C=1e12)
    with pytest.raises(ValueError, match=r"CVXPY found no solution.*solver='exact'"):
        model.fit(X, y)


def test_lambda_and_C_of_the_online_solver_mean_the_same():
    X, y = groups(5, 6)
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
