"""A fitted model as an ONNX graph: rows, values of functions, answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from widemargin.cells.cell_decision import CellMachines
from widemargin.expansion import Expansion
from widemargin.export.blueprint import (
    Blueprint,
    Classes,
    Inside,
    InsideBall,
    Numbers,
    blueprint_of,
)
from widemargin.export.onnx_cells import values_in_cells
from widemargin.export.onnx_graph import GraphWriter, computed
from widemargin.export.onnx_kernels import (
    centre_of,
    check_exportable,
    diagonal,
    kernel_values,
)
from widemargin.export.onnx_rows import prepared_rows
from widemargin.problem import one_vs_one

# Of 2022; readers of today and of some years back know it.
OPSET = 17
_IR_VERSION = 8


def model_proto(model: Any, *, dtype: str, precision: str) -> onnx.ModelProto:
    """Return a fitted model as an ONNX model."""
    blueprint, given = blueprint_of(model), computed(dtype)
    graph = GraphWriter(computed(precision))
    names = written(graph, blueprint, "X", given)
    outputs = described_outputs(blueprint, given)
    for name, (told, _, _) in zip(names, outputs, strict=True):
        graph.nodes.append(helper.make_node("Identity", [name], [told], name=graph.name("node")))
    element = int(helper.np_dtype_to_tensor_dtype(given))
    rows = helper.make_tensor_value_info("X", element, [None, blueprint.n_features])
    described = helper.make_graph(
        graph.nodes,
        blueprint.name,
        [rows],
        [helper.make_tensor_value_info(*each) for each in outputs],
        graph.constants,
        doc_string=f"{blueprint.name} of widemargin",
    )
    made = helper.make_model(
        described,
        producer_name="widemargin",
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(made)
    return made


def described_outputs(
    blueprint: Blueprint, dtype: np.dtype[Any]
) -> list[tuple[str, int, list[Any]]]:
    """Return the name, the type and the shape of each output.

    Parameters
    ----------
    blueprint : Blueprint
        The model.
    dtype : dtype
        The type of numbers that go out.
    """
    number, answer = int(helper.np_dtype_to_tensor_dtype(dtype)), blueprint.answer
    columns = int(blueprint.machine.coef.shape[1])
    if isinstance(answer, Numbers):
        return [(answer.name, number, [None] if answer.flat else [None, columns])]
    kind = int(TensorProto.INT64)
    shape: list[Any] = [None]
    if isinstance(answer, Classes):
        kind, n_classes = _label_type(answer.classes), len(answer.classes)
        pairs = n_classes * (n_classes - 1) // 2
        if n_classes > 2:
            shape = [None, n_classes if answer.shape == "ovr" else pairs]
    return [("label", kind, [None]), ("scores", number, shape)]


def written(graph: GraphWriter, blueprint: Blueprint, X: str, dtype: np.dtype[Any]) -> list[str]:
    """Write a model's nodes.

    Parameters
    ----------
    graph : GraphWriter
        Where they go.
    blueprint : Blueprint
        The model.
    X : str
        The name of the rows.
    dtype : dtype
        The type of numbers that go out.

    Returns
    -------
    list of str
        The names of what `described_outputs` tells of.
    """
    X = prepared_rows(graph, blueprint, graph.to(X, graph.dtype))
    values, answer = _values(graph, blueprint, X), blueprint.answer
    if isinstance(answer, Numbers):
        return [graph.to(_numbers(graph, answer, values), dtype)]
    if isinstance(answer, Classes):
        place, scores = _classes(graph, answer, values)
        label = _labels(graph, answer.classes, place)
    else:
        scores = _inside(graph, answer, blueprint, X, values)
        outside = graph.add("Less", scores, graph.numbers(0.0))
        label = graph.add("Where", outside, graph.whole(-1), graph.whole(1))
    return [label, graph.to(scores, dtype)]


def _values(graph: GraphWriter, blueprint: Blueprint, X: str) -> str:
    """Return the name of the values of all functions at rows."""
    machine = blueprint.machine
    kernels = machine.kernel if isinstance(machine.kernel, list) else [machine.kernel]
    for kernel in kernels:
        check_exportable(kernel)
    if isinstance(machine, CellMachines):
        return values_in_cells(graph, machine, X)
    return _sums(graph, machine, X)


def _sums(graph: GraphWriter, machine: Expansion, X: str) -> str:
    bias = graph.numbers(np.broadcast_to(machine.intercept, machine.coef.shape[1:]))
    vectors = machine.vectors.astype(np.float64)
    if machine.kernel.name == "linear":
        # The functions are planes: one product, however many vectors there are.
        return graph.plus(graph.product(X, graph.numbers(vectors.T @ machine.coef)), bias)
    centre = centre_of(machine.kernel, vectors)
    if centre is not None:
        vectors, X = vectors - centre, graph.minus(X, graph.numbers(centre))
    values = kernel_values(graph, machine.kernel, X, graph.numbers(vectors, "vectors"))
    return graph.plus(graph.product(values, graph.numbers(machine.coef, "coef")), bias)


def _numbers(graph: GraphWriter, answer: Numbers, values: str) -> str:
    if answer.ascending:
        values = _in_order(graph, values)
    if answer.offsets is not None:
        values = graph.plus(values, graph.numbers(answer.offsets))
        values = _in_order(graph, values) if answer.ascending else values
    return graph.first(values) if answer.flat else values


def _in_order(graph: GraphWriter, values: str) -> str:
    """Return the numbers of each row, the smallest first."""
    shape = graph.add("Shape", values)
    count = graph.add("Slice", shape, graph.whole([1]), graph.whole([2]))
    return graph.several("TopK", values, count, outputs=2, axis=1, largest=0, sorted=1)[0]


def _inside(
    graph: GraphWriter, answer: Inside | InsideBall, blueprint: Blueprint, X: str, values: str
) -> str:
    """Return the decision values of a detector."""
    if isinstance(answer, Inside):
        return graph.minus(graph.first(values), graph.numbers(answer.offset))
    if answer.center is not None:
        apart = graph.minus(X, graph.numbers(answer.center))
        square = graph.sums(graph.times(apart, apart))
    else:
        twice = graph.times(values, graph.numbers(2.0))
        length = graph.plus(
            diagonal(graph, blueprint.machine.kernel, X), graph.numbers(answer.norm2)
        )
        square = graph.at_least(graph.minus(length, twice), 0.0)
    return graph.minus(graph.numbers(-answer.offset), graph.first(square))


# Classes.


def _classes(graph: GraphWriter, answer: Classes, values: str) -> tuple[str, str]:
    """Return the names of the winners' places and of the scores."""
    if len(answer.classes) == 2:
        scores = graph.first(values)
        positive = graph.add("Greater", scores, graph.numbers(0.0))
        return graph.to(positive, np.int64), scores
    scores, votes = _scores(graph, answer, values) if answer.pairs else (values, values)
    decisive = scores if answer.margins_break_ties else votes
    place = graph.add("ArgMax", decisive, axis=1, keepdims=0)
    if answer.shape == "ovr":
        return place, scores
    if answer.pairs:
        return place, values
    first, second = np.triu_indices(len(answer.classes), 1)
    left, right = (graph.add("Gather", values, graph.whole(i), axis=1) for i in (first, second))
    return place, graph.minus(left, right)


