"""The exact machine of rows whose kernel matrix does not fit: it begins in a span."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import MarginClassifier
from widemargin.balls import exact
from widemargin.balls.matrix_free import MatrixFree
from widemargin.threads import n_threads


def _rows(n, n_classes=2, noise=0.3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    scores = np.sin(2 * X[:, :n_classes]) + noise * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


# The support of the first fits, that of the last does not.
@pytest.mark.parametrize("memory", ["6MB", "1MB"])
@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "ovo")])
def test_the_machine_is_that_of_the_whole_matrix(memory, n_classes, multi_class):
    X, y = _rows(1500, n_classes)
    given = {"C": 5.0, "engine": "exact", "multi_class": multi_class, "tol": 1e-6}
    given["decision_function_shape"] = multi_class
    tight = MarginClassifier(memory=memory, random_state=0, **given).fit(X, y)
    free = MarginClassifier(memory="1GB", random_state=0, **given).fit(X, y)
    assert tight.certificate_.scope == free.certificate_.scope == "full"
    assert tight.certificate_.gap <= 1e-6
    values, expected = tight.decision_function(X), free.decision_function(X)
    assert np.abs(values - expected).max() < 0.05
    assert (tight.predict(X) == free.predict(X)).mean() > 0.999


def test_its_certificate_has_the_cost_of_the_span_too():
    X, y = _rows(1500)
    reported = []

    class Watching(MarginClassifier):
        def options(self, resources):
            seen = resources.report
            report = lambda each: reported.append(each) or seen(each)  # noqa: E731
            return super().options(resources.__class__(**vars(resources) | {"report": report}))

    machine = Watching(engine="exact", memory="1MB").fit(X, y)
    scopes = {each.scope for each in reported}
    assert "span" in scopes
    assert "full" in scopes
    assert machine.certificate_.n_iter == len(reported)
    assert machine.certificate_.n_kernel > max(each.n_kernel for each in reported)


def test_without_time_for_a_better_one_the_machine_is_that_of_the_span():
    X, y = _rows(20_000, noise=2.0)
    machine = MarginClassifier(C=100.0, engine="exact", memory="20MB", max_time=1.5, random_state=0)
    began = process_time()
    with pytest.warns(ConvergenceWarning, match=r"max_time=1\.5 reached"):
        machine.fit(X, y)
    # Time of the processor: others may use it, too.
    assert process_time() - began < 4.0 * n_threads(None)
    assert "max_time" in machine.certificate_.stopped
    span = MarginClassifier(C=100.0, engine="span", memory="20MB", random_state=0).fit(X, y)
    # Time may end the span early, but what it leaves is a machine.
    assert machine.score(X, y) > span.score(X, y) - 0.05


def test_where_factors_would_take_too_long_it_does_without(monkeypatch):
    X, y = _rows(900, noise=1.0)
    given = {"C": 100.0, "engine": "exact", "tol": 1e-5, "random_state": 0}
    plain = MarginClassifier(**given).fit(X, y)
    assert plain.certificate_.n_vectors > 300
    without = []

    class Watched(MatrixFree):
        def start(self):
            without.append(self.problem.n)
            return super().start()

    monkeypatch.setattr(exact, "MatrixFree", Watched)
    MarginClassifier(**given).fit(X, y)
    assert not without
    monkeypatch.setattr(exact, "_MOST_IN_A_FACTOR", 200)
    machine = MarginClassifier(**given).fit(X, y)
    assert without == [900]
    assert machine.certificate_.gap <= 1e-5
    assert machine.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-5)
    # With a small C coordinate ascent does without factors, unless a clock must be looked at.
    MarginClassifier(**given | {"C": 0.1}).fit(X, y)
    assert without == [900]
    MarginClassifier(**given | {"C": 0.1, "max_time": 60.0}).fit(X, y)
    assert without == [900, 900]
