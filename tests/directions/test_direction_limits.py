"""Solvers of directions that end early: no more dimensions, no more time, interrupts, callbacks."""

import re
from _thread import interrupt_main
from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel

from tests.reference.max_margin_ways import WAYS
from tests.reference.max_margin_ways import da as _da
from tests.reference.max_margin_ways import digits as _digits
from tests.reference.max_margin_ways import wine as _wine
from tests.reference.mmda import assert_valid
from widemargin import MaxMarginDA
from widemargin.balls import CoreSet
from widemargin.directions.deflation import Deflation
from widemargin.directions.direct import Direct
from widemargin.qp import box_ascent, margin_dual, sor
from widemargin.qp.newton import Newton
from widemargin.span import SpanFit

# The end of the subspace.


@pytest.mark.parametrize(
    "way",
    [
        {"kernel": "linear", "solver": solver, "loss": loss}
        for solver in ("direct", "deflation", "span", "core")
        for loss in ("squared_hinge", "hinge")
        if loss == "squared_hinge" or solver in ("direct", "deflation")
    ]
    + [
        {"kernel": linear_kernel, "solver": solver, "loss": loss}
        for solver in ("direct", "deflation", "span", "core")
        for loss in ("squared_hinge", "hinge")
        if loss == "squared_hinge" or solver in ("direct", "deflation")
    ],
    ids=lambda way: " ".join(getattr(value, "__name__", value) for value in way.values()),
)
@pytest.mark.parametrize("across", ["problem", "all"])
def test_more_directions_than_dimensions_give_fewer_features_and_a_warning(way, across):
    X, y = _wine()
    model = MaxMarginDA(5, random_state=0, across=across, **way)
    with pytest.warns(UserWarning, match=r"Fewer than n_directions=5 directions.*n_directions"):
        model.fit(X[:, :3], y)
    most = 9 if across == "problem" else 3
    features = model.transform(X[:, :3])
    assert 1 <= features.shape[1] <= most
    assert features.shape[1] == len(model.directions_["order"]) == len(model.intercept_)
    vectors = model.components_ if way["kernel"] == "linear" else model.coef_ @ model.vectors_
    gram = vectors @ vectors.T
    same = np.equal.outer(model.directions_["problem"], model.directions_["problem"])
    related = same if across == "problem" else np.ones_like(same)
    assert np.abs(np.where(related, gram - np.eye(len(gram)), 0.0)).max() <= 1e-8
    if across == "problem" and model.loss == "squared_hinge":
        # In three dimensions there are three of each, if all tell the classes apart.
        assert features.shape[1] >= 6


def test_the_warning_names_the_problems_that_fell_short():
    rng = np.random.default_rng(0)
    # Only the first coordinate tells "far" from the rest; with it gone, means and spreads agree.
    X = np.array([[s, a, b] for s in (0.0, 5.0) for a in (-1, 1) for b in (-1, 1)] * 5)
    y = np.where(X[:, 0] > 0, "far", np.where(rng.uniform(size=len(X)) < 0.5, "left", "right"))
    with pytest.warns(UserWarning, match="separate far") as record:
        _da(2, "linear", tol=1e-6).fit(X, y)
    assert len(record) == 1


def test_the_warning_names_the_code_that_fell_short():
    X, y = np.array([[-5.0], [0.0], [5.0]] * 10), np.arange(30) % 3
    codes = np.array([[-1, -1], [-1, 1], [1, -1]])
    with pytest.warns(UserWarning) as record:
        model = _da(1, "linear", codes=codes, tol=1e-6).fit(X, y)
    # The middle has the mean of the others: problem 1 has no linear direction at all.
    assert_array_equal(model.directions_["problem"], [0])
    assert re.search(r"separate 1 from", str(record[0].message))
    # Of two codes either can fall short; of two classes only the second is named.
    with pytest.warns(UserWarning, match="separate 0 from"):
        _da(1, "linear", codes=codes[:, ::-1], tol=1e-6).fit(X, y)


# Limits on time.

