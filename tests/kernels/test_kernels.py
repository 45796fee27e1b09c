"""Values, diagonals and gradients of all kernels against double loops; names and parameters."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.reference import kernels as reference
from widemargin.kernels import (
    KERNELS,
    RBF,
    CallableKernel,
    CosinePower,
    Linear,
    NormalizedPolynomial,
    Polynomial,
    Precomputed,
    make_kernel,
    resolve_gamma,
)
from widemargin.kernels.kernel import check_diagonal, check_finite

NAMES = sorted(reference.PAIRWISE)
MERCER = sorted(set(NAMES) - {"sigmoid"})
PARAMETERS = {"gamma": 0.3, "degree": 3, "coef0": 0.5}
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11}

# Share of non-zeros: 0.3 is multiplied as a dense block, 0.02 as a sparse one.
LAYOUTS = ["C", "F", "read-only memmap", "csr", "csr64", "csr_matrix", "thin csr"]


def make(name):
    return make_kernel(name, **PARAMETERS)


def data(layout, dtype, tmp_path, rows=23, vectors=7, seed=0):
    """Rows in a layout, the same rows dense, and vectors of which two are rows."""
    rng = np.random.default_rng(seed)
    features = 130 if layout == "thin csr" else 9
    dense = rng.normal(size=(rows, features))
    if "csr" in layout:
        dense *= rng.random(dense.shape) < (0.02 if layout == "thin csr" else 0.3)
        dense[3] = 0.0
    dense = dense.astype(dtype)
    Z = rng.normal(size=(vectors, features)).astype(dtype)
    Z[0], Z[-1] = dense[0], dense[rows // 2]
    if layout in ("C", "F"):
        return np.asarray(dense, order=layout), dense, Z
    if layout == "read-only memmap":
        np.save(tmp_path / "rows.npy", np.vstack([dense[:1], dense]))
        return np.load(tmp_path / "rows.npy", mmap_mode="r")[1:], dense, Z
    if layout == "csr_matrix":
        return sparse.csr_matrix(dense), dense, Z
    X = sparse.csr_array(dense)
    if layout == "csr64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X, dense, Z


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_values_equal_the_double_loop(name, layout, dtype, tmp_path):
    X, dense, Z = data(layout, dtype, tmp_path)
    values = make(name).block(X, Z)
    expected = reference.block(name, dense, Z, **PARAMETERS)
    assert type(values) is np.ndarray
    assert values.dtype == dtype
    np.testing.assert_allclose(values, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("layout", ["C", "F", "csr", "thin csr"])
@pytest.mark.parametrize("name", NAMES)
def test_out_is_filled_and_returned_and_its_type_is_the_precision(name, layout, tmp_path):
    for dtype, out_dtype in [(np.float64, np.float32), (np.float32, np.float64)]:
        X, dense, Z = data(layout, dtype, tmp_path)
        expected = reference.block(name, dense, Z, **PARAMETERS)
        for order in "CF":
            out = np.full(expected.shape, np.nan, dtype=out_dtype, order=order)
            assert make(name).block(X, Z, out=out) is out
            tolerance = TOLERANCE[out_dtype]
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_diagonal_is_that_of_the_double_loop(name, layout, tmp_path):
    X, dense, _ = data(layout, np.float32, tmp_path)
    diagonal = make(name).diagonal(X)
    assert diagonal.dtype == np.float64
    expected = np.diag(reference.block(name, dense, dense, **PARAMETERS))
    np.testing.assert_allclose(diagonal, expected, rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_constant_diagonal_agrees_with_the_diagonal_of_any_rows(name, tmp_path):
    rows = np.vstack([np.zeros(4), np.random.default_rng(1).normal(size=(5, 4))])
    for coef0 in (0.0, 0.5):
        kernel = make_kernel(name, gamma=0.3, coef0=coef0)
        diagonal = kernel.diagonal(rows)
        if kernel.constant_diagonal is None:
            assert np.ptp(diagonal) > 0
        else:
            np.testing.assert_array_equal(diagonal, kernel.constant_diagonal)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["csr", "csr64", "csr_matrix", "thin csr"])
@pytest.mark.parametrize("name", [name for name in NAMES if make(name).sparse_vectors])
def test_sparse_vectors_have_the_values_of_dense_ones(name, layout, dtype, tmp_path):
    X, dense, _ = data(layout, dtype, tmp_path)
    for Z in (X, X[5:9]):
        values = make(name).block(X, Z)
        expected = reference.block(name, dense, Z.toarray(), **PARAMETERS)
        assert values.dtype == dtype
        np.testing.assert_allclose(values, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", MERCER)
def test_mercer_kernels_give_a_symmetric_positive_semidefinite_matrix(name):
    X = np.random.default_rng(2).normal(size=(60, 5))
    K = make(name).block(X, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-13)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


@pytest.mark.parametrize("layout", ["C", "F", "csr", "thin csr"])
@pytest.mark.parametrize("name", NAMES)
def test_gradient_equals_central_differences(name, layout, tmp_path):
    X, dense, Z = data(layout, np.float64, tmp_path, rows=9, vectors=3)
    Z = np.random.default_rng(3).normal(size=Z.shape)  # away from the rows, where all are smooth
    weight = np.random.default_rng(4).normal(size=(9, 3))
    result = make(name).gradient(X, Z, weight)
    expected = reference.gradient(name, dense, Z, weight, **PARAMETERS)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "thin csr"])
@pytest.mark.parametrize("name", NAMES)
def test_slopes_equal_central_differences_of_the_sum(name, layout, tmp_path):
    X, rows, vectors = data(layout, np.float64, tmp_path)
    # Where a row is zero, kernels of the cosine have a jump.
    keep = np.flatnonzero(np.abs(rows).sum(axis=1))
    X, rows = X[keep], rows[keep]
    coef = np.random.default_rng(1).standard_normal((len(vectors), 3))
    coef[2, 1] = 0.0
    step, kernel = 1e-6, make(name)
    found = list(kernel.slopes(X, vectors, coef))
    assert len(found) == 3
    for k in range(rows.shape[1]):
        up, down = rows.copy(), rows.copy()
        up[:, k] += step
        down[:, k] -= step
        slope = (kernel.block(up, vectors) - kernel.block(down, vectors)) @ coef / (2 * step)
        for p in range(3):
            np.testing.assert_allclose(found[p][:, k], slope[:, p], rtol=1e-3, atol=3e-5)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "inverse_distance", "exponential"])
def test_slopes_far_from_the_origin_are_those_near_it(name):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((40, 6)), rng.standard_normal((30, 6))
    X[:5] = Z[:5]
    coef = rng.standard_normal((30, 2))
    near = list(make(name).slopes(X, Z, coef))
    far = list(make(name).slopes(X + 1e6, Z + 1e6, coef))
    np.testing.assert_allclose(far, near, atol=1e-4 * np.abs(near).max())


@pytest.mark.parametrize("name", NAMES)
def test_gradient_of_float32_data_is_computed_in_float64(name, tmp_path):
    X, dense, Z = data("C", np.float32, tmp_path, rows=9, vectors=3)
    weight = np.random.default_rng(4).normal(size=(9, 3)).astype(np.float32)
    expected = make(name).gradient(dense.astype(np.float64), Z.astype(np.float64), weight)
    result = make(name).gradient(X, Z, weight)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "inverse_distance", "exponential"])
def test_gradient_is_zero_where_row_and_vector_meet(name):
    x = np.array([[3.0, -1.0, 1e3]])
    np.testing.assert_array_equal(make(name).gradient(x, x, np.ones((1, 1))), 0.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.01]), st.booleans())
def test_float32_rbf_is_right_far_from_the_origin(seed, spread, from_float64):
    rng = np.random.default_rng(seed)
    X, Z = (1000 + spread * rng.normal(size=(rows, 20)) for rows in (30, 8))
    if not from_float64:
        X, Z = X.astype(np.float32), Z.astype(np.float32)
    gamma = 1 / (2 * 20 * spread**2)
    distances64 = ((X[:, None].astype(float) - Z[None].astype(float)) ** 2).sum(axis=2)
    out = np.empty((30, 8), dtype=np.float32)
    RBF(gamma).block(X, Z, out=out)
    np.testing.assert_allclose(out, np.exp(-gamma * distances64), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "inverse_distance", "exponential"])
@pytest.mark.parametrize("layout", ["C", "csr", "thin csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_identical_rows_have_the_value_of_the_diagonal(name, layout, dtype, tmp_path):
    X, dense, _ = data(layout, dtype, tmp_path)
    K = make(name).block(X, dense)
    assert np.all(K <= 1.0)
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=0, atol=1e-6)


def test_identical_rows_far_from_the_others_give_no_nan():
    X = np.repeat(np.array([[1e6, -1e6], [3e5, 7.0]], dtype=np.float32), 40, axis=0)
    for name in reference.RADIAL:
        assert np.isfinite(make_kernel(name, gamma=1.0).block(X, X)).all()


@pytest.mark.parametrize("name", ["inverse_distance", "exponential"])
def test_distances_of_near_rows_do_not_suffer_from_cancellation(name):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 6)).astype(np.float32)
    Z = X[:20] + np.float32(1e-4) * rng.normal(size=(20, 6)).astype(np.float32)
    values = make_kernel(name, gamma=2.0).block(X, Z)
    expected = reference.block(name, X, Z, gamma=2.0)
    np.testing.assert_allclose(values, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("kernel", [CosinePower(2), NormalizedPolynomial(0.5, 3, 0.0)])
def test_a_zero_row_has_value_zero_with_every_row(kernel):
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    for rows in (X, sparse.csr_array(X), X.astype(np.float32)):
        K = kernel.block(rows, X)
        np.testing.assert_array_equal(K[0], 0.0)
        np.testing.assert_array_equal(K[:, 0], 0.0)
        np.testing.assert_array_equal(kernel.diagonal(rows), [0.0, 1.0])
        np.testing.assert_array_equal(kernel.gradient(rows, X, np.ones((2, 2)))[0], 0.0)


def test_normalising_does_not_overflow_where_the_norms_do():
    X = np.array([[1e30, 0.0], [1e30, 1e30]], dtype=np.float32)
    values = CosinePower(2).block(X, X)
    np.testing.assert_allclose(values, [[1, 0.5], [0.5, 1]], rtol=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 4, 7, 1.5])
def test_any_degree_is_the_power_it_says(degree):
    rng = np.random.default_rng(6)
    X, Z = rng.random((6, 3)), rng.random((4, 3))
    values = Polynomial(0.5, degree, 1.0).block(X, Z)
    np.testing.assert_allclose(values, (0.5 * X @ Z.T + 1) ** degree, rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 5, 3), (5, 1, 3), (1, 1, 1), (0, 4, 3)])
def test_one_row_one_vector_one_feature_and_no_row_work(name, shape):
    rows, vectors, features = shape
    rng = np.random.default_rng(7)
    X, Z = rng.normal(size=(rows, features)), rng.normal(size=(vectors, features))
    for block in (X, sparse.csr_array(X)):
        values = make(name).block(block, Z)
        assert values.shape == (rows, vectors)
        if rows:
            np.testing.assert_allclose(values, reference.block(name, X, Z, **PARAMETERS))


@pytest.mark.parametrize("name", NAMES)
def test_repeated_entries_of_a_sparse_row_count_as_their_sum_and_stay(name):
    columns = np.array([5, 5, 80])
    X = sparse.csr_array((np.array([1.0, -3.0, 2.0]), columns, np.array([0, 3])), shape=(1, 100))
    Z = np.random.default_rng(8).normal(size=(3, 100))
    kernel = make_kernel(name, gamma=0.01)
    expected = reference.block(name, X.toarray(), Z, gamma=0.01)
    np.testing.assert_allclose(kernel.block(X, Z), expected)
    np.testing.assert_allclose(kernel.diagonal(X), kernel.diagonal(X.toarray()))
    assert X.nnz == 3


def test_a_numpy_number_as_gamma_does_not_turn_float32_into_float64():
    kernel = make_kernel("poly", gamma=np.float64(0.5), degree=np.int64(2), coef0=np.float64(1))
    X = np.ones((2, 3), dtype=np.float32)
    assert kernel.block(X, X).dtype == np.float32
    assert type(kernel.gamma) is float


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_precomputed_takes_columns_and_positions(convert, dtype):
    K = np.arange(20, dtype=dtype).reshape(4, 5)
    X, kernel = convert(K), Precomputed()
    Z = np.array([[4], [0], [4]], dtype=dtype)
    np.testing.assert_array_equal(kernel.block(X, Z), K[:, [4, 0, 4]])
    assert kernel.block(X, Z).dtype == dtype
    out = np.empty((4, 3), dtype=np.float32)
    assert kernel.block(X, Z, out=out) is out
    np.testing.assert_array_equal(out, K[:, [4, 0, 4]])
    diagonal = kernel.diagonal(X, index=np.array([1, 2, 3, 4]))
    assert diagonal.dtype == np.float64
    np.testing.assert_array_equal(diagonal, [1, 7, 13, 19])


def test_precomputed_diagonal_without_positions_says_what_is_missing():
    with pytest.raises(ValueError, match=r"index=None.*positions of the rows"):
        Precomputed().diagonal(np.eye(2))


def shifted(X, Z, shift=0.0):
    return X @ Z.T + shift


@pytest.mark.parametrize("layout", ["C", "F", "csr", "thin csr"])
def test_a_callable_gets_the_rows_as_they_are_and_its_parameters(layout, tmp_path):
    X, dense, Z = data(layout, np.float32, tmp_path, rows=70)
    kernel = make_kernel(shifted, kernel_params={"shift": 2.0})
    values = kernel.block(X, Z)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, dense @ Z.T + 2, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kernel.diagonal(X), (dense**2).sum(axis=1) + 2, rtol=1e-5)
    out = np.empty(values.shape, dtype=np.float64)
    assert kernel.block(X, Z, out=out) is out


def test_a_callable_with_a_wrong_shape_is_refused_with_the_shapes():
    kernel = make_kernel(lambda X, Z: Z @ X.T)
    with pytest.raises(ValueError, match=r"shape \(2, 3\) for 3 rows and 2 vectors.*\(3, 2\)"):
        kernel.block(np.ones((3, 4)), np.ones((2, 4)))


@pytest.mark.parametrize("out", [None, np.empty((3, 2))])
@pytest.mark.parametrize("kind", [complex, np.complex64, object, str])
def test_a_callable_whose_values_are_not_real_numbers_is_refused(kind, out):
    kernel = make_kernel(lambda X, Z: np.ones((len(X), len(Z))).astype(kind))
    with pytest.raises(TypeError, match=r"returned values of type .*; .* real numbers"):
        kernel.block(np.ones((3, 4)), np.ones((2, 4)), out=out)
    with pytest.raises(TypeError, match="real numbers"):
        kernel.diagonal(np.ones((3, 4)))


@pytest.mark.parametrize("kind", [np.float32, np.int64, bool, sparse.csr_array])
def test_a_callable_may_return_any_real_numbers_and_sparse_matrices(kind):
    def values(X, Z):
        found = (X @ Z.T > 0).astype(float)
        return kind(found) if kind is sparse.csr_array else found.astype(kind)

    X, Z = np.eye(3), np.eye(3)[:2]
    found = make_kernel(values).block(X, Z)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.eye(3)[:, :2])


@pytest.mark.parametrize("kernel", [Precomputed(), CallableKernel(shifted)])
def test_a_kernel_without_gradient_says_so(kernel):
    assert not kernel.differentiable
    with pytest.raises(TypeError, match=f"{kernel.name} kernel has no gradient"):
        kernel.gradient(np.eye(2), np.eye(2), np.eye(2))


def test_an_unknown_name_is_refused_with_the_closest_and_all_names():
    with pytest.raises(ValueError, match=r"kernel='gaussian_rbf'.*'linear'.*'precomputed'"):
        make_kernel("gaussian_rbf")
    with pytest.raises(ValueError, match=r"kernel='laplacain'.*did you mean 'laplacian'"):
        make_kernel("laplacain")
    with pytest.raises(ValueError, match="kernel=3"):
        make_kernel(3)
    with pytest.raises(ValueError, match="kernel=<class"):
        make_kernel(RBF)


def test_parameters_reach_the_kernels_that_have_them():
    assert make_kernel("rbf", gamma=2) == RBF(2.0)
    assert make_kernel("cosine_power", degree=4) == CosinePower(4)
    assert make_kernel("poly", gamma=2, degree=4, coef0=1) == Polynomial(2, 4, 1)
    assert make_kernel("linear", gamma=2) == Linear()
    kernel = RBF(3.0)
    assert make_kernel(kernel, gamma=2) is kernel
    assert set(NAMES) | {"precomputed"} == set(KERNELS)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("rbf", {"gamma": -1.0}, "gamma=-1.0 of the rbf kernel"),
        ("laplacian", {"gamma": np.nan}, "gamma=nan of the laplacian kernel"),
        ("poly", {"degree": -1}, "degree=-1 of the poly kernel"),
        ("normalized_poly", {"coef0": -1.0}, "coef0=-1.0 of the normalized_poly kernel"),
        ("rbf", {"kernel_params": {"a": 1}}, "kernel_params=.*only for a callable"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_name(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        make_kernel(name, **parameters)


@pytest.mark.parametrize(
    "kernel", [*(make(name) for name in KERNELS), CallableKernel(shifted, {"shift": 1.0})]
)
def test_kernels_survive_pickling_and_compare_and_hash(kernel):
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert hash(copy) == hash(kernel)


def test_values_that_overflow_are_refused_with_the_remedy():
    X = np.full((3, 2), 1e200)
    out = np.empty((3, 3))
    with pytest.raises(ValueError, match=r"kernel='poly'.*scale X .*smaller kernel parameters"):
        make_kernel("poly", degree=4).checked_block(X, X, out)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 2))
    assert make("poly").checked_block(X, X, out) is out
    np.testing.assert_array_equal(out, make("poly").block(X, X))
    # A sum may overflow where no value does.
    check_finite(make("poly"), np.full((2, 2), 1e308))
    for wrong in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="infinite or undefined"):
            check_finite(make("poly"), np.array([1.0, wrong]))


def test_negative_values_on_the_diagonal_are_refused():
    check_diagonal(Linear(), np.array([0.0, 1.0]))
    for wrong in (-1e-300, np.nan):
        with pytest.raises(ValueError, match=r"kernel='linear'.*negative values k\(x, x\)"):
            check_diagonal(Linear(), np.array([1.0, wrong]))


def test_importing_kernels_imports_neither_numba_nor_array_libraries():
    code = (
        "import sys, widemargin.kernels; "
        "print([m for m in ('numba', 'torch', 'cupy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_gamma_by_name_is_a_number_of_the_data():
    X = np.random.default_rng(9).normal(size=(40, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -1.0]
    mean, variance = X.mean(axis=0), X.var(axis=0)
    assert resolve_gamma("scale", mean, variance) == pytest.approx(1.0 / (3 * X.var()))
    assert resolve_gamma("auto", mean, variance) == pytest.approx(1.0 / 3)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert resolve_gamma("mean_distance", mean, variance) == pytest.approx(1.0 / squares.mean())
    for number in (2, np.float32(2.0)):
        assert type(resolve_gamma(number, mean, variance)) is float


@pytest.mark.parametrize("name", ["scale", "mean_distance"])
def test_gamma_of_data_without_variance_is_one_and_of_infinite_variance_is_refused(name):
    assert resolve_gamma(name, np.zeros(2), np.zeros(2)) == 1.0
    assert np.isfinite(resolve_gamma(name, np.zeros(2), np.full(2, 1e-310)))
    with pytest.raises(ValueError, match=rf"gamma='{name}' cannot be computed.*StandardScaler"):
        resolve_gamma(name, np.zeros(2), np.full(2, 1.5e308))
