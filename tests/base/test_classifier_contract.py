"""What every classifier promises: labels, weights, seeds, certificates, limits, progress."""

import re
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from tests.reference.classifier_ways import (
    BALLS,
    CELLS,
    KINDS,
    MARGINS,
    SEARCHES,
    SPARSE,
    SVMS,
    WAYS,
    every,
    fitted,
    machine,
    takes,
)
from tests.reference.data import digits, moons, three_or_eight
from tests.reference.svm import leeway

# A few steps are enough here.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Sparse\w+ stopped before its rule.*\(max_iter=\d+ reached"
)

# A reduced set starts at support vectors, drawn in the order of the rows, of a machine that is
# known as far as it was solved; it has no certificate.
OF_THE_ROWS = [way for way in WAYS if not way.startswith("reduced set")]
# Weights of classes enter the loss, and not what the words for gamma and `scale` ask of the rows.
WEIGHING_CLASSES = [way for way in OF_THE_ROWS if takes(way, "class_weight") and way != "scaled"]


def _close(way, otherwise=1e-7):
    """How near two fits are to each other that are given the same problem in other words."""
    return 1e-4 if way in BALLS else 0.0 if way == "cells" else otherwise


def _tight(way):
    """Parameters for an answer so sharp that it can be compared."""
    return {"tol": 1e-2 if way == "ball" else 1e-8} if takes(way, "tol") else {}


# Decisions and labels.


@pytest.mark.parametrize(
    ("way", "n_classes"),
    # Machines of pairs of several classes vote.
    [
        (way, n_classes)
        for way in WAYS
        for n_classes in (2, 5)
        if (way, n_classes) != ("reduced set", 5)
    ],
)
def test_predict_is_exactly_the_sign_or_argmax_of_the_decision_function(way, n_classes):
    X, _ = digits(n_classes, 60 * n_classes)
    found = fitted(way, n_classes, random_state=1)
    scores = found.decision_function(X)
    assert scores.shape == ((len(X),) if n_classes == 2 else (len(X), 5))
    winner = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert_array_equal(found.predict(X), found.classes_[winner])
    assert len(np.unique(found.predict(X))) == n_classes


# All in the order 2, 0, 1, and two flags.
LABELS = {
    "words": np.array(["zwei", "drei", "eins"]),
    "letters of the world": np.array(["緑", "κόκκινο", "синий"]),
    "objects": np.array(["c", "a", "b"], dtype=object),
    "numbers": np.array([100, -3, 7]),
    "large numbers": np.array([2**42, 2**40, 2**41]),
    "bytes": np.array([2, 0, 1], dtype=np.uint8),
    "floats": np.array([1.0, -1.0, 0.0]),
    "flags": np.array([False, True]),
}


@every(KINDS)
def test_labels_of_any_type_come_back_as_they_were(way):
    X, y = digits(3, 60)
    turned = machine(way).fit(X, np.array([2, 0, 1])[y])
    for names in LABELS.values():
        few = len(names) == 2
        rows, code, plain = (*digits(2, 60), fitted(way, 2)) if few else (X, y, turned)
        named = machine(way).fit(rows, names[code])
        predicted = named.predict(rows)
        assert_array_equal(named.classes_, np.sort(names))
        assert named.classes_.dtype == predicted.dtype == names.dtype
        assert_array_equal(predicted, np.sort(names)[plain.predict(rows)])
        assert_array_equal(named.decision_function(rows), plain.decision_function(rows))


@every(KINDS)
def test_labels_of_several_types_are_refused_with_a_remedy(way):
    X, y = digits(2, 60)
    mixed = np.array([1, "one"], dtype=object)[y]
    with pytest.raises(TypeError, match=r"y mixes labels of the types int, str.*y\.astype\(str\)"):
        machine(way).fit(X, mixed)
    assert_array_equal(machine(way).fit(X, mixed.astype(str)).classes_, ["1", "one"])


