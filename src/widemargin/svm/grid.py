"""The grid of a search: values of C, kernels and their widths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from widemargin.arrays import Vector
from widemargin.base.widths import Width, values_of_C, widths_of


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
    of_rows : tuple of str
        What else is searched for: "scale", "metric" or both.
    """

    Cs: tuple[float, ...]
    widths: tuple[Width, ...]
    of_kernels: bool
    of_rows: tuple[str, ...] = ()

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
        widths = widths_of(gammas, kernels, kernel)
        return cls(values_of_C(Cs), widths, kernels is not None)

    def on(self, variance: Vector) -> Grid:
        """Return the grid with widths as numbers, on rows whose columns have these variances."""
        return replace(self, widths=tuple(each.on(variance) for each in self.widths))

    def thinned(self) -> Grid:
        """Return the grid with every second value of C, the largest among them if they are even."""
        return replace(self, Cs=self.Cs[len(self.Cs) > 1 :: 2])

    @property
    def params(self) -> list[dict[str, Any]]:
        """The combinations, from the smallest C to the largest, and for each all widths."""
        return [{"C": C, **self.of_width(width)} for C in self.Cs for width in self.widths]

    def of_width(self, width: Width) -> dict[str, Any]:
        """Return the parameters of a width."""
        found = {"kernel": width.kernel} if self.of_kernels else {}
        found |= {name: getattr(width, name) for name in self.of_rows}
        return found if width.gamma is None else found | {"gamma": width.gamma}
