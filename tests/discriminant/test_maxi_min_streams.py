"""`MaxiMinDA` of streams, its number of directions, and fits that end early."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from tests.reference.data import groups, wine
from tests.reference.fisher_da import angle_between
from tests.reference.maxi_min import smallest_distance, whitened_means
from tests.reference.projection_ways import INF
from widemargin import MaxiMinDA
from widemargin.pairs import refine, sharpness


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


# Streams.


def _streamed(model, X, y, cuts, weight=None, order=None):
    model = clone(model)
    weight = np.ones(len(y)) if weight is None else weight
    parts = np.split(np.arange(len(y)), cuts)
    for k in order if order is not None else range(len(parts)):
        part = parts[k]
        model.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=weight[part])
    return model.finalize()


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
def test_a_stream_gives_what_fit_gives_in_any_order(way, capacity, weighted):
    X, y = groups(5, 6, 120, spread=1.0)
    # An eighth of the memory is for the rows that can be held out.
    small = {"memory": capacity * 8 * 8 * 6} if capacity < 120 else {}
    model = clone(STREAMED[way]).set_params(**small)
    weight = np.ones(120)
    if weighted:
        weight[60:] = np.random.default_rng(0).integers(0, 3, 60)
    whole = clone(model).fit(X, y, sample_weight=weight)
    for cuts, order in (([3, 40, 41, 100], [4, 2, 0, 3, 1]), (list(range(1, 61)), None)):
        model = _streamed(model, X, y, cuts, weight, order)
        assert len(model._stream["sample_key"]) <= capacity
        assert (len(model._stream["sample_key"]) > 0) == (way == "auto")
        _same_up_to_signs(model, whole, atol=1e-8)
        assert (model.sharpness_, model.n_components_) == (whole.sharpness_, whole.n_components_)
        assert model.shrinkage_ == pytest.approx(whole.shrinkage_, rel=1e-9)
        assert_allclose(model.cv_accuracy_["accuracy"], whole.cv_accuracy_["accuracy"])
        assert_allclose(model.mean_, whole.mean_, rtol=1e-9, atol=1e-12)
        assert_allclose(model.priors_, whole.priors_, rtol=1e-12)


def test_a_stream_in_the_span_gives_what_fit_gives():
    X, y = wine()
    model = MaxiMinDA(2, kernel="rbf", vectors=X[::6], n_vectors=30, gamma=0.1, random_state=0)
    whole = clone(model).fit(X, y)
    streamed = _streamed(model, X, y, [20, 100], order=[2, 0, 1])
    assert_allclose(
        np.abs(streamed.transform(X)), np.abs(whole.transform(X)), atol=1e-5 * np.abs(X).max()
    )
    assert streamed.sharpness_ == whole.sharpness_


def test_a_fit_may_be_followed_by_a_stream():
    X, y = groups(5, 6, 200)
    fixed = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1, random_state=0)
    whole = clone(fixed).fit(X, y)
    model = clone(fixed).fit(X[:120], y[:120])
    before = model.components_.copy()
    model.partial_fit(X[120:], y[120:]).finalize()
    _same_up_to_signs(model, whole, atol=1e-8)
    assert angle_between(before.T, model.components_.T) > 1e-4
    # With a choice to be made, the rows of the stream are those that can be held out.
    auto = MaxiMinDA(2, random_state=0).fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    assert len(auto._stream["sample_key"]) == 80
    assert np.isfinite(auto.finalize().components_).all()
    # A new fit forgets the stream.
    again = model.fit(X[:120], y[:120])
    assert_array_equal(again.components_, before)


@pytest.fixture
def solved(monkeypatch):
    """A list with an entry for each time that directions were found."""
    times, solve = [], MaxiMinDA._solve
    monkeypatch.setattr(MaxiMinDA, "_solve", lambda *all: times.append(1) or solve(*all))
    return times


def _found(model):
    """The attributes that are there only when directions are."""
    return [name for name in vars(model) if name.endswith("_") and name not in _OF_ROWS]


_OF_ROWS = ("classes_", "n_features_in_", "span_map_")


def test_taking_rows_in_finds_nothing_and_no_attribute_does(solved):
    X, y = groups(4, 5, 120)
    model = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1, random_state=0)
    for part in np.split(np.arange(120), 4):
        model.partial_fit(X[part], y[part], classes=range(4))
        assert not hasattr(model, "components_")
        assert not hasattr(model, "min_distance_")
    assert _found(model) == []
    assert "MaxiMinDA" in repr(model)
    with pytest.raises(AttributeError, match="no attribute 'components_'"):
        model.components_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        model.nothing_  # noqa: B018
    assert not hasattr(copy.copy(model), "components_")
    assert not solved
    model.finalize()
    assert len(solved) == 1
    assert {"components_", "mean_", "class_means_", "certificate_"} < set(_found(model))
    assert model.get_feature_names_out().tolist() == ["maximinda0", "maximinda1"]
    # More rows: what was found is no longer true, and gone.
    model.partial_fit(X[:10] + 5.0, y[:10])
    assert _found(model) == []
    assert len(solved) == 1
    assert not hasattr(clone(model), "components_")


def test_finalize_finds_what_fit_finds_and_may_be_asked_again_with_other_parameters():
    X, y = groups(4, 5, 120)
    for way in ({}, {"sharpness": 1.0, "shrinkage": 0.1}):
        whole = MaxiMinDA(2, random_state=0, **way).fit(X, y)
        model = MaxiMinDA(2, random_state=0, **way).partial_fit(X, y)
        assert model.finalize() is model
        _same_up_to_signs(model, whole, atol=1e-8)
        assert set(_found(model)) == set(_found(whole))
        # After `fit` there is nothing left to find.
        before = whole.components_.copy(), whole.sharpness_
        assert_array_equal(whole.finalize().components_, before[0])
        assert whole.sharpness_ == before[1]
        other = MaxiMinDA(1, random_state=0, **way).fit(X, y)
        _same_up_to_signs(model.set_params(n_components=1).finalize(), other, atol=1e-8)
    with pytest.raises(NotFittedError):
        MaxiMinDA().finalize()


def test_whoever_needs_directions_finds_them_once(solved):
    X, y = groups(4, 5, 120)
    model = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1, random_state=0)
    for needs in (lambda: model.transform(X), lambda: model.closest_pairs()):
        with pytest.raises(NotFittedError):
            needs()
    expected = clone(model).fit(X, y)
    solved.clear()
    model.partial_fit(X, y)
    assert_allclose(model.transform(X), expected.transform(X), atol=1e-8)
    assert model.transform(X[:3]).shape == (3, 2)
    assert len(solved) == 1
    model.partial_fit(X[:10], y[:10])
    assert len(model.closest_pairs(2)["first"]) == 2
    assert model.transform(X[:3]).shape == (3, 2)
    assert len(solved) == 2


def test_too_few_rows_are_told_by_finalize_and_not_before():
    X, y = groups(3, 5, 90)
    model = MaxiMinDA(1, sharpness=1.0, shrinkage=0.1)
    model.partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    assert not hasattr(model, "components_")
    for needs in (model.finalize, lambda: model.transform(X), model.closest_pairs):
        with pytest.raises(ValueError, match=r"at least two classes.* 1 class has rows"):
            needs()
    assert not hasattr(model, "components_")
    model.partial_fit(X[y == 1], y[y == 1])
    assert model.finalize().transform(X).shape == (90, 1)


def _by_skops(model):
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=stored)
    assert all(name.startswith("widemargin.") for name in unknown)
    return skops.loads(stored, trusted=unknown)


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), _by_skops])
@pytest.mark.parametrize("way", [{}, {"sharpness": 1.0, "shrinkage": 0.1}, {"kernel": "rbf"}])
def test_a_stream_goes_on_after_it_was_stored_between_two_blocks(copied, way, solved):
    X, y = groups(4, 5, 120)
    straight = MaxiMinDA(2, n_vectors=20, random_state=0, **way)
    stored = clone(straight)
    for part in np.split(np.arange(120), 3):
        straight.partial_fit(X[part], y[part], classes=range(4))
        stored = copied(stored.partial_fit(X[part], y[part], classes=range(4)))
        assert not hasattr(stored, "components_")
    assert not solved
    assert_array_equal(stored.transform(X), straight.transform(X))
    assert_array_equal(copied(stored).transform(X), straight.transform(X))
    assert len(solved) == 2
    # Rows that a copy takes in are not those of the original.
    before = straight.components_.copy()
    other = copied(straight).partial_fit(X[:5] + 1.0, y[:5]).finalize()
    assert np.abs(other.components_ - before).max() > 1e-6
    straight.partial_fit(X[:5], y[:5])
    stored.partial_fit(X[:5], y[:5])
    assert_array_equal(stored.transform(X), straight.transform(X))


def test_classes_may_be_announced_that_have_no_rows_yet():
    X, y = groups(3, 5, 90)
    few = MaxiMinDA(2, sharpness=1.0, shrinkage=0.1).fit(X, y)
    model = clone(few).partial_fit(X, y, classes=[0, 1, 2, 7]).finalize()
    assert_array_equal(model.classes_, [0, 1, 2, 7])
    assert np.isnan(model.class_means_[3]).all()
    assert_allclose(model.class_means_[:3], few.class_means_, atol=1e-8)
    assert model.priors_[3] == 0.0
    assert set(model.closest_pairs()["first"]) <= {0, 1, 2}
    model.partial_fit(X[:20] + 10.0, np.full(20, 7)).finalize()
    assert np.isfinite(model.class_means_).all()
    assert 7 in model.closest_pairs()["second"]
    # Without `classes`, the first block has them all.
    streamed = clone(few).partial_fit(X, y).finalize()
    assert_allclose(streamed.components_, few.components_, atol=1e-9)


def test_wrong_blocks_are_named_and_change_nothing():
    X, y = groups(3, 5, 90)
    model = MaxiMinDA(1, sharpness=1.0, shrinkage=0.1).partial_fit(X, y, classes=range(3))
    before = model.finalize().components_.copy()
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
    assert_array_equal(model.finalize().components_, before)
    words = np.array(["a", "bb", "c"])[y]
    named = clone(model).partial_fit(X, words, classes=["a", "bb", "c"])
    with pytest.raises(ValueError, match=r"y holds .*bbb"):
        named.partial_fit(X[:2], ["bbb", "a"])
    with pytest.raises(ValueError, match=r"precomputed.*does not stream"):
        MaxiMinDA(kernel="precomputed").partial_fit(X @ X.T, y, classes=range(3))


def test_labels_of_several_types_are_refused_with_a_remedy():
    X, y = groups(2, 5, 60)
    mixed = np.array([1, "a"], dtype=object)[y]
    remedy = r"mixes labels of the types int, str.*\.astype\(str\)"
    with pytest.raises(TypeError, match=f"^y {remedy}"):
        MaxiMinDA().partial_fit(X, mixed)
    for classes in ([1, "a"], np.array([1, "a"], dtype=object)):
        for labels in (mixed, y):
            with pytest.raises(TypeError, match=f"^(y|classes) {remedy}"):
                MaxiMinDA().partial_fit(X, labels, classes=classes)
    texts = mixed.astype(str)
    model = MaxiMinDA(1, shrinkage=0.1).partial_fit(X, texts, classes=["1", "a"])
    assert_array_equal(model.finalize().classes_, ["1", "a"])


def test_rows_without_weight_add_nothing():
    X, y = groups(3, 5, 90)
    for model in (MaxiMinDA(1, sharpness=1.0, shrinkage=0.1), MaxiMinDA(1, random_state=0)):
        other = clone(model).partial_fit(X, y).finalize()
        weight = np.r_[np.zeros(7), np.ones(90)]
        model.partial_fit(np.vstack([X[:7] + 9.0, X]), np.r_[y[:7], y], sample_weight=weight)
        assert_array_equal(model.finalize().components_, other.components_)
        assert_array_equal(model.components_, other.components_)
        with pytest.raises(ValueError, match="non-zero"):
            model.partial_fit(X[:7] + 9.0, y[:7], sample_weight=np.zeros(7))
        assert_array_equal(model.components_, other.components_)


# How many directions.


def test_the_number_of_directions():
    X, y = groups(6, 8, spread=1.0)
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
    many, labels = groups(9, 3, 200)
    assert clone(model).fit(many, labels).n_components_ == 3


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
    X, y = groups(6, 8)
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
    X, y = groups(6, 8)
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
    # What would come after the choice does not begin.
    with (
        pytest.warns(ConvergenceWarning, match=r"stopped early \(interrupted\): the smallest"),
        pytest.warns(ConvergenceWarning, match=r"stopped early \(interrupted\).* best of 3 values"),
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
    assert model.certificate_.stopped == "interrupted"
    lda = MaxiMinDA(2, sharpness=0.0, shrinkage=model.shrinkage_, random_state=0).fit(X, y)
    assert_allclose(model.transform(X), lda.transform(X), atol=1e-6)


def test_little_time_for_the_choice_leaves_a_model():
    X, y = groups(6, 8)
    # LDA, which needs no more time.
    with pytest.warns(ConvergenceWarning, match=r"choice of .* \(max_time=1e-09 reached\)"):
        model = MaxiMinDA(2, max_time=1e-9).fit(X, y)
    assert (model.sharpness_, model.shrinkage_) == (0.0, 0.0)
    assert not len(model.cv_accuracy_["accuracy"])
    lda = MaxiMinDA(2, sharpness=0.0, shrinkage=None).fit(X, y)
    assert_allclose(model.transform(X), lda.transform(X), atol=1e-8)


def test_verbose_prints_a_line_a_step(capsys):
    X, y = groups(4, 5, 120)
    MaxiMinDA(1, sharpness=INF, shrinkage=0.1, n_init=2, random_state=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4
    assert all(line.startswith("[MaxiMinDA] step ") and "gap" in line for line in lines)
    MaxiMinDA(1, sharpness=INF, shrinkage=0.1).fit(X, y)
    assert not capsys.readouterr().out
