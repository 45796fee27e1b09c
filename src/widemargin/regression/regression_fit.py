"""What a fit of a regressor came to."""

from __future__ import annotations

from dataclasses import dataclass

from widemargin.arrays import Vector
from widemargin.expansion import Fitted


@dataclass(frozen=True)
class RegressionFit:
    """A machine, and how it came about.

    Attributes
    ----------
    engine : {"exact", "span", "cells"}
        Whose it is.
    fitted : Fitted
        The machine.
    doubt : str
        What speaks against it, with the remedy; empty if nothing does.
    offsets : ndarray of shape (n_columns,) or None
        What is added to the columns of its predictions; None for nothing.
    """

    engine: str
    fitted: Fitted
    doubt: str = ""
    offsets: Vector | None = None