EVERY = [(way, {}) for way in WAYS] + [("linear hinge", {"solver": "direct"})]
every_solver_and_loss = pytest.mark.parametrize(
    ("way", "extra"), EVERY, ids=[" ".join([way, *extra.values()]) for way, extra in EVERY]
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second whenever someone looks at it."""
    ticks = count()
    for module in ("loop", "directions.rounds"):
        monkeypatch.setattr(f"widemargin.{module}.perf_counter", lambda: float(next(ticks)))
    return ticks


def _noisy_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=300) > 0).astype(int)


@pytest.mark.parametrize("max_time", [1e-9, 1, 3, 5])
@every_solver_and_loss
def test_a_single_direction_ends_in_time(clock, way, extra, max_time):
    X, y = _noisy_rows()
    model = _da(1, way, C=100.0, gamma=1.0, tol=1e-9, epsilon=1e-6, max_time=max_time, **extra)
    if (way, max_time) == ("deflation", 5):
        # Its dual is one compiled call: five looks at the clock are enough for all of it.
        assert model.fit(X, y).directions_["gap"][0] <= 1e-9
        return
    with pytest.warns(ConvergenceWarning, match=r"max_time=.*features and a relative gap of"):
        model.fit(X, y)
    # Whoever does the work has looked at the clock in the middle of it, and stopped.
    assert next(clock) <= max_time + 12
    assert "max_time" in model.directions_["stopped"][0]
    assert model.directions_["gap"][0] > 1e-8
    assert_valid(model, X, y)


@every_solver_and_loss
def test_hardly_any_time_leaves_a_direction_of_every_class(way, extra):
    X, y = _digits(4, 400)
    model = _da(4, way, max_time=1e-6, **extra)
    with pytest.warns(ConvergenceWarning, match=r"max_time=.*features and a relative gap of"):
        model.fit(X, y)
    assert "max_time" in model.certificate_.stopped
    assert_array_equal(model.directions_["problem"], range(4))
    assert_valid(model, X, y)
    # Rough as they are, they point towards their classes.
    features = model.transform(X)
    for label in range(4):
        assert features[y == label, label].mean() > features[y != label, label].mean()


@pytest.mark.parametrize("across", ["problem", "all"])
@pytest.mark.parametrize("max_time", [1, 8, 12, 15, 18, 20, 30, 40])
def test_a_span_stops_in_time_wherever_it_is(clock, max_time, across):
    # The limit also falls on the first step of a round, where w is still zero: that is no end of
    # the subspace.
    X, y = _digits(4, 400)
    model = _da(4, "span", C=10.0, max_time=max_time, across=across)
    with pytest.warns(ConvergenceWarning, match=r"max_time=.*features and a relative gap of"):
        model.fit(X, y)
    assert 1 <= len(model.directions_["order"]) < 16
    assert_valid(model, X, y)


@pytest.mark.parametrize("way", ["span", "core"])
def test_few_steps_leave_a_valid_model_and_a_warning(way):
    X, y = _digits(4, 400)
    model = _da(2, way, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2.*relative gap of"):
        model.fit(X, y)
    assert len(model.directions_["order"]) == 8
    assert_valid(model, X, y)


# Interrupts.


@pytest.mark.parametrize(
    ("way", "owner", "method"),
    [
        ("deflation", Deflation, "solve"),
        ("direct", Direct, "solve"),
        ("span", SpanFit, "step"),
        ("core", CoreSet, "step"),
        ("linear", Newton, "step"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("across", ["problem", "all"])
@pytest.mark.parametrize("calls", [5, 13])
def test_an_interrupt_leaves_a_valid_model(monkeypatch, way, owner, method, calls, across):
    X, y = _digits(4, 200)
    work, made = getattr(owner, method), []

    def interrupted(self, *arguments):
        made.append(1)
        if len(made) == calls:
            raise KeyboardInterrupt
        return work(self, *arguments)

    monkeypatch.setattr(owner, method, interrupted)
    # With "span" and "all", the first of them falls on the fit that chooses the vectors.
    model = _da(4, way, C=10.0, n_jobs=1, across=across)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    assert len(made) == calls
    assert model.certificate_.stopped == "interrupted"
    assert 1 <= len(model.directions_["order"]) < 16
    assert_valid(model, X, y)


# Where each solver works: what an interrupt comes into.
_INSIDE = {
    "deflation": (margin_dual, "next_round"),
    "direct": (sor.loops, "relax"),
    "span": (SpanFit, "step"),
    "core": (CoreSet, "step"),
    "linear": (Newton, "step"),
    "linear deflation": (Newton, "step"),
    "linear core": (CoreSet, "step"),
    "hinge": (box_ascent.BoxAscent, "_advance"),
    "direct hinge": (box_ascent.BoxAscent, "_advance"),
    "linear hinge": (box_ascent.BoxAscent, "_advance"),
}


def _interrupt_inside(monkeypatch, way, number, how):
    """Let `how` be called at the start of a call of what works, and return the calls."""
    owner, name = _INSIDE[way]
    work, made = getattr(owner, name), []

    def interrupted(*arguments, **options):
        made.append(1)
        if len(made) == number:
            how()
        return work(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)
    return made


def _raise_interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("across", ["problem", "all"])
@every_solver_and_loss
def test_an_interrupt_in_the_middle_of_the_first_directions_leaves_a_valid_model(
    monkeypatch, way, extra, across, number
):
    X, y = _digits(4, 200)
    made = _interrupt_inside(monkeypatch, way, number, _raise_interrupt)
    model = _da(4, way, C=10.0, tol=1e-9, epsilon=1e-6, across=across, **extra)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    # A span has no direction without a step.
    assert len(made) == number + (way == "span" and number == 1)
    assert model.certificate_.stopped == "interrupted"
    assert 1 <= len(model.directions_["order"]) < 16
    assert_valid(model, X, y)


@pytest.mark.parametrize("way", ["deflation", "hinge", "linear hinge"])
def test_an_interrupt_ends_the_work_of_all_threads(monkeypatch, way):
    X, y = _digits(4, 200)
    _interrupt_inside(monkeypatch, way, 2, interrupt_main)
    model = _da(4, way, C=10.0, tol=1e-9, n_jobs=2)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    assert_array_equal(model.directions_["problem"], range(4))
    assert_valid(model, X, y)


@pytest.mark.parametrize("way", ["deflation", "direct", "span", "core"])
def test_an_interrupt_before_the_first_step_leaves_a_valid_model(monkeypatch, way):
    X, y = _digits(4, 200)
    owner = {"deflation": Deflation, "direct": Direct, "span": SpanFit, "core": CoreSet}[way]
    name = "solve" if owner in (Deflation, Direct) else "start"
    work, made = getattr(owner, name), []

    def interrupted(self, *arguments):
        made.append(1)
        if len(made) == 1:
            raise KeyboardInterrupt
        return work(self, *arguments)

    monkeypatch.setattr(owner, name, interrupted)
    model = _da(2, way)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    assert_array_equal(model.directions_["problem"], range(4))
    assert_valid(model, X, y)


@pytest.mark.parametrize("across", ["problem", "all"])
def test_an_interrupt_at_the_first_step_of_a_later_round_is_no_end_of_the_subspace(
    monkeypatch, across
):
    X, y = _digits(4, 300)
    again, step = SpanFit.again, SpanFit.step

    def marked(self, *arguments):
        later = again(self, *arguments)
        later.is_later = arguments[1] is not None
        return later

    def interrupted(self, state):
        if getattr(self, "is_later", False):
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(SpanFit, "again", marked)
    monkeypatch.setattr(SpanFit, "step", interrupted)
    model = _da(2, "span", C=10.0, across=across)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*features and a relative gap of"):
        model.fit(X, y)
    assert model.certificate_.stopped == "interrupted"
    assert_valid(model, X, y)


class _Stopper:
    """A fit callback that asks to stop when some tasks have ended."""

    def __init__(self, stop_after):
        self.stop_after, self.seen = stop_after, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        pass

    def on_fit_task_end(self, estimator, context):
        self.seen += context.task_name == "step"
        return self.seen >= self.stop_after


@pytest.mark.parametrize("way", ["deflation", "span", "core", "linear"])
def test_a_callback_can_stop_the_fit(way):
    pytest.importorskip("sklearn.callback")
    X, y = _wine()
    model = _da(8, way, tol=1e-9).set_callbacks(_Stopper(2))
    with pytest.warns(ConvergenceWarning, match=r"callback.*relative gap of"):
        model.fit(X, y)
    assert 1 <= len(model.directions_["order"]) < 24
    assert_valid(model, X, y)
