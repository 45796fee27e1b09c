"""All rows of a fit, in one shard or many: what they are told, and the sums of their answers.

A `Place` is where shards live. Here it is this process; on a cluster it is its workers. A place is
*told* what changes shards, and *asked* for what they know; answers come in the order of the shards,
so that sums do not depend on who was faster. Between two questions a place may wait with what it
was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Values, Vector
from widemargin.device import Device
from widemargin.problem import Problem
from widemargin.span.basis import Basis
from widemargin.span.device_basis import no_vectors
from widemargin.span.device_shard import DeviceShard
from widemargin.span.losses import hidden_by_rounding, rows_to_measure
from widemargin.span.shard import Gram, GramPlan, Outcome, Shard

# Keys that are asked about at a time in the search for the first rows of all.
_AT_A_TIME = 1024


class Each(tuple[Any, ...]):
    """An argument that is another one for each shard."""

    __slots__ = ()


class Place(Protocol):
    """Where shards live.

    Attributes
    ----------
    sizes : tuple of int
        Rows of each shard.
    """

    sizes: tuple[int, ...]

    @property
    def n_kernel(self) -> int:
        """Kernel values that were computed."""

    def tell(self, what: str, *arguments: Any) -> None:
        """Let every shard do something, now or before the next question."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what the shards answer, in their order."""


def arguments_of(arguments: Sequence[Any], shard: int) -> list[Any]:
    """Return the arguments of one shard."""
    return [each[shard] if isinstance(each, Each) else each for each in arguments]


