"""Pre-images: one vector whose image is nearest to a machine, and many, one after another.

Reduced sets (Burges 1996; Schölkopf and Smola, "Learning with kernels", chapter 18; SLMC, section
1). A machine w = Σ_i a_i φ(x_i) is replaced by Σ_j β_j φ(z_j) with few vectors, such that

    ‖w − Σ_j β_j φ(z_j)‖²                                                                       (4)

is small. Greedily: with the residual r = w − Σ β φ(z) of the vectors until now, the next one is

    z  =  argmax  ⟨r, φ(z)⟩² / k(z, z),

what is left of ‖r‖² when β φ(z) is taken away with the best β. For the Gaussian kernel
k(z, z) = 1 and the gradient of ⟨r, φ(z)⟩ vanishes where

    z  =  Σ_i a_i k(x_i, z) x_i / Σ_i a_i k(x_i, z),

r's own expansion in place of w's: a fixed point. The step to it points uphill in ⟨r, φ(z)⟩² also
where some a are negative, but it may be too long, even without end where the denominator, which is
⟨r, φ(z)⟩, vanishes. It is halved until it does climb. Other kernels, and the last digits, are left
to the search that moves many vectors. After each vector all coefficients are computed again,

    β  =  K_z⁻¹ K_zx a,                                                                        (47)

by a Cholesky factor that grows by a row. With its L, and q = L⁻¹ K_zx a, (4) is ‖w‖² − Σ q².

`Distance` is half of (4) with the best β, as a marginal function of Z: to move all vectors together
at the end, as Burges does, and with r in place of w to move one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from widemargin.arrays import Matrix, Vector
from widemargin.kernels import RBF, Kernel
from widemargin.rows import as_rows
from widemargin.sparse.marginal import Marginal, NoSpan, VectorSpan
from widemargin.sparse.vector_search import minimise

# Steps shorter than this share of the kernel's width are none.
_TOL = 1e-9
# Relative change of ⟨r, φ(z)⟩² at which the search for a vector ends from each start.
_ROUGH_TOL = 1e-3
# And from the best end.
_FINE_TOL = 1e-12
# Relative change of (4) at which the search for all of them ends.
_ALL_VECTORS_TOL = 1e-7
# A vector whose image has less than this share outside the span of the others says nothing new.
_INDEPENDENT = 1e-10
# Relative squared distance that is rounding.
_NOTHING = 1e-14
# Relative squared length below zero that is no rounding any more.
_NEGATIVE = 1e-10
# Rows of a piece of the kernel matrix of the vectors of a machine.
_CHUNK = 1024
# Bytes for blocks of the vectors of a machine.
_MEMORY = 1 << 28


@dataclass(frozen=True)
class Combination:
    """A point Σ_i a_i φ(x_i) of the feature space.

    Attributes
    ----------
    kernel : Kernel
        The kernel, with a gradient.
    vectors : ndarray of shape (m, d)
        x.
    coef : ndarray of shape (m,)
        a.
    """

    kernel: Kernel
    vectors: Matrix
    coef: Vector

    def terms(self, Z: Matrix) -> Matrix:
        """Return a_i k(x_i, z_j)."""
        terms: Matrix = self.coef[:, None] * self.kernel.block(self.vectors, Z)
        return terms

    def onto(self, Z: Matrix) -> Vector:
        """Return the products with φ(z_j), some at a time."""
        parts = [
            self.terms(Z[first : first + _CHUNK]).sum(axis=0) for first in range(0, len(Z), _CHUNK)
        ]
        return np.concatenate(parts)

    def squares(self) -> tuple[Vector, float, float]:
        """Return the products with all φ(x_i), the squared length, and what it is made of."""
        with np.errstate(over="ignore", invalid="ignore"):
            onto = self.onto(self.vectors)
            return onto, float(self.coef @ onto), float(np.abs(self.coef) @ np.abs(onto))

    @property
    def spread(self) -> float:
        """The standard deviation of x, over all features."""
        return float(np.sqrt(self.vectors.var(axis=0).mean()))


@dataclass(frozen=True)
class Reduced:
    """A machine with few vectors.

    Attributes
    ----------
    vectors : ndarray of shape (t, d)
        z.
    coef : ndarray of shape (t,)
        β.
    distance : ndarray
        (4) after each vector, and at last after all have moved, relative to ‖w‖²; it never rises.
        One zero if nothing was reduced.
    n_iter : int
        Steps of all searches.
    """

    vectors: Matrix
    coef: Vector
    distance: Vector
    n_iter: int


class Distance(VectorSpan):
    """Half of (4) with the best coefficients, and its gradient: a marginal function.

    Parameters
    ----------
    machine : Combination
        w.
    square : float
        ‖w‖²; with zero in its place, the value is lower by half of it.
    """

    def __init__(self, machine: Combination, square: float) -> None:
        super().__init__(as_rows(machine.vectors, memory=_MEMORY, threads=1), machine.kernel)
        self.coef = machine.coef
        self.square = square

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return the value and the gradient at Z. There is nothing to start from."""
        space = self.whitened(Z)
        along = space.features.sums(self.coef[None])[0]
        beta = (space.root @ along)[:, None]
        value = 0.5 * (self.square - float(along @ along))
        gradient = self.gradient(Z, beta, self.coef[:, None], space=space)
        return Marginal(value, gradient, beta, np.zeros(1), value)


