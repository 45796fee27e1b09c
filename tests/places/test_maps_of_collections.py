"""Maps and projections of Dask collections without a cluster: the same as in memory."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from widemargin import KernelFisherDA, MaxiMinDA, MaxMarginDA, PairwiseAccuracyDA, SpanMap
from widemargin.loop import PlaceLost
from widemargin.places import sources
from widemargin.span.shards import Here

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

MAP = {"n_vectors": 40, "random_state": 0, "memory": "200MB"}
MARGIN = {"kernel": "rbf", "max_vectors": 40, "random_state": 0, "memory": "200MB", "tol": 1e-9}


@pytest.fixture(autouse=True)
def a_shard_for_each_partition(monkeypatch):
    monkeypatch.setattr(sources, "_LEAST_SHARD", 1)


def digits(n=900):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def weights(n=900):
    return np.random.default_rng(0).integers(0, 3, size=n).astype(float)


def cut(values, chunk=130):
    return da.from_array(values, chunks=(chunk, -1) if values.ndim == 2 else chunk)


def both(estimator, X, y, weight=None):
    """Return the estimator fitted in memory, and to a collection."""
    here = clone(estimator).fit(X, y, weight)
    there = clone(estimator).fit(cut(X), cut(y), None if weight is None else cut(weight))
    return here, there


def check_same(here, there, X, atol):
    features = here.transform(X)
    lazy = there.transform(cut(X))
    assert lazy.chunks[0] == cut(X).chunks[0] and lazy.dtype == features.dtype
    assert_allclose(lazy.compute(), features, atol=atol * np.abs(features).max())
    assert_allclose(there.transform(X), features, atol=atol * np.abs(features).max())


# The map.


@pytest.mark.parametrize("vectors", ["random", "kmeans", "leverage", "core"])
@pytest.mark.parametrize("weight", [None, weights()], ids=["plain", "weights"])
def test_the_map_of_a_collection_is_that_of_the_array(vectors, weight):
    X, y = digits()
    here, there = both(SpanMap(**MAP, vectors=vectors), X, y, weight)
    assert_array_equal(there.components_, here.components_)
    assert_array_equal(there.component_indices_, here.component_indices_)
    check_same(here, there, X, 1e-10)


def test_the_map_needs_no_labels_but_for_core_vectors():
    X, y = digits(400)
    here = SpanMap(**MAP).fit(X)
    there = SpanMap(**MAP).fit(cut(X))
    assert_array_equal(there.components_, here.components_)
    # Labels that nobody looks at may be anything, as in memory.
    assert_array_equal(SpanMap(**MAP).fit(cut(X), y[:3]).components_, here.components_)
    with pytest.raises(ValueError, match="needs labels: pass y"):
        SpanMap(**MAP, vectors="core").fit(cut(X))


def test_vectors_of_the_users_own_are_taken():
    X, y = digits(400)
    here, there = both(SpanMap(**MAP, vectors=X[:20]), X, y)
    assert there.component_indices_ is None
    assert_array_equal(there.components_, here.components_)
    with pytest.raises(ValueError, match="column for each of the 64 features"):
        SpanMap(vectors=X[:20, :3]).fit(cut(X))


def test_the_map_looks_at_the_rows_twice():
    X, _ = digits()
    loads = []

    def counted(block, block_info=None):
        loads.append(len(block))
        return block

    lazy = cut(X).map_blocks(counted, dtype=X.dtype)
    loads.clear()
    SpanMap(**MAP, vectors="random").fit(lazy)
    assert sum(loads) == 2 * len(X)


@pytest.mark.parametrize("vectors", ["random", "kmeans"])
def test_weights_that_are_in_few_shards_draw_the_same_rows(vectors):
    X, y = digits()
    weight = np.ones(900)
    # Heavy rows make their shard expect all draws, which others then have.
    weight[5] = 1e9
    here, there = both(SpanMap(**MAP, vectors=vectors), X, y, weight)
    assert_array_equal(there.components_, here.components_)
    # And shards without any weight are there all the same.
    weight = np.where(np.arange(900) < 300, 0.0, 1.0)
    here, there = both(SpanMap(**MAP, vectors=vectors), X, y, weight)
    assert_array_equal(there.components_, here.components_)
    with pytest.raises(ValueError, match="zero for every row"):
        SpanMap(**MAP).fit(cut(X), None, cut(np.zeros(900)))


def test_rows_of_single_precision_have_features_of_it():
    X, y = digits(400)
    here, there = both(SpanMap(**MAP), X.astype(np.float32), y)
    check_same(here, there, X.astype(np.float32), 1e-6)
    assert there.transform(cut(X.astype(np.float32))).dtype == np.float32


# Projections in the span.


@pytest.mark.parametrize("vectors", ["random", "kmeans", "core"])
@pytest.mark.parametrize("weight", [None, weights()], ids=["plain", "weights"])
def test_fisher_directions_of_a_collection_are_those_of_the_array(vectors, weight):
    X, y = digits()
    here, there = both(KernelFisherDA(solver="span", **MAP, vectors=vectors), X, y, weight)
    assert_array_equal(there.support_, here.support_)
    assert_array_equal(there.classes_, here.classes_)
    assert_allclose(there.criterion_, here.criterion_, rtol=1e-8)
    assert_allclose(there.coef_, here.coef_, atol=1e-8 * np.abs(here.coef_).max())
    check_same(here, there, X, 1e-8)
    alone = KernelFisherDA(**MAP, vectors=vectors).fit(cut(X), cut(y))
    assert alone.solver_ == "span"


@pytest.mark.parametrize(
    "estimator",
    [
        MaxiMinDA(3, kernel="rbf", **MAP),
        MaxiMinDA(3, kernel="rbf", shrinkage=0.1, vectors="random", **MAP),
        PairwiseAccuracyDA(3, kernel="rbf", shrinkage="auto", **MAP),
    ],
    ids=["maximin", "maximin-random", "pairwise"],
)
def test_projections_with_a_kernel_are_those_of_the_array(estimator):
    X, y = digits()
    here, there = both(estimator, X, y, weights())
    assert_array_equal(there.span_map_.components_, here.span_map_.components_)
    check_same(here, there, X, 1e-8)


def test_equal_rows_are_told_as_in_memory():
    X, y = np.ones((300, 3)), np.arange(300) % 3
    for estimator in (KernelFisherDA(solver="span"), PairwiseAccuracyDA(kernel="rbf")):
        for data in ((X, y), (cut(X), cut(y))):
            with pytest.raises(ValueError, match="same mean"):
                clone(estimator).fit(*data)


# Directions with the widest margins.


@pytest.mark.parametrize(
    "parameters",
    [
        MARGIN | {"n_directions": 3},
        MARGIN | {"n_directions": 2, "constraint": "uncorrelated", "vectors": "kmeans"},
        MARGIN | {"across": "all", "class_weight": "balanced"},
        MARGIN | {"n_directions": 2, "codes": "random", "scale": "margin"},
        # All but a few kernel values are computed again in every pass.
        MARGIN | {"n_directions": 2, "memory": "400KB", "tol": 1e-11},
        {"n_directions": 2, "tol": 1e-10},
    ],
    ids=["orthogonal", "uncorrelated", "across", "codes", "memory", "linear"],
)
def test_margin_directions_of_a_collection_are_those_of_the_array(parameters):
    X, y = digits()
    solver = "span" if "kernel" in parameters else "direct"
    here = MaxMarginDA(**parameters, solver=solver).fit(X, y, weights())
    there = MaxMarginDA(**parameters).fit(cut(X), cut(y), cut(weights()))
    assert there.solver_ == "span"
    check_same(here, there, X, 1e-5)
    assert_allclose(there.intercept_, here.intercept_, atol=1e-5)
    assert_array_equal(there.get_feature_names_out(), here.get_feature_names_out())
    assert there.certificate_.scope == here.certificate_.scope
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-6)
    table, other = there.directions_, here.directions_
    assert_allclose(table["training_error"], other["training_error"], atol=1e-3)
    assert_allclose(table["margin"], other["margin"], rtol=1e-5)
    if solver == "span":
        assert_array_equal(there.support_, here.support_)
    else:
        assert not hasattr(there, "vectors_")
        assert_allclose(there.components_, here.components_, atol=1e-5)


def test_the_time_limit_leaves_directions():
    X, y = digits()
    model = MaxMarginDA(**MARGIN | {"n_directions": 3, "max_time": 1e-4})
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        model.fit(cut(X), cut(y))
    assert model.transform(X).shape[1] >= 1


def test_directions_that_were_found_are_kept_where_the_rows_get_lost(monkeypatch):
    X, y = digits()
    whole = MaxMarginDA(**MARGIN).fit(cut(X), cut(y))
    ask = Here.ask

    def lost(self, what, *arguments):
        if what == "restate" or lost.ever:
            lost.ever = True
            raise PlaceLost("the scheduler does not answer")
        return ask(self, what, *arguments)

    lost.ever = False
    monkeypatch.setattr(Here, "ask", lost)
    model = MaxMarginDA(**MARGIN | {"n_directions": 2})
    with pytest.warns(ConvergenceWarning, match="scheduler does not answer"):
        model.fit(cut(X), cut(y))
    assert_array_equal(model.coef_, whole.coef_)


def test_rows_that_get_lost_in_the_first_round_leave_what_there_is(monkeypatch):
    X, y = digits()
    ask = Here.ask

    def lost(self, what, *arguments):
        lost.questions += what == "pull"
        if lost.questions > 6:
            raise PlaceLost("the scheduler does not answer")
        return ask(self, what, *arguments)

    lost.questions = 0
    monkeypatch.setattr(Here, "ask", lost)
    model = MaxMarginDA(**MARGIN | {"n_directions": 2})
    with pytest.warns(ConvergenceWarning, match="scheduler does not answer"):
        model.fit(cut(X), cut(y))
    assert np.isnan(model.directions_["training_error"]).all()
    assert model.transform(X).shape == (900, 10)


# Other collections, and what goes wrong.

EVERY = [
    SpanMap(**MAP),
    KernelFisherDA(**MAP),
    PairwiseAccuracyDA(kernel="rbf", **MAP),
    MaxMarginDA(**MARGIN),
]


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_data_frames_and_chunks_of_unknown_size_are_the_same(estimator):
    import pandas as pd

    X, y = digits(600)
    names = [f"pixel{k}" for k in range(64)]
    frame = pd.DataFrame(X, columns=names).assign(label=y)
    lazy = dd.from_pandas(frame, npartitions=5)
    solver = {"solver": "span"} if "solver" in estimator.get_params() else {}
    here = clone(estimator).set_params(**solver).fit(frame[names], y).transform(frame[names])
    there = clone(estimator).fit(lazy[names], lazy["label"])
    assert there.feature_names_in_.tolist() == names
    assert_allclose(there.transform(lazy[names]).compute(), here, atol=1e-6)
    with pytest.raises(ValueError, match="feature names"):
        there.transform(lazy[names[::-1]])
    # Some partitions are empty now.
    few = lazy[lazy["label"] + 10 * (lazy["pixel2"] > 0) > 2]
    few = dd.concat([few[few["label"] < 0], few])
    computed = few.compute()
    here = clone(estimator).set_params(**solver).fit(computed[names].to_numpy(), computed["label"])
    rows, labels = few[names].to_dask_array(), few["label"].to_dask_array()
    assert np.isnan(rows.chunks[0]).all()
    there = clone(estimator).fit(rows, labels)
    features = here.transform(computed[names].to_numpy())
    assert_allclose(there.transform(X[:50]), here.transform(X[:50]), atol=1e-6)
    assert len(features) == len(computed)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_a_bad_value_in_a_late_partition_is_named_and_nothing_is_half_fitted(estimator):
    X, y = digits(600)
    bad = X.copy()
    bad[590, 3] = np.nan
    model = clone(estimator)
    with pytest.raises(ValueError, match=r"partition 4 of X.*NaN"):
        model.fit(cut(bad), cut(y))
    assert not [name for name in vars(model) if name.endswith("_")]
    model.fit(cut(X), cut(y))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"partition 4 of X.*NaN"):
        model.fit(cut(bad), cut(y))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("estimator", EVERY[1:], ids=lambda each: type(each).__name__)
def test_labels_that_do_not_belong_to_the_rows_are_refused(estimator):
    X, y = digits(600)
    with pytest.raises(ValueError, match="600 rows, but y has 599"):
        clone(estimator).fit(cut(X), cut(y)[:-1])
    with pytest.raises(ValueError, match="at least two classes"):
        clone(estimator).fit(cut(X), cut(np.zeros(600)))


@pytest.mark.parametrize(
    "estimator",
    [
        KernelFisherDA(solver="kernel"),
        MaxMarginDA(solver="deflation"),
        MaxMarginDA(solver="core"),
        MaxMarginDA(loss="hinge"),
        MaxMarginDA(fit_intercept=False),
    ],
    ids=["kernel", "deflation", "core", "hinge", "intercept"],
)
def test_parameters_that_need_the_rows_say_so(estimator):
    X, y = digits(300)
    with pytest.raises(ValueError, match=r"needs rows in memory.*use .* or pass X\.compute\(\)"):
        estimator.fit(cut(X), cut(y))


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_a_kernel_matrix_must_be_in_memory(estimator):
    X, y = digits(300)
    model = clone(estimator).set_params(kernel="precomputed")
    with pytest.raises(TypeError, match=r"kernel matrix in memory.*X\.compute\(\)"):
        model.fit(cut(X @ X.T), cut(y))


def test_more_columns_than_memory_has_room_for_are_told():
    X, y = digits(300)
    with pytest.raises(ValueError, match=r"64 columns, but memory of 0\.1 MB"):
        MaxMarginDA(memory="100KB").fit(cut(X), cut(y))
