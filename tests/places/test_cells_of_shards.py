"""Cells from Dask collections without a cluster: the machines of the array, bit for bit."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from widemargin import MarginClassifier
from widemargin.cells import ExactSizes, cell_engine
from widemargin.cells.engine_choice import TrialSizes
from widemargin.places import cell_buckets, sources
from widemargin.places.cell_shard import N_DEPTHS, Census
from widemargin.places.cells_of_shards import depths_for
from widemargin.places.loading import load
from widemargin.svm.margin_classifier import CellParameters

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

CELLS = {"engine": "cells", "cells": 60, "gamma": 1.0, "C": 2.0, "random_state": 0, "n_jobs": 2}
CHUNK = 170


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Let every partition be a shard."""
    monkeypatch.setattr(sources, "_LEAST_SHARD", 1)


def classes(n=1200, borders=(0.0,), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n), borders)


def cut(*arrays, chunk=CHUNK):
    return [da.from_array(each, chunks=(chunk, *each.shape[1:])) for each in arrays]


def fitted_twice(X, y, weight=None, chunk=CHUNK, **parameters):
    given = CELLS | parameters
    here = MarginClassifier(**given).fit(X, y, weight)
    collections = cut(X, y, *([] if weight is None else [weight]), chunk=chunk)
    return here, MarginClassifier(**given).fit(*collections)


def same(one, two):
    for name in ("classes_", "cell_centers_", "cell_offsets_", "support_", "support_vectors_"):
        assert_array_equal(getattr(two, name), getattr(one, name), err_msg=name)
    assert_array_equal(two.dual_coef_, one.dual_coef_)
    assert_array_equal(two.intercept_, one.intercept_)
    assert (two.engine_, two.multi_class_) == (one.engine_, one.multi_class_)
    assert two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-12)
    assert two.certificate_.dual == pytest.approx(one.certificate_.dual, rel=1e-12)
    # Where partitions have rows in common, less is known of what rounding may hide.
    what = [each.certificate_.stopped.partition(", the largest") for each in (one, two)]
    assert what[0][0] == what[1][0]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"multi_class": "ovo"},
        {"multi_class": "ovr"},
        {"multi_class": "ovo", "class_weight": "balanced"},
        {"overlap": 0.0},
        {"overlap": 2.5},
        {"max_vectors": 200},
        {"loss": "hinge"},
        {"kernel": "laplacian"},
        {"kernel": "poly", "coef0": 1.0},
        {"cells": 10_000},
        {"cells": "auto"},
    ],
    ids=str,
)
def test_machines_are_those_of_the_array(parameters):
    X, y = classes(borders=(-0.5, 0.5) if "multi_class" in parameters else (0.0,))
    same(*fitted_twice(X, y, **parameters))


def test_rows_that_come_in_several_passes_give_the_same_machines(monkeypatch):
    X, y = classes()
    monkeypatch.setattr(cell_buckets, "_CELLS_AT_A_TIME", 4)
    # Room for the rows of a few cells.
    monkeypatch.setattr(cell_buckets, "_ROWS_SHARE", 3e-4)
    here, there = fitted_twice(X, y, memory=10**8)
    same(here, there)
    assert there.certificate_.n_passes > 6
    assert there.n_iter_ > 5


def test_centres_may_be_given_and_those_without_rows_go():
    X, y = classes()
    centers = np.concatenate([X[:25], [[50.0, 0.0, 0.0]], X[:2]])
    here, there = fitted_twice(X, y, cells=centers)
    assert len(there.cell_centers_) == 25
    same(here, there)
    rng = np.random.default_rng(1)
    widths, Cs = rng.uniform(0.5, 2.0, len(centers)), rng.uniform(0.5, 5.0, len(centers))
    here, there = fitted_twice(X, y, cells=CellParameters(centers, widths, Cs))
    same(here, there)
    assert_array_equal(there.cell_gamma_, here.cell_gamma_)
    assert_array_equal(there.cell_C_, here.cell_C_)


def test_weights_and_copies_within_and_across_partitions_are_merged():
    X, y = classes(600)
    rng = np.random.default_rng(0)
    order = rng.permutation(np.concatenate([np.arange(600), np.arange(0, 600, 2)]))
    weight = rng.integers(0, 3, size=len(order)).astype(float)
    here, there = fitted_twice(X[order], y[order], weight, cells=X[:12])
    same(here, there)
    block = np.repeat(np.arange(600), 3)
    same(*fitted_twice(X[block], y[block], rng.uniform(0.1, 2.0, size=1800), chunk=171))


