"""Writing ONNX: nodes and constants with names of their own, and elementary arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import helper, numpy_helper


class GraphWriter:
    """Nodes and constants of a graph, or of the body of a loop inside one.

    Parameters
    ----------
    dtype : dtype
        Of all numbers that are computed with.
    outer : GraphWriter, optional
        The graph around this body, which keeps the constants and gives the names.
    prefix : str, default=""
        What all names begin with.
    """

    def __init__(
        self, dtype: DTypeLike, outer: GraphWriter | None = None, prefix: str = ""
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = [] if outer is None else outer.constants
        self._names: list[str] = [] if outer is None else outer._names
        self._prefix: str = prefix if outer is None else outer._prefix

    @property
    def element(self) -> int:
        """ONNX's number of the type."""
        return int(helper.np_dtype_to_tensor_dtype(self.dtype))

    def body(self) -> GraphWriter:
        """Return a writer for the body of a loop."""
        return GraphWriter(self.dtype, self)

    def name(self, kind: str) -> str:
        """Return a name that nothing has."""
        self._names.append(kind)
        return f"{self._prefix}{kind}_{len(self._names)}"

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output, and return the name of that."""
        return self.several(kind, *inputs, outputs=1, **attributes)[0]

    def several(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node, and return the names of its outputs."""
        names = [self.name(kind) for _ in range(outputs)]
        self.nodes.append(
            helper.make_node(kind, inputs, names, name=self.name("node"), **attributes)
        )
        return names

    def numbers(self, values: Any, kind: str = "numbers") -> str:
        """Return the name of a constant in the type that is computed with."""
        return self.constant(np.asarray(values, dtype=self.dtype), kind)

    def whole(self, values: Any) -> str:
        """Return the name of a constant of whole numbers."""
        return self.constant(np.asarray(values, dtype=np.int64), "whole")

    def constant(self, values: NDArray[Any], kind: str) -> str:
        """Return the name of a constant."""
        name = self.name(kind)
        if values.dtype.kind in "UO":
            text = [str(each).encode("utf-8") for each in values]
            self.constants.append(
                helper.make_tensor(name, onnx.TensorProto.STRING, values.shape, text)
            )
        else:
            self.constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    # Arithmetic.

    def plus(self, left: str, right: str) -> str:
        """Return left + right."""
        return self.add("Add", left, right)

    def minus(self, left: str, right: str) -> str:
        """Return left − right."""
        return self.add("Sub", left, right)

    def times(self, left: str, right: str) -> str:
        """Return left · right, element by element."""
        return self.add("Mul", left, right)

    def over(self, left: str, right: str) -> str:
        """Return left / right."""
        return self.add("Div", left, right)

    def product(self, left: str, right: str) -> str:
        """Return the matrix product."""
        return self.add("MatMul", left, right)

    def at_least(self, values: str, bound: float) -> str:
        """Return the values, none below a bound."""
        return self.add("Max", values, self.numbers(bound))

    def sums(self, values: str) -> str:
        """Return the sums of the rows of a matrix, as a column."""
        return self.add("ReduceSum", values, self.whole([1]), keepdims=1)

    def turned(self, matrix: str) -> str:
        """Return the transpose."""
        return self.add("Transpose", matrix, perm=[1, 0])

    def to(self, values: str, dtype: DTypeLike) -> str:
        """Return the values in another type."""
        element = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        return self.add("Cast", values, to=element)

    def first(self, matrix: str) -> str:
        """Return the first column of a matrix, as a vector."""
        return self.add("Gather", matrix, self.whole(0), axis=1)


def computed(dtype: str) -> np.dtype[Any]:
    """Return the type of numbers by its name, or raise."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'.")
    return np.dtype(dtype)
