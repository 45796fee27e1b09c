"""From class means to directions: the relaxation, its rounding or refinement, and the bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Limits, Resources, Result, run
from widemargin.pairs.class_pairs import ClassPairs
from widemargin.pairs.online import Online, default_lam
from widemargin.pairs.pair_program import PairProgram, ProgramState
from widemargin.pairs.refine import Refine, leading, orthonormal, pushed_apart, widest_mean
from widemargin.pairs.relaxation import upper_bound
from widemargin.pairs.semidefinite import solve_semidefinite

# Classes up to which searches are cheap: more starts, the relaxation's solution among them.
_FEW_CLASSES = 100
# Random starts where classes are few.
_STARTS = 10
# Pairs that may have a weight in the bound, at the least, beside one for each class.
_LEAST_PAIRS = 64


@dataclass(frozen=True)
class Solution:
    """Directions and what is known of them.

    Attributes
    ----------
    W : ndarray of shape (k, d)
        Orthonormal columns, those along which the classes spread most first.
    reached, bound : float
        Their smallest squared distance, and what no others can exceed.
    certificate : Certificate
        One over each.
    relaxation : Certificate or None
        Of the convex problem, where it was solved.
    converged : bool
        Whether no search was cut short.
    """

    W: Matrix
    reached: float
    bound: float
    certificate: Certificate
    relaxation: Certificate | None
    converged: bool


@dataclass(frozen=True, kw_only=True)
class MaxiMinOptions(Resources):
    """How directions are found; see `MaxiMinDA` for what is not said here.

    Attributes
    ----------
    n_components : int, float or None
        A number, or a share of the smallest distance; None for all.
    sharpness : float or None
        None chooses on rows that are held out.
    shrinkage : float, "auto", "cv" or None
        "cv" chooses as well.
    refine : bool
        Whether directions are searched for, or the relaxation is rounded.
    squared : bool
        Whether errors count squared in the relaxation.
    n_init : int or None
        Random starts; None decides by the number of classes.
    priors : ndarray of shape (n_classes,) or None
        Probabilities of the classes; None takes those of the rows.
    """

    n_components: int | float | None
    sharpness: float | None
    shrinkage: float | str | None
    solver: str
    refine: bool
    C: float
    squared: bool
    lam: float | None
    n_updates: int
    average: bool
    n_init: int | None
    tol: float
    priors: Vector | None


def search(classes: ClassPairs, d: int, sharpness: float, options: MaxiMinOptions) -> Solution:
    """Return the best d directions for the means of different classes."""
    pairs = classes.closest(classes.means, max(_LEAST_PAIRS, classes.n_classes))
    weight = np.ones(len(pairs))
    Q, solved = None, None
    few, rng = classes.n_classes <= _FEW_CLASSES, options.rng
    if not options.refine or (few and np.isinf(sharpness)):
        Q, solved = _relaxed(classes, options, rng)
    state = None if solved is None else solved.state
    if isinstance(state, ProgramState) and state.alpha.any():
        pairs, weight = state.pairs, state.alpha
    bound = upper_bound(classes, pairs, weight, d)
    starts = [] if Q is None else [leading(Q, d)]
    if options.refine:
        more = options.n_init
        if more is None:
            more = _STARTS if few else 0
        if sharpness == 0.0 or d >= classes.means.shape[1]:
            starts, more = [], 0
        random = [rng.normal(size=(classes.means.shape[1], d)) for _ in range(more)]
        starts = [widest_mean(classes, d), *starts, *random]
    else:
        sharpness = float("inf")
    # Rounding takes its start as it is; so does LDA, which is the best for the mean.
    searches = options.refine and sharpness > 0.0
    solver = Refine(classes, starts, sharpness, bound, options.tol, search=searches)
    limits = Limits(deadline=options.deadline, patience=len(starts) + 1)
    result = run(solver, limits, options.report)
    W = result.state.best
    # In the same span, the directions of the largest mean distance first.
    W = orthonormal(W @ leading(W.T @ classes.mean_scatter() @ W, d))
    reached = solver.reached(W)
    return Solution(
        W,
        reached,
        # Where both are the same, rounding may put the bound below.
        bound if reached > bound * (1.0 + 1e-9) else max(bound, reached),
        result.certificate,
        None if solved is None else solved.certificate,
        result.converged and (solved is None or solved.converged),
    )


def _relaxed(
    classes: ClassPairs, options: MaxiMinOptions, rng: np.random.Generator
) -> tuple[Matrix, Result[Any] | None]:
    """Solve the relaxation; return Q, and how a solver of ours ended."""
    if options.solver == "sdp":
        return solve_semidefinite(classes, options.C, squared=options.squared), None
    limits = Limits(deadline=options.deadline)
    if options.solver == "exact":
        program = PairProgram(classes, options.C, squared=options.squared)
        solved = run(program, limits, options.report)
        return solved.state.Q, solved
    lam = options.lam
    if lam is None:
        hard = np.isinf(options.C)
        lam = default_lam(classes) if hard else 1.0 / (options.C * classes.n_pairs)
    online = Online(classes, lam, options.n_updates, options.average, rng)
    done = run(online, replace(limits, patience=options.n_updates), options.report)
    return online.matrix(done.state), done


def n_directions(classes: ClassPairs, asked: Any) -> int:
    """Return how many directions are meant.

    Parameters
    ----------
    classes : ClassPairs
        Class means.
    asked : int, float or None
        A number; None for all; or the share of the smallest squared distance in all dimensions that
        the smallest distance must have.
    """
    k = int(classes.means.shape[1])
    if asked is None:
        return k
    if not isinstance(asked, float):
        if asked > k:
            raise ValueError(
                f"n_components={asked} is more than {k}, the number of dimensions in which the "
                "class means differ (n_classes - 1 at the most); give fewer, or use MaxMarginDA."
            )
        return int(asked)
    needed = asked * float(classes.closest(classes.means, 1).distance[0])
    low, high = 0, k
    while high - low > 1:
        d = (low + high) // 2
        W = pushed_apart(classes, widest_mean(classes, d), float("inf"), tol=1e-4)
        reached = float(classes.closest(classes.means @ W, 1).distance[0])
        low, high = (low, d) if reached >= needed else (d, high)
    return high
