"""Kernels in operators of ONNX.

Distances come from one product, ‖x − z‖² = ‖x‖² + ‖z‖² − 2xᵀz, of rows and vectors that were
centred by the caller; those in the 1-norm feature by feature, so that memory is that of the values.
Vectors may be a constant, whose norms a runtime computes once, or a part that a loop has cut out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from widemargin.export.onnx_graph import GraphWriter
from widemargin.kernels import Kernel

Node = Callable[[GraphWriter, Any, str, str, str], str]


def squared_distances(graph: GraphWriter, X: str, Z: str) -> str:
    """Return ‖x_i − z_j‖², never negative."""
    left = graph.sums(graph.times(X, X))
    right = graph.turned(graph.sums(graph.times(Z, Z)))
    product = graph.product(X, graph.turned(Z))
    twice = graph.times(product, graph.numbers(2.0))
    return graph.at_least(graph.minus(graph.plus(left, right), twice), 0.0)


def l1_distances(graph: GraphWriter, X: str, Z: str) -> str:
    """Return ‖x_i − z_j‖₁: a loop over features adds |x_ik − z_jk|."""
    rows, vectors = (_count(graph, each) for each in (X, Z))
    shape = graph.add("Concat", rows, vectors, axis=0)
    zero = helper.make_tensor("zero", graph.element, [1], [0.0])
    start = graph.add("ConstantOfShape", shape, value=zero)
    body = graph.body()
    total, x, z = body.name("total"), body.name("x"), body.name("z")
    one = body.whole([1])
    apart = body.add("Abs", body.minus(body.add("Unsqueeze", x, one), z))
    grown = body.plus(total, apart)
    described = [
        helper.make_tensor_value_info(each, graph.element, shape)
        for each, shape in ((total, [None, None]), (x, [None]), (z, [None]), (grown, [None, None]))
    ]
    inner = helper.make_graph(body.nodes, graph.name("features"), described[:3], described[3:])
    return graph.add("Scan", start, graph.turned(X), graph.turned(Z), body=inner, num_scan_inputs=2)


def _count(graph: GraphWriter, rows: str) -> str:
    """Return the number of rows, as a vector of one."""
    shape = graph.add("Shape", rows)
    return graph.add("Slice", shape, graph.whole([0]), graph.whole([1]))


def _exp_minus(graph: GraphWriter, values: str) -> str:
    return graph.add("Exp", graph.add("Neg", values))


def _one_over_plus_one(graph: GraphWriter, values: str) -> str:
    return graph.over(graph.numbers(1.0), graph.plus(values, graph.numbers(1.0)))


def _scaled_distance(graph: GraphWriter, X: str, Z: str, gamma: str) -> str:
    return graph.add("Sqrt", graph.times(squared_distances(graph, X, Z), gamma))


def _rbf(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    return _exp_minus(graph, graph.times(squared_distances(graph, X, Z), gamma))


def _inverse_squared(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    return _one_over_plus_one(graph, graph.times(squared_distances(graph, X, Z), gamma))


def _inverse(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    return _one_over_plus_one(graph, _scaled_distance(graph, X, Z, gamma))


def _exponential(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    return _exp_minus(graph, _scaled_distance(graph, X, Z, gamma))


def _laplacian(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    return _exp_minus(graph, graph.times(l1_distances(graph, X, Z), gamma))


def _linear(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    return graph.product(X, graph.turned(Z))


def _line(graph: GraphWriter, product: str, gamma: str, coef0: float) -> str:
    return graph.plus(graph.times(product, gamma), graph.numbers(coef0))


def power(graph: GraphWriter, values: str, degree: float) -> str:
    """Return values to a power."""
    return values if degree == 1 else graph.add("Pow", values, graph.numbers(degree))


def _poly(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    product = _linear(graph, kernel, X, Z, gamma)
    return power(graph, _line(graph, product, gamma, kernel.coef0), kernel.degree)


def _sigmoid(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    product = _linear(graph, kernel, X, Z, gamma)
    return graph.add("Tanh", _line(graph, product, gamma, kernel.coef0))


def _normalised(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    coef0 = getattr(kernel, "coef0", 0.0)
    inverse = [_inverse_norms(graph, each, gamma, coef0) for each in (X, Z)]
    product = _line(graph, _linear(graph, kernel, X, Z, gamma), gamma, coef0)
    cosine = graph.times(graph.times(product, inverse[0]), graph.turned(inverse[1]))
    return power(graph, cosine, kernel.degree)


def _inverse_norms(graph: GraphWriter, X: str, gamma: str, coef0: float) -> str:
    """Return 1/√(γ‖x‖² + c) of rows as a column, 0 where the root is."""
    squares = _line(graph, graph.sums(graph.times(X, X)), gamma, coef0)
    zero, one = graph.numbers(0.0), graph.numbers(1.0)
    positive = graph.add("Greater", squares, zero)
    root = graph.add("Sqrt", graph.add("Where", positive, squares, one))
    return graph.add("Where", positive, graph.over(one, root), zero)


def _precomputed(graph: GraphWriter, kernel: Any, X: str, Z: str, gamma: str) -> str:
    columns = graph.to(graph.first(Z), np.int64)
    return graph.add("Gather", X, columns, axis=1)


_NODES: dict[str, Node] = {
    "linear": _linear,
    "poly": _poly,
    "normalized_poly": _normalised,
    "cosine_power": _normalised,
    "rbf": _rbf,
    "laplacian": _laplacian,
    "exponential": _exponential,
    "sigmoid": _sigmoid,
    "inverse_distance": _inverse,
    "inverse_squared_distance": _inverse_squared,
    "precomputed": _precomputed,
}


def check_exportable(kernel: Kernel, known: Any = _NODES, what: str = "operators of ONNX") -> None:
    """Raise if a kernel is not one that has a name here."""
    own = type(kernel).__module__.startswith("widemargin.kernels.")
    if not own or kernel.name not in known:
        given = getattr(kernel, "function", kernel if not own else kernel.name)
        raise TypeError(
            f"kernel={given!r} cannot be said in {what}; use one of "
            f"{', '.join(repr(name) for name in known)}."
        )


def centre_of(kernel: Kernel, vectors: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return what rows and vectors are to be centred by: kernels of the distance do not notice."""
    distances = ("rbf", "exponential", "inverse_distance", "inverse_squared_distance", "laplacian")
    if kernel.name not in distances or not len(vectors):
        return None
    centre: NDArray[np.float64] = vectors.mean(axis=0, dtype=np.float64)
    return centre


