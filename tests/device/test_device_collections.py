"""Dask collections whose shards lie on devices of their workers."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from widemargin import MarginClassifier, MarginClassifierCV, MaxiMinDA, SpanMap
from widemargin.places import device_states

N = 600


def _data(n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    return X, np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [0.0, 0.7][: n_classes - 1])


def _machine(**others):
    given = {"engine": "span", "max_vectors": 40, "C": 10.0, "random_state": 0, "n_jobs": 1}
    return MarginClassifier(**given | others)


@pytest.fixture
def named(device, monkeypatch):
    """The name of a device, which stands for one of each library."""
    monkeypatch.setattr(device_states, "named_device", lambda name: device)
    return "cuda"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("memory", ["auto", 400_000])
def test_shards_on_one_device_give_the_answer_of_one(device, named, n_classes, memory):
    X, y = _data(n_classes)
    machine = _machine(tol=1e-6, memory=memory)
    whole = clone(machine).fit(device.array(X), y)
    here = clone(machine).fit(X, y)
    for chunks in (N, N // 2, 170):
        parts = da.from_array(X, chunks=(chunks, 4)), da.from_array(y, chunks=chunks)
        found = clone(machine).set_params(device=named).fit(*parts)
        assert isinstance(found.dual_coef_, np.ndarray)
        assert_array_equal(np.sort(found.support_), np.sort(whole.support_))
        found.set_params(device=None)
        expected = here.decision_function(X)
        assert_allclose(found.decision_function(X), expected, atol=2e-3)
        assert found.certificate_.gap <= 1e-5


def test_a_state_that_changes_leaves_the_one_before(device, named):
    from widemargin.kernels import RBF
    from widemargin.places.loading import Loaded, ShardPlan

    X, y = _data()
    plan = ShardPlan(
        RBF(0.5), np.array([0, 1]), np.array([[-1.0], [1.0]]), np.ones(2), 1.0, 0,
        np.dtype(np.float64), 10**8, 20, 10**8, 1, device=named,
    )  # fmt: skip
    first = device_states.device_shard_of(Loaded(X, y, np.ones(N)), plan)
    first.add(X[:20])
    beta = np.random.default_rng(1).normal(size=(21, 1))
    first.score(beta, 0, N)
    before, order = first.scores_in_order(), first.order.copy()
    second = first.fork()
    code = first.problem.code[np.argsort(first.order)]
    margin = (2 * code - 1) * before[:, 0]
    second.bring_near(float(np.quantile(margin, 0.2)))
    second.score(2.0 * beta, 0, N)
    assert (second.order != order).any()
    assert_array_equal(first.order, order)
    assert_array_equal(first.scores_in_order(), before)
    assert_allclose(second.scores_in_order(), 2.0 * before, atol=1e-9)
    first.score(3.0 * beta, 0, N)
    assert_allclose(first.scores_in_order(), 3.0 * before, atol=1e-9)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.xdist_group("cluster")
@pytest.mark.usefixtures("device")
def test_workers_have_shards_on_their_devices(named):
    distributed = pytest.importorskip("distributed")
    X, y = _data()
    here = _machine(tol=1e-6).fit(X, y)
    parts = da.from_array(X, chunks=(200, 4)), da.from_array(y, chunks=200)
    ways = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **ways) as cluster,
        distributed.Client(cluster),
    ):
        found = _machine(tol=1e-6, device=named, memory="200MB").fit(*parts)
    found.set_params(device=None)
    assert_array_equal(np.sort(found.support_), np.sort(here.support_))
    assert_allclose(found.decision_function(X), here.decision_function(X), atol=2e-3)


@pytest.mark.parametrize(
    ("estimator", "named_in_error"),
    [
        (_machine(engine="cells", max_vectors="auto", device="cuda"), "engine='cells'"),
        (_machine(engine="auto", max_vectors="auto", device="cuda"), "engine='auto'"),
        (_machine(kernel=np.dot, device="cuda"), "kernel='callable'"),
        (MarginClassifierCV(device="cuda"), "device='cuda'"),
        (SpanMap(5, device="cuda"), "device='cuda'"),
        (MaxiMinDA(1, device="cuda"), "device='cuda'"),
    ],
)
def test_what_is_not_there_says_so(estimator, named_in_error):
    X, y = _data()
    parts = da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)
    with pytest.raises(ValueError, match=rf"{named_in_error}.*(device='cpu'|X\.compute\(\))"):
        estimator.fit(*parts)
