"""The search for the best vectors: L-BFGS on a marginal function.

SLMC, section 3.3: W(Z) is minimised by the method of Liu and Nocedal, SciPy's L-BFGS-B without
bounds. It sees

    f(x)  =  W(Z) / |W(Z₀)|,     Z = length · x,

so that both its variables and its values are of order one, whatever the units of the rows. Every
evaluation starts from the best machines until then.

An accepted step satisfies Wolfe's conditions, so W falls from step to step. The search is a
compiled loop that cannot be stepped from outside; limits and interrupts leave it by an exception,
and the best point evaluated until then is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from scipy import optimize

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Ended, Report, Stop, bounds, signed_gap
from widemargin.sparse.marginal import Marginal, MarginalFunction, NoSpan

Answer = TypeVar("Answer")

# Pairs of steps and gradients that L-BFGS remembers.
_MEMORY = 20
# Evaluations that it may spend on one step.
_MOST_TRIES = 30
# Passes over all rows of an evaluation: once for the values, once for the gradient.
_PASSES = 2
# What W counts as, in units of the first one, where there is no span: far above all W of the
# search, and still a number that SciPy can interpolate with.
_NO_SPAN = 10.0
# Steps that must lower W by too little together before the search stops.
_SHORT_STEPS = 2


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes
    ----------
    vectors : ndarray of shape (t, d)
        The vectors.
    marginal : Marginal
        W there, with its machines.
    history : ndarray
        W at the start and after every accepted step, which never rises; and at last W at the best
        point, where the search was left in the middle of a step.
    certificate : Certificate
        W as primal, its lower bound in the span as dual, and the cost.
    stop : Stop
        How the search ended: its own rule is that W stopped falling by more than `tol`, or cannot
        fall at all.
    """

    vectors: Matrix
    marginal: Marginal
    history: Vector
    certificate: Certificate
    stop: Stop


def minimise(
    function: MarginalFunction,
    Z: Matrix,
    *,
    max_iter: int = 200,
    deadline: Deadline | None = None,
    tol: float = 1e-5,
    report: Report | None = None,
    length: float = 1.0,
) -> Found:
    """Move vectors to where W is least, starting at Z.

    Parameters
    ----------
    function : MarginalFunction
        W with its gradient.
    Z : ndarray of shape (t, d)
        Vectors to start from.
    max_iter : int, default=200
        Steps at the most; 0 only evaluates W.
    deadline : Deadline, default=None
        When to end; looked at before every evaluation but the first. An interrupt brings it about.
    tol : float, default=1e-5
        Stop when two steps together lower W by less than this share.
    report : callable, default=None
        Called with a certificate after every accepted step; a true answer stops the search.
    length : float, default=1.0
        A typical distance over which W changes, such as the standard deviation of the rows; one
        that is zero or infinite counts as 1.

    Returns
    -------
    Found
        The best vectors seen. An interrupt ends the search and nothing else.
    """
    search = _Search(function, Z, length, deadline or Deadline(), tol, report)
    return search.found(search.run(max_iter))


def insisted(deadline: Deadline, work: Callable[[], Answer]) -> Answer:
    """Return the answer of work without which there is no model, done again after an interrupt.

    The time is over then, so that it should not take long; a second interrupt is passed on.
    """
    with deadline.ends_on_interrupt():
        return work()
    return work()


class _Leave(Exception):
    """Leaves SciPy's loop, and says why."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop


class _Search:
    """A search under way; W is evaluated where it starts in any case."""

    def __init__(
        self,
        function: MarginalFunction,
        Z: Matrix,
        length: float,
        deadline: Deadline,
        tol: float,
        report: Report | None,
    ) -> None:
        self.function = function
        self.length = length if 0 < length < np.inf else 1.0
        self.deadline = deadline
        self.tol = tol
        self.report = report
        self.n_evaluations = 0
        self.begun = perf_counter()
        self.vectors, self.best = Z, insisted(deadline, lambda: self._evaluated(Z))
        self.latest = (Z, self.best)
        self.scale = max(abs(self.best.value), np.finfo(float).tiny)
        self.history = [self.best.value]

    def run(self, max_iter: int) -> Stop:
        """Search, and return how it ended."""
        at_limit = Stop(Ended.MAX_ITER, f"max_iter={max_iter} reached")
        with self.deadline.ends_on_interrupt():
            try:
                self._tell()
                if max_iter < 1:
                    return at_limit
                if self.deadline.passed:
                    return self.deadline.stop
                result = self._minimised(max_iter)
            except _Leave as leave:
                return leave.stop
            if result.status == 1:
                return at_limit
            return Stop(Ended.SOLVED, "W falls no further at this precision")
        return self.deadline.stop

    def _minimised(self, max_iter: int) -> Any:
        return optimize.minimize(
            self._value_and_gradient,
            (self.vectors / self.length).ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=self._accept,
            options={
                "maxiter": max_iter,
                "maxfun": 10**9,
                "maxls": _MOST_TRIES,
                "maxcor": _MEMORY,
                # SciPy's rule compares with the first W, which may be far above the last.
                "ftol": 0.0,
                # A gradient this small promises a change of W far below tol.
                "gtol": 1e-3 * self.tol,
            },
        )

    def found(self, stop: Stop) -> Found:
        """Return the best point until now."""
        certificate = replace(self._certificate(), stopped=stop.reason)
        if self.best.value < self.history[-1]:
            self.history.append(self.best.value)
        return Found(self.vectors, self.best, np.array(self.history), certificate, stop)

    def _evaluated(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        marginal = self.function(Z, start)
        self.n_evaluations += 1
        return marginal

    def _value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        """Return what SciPy minimises."""
        Z = x.reshape(self.vectors.shape) * self.length
        vectors, marginal = self.latest
        if not np.array_equal(Z, vectors):
            if self.deadline.passed:
                raise _Leave(self.deadline.stop)
            try:
                marginal = self._evaluated(Z, self.best)
            except NoSpan:
                # Kernels that are not Mercer's have such vectors; a shorter step avoids them.
                return _NO_SPAN, np.zeros(x.size)
            self.latest = (Z, marginal)
            if marginal.value < self.best.value:
                self.vectors, self.best = Z, marginal
        gradient = marginal.gradient.ravel() * (self.length / self.scale)
        return marginal.value / self.scale, gradient

    def _accept(self, intermediate_result: Any) -> None:
        """Note an accepted step; SciPy wants this name."""
        # What is accepted is what was evaluated last; only rounding can make it higher.
        self.history.append(min(self.latest[1].value, self.history[-1]))
        if self._tell():
            raise _Leave(Stop(Ended.CALLBACK, "a callback asked to stop"))
        # One short step may be an accident where the gradient bends.
        latest = self.history[-1 - _SHORT_STEPS :]
        if len(latest) > _SHORT_STEPS and latest[0] - latest[-1] <= self.tol * abs(latest[-1]):
            reason = f"{_SHORT_STEPS} steps lowered W by less than {self.tol:g}"
            raise _Leave(Stop(Ended.SOLVED, reason))

    def _tell(self) -> bool:
        return self.report is not None and bool(self.report(self._certificate()))

    def _certificate(self) -> Certificate:
        value, dual = self.best.value, self.best.dual
        return bounds(
            value,
            dual,
            gap=signed_gap(value, dual),
            scope="span",
            n_vectors=len(self.vectors),
            n_iter=len(self.history) - 1,
            n_passes=_PASSES * self.n_evaluations,
            n_kernel=self.function.n_kernel,
            seconds=perf_counter() - self.begun,
        )
