"""A real cluster of processes: the same machine, also when workers die."""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    KernelFisherDA,
    MarginClassifier,
    MarginClassifierCV,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
    SpanMap,
)
from widemargin.base.progress import ProgressBar
from widemargin.loop import PlaceLost
from widemargin.places import on_workers

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    # Of Dask's own, about its processes and sockets at their end.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("cluster"),
]

CELLS = {"engine": "cells", "cells": 60, "gamma": 1.0, "random_state": 0, "memory": "200MB"}
SPAN = {"engine": "span", "max_vectors": 50, "random_state": 0, "memory": "200MB", "tol": 1e-6}


@pytest.fixture
def client():
    with _cluster(2) as client:
        yield client
    # A client that was closed in the middle of a fit leaves itself as Dask's scheduler.
    dask.config.config.pop("scheduler", None)


@contextmanager
def _cluster(n_workers):
    ways = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=True, **ways) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _rows(n=3000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n), [-0.5, 0.5])
    return X, y


def _cut(X, y):
    return da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)


def _kill(client):
    """Kill the process of a worker; its nanny will start another."""
    workers = list(client.run(os.getpid).values())
    os.kill(workers[0], signal.SIGKILL)


def test_a_cluster_gives_the_machine_of_the_array_also_when_a_worker_dies(client):
    X, y = _rows()
    dX, dy = _cut(X, y)
    here = MarginClassifier(**SPAN).fit(X, y)
    there = MarginClassifier(**SPAN).fit(dX, dy)
    assert_array_equal(there.support_, here.support_)
    values = here.decision_function(X)
    assert_allclose(there.decision_function(X), values, atol=1e-6 * np.abs(values).max())
    assert there.score(dX, dy) == pytest.approx(here.score(X, y))
    for at in (2, 5):
        steps = []

        class Killing(MarginClassifier):
            def options(self, resources, at=at, steps=steps):
                found = super().options(resources)

                def report(certificate):
                    steps.append(certificate)
                    if len(steps) == at:
                        _kill(client)
                    return False

                return type(found)(**vars(found) | {"report": report})

        # The one after the worker that died: there are as many shards as workers.
        client.wait_for_workers(2, timeout=60)
        disturbed = Killing(**SPAN).fit(dX, dy)
        assert len(steps) > at
        assert_array_equal(disturbed.dual_coef_, there.dual_coef_)
        assert_array_equal(disturbed.intercept_, there.intercept_)


def test_maps_and_projections_on_a_cluster_are_those_of_the_array(client):
    X, y = _rows(2000)
    dX, dy = _cut(X, y)
    shared = {"random_state": 0, "memory": "200MB"}
    for estimator in (
        SpanMap(30, **shared),
        # The machine that chooses the vectors is fitted on the workers before the scatter is.
        KernelFisherDA(solver="span", n_vectors=30, vectors="core", **shared),
        MaxiMinDA(2, kernel="rbf", n_vectors=30, shrinkage=0.1, **shared),
        PairwiseAccuracyDA(2, kernel="rbf", n_vectors=30, vectors="random", **shared),
    ):
        here, there = clone(estimator).fit(X, y), clone(estimator).fit(dX, dy)
        lazy = there.transform(dX)
        assert_allclose(lazy.compute(), here.transform(X), atol=1e-8)
    margins = {"kernel": "rbf", "solver": "span", "max_vectors": 30, "tol": 1e-8} | shared
    here = MaxMarginDA(2, **margins).fit(X, y)
    there = MaxMarginDA(2, **margins).fit(dX, dy)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.transform(dX).compute(), here.transform(X), atol=1e-5)
    steps, killed = [], []

    class Killing(MaxMarginDA):
        def _options(self, *known):
            found = super()._options(*known)

            def report(certificate):
                steps.append(certificate)
                if certificate.n_iter == 3 and len(steps) > 10 and not killed:
                    # In the second round, whose problems the shards were told of.
                    _kill(client)
                    killed.append(certificate)
                return False

            return type(found)(**vars(found) | {"report": report})

    disturbed = Killing(2, **margins).fit(dX, dy)
    assert killed
    assert_array_equal(disturbed.coef_, there.coef_)


def test_a_search_has_the_scores_of_the_array_also_when_a_worker_dies(client):
    X, y = _rows(1000)
    dX, dy = _cut(X, y)
    grid = SPAN | {"Cs": [0.1, 1.0], "gammas": ["scale"], "cv": 2, "max_vectors": 30}
    here = MarginClassifierCV(**grid).fit(X, y)
    steps = []

    class Killing(MarginClassifierCV):
        def _options(self, resources):
            found = super()._options(resources)

            def report(certificate):
                steps.append(certificate)
                if len(steps) == 4:
                    _kill(client)
                return False

            return type(found)(**vars(found) | {"report": report})

    disturbed = Killing(**grid).fit(dX, dy)
    assert len(steps) > 4
    assert disturbed.best_params_ == here.best_params_
    for k in range(2):
        name = f"split{k}_test_score"
        assert_allclose(disturbed.cv_results_[name], here.cv_results_[name], atol=1e-9)
    values = here.decision_function(X)
    assert_allclose(disturbed.decision_function(X), values, atol=1e-6 * np.abs(values).max())


