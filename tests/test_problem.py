"""What is to be solved: labels, weights and C of several problems, with and without folds."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.folds import Folds
from widemargin.kernels import make_kernel
from widemargin.problem import Problem, check_prices, class_factors, encoded, one_vs_rest, winners
from widemargin.rows import as_rows


def three_classes(n=40, C=2.0, memory=10**8, threads=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    rows = as_rows(X, memory=memory, threads=threads)
    code = rng.integers(3, size=n)
    weight = rng.uniform(0.5, 2.0, n)
    return Problem.of(rows, make_kernel("rbf", gamma=0.5), code, one_vs_rest(3), weight, C), X


def test_a_problem_knows_labels_and_ridges_of_its_rows():
    problem, _ = three_classes()
    assert (problem.n, problem.n_problems, problem.threads) == (40, 3, 1)
    index = np.array([5, 0, 7])
    for p in range(3):
        expected = np.where(problem.code == p, 1.0, -1.0)
        np.testing.assert_array_equal(problem.sign(p), expected)
        np.testing.assert_array_equal(problem.sign(p, index), expected[index])
        np.testing.assert_array_equal(problem.signs()[:, p], expected)
        np.testing.assert_array_equal(problem.signs(index)[:, p], expected[index])
        np.testing.assert_allclose(problem.ridge(p), 1.0 / (4.0 * problem.weight))
        np.testing.assert_allclose(problem.ridge(p, index), 1.0 / (4.0 * problem.weight[index]))


def test_a_subset_keeps_what_belongs_to_its_rows():
    problem, X = three_classes()
    index = np.random.default_rng(1).permutation(40)[:15]
    part = problem.subset(index)
    assert part.n == 15 and part.place is None
    for name in ("code", "weight", "number", "fold"):
        np.testing.assert_array_equal(getattr(part, name), getattr(problem, name)[index])
    np.testing.assert_array_equal(part.rows.take(np.arange(15)), X[index])
    np.testing.assert_array_equal(part.subset(np.array([3, 1])).number, index[[3, 1]])


def test_some_of_the_problems_other_signs_and_another_c():
    problem, _ = three_classes()
    some = problem.columns([2, 0])
    np.testing.assert_array_equal(some.signs(), problem.signs()[:, [2, 0]])
    assert some.n_problems == some.counts.shape[1] == 2
    table = np.array([[1.0], [-1.0], [-1.0]])
    other = problem.with_signs(table)
    np.testing.assert_array_equal(other.C, [2.0])
    np.testing.assert_array_equal(other.sign(0), table[problem.code, 0])
    np.testing.assert_array_equal(problem.with_C(5.0).C, [5.0] * 3)
    np.testing.assert_array_equal(problem.C, [2.0] * 3)


def test_values_of_c_and_folds_are_columns_with_the_classes_running_fastest():
    problem, _ = three_classes(n=12)
    halves = np.arange(12) < 6
    folds = Folds(
        [(halves, ~halves), (np.flatnonzero(~halves), np.flatnonzero(halves))], np.ones(12)
    )
    searched = problem.in_folds(folds, np.array([0.1, 10.0]))
    assert searched.n_problems == 2 * 2 * 3
    np.testing.assert_array_equal(searched.C, np.repeat([0.1, 10.0], 6))
    counted = searched.counts[searched.fold]
    for column in range(12):
        trains = halves if (column // 3) % 2 == 0 else ~halves
        np.testing.assert_array_equal(counted[:, column] > 0, trains)
        np.testing.assert_array_equal(searched.sign(column), problem.sign(column % 3))


def test_folds_count_rows_that_are_drawn_several_times_and_refuse_empty_ones():
    drawn = np.array([0, 0, 1, 3])
    folds = Folds([(drawn, np.array([2, 4]))], np.ones(5))
    np.testing.assert_array_equal(folds.counts[folds.kind, 0], [2, 1, 0, 1, 0])
    np.testing.assert_array_equal(folds.test[0], [2, 4])
    # Rows that nobody holds out are told apart from those that are.
    assert folds.kind[2] == folds.kind[4] != folds.kind[1] == folds.kind[3]
    with pytest.raises(ValueError, match="cv gives no folds"):
        Folds([], np.ones(5))
    with pytest.raises(ValueError, match=r"Fold 0 of cv has no row of positive sample_weight"):
        Folds([(drawn, np.array([2, 4]))], np.array([1.0, 1.0, 0.0, 1.0, 0.0]))


def test_labels_are_numbered_and_those_without_a_weight_do_not_count():
    y = np.array(["b", "a", "c", "b", "x"])
    classes, code = encoded(y, np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    assert classes.tolist() == ["a", "b", "c"]
    assert classes[code[:4]].tolist() == ["b", "a", "c", "b"] and 0 <= code[4] < 3
    with pytest.raises(ValueError, match="at least two classes with positive weight"):
        encoded(y, np.array([1.0, 0.0, 0.0, 1.0, 0.0]))


def test_two_classes_are_one_problem_and_more_are_one_each():
    np.testing.assert_array_equal(one_vs_rest(2), [[-1.0], [1.0]])
    np.testing.assert_array_equal(one_vs_rest(4), 2.0 * np.eye(4) - 1.0)


def test_the_sign_or_the_largest_value_wins():
    classes = np.array(["a", "b", "c"])
    assert winners(classes[:2], np.array([-1.0, 0.5, 0.0])).tolist() == ["a", "b", "a"]
    scores = np.array([[0.1, -1.0, 0.3], [-2.0, -1.0, -3.0]])
    assert winners(classes, scores).tolist() == ["c", "b"]


def test_class_weights_are_those_of_scikit_learn_and_positive():
    y, weight = np.array([0, 0, 0, 1]), np.ones(4)
    np.testing.assert_allclose(class_factors(None, np.arange(2), y, weight), [1.0, 1.0])
    balanced = class_factors("balanced", np.arange(2), y, weight)
    np.testing.assert_allclose(balanced, [4 / 6, 2.0])
    with pytest.raises(ValueError, match=r"class_weight=.*positive for every class"):
        class_factors({0: 0.0, 1: 1.0}, np.arange(2), y, weight)


@pytest.mark.parametrize(("C", "weight"), [(1e150, 1.0), (1e-150, 1.0), (1.0, 1e200), (1.0, 0.0)])
def test_prices_that_cannot_be_computed_with_are_refused(C, weight):
    check_prices(1.0, np.ones(3))
    with pytest.raises(ValueError, match=r"C=.*rescale C or sample_weight"):
        check_prices(C, np.array([1.0, weight]))


def test_kinds_of_rows_are_in_the_order_of_what_folds_make_of_them():
    rng = np.random.default_rng(0)
    for n_folds in (1, 4, 40):
        splits = [(rng.integers(0, 60, 40), rng.integers(0, 60, 20)) for _ in range(n_folds)]
        folds = Folds(iter(splits), np.ones(60))
        columns = [np.bincount(part[i], minlength=60) for i in (0, 1) for part in splits]
        kinds, kind = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        np.testing.assert_array_equal(folds.kind, kind.ravel())
        np.testing.assert_array_equal(np.hstack([folds.counts, folds.held]), kinds)