def _scores(graph: GraphWriter, answer: Classes, values: str) -> tuple[str, str]:
    """Return scores of classes from values of pairs, as `class_scores` does, and their votes."""
    table = one_vs_one(len(answer.classes))
    zero = graph.numbers(0.0)
    first = graph.add("Greater", values, zero)
    second = graph.add("LessOrEqual" if answer.zero_is_second else "Less", values, zero)
    votes = graph.plus(
        graph.product(graph.to(first, graph.dtype), graph.numbers(np.maximum(table, 0.0).T)),
        graph.product(graph.to(second, graph.dtype), graph.numbers(np.maximum(-table, 0.0).T)),
    )
    clearly = graph.product(values, graph.numbers(table.T))
    size = graph.plus(graph.add("Abs", clearly), graph.numbers(1.0))
    part = graph.over(clearly, graph.times(size, graph.numbers(3.0)))
    return graph.plus(votes, part), votes


def _label_type(classes: NDArray[Any]) -> int:
    if classes.dtype.kind in "UO":
        return int(TensorProto.STRING)
    if classes.dtype.kind == "b":
        return int(TensorProto.BOOL)
    return int(TensorProto.INT64 if classes.dtype.kind in "iu" else TensorProto.DOUBLE)


def _labels(graph: GraphWriter, classes: NDArray[Any], place: str) -> str:
    if classes.dtype.kind == "O" and not all(isinstance(each, str) for each in classes):
        raise TypeError(
            f"the classes are {classes.tolist()!r}; labels in ONNX are text, whole numbers, "
            "numbers or booleans."
        )
    kinds = {"i": np.int64, "u": np.int64, "f": np.float64}
    classes = classes.astype(kinds.get(classes.dtype.kind, classes.dtype))
    return graph.add("Gather", graph.constant(classes, "classes"), place)