def pre_image(target: Combination, starts: Matrix, max_iter: int = 100) -> tuple[Vector, int]:
    """Return z of the largest ⟨target, φ(z)⟩² / k(z, z) that is found, and the steps it took.

    Parameters
    ----------
    target : Combination
        The point to come near to.
    starts : ndarray of shape (s, d)
        Where to start. The answer is as good as the best of them at least.
    max_iter : int, default=100
        Steps at the most from each of them.
    """
    if isinstance(target.kernel, RBF):
        ends, n_iter = _fixed_points(target, starts, max_iter)
    else:
        found = [_climbed(target, z, max_iter, _ROUGH_TOL) for z in starts]
        ends, n_iter = np.array([z for z, _ in found]), sum(steps for _, steps in found)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = target.onto(ends) ** 2 / target.kernel.diagonal(ends)
    best = ends[int(np.nan_to_num(value, posinf=0.0).argmax())]
    z, steps = _climbed(target, best, max_iter, _FINE_TOL)
    return z, n_iter + steps


def _climbed(target: Combination, z: Vector, max_iter: int, tol: float) -> tuple[Vector, int]:
    """Return where the search for one vector goes to, and its steps."""
    try:
        found = minimise(
            Distance(target, 0.0), z[None], max_iter=max_iter, tol=tol, length=target.spread
        )
    except NoSpan:
        # A kernel that is not Mercer's, at a vector where that shows.
        return z, 0
    return found.vectors[0], found.certificate.n_iter


