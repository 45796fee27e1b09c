"""Limits, interrupts and callbacks leave a machine whose certificate is true."""

import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.classifier_ways import every, machine
from tests.reference.data import breast_cancer, moons, signs, three_or_eight
from tests.reference.span import best_machine, features
from tests.reference.svm import assert_usable, exact_optimum, machine_objective, rbf
from widemargin.balls import CoreSet
from widemargin.span import SpanFit
from widemargin.span.descent import Descent
from widemargin.span.shard import Shard

# Rows, and room for so few vectors that a fit takes several steps.
SLOWLY = {"core": (1500, 1000), "ball": (1500, 1000), "exact": (1500, 1000), "span": (4000, 500)}
every_engine = every(SLOWLY)


def _slow(way, **parameters):
    n_rows, max_vectors = SLOWLY[way]
    defaults = {"C": 10.0, "gamma": 2.0, "tol": 1e-9, "max_vectors": max_vectors}
    return machine(way, **defaults | parameters), *moons(n_rows)


@pytest.mark.parametrize(
    ("way", "limit", "value"),
    [
        *((way, "max_iter", value) for way in SLOWLY for value in (1, 3)),
        *((way, "max_time", 1e-9) for way in SLOWLY),
        # For the others it is how many vectors to choose.
        *((way, "max_vectors", 60) for way in ("core", "ball")),
    ],
)
def test_a_limit_stops_the_fit_with_a_warning_that_states_the_gap(way, limit, value):
    found, X, y = _slow(way, **{limit: value})
    with pytest.warns(ConvergenceWarning, match=f"{limit}.*gap of ") as caught:
        found.fit(X, y)
    certificate = found.certificate_
    assert f"{certificate.gap:.2e}" in str(caught[0].message)
    assert limit in certificate.stopped
    assert certificate.gap > 1e-9
    assert len(found.support_) <= found.max_vectors
    if limit != "max_vectors":
        assert certificate.n_iter == found.n_iter_ <= (value if limit == "max_iter" else 2)
    # After one step little is known; a full core can still be refined.
    early = limit != "max_vectors" and (way == "ball" or value in (1, 1e-9))
    assert_usable(found, X, y, least=0.4 if early else 0.7)


@pytest.mark.parametrize(("limit", "value"), [("max_iter", 30), ("max_time", 1e-9)])
def test_a_stop_between_samples_is_certified_over_all_rows(limit, value):
    X, y = moons(1500)
    found = machine("core", C=10, gamma=2.0, tol=1e-6, growth="one", **{limit: value})
    with pytest.warns(ConvergenceWarning, match=limit):
        found.fit(X, y)
    assert_usable(found, X, y, least=0.4)


# Interrupts.


@pytest.mark.parametrize(
    ("way", "parameters", "calls"),
    [
        ("core", {"max_vectors": 1400}, 1),
        ("core", {"growth": "one", "max_vectors": None}, 25),
        ("ball", {"max_vectors": 1400}, 1),
        ("ball", {"max_vectors": None}, 3),
        ("exact", {"max_vectors": 1400}, 0),
        *(("span", {"max_vectors": 1000, "tol": 1e-12}, calls) for calls in range(0, 14, 3)),
    ],
)
def test_an_interrupt_in_the_middle_of_a_step_leaves_a_valid_machine(
    monkeypatch, way, parameters, calls
):
    Solver = SpanFit if way == "span" else CoreSet
    step, made = Solver.step, []

    def interrupted_step(self, state):
        made.append(1)
        after = step(self, state)
        if len(made) > calls:
            raise KeyboardInterrupt
        return after

    monkeypatch.setattr(Solver, "step", interrupted_step)
    found, X, y = _slow(way, **parameters)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*gap of"):
        found.fit(X, y)
    assert len(made) == calls + 1
    assert found.certificate_.stopped == "interrupted"
    early = way == "ball" or (way == "span" and calls == 0)
    assert_usable(found, X, y, least=0.4 if early else 0.7)


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        (Descent, "_pull"),
        (Descent, "extend"),
        (Descent, "score"),
        (Shard, "_multiply"),
        (Shard, "bring_near"),
    ],
)
def test_an_interrupt_inside_a_pass_over_the_rows_leaves_a_valid_machine(
    monkeypatch, owner, method
):
    X, y = moons(4000, noise=0.1)
    work = getattr(owner, method)
    for stop_at in (2, 7, 15):
        calls = []

        def interrupted(self, *arguments, calls=calls, stop_at=stop_at):
            calls.append(1)
            if len(calls) == stop_at:
                raise KeyboardInterrupt
            return work(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, method, interrupted)
            found = machine("span random", C=10, gamma=2.0, tol=1e-6, max_vectors=1000)
            try:
                found.fit(X, y)
            except ConvergenceWarning as warning:
                assert "interrupted" in str(warning)
            assert (found.certificate_.stopped == "interrupted") == (len(calls) >= stop_at)
        assert_usable(found, X, y, least=0.4)


# Callbacks.


class _Stopper:
    """A fit callback that asks to stop when some steps have ended."""

    def __init__(self, stop_after):
        self.stop_after, self.events = stop_after, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        pass

    def on_fit_task_end(self, estimator, context):
        self.events.append(context.task_name)
        return self.events.count("step") >= self.stop_after


@every_engine
def test_a_callback_can_stop_the_fit(way):
    pytest.importorskip("sklearn.callback")
    found, X, y = _slow(way, max_vectors=1400 if way != "span" else 500)
    stopper = _Stopper(stop_after=2)
    with pytest.warns(ConvergenceWarning, match=r"callback.*gap of"):
        found.set_callbacks(stopper).fit(X, y)
    assert stopper.events.count("step") == found.n_iter_ == 2
    assert stopper.events[-1] == "teardown"
    assert_usable(found, X, y, least=0.4 if way == "ball" else 0.7)


# A gap of zero, and values of C that leave few digits.


@every(["core", "span"])
def test_a_gap_of_zero_ends_at_the_optimum_with_or_without_a_warning(way):
    X, y = breast_cancer()
    X, sign = X[:120], signs(y[:120])
    best = exact_optimum(rbf_kernel(X, gamma=0.05), sign, 1.0)
    found = machine(way, gamma=0.05, tol=0.0, max_time=20.0)
    if way == "span":
        found.set_params(max_vectors="auto")
    try:
        found.fit(X, sign)
    except ConvergenceWarning as warning:
        assert "gap" in str(warning)
    else:
        assert found.certificate_.gap <= 1e-12  # rounding is all that is left; what is more is said
    assert_allclose(machine_objective(found, rbf(0.05), X, sign), best, rtol=1e-9)


@pytest.mark.parametrize("C", [1e-6, 1e3, 1e6])
def test_any_C_is_solved_to_the_gap_in_a_span_of_few_vectors(C):
    X, y = three_or_eight()
    X, sign = X[:150], signs(y[:150])
    found = machine("span", C=C, gamma=0.05, max_vectors=60).fit(X, sign)
    assert found.certificate_.gap <= 1e-3
    vectors, kernel = found.support_vectors_, rbf(0.05)
    inside = features(kernel(vectors, vectors), kernel(X, vectors))
    best = best_machine(inside, sign, C).value
    reached = machine_objective(found, kernel, X, sign)
    assert best * (1 - 1e-6) <= reached <= best / (1 - 1e-3) * (1 + 1e-6)
