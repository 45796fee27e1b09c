"""What is done to rows before the functions of a model see them, in operators of ONNX."""

from __future__ import annotations

import numpy as np

from widemargin.base.unlabelled import ColumnScale
from widemargin.export.blueprint import FARTHEST, Blueprint
from widemargin.export.onnx_graph import GraphWriter
from widemargin.rows import RowMap


def prepared_rows(graph: GraphWriter, blueprint: Blueprint, X: str) -> str:
    """Return the name of the rows as the functions of a model see them."""
    if blueprint.scale is not None:
        X = _scaled(graph, blueprint.scale, X)
    return X if blueprint.row_map is None else _mapped(graph, blueprint.row_map, X)


def _within(graph: GraphWriter, values: str, bound: float) -> str:
    """Return the values, none farther from zero than a bound."""
    return graph.add("Min", graph.at_least(values, -bound), graph.numbers(bound))


def _scaled(graph: GraphWriter, scale: ColumnScale, X: str) -> str:
    scaled = graph.over(graph.minus(X, graph.numbers(scale.center)), graph.numbers(scale.spread))
    return _within(graph, scaled, scale.most) if np.isfinite(scale.most) else scaled


def _mapped(graph: GraphWriter, row_map: RowMap, X: str) -> str:
    """Return bent((x − center) ∘ factor) A, as `RowMap` does."""
    about = graph.minus(X, graph.numbers(row_map.center))
    mapped = graph.times(about, graph.numbers(row_map.factor))
    if np.isfinite(row_map.bend):
        mapped = _within(graph, mapped, FARTHEST * row_map.bend)
        part = graph.over(mapped, graph.numbers(row_map.bend))
        square = graph.plus(graph.times(part, part), graph.numbers(1.0))
        mapped = graph.over(mapped, graph.add("Sqrt", square))
    if row_map.matrix is None:
        return mapped
    matrix = graph.numbers(row_map.matrix)
    return (
        graph.times(mapped, matrix) if row_map.matrix.ndim == 1 else graph.product(mapped, matrix)
    )
