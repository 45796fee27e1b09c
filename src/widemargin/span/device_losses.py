"""Losses of scores on a device: the loops of ``qp.margin_loops`` as operations on whole arrays.

A row has the label y and the price 2 C s in each problem; of scores f the slack is
ξ = max(0, 1 − y f), and the slope A = 2 C s y ξ. Sums are float64 whatever the type of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.device import Array, Device
from widemargin.problem import Problem

# Values of rows at several lengths of a step that are looked at at a time.
_VALUES_AT_A_TIME = 1 << 26


@dataclass(frozen=True)
class DeviceLabels:
    """Labels and prices of rows on a device, of some problems.

    Attributes
    ----------
    device : Device
        Where they are.
    code, fold : array of int of shape (n,)
        Class and group of each row.
    weight : array of shape (n, 1)
        Weights.
    table : array of shape (n_classes, n_problems)
        Sign of each class in each problem.
    prices : array of shape (n_groups, n_problems)
        2 C of each problem, times how often it counts the rows of a group.
    by_group : bool
        Whether groups differ in their prices.
    """

    device: Device
    code: Array
    fold: Array
    weight: Array
    table: Array
    prices: Array
    by_group: bool

    @classmethod
    def of(cls, problem: Problem, device: Device, dtype: np.dtype[Any]) -> DeviceLabels:
        """Bring the labels of a problem to a device."""
        by_group = bool((problem.counts != problem.counts[:1]).any())
        return cls(
            device,
            device.index(problem.code),
            device.index(problem.fold if by_group else problem.fold[:0]),
            device.array(problem.weight[:, None], dtype),
            device.array(problem.table, dtype),
            device.array(2.0 * problem.C * problem.counts, dtype),
            by_group,
        )

    def columns(self, live: IndexArray) -> DeviceLabels:
        """Return those of some problems."""
        if len(live) == self.table.shape[1]:
            return self
        xp, chosen = self.device.xp, self.device.index(live)
        table, prices = (xp.take(each, chosen, axis=1) for each in (self.table, self.prices))
        return replace(self, table=table, prices=prices)

    def sign(self, where: slice) -> Array:
        """Return the labels of rows."""
        return self.device.xp.take(self.table, self.code[where], axis=0)

    def price(self, where: slice) -> Array:
        """Return the prices of rows."""
        if not self.by_group:
            return self.weight[where, :] * self.prices[:1, :]
        return self.weight[where, :] * self.device.xp.take(self.prices, self.fold[where], axis=0)

    def counted(self, where: slice) -> Array:
        """Return whether problems count rows."""
        return self.price(where) > 0


def slopes(
    labels: DeviceLabels, scores: Array, where: slice, mixture: Array | None
) -> tuple[Array, Array]:
    """Return A of rows, and sums: the loss, Σ A, Σ y A, Σ A·mixture/(2Cs)."""
    xp = labels.device.xp
    sign, price = labels.sign(where), labels.price(where)
    slack = xp.clip(1.0 - sign * scores, 0.0, None)
    size = price * slack
    loss = _sum(xp, size * slack) * 0.5
    signed = sign * slack
    A = price * signed
    mixed = xp.zeros_like(loss) if mixture is None else _sum(xp, signed * mixture)
    return A, xp.stack([loss, _sum(xp, A), _sum(xp, size), mixed])


def _sum(xp: Any, values: Array, axis: int = 0) -> Array:
    return xp.sum(values, axis=axis, dtype=xp.float64)


@dataclass(frozen=True)
class Line:
    """Losses along a direction: what does not depend on how far one goes.

    Attributes
    ----------
    labels : DeviceLabels
        Labels and prices of the problems that move.
    moved : array of shape (n, n_live)
        Scores of the direction.
    slack : array of shape (n, n_live)
        1 − y f at the start.
    change : array of shape (n, n_live)
        y times the scores of the direction.
    pull : array of shape (n, n_live)
        That, times the prices.
    """

    labels: DeviceLabels
    moved: Array
    slack: Array
    change: Array
    pull: Array

    @classmethod
    def of(cls, labels: DeviceLabels, scores: Array, moved: Array) -> Line:
        """Return the line from scores in a direction."""
        rows = slice(0, moved.shape[0])
        sign = labels.sign(rows)
        change = sign * moved
        return cls(labels, moved, 1.0 - sign * scores, change, labels.price(rows) * change)

    def at(self, lengths: Array) -> Array:
        """Return slopes and curvatures of the losses at lengths of shape (n_lengths, n_live).

        They are of shape (n_lengths, 2, n_live).
        """
        n_lengths, values = lengths.shape[0], self.slack.shape[0] * self.slack.shape[1]
        step = max(1, _VALUES_AT_A_TIME // max(1, values))
        starts = range(0, n_lengths, step)
        parts = [self._at(lengths[k : min(k + step, n_lengths), :]) for k in starts]
        return parts[0] if len(parts) == 1 else self.labels.device.xp.concat(parts, axis=0)

    def _at(self, lengths: Array) -> Array:
        xp = self.labels.device.xp
        slack = self.slack - lengths[:, None, :] * self.change
        felt = xp.where(slack > 0, self.pull, xp.zeros_like(slack))
        along = [-_sum(xp, felt * slack, 1), _sum(xp, felt * self.change, 1)]
        return xp.stack(along, axis=1)
