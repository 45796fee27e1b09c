"""Dask collections without a cluster: the same machine as in memory, block by block."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    CoreVectorClassifier,
    LocalFisherDA,
    MarginClassifier,
    MaxiMinDA,
    PairwiseAccuracyDA,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SPAN = {"engine": "span", "max_vectors": 60, "random_state": 0, "memory": "200MB", "tol": 1e-6}


def digits(n=900):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def noisy(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, "yes", "no")


def cut(X, y, chunk=250):
    return da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)


def same(one, two, X, rtol=1e-6):
    assert_array_equal(one.classes_, two.classes_)
    assert_array_equal(one.support_, two.support_)
    assert two.gamma_ == pytest.approx(one.gamma_, rel=1e-12)
    values = one.decision_function(X)
    assert_allclose(two.decision_function(X), values, atol=rtol * np.abs(values).max())


@pytest.mark.parametrize("data", [digits, noisy])
@pytest.mark.parametrize("vectors", ["core", "random"])
def test_a_dask_array_gives_the_machine_of_the_array(data, vectors):
    X, y = data()
    parameters = SPAN | {"vectors": vectors}
    here = MarginClassifier(**parameters).fit(X, y)
    there = MarginClassifier(**parameters).fit(*cut(X, y))
    same(here, there, X)
    assert there.certificate_.gap <= 1e-6
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-6)
    assert there.certificate_.full_dual == pytest.approx(here.certificate_.full_dual, rel=0.05)


def test_pairs_of_classes_weights_and_class_weights_are_those_of_the_array():
    X, y = digits()
    weight = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    parameters = SPAN | {"multi_class": "ovo", "class_weight": "balanced"}
    here = MarginClassifier(**parameters).fit(X, y, weight)
    dX, dy = cut(X, y)
    there = MarginClassifier(**parameters).fit(dX, dy, da.from_array(weight, chunks=250))
    assert there.multi_class_ == "ovo"
    same(here, there, X)


@pytest.mark.parametrize("vectors", ["kmeans", "leverage"])
def test_other_vectors_are_chosen_from_a_sample(vectors):
    X, y = digits()
    model = MarginClassifier(**SPAN | {"vectors": vectors, "max_vectors": 30}).fit(*cut(X, y))
    assert model.certificate_.n_vectors <= 30
    assert model.certificate_.gap <= 1e-6
    assert model.score(X, y) > 0.8


def test_vectors_of_the_users_own_need_no_sample():
    X, y = digits()
    here = MarginClassifier(**SPAN | {"vectors": X[:40]}).fit(X, y)
    there = MarginClassifier(**SPAN | {"vectors": X[:40]}).fit(*cut(X, y))
    assert there.support_ is None
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-4)


def test_chunks_of_unknown_size_and_data_frames_are_the_same():
    import pandas as pd

    X, y = noisy()
    y = (y == "yes").astype(int)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    lazy = dd.from_pandas(frame, npartitions=5)
    here = MarginClassifier(**SPAN).fit(frame[list("abcd")], y)
    there = MarginClassifier(**SPAN).fit(lazy[list("abcd")], lazy["label"])
    assert there.feature_names_in_.tolist() == list("abcd")
    same(here, there, X=frame[list("abcd")])
    unknown = lazy[list("abcd")].to_dask_array()
    assert np.isnan(unknown.chunks[0]).any()
    again = MarginClassifier(**SPAN).fit(unknown, lazy["label"].to_dask_array())
    here = MarginClassifier(**SPAN).fit(X, y)
    same(here, again, X)
    assert again.predict(unknown).compute().tolist() == here.predict(X).tolist()


def test_labels_that_are_an_array_are_cut_as_the_rows_are():
    X, y = noisy()
    dX, _ = cut(X, y)
    here = MarginClassifier(**SPAN).fit(X, y)
    same(here, MarginClassifier(**SPAN).fit(dX, y), X)
    same(here, MarginClassifier(**SPAN).fit(dX, da.from_array(y, chunks=77)), X)


def test_answers_are_lazy_and_scores_are_not():
    X, y = digits()
    dX, dy = cut(X, y)
    model = MarginClassifier(**SPAN).fit(dX, dy)
    lazy = model.decision_function(dX)
    assert lazy.chunks[0] == dX.chunks[0]
    assert_allclose(lazy.compute(), model.decision_function(X), atol=1e-12)
    assert_array_equal(model.predict(dX).compute(), model.predict(X))
    assert model.score(dX, dy) == pytest.approx(model.score(X, y))


def test_a_model_predicts_without_dask():
    X, y = digits(300)
    model = MarginClassifier(**SPAN).fit(*cut(X, y, 100))
    program = (
        "import pickle, sys; model, X, expected = pickle.load(sys.stdin.buffer);"
        "assert (model.predict(X) == expected).all(); assert 'dask' not in sys.modules"
    )
    given = pickle.dumps((model, X, model.predict(X)))
    subprocess.run([sys.executable, "-c", program], input=given, check=True)


def test_rows_are_loaded_again_where_memory_is_small():
    X, y = noisy(4000)
    loads = []

    def counted(block, block_info=None):
        # Dask calls it once with nothing, to find out the type.
        loads.append(len(block))
        return block

    dX, dy = cut(X, y, 500)
    lazy = dX.map_blocks(counted, dtype=X.dtype)
    here = MarginClassifier(**SPAN | {"max_vectors": 20}).fit(X, y)
    loads.clear()
    there = MarginClassifier(**SPAN | {"max_vectors": 20, "memory": "370KB"}).fit(lazy, dy)
    assert sum(loads) > 3 * len(X)
    same(here, there, X, 1e-3)


# Projections.


@pytest.mark.parametrize(
    "estimator",
    [
        MaxiMinDA(3, shrinkage=0.1),
        MaxiMinDA(3, shrinkage="auto", random_state=0),
        PairwiseAccuracyDA(3),
        PairwiseAccuracyDA(3, priors=[0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]),
    ],
    ids=["maximin", "maximin-auto", "pairwise", "priors"],
)
def test_projections_of_a_collection_are_those_of_the_array(estimator):
    X, y = digits()
    weight = np.random.default_rng(0).uniform(0.0, 2.0, size=len(y)).round()
    here = clone(estimator).fit(X, y, weight)
    there = clone(estimator).fit(*cut(X, y, 130), da.from_array(weight, chunks=130))
    assert_allclose(there.components_, here.components_, atol=1e-8)
    lazy = there.transform(da.from_array(X, chunks=(200, -1)))
    assert_allclose(lazy.compute(), here.transform(X), atol=1e-7)


# What goes wrong.


def _parts(X, y):
    return da.from_array(X, chunks=(250, -1)), da.from_array(y, chunks=250)


def test_a_bad_value_in_a_late_partition_is_named_and_nothing_is_half_fitted():
    X, y = noisy()
    X[1100, 2] = np.nan
    model = MarginClassifier(**SPAN)
    with pytest.raises(ValueError, match=r"partition 4 of X.*NaN"):
        model.fit(*_parts(X, y))
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "classes_")
    X[1100, 2] = 0.0
    model.fit(*_parts(X, y))
    answers = model.predict(X)
    X[3, 0] = np.inf
    with pytest.raises(ValueError, match=r"partition 0 of X.*infinity"):
        model.fit(*_parts(X, y))
    assert_array_equal(model.predict(X[10:]), answers[10:])


def test_collections_that_do_not_belong_together_are_refused():
    X, y = noisy()
    dX, dy = _parts(X, y)
    model = MarginClassifier(**SPAN)
    with pytest.raises(ValueError, match=r"2 chunks along its columns.*rechunk"):
        model.fit(da.from_array(X, chunks=(250, 2)), dy)
    with pytest.raises(ValueError, match=r"1,200 rows, but y has 1,199"):
        model.fit(dX, dy[:-1])
    with pytest.raises(ValueError, match=r"1,200 rows, but y has 10"):
        model.fit(dX, y[:10])
    unknown = dd.from_dask_array(dX, columns=list("abcd"))
    labels = dd.from_dask_array(da.from_array(y[::-1], chunks=(240,)), columns="label")
    with pytest.raises(ValueError, match="partition 0 of X has 250 rows"):
        model.fit(unknown, labels)
    with pytest.raises(ValueError, match="unknown sizes"):
        model.fit(unknown, y)
    with pytest.raises(ValueError, match="2 dimensions"):
        model.fit(da.from_array(y, chunks=250), dy)


def test_a_column_of_text_is_an_error_that_names_the_partition():
    import pandas as pd

    frame = pd.DataFrame({"a": np.arange(20.0), "b": ["1.5"] * 15 + ["text"] * 5})
    lazy = dd.from_pandas(frame.astype({"b": object}), npartitions=4)
    label = dd.from_pandas(pd.Series(np.arange(20) % 2), npartitions=4)
    with pytest.raises(ValueError, match="partition 3 of X"):
        MarginClassifier(**SPAN).fit(lazy, label)


def test_one_class_is_an_error():
    X, _ = noisy()
    with pytest.raises(ValueError, match="at least two classes"):
        MarginClassifier(**SPAN).fit(*_parts(X, np.zeros(len(X), dtype=int)))


def test_the_exact_machine_needs_the_rows_and_says_so():
    with pytest.raises(ValueError, match=r"engine='exact'.* needs rows in memory"):
        MarginClassifier(engine="exact", memory="100KB").fit(*_parts(*noisy()))


@pytest.mark.parametrize("estimator", [CoreVectorClassifier(), LocalFisherDA()])
def test_estimators_that_take_no_collection_say_so(estimator):
    with pytest.raises(TypeError, match=r"Dask collection.*X\.compute\(\)"):
        estimator.fit(*_parts(*noisy()))


def test_the_time_limit_leaves_a_valid_model():
    X, y = noisy(4000)
    model = MarginClassifier(**SPAN | {"max_time": 1e-3})
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model.fit(*_parts(X, y))
    assert model.certificate_.scope == "span"
    assert len(model.predict(X)) == 4000


def test_a_kernel_matrix_in_parts_is_refused():
    X, y = noisy(60)
    dX, dy = cut(X @ X.T, y, 20)
    with pytest.raises(TypeError, match=r"kernel='precomputed' needs all kernel values"):
        MarginClassifier(kernel="precomputed").fit(dX, dy)


def test_columns_of_a_parquet_file_are_cut_alike(tmp_path):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = noisy(600)
    names = [f"column {k}" for k in range(30)]
    wide = np.column_stack([X, np.zeros((len(X), 30 - X.shape[1]))])
    table = pd.DataFrame(wide, columns=names).assign(label=y)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    frame = dd.read_parquet(tmp_path / "rows.parquet", split_row_groups=True)
    # Dask reads a single column in fewer parts.
    assert len(frame["label"].to_delayed()) < frame.npartitions == 12
    there = MarginClassifier(**SPAN).fit(frame[names], frame["label"])
    here = MarginClassifier(**SPAN).fit(table[names], y)
    values = here.decision_function(table[names])
    assert_allclose(there.decision_function(table[names]), values, atol=1e-5)
    assert there.score(frame[names], frame["label"]) == here.score(table[names], y)
