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
to L-BFGS. After each vector all coefficients are computed again,

    β  =  K_z⁻¹ K_zx a,                                                                        (47)

by a Cholesky factor that grows by a row. With its L, and q = L⁻¹ K_zx a, (4) is ‖w‖² − Σ q².

`Distance` is half of (4) with the best β, as a marginal function of Z: to move all vectors together
at the end, as Burges does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.linalg import solve_triangular

from widemargin.arrays import Matrix, Vector
from widemargin.kernels import RBF, Kernel
from widemargin.rows import as_rows
from widemargin.sparse.marginal import Marginal, VectorSpan
from widemargin.sparse.vector_search import minimise

# Steps shorter than this share of the kernel's width end the fixed-point iteration.
_TOL = 1e-9
# Halvings of a step that does not climb.
_HALVINGS = 20
# A vector whose image has less than this share outside the span of the others says nothing new.
_INDEPENDENT = 1e-10
# Relative squared distance that is rounding.
_NOTHING = 1e-14
# Rows of a piece of the kernel matrix of the vectors of a machine; bytes for `Distance`.
_CHUNK, _MEMORY = 1024, 1 << 28


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
        values = np.asarray(self.kernel.block(self.vectors, Z), dtype=np.float64)
        terms: Matrix = self.coef[:, None] * values
        return terms

    def onto(self, Z: Matrix) -> Vector:
        """Return the products with φ(z_j), some at a time."""
        parts = [
            self.terms(Z[first : first + _CHUNK]).sum(axis=0) for first in range(0, len(Z), _CHUNK)
        ]
        return np.concatenate(parts)


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
    n_iter = 0
    if isinstance(target.kernel, RBF):
        starts, n_iter = _fixed_points(target, starts, max_iter)
        # L-BFGS for the last digits of the best one only.
        value = np.abs(target.terms(starts).sum(axis=0))
        starts = starts[[int(value.argmax())]]
    found = [_ascended(target, start, max_iter) for start in starts]
    _, z, _ = max(found, key=lambda each: each[0])
    return z, n_iter + sum(steps for *_, steps in found)


