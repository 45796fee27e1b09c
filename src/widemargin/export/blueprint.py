"""What a fitted model computes, without the estimator: the one thing that all exports read.

Every model of this library is a sum over vectors, f_p(x) = Σ_j coef[j, p] k(x, v_j) + intercept_p,
or one such sum for each cell; then an answer is read off its values. A `Blueprint` states both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.base.classifier import KernelClassifier
from widemargin.base.detector import KernelDetector
from widemargin.base.estimator import dense
from widemargin.base.kept_cells import kept_machines
from widemargin.base.projection import ProjectionEstimator
from widemargin.base.row_maps import kept_map
from widemargin.base.span_map import SpanMap
from widemargin.base.unlabelled import ColumnScale
from widemargin.cells.cell_decision import CellMachines
from widemargin.discriminant import KernelFisherDA, MarginMetric, MaxMarginDA
from widemargin.expansion import Expansion
from widemargin.kernels import Kernel, Linear, make_kernel
from widemargin.outliers import CoreVectorDescription
from widemargin.regression import CoreVectorRegressor, MarginRegressor, MarginRegressorCV
from widemargin.rows import RowMap
from widemargin.sparse import ReducedSetClassifier, SparseMarginRegressor
from widemargin.svm import MarginClassifierCV

# Values this many times beyond the bend of a map are bent as all are that are farther away: their
# squares are numbers in single precision, too.
FARTHEST = 1e8


@dataclass(frozen=True)
class Classes:
    """The answer of a classifier.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    pairs : bool
        Whether functions are those of pairs of classes, which vote.
    margins_break_ties : bool
        Whether the sum of the margins decides between equal votes.
    zero_is_second : bool
        Whether a value of zero is a vote for the second class of a pair, or for none.
    shape : {"ovr", "ovo"}
        Whether scores are those of classes or of pairs of them.
    """

    classes: NDArray[Any]
    pairs: bool = False
    margins_break_ties: bool = True
    zero_is_second: bool = False
    shape: str = "ovr"


@dataclass(frozen=True)
class Numbers:
    """The answer of a regressor or of a projection.

    Attributes
    ----------
    flat : bool
        Whether there is one number a row, not a column.
    ascending : bool
        Whether the numbers of a row are put in order, as those of quantiles are: before offsets
        are added, and after.
    name : str
        What they are called.
    offsets : ndarray of shape (n_outputs,) or None
        What a calibration adds to them.
    """

    flat: bool = False
    ascending: bool = False
    name: str = "prediction"
    offsets: Vector | None = None


@dataclass(frozen=True)
class Inside:
    """The answer of a one-class machine: 1 where f(x) is at least an offset, else −1."""

    offset: float


@dataclass(frozen=True)
class InsideBall:
    """The answer of a ball: 1 where ‖φ(x) − c‖² = k(x, x) − 2 f(x) + ‖c‖² is at most −offset.

    Attributes
    ----------
    offset : float
        Minus the squared radius.
    norm2 : float
        ‖c‖².
    center : ndarray of shape (n_features,) or None
        c itself, where the kernel is linear.
    """

    offset: float
    norm2: float
    center: Vector | None


@dataclass(frozen=True)
class Blueprint:
    """A fitted model as functions and the answer that is read off them.

    Attributes
    ----------
    name : str
        The name of the estimator.
    n_features : int
        Columns of the rows.
    machine : Expansion or CellMachines
        The functions.
    answer : Classes, Numbers, Inside or InsideBall
        What is made of their values.
    scale : ColumnScale or None
        What a detector does to rows first.
    row_map : RowMap or None
        What other models do to rows first; there are never both.
    """

    name: str
    n_features: int
    machine: Expansion | CellMachines
    answer: Classes | Numbers | Inside | InsideBall
    scale: ColumnScale | None = None
    row_map: RowMap | None = None


def blueprint_of(model: Any) -> Blueprint:
    """Return what a fitted model computes, or raise if it is not one of this library."""
    for kinds, made in _MAKERS:
        if isinstance(model, kinds):
            check_is_fitted(model)
            blueprint: Blueprint = made(model)
            return blueprint
    raise TypeError(
        f"{type(model).__name__} is not an estimator of widemargin, whose models alone can be "
        "exported; for a pipeline call widemargin.export.register_skl2onnx() and use skl2onnx."
    )


def _kernel_of(model: Any) -> Kernel:
    return make_kernel(
        model.kernel,
        gamma=model.gamma_,
        degree=model.degree,
        coef0=model.coef0,
        kernel_params=model.kernel_params,
    )


def _sum_of(model: Any) -> Expansion:
    """Return the functions of a machine that has support vectors."""
    coef = np.ascontiguousarray(model.dual_coef_.T)
    vectors = dense(model.support_vectors_)
    return Expansion(_kernel_of(model), vectors, coef, model.intercept_)


def _in_cells(model: Any, intercept: Any) -> CellMachines:
    """Return the machines of all cells."""
    widths = getattr(model, "cell_gamma_", None)
    if widths is None:
        return kept_machines(model, _kernel_of(model), intercept)
    given = {"degree": model.degree, "coef0": model.coef0}
    kernels = [make_kernel(model.kernel, gamma=float(g), **given) for g in widths]
    return kept_machines(model, kernels, intercept)


def _machine_of(model: Any) -> Expansion | CellMachines:
    if getattr(model, "engine_", "") == "cells":
        return _in_cells(model, model.intercept_)
    return _sum_of(model)


def _check_columns(model: Any) -> None:
    """Raise if a model makes numbers of a data frame's columns first."""
    if getattr(model, "preprocess_", None) is not None:
        raise TypeError(
            f"this {type(model).__name__} makes numbers of a data frame's columns first, which an "
            "export cannot say; export its best_estimator_, and give that the rows of "
            "preprocess_.transform(frame)."
        )