class Here:
    """Shards of this process, one after another; threads work inside each."""

    def __init__(self, shards: Sequence[Shard | DeviceShard]) -> None:
        self.shards = list(shards)
        self.sizes = tuple(shard.n for shard in self.shards)

    @property
    def n_kernel(self) -> int:
        """Kernel values that were computed."""
        return sum(shard.values.n_kernel for shard in self.shards)

    def tell(self, what: str, *arguments: Any) -> None:
        """Let every shard do something."""
        self.ask(what, *arguments)

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what the shards answer."""
        return [
            getattr(shard, what)(*arguments_of(arguments, k)) for k, shard in enumerate(self.shards)
        ]


class Shards:
    """The rows of a fit.

    Parameters
    ----------
    place : Place
        Where they are.
    step : int
        Rows of a block: samples of rows have whole blocks.
    """

    def __init__(self, place: Place, step: int) -> None:
        self.place = place
        self.step = step
        self.n = sum(place.sizes)
        self.n_passes = 0
        # Whether rows stand in the order of their keys.
        self._sorted = True
        # How many rows of each shard are the first ones of all.
        self._first: dict[int, Each] = {0: Each(0 for _ in place.sizes), self.n: Each(place.sizes)}
        # For how many rows of each shard values are kept, for numbers of vectors.
        self._kept: dict[int, list[int]] = {}
        # Whether the values of all rows are known to be kept and computed.
        self._complete = False

    @classmethod
    def here(
        cls,
        problem: Problem,
        dtype: np.dtype[Any],
        room: int,
        width: int,
        shared: Shards | None = None,
    ) -> Shards:
        """Return the rows of a problem as one shard in this process, perhaps with shared values.

        Where the rows say so, it is on a device.
        """
        other = None if shared is None else shared.only
        shard: Shard | DeviceShard
        if problem.rows.device is None:
            assert not isinstance(other, DeviceShard)
            shard = Shard(problem, dtype, room, width, shared=other)
        else:
            assert not isinstance(other, Shard)
            shard = DeviceShard(problem, problem.rows.device, dtype, room, width, shared=other)
        found = cls(Here([shard]), shard.values.step)
        found.n_passes = 0 if shared is None else shared.n_passes
        return found

    @property
    def only(self) -> Shard | DeviceShard:
        """The one shard that is here."""
        assert isinstance(self.place, Here) and len(self.place.shards) == 1
        return self.place.shards[0]

    @property
    def device(self) -> Device | None:
        """Where the one shard is; None if that is this machine, or there are several."""
        if not isinstance(self.place, Here) or len(self.place.shards) != 1:
            return None
        only = self.only
        return only.device if isinstance(only, DeviceShard) and not only.for_others else None

    def no_vectors(self) -> Basis:
        """Return the basis of no vectors, where the shards are."""
        return no_vectors(self.device)

    @property
    def many(self) -> bool:
        """Whether there is more than one shard."""
        return len(self.place.sizes) > 1

    @property
    def answers_late(self) -> bool:
        """Whether an answer waits for messages or launches, however little is asked."""
        return self.many or (self.device is not None and self.device.is_cuda)

    @property
    def n_kernel(self) -> int:
        """Kernel values that were computed."""
        return self.place.n_kernel

    # How many rows.

    def first(self, n_rows: int) -> int:
        """Return how many rows are looked at where `n_rows` are wanted: as good as that many."""
        if n_rows in self._first or not self.many:
            return n_rows
        if not self._sorted:
            # Rows have changed places in a fit before: as many of each shard as it has of all.
            part = Each(n_rows * size // self.n for size in self.place.sizes)
            self._first[sum(part)] = part
            return sum(part)
        low, high = 0, 2**64 - 1
        counts = np.zeros((1, len(self.place.sizes)), dtype=np.intp)
        while high - low > 1:
            step = max(1, (high - low) // _AT_A_TIME)
            thresholds = np.arange(low + step, high, step, dtype=np.uint64)
            answers = self.place.ask("below", thresholds)
            counts = np.array(answers).T
            total = counts.sum(axis=1)
            at = int(np.searchsorted(total, n_rows))
            if at < len(total) and total[at] == n_rows:
                break
            low, high = (
                int(thresholds[at - 1]) if at else low,
                int(thresholds[at]) if at < len(total) else high,
            )
        found = Each(int(count) for count in counts[min(at, len(counts) - 1)])
        self._first[sum(found)] = found
        return sum(found)

    def _of_each(self, n_rows: int) -> Any:
        return self._first[n_rows] if self.many else n_rows

    def restart(self, dtype: np.dtype[Any]) -> None:
        """Begin anew, with kernel values of this precision in as many bytes as before."""
        self.place.tell("restart", dtype)
        self._kept.clear()
        self._complete = False
        if isinstance(self.place, Here) and not self.many:
            self.step = self.only.values.step

    def restate(self, problem: Problem) -> None:
        """Begin anew with other problems, on the kernel values that are there."""
        self.place.tell("restate", problem.table, problem.C, problem.counts)

    def rows_kept(self, width: int) -> int:
        """Return for how many rows the values of so many vectors can be kept."""
        return sum(self._kept_of_each(width))

    def _kept_of_each(self, width: int) -> list[int]:
        if width not in self._kept:
            self._kept[width] = self.place.ask("rows_kept", width)
        return self._kept[width]

    @property
    def complete(self) -> bool:
        """Whether the values of all rows are kept and computed."""
        if not self._complete:
            self._complete = all(self.place.ask("complete"))
        return self._complete

    # Vectors.

    def add(self, vectors: NDArray[Any]) -> None:
        """Let vectors join."""
        self.place.tell("add", vectors)
        self._complete = False

    def draw(self, count: int, seed: int, n_rows: int | None) -> tuple[NDArray[Any], ...]:
        """Draw rows; return them with their classes, weights, numbers and groups.

        With `n_rows`, in proportion to how much the machine feels them, else to their weights.
        """
        felt = None if n_rows is None else self._of_each(n_rows)
        found = self.place.ask("candidates", count, seed, felt)
        time = np.concatenate([each[0] for each in found])
        shard = np.repeat(np.arange(len(found)), [len(each[0]) for each in found])
        order = np.argsort(time, kind="stable")[:count]
        index = np.concatenate([each[1] for each in found])
        chosen = Each(index[order][shard[order] == k] for k in range(len(found)))
        parts = self.place.ask("taken", chosen)
        # Back into the order in which they were drawn.
        place = np.argsort(np.argsort(shard[order], kind="stable"), kind="stable")
        return tuple(np.concatenate(each)[place] for each in zip(*parts, strict=True))

    def felt(self, n_rows: int) -> Vector:
        """Return how much each row that is here is felt by the problems, in their first order."""
        return self.only.felt(n_rows)

    # Sums.

    def score(self, beta: Matrix, first: int, stop: int) -> None:
        """Compute the scores of some rows from the coefficients."""
        self.place.tell("score", beta, self._of_each(first), self._of_each(stop))
        self.n_passes += first == 0 and stop == self.n

    def pull(
        self, n_rows: int, live: IndexArray, mixed: bool, change: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Return Σ_i A_i k_z(x_i), and the sums of `slopes`."""
        answers = self.place.ask("pull", self._of_each(n_rows), live, mixed, change)
        self.n_passes += n_rows == self.n
        return sum_of([each[0] for each in answers]), sum_of([each[1] for each in answers])

    def moments(self, beta: Matrix) -> Matrix:
        """Return Σ_i s_i k_z(x_i) f(x_i) over all rows for functions f = Σ β k(z, ·)."""
        self.n_passes += 1
        return sum_of(self.place.ask("moments", beta))

    def forget_mixture(self) -> None:
        """Begin the mixture of dual points anew."""
        self.place.tell("forget_mixture")

    def blend(self, n_rows: int, live: IndexArray, share: Vector) -> None:
        """Move the mixture towards the dual points of the scores."""
        self.place.tell("blend", self._of_each(n_rows), live, share)

    def judges(self, n_rows: int, size: int) -> int:
        """Return how many of the first rows have kept values of all vectors."""
        if not self.many:
            return min(n_rows, self.rows_kept(size))
        pairs = zip(self._kept_of_each(size), self._first[n_rows], strict=True)
        each = Each(min(kept, n) for kept, n in pairs)
        self._first.setdefault(sum(each), each)
        return sum(each)

    def look_along(
        self, direction: Matrix, live: IndexArray, n_rows: int, judges: int, lengths: Matrix
    ) -> tuple[NDArray[np.float64], float]:
        """Return slopes and curvatures after steps, and how many times as heavy all rows are."""
        answers = self.place.ask(
            "look_along", direction, live, self._of_each(n_rows), self._of_each(judges), lengths
        )
        self.n_passes += judges == self.n
        weight, used = (sum(each[k] for each in answers) for k in (1, 2))
        # No rows are left where all lie far outside every margin.
        return sum_of([each[0] for each in answers]), weight / used if used else 1.0

    def along(self, live: IndexArray, lengths: Matrix) -> NDArray[np.float64]:
        """Return slopes and curvatures after steps of some lengths, as `Shard.along` does."""
        return sum_of(self.place.ask("along", live, lengths))

    def advance(self, live: IndexArray, length: Vector) -> None:
        """Take the step."""
        self.place.tell("advance", live, length)

    def gram(self, plan: GramPlan) -> Gram:
        """Return the sum of a Newton matrix, over the rows with the least keys."""
        if not self.many:
            alone: Gram = self.place.ask("gram", plan)[0]
            return alone
        rows = self._of_each(plan.n_rows)
        plans = Each(GramPlan(**vars(plan) | {"n_rows": n}) for n in rows)
        found = self.place.ask("inside", plans)
        keys = np.sort(np.concatenate([each[1] for each in found]))
        threshold = int(keys[plan.most - 1]) if len(keys) >= plan.most else 2**64 - 1
        plans = Each(GramPlan(**vars(each) | {"threshold": threshold}) for each in plans)
        answers = self.place.ask("gram", plans)
        sums = [sum_of(list(each)) for each in zip(*(a.sums for a in answers), strict=True)]
        return Gram(
            sums,
            sum(each.count for each in answers),
            sum(each.weight for each in answers),
            sum(each.used_weight for each in answers),
        )

    def near(self, limit: float) -> Each:
        """Return how many rows of each shard hold those with a margin below a limit."""
        return Each(self.place.ask("near", limit))

    def bring_near(self, limit: float, near: Each) -> int:
        """Bring these rows to the front, and return how many they are."""
        self.place.tell("bring_near", limit)
        self._complete = False
        # Other rows are the first ones now.
        self._sorted = False
        self._first = {n: each for n, each in self._first.items() if n in (0, self.n)}
        self._first[sum(near)] = near
        return sum(near)

    def hidden(self, vectors: NDArray[Any], beta: Matrix) -> float:
        """Return how far rounded kernel values may move primal − dual."""
        size = rows_to_measure(self.n, vectors)
        sizes = Each(-(-size * n // max(1, self.n)) for n in self.place.sizes)
        sums = sum_of(self.place.ask("rounding", vectors, beta, sizes))
        return hidden_by_rounding(sums, self.n)

    def outcome(self) -> Outcome:
        """Return how the scores of all rows agree with their labels."""
        found: list[Outcome] = self.place.ask("outcome")
        if len(found) == 1:
            return found[0]
        there = [each for each in found if each.weight]
        return Outcome(
            sum_of([each.wrong for each in found]),
            sum(each.weight for each in found),
            np.min([each.least for each in there], axis=0),
            np.max([each.largest for each in there], axis=0),
        )

    def scores(self) -> Values:
        """Return the scores of all rows that are here, in their first order."""
        return self.only.scores_in_order()

    def scores_at(self, index: IndexArray, columns: IndexArray) -> Values:
        """Return the scores of some rows that are here, by their first order, in some problems."""
        return self.only.scores_at(index, columns)


def sum_of(matrices: Sequence[Matrix]) -> Matrix:
    """Return the sum of matrices, added in their order; the one itself if there is no other."""
    if len(matrices) == 1:
        return matrices[0]
    total = matrices[0] + matrices[1]
    for matrix in matrices[2:]:
        total += matrix
    return np.asarray(total)
