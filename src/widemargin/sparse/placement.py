"""Vectors of machines, placed where they serve them best: in which stages, and on which rows.

The engine of the sparse machines. It takes the search for the vectors of W over a sample of the
rows first where they are many, and lets vectors join where they are to grow. ``vector_start`` says
how many there are and where they start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.device import moments, to_numpy
from widemargin.expansion import Expansion
from widemargin.loop import Deadline, Ended, Stop, signed_gap
from widemargin.problem import Problem, winners
from widemargin.rows import Rows
from widemargin.sparse.sparse_options import FittedSparse, SparseOptions
from widemargin.sparse.vector_search import Found, insisted, minimise
from widemargin.sparse.vector_start import first_vectors, sample_of

# Sets of newcomers of which the best joins.
_TRIES = 5
# Gap of a machine that is solved.
_SOLVED_GAP = 1e-6


def fit_sparse(problem: Problem, options: SparseOptions) -> FittedSparse:
    """Place the vectors of all problems, which have one C."""
    everything = list(range(problem.n_problems))
    groups = [everything] if options.share_vectors else [[p] for p in everything]
    rng = options.rng
    curves: list[list[Found]] = []
    for g, group in enumerate(groups):
        until = replace(options, deadline=options.deadline.part(1.0 / (len(groups) - g)))
        placement = _Placement(problem.columns(group), until, rng)
        # After an interrupt the other problems get a machine where their vectors start.
        asked = [found.stop for curve in curves for found in curve if found.stop.kind.by_user]
        curves.append(placement.curve(asked[0] if asked else None))
    last = [curve[-1] for curve in curves]
    vectors, coef, intercept = _joined(last)
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
        None if options.grow is None else _growth_curve(problem, curves, options),
    )


class _Placement:
    """Vectors of one problem, or of several that share them."""

    def __init__(self, problem: Problem, options: SparseOptions, rng: np.random.Generator) -> None:
        self.problem = problem
        self.options = options
        self.rng = rng
        self.sample: Problem | None = None
        if problem.n > 2 * options.sizes.first_rows:
            self.sample = sample_of(problem, options.sizes.first_rows)
        found = moments(problem.rows, problem.weight)
        self.length = float(np.sqrt(found.variance.mean()))

    def curve(self, enough: Stop | None) -> list[Found]:
        """Return the vectors after each stage of growth.

        `enough` is there if somebody has asked to end: vectors then stay where they start.
        """
        options, deadline = self.options, self.options.deadline
        start = first_vectors(self.problem, options, self.rng)
        sizes = _stages(len(start), options.grow if enough is None else None)
        curve: list[Found] = []
        for s, size in enumerate(sizes):
            if curve and (enough is not None or deadline.passed):
                # There is no time to solve the machine of more vectors: it would be a worse one.
                curve[-1] = _ended(curve[-1], enough or deadline.stop)
                break
            Z = self._grown(curve[-1], size) if curve else start[:size]
            curve.append(self._with_machine(self._placed(Z, enough, len(sizes) - s)))
            if enough is None and curve[-1].stop.kind.by_user:
                enough = curve[-1].stop
        return curve

    def _with_machine(self, found: Found) -> Found:
        """Return the vectors with the machine on them."""
        deadline, make = self.options.deadline, self.options.machine
        if make is not None:
            function = make(self.problem, deadline)
            machine = insisted(deadline, lambda: function(found.vectors))
            found = replace(found, marginal=machine)
        gap = signed_gap(found.marginal.value, found.marginal.dual)
        cut = deadline.interrupted or (deadline.passed and gap > _SOLVED_GAP)
        return _ended(found, deadline.stop) if cut and found.stop.converged else found

    def _placed(self, Z: Matrix, enough: Stop | None, stages_left: int) -> Found:
        """Return vectors moved from Z: on a sample first, where there are many rows."""
        options, deadline = self.options, self.options.deadline
        if not options.move:
            found = self._searched(self.problem, Z, deadline, options.tol, 0)
            certificate = replace(found.certificate, n_iter=1, n_passes=1)
            return _ended(
                replace(found, certificate=certificate),
                Stop(Ended.SOLVED, "vectors are not moved"),
            )
        first: Found | None = None
        if self.sample is not None and enough is None:
            # Half of the time of this stage.
            until = deadline.part(0.5 / stages_left)
            tol = max(options.tol, options.sizes.rough)
            first = self._searched(self.sample, Z, until, tol, options.max_iter)
            Z = first.vectors
            enough = first.stop if first.stop.kind.by_user else None
        until = deadline.part(1.0 / (stages_left if first is None else 2 * stages_left - 1))
        steps = options.max_iter if enough is None else 0
        found = self._searched(self.problem, Z, until, options.tol, steps)
        if first is not None:
            found = _after(first, found)
        return found if enough is None else _ended(found, enough)

    def _searched(
        self, problem: Problem, Z: Matrix, deadline: Deadline, tol: float, max_iter: int
    ) -> Found:
        """Return vectors moved from Z for the sake of some rows."""
        return minimise(
            self.options.function(problem, deadline),
            Z,
            max_iter=max_iter,
            deadline=deadline,
            tol=tol,
            report=self.options.report,
            length=self.length,
        )

    def _grown(self, last: Found, size: int) -> Matrix:
        """Return the vectors with the best of several sets of newcomers.

        A vector that the machine has no use for where it is gets a coefficient of zero, and with it
        a gradient of zero: it would stay there.
        """
        missing, deadline = size - len(last.vectors), self.options.deadline
        felt = self._felt(last)
        tries = []
        for _ in range(_TRIES):
            new = _newcomers(self.problem, felt, missing, self.rng)
            tries.append(np.concatenate([last.vectors, new]))
        judge = self.options.function(self.sample or self.problem, deadline)
        best, least = tries[0], np.inf
        with deadline.ends_on_interrupt():
            for Z in tries:
                if deadline.passed:
                    break
                value = judge(Z).value
                if value < least:
                    best, least = Z, value
        return best

    def _felt(self, last: Found) -> Vector:
        """Return how much rows suffer from the machine so far, as weights that are never zero."""
        problem = self.problem
        scores = _values(Expansion(problem.kernel, *_joined([last])), problem.rows)
        felt = self.options.function(problem, self.options.deadline).losses(scores)
        # Rows that are content may join where too few others are left.
        return felt + 1e-9 * problem.weight * max(1.0, float(felt.max()))


def _values(machines: Expansion, rows: Rows) -> Matrix:
    """Return the scores of rows, wherever they are."""
    if rows.device is None:
        return machines.values(rows)
    return to_numpy(machines.values_there(rows))


def _stages(n_vectors: int, grow: str | None) -> list[int]:
    """Return the numbers of vectors to pass through, the last being `n_vectors`."""
    if grow is None:
        return [n_vectors]
    if grow == "one":
        return list(range(1, n_vectors + 1))
    powers = [2**k for k in range(n_vectors.bit_length()) if 2**k < n_vectors]
    return [*powers, n_vectors]


def _newcomers(problem: Problem, felt: Vector, count: int, rng: np.random.Generator) -> Matrix:
    """Return rows, drawn by how much they suffer from the machine so far."""
    index = rng.choice(problem.n, min(count, problem.n), replace=False, p=felt / felt.sum())
    return problem.rows.take(np.sort(index)).astype(np.float64)


def _ended(found: Found, stop: Stop) -> Found:
    """Return what was found, with another reason for its end."""
    return replace(found, certificate=replace(found.certificate, stopped=stop.reason), stop=stop)


def _after(first: Found, found: Found) -> Found:
    """Return what was found, with the cost of the search on a sample before it."""
    before, after = first.certificate, found.certificate
    cost = {name: getattr(before, name) + getattr(after, name) for name in ("n_kernel", "seconds")}
    return replace(found, certificate=replace(after, **cost))


# All problems together.


def _joined(found: Sequence[Found]) -> tuple[Matrix, Matrix, Vector]:
    """Return vectors, coefficients and biases of the machines of all problems."""
    vectors = np.concatenate([each.vectors for each in found])
    coef = block_diag(*[each.marginal.beta for each in found])
    return vectors, coef, np.concatenate([each.marginal.intercept for each in found])


def _growth_curve(
    problem: Problem, curves: list[list[Found]], options: SparseOptions
) -> dict[str, NDArray[Any]]:
    """Return what each number of vectors is good for."""
    lines = []
    for s in range(max(len(curve) for curve in curves)):
        found = [curve[min(s, len(curve) - 1)] for curve in curves]
        machines = Expansion(problem.kernel, *_joined(found))
        line: dict[str, float] = {"n_vectors": len(machines.vectors)}
        if options.judge is not None:
            name, judged = options.judge
            line[name] = judged(problem, _values(machines, problem.rows))
        lines.append(line | {"W": sum(each.certificate.primal for each in found)})
    return {name: np.array([line[name] for line in lines]) for name in lines[0]}


def training_accuracy(problem: Problem, scores: Matrix) -> float:
    """Return the share of the rows' weight that decision values get right."""
    codes = np.arange(len(problem.table))
    answer = winners(codes, scores[:, 0] if scores.shape[1] == 1 else scores)
    return float(problem.weight[answer == problem.code].sum() / problem.weight.sum())


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
        gap=signed_gap(primal, dual),
        n_vectors=sum(found.certificate.n_vectors for found in last),
        stopped=stop.reason,
        **sums,
    )
    return certificate, stop