def _of_classifier(model: Any) -> Blueprint:
    _check_columns(model)
    model = getattr(model, "best_estimator_", model)
    answer = Classes(
        model.classes_,
        pairs=getattr(model, "multi_class_", "ovr") == "ovo",
        shape=getattr(model, "decision_function_shape", "ovr"),
    )
    name, machine = type(model).__name__, _machine_of(model)
    return Blueprint(name, model.n_features_in_, machine, answer, row_map=kept_map(model))


def _of_reduced_set(model: ReducedSetClassifier) -> Blueprint:
    kernel = make_kernel(
        model.kernel_, gamma=model.gamma_, degree=model.degree_, coef0=model.coef0_
    )
    coef = np.ascontiguousarray(model.coef_.T)
    machine = Expansion(kernel, model.expansion_vectors_, coef, model.intercept_)
    answer = Classes(
        model.classes_,
        pairs=model.pairwise_ and len(model.classes_) > 2,
        margins_break_ties=model.break_ties_,
        zero_is_second=True,
    )
    return Blueprint("ReducedSetClassifier", model.n_features_in_, machine, answer)


def _of_regressor(model: Any) -> Blueprint:
    _check_columns(model)
    model = getattr(model, "best_estimator_", model)
    several = bool(getattr(model, "several_", False))
    flat = bool(getattr(model, "flat_", True)) and not several
    offsets = getattr(model, "offsets_", None)
    if offsets is not None and not np.any(offsets):
        offsets = None
    answer = Numbers(flat=flat, ascending=several, offsets=offsets)
    name, machine = type(model).__name__, _machine_of(model)
    return Blueprint(name, model.n_features_in_, machine, answer, row_map=kept_map(model))


def _of_detector(model: Any) -> Blueprint:
    machine: Expansion | CellMachines
    if getattr(model, "engine_", "") == "cells":
        # The offset, which all cells share, is that of the answer.
        machine = _in_cells(model, np.zeros((len(model.cell_centers_), 1)))
    else:
        coef = np.ascontiguousarray(model.dual_coef_.T)
        machine = Expansion(_kernel_of(model), dense(model.support_vectors_), coef)
    scale = None
    if model.center_ is not None and model.spread_ is not None and model.clip_ is not None:
        scale = ColumnScale(model.center_, model.spread_, model.clip_)
    name, answer = type(model).__name__, Inside(float(model.offset_))
    return Blueprint(name, model.n_features_in_, machine, answer, scale)


def _of_ball(model: CoreVectorDescription) -> Blueprint:
    kernel = _kernel_of(model)
    if kernel.name == "precomputed":
        raise TypeError(
            "kernel='precomputed' has no k(x, x) of new rows, and so no distances of them; use a "
            "kernel by name."
        )
    coef = np.ascontiguousarray(model.dual_coef_.T)
    center = getattr(model, "center_", None)
    norm2 = float(model.center_norm2_ if center is None else center @ center)
    answer = InsideBall(float(model.offset_), norm2, center)
    machine = Expansion(kernel, dense(model.support_vectors_), coef)
    return Blueprint("CoreVectorDescription", model.n_features_in_, machine, answer)


def _of_projection(model: Any) -> Blueprint:
    if not hasattr(model, "components_") and hasattr(model, "finalize"):
        model.finalize()
    machine = _projections(model)
    return Blueprint(type(model).__name__, model.n_features_in_, machine, Numbers(name="features"))


def _of_metric(model: MarginMetric) -> Blueprint:
    components = model.components_
    machine = Expansion(Linear(), components, np.eye(len(components)))
    row_map = RowMap(model.mean_, model.factor_, model.bend_)
    answer = Numbers(name="features")
    return Blueprint("MarginMetric", model.n_features_in_, machine, answer, row_map=row_map)


def _projections(model: Any) -> Expansion:
    """Return the features of a projection as functions."""
    if isinstance(model, SpanMap):
        return model.expansion()
    if isinstance(model, KernelFisherDA):
        coef = np.ascontiguousarray(model.coef_.T)
        return Expansion(_kernel_of(model), dense(model.vectors_), coef, model.intercept_)
    components: NDArray[np.float64] | None = getattr(model, "components_", None)
    if isinstance(model, MaxMarginDA):
        if components is not None:
            return Expansion(Linear(), components, np.eye(len(components)))
        coef = np.ascontiguousarray(model.coef_.T)
        return Expansion(_kernel_of(model), dense(model.vectors_), coef)
    assert components is not None
    about = -components @ model.mean_
    if model.span_map_ is None:
        return Expansion(Linear(), components, np.eye(len(components)), about)
    features = model.span_map_.expansion()
    return Expansion(features.kernel, features.vectors, features.coef @ components.T, about)


_MAKERS: tuple[tuple[tuple[type, ...], Any], ...] = (
    ((KernelClassifier, MarginClassifierCV), _of_classifier),
    ((ReducedSetClassifier,), _of_reduced_set),
    (
        (MarginRegressor, MarginRegressorCV, CoreVectorRegressor, SparseMarginRegressor),
        _of_regressor,
    ),
    ((KernelDetector,), _of_detector),
    ((CoreVectorDescription,), _of_ball),
    ((MarginMetric,), _of_metric),
    ((ProjectionEstimator, MaxMarginDA, SpanMap), _of_projection),
)
