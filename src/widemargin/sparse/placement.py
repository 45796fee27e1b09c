"""Vectors of machines, placed where they serve them best: how many, from where, in which stages.

The engine of the sparse classifiers. `Placing` says what W is (a marginal function of the vectors);
this says with how many vectors a search begins and where, takes it over a sample of the rows first
where they are many, and lets vectors join where they are to grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.certificate import Certificate
from widemargin.expansion import Expansion, Fitted
from widemargin.loop import Deadline, Ended, Resources, Stop, relative_gap
from widemargin.problem import Problem, kernel_values, winners
from widemargin.qp import solve_hinge_dual
from widemargin.rows import weighted_moments
from widemargin.span import RandomVectors, as_strategy
from widemargin.sparse.growing import newcomers, stages
from widemargin.sparse.marginal import Marginal, MarginalFunction
from widemargin.sparse.pre_image import Combination
from widemargin.sparse.reduced_start import reduced_set
from widemargin.sparse.vector_search import Found, insisted, minimise

# Rows of each class in the sample, at the least.
_LEAST_OF_A_CLASS = 20
# Sets of newcomers of which the best joins.
_TRIES = 5
# Share of the memory budget for the kernel matrix of the exact machine.
_MATRIX_SHARE = 0.4
# Gap of the exact machine whose support vectors are counted, and of a machine that is solved.
_EXACT_GAP = 1e-6


_UNMOVED = Stop(Ended.SOLVED, "vectors are not moved")


@dataclass(frozen=True)
class PlacementSizes:
    """Sizes at which the placement changes its ways.

    Attributes
    ----------
    first_rows : int
        Rows on which vectors are placed first where there are more than twice as many.
    rough : float
        The share by which two steps there must lower W: vectors soon learn what is true of the
        sample only, and one step over all rows is then worth many of these.
    exact_rows : int
        Rows at the most to which the exact machine is fitted, to count its support vectors or to
        start from it; of more rows a sample.
    """

    first_rows: int = 10_000
    rough: float = 1e-2
    exact_rows: int = 10_000


class Placing(Protocol):
    """What vectors are placed for."""

    def function(self, problem: Problem, deadline: Deadline) -> MarginalFunction:
        """Return W for some problems and rows."""

    def machine(self, problem: Problem, found: Found, deadline: Deadline) -> Marginal:
        """Return the machine on the vectors that were found."""


@dataclass(frozen=True, kw_only=True)
class SparseOptions(Resources):
    """How many vectors, and how they are placed.

    Attributes
    ----------
    n_vectors : int or float
        A number, or a share of the support vectors of the exact SVM.
    init : str or ndarray of shape (n_vectors, n_features)
        Where vectors start: "kmeans", "random", "distinct" (random, no two equal), "reduced_set",
        or there.
    move : bool
        Whether vectors move at all.
    share_vectors : bool
        Whether all problems share one set of vectors.
    grow : {"one", "double"} or None
        How more vectors join.
    max_iter : int
        Steps of L-BFGS at the most, for each set of vectors and stage.
    tol : float
        A search ends when steps lower W by less than this share.
    sizes : PlacementSizes
        Sizes at which the placement changes its ways.
    """

    n_vectors: float = 0.1
    init: Any = "kmeans"
    move: bool = True
    share_vectors: bool = False
    grow: str | None = None
    max_iter: int = 200
    tol: float = 1e-5
    sizes: PlacementSizes = field(default_factory=PlacementSizes)


@dataclass(frozen=True)
class FittedSparse(Fitted):
    """Machines with few vectors, those of one problem after those of another.

    Attributes
    ----------
    vector_problem : ndarray of int of shape (n_vectors,)
        The problem that each vector belongs to; 0 for all if they are shared.
    history : list of ndarray
        W at the accepted steps of each problem.
    curve : dict of arrays or None
        What each number of vectors is good for, where they grow.
    """

    vector_problem: IndexArray
    history: list[NDArray[np.float64]]
    curve: dict[str, NDArray[Any]] | None


def fit_sparse(problem: Problem, placing: Placing, options: SparseOptions) -> FittedSparse:
    """Place the vectors of all problems.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    placing : Placing
        What W is.
    options : SparseOptions
        How many vectors, and how they are placed.
    """
    everything = list(range(problem.n_problems))
    groups = [everything] if options.share_vectors else [[p] for p in everything]
    rng = options.rng
    curves: list[list[Found]] = []
    for g, group in enumerate(groups):
        until = options.deadline.part(1.0 / (len(groups) - g))
        placement = _Placement(
            problem.columns(group), placing, replace(options, deadline=until), rng
        )
        # After an interrupt the other problems get a machine where their vectors start.
        asked = [found.stop for curve in curves for found in curve if found.stop.kind.by_user]
        curves.append(placement.curve(asked[0] if asked else None))
    last = [curve[-1] for curve in curves]
    vectors, coef, intercept = _joined(problem, groups, last)
    certificate, stop = _summary(curves)
    return FittedSparse(
        vectors,
        None,
        coef,
        intercept,
        certificate,
        stop,
        np.repeat(np.arange(len(groups)), [len(found.vectors) for found in last]),
        [np.concatenate([found.history for found in curve]) for curve in curves],
        None if options.grow is None else _accuracy_curve(problem, groups, curves),
    )


@dataclass(frozen=True)
class _Exact:
    """The hinge-loss SVMs of all problems, and how many support vectors they have together."""

    machines: list[Combination]
    n_support: int


class _Placement:
    """Vectors of one problem, or of several that share them."""

    def __init__(
        self,
        problem: Problem,
        placing: Placing,
        options: SparseOptions,
        rng: np.random.Generator,
    ) -> None:
        self.problem = problem
        self.placing = placing
        self.options = options
        self.rng = rng
        self.sample = _sample(problem, options.sizes.first_rows)
        moments = weighted_moments(problem.rows, problem.weight)
        self.length = float(np.sqrt(moments.variance.mean()))

    def curve(self, enough: Stop | None) -> list[Found]:
        """Return the vectors after each stage of growth.

        `enough` is there if somebody has asked to end: vectors then stay where they start.
        """
        start = self._start()
        sizes = stages(len(start), self.options.grow if enough is None else None)
        curve: list[Found] = []
        for s, size in enumerate(sizes):
            if curve and (enough is not None or self.options.deadline.passed):
                # There is no time to solve the machine of more vectors: it would be a worse one.
                curve[-1] = _ended(curve[-1], enough or self.options.deadline.stop)
                break
            Z = self._grown(curve[-1], size) if curve else start[:size]
            found = self._placed(Z, enough, 2 * (len(sizes) - s))
            curve.append(self._with_machine(found))
            if enough is None and curve[-1].stop.kind.by_user:
                enough = curve[-1].stop
        return curve

    def _with_machine(self, found: Found) -> Found:
        """Return the vectors with the machine on them."""
        deadline = self.options.deadline
        machine = insisted(deadline, lambda: self.placing.machine(self.problem, found, deadline))
        cut = deadline.passed and relative_gap(machine.value, machine.dual) > _EXACT_GAP
        if found.stop.converged and (cut or deadline.interrupted):
            found = _ended(found, deadline.stop)
        return replace(found, marginal=machine)

    def _placed(self, Z: Matrix, enough: Stop | None, parts: int) -> Found:
        """Return vectors moved from Z: on a sample first, where there are many rows."""
        options, problem = self.options, self.problem
        shared: dict[str, Any] = {"length": self.length, "report": options.report}
        if not options.move:
            deadline = options.deadline
            function = self.placing.function(problem, deadline)
            found = minimise(function, Z, max_iter=0, deadline=deadline, **shared)
            cut = deadline.passed and found.certificate.gap > _EXACT_GAP
            stop = deadline.stop if cut or deadline.interrupted else _UNMOVED
            known: dict[str, Any] = {"n_iter": 1, "n_passes": 1, "stopped": stop.reason}
            certificate = replace(found.certificate, **known)
            return replace(found, certificate=certificate, stop=stop)
        first: Found | None = None
        if self.sample is not None and enough is None:
            until = options.deadline.part(1.0 / parts)
            rough = self.placing.function(problem.subset(self.sample), until)
            tol = max(options.tol, options.sizes.rough)
            first = minimise(rough, Z, max_iter=options.max_iter, tol=tol, deadline=until, **shared)
            Z = first.vectors
            enough = first.stop if first.stop.kind.by_user else None
        until = options.deadline.part(1.0 / (parts - 1 if self.sample is not None else parts // 2))
        function = self.placing.function(problem, until)
        steps = 0 if enough is not None else options.max_iter
        found = minimise(function, Z, max_iter=steps, tol=options.tol, deadline=until, **shared)
        if first is not None:
            found = _after(first, found)
        return found if enough is None else _ended(found, enough)

    def _grown(self, last: Found, size: int) -> Matrix:
        """Return the vectors with the best of several sets of newcomers.

        A vector that the machine has no use for where it is gets a coefficient of zero, and with it
        a gradient of zero: it would stay there.
        """
        problem, missing = self.problem, size - len(last.vectors)
        joining = [
            newcomers(problem, last.vectors, last.marginal, missing, self.rng)
            for _ in range(_TRIES)
        ]
        tries = [np.concatenate([last.vectors, each]) for each in joining]
        deadline = self.options.deadline
        rows = problem if self.sample is None else problem.subset(self.sample)
        judge = self.placing.function(rows, deadline)
        best, least = tries[0], np.inf
        with deadline.ends_on_interrupt():
            for Z in tries:
                if deadline.passed:
                    break
                value = judge(Z).value
                if value < least:
                    best, least = Z, value
        return best

    # Where vectors start.

    def _start(self) -> Matrix:
        problem, init = self.problem, self.options.init
        if not isinstance(init, str):
            return np.asarray(init)
        if init == "reduced_set":
            return self._reduced_set()
        if init == "distinct":
            return self._distinct_rows()
        strategy = as_strategy(init, problem.rows.shape[1])
        choice = strategy.begin(problem.rows, problem.kernel, problem.weight, self.rng)
        vectors: Matrix = choice.draw(self._count(), None).values.astype(np.float64)
        return vectors

    def _distinct_rows(self) -> Matrix:
        """Return random rows, no two of them equal."""
        problem, count = self.problem, self._count()
        choice = RandomVectors().begin(problem.rows, problem.kernel, problem.weight, self.rng)
        vectors = np.empty((0, problem.rows.shape[1]))
        while len(vectors) < count and not choice.exhausted:
            more = choice.draw(count - len(vectors), None).values
            vectors = np.concatenate([vectors, more.astype(np.float64)])
            # Different pairs of rows and labels are apart, so that rows may still be equal.
            _, first = np.unique(vectors, axis=0, return_index=True)
            vectors = vectors[np.sort(first)]
        return vectors

    def _count(self, exact: _Exact | None = None) -> int:
        """Return how many vectors are asked for; exact machines need not be fitted twice."""
        wanted = self.options.n_vectors
        if isinstance(wanted, Integral):
            return min(int(wanted), self.problem.n)
        found = self._exact() if exact is None else exact
        return min(max(1, round(float(wanted) * found.n_support)), self.problem.n)

    def _reduced_set(self) -> Matrix:
        """Return reduced sets of the exact machines, of each problem its part."""
        exact = self._exact()
        count, n_problems = self._count(exact), len(exact.machines)
        parts = []
        for p, machine in enumerate(exact.machines):
            share = (count + n_problems - 1 - p) // n_problems
            if share:
                deadline = self.options.deadline.part(0.5)
                parts.append(reduced_set(machine, share, self.rng, deadline=deadline))
        return np.concatenate(parts)

    def _exact(self) -> _Exact:
        """Return the hinge-loss SVMs of all problems, of a sample where rows are many."""
        options = self.options
        most = int(np.sqrt(_MATRIX_SHARE * options.memory / 4))
        rows = min(options.sizes.exact_rows, max(2, most))
        sample = _sample(self.problem, rows, always=True)
        problem = self.problem if sample is None else self.problem.subset(sample)
        X = problem.rows.take(np.arange(problem.n)).astype(np.float64)
        K = np.empty((problem.n, problem.n), dtype=np.float32)
        kernel_values(problem.kernel, problem.rows, X, K)
        found, copies = [], np.zeros(problem.n)
        for p in range(problem.n_problems):
            sign, upper = problem.sign(p), problem.C[p] * problem.weight
            part = options.deadline.part(0.5 / (problem.n_problems - p))
            exact = solve_hinge_dual(K, sign, upper, tol=_EXACT_GAP, deadline=part)
            support = np.flatnonzero(exact.alpha)
            coef = (sign * exact.alpha)[support]
            found.append(Combination(problem.kernel, X[support], coef))
            # Equal rows are one row here, with a bound on α of C for each copy.
            own = np.maximum(1.0, np.floor(np.abs(coef) / problem.C[p] + _EXACT_GAP))
            copies[support] = np.maximum(copies[support], own)
        return _Exact(found, int(copies.sum()))


def given_start(init: Any, n_features: int) -> Matrix:
    """Return the user's own vectors, or say what is wrong with them."""
    try:
        given = np.array(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init={init!r} must be a table of numbers.") from error
    if not np.isfinite(given).all():
        raise ValueError("init holds values that are not finite; give other vectors.")
    if given.ndim != 2 or given.shape[1] != n_features or not len(given):
        raise ValueError(
            f"init must be 'kmeans', 'random', 'reduced_set', or vectors of {n_features} features, "
            f"but has shape {given.shape}."
        )
    return given


def _sample(problem: Problem, size: int, *, always: bool = False) -> IndexArray | None:
    """Return rows to begin with where there are many, some of every class; None for all."""
    if problem.n <= (size if always else 2 * size):
        return None
    n_classes = len(problem.table)
    each = max(1, min(_LEAST_OF_A_CLASS, size // n_classes))
    of_classes = [np.flatnonzero(problem.code == c)[:each] for c in range(n_classes)]
    chosen = np.concatenate(of_classes)
    # Rows come in the order of a hash, so that the first ones are a sample.
    others = np.setdiff1d(np.arange(size), chosen)
    return np.sort(np.concatenate([chosen, others[: max(0, size - len(chosen))]]))


def _ended(found: Found, stop: Stop) -> Found:
    """Return what was found, with another reason for its end."""
    return replace(found, certificate=replace(found.certificate, stopped=stop.reason), stop=stop)


def _after(first: Found, found: Found) -> Found:
    """Return what was found, with the cost of the search on a sample before it."""
    before, after = first.certificate, found.certificate
    cost = {name: getattr(before, name) + getattr(after, name) for name in ("n_kernel", "seconds")}
    return replace(found, certificate=replace(after, **cost))


# All problems together.


def _joined(
    problem: Problem, groups: list[list[int]], found: Sequence[Found]
) -> tuple[Matrix, Matrix, NDArray[np.float64]]:
    """Return vectors, coefficients and biases of the machines of all problems."""
    vectors = np.concatenate([each.vectors for each in found])
    coef = np.zeros((len(vectors), problem.n_problems))
    intercept = np.zeros(problem.n_problems)
    first = 0
    for group, each in zip(groups, found, strict=True):
        where = slice(first, first + len(each.vectors))
        coef[where, group] = each.marginal.beta
        intercept[group] = each.marginal.intercept
        first = where.stop
    return vectors, coef, intercept


def _accuracy_curve(
    problem: Problem, groups: list[list[int]], curves: list[list[Found]]
) -> dict[str, NDArray[Any]]:
    """Return what each number of vectors is good for."""
    lines = []
    for s in range(max(len(curve) for curve in curves)):
        found = [curve[min(s, len(curve) - 1)] for curve in curves]
        vectors, coef, intercept = _joined(problem, groups, found)
        scores = Expansion(problem.kernel, vectors, coef, intercept).values(problem.rows)
        codes = np.arange(len(problem.table))
        answer = winners(codes, scores[:, 0] if scores.shape[1] == 1 else scores)
        right = float(problem.weight[answer == problem.code].sum() / problem.weight.sum())
        lines.append((len(vectors), right, sum(each.certificate.primal for each in found)))
    n_vectors, accuracy, W = zip(*lines, strict=True)
    return {
        "n_vectors": np.array(n_vectors),
        "training_accuracy": np.array(accuracy),
        "W": np.array(W),
    }


def _summary(curves: list[list[Found]]) -> tuple[Certificate, Stop]:
    """Return the certificate of all problems, and how the search for them ended."""
    last = [curve[-1] for curve in curves]
    every = [found for curve in curves for found in curve]
    primal = sum(found.certificate.primal for found in last)
    dual = sum(found.certificate.dual for found in last)
    ended = [found.stop for found in every if found.stop.kind.by_user]
    short = ended or [found.stop for found in every if not found.stop.converged]
    stop = short[0] if short else last[0].stop
    sums = {
        name: sum(getattr(found.certificate, name) for found in every)
        for name in ("n_iter", "n_passes", "n_kernel", "seconds")
    }
    certificate = replace(
        last[-1].certificate,
        primal=primal,
        dual=dual,
        gap=relative_gap(primal, dual),
        n_vectors=sum(found.certificate.n_vectors for found in last),
        stopped=stop.reason,
        **sums,
    )
    return certificate, stop