def _fixed_points(target: Combination, starts: Matrix, max_iter: int) -> tuple[Matrix, int]:
    """Return where the fixed-point iteration goes to from each start, with the steps."""
    Z, X, share = starts.copy(), target.vectors, np.ones(len(starts))
    width = 1.0 / np.sqrt(target.kernel.gamma)  # type: ignore[attr-defined]
    # No step leads farther than across all vectors, whatever the denominator is.
    reach = 2.0 * float(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
    terms, n_iter = target.terms(Z), 0
    for _ in range(max_iter):
        value = terms.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = (terms.T @ X) / value[:, None] - Z
            size = np.linalg.norm(step, axis=1)
            trial = Z + step * np.minimum(share, reach / size)[:, None]
        # Not a number where the denominator vanishes: such a start stays where it is.
        moving = np.flatnonzero(np.isfinite(trial).all(axis=1) & (share * size > _TOL * width))
        if not len(moving):
            break
        n_iter += len(moving)
        values = target.terms(trial[moving])
        climbs = np.abs(values.sum(axis=0)) > np.abs(value[moving])
        share[moving] = np.where(climbs, 1.0, 0.5 * share[moving])
        Z[moving[climbs]] = trial[moving[climbs]]
        terms[:, moving[climbs]] = values[:, climbs]
    return Z, n_iter


def reduced(
    machine: Combination,
    count: int,
    rng: np.random.Generator,
    *,
    n_restarts: int = 10,
    max_iter: int = 100,
    refine: bool = True,
) -> Reduced:
    """Return a machine with at most `count` vectors that is near to another.

    Parameters
    ----------
    machine : Combination
        w. If it has no more than `count` vectors, it is returned as it is.
    count : int
        Vectors at the most; fewer if w is reproduced to rounding by fewer.
    rng : Generator
        Draws the vectors of w to start from; one start is always the best of all of them.
    n_restarts : int, default=10
        Starts for each vector.
    max_iter : int, default=100
        Steps at the most from each start.
    refine : bool, default=True
        Move all vectors together at the end.

    Raises
    ------
    ValueError
        If ‖w‖² is negative or not finite.
    """
    kernel, X = machine.kernel, machine.vectors
    if count >= len(X):
        return Reduced(X, machine.coef, np.zeros(1), 0)
    onto, square, size = machine.squares()
    if not square >= -_NEGATIVE * size or not np.isfinite(square):
        raise ValueError(
            f"The {kernel.name} kernel gives the machine a squared length of {square:g}, so that "
            "there is nothing to come near to; scale X, or use a kernel such as 'rbf'."
        )
    if square <= _NOTHING * size:
        return Reduced(X[:1], np.zeros(1), np.zeros(1), 0)
    diagonal = np.maximum(kernel.diagonal(X), np.finfo(float).tiny)
    found = Reduced(X[:0], np.zeros(0), np.ones(1), 0)
    L, across = np.zeros((count, count)), np.empty((len(X), 0))
    while len(found.vectors) < count and found.distance[-1] > _NOTHING:
        Z, t = found.vectors, len(found.vectors)
        best = X[int(((onto - across @ found.coef) ** 2 / diagonal).argmax())]
        starts = np.vstack([best, X[rng.integers(len(X), size=n_restarts - 1)]])
        coef = np.append(machine.coef, -found.coef)
        z, steps = pre_image(Combination(kernel, np.vstack([X, Z]), coef), starts, max_iter)
        for Z in (np.vstack([found.vectors, z]), np.vstack([found.vectors, best])):
            if _extend(L, kernel, Z):
                break
        else:
            break
        across = np.column_stack([across, kernel.block(X, Z[t:])])
        q = solve_triangular(L[: t + 1, : t + 1], machine.coef @ across, lower=True)
        coef = solve_triangular(L[: t + 1, : t + 1], q, lower=True, trans=1)
        last = max(0.0, found.distance[-1] - q[t] ** 2 / square)
        found = Reduced(Z, coef, np.append(found.distance, last), found.n_iter + steps)
    if not len(found.vectors):
        raise ValueError(
            f"The {kernel.name} kernel has no vector of positive length here; use another such as "
            "'rbf'."
        )
    found = replace(found, distance=found.distance[1:])
    return _refined(machine, square, found, max_iter) if refine else found


def _extend(L: Matrix, kernel: Kernel, Z: Matrix) -> bool:
    """Write the row of the last vector into the Cholesky factor, unless it says nothing new."""
    t = len(Z) - 1
    values = kernel.block(Z, Z[t:])[:, 0]
    if t:
        L[t, :t] = solve_triangular(L[:t, :t], values[:t], lower=True)
    pivot = values[t] - float(L[t, :t] @ L[t, :t])
    if not pivot > _INDEPENDENT * values[t]:
        return False
    L[t, t] = np.sqrt(pivot)
    return True


def _refined(machine: Combination, square: float, greedy: Reduced, max_iter: int) -> Reduced:
    """Return the machine after all vectors have moved, if that made it nearer."""
    try:
        found = minimise(
            Distance(machine, square),
            greedy.vectors,
            max_iter=max_iter,
            tol=_ALL_VECTORS_TOL,
            length=machine.spread,
        )
    except NoSpan:
        # A kernel that is not Mercer's, at vectors where that shows.
        return greedy
    last = max(0.0, 2.0 * found.marginal.value / square)
    if not last < greedy.distance[-1]:
        return greedy
    distance = np.append(greedy.distance, last)
    n_iter = greedy.n_iter + found.certificate.n_iter
    return Reduced(found.vectors, found.marginal.beta[:, 0], distance, n_iter)
