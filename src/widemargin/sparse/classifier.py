"""What the sparse classifiers share: how many vectors, where they start, how they are placed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from widemargin.balls import Points
from widemargin.certificate import relative_gap
from widemargin.classifier import KernelClassifier
from widemargin.deadline import Deadline
from widemargin.loop import Result
from widemargin.machines import Machines
from widemargin.parameters import check_choice, check_count, check_number
from widemargin.progress import Report
from widemargin.rows import parse_memory, weighted_moments
from widemargin.rows.base import IndexArray
from widemargin.span import as_strategy
from widemargin.sparse.growth import newcomers, stages
from widemargin.sparse.marginal import Marginal, MarginalFunction
from widemargin.sparse.pre_image import Expansion
from widemargin.sparse.search import Found, minimise
from widemargin.sparse.start import reduced_set

Matrix = NDArray[np.float64]

# Rows on which vectors are placed first where there are many more of them.
_FIRST_ROWS = 10_000
# The share by which two steps there must lower W: vectors soon learn what is true of the sample
# only, and one step over all rows is then worth many of these.
_ROUGH = 1e-2
# Rows of each class among them, at the least.
_LEAST_OF_A_CLASS = 20
_INTERRUPTED = "interrupted"
# Sets of newcomers of which the best joins.
_TRIES = 5
# Rows up to which the exact machine is fitted to count its support vectors.
_MOST_EXACT_ROWS = 20_000
# Kernels that scikit-learn's machine knows by the same name and parameters.
_SVC_KERNELS = "linear", "poly", "rbf", "sigmoid"


class SparseClassifier(KernelClassifier):
    """Base of the classifiers that place their vectors: a subclass says what W is."""

    warm_start = False

    n_vectors: float
    init: Any
    share_vectors: bool
    grow: str | None

    @abstractmethod
    def _function(self, points: Points, rows: IndexArray | None, threads: int) -> MarginalFunction:
        """Return W of some rows (all if None) for the problems of `points`."""

    def _machine(self, points: Points, found: Found, threads: int) -> Marginal:
        """Return the machine on the vectors that were found."""
        return found.marginal

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.grow is not None:
            check_choice("grow", self.grow, ("one", "double"))
        if isinstance(self.n_vectors, Integral) and not isinstance(self.n_vectors, bool):
            check_count("n_vectors", self.n_vectors)
        else:
            check_number("n_vectors", self.n_vectors)
            if not 0.0 < self.n_vectors <= 1.0:
                raise ValueError(
                    f"n_vectors={self.n_vectors!r} must be a whole number, or a share between 0 "
                    "and 1 of the exact machine's support vectors."
                )
        if isinstance(self.init, str):
            check_choice("init", self.init, ("kmeans", "random", "reduced_set"))
        if self._precomputed():
            raise ValueError(
                "kernel='precomputed' has no vectors that could be moved; give the rows and a "
                "kernel with a gradient, such as 'rbf'."
            )

    def _fit_points(self, points: Points, threads: int, report: Report) -> Result[Any]:
        self._check_gradient(points)
        rng, deadline = self._rng(), Deadline.after(self.max_time)
        everything = list(range(points.n_problems))
        groups = [everything] if self.share_vectors else [[p] for p in everything]
        curves: list[list[Found]] = []
        for g, group in enumerate(groups):
            own = replace(points, table=points.table[:, group])
            until = deadline.part(1.0 / (len(groups) - g))
            # After an interrupt the other problems get a machine where their vectors start.
            enough = any(_ended(found) for curve in curves for found in curve)
            curves.append(self._placed(own, threads, rng, until, report, enough))
        vectors, coef, intercept = self._joined(points, groups, [curve[-1] for curve in curves])
        self._keep_machine(points, vectors, None, coef, intercept)
        self.expansion_vectors_, self.coef_ = vectors, self.dual_coef_
        self.n_vectors_ = len(vectors)
        sizes = [len(curve[-1].vectors) for curve in curves]
        self.vector_problem_ = np.repeat(np.arange(len(groups)), sizes)
        self.history_ = [np.concatenate([found.history for found in curve]) for curve in curves]
        if hasattr(self, "accuracy_curve_"):
            del self.accuracy_curve_
        if self.grow is not None:
            self._keep_curve(points, groups, curves)
        return _result(curves)

    # Vectors of one problem, or of several that share them.

    def _check_gradient(self, points: Points) -> None:
        if not points.kernel.differentiable:
            raise ValueError(
                f"kernel={self.kernel!r} has no gradient, so its vectors cannot be moved; use a "
                "kernel such as 'rbf', or `MarginClassifier`, which chooses rows."
            )

    def _placed(
        self,
        points: Points,
        threads: int,
        rng: np.random.Generator,
        deadline: Deadline,
        report: Report,
        enough: bool,
    ) -> list[Found]:
        """Return the vectors after each stage of growth; where they start, if that is enough."""
        moments = weighted_moments(points.rows, points.weight)
        length = float(np.sqrt(moments.variance.mean()))
        start = self._start(points, rng)
        sizes = stages(len(start), self.grow)
        sample = _sample(points)
        curve: list[Found] = []
        reason = _INTERRUPTED
        for s, size in enumerate(sizes):
            Z = start[:size]
            if curve:
                tries = _grown(points, curve[-1], size, rng)
                judge = self._function(points, sample, threads)
                try:
                    Z = tries[0] if enough else min(tries, key=lambda Z: judge(Z).value)
                except KeyboardInterrupt:
                    Z, enough, reason = tries[0], True, _INTERRUPTED
            limits: dict[str, Any] = {"length": length, "report": report}
            parts = 2 * (len(sizes) - s)
            first: Found | None = None
            if sample is not None and not enough:
                rough = self._function(points, sample, threads)
                tol, until = max(self.tol, _ROUGH), deadline.part(1.0 / parts)
                first = minimise(
                    rough, Z, max_iter=self.max_iter, tol=tol, deadline=until, **limits
                )
                Z, enough, reason = first.vectors, _ended(first), first.stopped
            function = self._function(points, None, threads)
            until = deadline.part(1.0 / (parts - 1 if sample is not None else parts // 2))
            steps = 0 if enough else self.max_iter
            found = minimise(function, Z, max_iter=steps, tol=self.tol, deadline=until, **limits)
            if first is not None:
                found = _after(first, found)
            if enough:
                found = replace(found, certificate=replace(found.certificate, stopped=reason))
            enough, reason = enough or _ended(found), found.stopped
            curve.append(replace(found, marginal=self._machine(points, found, threads)))
        return curve

    def _start(self, points: Points, rng: np.random.Generator) -> Matrix:
        """Return the vectors to start from."""
        if not isinstance(self.init, str):
            try:
                given = np.array(self.init, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"init={self.init!r} must be a table of numbers.") from error
            if not np.isfinite(given).all():
                raise ValueError("init holds values that are not finite; give other vectors.")
            if given.ndim != 2 or given.shape[1] != points.rows.shape[1] or not len(given):
                raise ValueError(
                    "init must be 'kmeans', 'random', 'reduced_set', or vectors of "
                    f"{points.rows.shape[1]} features, but has shape {given.shape}."
                )
            return given
        if self.init == "reduced_set":
            return self._reduced_set(points, rng)
        strategy = as_strategy(self.init, points.rows.shape[1])
        choice = strategy.begin(points.rows, points.kernel, points.weight, rng)
        vectors: Matrix = choice.draw(self._count(points), None).values.astype(np.float64)
        return vectors

    def _reduced_set(self, points: Points, rng: np.random.Generator) -> Matrix:
        """Return reduced sets of the exact machines, of each problem its part."""
        n_problems = points.n_problems
        reason = "init='reduced_set' starts from the exact machine", "use init='kmeans'"
        labels = [points.sign(p, slice(None)) for p in range(n_problems)]
        machines = [self._exact(points, own, *reason) for own in labels]
        count = self._count(points, machines[0] if n_problems == 1 else None)
        parts = []
        for p, machine in enumerate(machines):
            vectors = points.rows.take(machine.support_).astype(np.float64)
            whole = Expansion(points.kernel, vectors, machine.dual_coef_[0])
            share = (count + n_problems - 1 - p) // n_problems
            if share:
                parts.append(reduced_set(whole, share, rng))
        return np.concatenate(parts)

    def _count(self, points: Points, machine: SVC | None = None) -> int:
        """Return how many vectors are asked for; the exact machine need not be fitted twice."""
        if isinstance(self.n_vectors, Integral):
            return min(int(self.n_vectors), points.n)
        if machine is None:
            # Of several problems with one set of vectors, the vectors of all.
            labels = points.code if points.n_problems > 1 else points.sign(0, slice(None))
            why = f"n_vectors={self.n_vectors!r} is a share of the exact machine's vectors"
            machine = self._exact(points, labels, why, "give a whole number")
        # Equal rows are one row here, with a bound on α of C for each copy.
        copies = np.floor(np.abs(machine.dual_coef_).max(axis=0) / points.C + 1e-6)
        count = round(float(self.n_vectors) * float(np.maximum(1.0, copies).sum()))
        return min(max(1, count), points.n)

    def _exact(self, points: Points, labels: NDArray[Any], why: str, instead: str) -> SVC:
        """Return the SVM with all its support vectors, unless there are too many rows."""
        n, d = points.rows.shape
        if n > _MOST_EXACT_ROWS or 8 * n * d > parse_memory(self.memory):
            raise ValueError(f"{why}, which takes too long to fit to {n:,} rows; {instead}.")
        X = points.rows.take(np.arange(n))
        name, kernel = points.kernel.name, None
        if name not in _SVC_KERNELS:
            X, kernel = np.asarray(points.kernel.block(X, X)), "precomputed"
        machine = SVC(
            C=points.C,
            kernel=kernel or name,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
        )
        return machine.fit(X, labels, sample_weight=points.weight)

    # All problems together.

    def _joined(
        self, points: Points, groups: list[list[int]], found: Sequence[Found]
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return vectors, coefficients and biases of the machines of all problems."""
        vectors = np.concatenate([each.vectors for each in found])
        coef = np.zeros((len(vectors), points.n_problems))
        intercept = np.zeros(points.n_problems)
        first = 0
        for group, each in zip(groups, found, strict=True):
            own = slice(first, first + len(each.vectors))
            coef[own, group] = each.marginal.beta
            intercept[group] = each.marginal.intercept
            first = own.stop
        return vectors, coef, intercept

    def _keep_curve(
        self, points: Points, groups: list[list[int]], curves: list[list[Found]]
    ) -> None:
        """Set what each number of vectors is good for."""
        lines = []
        for s in range(max(len(curve) for curve in curves)):
            found = [curve[min(s, len(curve) - 1)] for curve in curves]
            vectors, coef, intercept = self._joined(points, groups, found)
            rows = points.rows
            machines = Machines(
                points.kernel, vectors, coef, intercept, np.float64, rows.vectors_at_a_time
            )
            scores = np.concatenate(list(rows.scan(machines, width=machines.width)))
            winner = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0)
            right = float(points.weight[winner == points.code].sum() / points.weight.sum())
            lines.append((len(vectors), right, sum(each.certificate.primal for each in found)))
        n_vectors, accuracy, W = zip(*lines, strict=True)
        self.accuracy_curve_ = {
            "n_vectors": np.array(n_vectors),
            "training_accuracy": np.array(accuracy),
            "W": np.array(W),
        }