def kernel_values(
    graph: GraphWriter, kernel: Kernel, X: str, Z: str, gamma: str | None = None
) -> str:
    """Return the name of the values k(x_i, z_j).

    Parameters
    ----------
    graph : GraphWriter
        Where nodes go.
    kernel : Kernel
        The kernel.
    X, Z : str
        Names of rows and vectors, both centred where `centre_of` says so.
    gamma : str, optional
        Name of a width that is used in place of the kernel's own.
    """
    check_exportable(kernel)
    if gamma is None:
        gamma = graph.numbers(getattr(kernel, "gamma", 1.0))
    return _NODES[kernel.name](graph, kernel, X, Z, gamma)


def diagonal(graph: GraphWriter, kernel: Any, X: str) -> str:
    """Return the name of k(x_i, x_i), a column."""
    if kernel.constant_diagonal is not None:
        return graph.numbers([[kernel.constant_diagonal]])
    squares = graph.sums(graph.times(X, X))
    if kernel.name in ("normalized_poly", "cosine_power"):
        return graph.to(graph.add("Greater", squares, graph.numbers(0.0)), graph.dtype)
    if kernel.name == "linear":
        return squares
    line = _line(graph, squares, graph.numbers(kernel.gamma), kernel.coef0)
    return (
        graph.add("Tanh", line) if kernel.name == "sigmoid" else power(graph, line, kernel.degree)
    )
