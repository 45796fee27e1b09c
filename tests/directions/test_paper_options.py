"""What the papers do and we do otherwise: no bias, SOR inside, their sample, no early end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from tests.reference.direction_problems import both_losses, da, exact, three_digits
from tests.reference.direction_problems import threes_and_eights as two_digits
from widemargin import MaxMarginDA
from widemargin.loop import Deadline
from widemargin.qp.hinge_box import solve_hinge_box

both_exact = pytest.mark.parametrize("solver", ["deflation", "direct"])


def _without_bias(features, sign, C, loss):
    """Return w of scikit-learn's machine through the origin."""
    # Only the dual of the hinge is there; the primal of its square converges further.
    ways = {"dual": True, "tol": 1e-9} if loss == "hinge" else {"dual": False, "tol": 1e-11}
    machine = LinearSVC(C=C, loss=loss, fit_intercept=False, max_iter=10**6, **ways)
    return machine.fit(features, sign).coef_[0]


# b = 0: footnote 4 of MMDA.


@both_losses
@both_exact
def test_without_a_bias_the_first_direction_is_that_of_linear_svc(solver, loss):
    X, y = two_digits()
    sign = np.where(y == y.max(), 1.0, -1.0)
    expected = _without_bias(X, sign, 0.01, loss)
    model = da(1, kernel="linear", C=0.01, loss=loss, fit_intercept=False, **exact(solver))
    model.fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert_allclose(model.components_[0], expected / np.linalg.norm(expected), atol=1e-5)


@both_losses
def test_without_a_bias_deflation_and_the_direct_method_agree(loss):
    X, y = three_digits()
    parameters = {"kernel": "rbf", "C": 1.0, "loss": loss, "fit_intercept": False}
    found = [da(4, **exact(solver), **parameters).fit(X, y) for solver in ("deflation", "direct")]
    assert not found[0].intercept_.any()
    assert_allclose(found[0].transform(X), found[1].transform(X), atol=1e-5)


@both_exact
def test_without_a_bias_later_directions_are_those_of_the_deflated_rows(solver):
    X, y = two_digits()
    sign = np.where(y == y.max(), 1.0, -1.0)
    # Rows whose products are kernel values: K = LLᵀ.
    rows = np.linalg.cholesky(rbf_kernel(X, gamma=0.001) + 1e-12 * np.eye(len(X)))
    model = da(3, kernel="rbf", gamma=0.001, C=1.0, fit_intercept=False, **exact(solver))
    features = model.fit(X, y).transform(X)
    for feature in features.T:
        w = _without_bias(rows, sign, 1.0, "squared_hinge")
        w /= np.linalg.norm(w)
        assert_allclose(feature, rows @ w, atol=1e-4)
        rows = rows - np.outer(rows @ w, w)


def test_a_row_at_the_origin_pays_its_price_whatever_the_hyperplane():
    rows = np.array([[2.0], [0.0], [-2.0]])
    sign, upper = np.array([1.0, 1.0, -1.0]), np.full(3, 5.0)
    ways = {"projection": np.zeros((3, 0)), "gram": np.zeros((0, 0)), "deadline": Deadline()}
    found = solve_hinge_box(rows @ rows.T, sign, upper, tol=1e-9, **ways)
    # ½w² + 5 Σ max(0, 1 − y w x) with w = ½: the margin holds for two rows, and the third pays 5.
    assert_allclose([found.primal, found.dual], 5.0 + 0.125, rtol=1e-8)
    assert_allclose(found.values, [1.0, 0.0, -1.0], atol=1e-8)


@pytest.mark.parametrize("solver", ["span", "core"])
def test_solvers_that_have_a_bias_say_so(solver):
    X, y = two_digits()
    with pytest.raises(ValueError, match="fit_intercept=False needs solver='deflation'"):
        MaxMarginDA(kernel="rbf", solver=solver, fit_intercept=False).fit(X, y)


def test_auto_takes_a_solver_that_can_do_without_a_bias():
    X, y = two_digits()
    model = MaxMarginDA(kernel="rbf", vectors=X[:5], fit_intercept=False).fit(X, y)
    assert model.solver_ == "deflation"


# MMDA-CVM's solver and sample.


def test_over_relaxation_inside_core_sets_finds_the_same_directions():
    X, y = three_digits()
    parameters = {"kernel": "rbf", "solver": "core", "epsilon": 1e-7, "random_state": 0}
    ours = MaxMarginDA(3, **parameters).fit(X, y).transform(X)
    papers = MaxMarginDA(3, inner="sor", **parameters).fit(X, y).transform(X)
    assert_allclose(papers, ours, atol=1e-3 * np.abs(ours).max())


def test_over_relaxation_is_what_solves_the_balls(monkeypatch):
    from widemargin.balls import minimum

    calls = []
    solve = minimum.solve_sor

    def counted(*args, **kwargs):
        calls.append(len(args[0]))
        return solve(*args, **kwargs)

    monkeypatch.setattr(minimum, "solve_sor", counted)
    X, y = two_digits()
    MaxMarginDA(2, kernel="rbf", solver="core", random_state=0).fit(X, y)
    assert not calls
    MaxMarginDA(2, kernel="rbf", solver="core", inner="sor", random_state=0).fit(X, y)
    assert calls


@pytest.mark.parametrize("sample_size", [1, 59, None])
def test_any_sample_leads_to_a_ball_that_holds_all_rows(sample_size):
    X, y = three_digits()
    found = da(2, sample_size=sample_size, solver="core", epsilon=1e-6).fit(X, y)
    exactly = da(2, kernel="rbf", **exact("deflation")).fit(X, y)
    assert_allclose(found.directions_["primal"], exactly.directions_["primal"], rtol=1e-3)


# No early end.


def test_without_an_early_end_the_sequence_goes_on_to_the_last_dimension():
    rng = np.random.default_rng(0)
    # The label is in one column; the other four are the same for both classes.
    noise = rng.normal(size=(200, 4))
    X = np.vstack([np.column_stack([np.full(200, s), noise]) for s in (-1.0, 1.0)])
    y = np.repeat([0, 1], 200)
    with pytest.warns(UserWarning, match="Fewer than n_directions=5"):
        ended = MaxMarginDA(5).fit(X, y)
    assert len(ended.components_) == 1
    X[:200, 1:] += 1e-6
    with pytest.warns(UserWarning, match="Fewer than n_directions=6"):
        went_on = MaxMarginDA(6, early_end=False, tol=1e-12).fit(X, y)
    directions = went_on.components_
    assert 2 <= len(directions) <= 5
    assert_allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-8)


def test_early_end_keeps_what_there_is_before():
    X, y = two_digits()
    parameters = {"C": 1.0, "kernel": "linear"}
    short = MaxMarginDA(3, **parameters).fit(X, y)
    on = MaxMarginDA(3, early_end=False, **parameters).fit(X, y)
    assert_allclose(on.components_, short.components_)