def _grown(points: Points, last: Found, size: int, rng: np.random.Generator) -> list[Matrix]:
    """Return the vectors with several sets of newcomers, to choose from.

    A vector that the machine has no use for where it is gets a coefficient of zero, and with it a
    gradient of zero: it would stay there.
    """
    missing = size - len(last.vectors)
    return [
        np.concatenate([last.vectors, newcomers(points, last.vectors, last.marginal, missing, rng)])
        for _ in range(_TRIES)
    ]


def _ended(found: Found) -> bool:
    """Return whether someone asked the search to end."""
    return found.stopped in (_INTERRUPTED, "a callback asked to stop")


def _after(first: Found, found: Found) -> Found:
    """Return what was found, with the cost of the search on a sample before it."""
    before, after = first.certificate, found.certificate
    cost = {name: getattr(before, name) + getattr(after, name) for name in ("n_kernel", "seconds")}
    return replace(found, certificate=replace(after, **cost))


def _sample(points: Points) -> IndexArray | None:
    """Return rows to begin with where there are many, some of every class; None for all."""
    if points.n <= 2 * _FIRST_ROWS:
        return None
    n_classes = len(points.table)
    each = max(1, min(_LEAST_OF_A_CLASS, _FIRST_ROWS // n_classes))
    some = np.concatenate([np.flatnonzero(points.code == c)[:each] for c in range(n_classes)])
    # Rows come in the order of a hash, so that the first ones are a sample.
    others = np.setdiff1d(np.arange(_FIRST_ROWS), some)
    return np.sort(np.concatenate([some, others[: max(0, _FIRST_ROWS - len(some))]]))


def _result(curves: list[list[Found]]) -> Result[Any]:
    """Return the machines of all problems as one result."""
    last = [curve[-1] for curve in curves]
    every = [found for curve in curves for found in curve]
    primal = sum(found.certificate.primal for found in last)
    dual = sum(found.certificate.dual for found in last)
    ended = [found for found in every if _ended(found)]
    short = ended or [found for found in every if not found.converged]
    certificate = replace(
        last[-1].certificate,
        primal=primal,
        dual=dual,
        gap=relative_gap(primal, dual),
        n_vectors=sum(found.certificate.n_vectors for found in last),
        n_iter=sum(found.certificate.n_iter for found in every),
        n_passes=sum(found.certificate.n_passes for found in every),
        n_kernel=sum(found.certificate.n_kernel for found in every),
        seconds=sum(found.certificate.seconds for found in every),
        stopped=(short or last)[0].stopped,
    )
    return Result(curves, certificate, not short)
