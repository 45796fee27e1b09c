"""What became of a grid: scores, the best of them, and the results that users see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from widemargin.arrays import Matrix, Vector
from widemargin.base.widths import Width


class Searched(Protocol):
    """What is to be known of a grid."""

    @property
    def widths(self) -> Sequence[Width]:
        """Kernels and their widths."""

    @property
    def params(self) -> list[dict[str, Any]]:
        """All combinations, the widths running fastest."""


@dataclass
class Found:
    """What a search has found.

    Attributes
    ----------
    grid : Searched
        What was searched.
    scores : ndarray of shape (n_widths, n_each, n_folds)
        Of all combinations with each width, in their order; NaN where there was no time.
    seconds : ndarray of shape (n_widths,)
        What all values of C and all folds of a width took together.
    finished : ndarray of bool of shape (n_widths,)
        Whether the machines of a width were.
    expected : int or None, default=None
        The combination that counts as the best while none is scored, if one is known to be good.
    """

    grid: Searched
    scores: NDArray[np.float64]
    seconds: Vector
    finished: NDArray[np.bool_]
    expected: int | None = None

    @classmethod
    def nothing(cls, grid: Searched, n_folds: int) -> Found:
        """Return a search that has not begun."""
        n = len(grid.widths)
        scores = np.full((n, len(grid.params) // n, n_folds), np.nan)
        return cls(grid, scores, np.zeros(n), np.zeros(n, dtype=bool))

    def on(self, grid: Searched, kept: Sequence[int | None]) -> Found:
        """Return what is known of another grid, whose widths are some of this one's, or new."""
        other = Found.nothing(grid, self.scores.shape[2])
        for w, before in enumerate(kept):
            if before is not None:
                other.scores[w], other.seconds[w] = self.scores[before], self.seconds[before]
                other.finished[w] = self.finished[before]
        return other

    @property
    def of_pairs(self) -> Matrix:
        """The scores of each combination, a row, in each fold."""
        return self.scores.swapaxes(0, 1).reshape(-1, self.scores.shape[2])

    def best(self) -> tuple[int, float]:
        """Return the best combination, and its score; NaN if there is none.

        Machines that are not finished are judged only where there are no others.
        """
        flat = self.of_pairs
        mean = flat.mean(axis=1)
        finished = np.tile(self.finished, self.scores.shape[1]) | ~self.finished.any()
        judged = np.where(finished & ~np.isnan(mean), mean, -np.inf)
        if not np.isfinite(judged).any():
            # By the folds that there was time for.
            known = np.isfinite(flat)
            total = np.where(known, flat, 0.0).sum(axis=1)
            judged = np.full(len(flat), -np.inf)
            np.divide(total, known.sum(axis=1), out=judged, where=known.any(axis=1))
        if not np.isfinite(judged).any():
            return self.expected or 0, float("nan")
        index = int(judged.argmax())
        return index, float(judged[index])

    def results(self) -> dict[str, Any]:
        """Return what `GridSearchCV` has as `cv_results_`."""
        params, flat = self.grid.params, self.of_pairs
        mean = flat.mean(axis=1)
        results: dict[str, Any] = {"params": params}
        results["param_C"] = np.ma.array([each["C"] for each in params])
        for name in ("epsilon", "gamma", "kernel", "scale", "metric"):
            if not any(name in each for each in params):
                continue
            values = np.empty(len(params), dtype=object)
            values[:] = [each.get(name) for each in params]
            missing = [name not in each for each in params]
            results[f"param_{name}"] = np.ma.array(values, mask=missing)
        results |= {f"split{k}_test_score": flat[:, k] for k in range(flat.shape[1])}
        results["mean_test_score"] = mean
        results["std_test_score"] = flat.std(axis=1)
        ranked = np.where(np.isnan(mean), -np.inf, mean)
        results["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
        results["fit_time"] = np.tile(self.seconds, self.scores.shape[1])
        return results
