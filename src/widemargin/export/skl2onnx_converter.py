"""Converters for skl2onnx, so that a pipeline with one of our estimators becomes one ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.base import BaseEstimator

from widemargin import discriminant, outliers, regression, sparse, svm
from widemargin.base.span_map import SpanMap
from widemargin.export.blueprint import blueprint_of
from widemargin.export.onnx_graph import GraphWriter
from widemargin.export.onnx_model import OPSET, described_outputs, written

_KINDS = {
    TensorProto.FLOAT: FloatTensorType,
    TensorProto.DOUBLE: DoubleTensorType,
    TensorProto.INT64: Int64TensorType,
    TensorProto.STRING: StringTensorType,
    TensorProto.BOOL: BooleanTensorType,
}


def register() -> None:
    """Register a converter for every estimator."""
    rooms = (discriminant, outliers, regression, sparse, svm)
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    for kind in (SpanMap, *public):
        if isinstance(kind, type) and issubclass(kind, BaseEstimator):
            update_registered_converter(
                kind, f"Widemargin{kind.__name__}", _shapes, _convert, parser=_parse
            )


def _dtype_of(operator: Any) -> Any:
    """Return the type of an operator's rows: float64 stays, all others are float32."""
    wide = isinstance(operator.inputs[0].type, DoubleTensorType)
    return np.dtype(np.float64 if wide else np.float32)


def _parse(scope: Any, model: Any, inputs: Any, **others: Any) -> Any:
    """Declare an operator with the outputs of a model."""
    operator = scope.declare_local_operator(f"Widemargin{type(model).__name__}", model)
    operator.inputs.extend(inputs)
    for name, kind, shape in described_outputs(blueprint_of(model), _dtype_of(operator)):
        operator.outputs.append(scope.declare_local_variable(name, _KINDS[kind](shape)))
    return operator.outputs


def _shapes(operator: Any) -> None:
    """Say which types and shapes the outputs have."""
    found = described_outputs(blueprint_of(operator.raw_operator), _dtype_of(operator))
    for output, (_, kind, shape) in zip(operator.outputs, found, strict=True):
        output.type = _KINDS[kind](shape)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a model to those of a pipeline."""
    prefix = scope.get_unique_variable_name("widemargin")
    graph = GraphWriter(np.float64, prefix=f"{prefix}_")
    blueprint, dtype = blueprint_of(operator.raw_operator), _dtype_of(operator)
    rows = operator.inputs
    X = rows[0].full_name
    if len(rows) > 1:
        parts = [graph.to(each.full_name, graph.dtype) for each in rows]
        X = graph.add("Concat", *parts, axis=1)
    names = written(graph, blueprint, X, dtype)
    for name, output in zip(names, operator.outputs, strict=True):
        graph.nodes.append(
            helper.make_node("Identity", [name], [output.full_name], name=graph.name("node"))
        )
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets.add(("", OPSET))
