"""What regressors share: the statement of centred targets, and the way back to their units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from widemargin.arrays import Matrix, Vector
from widemargin.base.estimator import (
    CallbackSupportMixin,
    KernelEstimator,
    as_stored,
    warn_user,
)
from widemargin.expansion import Fitted
from widemargin.loop import Resources
from widemargin.problem import Problem, check_prices
from widemargin.rows import distinct_rows


@dataclass(frozen=True)
class TargetScale:
    """Targets as engines see them: about zero, and no larger than one.

    Attributes
    ----------
    offset : ndarray of shape (n_outputs,)
        What is taken off: weighted means, or zeros.
    unit : float
        A power of two by which they are divided: nothing is rounded.
    """

    offset: Vector
    unit: float

    @classmethod
    def of(cls, y: Matrix, weight: Vector, centred: bool) -> TargetScale:
        """Return the scale of the targets of some rows."""
        largest = float(np.abs(y).max(initial=0.0))
        if largest > np.finfo(np.float64).max / 4.0:
            raise ValueError(
                f"y has a value of size {largest:g}, too large to be computed with; divide y by it."
            )
        # Means of what is at most one: sums of large values could leave the range of numbers.
        coarse = largest or 1.0
        mean = np.average(y / coarse, axis=0, weights=weight) * coarse
        offset = mean if centred else np.zeros(y.shape[1])
        spread = float(np.abs(y - offset).max(initial=0.0))
        return cls(offset, float(2.0 ** np.ceil(np.log2(spread))) if spread > 0.0 else 1.0)


class KernelRegressor(RegressorMixin, CallbackSupportMixin, KernelEstimator):
    """A regressor whose machine is an expansion, with squared losses and a regularised bias."""

    # Parameters that every subclass declares.
    C: float
    epsilon: float
    gamma: Any
    fit_intercept: bool

    def _stated(
        self,
        X: Any,
        targets: Matrix,
        sample_weight: Any,
        resources: Resources,
        *,
        insensitive: bool,
    ) -> tuple[Problem, TargetScale, float]:
        """Return the problem of centred targets, their scale, and the kernel width."""
        weight = self._weights(X, sample_weight)
        # Equal rows of equal targets are merged; those of no weight leave no trace.
        code, counted = np.zeros(len(weight), dtype=np.intp), weight > 0
        code[counted] = np.unique(targets[counted], axis=0, return_inverse=True)[1].ravel()
        distinct = distinct_rows(self._rows(X, resources), code, weight)
        gamma = self._resolved_gamma(self.gamma, distinct)
        check_prices(self.C, distinct.weight)
        kept = targets[distinct.index]
        scale = TargetScale.of(kept, distinct.weight, bool(self.fit_intercept))
        epsilon = self.epsilon / scale.unit if insensitive else 0.0
        problem = Problem.of(
            distinct.rows,
            self._kernel(gamma),
            distinct.code,
            np.ones((1, 1)),
            distinct.weight,
            self.C,
            distinct.index,
            distinct.place,
        ).with_targets((kept - scale.offset) / scale.unit, epsilon, float(bool(self.fit_intercept)))
        return problem, scale, gamma

    def _keep(self, problem: Problem, fitted: Fitted, scale: TargetScale) -> None:
        """Set the attributes of the prediction, in the units of the targets."""
        vectors, coef = fitted.vectors, fitted.coef
        self.support_ = None if fitted.index is None else problem.number[fitted.index]
        if self.support_ is not None and fitted.intercept.ndim == 1:
            order = np.argsort(self.support_)
            self.support_, vectors, coef = self.support_[order], vectors[order], coef[order]
        self.support_vectors_ = as_stored(vectors, problem.rows)
        self.dual_coef_ = np.ascontiguousarray(coef.T) * scale.unit
        self.intercept_ = fitted.intercept * scale.unit + scale.offset
        found, square = fitted.certificate, scale.unit * scale.unit
        full = None if found.full_dual is None else found.full_dual * square
        self.certificate_ = replace(
            found, primal=found.primal * square, dual=found.dual * square, full_dual=full
        )
        self.n_iter_ = found.n_iter

    def _warn(self, fitted: Fitted) -> None:
        """Say that the machine could be better."""
        if not fitted.stop.converged:
            reached = fitted.certificate
            warn_user(
                f"{type(self).__name__} stopped before its rule was met ({reached.stopped}), "
                f"with a relative gap of {reached.gap:.2e}. The model is valid; for a better one "
                "raise the limit or lower C, or loosen tol to accept it.",
            )
