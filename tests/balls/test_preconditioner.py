"""Division in the span of landmarks, against the inverse of the same matrix."""

from __future__ import annotations

import numpy as np
import pytest

from tests.balls.test_exact import stated
from widemargin.balls.preconditioner import Preconditioner


@pytest.mark.parametrize("room", [0, 10**9])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n_landmarks", [40, 300])
def test_it_is_the_inverse_of_the_system_in_the_span(room, threads, n_landmarks):
    problem = stated(1.0, n=300, threads=threads)
    rng = np.random.default_rng(0)
    active = np.sort(rng.permutation(300)[:220])
    mask, ridge = rng.random((220, 2)) < 0.7, rng.uniform(0.1, 2.0, (220, 1))
    landmarks = problem.rows.take(np.arange(n_landmarks))
    divide = Preconditioner(problem, active, mask, ridge, landmarks, np.float64, room)
    assert divide.chunk < 220  # so that there are several
    residual = np.where(mask, rng.normal(size=(220, 2)), 0.0)
    X = problem.rows.take(np.arange(300))
    K = problem.kernel.block(X, X) + 1.0
    for p in range(2):
        here = mask[:, p]
        across = K[active][:, :n_landmarks][here]
        in_span = across @ np.linalg.solve(K[:n_landmarks, :n_landmarks], across.T)
        expected = np.linalg.solve(in_span + np.diag(ridge[here, 0]), residual[here, p])
        found = divide(residual)[here, p]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_values_that_are_kept_are_computed_once():
    problem, active = stated(1.0, n=200), np.arange(200)
    mask, ridge = np.ones((200, 1), dtype=bool), np.ones((200, 1))
    landmarks = problem.rows.take(np.arange(50))
    counts = []
    for room in (0, 10**9):
        divide = Preconditioner(problem, active, mask, ridge, landmarks, np.float64, room)
        for _ in range(3):
            divide(np.ones((200, 1)))
        counts.append(divide.n_kernel)
    # For the matrix, and twice for each division.
    assert counts == [7 * 200 * 50, 200 * 50]
