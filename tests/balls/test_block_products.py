"""Products with a kernel matrix by blocks, against plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.balls.test_exact import stated
from widemargin.balls.block_products import BlockProducts


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("room", [0, 40_000, 10**9])
@pytest.mark.parametrize("threads", [1, 3])
def test_products_are_those_of_the_whole_matrix(kernel, room, threads):
    problem = stated(1.0, n=300, kernel=kernel, threads=threads)
    rng = np.random.default_rng(0)
    index = np.sort(rng.permutation(300)[:250])
    X = problem.rows.take(index)
    K = np.empty((250, 250))
    problem.kernel.block(X, X, K)
    products = BlockProducts(problem, index, np.float64, room)
    assert products.size < 250  # so that there are several blocks
    for coef in rng.normal(size=(3, 250, 2)):
        np.testing.assert_allclose(products(coef), (K + 1.0) @ coef, rtol=1e-9, atol=1e-9)


def test_half_of_the_values_are_computed_and_those_that_are_kept_only_once():
    problem, index = stated(1.0, n=256), np.arange(256)
    coef = np.ones((256, 1))
    counts = {}
    for room in (0, 10**9):
        products = BlockProducts(problem, index, np.float64, room)
        assert products.size == 64
        products(coef)
        counts[room] = [products.n_kernel]
        products(coef)
        counts[room].append(products.n_kernel)
    # 4 blocks on the diagonal and 6 above it.
    assert counts == {0: [10 * 64**2, 20 * 64**2], 10**9: [10 * 64**2, 10 * 64**2]}


def test_no_rows_and_one_row():
    problem = stated(1.0)
    for size in (0, 1):
        products = BlockProducts(problem, np.arange(size), np.float64, 0)
        np.testing.assert_allclose(products(np.ones((size, 1))), 2.0 * np.ones((size, 1)))
