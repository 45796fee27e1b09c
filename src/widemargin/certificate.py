"""What a fit can prove about its own answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """A bound on how far a fitted machine is from the optimum, and what it cost.

    Several one-vs-rest problems are reported together: `primal` and `dual` are sums over the
    problems.

    Attributes
    ----------
    primal : float
        Value of ½‖w‖² + ½b² + C Σ s ξ² at the returned machine, over all rows of `scope`.
    dual : float
        A lower bound on the optimum of the same problem.
    gap : float
        (primal − dual) / primal, between 0 and 1. The machine's objective is within this share
        of the best possible one.
    eps : float or None
        Every point lies within (1 + eps) times the radius of the smallest enclosing ball; the
        worst over the problems. None where no ball is involved.
    center_error : float or None
        The ball's centre is no farther from that of the smallest ball than this many times its own
        length (Proposition 2 of BVM); the worst over the problems. A decision value f beyond
        center_error times ‖c‖ √(k(x, x) + 1), in the scale of the centre c, has the sign that the
        best machine gives it, by the bound after (11) there.
    scope : {"full", "span", "cells", "sample"}
        The problem that primal and dual speak of: all rows, the best machine inside the span of
        the vectors, the best machines of all cells, or (while fitting, or after a second
        interrupt) a random sample of the rows.
    n_vectors : int
        Expansion vectors of the machine.
    n_iter : int
        Steps of the outer loop.
    n_passes : int
        Passes over all rows.
    n_kernel : int
        Kernel evaluations.
    seconds : float
        Wall-clock time of the loop.
    stopped : str
        Why it stopped.
    full_dual : float or None
        Where `scope` is "span": a lower bound on the optimum of the full problem, to which primal
        is an upper bound. No machine with more vectors can get below it.
    """

    primal: float
    dual: float
    gap: float
    eps: float | None = None
    scope: str = "full"
    n_vectors: int = 0
    n_iter: int = 0
    n_passes: int = 0
    n_kernel: int = 0
    seconds: float = 0.0
    stopped: str = ""
    full_dual: float | None = None
    center_error: float | None = None

    def __str__(self) -> str:
        """Return the certificate as one line."""
        full = "" if self.full_dual is None else f", full problem at least {self.full_dual:.6g}"
        ball = "" if self.eps is None else f", ball within 1 + {self.eps:.1e}"
        return (
            f"gap {self.gap:.1e} on the {self.scope} problem (primal {self.primal:.6g}, "
            f"dual {self.dual:.6g}{ball}{full}); {self.n_vectors:,} vectors, {self.n_iter} steps, "
            f"{self.n_passes} passes, {self.n_kernel:.2g} kernel values, {self.seconds:.2f} s; "
            f"{self.stopped}"
        )
