"""Max-margin directions inside the span of a few vectors: all rows, all problems, all directions.

The first directions of all problems are a span fit (``span``), which chooses the vectors Z; the
later ones are span fits on the same vectors, w orthogonal to the earlier directions. K(X, Z) is
computed once and serves everything, in the fit as in `transform`.

Functions are coefficients β of the vectors, with inner product βᵀK_zβ'. A constraint on w = Σβφ(z)
is a normal n with nᵀβ = 0: n = K_z u for a direction orthogonal to u, and n = Σ s k_z(x) u(x) over
the rows for one that is uncorrelated with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.directions.rounds import Direction, apart, of_unit_length
from widemargin.loop import Deadline, Limits, PlaceLost, Result, Stop, run
from widemargin.problem import Problem
from widemargin.span import Basis, SpanFit, SpanOptions, SpanState, span_solver
from widemargin.span.shard import Outcome

# Relative gap of the fit that only chooses the vectors.
_CHOICE_TOL = 1e-2


class SpanFinder:
    """Directions in the span of vectors that all problems share.

    Parameters
    ----------
    problem : Problem
        The rows.
    constraint : {"orthogonal", "uncorrelated"}
        What directions have to do with each other.
    options : SpanOptions
        How machines are fitted, and where vectors come from.
    begin : callable, default=None
        Returns the solver of all problems, where the rows are elsewhere; `problem` has none then,
        and later those that were drawn.
    scope : {"span", "full"}, default="span"
        Whether there are directions outside of the span.
    """

    def __init__(
        self,
        problem: Problem,
        constraint: str,
        options: SpanOptions,
        begin: Callable[[SpanOptions], SpanFit] | None = None,
        scope: str = "span",
    ) -> None:
        self.problem = problem
        self.constraint = constraint
        self.options = options
        self.scope = scope
        self._begin = partial(span_solver, problem) if begin is None else begin
        self._latest: SpanFit | None = None
        self._n_kernel, self._n_passes, self._room = 0, 0, 0

    @property
    def basis(self) -> Basis:
        """The vectors."""
        assert self._latest is not None
        return self._latest.basis

    def find(
        self, problems: Sequence[int], earlier: list[list[Vector]], deadline: Deadline
    ) -> list[Direction[Vector]]:
        """Return the best direction of each problem."""
        columns = list(range(len(problems)))
        rough: list[Direction[Vector]] | None = None
        if self._latest is None:
            solver = self._begin(self.options)
            self._room = solver.max_vectors
            together = len(problems) == self.problem.n_problems
            if not together:
                # The problems come one by one, but the vectors are to be good for all of them.
                solver.tol = max(self.options.tol, _CHOICE_TOL)
            result = self._with_a_step(solver, self._run(solver, deadline), deadline)
            self._latest, self.problem = solver, solver.problem
            chosen = columns if together else list(problems)
            none = [self._units(found) for found in earlier]
            rough = self._directions(solver, result, chosen, problems, none)
            if together or not result.converged:
                return self._with_costs(rough, result)
        units = [self._units(found) for found in earlier]
        directions = np.stack([each.T for each in units]) if units[0].shape[1] else None
        chosen_problem = self.problem.columns(list(problems))
        solver = self._latest.again(chosen_problem, directions, self.options.tol)
        result = self._run(solver, deadline)
        self._latest = solver
        found = self._directions(solver, result, columns, problems, units)
        if rough is not None and not result.converged and not result.state.beta.any():
            # It was over before the first step.
            found = [replace(each, stop=result.stop) for each in rough]
        return self._with_costs(found, result)

    def _run(self, solver: SpanFit, deadline: Deadline) -> Result[SpanState]:
        return run(solver, Limits(self.options.max_iter, deadline), self.options.report)

    def _with_a_step(
        self, solver: SpanFit, result: Result[SpanState], deadline: Deadline
    ) -> Result[SpanState]:
        """Return the result after a step, if the time was over before the first one."""
        if result.converged or result.state.beta.any():
            return result
        with deadline.ends_on_interrupt():
            result = replace(result, state=solver.finish(solver.step(result.state)))
        return result

    def _units(self, earlier: list[Vector]) -> Matrix:
        """Return coefficients of orthonormal vectors that new directions must be orthogonal to."""
        basis = self.basis
        coef = np.array(earlier).reshape(len(earlier), basis.size).T
        if not coef.size:
            return coef
        assert self._latest is not None
        orthogonal = self.constraint == "orthogonal"
        normals = basis.gram_here @ coef if orthogonal else self._latest.descent.moments(coef)
        orthonormal, _ = np.linalg.qr(basis.whitened(normals))
        return basis.coefficients(orthonormal)

    def _stop(self, stop: Stop) -> Stop:
        """Return how a fit ended, and whether there was room for all vectors."""
        assert self._latest is not None
        wanted = min(self._latest.shards.n, self.options.max_vectors or 0)
        if self._room >= wanted:
            return stop
        room = f"memory leaves room for {self._room:,} of {wanted:,} vectors"
        return replace(stop, reason=f"{stop.reason}; {room}")

    def _directions(
        self,
        solver: SpanFit,
        result: Result[SpanState],
        columns: Sequence[int],
        problems: Sequence[int],
        units: Sequence[Matrix],
    ) -> list[Direction[Vector]]:
        """Return the machines' w as unit directions, orthogonal to units."""
        basis, state, stop = solver.basis, result.state, self._stop(result.stop)
        # What the precision of kernel values may hide belongs to the gap.
        hidden = (state.rounding or 0.0) / max(float(state.primal.sum()), np.finfo(float).tiny)
        outcome, gram = _outcome(solver), basis.gram_here
        found = []
        for unit, column, p in zip(units, columns, problems, strict=True):
            beta, bias = state.beta[:-1, column], float(state.beta[-1, column])
            for _ in range(2):
                # Once more for the last digits.
                beta = beta - unit @ (unit.T @ (gram @ beta))
            norm = float(np.sqrt(max(0.0, float(beta @ gram @ beta))))
            primal, dual = float(state.primal[column]), float(state.dual[column])
            known: dict[str, Any] = {"n_vectors": basis.size, "stop": stop}
            known |= {"error": float("nan"), "varies": True}
            if outcome is not None:
                known["error"] = float(outcome.wrong[column] / outcome.weight)
                known["varies"] = apart(outcome.least[column], outcome.largest[column])
            objectives = (primal, dual - hidden * primal)
            found.append(of_unit_length(p, beta, norm, bias, objectives, **known))
        return found

    def _with_costs(
        self, found: list[Direction[Vector]], result: Result[SpanState]
    ) -> list[Direction[Vector]]:
        """Return directions, the first with what all have cost since the last ones."""
        n_kernel = result.certificate.n_kernel - self._n_kernel
        n_passes = result.certificate.n_passes - self._n_passes
        self._n_kernel, self._n_passes = result.certificate.n_kernel, result.certificate.n_passes
        return [replace(found[0], n_kernel=n_kernel, n_passes=n_passes), *found[1:]]


def _outcome(solver: SpanFit) -> Outcome | None:
    """Return how the scores agree with the labels, if the rows can still be reached."""
    try:
        return solver.shards.outcome()
    except PlaceLost:
        return None
