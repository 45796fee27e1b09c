"""Kernels with their widths, and values of C, that the parameters of a search stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.base import parameters as check
from widemargin.kernels import KERNELS, Kernel, make_kernel

# The range that a number of values of C stands for,
_LEAST_C, _MOST_C = 1e-2, 1e3
# and a number of widths, as multiples of what is usual for the kernel.
_NARROWEST = 16.0
# Features from which the sum of differences takes much longer than a product.
_MANY_FEATURES = 100


@dataclass(frozen=True)
class Width:
    """A kernel and its width.

    Attributes
    ----------
    kernel : str, callable or Kernel
        As an estimator takes it.
    gamma : float, str or None
        The width as the user gives it; None where the kernel has none.
    factor : float
        Its multiple of what is usual for the kernel, where the user gives a number of widths.
    scale : {"auto", None}
        What is done to the columns of the rows first.
    metric : {"diagonal", "full", None}
        The metric of the rows, which is learned,
    rounds : int
        and in how many rounds.
    """

    kernel: Any
    gamma: Any
    factor: float = 1.0
    scale: str | None = None
    metric: str | None = None
    rounds: int = 0

    @property
    def usual(self) -> bool:
        """Whether the width is still to be worked out from the rows."""
        return self.gamma is _USUAL

    def on(self, variance: Vector) -> Width:
        """Return the width as a number, on rows whose columns have these variances."""
        if not self.usual:
            return self
        return replace(self, gamma=self.factor * KERNELS[self.kernel].usual_gamma(variance))

    def __str__(self) -> str:
        """Return a few words for a line of progress."""
        name = self.kernel if isinstance(self.kernel, str) else type(self.kernel).__name__
        shown = f"{self.gamma:.3g}" if isinstance(self.gamma, float) else self.gamma
        seen = ("scaled " if self.scale else "") + (f"{self.metric} metric " if self.metric else "")
        return seen + (name if self.gamma is None else f"{name} gamma {shown}")


# Stands for a multiple of the usual width until rows are there.
_USUAL = object()


def values_of_C(Cs: Any, most: float = _MOST_C, unit: float = 1.0) -> tuple[float, ...]:
    """Return values of C, ascending, from a list or their number.

    Parameters
    ----------
    Cs : int or list
        The values, or how many from 0.01 units to
    most : float, default=1e3
        so many
    unit : float, default=1.0
        units.
    """
    if is_count(Cs):
        check.count("Cs", Cs)
        return tuple((unit * np.geomspace(_LEAST_C, most, int(Cs))).tolist())
    return tuple(sorted(check.positive("Cs", value) for value in listed("Cs", Cs)))


def widths_of(gammas: Any, kernels: Any, kernel: Any) -> tuple[Width, ...]:
    """Return the kernels and their widths that parameters describe, or raise.

    Parameters
    ----------
    gammas : int or list of float or str
        Widths, or how many.
    kernels : list of kernels or None
        Kernels to choose from; None is the one given.
    kernel : str, callable or Kernel
        That one.
    """
    if is_count(gammas):
        check.count("gammas", gammas)
        steps = np.linspace(-1.0, 1.0, int(gammas)) if gammas > 1 else np.zeros(1)
        of_each = [(_USUAL, float(factor)) for factor in _NARROWEST**steps]
    else:
        of_each = [(gamma, 1.0) for gamma in listed("gammas", gammas)]
        for gamma, _ in of_each:
            check.gamma("gamma", gamma)
    named = [kernel] if kernels is None else listed("kernels", kernels)
    if len(named) > 1 and any(isinstance(each, str) and each == "precomputed" for each in named):
        raise ValueError(
            "kernels has 'precomputed' among others, but X is either rows or a kernel matrix; "
            "search for the kernel of rows, or give kernel='precomputed' alone."
        )
    widths: list[Width] = []
    for each in named:
        if _has_width(each):
            widths.extend(Width(each, gamma, factor) for gamma, factor in of_each)
        elif kernels is not None or is_count(gammas):
            widths.append(Width(each, None))
        else:
            # The user has said so.
            widths.extend(Width(each, gamma) for gamma, _ in of_each)
    return tuple(widths)


def kernels_to_search(kernels: Any, kernel: Any, gammas: Any, n_features: int) -> Any:
    """Return the kernels that "auto" stands for, or None for the one that is given."""
    if not isinstance(kernels, str) or kernels != "auto":
        return kernels
    given = not isinstance(kernel, str) or kernel != "rbf"
    if given or not isinstance(gammas, Integral):
        return None
    return ("rbf", "exponential" if n_features > _MANY_FEATURES else "laplacian")


def _has_width(kernel: Any) -> bool:
    """Return whether gamma says anything to a kernel, or raise if it is none."""
    if isinstance(kernel, Kernel) or not isinstance(kernel, str):
        make_kernel(kernel)
        return False
    make_kernel(kernel)
    named = KERNELS[kernel]
    return is_dataclass(named) and any(each.name == "gamma" for each in fields(named))


def is_count(value: Any) -> bool:
    """Return whether a list parameter is a number of values."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def listed(name: str, values: Any) -> list[Any]:
    """Return the values of a list parameter, or say what is wrong with it."""
    if (
        isinstance(values, (str, bytes))
        or not hasattr(values, "__iter__")
        or getattr(values, "ndim", 1) == 0
    ):
        raise TypeError(f"{name}={values!r} must be a list of values, such as {name}=[...].")
    listed = list(values)
    if not listed:
        raise ValueError(f"{name} is empty; give at least one value.")
    return listed


def views_of(widths: Sequence[Width]) -> list[tuple[Width, ...]]:
    """Return widths that have scale and kernel in common, in order."""
    found: dict[Any, list[Width]] = {}
    for width in widths:
        key = width.kernel if isinstance(width.kernel, str) else id(width.kernel)
        found.setdefault((width.scale, key), []).append(width)
    return [tuple(view) for view in found.values()]


def best_of_views(widths: Sequence[Width], scores: Vector, kept: int) -> tuple[Width, ...]:
    """Return the best width of each of the best scales and kernels, with its neighbours.

    Parameters
    ----------
    widths : sequence of Width
        All widths.
    scores : ndarray of shape (n_widths,)
        The best score of each, minus infinity where none is known.
    kept : int
        Scales and kernels to keep.
    """
    place = {width: w for w, width in enumerate(widths)}
    order = sorted(views_of(widths), key=lambda view: -max(scores[place[each]] for each in view))
    chosen: list[Width] = []
    for view in order[:kept]:
        top = int(np.argmax([scores[place[each]] for each in view]))
        chosen.extend(view[max(0, top - 1) : top + 2])
    return tuple(chosen)
