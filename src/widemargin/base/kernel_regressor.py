"""What regressors share: the statement of centred targets, and the way back to their units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from widemargin.arrays import Matrix, Vector
from widemargin.base.estimator import (
    CallbackSupportMixin,
    KernelEstimator,
    as_stored,
    dense,
    warn_user,
)
from widemargin.base.row_maps import keep_map, kept_map, seen, seen_distinct
from widemargin.base.seen_rows import given_root, rows_for_map, scaling_for
from widemargin.base.target_intervals import insensitive, of_quantiles
from widemargin.expansion import Expansion, Fitted
from widemargin.intervals import IntervalProblem
from widemargin.loop import Resources
from widemargin.problem import Problem, check_prices
from widemargin.rows import Rows, distinct_rows

# C over the size of targets must lie between these, for losses in linear pieces.
_LEAST_PRICE = 1e-120
_MOST_PRICE = 1e120
# Losses by name: with a regularised bias, and with a free one.
SQUARED = ("squared", "squared_epsilon_insensitive")
LINEAR = ("epsilon_insensitive", "quantile")


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


def numbered_targets(targets: Matrix, weight: Vector) -> NDArray[np.intp]:
    """Return numbers that are equal for equal targets; rows of no weight leave no trace."""
    code, counted = np.zeros(len(weight), dtype=np.intp), weight > 0
    code[counted] = np.unique(targets[counted], axis=0, return_inverse=True)[1].ravel()
    return code


class KernelRegressor(RegressorMixin, CallbackSupportMixin, KernelEstimator):
    """A regressor whose machine is an expansion, by default with a regularised bias."""

    # Parameters that every subclass declares.
    C: float
    epsilon: float
    gamma: Any
    fit_intercept: bool
    gamma_: float
    # What some do to rows first.
    scale: str | None = None
    metric: Any = None

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
        # Equal rows of equal targets are merged.
        code = numbered_targets(targets, weight)
        X = rows_for_map(self, X, resources.memory)
        plain = distinct_rows(self._rows(X, resources), code, weight)
        learns = isinstance(self.metric, str)
        row_map = scaling_for(self, plain, centred=learns)
        if row_map is not None and self.metric is not None and not learns:
            row_map = row_map.then(given_root(self.metric, self.n_features_in_))
        distinct = seen_distinct(plain, row_map)
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
        if row_map is not None and learns:
            # A metric leaves the variance of the rows, and so the width, as they are.
            row_map = row_map.then(self._learned_root(problem, resources))
            problem = replace(problem, rows=seen(plain.rows, row_map))
        return problem, scale, gamma

    def _learned_root(self, problem: Problem, resources: Resources) -> NDArray[np.float64]:
        """Return the root of the metric that a problem has; of those who learn one."""
        raise TypeError(f"{type(self).__name__} learns no metric.")

    def _check_bias(self) -> None:
        """Raise if a loss with a free bias is to have none; of those who have such losses."""
        loss = getattr(self, "loss", None)
        if loss in LINEAR and not self.fit_intercept:
            raise ValueError(
                f"loss={loss!r} has a free bias; fit_intercept=False is not there for it. Use "
                "fit_intercept=True, or loss='squared_epsilon_insensitive'."
            )

    def _price(self, scale: TargetScale) -> float:
        """Return C of a loss in linear pieces, in the units of the problem's targets."""
        # In the targets' units f grows by the unit, ½‖w‖² by its square.
        price = self.C / scale.unit
        if not _LEAST_PRICE <= price <= _MOST_PRICE:
            raise ValueError(
                f"C={self.C:g} and targets that differ by {scale.unit:g} are too far apart in size "
                "to be computed with; multiply y, and with it C and epsilon, by a number that "
                "brings both nearer to 1."
            )
        return price

    def _intervals(
        self, problem: Problem, scale: TargetScale, levels: Sequence[float]
    ) -> IntervalProblem:
        """State a loss in linear pieces; `levels` are the quantiles that are wanted."""
        price = self._price(scale)
        if getattr(self, "loss", None) == "quantile":
            return of_quantiles(problem, levels, price)
        return insensitive(problem, self.epsilon / scale.unit, price)

    def _values(self, rows: Rows) -> Matrix:
        """Return the predictions of rows, a column for each output."""
        vectors, coef = dense(self.support_vectors_), np.ascontiguousarray(self.dual_coef_.T)
        machine = Expansion(self._kernel(self.gamma_), vectors, coef, self.intercept_)
        return machine.values(seen(rows, kept_map(self)))

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
        keep_map(self, problem.rows.row_map)

    def _warn(self, fitted: Fitted) -> None:
        """Say that the machine could be better."""
        if not fitted.stop.converged:
            reached = fitted.certificate
            warn_user(
                f"{type(self).__name__} stopped before its rule was met ({reached.stopped}), "
                f"with a relative gap of {reached.gap:.2e}. The model is valid; for a better one "
                "raise the limit or lower C, or loosen tol to accept it.",
            )
