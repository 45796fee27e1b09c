"""The exact machine: the dual of the SVM on all rows.

One problem is sought on a set of rows first (``exact_set``): where few of them matter, that is all.
Where the matrix of all kernel values fits into memory, it is made once and serves all problems,
each of which is one call of the small machine (``qp.margin_dual``), or a few. Pairs of classes need
less: see ``exact_pairs``. Where the matrix does not fit, that of the rows which support the machine
may: a core set finds them. Where even that is too large, ``matrix_free`` goes on from there, and
makes values again when they are needed. Both begin at a solution in a span where there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix
from widemargin.balls.ball import Precision, certificate_of, earlier_alpha, largest_norm2
from widemargin.balls.exact_hinge import fit_exact_hinge
from widemargin.balls.exact_pairs import fit_exact_pairs, fits
from widemargin.balls.exact_set import ExactSet
from widemargin.balls.exact_targets import fit_exact_targets
from widemargin.balls.growing_set import FEW
from widemargin.balls.matrix_free import MatrixFree
from widemargin.balls.one_by_one import fit_one_by_one
from widemargin.certificate import Certificate
from widemargin.expansion import Earlier, Fitted, MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Limits, Stop, run
from widemargin.problem import Problem
from widemargin.qp.low_rank import dual_of, features_of
from widemargin.qp.margin_dual import MarginDual, next_round
from widemargin.threads import ordered_map

# Share of the memory budget that the matrix of kernel values may take; blocks of rows and the
# values of working sets need the rest.
_MATRIX_SHARE = 0.7
# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.25
# Gaps that float64 cannot tell from none.
_NO_GAP = 1e-14
# What a matrix of low rank may miss on its diagonal for its machine to be a start, nearly the end.
_LOW_RANK_TOL = 1e-9
# Roundings of kernel values that a pivot of such a matrix must exceed: less than that is noise.
_ROUNDINGS = 16
# The share of the rows up to which a rank is low: one factor and one machine must be worth it.
_LOW_RANK_SHARE = 1 / 16
# The gap of that machine: its dual variables are right only where it has converged.
_LOW_RANK_GAP = 1e-10
# KKT residual that is rounding.
_KKT = 1e-10
# Rows for each class that a core set must have room for to be of use.
_LEAST_CORE = 16
# Support vectors up to which their factors are made: a larger one takes many seconds, in which no
# clock is looked at.
_MOST_IN_A_FACTOR = 10_000
# The least 1 / (2 C s), relative to k(x, x) + 1, with which ascent does without factors.
_EASY_RIDGE = 0.05
# Rows that a machine may have, in multiples of those that are known to be inside its margins.
_MORE_ROWS = 1.1
# Problems with fewer rows are solved sooner than a thread has started.
_WORTH_A_THREAD = 800


def fit_exact(
    problem: Problem,
    options: MachineOptions,
    slack: Matrix | None = None,
    before: Certificate | None = None,
) -> Fitted:
    """Fit the SVM itself to all rows.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    options : MachineOptions
        How exactly. Where rows are more than `max_vectors`, the machine is sought on a core set of
        so many.
    slack : ndarray of shape (n, n_problems), default=None
        max(0, 1 − y f) of functions that are nearly the machine's, to begin with where the matrix
        of all kernel values does not fit into memory, or its factors take too long.
    before : Certificate, default=None
        What a set of rows has cost (`fit_on_set`), if it has been tried.
    """
    if problem.regression is not None:
        return fit_exact_targets(problem, options)
    if options.loss == "hinge":
        return fit_exact_hinge(problem, options)
    budget = options.max_vectors is not None and options.max_vectors < problem.n
    if problem.partial:
        if budget or not fits(problem, options):
            return fit_one_by_one(problem, options, fit_exact)
        return fit_exact_pairs(problem, options)
    if budget:
        return _on_core_set(problem, options)
    eta = largest_norm2(problem)
    precisions = Precision.in_turn(problem, eta, options.tol)
    if slack is None and before is None and problem.n_problems == 1 and problem.n >= FEW:
        on_set, _ = fit_on_set(problem, options)
        if on_set.stop.kind not in (Ended.CAPACITY, Ended.PRECISION):
            return on_set
        before = on_set.certificate
        options = replace(options, earlier=earlier_of(on_set) or options.earlier)
    room = _MATRIX_SHARE * options.memory
    index = None if slack is None else np.flatnonzero(slack.any(axis=1))
    if index is not None and factors_take_long(problem, options, len(index)):
        return _from_inside(problem, options, eta, slack)
    if matrix_bytes(problem.n, precisions[-1]) <= room:
        # What float32 hides depends on the solution; from there it is not far.
        return _in_turn(ExactMatrix, problem, precisions, options, before)
    precision = Precision.of(problem, eta, options.tol)
    if matrix_bytes(problem.n, precision) <= room:
        return _in_turn(ExactMatrix, problem, [precision], options, before)
    if matrix_bytes(_LEAST_CORE * len(problem.table), precision) > room:
        return _solved(MatrixFree(problem, precision, options), problem, options)
    if slack is not None and index is not None:
        if matrix_bytes(int(_MORE_ROWS * len(index)), precision) > room:
            return _from_inside(problem, options, eta, slack)
        alpha = slack[index] / problem.ridge(0, index)[:, None]
        coef = alpha * problem.signs(index)
        options = replace(options, earlier=Earlier(index, coef, coef.sum(axis=0)))
    first = _on_core_set(problem, _going_on(options, before))
    first = replace(first, certificate=_added(before, first.certificate))
    if first.stop.kind is not Ended.CAPACITY or first.index is None:
        return first
    rest = replace(options, earlier=earlier_of(first))
    return _solved(MatrixFree(problem, precision, rest), problem, rest, first.certificate)


def factors_take_long(problem: Problem, options: MachineOptions, n_support: float) -> bool:
    """Return whether factors of so many support vectors would be needed, and take too long."""
    if n_support <= _MOST_IN_A_FACTOR:
        return False
    ridge = float(problem.ridge(0).min())
    easy = ridge >= _EASY_RIDGE * (largest_norm2(problem) - ridge)
    return not easy or options.deadline.max_time is not None


def _from_inside(
    problem: Problem, options: MachineOptions, eta: float, slack: Matrix | None
) -> Fitted:
    """Return the machine without a matrix, from the rows inside the margins of another."""
    assert slack is not None
    precision = Precision.of(problem, eta, options.tol)
    return _solved(MatrixFree(problem, precision, options, slack > 0.0), problem, options)


def fit_on_set(
    problem: Problem, options: MachineOptions, work: float = math.inf
) -> tuple[Fitted, float]:
    """Fit the SVM itself where few rows support it; it ends with `Ended.CAPACITY` where many do.

    Parameters
    ----------
    problem : Problem
        One problem of one C.
    options : MachineOptions
        How exactly.
    work : float, default=inf
        Multiplications that a factor of the support may take.

    Returns
    -------
    Fitted
        The machine, or what there is of it.
    float
        How many support vectors it was expected to have when it ended.
    """
    solvers: list[ExactSet] = []

    def solver(problem: Problem, precision: Precision, options: MachineOptions) -> ExactSet:
        solvers.append(ExactSet(problem, precision, options, work))
        return solvers[-1]

    precisions = Precision.in_turn(problem, largest_norm2(problem), options.tol)
    return _in_turn(solver, problem, precisions, options), solvers[-1].expected


def matrix_fits(problem: Problem, options: MachineOptions) -> bool:
    """Return whether the matrix of all kernel values fits into memory, of the largest pair too."""
    if problem.partial:
        return fits(problem, options)
    precision = Precision.of(problem, largest_norm2(problem), options.tol)
    return matrix_bytes(problem.n, precision) <= _MATRIX_SHARE * options.memory


def _in_turn(
    solver: Any,
    problem: Problem,
    precisions: list[Precision],
    options: MachineOptions,
    spent: Certificate | None = None,
) -> Fitted:
    """Return the machine of a solver, each precision from where the one before ended."""
    for precision in precisions:
        found = _solved(solver(problem, precision, options), problem, options, spent)
        spent = found.certificate
        if found.stop.kind is not Ended.PRECISION:
            break
        options = replace(options, earlier=earlier_of(found))
    return found


def earlier_of(found: Fitted) -> Earlier | None:
    """Return a machine to start from, if there is any."""
    if found.index is None or not len(found.index):
        return None
    return Earlier(found.index, found.coef, found.intercept)


def _added(spent: Certificate | None, certificate: Certificate) -> Certificate:
    """Return a certificate with the costs of what came before."""
    if spent is None:
        return certificate
    names = ("n_iter", "n_passes", "n_kernel", "seconds")
    costs = {name: getattr(spent, name) + getattr(certificate, name) for name in names}
    return replace(certificate, **costs)


def _going_on(options: MachineOptions, spent: Certificate | None) -> MachineOptions:
    """Return the options of what comes next: steps and costs are counted on."""
    if spent is None:
        return options
    tell = options.report

    def report(certificate: Certificate) -> bool | None:
        return None if tell is None else tell(_added(spent, certificate))

    return replace(options, max_iter=max(1, options.max_iter - spent.n_iter), report=report)


def _solved(
    solver: Any, problem: Problem, options: MachineOptions, spent: Certificate | None = None
) -> Fitted:
    """Return the machines of a solver, in a certificate with the cost of what came before."""
    rest = _going_on(options, spent)
    result = run(solver, Limits(rest.max_iter, rest.deadline), rest.report)
    certificate, stop = _added(spent, result.certificate), result.stop
    if stop.kind is Ended.MAX_ITER:
        stop = Stop(stop.kind, f"max_iter={options.max_iter} reached")
        certificate = replace(certificate, stopped=stop.reason)
    alpha = solver.alpha(result.state)
    index = np.flatnonzero(alpha.any(axis=0))
    coef = alpha[:, index].T * problem.signs(index)
    vectors = problem.rows.take(index)
    return Fitted(vectors, index, coef, coef.sum(axis=0), certificate, stop)


def _on_core_set(problem: Problem, options: MachineOptions) -> Fitted:
    """Return the machine with a budget of vectors, `max_vectors` or what fits into memory."""
    from widemargin.balls.core_set import fit_core
    from widemargin.balls.core_state import CoreOptions
    from widemargin.balls.minimum import MinimumBall

    shared = {name: getattr(options, name) for name in MachineOptions.__dataclass_fields__}
    return fit_core(problem, MinimumBall(options.tol), CoreOptions(**shared))


def matrix_bytes(n: int, precision: Precision) -> int:
    """Return what the matrix of all kernel values takes."""
    return int(np.dtype(precision.dtype).itemsize) * n * n


@dataclass(frozen=True)
class Solving:
    """One problem on its way.

    Attributes
    ----------
    point : MarginDual
        Where it stands.
    accuracy : float
        The gap it is to be solved to.
    """

    point: MarginDual
    accuracy: float


class ExactMatrix:
    """Solve all problems on the matrix of kernel values: a solver for ``loop.run``.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    precision : Precision
        Of the kernel values.
    options : MachineOptions
        How exactly.
    """

    def __init__(self, problem: Problem, precision: Precision, options: MachineOptions) -> None:
        self.problem = problem
        self.precision = precision
        self.options = options
        self.n_kernel = 0

    def start(self) -> tuple[Solving, ...]:
        """Compute the kernel values, and begin at zero or at an earlier solution."""
        problem = self.problem
        alpha = earlier_alpha(problem, self.options.earlier)
        accuracy = max(_SHARE_OF_GAP * self.options.tol, _NO_GAP)
        between = KernelBetween.of(problem.kernel, problem.rows, self.precision.dtype)
        K = between.matrix()
        self.n_kernel += K.size
        noise = _ROUNDINGS * float(np.finfo(K.dtype).eps)
        features = features_of(K, max(_LOW_RANK_TOL, noise), _LOW_RANK_SHARE)

        def begun(p: int) -> Solving:
            sign, ridge = problem.sign(p), problem.ridge(p)
            point = MarginDual.at(K, sign, ridge, alpha[p])
            if features is not None and point.gap() > self.options.tol:
                alike = dual_of(features, sign, ridge, _LOW_RANK_GAP)
                point = min(point, MarginDual.at(K, sign, ridge, alike), key=MarginDual.gap)
            return self._standing(point, accuracy)

        return tuple(ordered_map(begun, range(problem.n_problems), self._threads()))

    def step(self, state: tuple[Solving, ...]) -> tuple[Solving, ...]:
        """Take every unsolved problem through a call of the small machine."""
        return tuple(ordered_map(self._advanced, state, self._threads()))

    def _threads(self) -> int:
        return 1 if self.problem.n < _WORTH_A_THREAD else self.options.threads

    def _advanced(self, solving: Solving) -> Solving:
        point, accuracy = solving.point, solving.accuracy
        if self._gap(point) <= self.options.tol or accuracy < _NO_GAP:
            return solving
        after, finished = next_round(point, accuracy, _KKT)
        if finished and self._hidden(after) > _SHARE_OF_GAP * self.options.tol:
            return Solving(after, 0.0)
        return self._standing(after, 0.1 * accuracy if finished else accuracy)

    def _standing(self, point: MarginDual, accuracy: float) -> Solving:
        """Return where a problem stands: at its end where rounding hides more than is asked for."""
        return Solving(point, 0.0 if self._hidden(point) > self.options.tol else accuracy)

    def certificate(self, state: tuple[Solving, ...]) -> Certificate:
        """Return primal and dual of all problems together."""
        return certificate_of(
            [each.point.objectives() for each in state],
            [self._gap(each.point) for each in state],
            n_vectors=int(np.any([each.point.alpha > 0 for each in state], axis=0).sum()),
            n_passes=1,
            n_kernel=self.n_kernel,
        )

    def stopped(self, state: tuple[Solving, ...]) -> Stop | None:
        """Return whether the gap of every problem is met, or precision ends it."""
        open_problems = [each for each in state if self._gap(each.point) > self.options.tol]
        if not open_problems:
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        if all(each.accuracy < _NO_GAP for each in open_problems):
            return Stop(Ended.PRECISION, "nothing left to refine at this precision")
        return None

    def finish(self, state: tuple[Solving, ...]) -> tuple[Solving, ...]:
        """Return the state as it is: it speaks of all rows."""
        return state

    def alpha(self, state: tuple[Solving, ...]) -> NDArray[np.float64]:
        """Return the dual variables, of shape (n_problems, n)."""
        return np.array([each.point.alpha for each in state])

    def _gap(self, point: MarginDual) -> float:
        """Return a relative gap with what rounding may hide of it."""
        return point.gap() + self._hidden(point)

    def _hidden(self, point: MarginDual) -> float:
        return self.precision.rounding * float(np.linalg.norm(point.alpha))
