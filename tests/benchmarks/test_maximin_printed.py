"""The Maxi-Min paper's tables and figures as it seems to have made them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from benchmarks import maximin
from benchmarks.harness import child, datasets
from benchmarks.maximin import (
    encodings,
    hypotheses,
    kernels,
    online,
    printed,
    significance,
    similar,
)
from benchmarks.maximin import papers as paper
from tests.benchmarks.test_maximin import knn, maximin_record


def spec_of(method, d=2, **fields):
    """What a child process gets for a method on the generated set."""
    one = printed.measured(method, "generated", d, printed.TABLE_1, **fields)
    return json.loads(json.dumps(dataclasses.asdict(one) | {"threads": 1}))


def test_columns_are_moved_to_one_range_by_the_training_rows():
    train, test = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[5.0, 6.0]])
    moved = maximin.data.in_one_scale("wine, in [0, 1]", train, test)
    np.testing.assert_array_equal(moved[0], [[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(moved[1], [[2.0, 1.0]])
    assert maximin.data.loaded_as("wine, square roots, in [0, 1]") == "wine"
    assert maximin.data.origin_of("balance, two classes") == "balance"


def test_encodings_are_what_they_are_called(folder):
    X = np.array([[1.0, 2.0, 2.0, 1.0], [3.0, 2.0, 1.0, 1.0], [1.0, 1.0, 5.0, 5.0]])
    y = np.array([1, 0, 2])
    np.savez(folder / "balance_scale.npz", X=np.repeat(X, 60, 0)[11:], y=np.repeat(y, 60)[11:])
    data = maximin.data.set_of("balance, two classes", None)
    assert set(data.y_train) == {0, 2} and len(data.y_test) == 0
    np.testing.assert_array_equal(encodings.products(X, y)[0][:, 4:], [[2, 2], [6, 1], [1, 25]])
    assert encodings.column_each(X, y)[0].sum(axis=1).tolist() == [4.0, 4.0, 4.0]
    np.testing.assert_allclose(np.exp(encodings.logarithms(X, y)[0]), X)
    np.testing.assert_allclose(encodings.square_roots(X, y)[0] ** 2, X)


@pytest.mark.parametrize("method", printed.AS_PRINTED, ids=printed.LABELS)
def test_every_method_of_the_paper_runs_as_printed(method):
    data = datasets.load("generated", 90)
    found = maximin.fit.measure(spec_of(method, folds=2, rounds=2), data, lambda _: None)
    assert np.shape(found["fold_accuracies"]) == (2, 2)
    means = np.mean(found["fold_accuracies"])
    assert maximin.methods.best_neighbours(found) == pytest.approx(means, abs=1e-3)
    assert ("lam" in found["own"]) == method.label.startswith(paper.ONLINE)


def test_rows_seen_are_known_by_their_nearest_neighbour():
    data = datasets.load("generated", 90)
    spec = spec_of(printed.AS_PRINTED[0], folds=3, seen=True)
    found = maximin.fit.measure(spec, data, lambda _: None)
    assert found["scores"]["knn"][1] == 100.0


def test_directions_of_unit_length_are_that():
    data = datasets.load("generated", 90)
    lda = next(each for each in printed.AS_PRINTED if each.label == paper.LDA)
    spec = spec_of(lda)
    estimator = maximin.fit.made(spec, data.X_train).fit(data.X_train, data.y_train)
    moved = data.X_train + 3.0 * np.eye(data.X_train.shape[1])[0]
    there = [maximin.fit.in_projection(spec, estimator, X) for X in (data.X_train, moved)]
    # A step of three along a column moves a projection by at most three.
    assert np.abs(there[1] - there[0]).max() <= 3.0
    plain = maximin.fit.in_projection(spec | {"unit_length": False}, estimator, data.X_train)
    ratio = there[0] / plain
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape))


def test_online_updates_are_those_of_the_paper():
    means = np.random.default_rng(0).standard_normal((4, 3))
    lam, rng, Q = 0.5, np.random.default_rng(7), np.zeros((3, 3))
    first = rng.integers(4, size=50)
    second = (first + rng.integers(1, 4, size=50)) % 4
    for t, apart in enumerate(means[first] - means[second], 1):
        violated = apart @ Q @ apart < 1.0
        Q = (1.0 - 1.0 / t) * Q + violated * np.outer(apart, apart) / (lam * t)
    np.testing.assert_allclose(online.after_updates(means, lam, 50, 7), Q)


def test_whitening_makes_the_covariance_within_classes_the_identity():
    data = datasets.load("generated", 90)
    X, y = data.X_train, data.y_train
    found = online.whitened(X, y, None)
    Z = (X - found.center) @ found.map
    away = Z - np.array([Z[y == label].mean(axis=0) for label in y])
    np.testing.assert_allclose(away.T @ away / len(Z), np.eye(Z.shape[1]), atol=1e-8)
    assert online.whitened(X, y, "auto").map.shape == found.map.shape


def test_a_paired_test_is_scipys_where_rounds_share_nothing():
    from scipy import stats

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(10) + 0.4, rng.standard_normal(10)
    assert significance.paired(a, b, 0.0)[1] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert significance.paired(a, b, 1 / 9)[1] > significance.paired(a, b, 0.0)[1]
    assert significance.paired(a, a, 0.0) == (0.0, 1.0)


def test_tables_as_printed_have_the_papers_figures_beside_ours():
    records = [
        maximin_record(
            printed.TABLE_1,
            label,
            name,
            maximin.tables.dimensions_of(name.removesuffix(maximin.data.IN_ONE_RANGE)),
            scores=knn(90.0 + (label == paper.MMDA)),
            fold_accuracies=[[90.0, 91.0 + (label == paper.MMDA)], [90.0, 91.0]],
            own={"lam": 10.0},
        )
        for label in printed.LABELS
        for name in printed.SETS
    ]
    table = printed.table_1(records)[0]
    assert table.rows[0] == [
        "MMDA",
        *(
            f"91.0 ({value})"
            for value in ("96.6 ± 1.6", "96.4 ± 1.5", "98.3 ± 0.6", "87.1", "96.0")
        ),
    ]
    assert "wine, d = 2: 10" in table.notes[-1]
    rows = significance.table(records).rows
    assert len(rows) == 18 and rows[0][:3] == ["tae", paper.ONLINE, "0.25"]
    assert significance.table(records[:1]).rows[0][2] == "–"
    usps = [
        maximin_record(printed.TABLE_2, label, printed.USPS, d, scores=knn(80.0))
        for label in printed.LABELS
        for d in (3, 4)
    ]
    assert printed.table_2(usps)[0].rows[1] == ["MMDAOnline", "80.0 (83.6)", "80.0 (73.5)"]


def test_guesses_about_three_sets_are_told_beside_the_paper():
    records = [
        maximin_record(
            hypotheses.PART, each.label, each.set_name, each.point["d"], scores=knn(70.0)
        )
        for each in hypotheses.plan(False)
    ]
    rows = hypotheses.table(records).rows
    assert len(rows) == len(hypotheses.SETS) and rows[0][1] == "70.0 (96.6 ± 1.6)"
    assert {each.point["d"] for each in hypotheses.plan(False)} == {1, 2}


def test_a_kernel_and_the_number_of_dimensions_are_measured():
    records = []
    for one in kernels.plan(True):
        spec = json.loads(json.dumps(dataclasses.asdict(one) | {"threads": 1, "folds": 0}))
        data = datasets.load("generated", 90)
        found = maximin.fit.measure(spec | {"set_name": "generated"}, data, lambda _: None)
        records.append(spec | {"status": "ok", "message": ""} | child.plain(found))
    rows = kernels.table(records).rows
    assert [row[1] for row in rows] == list(kernels.FORMS)
    assert rows[0][2] == "2" and rows[2][2] in {"1", "2"}


def test_similar_classes_are_those_with_near_means():
    means = np.array([[0.0], [9.0], [0.1], [20.0], [0.3], [0.6], [1.0], [5.0]])
    assert sorted(similar.chosen(means)[:5]) == [0, 2, 4, 5, 6]
    assert similar.chosen(means)[5] == 3


def test_gradients_know_directions():
    ramp = np.broadcast_to(np.arange(35.0), (35, 35))
    found = similar.gradients(np.stack([ramp, ramp.T])).reshape(2, 8, 8, 8)
    assert found.shape[1] * found.shape[2] * found.shape[3] == 512
    total = found.sum(axis=(2, 3))
    # Brighter to the right is the first direction, brighter downwards the third.
    assert total[0].argmax() == 0 and total[1].argmax() == 2


def test_pictures_of_similar_classes_are_drawn_from_records(folder, tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, (90, 1, 35 * 35)) ^ (rng.random((90, 20, 35 * 35)) < 0.1)
    np.savez(
        folder / "omniglot_small_242.npz", X=images.reshape(-1, 1225), y=np.repeat(range(90), 20)
    )
    records = []
    for one in similar.plan(False)[:3]:
        spec = json.loads(json.dumps(dataclasses.asdict(one) | {"threads": 1}))
        task = similar.show if one.label == similar.DRAWINGS else similar.measure
        found = child.plain(task(spec, None, lambda _: None))
        json.dumps(found, allow_nan=False)
        records.append(spec | {"status": "ok", "message": ""} | found)
    assert [row[0] for row in similar.table(records).rows] == ["PCA", "LDA"]
    for number in (3, 4, 6):
        path = tmp_path / f"figure{number}.png"
        assert getattr(similar, f"figure_{number}")(records, path).stat().st_size > 1000
        assert getattr(similar, f"figure_{number}")([], path) is None


def test_figure_one_shows_both_axes(tmp_path):
    pytest.importorskip("matplotlib")
    records = [
        maximin_record("figure2", label, case, direction=[1.0, 0.0], rows=30)
        for case in maximin.data.FIGURE_2
        for label in ("LDA", "exact, refine")
    ]
    path = tmp_path / "figure1.png"
    assert maximin.figure2.figure_1(records, path).stat().st_size > 1000
    assert maximin.figure2.figure_1(records[:1], path) is None


def test_no_reduction_is_a_line_of_its_own(tmp_path):
    name = maximin.omniglot.SETS[0]
    places = [("LDA", 10), ("LDA", 20), (maximin.omniglot.NONE, maximin.omniglot.FEATURES[name])]
    records = [maximin_record("omniglot", label, name, d, scores=knn(30.0)) for label, d in places]
    table = maximin.omniglot.tables(records)[0]
    assert list(table.header[2:]) == ["d = 20", "d = 10"]
    assert ["nearest class mean", "no reduction", "30.0", "30.0"] in table.rows
    pytest.importorskip("matplotlib")
    assert maximin.omniglot.figure(records, tmp_path / "7.png").stat().st_size > 1000


def test_cells_that_each_protocol_meets_are_counted():
    from benchmarks.maximin import counts

    assert "by protocol: raw columns, our own lengths and graph, rows held out: 0;" in counts.told(
        []
    )
    lone = [
        maximin_record(printed.TABLE_1, paper.LDA, "wine, in [0, 1]", 2, scores=knn(92.4)),
        maximin_record(printed.TABLE_1, paper.PCA, "wine, in [0, 1]", 2, scores=knn(77.3)),
        maximin_record(hypotheses.PART, paper.PCA, hypotheses.TEACHING, 2, scores=knn(96.4)),
        maximin_record(printed.TABLE_2, paper.PCA, printed.USPS, 3, scores=knn(61.6)),
    ]
    # LDA is half a point below the paper, PCA more.
    told = counts.told(lone)
    assert told.startswith("Of 77 cells")
    assert "the protocol below, rows held out: 2;" in told and "(which counts): 3;" in told
