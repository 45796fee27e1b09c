"""Models that travel: the plan, the task and the tables."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.harness import datasets
from benchmarks.travel import plan
from benchmarks.travel.compiled import GCC
from benchmarks.travel.tables import tables
from benchmarks.travel.task import measure, rows_of
from tests.benchmarks.trial import as_read


def spec_of(label, rows=plan.IRIS):
    found = [each for each in plan.measurements(quick=False) if each.label == label]
    return dataclasses.asdict(next(each for each in found if each.rows_of == rows)) | {"threads": 1}


def test_every_model_of_the_plan_is_of_this_library_and_of_known_rows():
    planned = plan.measurements(quick=False)
    assert {each.part for each in planned} == set(plan.PARTS)
    assert all(each.estimator.startswith("widemargin.") for each in planned)
    known = {plan.DIGITS, plan.IRIS, plan.DIABETES, plan.WAVES}
    assert {each.rows_of for each in planned} == known
    for name in known:
        X, y = rows_of(name)
        assert len(X) == len(y)
        assert X.dtype == "float32"


@pytest.mark.skipif(GCC is None, reason="no gcc")
@pytest.mark.parametrize(
    "label", ["SparseMarginClassifier, 6", f"SparseMarginClassifier, 6{plan.FIXED}"]
)
def test_c_source_is_small_and_says_what_the_model_says(label):
    spec = spec_of(label)
    kept = []
    found = measure(spec, datasets.load("generated"), kept.append)
    assert "answers" not in kept[0]
    assert found["code_bytes"] < 2048
    assert found["ram_bytes"] == 0
    assert found["difference"] < (1e-5 if plan.FIXED not in label else 0.02)
    done = spec | {"status": "ok", "message": ""} | as_read(found)
    (table,) = tables([done])
    assert len(table.rows[0]) == len(table.header)


def test_a_graph_says_what_the_model_says():
    pytest.importorskip("onnxruntime")
    spec = spec_of("MarginRegressor", plan.DIABETES)
    found = measure(spec, datasets.load("generated"), lambda found: None)
    assert found["difference"] < 1e-5
    done = spec | {"status": "ok", "message": ""} | as_read(found)
    late = spec | {"status": "timeout", "message": "late"}
    (table,) = tables([done, late])
    assert len(table.rows[0]) == len(table.header) == len(table.rows[1])
