"""Which models are sent where, and what they were fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.harness.datasets import NOTHING
from benchmarks.harness.runner import Measurement, Part

TASK = "benchmarks.travel.task.measure"
ONNX, C = "onnx", "c"
PARTS = (ONNX, C)
DIGITS, IRIS, DIABETES, WAVES = "digits", "iris", "diabetes", "waves"
FIXED = ", fixed point"
SHARED = {"share_vectors": True, "loss": "squared_hinge"}


@dataclass(frozen=True)
class Travel(Part):
    """A model, the rows that it is fitted to, and how it is exported."""

    rows_of: str = DIGITS
    options: dict[str, Any] | None = None


def _model(
    part: str, label: str, estimator: str, rows: str, params: dict[str, Any], **options: Any
) -> Travel:
    params = params | {"random_state": 0}
    needed = "onnxruntime" if part == ONNX else None
    return Travel(
        *(label, NOTHING, f"widemargin.{estimator}", params),
        task=TASK,
        part=part,
        requires=needed,
        rows_of=rows,
        options=options,
    )


def measurements(quick: bool) -> list[Measurement]:
    """All models; the quick ones are those of few rows."""
    span = {"engine": "span", "max_vectors": 500}
    name = "SparseMarginClassifier"
    six = f"{name}, 6", name, IRIS, {"n_vectors": 6} | SHARED
    thirty = f"{name}, 30", name, DIGITS, {"n_vectors": 30} | SHARED
    found: list[Travel] = [
        _model(ONNX, "MarginClassifier, exact", "MarginClassifier", DIGITS, {"engine": "exact"}),
        _model(ONNX, "MarginClassifier, span", "MarginClassifier", WAVES, span),
        _model(
            *(ONNX, "MarginClassifier, span, float32", "MarginClassifier", WAVES, span),
            precision="float32",
        ),
        _model(ONNX, "MarginClassifier, cells", "MarginClassifier", WAVES, {"engine": "cells"}),
        _model(ONNX, "MarginRegressor", "MarginRegressor", DIABETES, {}),
        _model(ONNX, "MarginOneClass", "MarginOneClass", DIGITS, {}),
        _model(ONNX, "MaxMarginDA, rbf", "MaxMarginDA", DIGITS, {"kernel": "rbf"}),
        _model(ONNX, "SpanMap", "SpanMap", DIGITS, {"n_vectors": 100}),
        _model(C, *six),
        _model(C, six[0] + FIXED, *six[1:], fixed_point=True),
        _model(C, *thirty),
        _model(C, thirty[0] + FIXED, *thirty[1:], fixed_point=True),
        _model(C, "SparseMarginRegressor, 8", "SparseMarginRegressor", DIABETES, {"n_vectors": 8}),
        _model(C, "SparseOneClass, 10", "SparseOneClass", DIGITS, {"n_vectors": 10}),
    ]
    return [each for each in found if not quick or each.rows_of == IRIS]
