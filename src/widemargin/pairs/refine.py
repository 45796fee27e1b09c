"""Directions that push the closest classes apart: the Maxi-Min criterion itself.

Xu, Huang and Liu (2012), (2): of all W with d orthonormal columns in the whitened space, the one
with the largest min_ij D_ij, D_ij = ‖Wᵀ(m_i − m_j)‖². The paper relaxes it and rounds the
solution to d eigenvectors (5), which loses most of what it found; here W itself is improved.

The minimum is softened. With weights w_ij of the pairs (the product of the classes' shares),

    F_s(W)  =  −(8/s) log Σ w_ij exp(−s D_ij / 8)

is the mean for s → 0, that is LDA, and the smallest distance for s → ∞. The unit is
no accident: exp(−D/8) bounds the error between two Gaussian classes (Bhattacharyya), and s = 1
minimises the sum of these bounds over all pairs. s is called the sharpness.

F depends on the span of W only, so L-BFGS (SciPy's) runs over all matrices V with W = V R⁻¹ by QR;
the derivative is that by W, orthogonal to it, times R⁻ᵀ. For the hard minimum s rises by a factor
of four from search to search, each from where the last ended, and a hundredth of F_1 is added:
where the closest pairs leave W free (as soon as they are as far apart as in all dimensions), the
others decide. F is not concave: several starts are compared.

A sequential quadratic program over the closest pairs was tried beside it: it gains the last 0.01 %
of the distance, but by itself ends in worse optima (docs/maxi_min.md has the figures).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Ended, Solver, Stop, bounds, relative_gap
from widemargin.pairs.class_pairs import ClassPairs

# D over this is the exponent of the Bhattacharyya bound.
BHATTACHARYYA = 8.0
# Sharpnesses on the way to a sharp one.
_GENTLE = (0.1, 0.3, 1.0)
# For the hard minimum: how much sharper from search to search.
_SHARPER = 4.0
# The product of rate and smallest distance at which the soft minimum is the minimum.
_SHARP = 1e4
# The share of F_1 beside it.
_SHARE = 0.01
# Steps of a search.
_STEPS = 300
# Pairs of steps and gradients that it remembers.
_MEMORY = 10
# The same product for a search that shall not leave its start.
_STAY = 30.0
# How much farther a start must bring the closest pair to be called better.
_BETTER = 1e-4


@dataclass(frozen=True)
class RefineState:
    """Where the search stands.

    Attributes
    ----------
    best : ndarray of shape (k, d)
        Orthonormal columns, the best until now.
    reached : float
        Their smallest squared distance.
    value : float
        What they are judged by: F_s, or the smallest distance.
    number : int
        Starts that are done.
    """

    best: Matrix
    reached: float
    value: float
    number: int


@dataclass(frozen=True)
class Refine(Solver[RefineState]):
    """Solver of the Maxi-Min criterion, for ``loop.run``; a step is a start.

    Parameters
    ----------
    classes : ClassPairs
        Whitened class means.
    starts : list of ndarray of shape (k, d)
        Where to start, each with linearly independent columns.
    sharpness : float
        s; infinite for the minimum itself.
    bound : float
        An upper bound on the smallest distance, for the certificate.
    tol : float, default=1e-6
        Relative change of F at which a search ends.
    search : bool, default=True
        Whether there is a search, or the first start is taken as it is.
    """

    classes: ClassPairs
    starts: list[Matrix]
    sharpness: float
    bound: float
    tol: float = 1e-6
    search: bool = True

    def start(self) -> RefineState:
        """Judge the first start as it is."""
        W = orthonormal(self.starts[0])
        return RefineState(W, self.reached(W), self._value(W), 0)

    def step(self, state: RefineState) -> RefineState:
        """Search from the next start."""
        V = self.starts[state.number]
        # Gentle searches lead all starts to one optimum; only the first goes that way.
        softest = 0.0 if state.number == 0 else _GENTLE[-1]
        tried = [
            pushed_apart(self.classes, V, self.sharpness, softest=softest, tol=self.tol),
            # Soft searches may leave a start that was good for the hard minimum.
            orthonormal(V),
        ]
        values = [self._value(W) for W in tried]
        at_start = values[1]
        if at_start > values[0] and np.isinf(self.sharpness):
            sharp = _STAY * BHATTACHARYYA / at_start
            tried.append(pushed_apart(self.classes, V, np.inf, softest=sharp, tol=self.tol))
            values.append(self._value(tried[-1]))
        best = int(np.argmax(values))
        number = state.number + 1
        # What another start gains must be worth it: equal optima would depend on rounding. But no
        # start is better than the answer.
        free = state.number == 0 or at_start > state.value
        needed = state.value + (0.0 if free else _BETTER * abs(state.value))
        if values[best] >= needed:
            return RefineState(tried[best], self.reached(tried[best]), values[best], number)
        return replace(state, number=number)

    def certificate(self, state: RefineState) -> Certificate:
        """Return one over the smallest distance, and what it cannot fall below."""
        primal = 1.0 / state.reached if state.reached > 0 else np.inf
        dual = 1.0 / self.bound if self.bound > 0 else np.inf
        return bounds(primal, min(primal, dual), gap=relative_gap(primal, dual))

    def stopped(self, state: RefineState) -> Stop | None:
        """Return whether all starts are done, or nothing is left to gain."""
        if not self.search:
            return Stop(Ended.SOLVED, "taken as they are, without a search")
        if state.number >= len(self.starts):
            return Stop(Ended.SOLVED, f"searched from {len(self.starts)} starts")
        at_bound = state.reached >= self.bound * (1.0 - 1e-6)
        if state.number and np.isinf(self.sharpness) and at_bound:
            return Stop(Ended.SOLVED, "the closest pair cannot be farther apart")
        return None

    def reached(self, W: Matrix) -> float:
        """Return the smallest squared distance of two classes in the projection."""
        return float(self.classes.closest(self.classes.means @ W, 1).distance[0])

    def _value(self, W: Matrix) -> float:
        if np.isinf(self.sharpness):
            return self.reached(W)
        if self.sharpness == 0.0:
            return float(np.trace(W.T @ self.classes.mean_scatter() @ W))
        rate = np.array([self.sharpness / BHATTACHARYYA])
        return self.classes.soft_minimum(self.classes.means @ W, rate, np.ones(1))[0]


def leading(matrix: Matrix, d: int) -> Matrix:
    """Return the first d eigenvectors, those of the largest eigenvalues first."""
    vectors = np.linalg.eigh(matrix)[1]
    return np.ascontiguousarray(vectors[:, ::-1][:, :d])


def widest_mean(classes: ClassPairs, d: int) -> Matrix:
    """Return the W of the largest mean distance: LDA's directions in the whitened space."""
    return leading(classes.mean_scatter(), d)