def test_a_search_in_cells_has_the_scores_of_the_array_also_when_a_worker_dies(client):
    X, y = _rows(1500)
    grid = {"engine": "cells", "cells": 100, "Cs": [0.1, 1.0], "gammas": ["scale"], "cv": 2}
    grid |= {"random_state": 0, "memory": "200MB"}
    here = MarginClassifierCV(**grid).fit(X, y)
    done = []

    class Killing(ProgressBar):
        def advance(self, amount, said=None):
            if not done:
                _kill(client)
            done.append(amount)
            super().advance(amount, said)

    class Disturbed(MarginClassifierCV):
        def _bar(self, grid):
            return Killing("search", len(grid.widths), shown=False)

    there = Disturbed(**grid).fit(*_cut(X, y))
    assert len(done) > 2
    assert there.best_params_ == here.best_params_
    for k in range(2):
        name = f"split{k}_test_score"
        assert_allclose(there.cv_results_[name], here.cv_results_[name], atol=1e-12)
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-9)


def _reporting(done):
    """Return a classifier that tells a function how many steps there were."""

    class Reporting(MarginClassifier):
        def options(self, resources):
            found = super().options(resources)
            steps = []

            def report(certificate):
                steps.append(certificate)
                done(steps)
                return False

            return replace(found, report=report)

    return Reporting


def test_cells_are_those_of_the_array_bit_for_bit_also_when_a_worker_dies(client):
    X, y = _rows()
    dX, dy = _cut(X, y)
    here = MarginClassifier(**CELLS).fit(X, y)
    there = MarginClassifier(**CELLS).fit(dX, dy)
    n_steps = []

    def kill(steps):
        n_steps.append(len(steps))
        if len(steps) == 2:
            _kill(client)

    disturbed = _reporting(kill)(**CELLS).fit(dX, dy)
    assert max(n_steps) > 2
    for name in ("cell_centers_", "support_", "dual_coef_", "intercept_", "cell_offsets_"):
        assert_array_equal(getattr(there, name), getattr(here, name), err_msg=name)
        assert_array_equal(getattr(disturbed, name), getattr(here, name), err_msg=name)
    # Few rows are fitted here.
    assert MarginClassifier(gamma=1.0).fit(dX, dy).engine_ == "exact"


@pytest.mark.parametrize("ways", [SPAN, CELLS])
def test_the_only_worker_may_die(ways):
    X, y = _rows(1000)
    with _cluster(1) as client:
        there = MarginClassifier(**ways).fit(*_cut(X, y))
        n_steps = []

        def kill(steps):
            n_steps.append(len(steps))
            if len(steps) == 2:
                _kill(client)

        disturbed = _reporting(kill)(**ways).fit(*_cut(X, y))
    assert max(n_steps) > 2
    assert_array_equal(disturbed.dual_coef_, there.dual_coef_)


def test_a_cluster_without_workers_that_work_is_lost(monkeypatch):
    monkeypatch.setattr(on_workers, "_IDLE", 1.0)
    with _cluster(1) as client:
        nowhere = client.submit(abs, -1, workers=["tcp://127.0.0.1:1"])
        with pytest.raises(PlaceLost, match="no worker"):
            on_workers.results_of(client, [nowhere])


def test_limits_leave_a_valid_machine_in_cells(client):
    X, y = _rows()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.001 reached"):
        model = MarginClassifier(**CELLS | {"max_time": 1e-3}).fit(*_cut(X, y))
    assert len(model.predict(X)) == len(X)

    def close(steps):
        if len(steps) == 4:
            client.close()

    with pytest.warns(ConvergenceWarning, match=r"cluster.*relative gap"):
        model = _reporting(close)(**CELLS).fit(*_cut(X, y))
    done = np.diff(model.cell_offsets_) > 0
    assert 0 < done.sum() < len(done)
    assert 0.0 < model.certificate_.gap < 1.0
    assert model.intercept_.any(axis=1).all()


def test_a_bad_row_on_a_worker_is_an_error_that_names_its_partition(client):
    X, y = _rows()
    X[2500, 1] = np.nan
    with pytest.raises(ValueError, match="partition 6 of X"):
        MarginClassifier(**SPAN).fit(*_cut(X, y))


def test_a_cluster_that_is_gone_leaves_the_machine_of_the_last_step(client):
    X, y = _rows()
    seen = []

    class Closing(MarginClassifier):
        def options(self, resources):
            found = super().options(resources)

            def report(certificate):
                seen.append(certificate)
                if len(seen) == 6:
                    client.close()
                return False

            return type(found)(**vars(found) | {"report": report})

    model = Closing(**SPAN | {"tol": 1e-12})
    with pytest.warns(ConvergenceWarning, match=r"cluster.*relative gap"):
        model.fit(*_cut(X, y))
    assert len(seen) == 6
    assert model.certificate_.primal == seen[-1].primal
    assert len(model.predict(X)) == len(X)