def _fixed_points(target: Combination, starts: Matrix, max_iter: int) -> tuple[Matrix, int]:
    """Return where the fixed-point iteration goes to from each start, with the steps."""
    Z, X = starts.copy(), target.vectors
    width = 1.0 / np.sqrt(target.kernel.gamma)  # type: ignore[attr-defined]
    # No step leads farther than across all vectors, whatever the denominator is.
    reach = 2.0 * float(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
    terms = target.terms(Z)
    moving, n_iter = np.arange(len(Z)), 0
    for _ in range(max_iter):
        value = terms[:, moving].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = (terms[:, moving].T @ X) / value[:, None] - Z[moving]
            size = np.linalg.norm(step, axis=1)
            # Not a number where the denominator vanishes: such a start stays where it is.
            go = (size > _TOL * width) & np.isfinite(size)
        moving, value = moving[go], np.abs(value[go])
        step = step[go] * np.minimum(1.0, reach / size[go])[:, None]
        if not len(moving):
            break
        n_iter += len(moving)
        waiting, length = np.arange(len(moving)), 1.0
        for _ in range(_HALVINGS):
            trial = Z[moving[waiting]] + length * step[waiting]
            values = target.terms(trial)
            climbs = np.abs(values.sum(axis=0)) > value[waiting]
            taken = moving[waiting[climbs]]
            Z[taken], terms[:, taken] = trial[climbs], values[:, climbs]
            waiting, length = waiting[~climbs], 0.5 * length
            if not len(waiting):
                break
        moving = np.delete(moving, waiting)
    return Z, n_iter


def _ascended(target: Combination, start: Vector, max_iter: int) -> tuple[float, Vector, int]:
    """Return the best value and vector that L-BFGS sees, with its steps."""
    kernel, X = target.kernel, target.vectors
    one = np.ones((1, 1))
    spread = float(np.sqrt(X.var(axis=0).mean()))
    length = spread if 0 < spread < np.inf else 1.0

    def value_and_gradient(z: Matrix) -> tuple[float, Vector]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = float(target.terms(z).sum())
            norm = float(kernel.diagonal(z)[0])
            pull = kernel.gradient(X, z, target.coef[:, None])[0]
            longer = 2.0 * kernel.gradient(z, z, one)[0]
            share = value / norm if norm > 0 else 0.0
            gradient = 2.0 * share * pull - share * share * longer
        if not (np.isfinite(value * share) and np.isfinite(gradient).all()):
            return 0.0, np.zeros(len(start))
        return value * share, gradient

    scale = value_and_gradient(start[None])[0]
    if not scale > 0:
        return 0.0, start, 0
    best = (scale, start)

    def minus(x: Vector) -> tuple[float, Vector]:
        nonlocal best
        z = start + length * x
        value, gradient = value_and_gradient(z[None])
        if value > best[0]:
            best = (value, z)
        return -value / scale, -gradient * (length / scale)

    options = {"maxiter": max_iter, "ftol": 1e-15, "gtol": 1e-9}
    x = np.zeros(len(start))
    result = optimize.minimize(minus, x, jac=True, method="L-BFGS-B", options=options)
    return *best, int(result.nit)


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
    kernel, X, a = machine.kernel, machine.vectors, machine.coef
    m = len(X)
    if count >= m:
        return Reduced(X, a, np.zeros(1), 0)
    with np.errstate(over="ignore", invalid="ignore"):
        onto = machine.onto(X)
        square, size = float(a @ onto), float(np.abs(a) @ np.abs(onto))
    if not square >= -1e-10 * size or not np.isfinite(square):
        raise ValueError(
            f"The {kernel.name} kernel gives the machine a squared length of {square:g}, so that "
            "there is nothing to come near to; scale X, or use a kernel such as 'rbf'."
        )
    if square <= 1e-14 * size:
        return Reduced(X[:1], np.zeros(1), np.zeros(1), 0)
    diagonal = np.maximum(kernel.diagonal(X), np.finfo(float).tiny)
    Z, L, q = np.empty((count, X.shape[1])), np.zeros((count, count)), np.zeros(count)
    across, beta = np.empty((m, count)), np.zeros(0)
    distance: list[float] = []
    t = n_iter = 0
    while t < count:
        best = X[[int(((onto - across[:, :t] @ beta) ** 2 / diagonal).argmax())]]
        starts = np.concatenate([best, X[rng.integers(m, size=n_restarts - 1)]])
        residual = Combination(kernel, np.concatenate([X, Z[:t]]), np.concatenate([a, -beta]))
        z, steps = pre_image(residual, starts, max_iter)
        n_iter += steps
        for Z[t] in (z, best[0]):
            own = float(kernel.diagonal(Z[t : t + 1])[0])
            row = np.asarray(kernel.block(Z[:t], Z[t : t + 1]), dtype=np.float64)[:, 0]
            L[t, :t] = solve_triangular(L[:t, :t], row, lower=True) if t else row
            pivot = own - float(L[t, :t] @ L[t, :t])
            if pivot > _INDEPENDENT * own:
                break
        else:
            break
        L[t, t] = np.sqrt(pivot)
        across[:, t] = np.asarray(kernel.block(X, Z[t : t + 1]))[:, 0]
        q[t] = (a @ across[:, t] - L[t, :t] @ q[:t]) / L[t, t]
        t += 1
        beta = solve_triangular(L[:t, :t].T, q[:t])
        before = distance[-1] if distance else 1.0
        distance.append(max(0.0, before - q[t - 1] ** 2 / square))
        if distance[-1] <= _NOTHING:
            break
    if t == 0:
        raise ValueError(
            f"The {kernel.name} kernel has no vector of positive length here; use another such as "
            "'rbf'."
        )
    result = Reduced(Z[:t].copy(), beta, np.array(distance), n_iter)
    return _refined(machine, square, result, max_iter) if refine else result


class Distance:
    """Half of (4) with the best coefficients, and its gradient: a marginal function.

    Parameters
    ----------
    machine : Combination
        w.
    square : float
        ‖w‖².
    """

    def __init__(self, machine: Combination, square: float) -> None:
        self.span = VectorSpan(as_rows(machine.vectors, memory=_MEMORY, threads=1), machine.kernel)
        self.coef = machine.coef
        self.square = square

    @property
    def n_kernel(self) -> int:
        """Kernel values computed until now."""
        return self.span.n_kernel

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return the value and the gradient at Z. There is nothing to start from."""
        space = self.span.whitened(Z)
        along = space.features.sums(self.coef[None])[0]
        beta = (space.root @ along)[:, None]
        value = 0.5 * max(0.0, self.square - float(along @ along))
        gradient = self.span.gradient(Z, beta, self.coef[:, None])
        return Marginal(value, gradient, beta, np.zeros(1), value)


def _refined(machine: Combination, square: float, greedy: Reduced, max_iter: int) -> Reduced:
    """Return the machine after all vectors have moved, if that made it nearer."""
    spread = np.sqrt(machine.vectors.var(axis=0).mean())
    function = Distance(machine, square)
    length = float(spread)
    try:
        found = minimise(function, greedy.vectors, max_iter=max_iter, tol=1e-7, length=length)
    except ValueError:
        # A kernel that is not Mercer's, at vectors where that shows.
        return greedy
    last = 2.0 * found.marginal.value / square
    if not last < greedy.distance[-1]:
        return greedy
    distance = np.append(greedy.distance, last)
    n_iter = greedy.n_iter + found.certificate.n_iter
    return Reduced(found.vectors, found.marginal.beta[:, 0], distance, n_iter)
