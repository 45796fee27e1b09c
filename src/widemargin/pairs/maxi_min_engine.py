"""The engine of MaxiMinDA: from the scatter of a stream to directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin.arrays import Matrix, Vector
from widemargin.pairs.class_pairs import ClassPairs, spanned
from widemargin.pairs.maxi_min_search import MaxiMinOptions, Solution, n_directions, search
from widemargin.pairs.sharpness import SHARPNESSES, SHRINKAGES, Choice, choose
from widemargin.scatter.class_scatter import ClassScatter
from widemargin.scatter.stream import Stream
from widemargin.scatter.whitening import SAME_MEAN, whitened


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
    solution = search(distinct, d, choice.sharpness, options)
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
