"""Functions on the training rows, for finders that have all kernel values at hand.

A function x ↦ Σ_i a_i k(x_i, x) is kept as its coefficients a and its values K a on the rows: inner
products of two functions are then inner products of vectors, aᵀ(K a'), and nothing has to be
computed twice (section 3.2 of MMDA: W_rᵀW_r and W_rᵀXY grow by a row a direction).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.directions.rounds import Direction, class_means, how_it_ended, unit_direction
from widemargin.loop import Deadline, Stop, relative_gap
from widemargin.problem import Problem
from widemargin.span.basis import Basis, Vectors, kernel_matrix
from widemargin.threads import ordered_map

# A function whose squared norm falls to this share of itself without its part in the span of others
# lies in that span.
_NOTHING_LEFT = 1e-20
# Σ|a| max|f| over ‖f‖² from which an expansion is long.
_LONG = 1e4
# The squared distance from the span of others, relative to the largest k(x, x), below which a row
# depends on them.
_DEPENDENT = 1e-11


@dataclass(frozen=True)
class OnRows:
    """A function in the span of the rows.

    Attributes
    ----------
    coef : ndarray of shape (n,)
        Coefficient of each row.
    values : ndarray of shape (n,)
        Its value on each row.
    """

    coef: Vector
    values: Vector

    @property
    def norm2(self) -> float:
        """Squared norm in the feature space."""
        return max(0.0, float(self.coef @ self.values))

    def __mul__(self, factor: float) -> OnRows:
        """Return a multiple."""
        return OnRows(factor * self.coef, factor * self.values)

    def minus(self, others: Sequence[OnRows]) -> OnRows:
        """Return what is left without the parts along orthonormal functions."""
        coef, values = self.coef, self.values
        for other in others:
            part = float(other.values @ coef)
            coef = coef - part * other.coef
            values = values - part * other.values
        return OnRows(coef, values)


def orthonormal(functions: Sequence[OnRows]) -> list[OnRows]:
    """Return orthonormal functions with the same span (Gram and Schmidt, twice)."""
    basis: list[OnRows] = []
    for function in functions:
        left = function.minus(basis).minus(basis)
        if left.norm2 > _NOTHING_LEFT * function.norm2:
            basis.append(left * (1.0 / np.sqrt(left.norm2)))
    return basis


def shortened(function: OnRows, problem: Problem, applied: Callable[[Vector], Vector]) -> OnRows:
    """Return the function on independent rows, if rounding could show in its expansion.

    Where rows depend on each other in the feature space (the linear kernel of more rows than
    features, or equal features), long coefficients may stand for a short function: what they
    add up to is then lost in their rounding. On independent rows there are no such coefficients.
    """
    index = np.flatnonzero(function.coef)
    largest = float(np.abs(function.values).max(initial=0.0))
    length = float(np.abs(function.coef).sum())
    if not length * largest > _LONG * max(function.norm2, np.finfo(float).tiny):
        return function
    rows = Vectors(problem.rows.take(index), index)
    basis = Basis.of(problem.kernel, rows, _DEPENDENT, problem.rows)
    assert basis.vectors.index is not None
    if basis.size == len(index):
        return function
    coef = np.zeros(len(function.coef))
    coordinates = basis.whitened(function.values[basis.vectors.index, None])
    coef[basis.vectors.index] = basis.coefficients(coordinates)[:, 0]
    return OnRows(coef, applied(coef))


def stacked(functions: Sequence[OnRows], n: int) -> tuple[Matrix, Matrix]:
    """Return coefficients and values of functions as the columns of two matrices."""
    coef = np.array([function.coef for function in functions]).reshape(-1, n).T
    return coef, np.array([function.values for function in functions]).reshape(-1, n).T


def unrelated_to(
    directions: Sequence[OnRows],
    weight: Vector,
    constraint: str,
    applied: Callable[[Vector], Vector],
) -> list[OnRows]:
    """Return the functions that a new direction must be orthogonal to.

    Parameters
    ----------
    directions : sequence of OnRows
        Earlier directions u.
    weight : ndarray of shape (n,)
        Weights of the rows.
    constraint : {"orthogonal", "uncorrelated"}
        "orthogonal": u itself; "uncorrelated": Σ s uᵀφ(x) φ(x), so that the sum of s uᵀφ(x) wᵀφ(x)
        over the rows vanishes (the conclusion of MMDA-CVM).
    applied : callable
        Returns K a.
    """
    if constraint == "orthogonal":
        return list(directions)
    functions = []
    for direction in directions:
        coef = weight * direction.values
        functions.append(OnRows(coef, applied(coef)))
    return functions


@dataclass(frozen=True)
class Machine:
    """A machine in the span of the rows.

    Attributes
    ----------
    function : OnRows
        x ↦ wᵀφ(x).
    bias : float
        b.
    objectives : tuple of float
        Primal and dual.
    stop : Stop
        How its solver ended.
    """

    function: OnRows
    bias: float
    objectives: tuple[float, float]
    stop: Stop

    def direction(self, problem: Problem, p: int) -> Direction[OnRows]:
        """Return w as a unit direction."""
        function, norm = self.function, float(np.sqrt(self.function.norm2))
        decision = function.values + self.bias
        n_vectors = int(np.count_nonzero(function.coef))
        known: dict[str, Any] = {"n_vectors": n_vectors, "stop": self.stop}
        return unit_direction(
            problem, p, function, norm, self.bias, decision, self.objectives, **known
        )


class MatrixFinder(ABC):
    """Directions on the matrix of all kernel values, one problem a thread.

    Parameters
    ----------
    problem : Problem
        The rows.
    loss : {"squared_hinge", "hinge"}
        Of the machines.
    constraint : {"orthogonal", "uncorrelated"}
        What directions have to do with each other.
    tol : float
        Relative duality gap.
    threads : int
        Problems that are solved at a time.
    fit_intercept : bool, default=True
        Whether machines have a bias; without one, hyperplanes go through the origin (footnote 4 of
        MMDA).
    """

    scope = "full"

    def __init__(
        self,
        problem: Problem,
        loss: str,
        constraint: str,
        tol: float,
        threads: int,
        fit_intercept: bool = True,
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.constraint = constraint
        self.tol = tol
        self.threads = threads
        self.fit_intercept = fit_intercept
        everything = np.arange(problem.n)
        vectors = Vectors(problem.rows.take(everything), everything)
        self.K = kernel_matrix(problem.kernel, problem.rows, vectors, vectors)
        self._n_kernel = self.K.size

    def find(
        self, problems: Sequence[int], earlier: list[list[OnRows]], deadline: Deadline
    ) -> list[Direction[OnRows]]:
        """Return the best direction of each problem."""
        spent, self._n_kernel = self._n_kernel, 0

        def find_one(i: int) -> Direction[OnRows]:
            weight = self.problem.weight
            against = unrelated_to(earlier[i], weight, self.constraint, self.K.__matmul__)
            machine = self.solve(self.problem.sign(problems[i]), against, deadline)
            function = shortened(machine.function, self.problem, self.K.__matmul__)
            # Once more for the last digits.
            function = function.minus(orthonormal(against))
            return replace(machine, function=function).direction(self.problem, problems[i])

        every = range(len(problems))
        found = list(ordered_map(find_one, every, self.threads, deadline.interrupt))
        return [replace(found[0], n_kernel=spent), *found[1:]]

    def class_means(self, sign: Vector) -> Vector:
        """Return the best dual variables of the squared hinge along the class means' difference."""
        alpha = class_means(sign, self.problem.C[0] * self.problem.weight)
        beta = sign * alpha
        square = float(beta @ (self.K @ beta)) + float(self.problem.ridge(0) @ (alpha * alpha))
        return alpha * (float(alpha.sum()) / square)

    def stop(self, primal: float, dual: float, deadline: Deadline) -> Stop:
        """Return how the solver of a machine ended."""
        return how_it_ended(relative_gap(primal, dual), 2 * max(self.tol, 1e-9), deadline)

    @abstractmethod
    def solve(self, sign: Vector, against: list[OnRows], deadline: Deadline) -> Machine:
        """Return the machine of some labels whose w is orthogonal to some functions."""
