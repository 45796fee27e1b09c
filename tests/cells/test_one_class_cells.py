"""The one-class machine in cells: one machine of a kernel that is zero between cells."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from widemargin import MarginOneClass
from widemargin.cells import one_class_cells


def two_clusters(n=3000, seed=0):
    """Return a dense and a sparse cluster, three rows to one, and the density of rows."""
    rng = np.random.default_rng(seed)
    many = 3 * n // 4
    X = np.vstack([rng.normal(size=(many, 2)), 3.0 * rng.normal(size=(n - many, 2)) + [30.0, 0.0]])

    def density(rows):
        near = np.exp(-0.5 * (rows**2).sum(axis=1))
        far = np.exp(-0.5 * ((rows - [30.0, 0.0]) ** 2).sum(axis=1) / 9.0) / 9.0
        return 0.75 * near + 0.25 * far

    return X, density


CENTRES = np.array([[-1.0, 0.0], [1.0, 0.0], [30.0, 3.0], [30.0, -3.0]])


def in_cells(nu=0.5, gamma=1.0, **others):
    return MarginOneClass(nu, gamma=gamma, scale="none", engine="cells", **others)


@pytest.mark.parametrize("nu", [0.03, 0.3, 0.8])
def test_it_is_one_class_svm_with_a_kernel_that_is_zero_between_cells(nu):
    X, _ = two_clusters(800)
    found = in_cells(nu, cells=CENTRES, overlap=0.0, blend=0.0, tol=1e-7).fit(X)
    cell = ((X[:, None] - CENTRES) ** 2).sum(-1).argmin(1)
    K = rbf_kernel(X, gamma=1.0) * (cell[:, None] == cell)
    peer = OneClassSVM(nu=nu, kernel="precomputed", tol=1e-8).fit(K)
    scores = peer.score_samples(K)
    np.testing.assert_allclose(found.score_samples(X), scores, atol=1e-3 * scores.max())
    assert found.offset_ == pytest.approx(peer.offset_[0], rel=1e-3)
    proved = found.certificate_
    beta = np.zeros(len(X))
    beta[peer.support_] = peer.dual_coef_[0]
    assert proved.dual - 1e-6 * abs(proved.dual) <= -0.5 * beta @ K @ beta
    assert -0.5 * beta @ K @ beta <= proved.primal + 1e-6 * abs(proved.primal)
    assert proved.gap <= 1e-7 and proved.scope == "cells"


@pytest.mark.parametrize("overlap", [0.0, 0.5])
@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_the_primal_is_the_objective_of_the_machines_handed_out(overlap, nu):
    X, _ = two_clusters(1500)
    found = in_cells(nu, cells=100, overlap=overlap, tol=1e-5).fit(X)
    proved = found.certificate_
    # All cells' duals: a vector of weight in two cells counts in both.
    norm2, total = 0.0, 0.0
    for first, last in zip(found.cell_offsets_[:-1], found.cell_offsets_[1:], strict=True):
        beta = found.dual_coef_[0, first:last]
        norm2 += beta @ rbf_kernel(found.support_vectors_[first:last], gamma=1.0) @ beta
        total += beta.sum()
    assert proved.dual <= proved.primal and proved.gap <= 1e-5
    assert -0.5 * norm2 == pytest.approx(proved.primal, rel=1e-2)
    n = sum(np.isfinite(found.score_samples(X))) * (1 + overlap)
    assert total == pytest.approx(nu * n, rel=0.05)


def test_with_all_of_the_weight_scores_are_sums_of_kernel_values():
    X, _ = two_clusters(800)
    found = in_cells(1.0, cells=CENTRES, overlap=0.0, blend=0.0, tol=1e-7).fit(X)
    cell = ((X[:, None] - CENTRES) ** 2).sum(-1).argmin(1)
    K = rbf_kernel(X, gamma=1.0) * (cell[:, None] == cell)
    np.testing.assert_allclose(found.score_samples(X), K.sum(axis=1), rtol=1e-6)
    assert found.offset_ == pytest.approx(K.sum(axis=1).max(), rel=1e-3)


def test_one_cell_is_the_exact_machine():
    X, _ = two_clusters(500)
    one = in_cells(0.2, cells=len(X), tol=1e-7).fit(X)
    exact = MarginOneClass(0.2, gamma=1.0, scale="none", engine="exact", tol=1e-7).fit(X)
    np.testing.assert_allclose(one.score_samples(X), exact.score_samples(X), rtol=1e-3, atol=1e-3)
    assert one.offset_ == pytest.approx(exact.offset_, rel=1e-3)


def test_scores_of_clusters_of_different_density_compare():
    X, density = two_clusters(4000)
    found = in_cells(0.5, gamma=4.0).fit(X)
    inner = found.score_samples(np.array([[0.0, 0.0], [30.0, 0.0], [15.0, 0.0]]))
    assert inner[0] > 2.0 * inner[1] > 0.0
    assert inner[2] < 0.01 * inner[1]
    # Rows of the sparse cluster are outside first: one level of density for both.
    outside = found.predict(X) == -1
    assert outside[3000:].mean() > 0.9 > 0.5 > outside[:3000].mean()
    thin = density(X) < np.median(density(X))
    assert roc_auc_score(~thin, found.score_samples(X)) > 0.9


def test_many_cells_agree_with_the_exact_machine_of_a_narrow_kernel():
    X, _ = two_clusters(2500)
    cells = in_cells(0.8, gamma=40.0).fit(X)
    exact = MarginOneClass(0.8, gamma=40.0, scale="none", engine="exact").fit(X)
    assert np.corrcoef(cells.score_samples(X), exact.score_samples(X))[0, 1] > 0.98
    assert "% of the kernel values" in cells.certificate_.stopped


def test_cells_hold_all_kernel_values_where_kernels_are_narrow():
    X, _ = two_clusters(2000)
    narrow, wide = (in_cells(gamma=gamma).fit(X).certificate_.stopped for gamma in (400.0, 0.01))
    held = [int(said.split("cells hold ")[1].split(" %")[0]) for said in (narrow, wide)]
    assert held[0] > 90 and held[1] < 60


def test_weights_are_copies_and_threads_change_no_bit():
    X, _ = two_clusters(900)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted, copied, other = (
        in_cells(0.2, cells=150, contamination=0.1, random_state=0, n_jobs=jobs).fit(
            rows, sample_weight=given
        )
        for rows, given, jobs in (
            (X, weight, 1),
            (np.repeat(X, weight, axis=0), None, 1),
            (X, weight, 2),
        )
    )
    np.testing.assert_allclose(weighted.score_samples(X), copied.score_samples(X), rtol=1e-9)
    np.testing.assert_array_equal(weighted.dual_coef_, other.dual_coef_)
    assert weighted.offset_ == pytest.approx(copied.offset_, rel=1e-9)


def test_columns_are_scaled_first_and_given_centres_too():
    X, _ = two_clusters(900)
    one, other = (
        MarginOneClass(engine="cells", cells=centres, gamma=2.0, tol=1e-5).fit(rows)
        for rows, centres in ((X, CENTRES), (1e4 * X + 7.0, 1e4 * CENTRES + 7.0))
    )
    np.testing.assert_allclose(
        other.score_samples(1e4 * X + 7.0), one.score_samples(X), rtol=1e-3, atol=1e-3
    )


def test_sparse_rows_small_types_and_files_that_cannot_be_written_give_the_same(tmp_path):
    X = np.round(two_clusters(600)[0] * 3).clip(-100, 100)
    expected = in_cells(gamma=0.1, cells=100, contamination=0.1).fit(X).score_samples(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows in (sparse.csr_array(X), X.astype(np.int8), mapped):
        found = in_cells(gamma=0.1, cells=100, contamination=0.1).fit(rows)
        np.testing.assert_allclose(found.score_samples(rows), expected, rtol=1e-6)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.score_samples(X), found.score_samples(X))


@pytest.mark.parametrize("kernel", ["linear", "laplacian", "poly"])
def test_other_kernels_end_with_finite_scores(kernel):
    # Away from the origin, which all rows are to be told from.
    X = two_clusters(600)[0] + 50.0
    found = in_cells(0.3, kernel=kernel, cells=150, gamma=0.1).fit(X)
    assert found.certificate_.gap <= 1e-3
    assert np.isfinite(found.score_samples(X)).all()


@pytest.mark.parametrize("limit", [1e-9, 0.05])
def test_time_that_is_over_leaves_a_valid_machine(limit):
    X, _ = two_clusters(6000)
    found = in_cells(0.2, gamma=4.0, cells=60, max_time=limit, tol=1e-10)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found.fit(X)
    proved = found.certificate_
    assert proved.dual <= proved.primal and np.isfinite(proved.dual)
    assert found.score_samples([[0.0, 0.0]])[0] > found.score_samples([[15.0, 0.0]])[0]


def test_an_interrupt_leaves_a_valid_machine(monkeypatch):
    X, _ = two_clusters(3000)
    solve, calls = one_class_cells.solve_interval_dual, []

    def interrupted(*given, **named):
        calls.append(1)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return solve(*given, **named)

    monkeypatch.setattr(one_class_cells, "solve_interval_dual", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = in_cells(0.2, gamma=4.0, cells=60, n_jobs=1).fit(X)
    assert np.isfinite(found.score_samples(X)).all()


def test_another_engine_leaves_nothing_of_the_cells_behind():
    X, _ = two_clusters(400)
    found = in_cells(cells=100).fit(X)
    assert len(found.cell_centers_) == len(found.intercept_)
    found.set_params(engine="exact").fit(X)
    assert not hasattr(found, "cell_centers_")


def test_a_cell_whose_matrix_does_not_fit_is_refused_with_a_remedy():
    X, _ = two_clusters(3000)
    with pytest.raises(ValueError, match="smaller cells"):
        in_cells(cells=3000, memory="50MB").fit(X)
