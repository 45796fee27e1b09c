"""Loops over scores, and lower bounds, against plain NumPy and exact optima."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.reference import span as reference
from widemargin.kernels import make_kernel
from widemargin.problem import Problem
from widemargin.rows import as_rows
from widemargin.span.losses import (
    LowerBound,
    advance,
    along,
    blend,
    felt,
    inside_margin,
    nearest_margin,
    slopes,
)

N_PROBLEMS = 120


# ---------------------------------------------------------------- loops over scores


def random_problems(seed, n_problems, n=2500, threads=1):
    """Problems with classes, weights, values of C and folds, and scores for them.

    A fold is held out by some problems, and counted twice by some, as with a bootstrap.
    """
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 6))
    # Rows and kernel are not looked at.
    problems = Problem.of(
        as_rows(np.zeros((n, 1)), memory=10**8, threads=threads),
        make_kernel("linear"),
        rng.integers(0, n_classes, n),
        rng.choice([-1.0, 1.0], size=(n_classes, n_problems)),
        rng.uniform(0.2, 3.0, n),
        1.0,
    )
    problems = replace(
        problems,
        C=10.0 ** rng.uniform(-2, 2, n_problems),
        fold=rng.integers(0, 3, n).astype(np.int32),
        counts=rng.choice([0.0, 1.0, 2.0], size=(3, n_problems), p=[0.3, 0.5, 0.2]),
    )
    return problems, rng.normal(size=(n, n_problems)) * 1.5, rng


def plainly(problems):
    """Labels, and C s of every row in every problem, zero where its fold is held out."""
    sign = problems.table[problems.code]
    return sign, problems.weight[:, None] * problems.C * problems.counts[problems.fold]


LOOPS = [(seed, m, dtype) for seed in range(6) for m in (1, 30) for dtype in ("f4", "f8")]


def assert_close(found, expected, dtype, scale=None):
    """Equal but for rounding: of each value in single precision, relative to the largest."""
    scale = np.abs(expected).max(initial=0.0) if scale is None else scale
    np.testing.assert_allclose(found, expected, atol=(1e-5 if dtype == "f4" else 1e-12) * scale)


@pytest.mark.parametrize(("seed", "n_problems", "dtype"), LOOPS)
def test_slopes_are_the_derivatives_of_the_loss(seed, n_problems, dtype):
    problems, F, rng = random_problems(seed, n_problems)
    mixture = rng.normal(size=F.shape)
    sign, weight = plainly(problems)
    slack = np.maximum(0.0, 1.0 - sign * F) * (weight > 0)
    A = 2.0 * weight * sign * slack
    some = np.sort(rng.permutation(n_problems)[: max(1, n_problems // 3)])
    for live in (np.arange(n_problems), some):
        where = slice(300, 2100)
        expected = [weight * slack**2, A, sign * A, sign * slack * mixture]
        found, sums = slopes(problems, F.astype(dtype), where, live, mixture.astype(dtype))
        assert found.dtype == dtype and sums.dtype == np.float64
        assert_close(found, A[where][:, live], dtype)
        for one, plain_terms in zip(sums, expected, strict=True):
            terms = plain_terms[where][:, live]
            assert_close(one, terms.sum(axis=0), dtype, np.abs(terms).sum(axis=0).max())
        without, _ = slopes(problems, F.astype(dtype), where, live)
        np.testing.assert_array_equal(without, found)


@pytest.mark.parametrize("n_steps", [1, 5])
@pytest.mark.parametrize(("seed", "n_problems", "dtype"), LOOPS)
def test_along_gives_slopes_and_curvatures_on_a_line(seed, n_problems, dtype, n_steps):
    problems, F, rng = random_problems(seed, n_problems)
    live = np.sort(rng.permutation(n_problems)[: max(1, n_problems // 2)])
    D, steps = rng.normal(size=(len(F), len(live))), rng.uniform(0.0, 1.0, (n_steps, len(live)))
    sign, weight = (part[:, live] for part in plainly(problems))
    for n in (len(F), 1111):
        found = along(problems, F[:n, live].astype(dtype), D[:n].astype(dtype), live, steps)
        assert found.shape == (n_steps, 2, len(live))
        for step, (slope, curve) in zip(steps, found, strict=True):
            slack = np.maximum(0.0, 1.0 - sign * (F[:, live] + step * D))
            terms = (-2.0 * weight * slack * sign * D)[:n]
            assert_close(slope, terms.sum(axis=0), dtype, np.abs(terms).sum(axis=0).max())
            # A row on the margin itself may count or not in single precision.
            expected = (2.0 * weight * (slack > 0) * D * D)[:n].sum(axis=0)
            np.testing.assert_allclose(curve, expected, rtol=1e-4 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize(("seed", "n_problems", "dtype"), LOOPS)
def test_blend_and_advance_move_the_live_problems_only(seed, n_problems, dtype):
    problems, F, rng = random_problems(seed, n_problems)
    mixture = rng.normal(size=F.shape)
    sign, weight = plainly(problems)
    A = 2.0 * weight * sign * np.maximum(0.0, 1.0 - sign * F)
    live = np.sort(rng.permutation(n_problems)[: max(1, n_problems // 2)])
    share = rng.random(len(live))
    expected = mixture.copy()
    expected[:, live] = (1.0 - share) * mixture[:, live] + share * A[:, live]
    found = mixture.astype(dtype)
    blend(problems, F.astype(dtype), live, share, found)
    assert_close(found, expected, dtype)
    D, step = rng.normal(size=(len(F), len(live))), rng.normal(size=len(live))
    moved = F.astype(dtype)
    advance(problems, moved, D.astype(dtype), live, step)
    expected = F.copy()
    expected[:, live] += step * D
    assert_close(moved, expected, dtype)


@pytest.mark.parametrize("n_problems", [1, 30])
def test_active_and_nearest_look_at_the_folds_that_count(n_problems):
    for seed in range(10):
        problems, F, _ = random_problems(seed, n_problems)
        sign, weight = plainly(problems)
        margin = np.where(weight > 0, sign * F, np.inf)
        nearest = nearest_margin(problems, F)
        np.testing.assert_array_equal(nearest, margin.min(axis=1))
        for p in range(n_problems):
            for n in (len(F), 999):
                expected = np.flatnonzero(margin[:n, p] < 1.0)
                np.testing.assert_array_equal(inside_margin(problems, F[:n], p), expected)
            np.testing.assert_array_equal(problems.sign(p, slice(5, 50)), sign[5:50, p])
        order = np.random.default_rng(seed).permutation(len(F))
        moved = problems.subset(order)
        np.testing.assert_array_equal(nearest_margin(moved, F[order]), nearest[order])


@pytest.mark.parametrize("n_problems", [1, 30])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_loops_give_the_same_bits_for_any_number_of_threads(n_problems, dtype):
    n = 150_000 // n_problems
    results = []
    for threads in (1, 3):
        problems, F, rng = random_problems(0, n_problems, n, threads)
        F, live = F.astype(dtype), np.arange(n_problems)
        D = rng.normal(size=F.shape).astype(dtype)
        mixture, step = np.zeros_like(F), rng.random(n_problems)
        sums = along(problems, F, D, live, step[None])
        blend(problems, F, live, step, mixture)
        advance(problems, F, D, live, step)
        results.append([*sums, mixture, F])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_problems", [1, 30])
def test_what_problems_feel_of_a_row_is_told_in_the_order_of_the_rows(n_problems):
    problems, F, rng = random_problems(0, n_problems, n=40_000)
    sign, weight = plainly(problems)
    expected = (2.0 * weight * np.maximum(0.0, 1.0 - sign * F) / problems.C).sum(axis=1)
    everything = np.arange(len(F))
    np.testing.assert_allclose(felt(problems, F, everything, len(F)), expected)
    order = rng.permutation(len(F))
    # Of rows that were not looked at nothing is known.
    first = felt(problems.subset(order), F[order], order, 20_000)
    np.testing.assert_allclose(first[order[:20_000]], expected[order[:20_000]])
    assert not first[order[20_000:]].any()


# ---------------------------------------------------------------- lower bounds


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_lower_bound_never_passes_the_optimum_and_never_falls(dtype):
    rounding = 1e-5 if dtype == "f4" else 1e-12
    tight = 0
    for seed in range(N_PROBLEMS):
        problems, _, rng = random_problems(seed, 2, n=60)
        F = rng.normal(size=(60, 4)) * rng.choice([0.3, 1.0, 3.0])
        sign, weight = plainly(problems)
        used = [weight[:, p] > 0 for p in range(2)]
        optima = [
            reference.best_machine(F[u], sign[u, p], 1.0, weight[u, p]) if u.any() else None
            for p, u in enumerate(used)
        ]
        bound, best = LowerBound(2), np.zeros(2)
        mixture = np.zeros((60, 2), dtype=dtype)
        for turn in range(8):
            # Scores of any machines at all, ever nearer to the best ones; not always of both.
            live = np.arange(2) if turn % 3 == 0 else np.array([turn % 2])
            noise = 0.5**turn * rng.normal(size=(5, 2))
            scores = np.hstack([F, np.ones((60, 1))]) @ noise
            for p, optimum in enumerate(optima):
                if optimum is not None:
                    scores[:, p] += F @ optimum.coef + optimum.intercept
            scores = scores.astype(dtype)
            A, sums = slopes(problems, scores, slice(0, 60), live, mixture)
            whitened = np.vstack([F.T @ A.astype(float), sums[1]])
            values, share = bound.improved(live, whitened, sums)
            blend(problems, scores, live, share, mixture)
            assert (values >= best[live] * (1.0 - rounding)).all()
            best[live] = values
            for j, p in enumerate(live):
                if optima[p] is None:
                    assert values[j] == 0.0
                    continue
                assert values[j] <= optima[p].value * (1.0 + rounding)
                tight += values[j] > 0.99 * optima[p].value
                # It is what its own mixture proves, computed from scratch.
                alpha = (mixture[:, p] * sign[:, p]).astype(float)
                assert alpha.min() >= -rounding * alpha.max()
                norm2 = (np.vstack([F.T, np.ones(60)]) @ mixture[:, p].astype(float)) ** 2
                norm2 = norm2.sum() + (alpha[used[p]] ** 2 / (2.0 * weight[used[p], p])).sum()
                proven = alpha.sum() ** 2 / (2.0 * norm2) if alpha.any() else 0.0
                assert values[j] == pytest.approx(proven, rel=10 * rounding)
    assert tight > N_PROBLEMS
