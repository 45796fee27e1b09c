"""Algorithm 1 of the Maxi-Min paper: stochastic subgradients for the soft-margin relaxation.

Xu, Huang and Liu (2012), section 3.4. With a random pair of classes at each step t,

    Q  ←  (1 − 1/t) Q + [δᵀQδ < 1] δδᵀ / (λt),                                      (14)

which, step by step, is the sum (20) of the pairs that violated their constraint, over λt. It
minimises the mean over the pairs where (11) has the sum, so that λ here is 1/(C n_pairs) of
``pair_program``: both then have one solution. In (12), min is to be read as max.

Q is what the last step left, or the mean of all steps (Corollary 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.arrays import Matrix
from widemargin.certificate import Certificate
from widemargin.loop import Ended, Solver, Stop, bounds
from widemargin.pairs.class_pairs import ClassPairs


@dataclass(frozen=True)
class OnlineState:
    """Q after t updates, and the mean of Q over them."""

    Q: Matrix
    mean: Matrix
    t: int


@dataclass(frozen=True)
class Online(Solver[OnlineState]):
    """Solver of (11), for ``loop.run``.

    Parameters
    ----------
    classes : ClassPairs
        Whitened class means.
    lam : float
        λ of the paper, for the mean over the pairs.
    n_updates : int
        T.
    average : bool
        Whether the mean over the steps is the answer.
    rng : Generator
        Draws the pairs.
    at_a_time : int, default=1000
        Updates of Q between two looks of the loop at the clock.
    """

    classes: ClassPairs
    lam: float
    n_updates: int
    average: bool
    rng: np.random.Generator
    at_a_time: int = 1000

    def start(self) -> OnlineState:
        """Begin with Q = 0."""
        k = self.classes.means.shape[1]
        return OnlineState(np.zeros((k, k)), np.zeros((k, k)), 0)

    def step(self, state: OnlineState) -> OnlineState:
        """Go through some random pairs."""
        count = min(self.at_a_time, self.n_updates - state.t)
        c = self.classes.n_classes
        first = self.rng.integers(c, size=count)
        second = (first + self.rng.integers(1, c, size=count)) % c
        apart = self.classes.means[first] - self.classes.means[second]
        # (20): Q = R / (λt), R the sum over the pairs that violated.
        t = state.t
        R, mean = state.Q * (self.lam * max(t, 1)), state.mean.copy()
        for delta in apart:
            t += 1
            if t == 1 or float(delta @ R @ delta) < self.lam * (t - 1):
                R += np.outer(delta, delta)
            mean += (R / (self.lam * t) - mean) / t
        return OnlineState(R / (self.lam * t), mean, t)

    def matrix(self, state: OnlineState) -> Matrix:
        """Return Q of the answer."""
        return state.mean if self.average else state.Q

    def certificate(self, state: OnlineState) -> Certificate:
        """Return what is known: the steps prove nothing by themselves."""
        return bounds(float("inf"), 0.0)

    def stopped(self, state: OnlineState) -> Stop | None:
        """Return whether all updates are done."""
        if state.t >= self.n_updates:
            return Stop(Ended.SOLVED, f"{self.n_updates} updates")
        return None


def default_lam(classes: ClassPairs) -> float:
    """Return a λ with which the regulariser is no more than a hundredth of the loss.

    At the multiple of the identity that satisfies every pair, λ/2 ‖Q‖² is then 0.01, where the loss
    of Q = 0 is 1.
    """
    least = float(classes.closest(classes.means, 1).distance[0])
    return float(0.02 * least**2 / classes.means.shape[1])