@every()
def test_a_positive_value_means_the_second_of_two_sorted_labels(way):
    X, y = three_or_eight()
    X, y = X[:100], y[:100]
    number = machine(way).fit(X, y)
    assert_array_equal(number.classes_, [3, 8])
    least = 0.95 if way in SVMS else 0.9
    assert (number.decision_function(X[y == 8]) > 0).mean() > least
    flag = machine(way).fit(X, y == 8)
    assert flag.classes_.dtype == bool
    assert_array_equal(flag.decision_function(X), number.decision_function(X))
    # The other order of the labels is the mirrored machine.
    word = machine(way).fit(X, np.where(y == 8, "a", "b"))
    assert ((word.predict(X) == "a") == (number.predict(X) == 8)).mean() > 0.95
    if way in BALLS:
        apart = np.abs(word.decision_function(X) + number.decision_function(X))
        assert apart.max() <= leeway(word, number)


# Weights.


@every()
@pytest.mark.parametrize(
    ("as_stored", "gamma"),
    [(np.asarray, "scale"), (sparse.csr_array, "mean_distance"), (np.asarray, 0.1)],
    ids=["dense-scale", "sparse-mean_distance", "dense-0.1"],
)
def test_weight_k_is_the_same_as_k_copies_and_zero_as_none(way, as_stored, gamma):
    if way == "reduced set" and gamma == "mean_distance":
        gamma = "scale"  # of the other SVC knows nothing
    X, y = digits(3, 90)
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    labels = np.where(k > 0, y, 9)  # a label that only rows without weight have is no class
    weighted = machine(way, C=2.0, gamma=gamma).fit(as_stored(X), labels, sample_weight=k)
    copied = machine(way, C=2.0, gamma=gamma).fit(as_stored(X[copies]), y[copies])
    assert_array_equal(weighted.classes_, [0, 1, 2])
    values = weighted.decision_function(as_stored(X))
    assert_allclose(values, copied.decision_function(as_stored(X)), rtol=0, atol=_close(way))
    plain = machine(way, C=2.0, gamma=gamma).fit(as_stored(X), y)
    assert np.abs(values - plain.decision_function(as_stored(X))).max() > 1e-2


@every(OF_THE_ROWS)
def test_rows_of_weight_zero_are_as_good_as_absent(way):
    X, y = digits(4, 120)
    kept = (np.arange(120) % 5 > 0) & (y != 3)
    with_zeros = machine(way, gamma=0.05).fit(X, y, sample_weight=kept.astype(float))
    without = machine(way, gamma=0.05).fit(X[kept], y[kept])
    assert_array_equal(with_zeros.classes_, [0, 1, 2])
    assert_allclose(with_zeros.decision_function(X), without.decision_function(X), atol=1e-9)
    if getattr(with_zeros, "support_", None) is not None:
        assert_array_equal(with_zeros.support_, np.flatnonzero(kept)[without.support_])
    with pytest.raises(ValueError, match=r"y .*class"):
        machine(way).fit(X, y, sample_weight=np.where(y == 0, 1.0, 0.0))


@every(WEIGHING_CLASSES)
def test_class_weights_are_sample_weights(way):
    X, y = digits(3, 90)
    factor = np.array([0.5, 3.0, 1.0])
    parameters = {"gamma": 0.05} | ({"tol": 1e-6} if way in MARGINS else {})
    by_class = machine(way, class_weight=dict(enumerate(factor)), **parameters).fit(X, y)
    by_row = machine(way, **parameters).fit(X, y, sample_weight=factor[y])
    plain = machine(way, **parameters).fit(X, y)
    values = by_class.decision_function(X)
    assert_allclose(values, by_row.decision_function(X), rtol=0, atol=_close(way, 1e-3))
    assert np.abs(values - plain.decision_function(X)).max() > 1e-2
    if way in MARGINS:
        # Vectors are drawn by weights, of classes or of rows: the machine is the same given both.
        assert_allclose(by_class.certificate_.primal, by_row.certificate_.primal, rtol=1e-5)


