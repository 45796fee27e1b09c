"""All cells, one after another: progress, limits, interrupts, and the sum of what each proves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from widemargin.certificate import Certificate, bounds, relative_gap
from widemargin.deadline import NEVER, Deadline
from widemargin.loop import Stop
from widemargin.threads import ordered_map

# Cells between two looks of the loop at the clock.
_AT_A_TIME = 32


class CellFit(Protocol):
    """What is to be known of the machine of a cell."""

    @property
    def primal(self) -> float:
        """Its objective."""

    @property
    def dual(self) -> float:
        """A lower bound on it."""

    @property
    def full_dual(self) -> float | None:
        """A lower bound without the limit to a span, if there is one."""

    @property
    def gap(self) -> float:
        """The largest relative gap of what was optimised."""

    @property
    def n_vectors(self) -> int:
        """Its vectors."""

    @property
    def n_kernel(self) -> int:
        """Kernel values that it took."""

    @property
    def converged(self) -> bool:
        """Whether its own rule was met."""


@dataclass(frozen=True)
class CellsState:
    """The machines of the cells until now, in the order of the cells."""

    fits: tuple[Any, ...]


class CellsFit:
    """Solver of all cells, for ``loop.run``; a step is some of them.

    Parameters
    ----------
    sizes : list of int
        Rows of each cell.
    fit : callable
        Returns the machine of a cell, a `CellFit`, from its number; None where time did not last.
    constant : callable
        Returns a machine at no cost, for cells that the fit did not get to.
    threads : int
        Threads; the answer does not depend on it.
    deadline : Deadline, default=NEVER
        When a step ends with the cells that are done.
    """

    def __init__(
        self,
        sizes: list[int],
        fit: Callable[[int], Any],
        constant: Callable[[int], Any],
        threads: int,
        deadline: Deadline = NEVER,
    ) -> None:
        self.sizes = sizes
        self.fit = fit
        self.constant = constant
        self.threads = threads
        self.deadline = deadline
        # Largest first: the last of them shall not be waited for by all other threads. Smallest
        # first where time is limited: more rows get a machine in the same time.
        sign = -1 if deadline.max_time is None else 1
        self.order = sorted(range(len(sizes)), key=lambda c: (sign * sizes[c], c))

    def start(self) -> CellsState:
        """Begin with no cell."""
        return CellsState(())

    def step(self, state: CellsState) -> CellsState:
        """Fit the machines of some more cells."""
        first = len(state.fits)
        some = self.order[first : first + _AT_A_TIME]
        done = []
        for fit in ordered_map(self.fit, some, self.threads):
            if fit is None:
                break
            done.append(fit)
            if self.deadline.passed:
                break
        return replace(state, fits=(*state.fits, *done))

    def finish(self, state: CellsState) -> CellsState:
        """Put a constant into the cells that were not reached."""
        rest = self.order[len(state.fits) :]
        return CellsState(state.fits + tuple(self.constant(cell) for cell in rest))

    def machines(self, state: CellsState) -> list[Any]:
        """Return the machines in the order of the cells."""
        place = np.argsort(self.order)
        return [state.fits[k] for k in place]

    def certificate(self, state: CellsState) -> Certificate:
        """Return the sums over the cells; those that are missing count as nothing proved."""
        primal = sum(fit.primal for fit in state.fits)
        dual = sum(fit.dual for fit in state.fits)
        spans = any(fit.full_dual is not None for fit in state.fits)
        full = (fit.dual if fit.full_dual is None else fit.full_dual for fit in state.fits)
        done = len(state.fits) == len(self.sizes)
        gap = relative_gap(primal, dual) if done else 1.0
        return bounds(
            primal,
            dual,
            gap=gap,
            scope="cells",
            n_vectors=sum(fit.n_vectors for fit in state.fits),
            n_passes=2,
            n_kernel=sum(fit.n_kernel for fit in state.fits),
            full_dual=sum(full) if spans else None,
        )

    def stopped(self, state: CellsState) -> Stop | None:
        """Return what all cells came to, the worst one by name."""
        if len(state.fits) < len(self.sizes):
            return None
        gaps = [fit.gap for fit in state.fits]
        worst = int(np.argmax(gaps))
        reason = (
            f"{len(gaps):,} cells of up to {max(self.sizes):,} rows, the largest "
            f"gap {gaps[worst]:.1e} in cell {self.order[worst]}"
        )
        converged = all(fit.converged for fit in state.fits)
        if not converged and self.deadline.passed:
            reason = f"{self.deadline.reached}, {reason}"
        return Stop(reason, converged)
