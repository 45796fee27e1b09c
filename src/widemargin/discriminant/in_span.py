"""Max-margin directions inside the span of a few vectors: all rows, all problems, all directions.

The first directions of all problems are a span fit (``span``), which chooses the vectors Z; the
later ones are span fits on the same vectors, w orthogonal to the earlier directions. K(X, Z) is
computed once and serves everything, in the fit as in `transform`.

Functions are coefficients β of the vectors, with inner product βᵀK_zβ'. A constraint on w = Σβφ(z)
is a normal n with nᵀβ = 0: n = K_z u for a direction orthogonal to u, and n = Σ s k_z(x) u(x) over
the rows for one that is uncorrelated with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.discriminant.directions import Direction, error_of, varies
from widemargin.loop import Limits, Result, run
from widemargin.progress import Report
from widemargin.span import Problems, SpanFit, SpanState, Strategy, span_fit
from widemargin.span.basis import Basis

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Relative gap of the fit that only chooses the vectors.
_CHOICE_TOL = 1e-2


class InSpan:
    """Directions in the span of vectors that all problems share.

    Parameters
    ----------
    points : Points
        The rows.
    constraint : {"orthogonal", "uncorrelated"}
        What directions have to do with each other.
    strategy : Strategy
        Where vectors come from.
    max_vectors : int or None
        Vectors at the most; None leaves it to the gain and the memory.
    tol : float
        Relative duality gap.
    max_iter : int
        Steps at the most, for each direction.
    memory : int
        Budget in bytes.
    rng : numpy.random.Generator
        For the choice of vectors.
    threads : int
        Threads of the loops.
    report : callable or None
        Told of each step.
    """

    scope = "span"

    def __init__(
        self,
        points: Points,
        *,
        constraint: str,
        strategy: Strategy,
        max_vectors: int | None,
        tol: float,
        max_iter: int,
        memory: int,
        rng: np.random.Generator,
        threads: int,
        report: Report | None,
    ) -> None:
        self.points = points
        self.constraint = constraint
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads
        self.report = report
        self._first = span_fit(
            points.rows,
            points.kernel,
            self._problems(range(points.n_problems)),
            strategy,
            limit=max_vectors,
            tol=tol,
            memory=memory,
            rng=rng,
        )
        self._latest: SpanFit | None = None
        self._n_kernel, self._n_passes = 0, 0

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
            solver, whole = self._first, len(problems) == self.points.n_problems
            if not whole:
                # The problems come one by one, but the vectors are to be good for all of them.
                solver.tol = max(self.tol, _CHOICE_TOL)
            result = run(solver, Limits(self.max_iter, deadline=deadline), self.report)
            self._latest = solver
            chosen = columns if whole else list(problems)
            rough = self._directions(solver, result, chosen, problems, earlier)
            if whole or not result.converged:
                return rough
        units = [self._units(some) for some in earlier]
        directions = np.stack([each.T for each in units]) if units[0].shape[1] else None
        solver = self._latest.again(self._problems(problems), directions, self.tol)
        result = run(solver, Limits(self.max_iter, deadline=deadline), self.report)
        self._latest = solver
        if rough is not None and not result.converged and not result.state.beta.any():
            # It was over before the first step.
            stopped = result.certificate.stopped
            return [replace(each, converged=False, stopped=stopped) for each in rough]
        return self._directions(solver, result, columns, problems, earlier)

    def _problems(self, chosen: Sequence[int]) -> Problems:
        points = self.points
        table = points.table[:, list(chosen)]
        return Problems.of(points.code, table, points.weight, points.C, self.threads)

    def _units(self, earlier: list[Vector]) -> Matrix:
        """Return coefficients of orthonormal vectors that new directions must be orthogonal to."""
        basis = self.basis
        coef = np.array(earlier).reshape(len(earlier), basis.size).T
        if not coef.size:
            return coef
        assert self._latest is not None
        if self.constraint == "orthogonal":
            normals = basis.gram @ coef
        else:
            normals = self._latest.descent.moments(coef)
        orthonormal, _ = np.linalg.qr(basis.whitened(normals))
        return basis.coefficients(orthonormal)

    def _directions(
        self,
        solver: SpanFit,
        result: Result[SpanState],
        columns: Sequence[int],
        problems: Sequence[int],
        earlier: list[list[Vector]],
    ) -> list[Direction[Vector]]:
        """Return the machines' w as unit directions."""
        basis, state = solver.basis, result.state
        scores = solver.scores()
        n_kernel = result.certificate.n_kernel - self._n_kernel
        n_passes = result.certificate.n_passes - self._n_passes
        self._n_kernel, self._n_passes = result.certificate.n_kernel, result.certificate.n_passes
        # What the precision of kernel values may hide belongs to the gap.
        hidden = (state.rounding or 0.0) / max(float(state.primal.sum()), np.finfo(float).tiny)
        found = []
        for i, (column, p) in enumerate(zip(columns, problems, strict=True)):
            beta, bias = state.beta[:-1, column], float(state.beta[-1, column])
            units = self._units(earlier[i])
            for _ in range(2 if units.size else 0):
                # Once more for the last digits.
                beta = beta - units @ (units.T @ (basis.gram @ beta))
            norm = float(np.sqrt(max(0.0, float(beta @ basis.gram @ beta))))
            scale = 1.0 / norm if norm > 0 else 0.0
            direction = Direction(
                p,
                beta * scale,
                norm,
                bias * scale,
                error_of(self.points, p, scores[:, column]),
                float(state.primal[column]),
                float(state.dual[column] - hidden * state.primal[column]),
                n_vectors=basis.size,
                varies=varies(scores[:, column]),
                stopped=result.certificate.stopped,
                converged=result.converged,
            )
            if not i:
                direction = replace(direction, n_kernel=n_kernel, n_passes=n_passes)
            found.append(direction)
        return found
