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
from numpy.typing import ArrayLike
from scipy import optimize

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Ended, Report, Stop, bounds
from widemargin.sparse.marginal import Marginal, MarginalFunction, NoSpan

Answer = TypeVar("Answer")

# Pairs of steps and gradients that L-BFGS remembers.
_MEMORY = 20
# Evaluations that it may spend on one step.
_MOST_TRIES = 30
# Evaluations that look at all rows: once for the values, once for the gradient.
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
    n_evaluations : int
        How often W was computed.
    stop : Stop
        How the search ended: its own rule is that W stopped falling by more than `tol`, or cannot
        fall at all.
    """

    vectors: Matrix
    marginal: Marginal
    history: Vector
    certificate: Certificate
    n_evaluations: int
    stop: Stop


def minimise(
    function: MarginalFunction,
    Z: Matrix,
    *,
    max_iter: int = 200,
    deadline: Deadline | None = None,
    tol: float = 1e-5,
    report: Report | None = None,
    length: ArrayLike = 1.0,
    start: Marginal | None = None,
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
    length : float or array of shape (d,), default=1.0
        A typical distance over which W changes, such as 1/√γ of a Gaussian kernel or the standard
        deviation of the rows.
    start : Marginal, default=None
        Machines to start from, of vectors near Z.

    Returns
    -------
    Found
        The best vectors seen. An interrupt ends the search and nothing else.
    """
    until = Deadline() if deadline is None else deadline
    search = _Search(function, np.array(Z, dtype=np.float64), length, until, tol, report)
    search.begin(start)
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
    """A search under way."""

    def __init__(
        self,
        function: MarginalFunction,
        Z: Matrix,
        length: ArrayLike,
        deadline: Deadline,
        tol: float,
        report: Report | None,
    ) -> None:
        self.function = function
        self.shape = Z.shape
        size = np.broadcast_to(np.asarray(length, dtype=np.float64), Z.shape[1:])
        # A column that never changes has no length of its own; it will not move in any case.
        self.length = np.where((size > 0) & np.isfinite(size), size, 1.0)
        self.deadline = deadline
        self.tol = tol
        self.report = report
        self.vectors = Z
        self.n_evaluations = self.n_iter = 0
        self.begun = perf_counter()

    def begin(self, start: Marginal | None) -> None:
        """Evaluate W where the search starts."""
        self.best = insisted(self.deadline, lambda: self._evaluated(self.vectors, start))
        self.scale = max(abs(self.best.value), np.finfo(float).tiny)
        self.history = [self.best.value]
        self.latest = (self.vectors, self.best)

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
        certificate = replace(self._certificate(self.best), stopped=stop.reason)
        history = np.array(self.history)
        if self.best.value < history[-1]:
            history = np.append(history, self.best.value)
        return Found(self.vectors, self.best, history, certificate, self.n_evaluations, stop)

    def _evaluated(self, Z: Matrix, start: Marginal | None) -> Marginal:
        marginal = self.function(Z, start)
        self.n_evaluations += 1
        if self.n_evaluations == 1 or marginal.value < self.best.value:
            self.vectors, self.best = Z, marginal
        return marginal

    def _value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        """Return what SciPy minimises."""
        Z = x.reshape(self.shape) * self.length
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
        gradient = (marginal.gradient * self.length).ravel() / self.scale
        return marginal.value / self.scale, gradient

    def _accept(self, intermediate_result: Any) -> None:
        """Note an accepted step; SciPy wants this name."""
        # What is accepted is what was evaluated last; only rounding can make it higher.
        self.history.append(min(self.latest[1].value, self.history[-1]))
        self.n_iter += 1
        if self._tell():
            raise _Leave(Stop(Ended.CALLBACK, "a callback asked to stop"))
        # One short step may be an accident where the gradient bends.
        gained = self.history[-1 - min(_SHORT_STEPS, self.n_iter)] - self.history[-1]
        if self.n_iter >= _SHORT_STEPS and gained <= self.tol * abs(self.history[-1]):
            reason = f"{_SHORT_STEPS} steps lowered W by less than {self.tol:g}"
            raise _Leave(Stop(Ended.SOLVED, reason))

    def _tell(self) -> bool:
        if self.report is None:
            return False
        return bool(self.report(self._certificate(self.best)))

    def _certificate(self, marginal: Marginal) -> Certificate:
        return bounds(
            marginal.value,
            marginal.dual,
            scope="span",
            n_vectors=self.shape[0],
            n_iter=self.n_iter,
            n_passes=_PASSES * self.n_evaluations,
            n_kernel=self.function.n_kernel,
            seconds=perf_counter() - self.begun,
        )