def test_copies_of_all_partitions_count_as_one():
    X, y = classes(600)
    same(*fitted_twice(np.tile(X, (4, 1)), np.tile(y, 4), chunk=600))


def test_chunks_of_unknown_size_empty_ones_and_data_frames_are_the_same():
    import pandas as pd

    X, y = classes()
    here = MarginClassifier(**CELLS).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=y)
    lazy = dd.from_pandas(frame, npartitions=5)
    unknown = lazy[list("abc")].to_dask_array(), lazy["label"].to_dask_array()
    same(here, MarginClassifier(**CELLS).fit(*unknown))
    there = MarginClassifier(**CELLS).fit(lazy[list("abc")], lazy["label"])
    assert there.feature_names_in_.tolist() == list("abc")
    assert_array_equal(there.dual_coef_, here.dual_coef_)
    few = lazy[lazy["a"] > lazy["a"].min().compute() - 1.0]
    bare = dd.concat([few, few[few["a"] > 1e9]])
    again = MarginClassifier(**CELLS).fit(bare[list("abc")], bare["label"])
    assert_array_equal(again.dual_coef_, here.dual_coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_types_of_numbers_are_the_same(dtype):
    X, y = classes()
    same(*fitted_twice((X * 1000).astype(dtype), y, gamma=1e-6))


def test_rows_of_zeros_stay_sparse():
    X, y = classes()
    X[:, 1:] = np.where(np.abs(X[:, 1:]) < 0.7, 0.0, X[:, 1:])
    here = MarginClassifier(**CELLS).fit(sparse.csr_matrix(X), y)
    lazy = da.from_array(X, chunks=(CHUNK, -1)).map_blocks(sparse.csr_matrix)
    there = MarginClassifier(**CELLS).fit(lazy, y)
    assert sparse.issparse(there.support_vectors_)
    assert_array_equal(there.support_vectors_.toarray(), here.support_vectors_.toarray())
    assert_array_equal(there.dual_coef_, here.dual_coef_)


def test_the_blend_and_lazy_answers_are_those_of_the_array():
    X, y = classes()
    here, there = fitted_twice(X, y, blend=0.5)
    lazy = there.decision_function(cut(X)[0])
    assert_allclose(lazy.compute(), here.decision_function(X), rtol=1e-12, atol=1e-12)


def test_a_model_of_cells_predicts_without_dask():
    X, y = classes()
    _, model = fitted_twice(X, y)
    program = (
        "import pickle, sys; model, X, expected = pickle.load(sys.stdin.buffer);"
        "assert (model.predict(X) == expected).all(); assert 'dask' not in sys.modules"
    )
    given = pickle.dumps((model, X, model.predict(X)))
    subprocess.run([sys.executable, "-c", program], input=given, check=True)


# What is chosen.


def sized(exact=100, **trial):
    """Return a classifier for which some hundred rows are many."""

    class Sized(MarginClassifier):
        def options(self, resources):
            found = super().options(resources)
            sizes = ExactSizes(always=exact, most=exact, most_if_better=exact)
            return replace(found, exact_sizes=sizes, trial=TrialSizes(**trial))

    return Sized


TRIAL = {"least_rows": 500, "learn": 300, "judge": 500, "cell": 30, "vectors": 10}
TRIAL |= {"cells": (40, 100)}


def board(n=1600):
    X = np.random.default_rng(0).uniform(size=(n, 2))
    return X, (np.floor(6 * X).sum(axis=1) % 2).astype(int)


@pytest.mark.parametrize(("data", "gamma"), [(board, 60.0), (classes, 0.1)])
def test_the_engine_is_the_one_that_is_chosen_in_memory(data, gamma):
    X, y = data()
    kind = sized(**TRIAL)
    here = kind(gamma=gamma, random_state=0).fit(X, y)
    there = kind(gamma=gamma, random_state=0).fit(*cut(X, y))
    assert here.engine_ == there.engine_ == ("cells" if data is board else "span")
    reason = there.certificate_.stopped.partition("(engine:")[2]
    assert reason and reason == here.certificate_.stopped.partition("(engine:")[2]
    assert_array_equal(here.support_, there.support_)
    if data is board:
        same(here, there)


def test_the_size_of_cells_is_the_one_that_is_chosen_in_memory():
    X, y = classes(2000)
    kind = sized(**TRIAL)
    parameters = CELLS | {"cells": "auto"}
    same(kind(**parameters).fit(X, y), kind(**parameters).fit(*cut(X, y)))


def test_few_rows_are_fitted_here():
    X, y = classes()
    here = MarginClassifier(gamma=1.0).fit(X, y)
    there = MarginClassifier(gamma=1.0).fit(*cut(X, y))
    assert there.engine_ == "exact"
    assert_array_equal(there.support_, here.support_)
    assert_array_equal(there.dual_coef_, here.dual_coef_)
    asked = MarginClassifier(gamma=1.0, engine="exact").fit(*cut(X, y))
    assert_array_equal(asked.support_, here.support_)


# Limits, and what goes wrong.


def test_the_time_limit_leaves_constants_in_the_cells_that_were_not_reached():
    X, y = classes(4000)
    with pytest.warns(ConvergenceWarning, match=r"max_time.*relative gap"):
        model = MarginClassifier(**CELLS | {"max_time": 1e-3}).fit(*cut(X, y))
    assert model.certificate_.scope == "cells"
    assert 0.0 < model.certificate_.gap <= 1.0
    assert model.intercept_.any(axis=1).all()
    # Better than one constant for all rows.
    assert model.score(X, y) > 0.55


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_the_cells_that_were_done(n_jobs, monkeypatch):
    X, y = classes()
    whole = MarginClassifier(**CELLS).fit(*cut(X, y))
    monkeypatch.setattr(cell_buckets, "_CELLS_AT_A_TIME", 5)
    fitted, exact = [], cell_engine.exact_machines

    def interrupted(*arguments):
        fitted.append(None)
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return exact(*arguments)

    monkeypatch.setattr(cell_engine, "exact_machines", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MarginClassifier(**CELLS | {"n_jobs": n_jobs}).fit(*cut(X, y))
    done = np.diff(model.cell_offsets_) > 0
    assert 5 <= done.sum() < len(done) - 5
    assert_array_equal(model.intercept_[done], whole.intercept_[done])
    assert 0.6 < model.score(X, y) < whole.score(X, y)


def test_a_line_a_step_is_printed(capsys, monkeypatch):
    X, y = classes()
    monkeypatch.setattr(cell_buckets, "_CELLS_AT_A_TIME", 5)
    model = MarginClassifier(**CELLS | {"verbose": 1}).fit(*cut(X, y))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ > 3
    assert "1,200 rows" in lines[-1] and "(cells)" in lines[-1]


def test_a_bad_value_in_a_late_partition_is_named_and_nothing_is_half_fitted():
    X, y = classes()
    model = MarginClassifier(**CELLS)
    X[1100, 2] = np.nan
    with pytest.raises(ValueError, match=r"partition 6 of X.*NaN"):
        model.fit(*cut(X, y))
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "classes_")


def test_a_cell_that_does_not_fit_into_memory_is_an_error():
    X, y = classes()
    model = MarginClassifier(**CELLS | {"cells": X[:2], "memory": 10_000})
    with pytest.raises(ValueError, match=r"A cell has .* more than memory=10,000; give smaller"):
        model.fit(*cut(X, y))


def test_rows_are_loaded_one_partition_at_a_time(monkeypatch):
    import widemargin.places.sources as module

    X, y = classes()
    seen = []

    def counted(first, n_features, parts):
        seen.append(sum(len(part[1]) for part in parts))
        return load(first, n_features, parts)

    monkeypatch.setattr(module, "load", counted)
    MarginClassifier(**CELLS).fit(*cut(X, y))
    assert max(seen) == CHUNK
    # Facts, keys, sample, cells and rows.
    assert sum(seen) == 5 * len(X)


# The parts.


def test_depths_let_enough_rows_in_and_few_more():
    rng = np.random.default_rng(0)
    n_cells, n_shards = 30, 5
    shards = [
        (rng.integers(0, n_cells, size=n), rng.exponential(size=n))
        for n in rng.integers(0, 900, size=n_shards)
    ]
    from widemargin.places.cell_shard import _depths

    counts = []
    for second, depth in shards:
        outside, depths = _depths(second.astype(np.int32), depth, n_cells)
        assert depths.shape == (n_cells, N_DEPTHS)
        counts.append(Census(outside, outside, depths, np.zeros((n_cells, 1))))
    outside = sum(each.outside for each in counts)
    wanted = np.minimum(rng.integers(0, 60, size=n_cells), outside)
    found = depths_for(counts, wanted)
    let_in = sum(
        np.bincount(second[depth <= found[second]], minlength=n_cells) for second, depth in shards
    )
    assert (let_in >= wanted).all()
    assert (let_in[wanted > 0] <= (wanted + outside / N_DEPTHS + n_shards)[wanted > 0]).all()
    assert (let_in[wanted == 0] == 0).all()