def pushed_apart(
    classes: ClassPairs, V: Matrix, sharpness: float, *, softest: float = 0.0, tol: float = 1e-6
) -> Matrix:
    """Return W where F is largest, near V, by ever sharper searches.

    Parameters
    ----------
    classes : ClassPairs
        Class means.
    V : ndarray of shape (k, d)
        Where to start.
    sharpness : float
        s.
    softest : float, default=0.0
        The s that V is the best for; searches begin above it.
    tol : float, default=1e-6
        Relative change of F at which a search ends.
    """
    W = orthonormal(V)
    gentle = [s for s in _GENTLE if softest < s < sharpness]
    for s in [*gentle, *([] if np.isinf(sharpness) else [sharpness])]:
        W = softened(classes, W, np.array([s / BHATTACHARYYA]), np.ones(1), tol)
    if not np.isinf(sharpness):
        return W
    rates = np.array([max(softest, _GENTLE[-1]), _GENTLE[-1]]) / BHATTACHARYYA
    shares = np.array([1.0, _SHARE])
    while True:
        least = float(classes.closest(classes.means @ W, 1).distance[0])
        if rates[0] * least >= _SHARP or not np.isfinite(rates[0] * _SHARPER * least):
            return W
        rates[0] *= _SHARPER
        W = softened(classes, W, rates, shares, 1e-3 * tol)


def softened(
    classes: ClassPairs, V: Matrix, rates: Vector, shares: Vector, tol: float, steps: int = _STEPS
) -> Matrix:
    """Return W where a sum of soft minima is largest near V."""
    means, shape = classes.means, V.shape
    if shape[0] == shape[1]:
        # All of the space: there is nothing to choose.
        return orthonormal(V)

    def value_and_slope(v: Vector) -> tuple[float, Vector]:
        W, R = np.linalg.qr(v.reshape(shape))
        value, slope = classes.soft_minimum(means @ W, rates, shares)
        by_W = means.T @ slope
        by_W -= W @ (W.T @ by_W)
        return -value / scale, np.linalg.solve(R, by_W.T).T.ravel() / -scale

    scale = 1.0
    W = orthonormal(V)
    scale = max(abs(value_and_slope(W.ravel())[0]), np.finfo(float).tiny)
    found = optimize.minimize(
        value_and_slope,
        W.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "ftol": tol, "gtol": 0.0, "maxcor": _MEMORY},
    )
    return orthonormal(found.x.reshape(shape))


def orthonormal(V: Matrix) -> Matrix:
    """Return an orthonormal basis of the span of the columns."""
    return np.linalg.qr(V)[0]