@every(WEIGHING_CLASSES)
def test_balanced_class_weights_follow_the_formula(way):
    X, y = digits(3, 90)
    kept = (y != 1) | (np.arange(len(y)) % 3 == 0)
    X, y = X[kept], y[kept]
    for weight in (np.ones(len(y)), np.random.default_rng(0).integers(1, 4, size=len(y))):
        share = weight.sum() / (3 * np.bincount(y, weights=weight))
        parameters = {"gamma": 0.05} | _tight(way)
        balanced = machine(way, class_weight="balanced", **parameters)
        balanced.fit(X, y, sample_weight=weight)
        written = machine(way, **parameters).fit(X, y, sample_weight=weight * share[y])
        atol = 1e-9 if way == "cells" else 1e-4
        assert_allclose(balanced.decision_function(X), written.decision_function(X), atol=atol)


@every([way for way in OF_THE_ROWS if way != "fisher"])
def test_scaling_all_weights_is_scaling_C(way):
    X, y = digits(2, 80)
    for factor in (0.3, 2.5):
        scaled = machine(way, C=1.0).fit(X, y, sample_weight=np.full(len(X), factor))
        expected = machine(way, C=factor).fit(X, y)
        assert_allclose(scaled.decision_function(X), expected.decision_function(X), atol=1e-4)


# Reproducibility.


def _assert_same_bits(one, two, X):
    for name in ("support_", "support_vectors_", "dual_coef_", "expansion_vectors_", "intercept_"):
        if hasattr(one, name):
            assert_array_equal(getattr(one, name), getattr(two, name))
    assert_array_equal(one.decision_function(X), two.decision_function(X))


@every()
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(way):
    X, y = moons(600)  # more than a block of rows
    y = y + (X[:, 0] > 1)
    first, again, threaded = (machine(way, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 2))
    _assert_same_bits(first, again, X)
    _assert_same_bits(first, threaded, X)


# Folds depend on the order of the rows, and with them what a search chooses.
@every([way for way in OF_THE_ROWS if way not in SEARCHES])
def test_the_order_of_the_rows_does_not_matter(way):
    X, y = digits(3, 90)
    order = np.random.default_rng(5).permutation(len(X))
    straight, shuffled = fitted(way), machine(way).fit(X[order], y[order])
    if getattr(straight, "support_", None) is not None:
        assert_array_equal(np.sort(order[shuffled.support_]), np.sort(straight.support_))
    values = shuffled.decision_function(X)
    atol = 0.0 if way == "cells" else 1e-9 if way in BALLS else 1e-8
    assert_allclose(values, straight.decision_function(X), rtol=0, atol=atol)


# The certificate, limits and progress.


@every(SVMS)
def test_the_certificate_prints_as_one_line_with_the_gap_and_the_reason(way):
    certificate = fitted(way, tol=1e-2).certificate_
    line = str(certificate)
    assert "\n" not in line
    assert f"gap {certificate.gap:.1e}" in line
    assert certificate.stopped in line
    assert "0.01" in certificate.stopped
    assert_allclose(certificate.gap, 1 - certificate.dual / certificate.primal, atol=1e-4)


@every(OF_THE_ROWS)
def test_the_certificate_counts_what_the_machine_has(way):
    found = fitted(way)
    certificate, best = found.certificate_, getattr(found, "best_estimator_", found)
    assert certificate.n_vectors == best.support_vectors_.shape[0] == best.dual_coef_.shape[1]
    assert certificate.n_iter == found.n_iter_ >= 1
    assert certificate.n_passes >= 1
    assert certificate.n_kernel >= certificate.n_vectors
    assert certificate.seconds > 0


