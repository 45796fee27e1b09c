"""The grid of a search: values of C, kernels and their widths; and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from widemargin.arrays import Matrix, Vector
from widemargin.base import parameters as check
from widemargin.kernels import KERNELS, Kernel, make_kernel

# The range that a number of values of C stands for,
_LEAST_C, _MOST_C = 1e-2, 1e3
# and a number of widths, as multiples of what is usual for the kernel.
_NARROWEST = 16.0


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
    """

    kernel: Any
    gamma: Any
    factor: float = 1.0

    @property
    def usual(self) -> bool:
        """Whether the width is still to be worked out from the rows."""
        return self.gamma is _USUAL

    def on(self, scale: float, n_features: int) -> Width:
        """Return the width as a number, from what "scale" is on some rows."""
        if not self.usual:
            return self
        named = KERNELS[self.kernel]
        return replace(self, gamma=self.factor * named.usual_gamma(scale, n_features))

    def __str__(self) -> str:
        """Return a few words for a line of progress."""
        name = self.kernel if isinstance(self.kernel, str) else type(self.kernel).__name__
        shown = f"{self.gamma:.3g}" if isinstance(self.gamma, float) else self.gamma
        return name if self.gamma is None else f"{name} gamma {shown}"


# Stands for a multiple of the usual width until rows are there.
_USUAL = object()


@dataclass(frozen=True)
class Grid:
    """All combinations of C and widths.

    Attributes
    ----------
    Cs : tuple of float
        Values of C, ascending.
    widths : tuple of Width
        Kernels, and for each its widths.
    of_kernels : bool
        Whether the kernel is searched for, and so has a name in the results.
    """

    Cs: tuple[float, ...]
    widths: tuple[Width, ...]
    of_kernels: bool

    @classmethod
    def of(cls, Cs: Any, gammas: Any, kernels: Any, kernel: Any) -> Grid:
        """Return the grid that parameters describe, or raise if they describe none.

        Parameters
        ----------
        Cs : int or list of float
            Values of C, or how many.
        gammas : int or list of float or str
            Widths, or how many.
        kernels : list of kernels or None
            Kernels to choose from; None is the one given.
        kernel : str, callable or Kernel
            That one.
        """
        if _is_count(Cs):
            check.count("Cs", Cs)
            values = np.geomspace(_LEAST_C, _MOST_C, int(Cs)).tolist()
        else:
            values = sorted(check.positive("Cs", value) for value in _listed("Cs", Cs))
        if _is_count(gammas):
            check.count("gammas", gammas)
            steps = np.linspace(-1.0, 1.0, int(gammas)) if gammas > 1 else np.zeros(1)
            of_each = [(_USUAL, float(factor)) for factor in _NARROWEST**steps]
        else:
            of_each = [(gamma, 1.0) for gamma in _listed("gammas", gammas)]
            for gamma, _ in of_each:
                check.gamma("gamma", gamma)
        named = [kernel] if kernels is None else _listed("kernels", kernels)
        if len(named) > 1 and any(
            isinstance(each, str) and each == "precomputed" for each in named
        ):
            raise ValueError(
                "kernels has 'precomputed' among others, but X is either rows or a kernel matrix; "
                "search for the kernel of rows, or give kernel='precomputed' alone."
            )
        widths: list[Width] = []
        for each in named:
            if _has_width(each):
                widths.extend(Width(each, gamma, factor) for gamma, factor in of_each)
            elif kernels is not None or _is_count(gammas):
                widths.append(Width(each, None))
            else:
                # The user has said so.
                widths.extend(Width(each, gamma) for gamma, _ in of_each)
        return cls(tuple(values), tuple(widths), kernels is not None)

    def on(self, scale: float, n_features: int) -> Grid:
        """Return the grid with widths as numbers, from what "scale" is on some rows."""
        return replace(self, widths=tuple(each.on(scale, n_features) for each in self.widths))

    @property
    def params(self) -> list[dict[str, Any]]:
        """The combinations, from the smallest C to the largest, and for each all widths."""
        return [{"C": C, **self.of_width(width)} for C in self.Cs for width in self.widths]

    def of_width(self, width: Width) -> dict[str, Any]:
        """Return the parameters of a width."""
        found = {"kernel": width.kernel} if self.of_kernels else {}
        return found if width.gamma is None else found | {"gamma": width.gamma}


@dataclass
class Found:
    """What a search has found.

    Attributes
    ----------
    grid : Grid
        What was searched.
    scores : ndarray of shape (n_widths, n_Cs, n_folds)
        NaN where there was no time.
    seconds : ndarray of shape (n_widths,)
        What all values of C and all folds of a width took together.
    finished : ndarray of bool of shape (n_widths,)
        Whether the machines of a width were.
    """

    grid: Grid
    scores: NDArray[np.float64]
    seconds: Vector
    finished: NDArray[np.bool_]

    @classmethod
    def nothing(cls, grid: Grid, n_folds: int) -> Found:
        """Return a search that has not begun."""
        n = len(grid.widths)
        scores = np.full((n, len(grid.Cs), n_folds), np.nan)
        return cls(grid, scores, np.zeros(n), np.zeros(n, dtype=bool))

    @property
    def of_pairs(self) -> Matrix:
        """The scores of each combination, a row, in each fold."""
        return self.scores.swapaxes(0, 1).reshape(-1, self.scores.shape[2])

    def best(self) -> tuple[int, float]:
        """Return the best combination, and its score; NaN if there is none.

        Machines that are not finished are judged only where there are no others.
        """
        flat = self.of_pairs
        mean = flat.mean(axis=1)
        finished = np.tile(self.finished, len(self.grid.Cs)) | ~self.finished.any()
        judged = np.where(finished & ~np.isnan(mean), mean, -np.inf)
        if not np.isfinite(judged).any():
            # By the folds that there was time for.
            known = np.isfinite(flat)
            total = np.where(known, flat, 0.0).sum(axis=1)
            judged = np.full(len(flat), -np.inf)
            np.divide(total, known.sum(axis=1), out=judged, where=known.any(axis=1))
        index = int(judged.argmax())
        score = float(judged[index])
        return index, score if np.isfinite(score) else float("nan")

    def results(self) -> dict[str, Any]:
        """Return what `GridSearchCV` has as `cv_results_`."""
        params, flat = self.grid.params, self.of_pairs
        mean = flat.mean(axis=1)
        results: dict[str, Any] = {"params": params}
        results["param_C"] = np.ma.array([each["C"] for each in params])
        for name in ("gamma", "kernel"):
            if not any(name in each for each in params):
                continue
            values = np.empty(len(params), dtype=object)
            values[:] = [each.get(name) for each in params]
            missing = [name not in each for each in params]
            results[f"param_{name}"] = np.ma.array(values, mask=missing)
        results |= {f"split{k}_test_score": flat[:, k] for k in range(flat.shape[1])}
        results["mean_test_score"] = mean
        results["std_test_score"] = flat.std(axis=1)
        ranked = np.where(np.isnan(mean), -np.inf, mean)
        results["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
        results["fit_time"] = np.tile(self.seconds, len(self.grid.Cs))
        return results


def _has_width(kernel: Any) -> bool:
    """Return whether gamma says anything to a kernel, or raise if it is none."""
    if isinstance(kernel, Kernel) or not isinstance(kernel, str):
        make_kernel(kernel)
        return False
    make_kernel(kernel)
    named = KERNELS[kernel]
    return is_dataclass(named) and any(each.name == "gamma" for each in fields(named))


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _listed(name: str, values: Any) -> list[Any]:
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
