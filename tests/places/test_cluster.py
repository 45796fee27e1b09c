"""A real cluster of processes: the same machine, also when workers die."""

import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    KernelFisherDA,
    MarginClassifier,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
    SpanMap,
)

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

SPAN = {"engine": "span", "max_vectors": 50, "random_state": 0, "memory": "200MB", "tol": 1e-6}


@pytest.fixture
def client():
    ways = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=True, **ways) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    # A client that was closed in the middle of a fit leaves itself as Dask's scheduler.
    dask.config.config.pop("scheduler", None)


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
