"""The one-class machine in cells: a w for each cell, and one offset for all.

With w_c for the rows of cell c and one ρ,

    min Σ_c [ ½‖w_c‖² + Σ_{i in c} s_i max(0, ρ − w_cᵀφ(x_i)) ] − ν n ρ,

n the weight of the rows in all cells. It is the ν-one-class machine of the kernel that is k(x, x')
in one cell and zero between two, which is a kernel, too: where k falls off within a cell, hardly
another one. The scores w_cᵀφ(x) of all cells are values of this one machine, and compare: they
count rows near x. (With ν n_c and a ρ for each cell instead, each had its share of outliers,
however dense it is, and no two scores could be compared.)

Given ρ the cells have nothing to do with each other,

    max ρ Σ β_i − ½ βᵀK_cβ,   0 ≤ β ≤ s,

and what their β add up to, M(ρ), grows with ρ from 0 to n: the right ρ has M(ρ) = ν n. (M is
continuous: Kβ is the same for all solutions β, hence βᵀKβ is, and so is ρ Σ β.) A sample of the
cells tells ρ, up to some percent of M, and then all cells are solved for it, again with a better
ρ where the gap is not met. For the gap, β is moved to the sum ν n within its bounds, and ρ to the
share ν of all scores: a wrong ρ costs no more than the square of its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.exact_intervals import fits_matrix
from widemargin.cells.cell_by_cell import FittedCells, fitting_order, joined
from widemargin.cells.cell_engine import CellOptions, cut
from widemargin.cells.members import Members
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted
from widemargin.intervals import IntervalProblem
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Limits, Stop, run, signed_gap
from widemargin.qp.interval_dual import best_bias, solve_interval_dual
from widemargin.threads import ordered_map

# Cells that tell the offset first.
_SAMPLE_CELLS = 32
# Cells of a step: a user sees a line for it.
_AT_A_TIME = 1024
# The sum of β is right on the sample to this share, after so many looks at the most.
_SAME_SUM = 5e-3
_LOOKS = 12
# Cells are solved to this share of the gap that is asked for.
_SHARE_OF_GAP = 0.1
# Sweeps over all cells at the most.
_SWEEPS = 8
# Rows that stand for a cell which time does not reach.
_STAND_IN = 32

# Rows whose kernel values, and with how many others, tell how much of them cells hold.
_SHARE_ROWS = 100
_SHARE_MANY = 4000

Look = tuple[float, float]
"""An offset, and what β adds up to for it, as a share of n."""
_NOTHING: Look = (0.0, 0.0)


def fit_one_class_cells(problem: IntervalProblem, options: CellOptions) -> FittedCells:
    """Fit the one-class machine of a partition.

    Parameters
    ----------
    problem : IntervalProblem
        The machine on all rows, as ``intervals.one_class`` states it.
    options : CellOptions
        How.
    """
    if options.max_vectors is not None:
        raise ValueError(
            f"max_vectors={options.max_vectors} is not there for machines of one class with "
            "engine='cells', whose rows all count; use engine='span', or leave it out."
        )
    members = cut(problem, options)
    largest = max(len(index) for index in members.train)
    if not fits_matrix(largest, options.memory):
        raise ValueError(
            f"a cell of {largest:,} rows has a kernel matrix that does not fit into memory; give "
            "smaller cells, more memory, or engine='span'."
        )
    solver = OneClassCells(problem, members, options)
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    machines = dict(enumerate(solver.machines(result.state)))
    share = kernel_share(problem, members)
    said = f"{result.certificate.stopped}; cells hold {100 * share:.0f} % of the kernel values"
    certificate = replace(result.certificate, stopped=said)
    return joined(members.partition, members.chosen, machines, certificate, result.stop)


def kernel_share(problem: IntervalProblem, members: Members) -> float:
    """Return which part of the kernel values of rows is with rows of their own cell, by a sample.

    Near 1 the machine in cells is that of the kernel; near 0 it is another one.
    """
    inside = np.empty(problem.n, dtype=np.intp)
    for cell, index in enumerate(members.inside):
        inside[index] = cell
    weight, held, all_values = problem.below[:, 0], 0.0, 0.0
    # Rows are in random order: the first ones are a sample.
    many = np.arange(min(problem.n, _SHARE_MANY))
    for row in range(min(problem.n, _SHARE_ROWS)):
        values = np.empty((1, len(many)))
        one = np.array([row])
        problem.kernel.block(problem.rows.take(one), problem.rows.take(many), values)
        counted = np.abs(values[0]) * weight[: len(many)] * (many != row)
        member = np.isin(many, members.train[inside[row]])
        held += float(counted[member].sum())
        all_values += float(counted.sum())
    return held / all_values if all_values > 0 else 1.0


@dataclass(frozen=True)
class CellPoint:
    """A cell at an offset.

    Attributes
    ----------
    beta : ndarray of shape (m,)
        Its coefficients, within their bounds.
    scores : ndarray of shape (m,)
        K β.
    whole : float
        sᵀK s, the same for β at its bounds.
    gap : float
        What was not solved, relative.
    proved : bool
        Whether β is a point of the dual; else it only makes a machine.
    """

    beta: Vector
    scores: Vector
    whole: float
    gap: float
    proved: bool = True


@dataclass(frozen=True)
class Sweep:
    """All cells at an offset, in the order in which they are fitted, and what is proved.

    Attributes
    ----------
    points : tuple of CellPoint
        The cells.
    level : float
        ρ, the best one for these scores.
    mass : float
        What β adds up to.
    primal, dual : float
        Objective, and the bound to all.
    """

    points: tuple[CellPoint, ...]
    level: float
    mass: float
    primal: float
    dual: float


@dataclass(frozen=True)
class LevelState:
    """Where the fit stands.

    Attributes
    ----------
    level : float
        ρ at which cells are solved.
    tol : float
        Gap to which they are.
    slope : float or None
        How fast what β adds up to, as a share of n, grows with ρ, if that is known.
    points : tuple of CellPoint
        Those that are, in the order in which they are fitted.
    sweep : Sweep or None
        The last one of all cells.
    looks : tuple of (float, float)
        Offsets of all sweeps, and what β added up to, as a share of n.
    """

    level: float
    tol: float
    slope: float | None
    points: tuple[CellPoint, ...] = ()
    sweep: Sweep | None = None
    looks: tuple[Look, ...] = (_NOTHING,)

    @property
    def n_sweeps(self) -> int:
        """Sweeps over all cells."""
        return len(self.looks) - 1


class OneClassCells:
    """Solver of the one-class machine in cells, for ``loop.run``; a step is some of the cells.

    Parameters
    ----------
    problem : IntervalProblem
        The machine on all rows.
    members : Members
        Which rows train in which cell.
    options : CellOptions
        How.
    """

    def __init__(self, problem: IntervalProblem, members: Members, options: CellOptions) -> None:
        self.problem, self.members, self.options = problem, members, options
        sizes = [len(index) for index in members.train]
        self.order = fitting_order(sizes, options.deadline)
        self.most = max(sizes)
        self.weight = [problem.below[members.train[cell], 0] for cell in self.order]
        # Rows that train in two cells count in both.
        self.total = float(sum(weight.sum() for weight in self.weight))
        self.nu = min(1.0, float(problem.pull[0]) / float(problem.below.sum()))
        self.n_kernel = 0
        fitting = int(0.5 * options.memory / (24 * self.most**2))
        self.threads = max(1, min(options.threads, fitting))

    # The methods of a solver.

    def start(self) -> LevelState:
        """Return an offset that a sample of the cells tells."""
        options = self.options
        step = max(1, len(self.order) // _SAMPLE_CELLS)
        places = list(range(0, len(self.order), step))[:_SAMPLE_CELLS]
        tol = _SHARE_OF_GAP * max(options.tol, 1e-12)
        total = float(sum(self.weight[place].sum() for place in places))
        level, looks = self._first_level(places), [_NOTHING]
        for _ in range(_LOOKS):
            if options.deadline.passed:
                break
            points = self._solved(places, level, max(tol, 1e-4))
            if len(points) < len(places):
                break
            share = float(sum(point.beta.sum() for point in points)) / total
            looks.append((level, share))
            if abs(share - self.nu) <= _SAME_SUM * self.nu:
                break
            level = _next_level(looks, self.nu)
        slope = _slope(looks, self.nu) if len(looks) > 1 else None
        return LevelState(level, tol, slope)

    def step(self, state: LevelState) -> LevelState:
        """Solve some more cells; with the last of them, say what is proved."""
        if state.sweep is not None and not state.points:
            state = self._better(state)
        first = len(state.points)
        places = list(range(first, min(first + _AT_A_TIME, len(self.order))))
        points = (*state.points, *self._solved(places, state.level, state.tol, state.sweep))
        if len(points) < len(self.order):
            return replace(state, points=points)
        sweep = self._summed(points, state.level)
        if state.sweep is not None and _gap(state.sweep) < _gap(sweep):
            sweep = replace(state.sweep, mass=sweep.mass)
        looks = (*state.looks, (state.level, sweep.mass / self.total))
        return replace(state, points=(), sweep=sweep, looks=looks)

    def certificate(self, state: LevelState) -> Certificate:
        """Return the sums over the cells; before all are there, nothing is proved."""
        if state.sweep is None:
            low = -float("inf")
            return Certificate(-low, low, gap=1.0, scope="cells", n_kernel=self.n_kernel)
        sweep = state.sweep
        return Certificate(
            sweep.primal,
            min(sweep.primal, sweep.dual),
            gap=_gap(sweep),
            scope="cells",
            n_vectors=int(sum(np.count_nonzero(point.beta) for point in sweep.points)),
            n_passes=2,
            n_kernel=self.n_kernel,
        )

    def stopped(self, state: LevelState) -> Stop | None:
        """Return whether the gap is met."""
        if state.sweep is None:
            return None
        said = f"{len(self.order):,} cells of up to {self.most:,} rows, {state.n_sweeps} sweeps"
        if _gap(state.sweep) <= self.options.tol:
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}, {said}")
        if state.n_sweeps >= _SWEEPS:
            return Stop(Ended.PRECISION, f"nothing left to refine at this precision, {said}")
        return None

    def finish(self, state: LevelState) -> LevelState:
        """Put a few of their rows into the cells that were not reached."""
        if state.sweep is not None:
            return state
        rest = range(len(state.points), len(self.order))
        points = (*state.points, *(self._stand_in(place) for place in rest))
        return replace(state, points=(), sweep=self._summed(points, state.level))

    def machines(self, state: LevelState) -> list[Fitted]:
        """Return the machines in the order of the cells; their bias is −ρ."""
        assert state.sweep is not None
        found: list[Fitted | None] = [None] * len(self.order)
        nothing, stop = Certificate(0.0, 0.0, gap=0.0), Stop(Ended.SOLVED, "")
        for place, cell in enumerate(self.order):
            beta = state.sweep.points[place].beta
            index = self.members.train[cell][np.flatnonzero(beta)]
            vectors, bias = self.problem.rows.take(index), np.array([-state.sweep.level])
            coef = beta[beta != 0][:, None]
            found[cell] = Fitted(vectors, index, coef, bias, nothing, stop)
        return [each for each in found if each is not None]

    # Its parts.

    def _matrix(self, index: IndexArray) -> Matrix:
        rows = self.problem.rows.subset(index)
        return KernelBetween.of(self.problem.kernel, rows, np.float64).matrix()

    def _between(self, left: IndexArray, right: IndexArray) -> Matrix:
        rows, values = self.problem.rows, np.empty((len(left), len(right)))
        found = self.problem.kernel.checked_block(rows.take(left), rows.take(right), values)
        return np.asarray(found)

    def _first_level(self, places: Sequence[int]) -> float:
        """Return ρ of equal coefficients β = ν s, which are feasible: a density of the rows."""
        scores: list[Vector] = []
        weights: list[Vector] = []
        for place in places:
            if self.options.deadline.passed and scores:
                break
            few = self.members.train[self.order[place]]
            weight = self.weight[place]
            sample = np.arange(0, len(few), max(1, len(few) // _STAND_IN))[:_STAND_IN]
            scores.append(self.nu * (self._between(few[sample], few) @ weight))
            weights.append(weight[sample])
        found, weight = np.concatenate(scores), np.concatenate(weights)
        level = -_best_offset(found, weight, self.nu)
        return level if level > 0 else max(float(np.abs(found).max()), 1e-300)

    def _solved(
        self, places: Sequence[int], level: float, tol: float, before: Sweep | None = None
    ) -> list[CellPoint]:
        """Return cells at an offset, as many as time lasts for."""
        deadline = self.options.deadline
        done: list[CellPoint] = []

        def solve(place: int) -> CellPoint | None:
            if deadline.passed:
                return None
            start = None if before is None else before.points[place].beta
            return self._point(place, level, tol, start)

        with deadline.ends_on_interrupt():
            for point in ordered_map(solve, places, self.threads, deadline.interrupt):
                if point is None:
                    break
                done.append(point)
                self.n_kernel += len(point.beta) ** 2
        return done

    def _point(self, place: int, level: float, tol: float, start: Vector | None) -> CellPoint:
        K, weight = self._matrix(self.members.train[self.order[place]]), self.weight[place]
        ends, none = np.full(len(weight), level), np.zeros(len(weight))
        found = solve_interval_dual(
            K,
            ends,
            ends,
            weight,
            none,
            bias="none",
            start=start,
            tol=tol,
            deadline=self.options.deadline,
        )
        scores: Vector = K @ found.beta
        return CellPoint(found.beta, scores, float(weight @ (K @ weight)), found.gap)

    def _stand_in(self, place: int) -> CellPoint:
        """Return a density of a few rows, for a cell that was not reached."""
        index, weight = self.members.train[self.order[place]], self.weight[place]
        few = min(_STAND_IN, len(index))
        beta = np.zeros(len(index))
        beta[:few] = self.nu * weight.sum() / weight[:few].sum() * weight[:few]
        values = self._between(index, index[:few])
        diagonal = self.problem.kernel.diagonal(self.problem.rows.take(index))
        # No k(x, x') is larger than k(x, x).
        whole = float(weight.sum()) ** 2 * float(np.max(diagonal))
        return CellPoint(beta, values @ beta[:few], whole, 1.0, proved=False)

    def _summed(self, points: tuple[CellPoint, ...], level: float) -> Sweep:
        """Return what cells prove together."""
        scores, weight = np.concatenate([p.scores for p in points]), np.concatenate(self.weight)
        rho = -_best_offset(scores, weight, self.nu)
        mass = sum(float(p.beta.sum()) for p in points)
        norm2 = sum(max(0.0, float(p.beta @ p.scores)) for p in points)
        lost = float(weight @ np.maximum(rho - scores, 0.0))
        primal = 0.5 * norm2 + lost - self.nu * self.total * rho
        return Sweep(points, rho, mass, primal, self._dual(points))

    def _dual(self, points: tuple[CellPoint, ...]) -> float:
        """Return the dual of β, moved to the sum that it must have."""
        solved = [(p, s) for p, s in zip(points, self.weight, strict=True) if p.proved]
        # Cells that were not reached have β = ν s.
        bound = sum(-0.5 * self.nu**2 * p.whole for p in points if not p.proved)
        mass = sum(float(p.beta.sum()) for p, _ in solved)
        total = sum(float(s.sum()) for _, s in solved)
        norm2 = sum(max(0.0, float(p.beta @ p.scores)) for p, _ in solved)
        wanted = self.nu * total
        if mass >= wanted:
            share = wanted / mass if mass > 0 else 0.0
            return bound - 0.5 * share**2 * norm2
        # Towards the bounds, β + t (s − β).
        t = (wanted - mass) / (total - mass)
        across = sum(float(s @ p.scores) for p, s in solved)
        whole = sum(p.whole for p, _ in solved)
        return bound - 0.5 * ((1 - t) ** 2 * norm2 + 2 * t * (1 - t) * across + t**2 * whole)

    def _better(self, state: LevelState) -> LevelState:
        """Return the state at a better offset, to be solved to a smaller gap."""
        slope = state.slope if state.n_sweeps == 1 else None
        level = _next_level(state.looks, self.nu, slope)
        return replace(state, level=level, tol=max(0.1 * state.tol, 1e-13))


def _best_offset(scores: Vector, weight: Vector, nu: float) -> float:
    """Return the bias −ρ of least loss for scores."""
    zero = np.zeros(len(scores))
    return best_bias(scores, zero, zero, weight, zero, nu * float(weight.sum()))


def _next_level(looks: Sequence[Look], nu: float, slope: float | None = None) -> float:
    """Return an offset whose share should be ν.

    On the line through the two looks that are nearest, or with a slope through the nearest, and
    between those that are too low and too high.
    """
    level, share = min(looks, key=lambda look: abs(look[1] - nu))
    if slope is None:
        slope = _slope(looks, nu)
    low = max(at for at, found in looks if found < nu)
    high = min((at for at, found in looks if found >= nu), default=np.inf)
    wanted = level + (nu - share) / slope if slope > 0 else np.inf
    if low < wanted < high:
        return wanted
    return 0.5 * (low + high) if high < np.inf else 2.0 * level


def _slope(looks: Sequence[Look], nu: float) -> float:
    """Return how fast the share grows, by the two looks that are nearest to ν."""
    (level, share), (other, less) = sorted(looks, key=lambda look: abs(look[1] - nu))[:2]
    return (share - less) / (level - other) if level != other else 0.0


def _gap(sweep: Sweep) -> float:
    return signed_gap(sweep.primal, sweep.dual)
