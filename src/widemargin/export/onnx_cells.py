"""The decision function of cells in operators of ONNX.

A row's nearest centres are the smallest of its distances (where centres are in groups, of those of
the groups that it looks at), and their weights those of `widemargin.cells.cell_decision`. Then a
loop over rows cuts the vectors of each of its cells out of all vectors, so that a row costs what
its own cells cost, not what all do.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from widemargin.cells.cell_decision import CellMachines
from widemargin.cells.nearest_centers import PROBED
from widemargin.export.onnx_graph import GraphWriter
from widemargin.export.onnx_kernels import centre_of, kernel_values, squared_distances
from widemargin.kernels import Kernel


def values_in_cells(graph: GraphWriter, machines: CellMachines, X: str) -> str:
    """Return the name of the values of all functions at rows."""
    cell, weight, count = _nearest(graph, machines, X)
    several = isinstance(machines.kernel, list)
    kernels = machines.kernel if isinstance(machines.kernel, list) else [machines.kernel]
    # One graph for all cells: kernels differ in their width, if at all.
    kernel = kernels[0]
    centre = centre_of(kernel, machines.vectors)
    vectors = machines.vectors
    if centre is not None:
        vectors, X = vectors - centre, graph.minus(X, graph.numbers(centre))
    tables = _Tables(graph, machines, graph.numbers(vectors), kernels if several else None)
    body = graph.body()
    x, own, share = body.name("x"), body.name("own"), body.name("share")
    row = body.add("Unsqueeze", x, body.whole([0]))
    total = ""
    for place in range(count):
        part = tables.answer(body, kernel, row, own, share, place)
        total = part if not total else body.plus(total, part)
    total = body.add("Squeeze", total, body.whole([0]))
    inputs = [
        helper.make_tensor_value_info(x, graph.element, [None]),
        helper.make_tensor_value_info(own, TensorProto.INT64, [None]),
        helper.make_tensor_value_info(share, graph.element, [None]),
    ]
    outputs = [helper.make_tensor_value_info(total, graph.element, [None])]
    inner = helper.make_graph(body.nodes, graph.name("rows"), inputs, outputs)
    return graph.add("Scan", X, cell, weight, body=inner, num_scan_inputs=3)


class _Tables:
    """Constants of all cells, and the answer of one that is found at run time."""

    def __init__(
        self, graph: GraphWriter, machines: CellMachines, vectors: str, kernels: list[Kernel] | None
    ) -> None:
        self.vectors = vectors
        self.coef = graph.numbers(machines.coef)
        self.offsets = graph.whole(machines.offsets)
        self.intercept = graph.numbers(machines.intercept)
        widths = None if kernels is None else [getattr(each, "gamma", 1.0) for each in kernels]
        self.gamma = None if widths is None else graph.numbers(widths)

    def answer(
        self, body: GraphWriter, kernel: Kernel, row: str, own: str, share: str, place: int
    ) -> str:
        """Return the weighted values of the cell at a place among a row's nearest."""
        at = body.whole([place])
        cell, weight = body.add("Gather", own, at), body.add("Gather", share, at)
        after = body.plus(cell, body.whole([1]))
        begin, end = body.add("Gather", self.offsets, cell), body.add("Gather", self.offsets, after)
        vectors, coef = (
            body.add("Slice", table, begin, end, body.whole([0]))
            for table in (self.vectors, self.coef)
        )
        gamma = None if self.gamma is None else body.add("Gather", self.gamma, cell)
        values = body.product(kernel_values(body, kernel, row, vectors, gamma), coef)
        return body.times(body.plus(values, body.add("Gather", self.intercept, cell)), weight)


def _nearest(graph: GraphWriter, machines: CellMachines, X: str) -> tuple[str, str, int]:
    """Return the cells that answer each row, their weights, and how many there are."""
    partition = machines.partition
    origin = graph.numbers(partition.centers.mean(axis=0))
    about = graph.minus(X, origin)
    squares = squared_distances(graph, about, graph.minus(graph.numbers(partition.centers), origin))
    if partition.groups is not None:
        squares = _among_groups(graph, machines, about, origin, squares)
    looked = min(3 if machines.blend > 0 else 1, partition.n_cells)
    nearest, cell = graph.several(
        "TopK", squares, graph.whole([looked]), outputs=2, axis=1, largest=0, sorted=1
    )
    distance = graph.add("Sqrt", nearest)
    if looked == 1:
        # Of no distance, but of as many rows.
        ones = graph.plus(graph.times(distance, graph.numbers(0.0)), graph.numbers(1.0))
        return cell, ones, 1
    return cell, _weights(graph, distance, machines.blend, looked), 2


def _among_groups(
    graph: GraphWriter, machines: CellMachines, about: str, origin: str, squares: str
) -> str:
    """Return squared distances, infinite from centres of groups that a row does not look at."""
    groups = machines.partition.groups
    assert groups is not None
    middles = graph.minus(graph.numbers(groups.middles), origin)
    n_groups = len(groups.middles)
    _, chosen = graph.several(
        "TopK",
        squared_distances(graph, about, middles),
        graph.whole([min(PROBED, n_groups)]),
        outputs=2,
        axis=1,
        largest=0,
        sorted=1,
    )
    # A row of zeros and ones for each chosen group, added up.
    hot = graph.add("OneHot", chosen, graph.whole([n_groups]), graph.whole([0, 1]), axis=-1)
    looked = graph.add("ReduceSum", hot, graph.whole([1]), keepdims=0)
    own = graph.whole(np.repeat(np.arange(n_groups), np.diff(groups.offsets)))
    seen = graph.add("Greater", graph.add("Gather", looked, own, axis=1), graph.whole(0))
    return graph.add("Where", seen, squares, graph.numbers(np.inf))


def _weights(graph: GraphWriter, distance: str, blend: float, looked: int) -> str:
    """Return the weights of the two nearest cells, as `blend_weights` has them."""
    first, second = (graph.add("Gather", distance, graph.whole([i]), axis=1) for i in (0, 1))
    least = float(np.finfo(graph.dtype).tiny)
    reach = graph.times(first, graph.numbers(blend))
    share = graph.at_least(graph.minus(reach, graph.minus(second, first)), 0.0)
    share = graph.over(share, graph.at_least(reach, least))
    if looked > 2:
        third = graph.add("Gather", distance, graph.whole([2]), axis=1)
        rest = graph.over(
            graph.minus(third, second), graph.at_least(graph.minus(third, first), least)
        )
        share = graph.times(share, rest)
    one = graph.numbers(1.0)
    whole = graph.plus(share, one)
    return graph.add("Concat", graph.over(one, whole), graph.over(share, whole), axis=1)
