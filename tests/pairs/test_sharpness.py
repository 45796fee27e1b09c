"""The choice of sharpness and shrinkage on rows held out."""

import numpy as np
import pytest
from scipy.linalg import eigh

from tests.reference.fisher_da import scatter_by_loops
from tests.reference.streams import as_rows, data_with_copies, stream_of
from widemargin.loop import Deadline, Limits, run
from widemargin.pairs import sharpness
from widemargin.pairs.sharpness import choose, nearest_mean_weight
from widemargin.rows import row_keys


def _plain_accuracy(X, y, weight, shrinkage, d, n_folds=5):
    """Cross-validated nearest-class-mean accuracy of LDA, from whole matrices."""
    stream = stream_of(X, y, weight, len(X))
    right = 0.0
    for fold in stream.folds(n_folds):
        out = fold.held_out
        left = np.isin(row_keys(as_rows(X), y), out.key)
        total, mean, within = scatter_by_loops(X[~left], y[~left], weight[~left])
        S = within / total.sum()
        S = (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S))
        center = total @ mean / total.sum()
        between = ((mean - center).T * total) @ (mean - center)
        W = eigh(between, S)[1][:, ::-1][:, :d]
        apart = ((out.rows @ W)[:, None] - (mean @ W)[None]) ** 2
        nearest = apart.sum(axis=-1).argmin(axis=1)
        right += out.weight[nearest == out.code].sum()
    return right / weight.sum()


def test_the_accuracy_of_lda_is_that_of_plain_folds():
    X, y, weight = data_with_copies(200)
    stream = stream_of(X, y, weight, 1000)
    for shrinkage in (0.0, 0.3):
        for d in (1, 2, None):
            found = choose(stream, [shrinkage], [0.0, 1.0], d, None, 1, Deadline())
            expected = _plain_accuracy(X, y, weight, shrinkage, 3 if d is None else d)
            assert found.shrinkage == shrinkage
            assert found.accuracy["sharpness"][0] == 0.0
            assert found.accuracy["accuracy"][0] == pytest.approx(expected, rel=1e-12)


def test_a_single_value_is_not_questioned():
    X, y, weight = data_with_copies()
    found = choose(stream_of(X, y, weight, 1000), [0.25], [3.0], 2, None, 1, Deadline())
    assert (found.shrinkage, found.sharpness) == (0.25, 3.0)
    assert all(len(column) == 0 for column in found.accuracy.values())
    # Nothing can be held out: the softest.
    found = choose(stream_of(X, y, weight, 0), [0.1, 0.2], [0.0, np.inf], 2, None, 1, Deadline())
    assert (found.shrinkage, found.sharpness) == (0.1, 0.0)


def test_the_best_is_chosen_and_of_equals_the_first():
    lines = [(0.1, 0.0, 0.5), (0.1, 1.0, 0.7), (0.1, 3.0, 0.7), (0.1, np.inf, 0.6)]
    assert sharpness._best(lines) == lines[1]

    # Two worse ones in a row end the search; one does not.
    for values, last in (((5, 4, 6, 5, 5, 7), 3.0), ((5, 4, 6, 5, 6, 7), 30.0)):
        curve = dict(zip((0.0, 0.1, 0.3, 1.0, 3.0, 30.0), values, strict=True))
        fold = _KnownFold(curve)
        done = run(sharpness.Trials(lambda fold=fold: [fold], [0.1], list(curve)), Limits())
        assert done.converged
        assert fold.asked[-1] == last
        assert [line[2] for line in done.state] == [curve[s] / 10 for s in fold.asked]


class _KnownFold:
    """What `Trials` needs of a fold, with accuracies that are known; an interrupt in between."""

    weight = 10.0

    def __init__(self, curve, rough=None, interrupt=None):
        self.curve, self.rough, self.interrupt = curve, rough or {}, interrupt
        self.asked, self.shrinkage = [], None

    def at(self, shrinkage):
        self.shrinkage = shrinkage
        return self

    def roughly_right(self):
        return self._told(self.shrinkage, self.rough)

    def right(self, s):
        return self._told(s, self.curve)

    def _told(self, value, known):
        if len(self.asked) == self.interrupt:
            raise KeyboardInterrupt
        self.asked.append(value)
        return known[value]


@pytest.mark.parametrize(
    ("interrupt", "expected"),
    [
        (0, (0.0, 0.0)),  # nothing is known: the softest
        (1, (0.0, 1.0)),  # shrinkages are tried at a sharpness of 1
        (2, (0.3, 1.0)),
        (3, (0.3, 1.0)),  # better than the first of the curve
        (4, (0.3, 1.0)),
        (5, (0.3, 0.3)),  # better than that
        (6, (0.3, 0.3)),
        (99, (0.3, 3.0)),
    ],
)
def test_an_interrupt_of_the_choice_leaves_the_best_until_then(interrupt, expected):
    rough = {0.0: 1.0, 0.3: 6.0}
    curve = dict(zip((0.0, 0.1, 0.3, 1.0, 3.0), (4.0, 5.0, 7.0, 6.5, 8.0), strict=True))
    fold = _KnownFold(curve, rough, interrupt)
    trials = sharpness.Trials(lambda: [fold], list(rough), list(curve))
    result = run(trials, Limits(patience=100))
    assert result.converged == (interrupt == 99)
    assert len(result.state) == min(interrupt, 7)
    assert trials.best(result.state) == expected


def test_what_was_given_is_kept_when_the_choice_is_cut_short():
    X, y, weight = data_with_copies()
    stream = stream_of(X, y, weight, 1000)
    found = choose(stream, [0.0, 0.1, 0.2], [3.0], 2, None, 1, Deadline.after(1e-9))
    assert (found.shrinkage, found.sharpness, found.stop.converged) == (0.0, 3.0, False)
    assert "max_time" in found.stop.reason
    fold = _KnownFold({}, {0.0: 1.0, 0.3: 6.0, 0.6: 6.0}, 2)
    trials = sharpness.Trials(lambda: [fold], [0.0, 0.3, 0.6], [3.0])
    assert trials.best(run(trials, Limits()).state) == (0.3, 3.0)


def test_the_nearest_mean_is_that_of_all_distances():
    rng = np.random.default_rng(0)
    means, rows = rng.normal(size=(7, 3)), rng.normal(size=(100, 3))
    code, weight = rng.integers(7, size=100), rng.uniform(size=100)
    nearest = ((rows[:, None] - means[None]) ** 2).sum(-1).argmin(axis=1)
    found = nearest_mean_weight(means, rows, code, weight)
    assert found == pytest.approx(weight[nearest == code].sum())
