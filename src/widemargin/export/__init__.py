"""Models that travel: as an ONNX graph, and as C source for small machines.

`onnx` needs the package of that name (``pip install "widemargin[export]"``), and nothing here
imports it before it is asked for. `c` needs nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["c", "onnx", "register_skl2onnx"]


def onnx(model: Any, *, dtype: str = "float32", precision: str = "float64") -> Any:
    """Return a fitted model as an ONNX graph, for onnxruntime and every other reader of ONNX.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor, detector of outliers, projection or map of this library.
    dtype : {"float32", "float64"}, default="float32"
        Type of the rows that the graph takes, and of the numbers that it gives.
    precision : {"float64", "float32"}, default="float64"
        Type in which it computes. Coefficients of both signs enlarge the rounding of kernel values:
        with "float32" the file is half as large and faster, and answers are less exact.

    Returns
    -------
    onnx.ModelProto
        With one input ``X`` of shape (rows, features), and as outputs ``label`` and ``scores``
        (what `predict` and `decision_function` return) of classifiers and detectors, ``prediction``
        of regressors, or ``features`` of projections.

    Raises
    ------
    TypeError
        If the model is not one of this library, if its kernel is a Python function, or if it makes
        numbers of a data frame's columns first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import MarginClassifier, export
    >>> machine = MarginClassifier().fit(*load_iris(return_X_y=True))
    >>> graph = export.onnx(machine)
    >>> [each.name for each in graph.graph.output]
    ['label', 'scores']
    """
    from widemargin.export.onnx_model import model_proto

    return model_proto(model, dtype=dtype, precision=precision)


def c(model: Any, *, name: str = "model", fixed_point: bool = False) -> str:
    """Return a fitted model as C99 source, for machines with few vectors.

    Two functions are made. ``NAME_decision`` writes the decision values of a row; ``NAME_predict``
    returns the number of its class (a place in `classes_`), or its prediction. Nothing is
    allocated, all numbers are static and constant, and no function of a library is called but
    ``expf``.

    Parameters
    ----------
    model : estimator
        A fitted model whose answer is a sum over vectors: all of this library but those in cells.
    name : str, default="model"
        What names in the source begin with.
    fixed_point : bool, default=False
        Compute with whole numbers only, without ``expf``: rows come as 16-bit integers in a unit
        that the source states. For the kernels "rbf", "laplacian", "inverse_squared_distance" and
        "linear".

    Returns
    -------
    str
        The source, one file.

    Raises
    ------
    TypeError
        If the model is not one of this library, if it is in cells, if C has no such kernel, if the
        model makes numbers of a data frame's columns first, or if it maps rows first and
        `fixed_point` is true.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseMarginClassifier, export
    >>> small = SparseMarginClassifier(4, random_state=0).fit(*load_iris(return_X_y=True))
    >>> source = export.c(small, name="iris")
    >>> "int iris_predict(const float *x)" in source
    True
    """
    from widemargin.export.c_source import c_source

    return c_source(model, name=name, fixed_point=fixed_point)


def register_skl2onnx() -> None:
    """Tell skl2onnx of all estimators of this library, so that pipelines with them convert.

    Needs the package ``skl2onnx``. Once a process is enough.

    Examples
    --------
    >>> from widemargin import export
    >>> export.register_skl2onnx()  # doctest: +SKIP
    >>> onnx_model = skl2onnx.to_onnx(pipeline, X[:1])  # doctest: +SKIP
    """
    from widemargin.export.skl2onnx_converter import register

    register()
