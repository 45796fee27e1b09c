"""Data frames with categories and missing values in a search."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from widemargin import MarginClassifierCV
from widemargin.base.frame_columns import FrameColumns, is_mixed_frame

pandas = pytest.importorskip("pandas")


def people(n=300, seed=0):
    """Return a frame in which a category and a number decide, and labels."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Lima"], n)
    age = rng.normal(40.0, 10.0, n)
    y = np.where(city == "Rome", age > 45.0, age > 35.0)
    age[rng.random(n) < 0.1] = np.nan
    kind = pandas.Series(city, dtype="category")
    kind[rng.random(n) < 0.05] = None
    return pandas.DataFrame({"age": age, "city": kind, "noise": rng.normal(size=n) * 1e6}), y


def search(**given):
    return MarginClassifierCV(**({"Cs": 3, "cv": 3, "random_state": 0} | given))


def test_categories_and_missing_values_are_learnt():
    frame, y = people(600)
    found = search().fit(frame[:400], y[:400])
    assert found.score(frame[400:], y[400:]) > 0.85
    names = found.preprocess_.get_feature_names_out().tolist()
    assert names == [
        "age", "age missing", "city=Lima", "city=Oslo", "city=Rome", "city missing", "noise",
    ]  # fmt: skip
    assert found.n_features_in_ == 3
    assert list(found.feature_names_in_) == ["age", "city", "noise"]


def test_polars_frames_are_as_those_of_pandas():
    polars = pytest.importorskip("polars")
    frame, y = people()
    plain = frame.assign(city=frame["city"].astype(object))
    other = polars.DataFrame(
        {name: [None if v != v else v for v in plain[name].tolist()] for name in plain}
    )
    one, two = search().fit(frame, y), search().fit(other, y)
    assert np.array_equal(one.decision_function(frame), two.decision_function(other))


def test_columns_may_come_in_another_order_and_new_categories_are_none_of_the_known():
    frame, y = people()
    found = search().fit(frame, y)
    turned = frame[["noise", "city", "age"]]
    assert np.array_equal(found.decision_function(turned), found.decision_function(frame))
    strange = frame.assign(city="Paris")
    assert np.isfinite(found.decision_function(strange)).all()
    with pytest.raises(ValueError, match="lacks the columns"):
        found.predict(frame[["age"]])


def test_frames_of_numbers_alone_are_rows_like_others():
    frame, y = people()
    numbers = frame[["noise"]].assign(other=np.arange(300))
    assert not is_mixed_frame(numbers)
    assert search().fit(numbers, y).preprocess_ is None
    assert is_mixed_frame(frame)


def test_a_row_of_weight_two_is_two_rows():
    frame, _ = people(60)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    one = FrameColumns().fit(frame, sample_weight=weight)
    other = FrameColumns().fit(frame.iloc[np.repeat(np.arange(60), weight)])
    np.testing.assert_allclose(one.transform(frame), other.transform(frame), rtol=1e-12)


def test_the_search_with_its_columns_is_stored_and_loaded():
    frame, y = people()
    found = search(probability=True).fit(frame, y)
    copy = pickle.loads(pickle.dumps(found))
    assert np.array_equal(copy.predict_proba(frame), found.predict_proba(frame))
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(found)
    loaded = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
    assert np.array_equal(loaded.predict_proba(frame), found.predict_proba(frame))


def test_columns_of_dates_are_refused_with_the_remedy():
    frame, y = people(30)
    frame["day"] = pandas.Timestamp("2020-01-01")
    with pytest.raises(ValueError, match="'day'"):
        search().fit(frame, y)
