"""A search on Dask collections without a cluster: the scores of the search in memory."""

import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit

from widemargin import MarginClassifierCV
from widemargin.loop import PlaceLost
from widemargin.places import folds_of_shards, labels, sources
from widemargin.span.shards import Here
from widemargin.svm import collection_search, search_of_shards

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SEARCH = {
    "Cs": [0.1, 10.0],
    "gammas": ["scale", 0.5],
    "engine": "span",
    "max_vectors": 50,
    "random_state": 0,
    "memory": "200MB",
    "tol": 1e-6,
    "cv": 3,
}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Let every partition be a shard."""
    monkeypatch.setattr(sources, "_LEAST_SHARD", 1)


def digits(n=600):
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:n], y[:n]


def noisy(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, "yes", "no")


def weights(n, seed=1):
    return np.random.default_rng(seed).integers(0, 3, size=n).astype(float)


def cut(X, y, weight=None, chunk=130):
    parts = [da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)]
    return parts if weight is None else [*parts, da.from_array(weight, chunks=chunk)]


def scores_of(search):
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)])


def same(here, there, X):
    assert_array_equal(there.classes_, here.classes_)
    assert there.best_params_ == here.best_params_
    assert there.best_index_ == here.best_index_
    assert_allclose(scores_of(there), scores_of(here), atol=1e-9)
    values = here.decision_function(X)
    assert_allclose(there.decision_function(X), values, atol=1e-6 * np.abs(values).max())


@pytest.mark.parametrize("data", [noisy, digits])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_a_dask_array_gives_the_scores_of_the_array(data, weighted, scoring):
    X, y = data()
    given = (X, y, weights(len(y))) if weighted else (X, y)
    parameters = SEARCH | {"scoring": scoring, "class_weight": "balanced" if weighted else None}
    here = MarginClassifierCV(**parameters).fit(*given)
    same(here, MarginClassifierCV(**parameters).fit(*cut(*given)), X)


def test_pairs_of_classes_and_ranks_are_those_of_the_array():
    X, y = digits()
    pairs = SEARCH | {"multi_class": "ovo", "gammas": ["scale"]}
    same(MarginClassifierCV(**pairs).fit(X, y), MarginClassifierCV(**pairs).fit(*cut(X, y)), X)
    pairs |= {"scoring": "f1_macro"}
    same(MarginClassifierCV(**pairs).fit(X, y), MarginClassifierCV(**pairs).fit(*cut(X, y)), X)
    X, y = noisy()
    ranks = SEARCH | {"scoring": "roc_auc"}
    same(MarginClassifierCV(**ranks).fit(X, y), MarginClassifierCV(**ranks).fit(*cut(X, y)), X)


def _drawn(n):
    """Return folds that train on some rows twice, and hold out some of them twice or never."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        order = rng.permutation(n)
        yield rng.choice(order[: n // 2], n // 2), rng.choice(order[n // 2 :], n // 4)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_folds_of_any_kind_are_those_of_the_array(scoring):
    X, y = noisy()
    parameters = SEARCH | {"gammas": ["scale"], "scoring": scoring}
    masks = [(np.arange(len(y)) % 3 != k, np.arange(len(y)) % 3 == k) for k in range(3)]
    for make in (
        lambda: list(_drawn(len(y))),
        lambda: _drawn(len(y)),
        lambda: masks,
        lambda: ShuffleSplit(2, random_state=0),
        lambda: KFold(2, shuffle=True, random_state=0),
    ):
        here = MarginClassifierCV(**parameters | {"cv": make()}).fit(X, y)
        same(here, MarginClassifierCV(**parameters | {"cv": make()}).fit(*cut(X, y)), X)


def test_rows_that_occur_in_several_folds_and_shards_count_as_in_memory():
    X, y = noisy(300)
    X, y = np.concatenate([X, X[::-1], X[:100]]), np.concatenate([y, y[::-1], y[:100]])
    # Vectors of one's own: of equal rows in different shards each may be drawn.
    parameters = SEARCH | {"vectors": X[:40]}
    for scoring in (None, "balanced_accuracy"):
        chosen = parameters | {"scoring": scoring}
        same(
            MarginClassifierCV(**chosen).fit(X, y), MarginClassifierCV(**chosen).fit(*cut(X, y)), X
        )


def test_labels_of_rows_without_weight_take_part_in_the_folds_only():
    X, y = noisy()
    weight = weights(len(y))
    y = np.where((weight == 0) & (X[:, 3] > 0), "perhaps", y)
    for scoring in (None, "balanced_accuracy"):
        parameters = SEARCH | {"scoring": scoring, "gammas": ["scale"]}
        here = MarginClassifierCV(**parameters).fit(X, y, weight)
        there = MarginClassifierCV(**parameters).fit(*cut(X, y, weight))
        assert there.classes_.tolist() == ["no", "yes"]
        same(here, there, X)


def test_chunks_of_unknown_size_data_frames_and_sparse_rows_are_the_same():
    import pandas as pd
    from scipy import sparse

    X, y = noisy(600)
    y = (y == "yes").astype(int)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    lazy = dd.from_pandas(frame, npartitions=4)
    here = MarginClassifierCV(**SEARCH).fit(frame[list("abcd")], y)
    there = MarginClassifierCV(**SEARCH).fit(lazy[list("abcd")], lazy["label"])
    assert there.feature_names_in_.tolist() == list("abcd")
    same(here, there, frame[list("abcd")])
    unknown = lazy[list("abcd")].to_dask_array()
    again = MarginClassifierCV(**SEARCH).fit(unknown, lazy["label"].to_dask_array())
    here = MarginClassifierCV(**SEARCH).fit(X, y)
    same(here, again, X)
    assert_array_equal(again.predict(unknown).compute(), here.predict(X))
    few = np.where(np.abs(X) > 0.5, X, 0.0)
    blocks = da.from_array(few, chunks=(150, -1)).map_blocks(sparse.csr_matrix)
    here = MarginClassifierCV(**SEARCH).fit(sparse.csr_matrix(few), y)
    same(here, MarginClassifierCV(**SEARCH).fit(blocks, y), few)
    gathered = MarginClassifierCV(**SEARCH | {"engine": "auto"})
    gathered.fit(lazy[list("abcd")], lazy["label"])
    assert gathered.feature_names_in_.tolist() == list("abcd")
    answers = gathered.predict(lazy[list("abcd")]).compute()
    assert_array_equal(answers, gathered.predict(frame[list("abcd")]))


def test_partitions_without_rows_or_without_weight_change_nothing():
    import pandas as pd

    X, y = noisy()
    y = (y == "yes").astype(int)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y, part=np.arange(900) // 100)
    lazy = dd.from_pandas(frame, npartitions=9)
    lazy = lazy[lazy["part"] != 3]
    used = frame["part"] != 3
    here = MarginClassifierCV(**SEARCH).fit(X[used], y[used])
    there = MarginClassifierCV(**SEARCH).fit(lazy[list("abcd")], lazy["label"])
    assert_allclose(scores_of(there), scores_of(here), atol=1e-9)
    assert there.score(lazy[list("abcd")], lazy["label"]) == here.score(X[used], y[used])
    weight = used.to_numpy().astype(float)
    here = MarginClassifierCV(**SEARCH).fit(X, y, weight)
    same(here, MarginClassifierCV(**SEARCH).fit(*cut(X, y, weight, chunk=100)), X)


def test_answers_are_lazy_and_scores_are_not():
    X, y = digits()
    dX, dy = cut(X, y)
    search = MarginClassifierCV(**SEARCH | {"gammas": ["scale"]}).fit(dX, dy)
    lazy = search.decision_function(dX)
    assert lazy.chunks[0] == dX.chunks[0]
    assert_allclose(lazy.compute(), search.decision_function(X), atol=1e-12)
    assert_array_equal(search.predict(dX).compute(), search.predict(X))
    assert search.score(dX, dy) == pytest.approx(search.score(X, y))
    with pytest.raises(ValueError, match="features"):
        search.predict(dX[:, :3])


@pytest.mark.parametrize("engine", ["auto", "exact"])
def test_few_rows_are_searched_in_memory(engine):
    X, y = noisy()
    parameters = SEARCH | {"engine": engine, "max_vectors": "auto", "tol": 1e-3}
    here = MarginClassifierCV(**parameters).fit(X, y)
    there = MarginClassifierCV(**parameters).fit(*cut(X, y))
    assert there.best_estimator_.engine_ == here.best_estimator_.engine_ != "span"
    assert_array_equal(scores_of(there), scores_of(here))
    assert_array_equal(there.decision_function(X), here.decision_function(X))


def test_many_rows_are_searched_in_a_span_by_auto(monkeypatch):
    monkeypatch.setattr(collection_search, "_FEW_ROWS", 500)
    X, y = noisy()
    here = MarginClassifierCV(**SEARCH).fit(X, y)
    there = MarginClassifierCV(**SEARCH | {"engine": "auto"}).fit(*cut(X, y))
    assert there.best_estimator_.engine_ == "span"
    same(here, there, X)


# Limits.


def test_values_of_C_that_do_not_fit_together_take_turns(monkeypatch):
    X, y = noisy()
    parameters = SEARCH | {"vectors": X[:40], "Cs": [0.1, 1.0, 10.0]}
    here = MarginClassifierCV(**parameters).fit(X, y)
    alive, most, sizes = weakref.WeakSet(), [], []
    original = folds_of_shards.fold_shard

    def noting(rows, plan):
        shard = original(rows, plan)
        alive.add(shard)
        most.append(len(alive))
        sizes.append(len(plan.Cs))
        return shard

    monkeypatch.setattr(folds_of_shards, "fold_shard", noting)
    monkeypatch.setattr(folds_of_shards, "_SCORES_SHARE", 1e-4)
    there = MarginClassifierCV(**parameters).fit(*cut(X, y))
    assert set(sizes) == {1}
    # Those of one turn are gone before the next begins.
    assert max(most) == 7
    same(here, there, X)


def test_rows_are_loaded_again_where_memory_is_small():
    X, y = noisy(2000)
    X = np.hstack([X, np.zeros((2000, 36))])
    loads = []

    def counted(block, block_info=None):
        loads.append(len(block))
        return block

    dX, dy = cut(X, y, chunk=500)
    lazy = dX.map_blocks(counted, dtype=X.dtype)
    parameters = SEARCH | {"max_vectors": 20, "gammas": ["scale"]}
    here = MarginClassifierCV(**parameters).fit(X, y)
    loads.clear()
    there = MarginClassifierCV(**parameters | {"memory": "300KB"}).fit(lazy, dy)
    assert sum(loads) > 10 * len(X)
    assert_allclose(scores_of(there), scores_of(here), atol=0.02)


def test_memory_that_is_too_small_for_folds_or_scores_is_an_error(monkeypatch):
    X, y = noisy()
    with pytest.raises(ValueError, match=r"Folds and labels of 900 rows take 0 MB.*more memory"):
        MarginClassifierCV(**SEARCH | {"memory": 80_000}).fit(*cut(X, y))
    monkeypatch.setattr(labels, "_BYTES_OF_ROW", 1)
    with pytest.raises(ValueError, match=r"memory leaves .* for 900 rows.*more memory"):
        MarginClassifierCV(**SEARCH | {"memory": 60_000}).fit(*cut(X, y))


def test_the_time_limit_leaves_the_best_that_is_known():
    X, y = noisy(3000)
    search = MarginClassifierCV(**SEARCH | {"max_time": 1e-3})
    with pytest.warns(ConvergenceWarning) as warned:
        search.fit(*cut(X, y, chunk=500))
    assert "cut short (max_time=0.001 reached): 0 of 4" in str(warned[0].message)
    assert len(search.predict(X)) == 3000


class Failing(Here):
    """A place that fails at some question."""

    asked = 0
    at = 10**9
    error: type[BaseException] = KeyboardInterrupt

    def ask(self, what, *arguments):
        Failing.asked += 1
        if Failing.asked == Failing.at:
            raise Failing.error("the place is gone")
        return super().ask(what, *arguments)


@pytest.fixture
def failing(monkeypatch):
    monkeypatch.setattr("widemargin.places.sources.Here", Failing)
    monkeypatch.setattr(Failing, "asked", 0)
    return monkeypatch


def _questions(parameters, data):
    """Return how many questions were asked when each width was done."""
    counted = []
    original = search_of_shards.scores_in_shards

    def noting(*arguments):
        found = original(*arguments)
        counted.append(Failing.asked)
        return found

    search_of_shards.scores_in_shards = noting
    try:
        MarginClassifierCV(**parameters).fit(*data)
    finally:
        search_of_shards.scores_in_shards = original
    Failing.asked = 0
    return counted


@pytest.mark.parametrize("error", [KeyboardInterrupt, PlaceLost])
def test_a_search_that_is_interrupted_or_loses_its_place_fits_the_best_that_is_known(
    failing, error
):
    X, y = noisy()
    data = cut(X, y)
    whole = MarginClassifierCV(**SEARCH).fit(X, y)
    first, second = _questions(SEARCH, data)
    failing.setattr(Failing, "error", error)
    failing.setattr(Failing, "at", (first + second) // 2)
    reason = "interrupted" if error is KeyboardInterrupt else "the place is gone"
    with pytest.warns(ConvergenceWarning, match=rf"cut short \({reason}\): 2 of 4"):
        search = MarginClassifierCV(**SEARCH).fit(*data)
    assert_allclose(scores_of(search)[:, ::2], scores_of(whole)[:, ::2], atol=1e-9)
    assert search.best_params_["gamma"] == "scale"
    assert search.certificate_.gap <= 1e-6


def test_a_place_that_is_lost_before_there_is_a_score_is_an_error(failing):
    data = cut(*noisy())
    search = MarginClassifierCV(**SEARCH)
    failing.setattr(Failing, "error", PlaceLost)
    failing.setattr(Failing, "at", 5)
    with pytest.raises(PlaceLost, match="no score yet, and the place is gone"):
        search.fit(*data)
    assert not hasattr(search, "cv_results_")


def test_progress_is_shown(capsys):
    X, y = noisy(400)
    MarginClassifierCV(**SEARCH | {"verbose": 1}).fit(*cut(X, y))
    shown = capsys.readouterr().out
    assert "[MarginClassifierCV]" in shown and "100%" in shown
    assert "[MarginClassifier] step" in shown


# What goes wrong.


def test_a_bad_value_in_a_late_partition_leaves_the_earlier_search_as_it_was():
    X, y = noisy()
    search = MarginClassifierCV(**SEARCH | {"gammas": ["scale"]}).fit(*cut(X, y))
    before = dict(vars(search))
    X[850, 2] = np.nan
    with pytest.raises(ValueError, match=r"partition 6 of X.*NaN"):
        search.fit(*cut(X, y))
    assert vars(search) == before
    X[850, 2] = 0.0
    with pytest.raises(ValueError, match="greater than the number of members"):
        search.set_params(cv=600).fit(*cut(X, y))
    assert {name: value for name, value in vars(search).items() if name != "cv"} == {
        name: value for name, value in before.items() if name != "cv"
    }


def test_what_needs_the_rows_in_memory_says_so(monkeypatch):
    X, y = noisy()
    small = {"memory": 100_000}
    with pytest.raises(ValueError, match=r"engine='exact' searches rows in memory.*engine='span'"):
        MarginClassifierCV(engine="exact", **small).fit(*cut(X, y))
    with pytest.raises(ValueError, match=r"engine='cells' with scoring searches rows in memory"):
        MarginClassifierCV(engine="cells", scoring="roc_auc", **small).fit(*cut(X, y))
    square = da.from_array(X @ X.T, chunks=(300, -1))
    with pytest.raises(ValueError, match="kernel='precomputed' searches rows in memory"):
        MarginClassifierCV(kernel="precomputed", **small).fit(square, y)
    here = MarginClassifierCV(kernel="precomputed", Cs=[0.1, 1.0]).fit(X @ X.T, y)
    there = MarginClassifierCV(kernel="precomputed", Cs=[0.1, 1.0]).fit(square, y)
    assert_array_equal(scores_of(there), scores_of(here))


def test_parameters_that_no_collection_can_have_are_refused(monkeypatch):
    X, y = noisy()
    monkeypatch.setattr(collection_search, "_FEW_ROWS", 500)
    with pytest.raises(ValueError, match="loss='hinge'"):
        MarginClassifierCV(loss="hinge").fit(*cut(X, y))
    with pytest.raises(ValueError, match="cv=1"):
        MarginClassifierCV(**SEARCH | {"cv": 1}).fit(*cut(X, y))
    weight = (np.arange(900) > 5).astype(float)
    with pytest.raises(ValueError, match="Fold 0 of cv has no row"):
        MarginClassifierCV(**SEARCH | {"cv": [([0, 1], [2])]}).fit(*cut(X, y, weight))


def test_a_mapped_file_that_is_larger_than_the_memory_is_searched_in_parts(tmp_path):
    X, y = noisy(6000)
    X = np.hstack([X, np.zeros((6000, 60))])
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    parameters = SEARCH | {"gammas": [0.2], "vectors": X[:30], "cv": 2, "tol": 1e-4}
    here = MarginClassifierCV(**parameters).fit(X, y)
    there = MarginClassifierCV(**parameters | {"memory": "2.5MB"}).fit(rows, y)
    assert_allclose(scores_of(there), scores_of(here), atol=4e-3)
    assert_array_equal(there.predict(rows), there.best_estimator_.predict(X))
