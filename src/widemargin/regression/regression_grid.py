"""The grid of a search for a regressor: values of C and ε, kernels and their widths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.base import parameters as check
from widemargin.base.widths import Width, is_count, listed, values_of_C, widths_of

# The largest of a number of values of C: squares of small errors need more than errors.
_MOST_C = {True: 1e5, False: 1e3}
# The range that a number of values of ε stands for, as multiples of the targets' deviation.
_LEAST_EPSILON, _MOST_EPSILON = 0.01, 0.5


@dataclass(frozen=True)
class RegressionGrid:
    """All combinations of C, ε and widths.

    Attributes
    ----------
    Cs : tuple of float
        Values of C, ascending.
    epsilons : tuple of float or None
        Values of ε, ascending; None where the loss has none.
    widths : tuple of Width
        Kernels, and for each its widths.
    of_kernels : bool
        Whether the kernel is searched for, and so has a name in the results.
    of_rows : tuple of str
        What else is searched for: "scale", "metric" or both.
    """

    Cs: tuple[float, ...]
    epsilons: tuple[float, ...] | None
    widths: tuple[Width, ...]
    of_kernels: bool
    of_rows: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        Cs: Any,
        epsilons: Any,
        gammas: Any,
        kernels: Any,
        kernel: Any,
        deviation: float = 1.0,
        squared: bool = True,
    ) -> RegressionGrid:
        """Return the grid that parameters describe, or raise if they describe none.

        Parameters
        ----------
        Cs, epsilons, gammas : int or list
            Values, or how many; `epsilons` may be None.
        kernels : list of kernels or None
            Kernels to choose from; None is the one given.
        kernel : str, callable or Kernel
            That one.
        deviation : float, default=1.0
            Standard deviation of the targets.
        squared : bool, default=True
            Whether losses are squares, whose C does not depend on the unit of the targets.
        """
        widths = widths_of(gammas, kernels, kernel)
        chosen = None if epsilons is None else _values_of_epsilon(epsilons, deviation)
        values = values_of_C(Cs, _MOST_C[squared], 1.0 if squared else deviation or 1.0)
        return cls(values, chosen, widths, kernels is not None)

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """All values of C and ε, which is 0 where the loss has none."""
        return [(C, epsilon) for C in self.Cs for epsilon in self.epsilons or (0.0,)]

    @property
    def params(self) -> list[dict[str, Any]]:
        """The combinations, from the smallest C to the largest, the widths running fastest."""
        found: list[dict[str, Any]] = []
        for C, epsilon in self.pairs:
            own = {"C": C} if self.epsilons is None else {"C": C, "epsilon": epsilon}
            found.extend(own | self._of_width(width) for width in self.widths)
        return found

    def _of_width(self, width: Width) -> dict[str, Any]:
        found = {"kernel": width.kernel} if self.of_kernels else {}
        found |= {name: getattr(width, name) for name in self.of_rows}
        return found if width.gamma is None else found | {"gamma": width.gamma}


def _values_of_epsilon(epsilons: Any, deviation: float) -> tuple[float, ...]:
    """Return values of ε, ascending, from a list or their number."""
    if not is_count(epsilons):
        return tuple(
            sorted(check.not_negative("epsilons", e) for e in listed("epsilons", epsilons))
        )
    check.count("epsilons", epsilons)
    shares = np.geomspace(_LEAST_EPSILON, _MOST_EPSILON, int(epsilons))
    return tuple((deviation * shares).tolist())