@pytest.mark.parametrize(
    ("way", "limit", "value"),
    [
        (way, limit, value)
        for way in OF_THE_ROWS
        for limit, value in (("max_iter", 1), ("max_time", 1e-9))
        if takes(way, limit)
    ],
)
def test_a_limit_ends_the_fit_with_a_warning_and_a_model(way, limit, value):
    X, y = moons(1200, noise=0.3)
    parameters = {"C": 10.0, "gamma": 2.0}
    if takes(way, "tol"):
        parameters["tol"] = 0.0 if way in SPARSE else 1e-9
    limited = machine(way, **parameters, **{limit: value})
    if way in ("core", "exact"):
        limited.set_params(max_vectors=1000)
    # A search speaks for itself before its last machine does.
    with pytest.warns(ConvergenceWarning) as caught:
        limited.fit(X, y)
    certificate, said = limited.certificate_, str(caught[-1].message)
    gap = re.escape(f"{certificate.gap:.2e}")
    assert re.search(f"{limit}.*gap of.*{gap}.*valid", said)
    assert len(caught) == 1 or (way in SEARCHES and limit in str(caught[0].message))
    assert all(each.filename == __file__ for each in caught)
    assert limit in certificate.stopped
    assert certificate.n_iter == limited.n_iter_ <= 2
    assert certificate.dual <= certificate.primal
    assert np.isfinite(limited.decision_function(X)).all()
    assert set(limited.predict(X)) <= {0, 1}


@every(SVMS, CELLS)
def test_verbose_prints_rows_vectors_gap_and_seconds_for_each_step(way, capsys):
    X, y = moons(600)
    found = machine(way, verbose=1, gamma=1.0, tol=1e-2)
    if way in ("core", "ball", "exact"):
        found.set_params(max_vectors=550)
    found.fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == found.n_iter_ > 1
    pattern = (
        rf"\[{type(found).__name__}\] step (\d+): 600 rows, ([\d,]+) vectors, "
        r"gap (\S+) \((\w+)\), (\S+) s"
    )
    said = [re.fullmatch(pattern, line) for line in lines]
    assert all(said)
    assert [int(match[1]) for match in said] == list(range(1, len(lines) + 1))
    assert all(a <= b for a, b in pairwise(float(match[5]) for match in said))
    assert int(said[-1][2].replace(",", "")) == found.certificate_.n_vectors
    assert float(said[-1][3]) == pytest.approx(found.certificate_.gap, rel=0.01)
    assert said[-1][4] == found.certificate_.scope
    if way in SVMS:
        assert float(said[0][3]) > 1e-2 >= float(said[-1][3])


@every()
def test_without_verbose_nothing_is_printed(way, capsys):
    machine(way).fit(*digits(2, 60))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


class _Recorder:
    """A fit callback that notes what it is told, and stops the fit after some steps."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", context.task_name))
        self.shape = X.shape

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        return self.stop_after is not None and self.n_steps() >= self.stop_after

    def n_steps(self):
        return self.events.count(("end", "step"))


@every(["core", "ball", "exact", "span", "cells"])
def test_callbacks_see_the_fit_and_every_step(way):
    pytest.importorskip("sklearn.callback")
    X, y = moons(600)
    found = machine(way, gamma=1.0, tol=1e-2)
    if way in ("core", "ball", "exact"):
        found.set_params(max_vectors=550)
    recorder = _Recorder()
    found.set_callbacks(recorder).fit(X, y)
    assert recorder.n_steps() == found.n_iter_ > 1
    assert recorder.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert recorder.events.count(("begin", "step")) == recorder.n_steps()
    assert recorder.shape == X.shape


def test_the_progress_bar_of_scikit_learn_shows_the_fit(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y = moons(300)
    found = machine("core", tol=1e-2).set_callbacks(callback.ProgressBar())
    assert found.fit(X, y).score(X, y) > 0.9
    assert "CoreVectorClassifier" in capsys.readouterr().out
