"""What the sparse machines share: checks of parameters, options, and what a fit leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.base.parameters import check_choice
from widemargin.expansion import Fitted
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline, Resources
from widemargin.problem import Problem
from widemargin.span.landmarks import given_vectors
from widemargin.sparse.marginal import MarginalOfRows

Judge = Callable[[Problem, Matrix], float]
MakeFunction = Callable[[Problem, Deadline], MarginalOfRows]


@dataclass(frozen=True)
class PlacementSizes:
    """Sizes at which the placement changes its ways.

    Attributes
    ----------
    first_rows : int
        Rows on which vectors are placed first where there are more than twice as many.
    rough : float
        The share by which two steps there must lower W: vectors soon learn what is true of the
        sample only, and one step over all rows is then worth many of these.
    exact_rows : int
        Rows at the most to which the exact machine is fitted, to count its support vectors or to
        start from it; of more rows a sample.
    """

    first_rows: int = 10_000
    rough: float = 1e-2
    exact_rows: int = 10_000


@dataclass(frozen=True, kw_only=True)
class SparseOptions(Resources):
    """What W is, how many vectors there are, and how they are placed.

    Attributes
    ----------
    function : callable
        Returns W for problems and rows, given them and a deadline.
    machine : callable or None
        The same for the machine on the vectors that are found; None for the one that attains W.
    n_vectors : int or float
        A number, or a share of the support vectors of the exact SVM.
    init : str or ndarray of shape (n_vectors, n_features)
        Where vectors start: "kmeans", "random", "distinct" (random, no two equal), "reduced_set",
        or there.
    move : bool
        Whether vectors move at all.
    share_vectors : bool
        Whether all problems share one set of vectors.
    grow : {"one", "double"} or None
        How more vectors join.
    judge : tuple of (str, callable) or None
        What is told of each number of vectors where they grow: a name, and a function of the
        problems and the scores of all rows.
    max_iter : int
        Steps of L-BFGS at the most, for each set of vectors and stage.
    tol : float
        A search ends when steps lower W by less than this share.
    sizes : PlacementSizes
        Sizes at which the placement changes its ways.
    """

    function: MakeFunction
    machine: MakeFunction | None = None
    n_vectors: float = 0.1
    init: Any = "kmeans"
    move: bool = True
    share_vectors: bool = False
    grow: str | None = None
    judge: tuple[str, Judge] | None = None
    max_iter: int = 200
    tol: float = 1e-5
    sizes: PlacementSizes = field(default_factory=PlacementSizes)


@dataclass(frozen=True)
class FittedSparse(Fitted):
    """Machines with few vectors, those of one problem after those of another.

    Attributes
    ----------
    vector_problem : ndarray of int of shape (n_vectors,)
        The problem that each vector belongs to; 0 for all if they are shared.
    history : list of ndarray
        W at the accepted steps of each problem.
    curve : dict of arrays or None
        What each number of vectors is good for, where they grow.
    """

    vector_problem: IndexArray
    history: list[Vector]
    curve: dict[str, NDArray[Any]] | None


def movable(name: str, kernel: Any) -> None:
    """Raise if a kernel has no gradient by which its vectors could be moved."""
    if not make_kernel(kernel).differentiable:
        raise ValueError(
            f"{name}={kernel!r} has no gradient, so its vectors cannot be moved; use a kernel such "
            "as 'rbf', or `MarginClassifier`, which chooses rows."
        )


def start(name: str, init: Any) -> None:
    """Raise if a word does not say where vectors start."""
    if isinstance(init, str):
        check_choice(name, init, ("kmeans", "random", "reduced_set"))


def start_without_classes(name: str, init: Any) -> None:
    """Raise if a word does not say where vectors start, where there is no SVM to start from."""
    if isinstance(init, str):
        check_choice(name, init, ("kmeans", "random"))


def options_of(estimator: Any, resources: Resources, **others: Any) -> SparseOptions:
    """Return the options that the parameters of an estimator and others make."""
    given = estimator.get_params(deep=False)
    init = given.get("init", "distinct")
    if not isinstance(init, str):
        given["init"] = given_vectors("init", init, estimator.n_features_in_)
    return SparseOptions.with_parameters(resources, given, **others)


def keep_sparse(estimator: Any, fitted: Fitted, curve: str = "accuracy_curve_") -> None:
    """Set what is special about few vectors; `curve` names the attribute of their growth."""
    assert isinstance(fitted, FittedSparse)
    estimator.expansion_vectors_, estimator.coef_ = fitted.vectors, estimator.dual_coef_
    estimator.n_vectors_ = len(fitted.vectors)
    estimator.vector_problem_ = fitted.vector_problem
    estimator.history_ = fitted.history
    estimator._drop(curve)
    if fitted.curve is not None:
        setattr(estimator, curve, fitted.curve)


def in_units(fitted: FittedSparse, square: float) -> FittedSparse:
    """Return machines whose history of W is in other units, `square` times as large."""
    curve = fitted.curve
    if curve is not None:
        curve = curve | {"W": curve["W"] * square}
    return replace(fitted, history=[each * square for each in fitted.history], curve=curve)
