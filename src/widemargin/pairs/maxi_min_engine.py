"""The engine of MaxiMinDA: from the scatter of a stream to directions.

Shrinkage and sharpness are chosen, the means whitened, and directions found for them: by the
relaxation, its rounding or refinement, with a bound on what any can reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Limits, Resources, Result, run
from widemargin.pairs.class_pairs import ClassPairs, spanned
from widemargin.pairs.online import Online, default_lam
from widemargin.pairs.pair_program import PairProgram, ProgramState
from widemargin.pairs.refine import Refine, leading, orthonormal, pushed_apart, widest_mean
from widemargin.pairs.relaxation import upper_bound
from widemargin.pairs.semidefinite import solve_semidefinite
from widemargin.pairs.sharpness import SHARPNESSES, SHRINKAGES, Choice, choose
from widemargin.scatter.class_scatter import ClassScatter
from widemargin.scatter.stream import Stream
from widemargin.scatter.whitening import SAME_MEAN, whitened

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


def _search(classes: ClassPairs, d: int, sharpness: float, options: MaxiMinOptions) -> Solution:
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


@dataclass(frozen=True)
class MaxiMinFit:
    """Directions, and what is known of the classes in the projection.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features)
        The directions.
    mean : ndarray of shape (n_features,)
        Mean of all rows.
    class_means : ndarray of shape (n_classes, n_components)
        Means of the classes in the projection; not a number for classes without rows.
    n_merged : int
        Classes that have the same mean as another.
    choice : Choice
        Shrinkage and sharpness.
    solution : Solution
        The search for the directions.
    """

    components: Matrix
    mean: Vector
    class_means: Matrix
    n_merged: int
    choice: Choice
    solution: Solution

    def warnings(self) -> Iterator[tuple[str, type[Warning]]]:
        """Yield what could be better."""
        choice, solution = self.choice, self.solution
        if not choice.stop.converged:
            yield (
                f"The choice of sharpness and shrinkage stopped early ({choice.stop.reason}): "
                f"sharpness={choice.sharpness:g} and shrinkage={choice.shrinkage:g} are the best "
                f"of {len(choice.accuracy['accuracy'])} values that were tried. Raise max_time, or "
                "give what you know.",
                ConvergenceWarning,
            )
        if self.n_merged:
            n_classes = int(np.isfinite(self.class_means[:, 0]).sum())
            yield (
                f"{self.n_merged} of {n_classes} classes have the same mean as another: no "
                "projection of the means tells them apart.",
                UserWarning,
            )
        if not solution.converged:
            yield (
                f"MaxiMinDA stopped early ({solution.certificate.stopped}): the smallest distance "
                f"is {solution.reached:.4g}, and could be {solution.bound:.4g} at the most.",
                ConvergenceWarning,
            )


def fit_maxi_min(stream: Stream, scatter: ClassScatter, options: MaxiMinOptions) -> MaxiMinFit:
    """Find the directions of all rows of a stream, whose scatter this is."""
    there = scatter.weight > 0
    choice = _chosen(stream, scatter, options)
    space = whitened(scatter, choice.shrinkage)
    means = space.means[there]
    basis = spanned(means)
    prior = (scatter.weight if options.priors is None else options.priors)[there]
    classes = ClassPairs((means - means.mean(axis=0)) @ basis, prior, options.threads)
    distinct = classes.merged()[0]
    if distinct.n_classes < 2:
        raise ValueError(SAME_MEAN)
    d = n_directions(distinct, options.n_components)
    solution = _search(distinct, d, choice.sharpness, options)
    n_merged = classes.n_classes - distinct.n_classes
    if n_merged:
        solution = replace(solution, reached=0.0, bound=0.0)
    directions = basis @ solution.W
    class_means = np.full((len(there), d), np.nan)
    class_means[there] = means @ directions
    components = (space.matrix @ directions).T
    return MaxiMinFit(components, space.mean, class_means, n_merged, choice, solution)


def _chosen(stream: Stream, scatter: ClassScatter, options: MaxiMinOptions) -> Choice:
    """Choose shrinkage and sharpness, as far as they are not given."""
    if options.shrinkage == "cv":
        shrinkages = sorted({*SHRINKAGES, scatter.intensity("auto")})
    else:
        shrinkages = [scatter.intensity(options.shrinkage)]
    d = options.n_components
    return choose(
        stream,
        shrinkages,
        SHARPNESSES if options.sharpness is None else [options.sharpness],
        None if d is None or isinstance(d, float) else d,
        options.priors,
        options.threads,
        options.deadline.part(0.5),
    )
