"""What any method must do: one pass over the kernel values; and the plainest method of all."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from benchmarks.gpu.fit import (
    answers,
    as_numpy,
    described_device,
    device_name,
    made,
    seconds_of,
    there,
)
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, mean_distance_gamma


def one_pass(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """Seconds of a fit, of a pass over kernel values that are computed, and of its product alone.

    The product is the floor: ``flops`` of it in a second are the share of the card's peak.
    """
    import torch

    from widemargin.device import DeviceKernel, named_device
    from widemargin.kernels import make_kernel

    (n, d), t = spec["made"], spec["params"]["vectors"]
    X, y = made(spec["set_name"], (n, d))
    device, Z = named_device(device_name()), as_numpy(X[:t])
    kernel = DeviceKernel.about(make_kernel("rbf", gamma=0.5 / d), device, Z, np.float32)
    rows, vectors = kernel.rows(X), kernel.vectors(Z)
    step = max(1, (1 << 26) // t)
    column = torch.ones((t, 1), device=device_name())

    def product() -> None:
        for begin in range(0, n, step):
            torch.matmul(rows[begin : begin + step], vectors.mT)

    def values() -> None:
        for begin in range(0, n, step):
            part = kernel.values(rows[begin : begin + step], vectors)
            torch.matmul(part.mT, torch.matmul(part, column))

    found: Found = {"device": described_device(), "n_train": n}
    for name, work in (("product_seconds", product), ("pass_seconds", values)):
        work()
        found[name] = statistics.median(seconds_of(work)[0] for _ in range(spec["repeats"]))
    found["flops"] = 2.0 * n * t * vectors.shape[1] / found["product_seconds"]
    params = {"engine": "span", "max_vectors": t, "gamma": 0.5 / d, "random_state": 0}
    machine = build(spec["estimator"], params, None, spec["threads"])
    machine.fit(X, y)
    found["fit_seconds"] = statistics.median(
        seconds_of(lambda: machine.fit(X, y))[0] for _ in range(spec["repeats"])
    )
    keep(found)
    return found


class Ridge:
    """Kernel ridge regression of the labels on the first rows, by one Cholesky factor."""

    def __init__(self, vectors: int, C: float, gamma: float) -> None:
        self.vectors, self.C, self.gamma = vectors, C, gamma

    def _kernel(self, X: Any) -> Any:
        import torch

        return torch.exp(-self.gamma * torch.cdist(X, self.Z) ** 2)

    def fit(self, X: Any, y: Any) -> Ridge:
        import torch

        self.Z, codes = X[: self.vectors], y[: self.vectors]
        targets = 2.0 * torch.nn.functional.one_hot(codes, int(y.max()) + 1).float() - 1.0
        eye = torch.eye(len(self.Z), device=X.device)
        factor = torch.linalg.cholesky(self._kernel(self.Z) + eye / (2.0 * self.C))
        self.coef = torch.cholesky_solve(targets, factor)
        return self

    def predict(self, X: Any) -> Any:
        return (self._kernel(X) @ self.coef).argmax(dim=1)


def naive(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The line that anybody writes first."""
    X = np.asarray(data.X_train, dtype=np.float32)
    gamma = spec["params"]["gamma"]
    factor = gamma["mean_distance"] if isinstance(gamma, dict) else 1.0
    classes, code = np.unique(data.y_train, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(X))
    rows, labels = there(X[order]), there(code[order].astype(np.int64))
    width = factor * mean_distance_gamma(X)
    machine = Ridge(spec["params"]["vectors"], spec["params"]["C"], width).fit(rows, labels)
    taken = [seconds_of(lambda: machine.fit(rows, labels))[0] for _ in range(spec["repeats"])]
    found = {
        "device": described_device(),
        "fit_seconds": statistics.median(taken),
        "n_train": len(X),
        "n_vectors": spec["params"]["vectors"],
        "warmup_seconds": None,
        "certificate": None,
    }
    keep(found)
    test = there(np.asarray(data.X_test, dtype=np.float32))
    return found | answers(machine, test, np.searchsorted(classes, data.y_test))
