"""What tests of several benchmarks share: records as a run leaves them, and a trial certificate."""

from __future__ import annotations

import dataclasses
import json

import numpy as np

from benchmarks.harness.child import plain

SVC = "sklearn.svm.SVC"


def finished(**fields):
    record = {"label": "BVM gap", "dataset": "letter", "status": "ok", "message": ""}
    record |= {"accuracy": 95.0, "fit_seconds": 2.0, "predict_seconds": 1.0, "n_vectors": 1234}
    record |= {"peak_mb": 10.0, "data_mb": 1.0, "warmup_seconds": 0.5, "point": {}}
    return record | {"certificate": {"gap": 1e-3}} | fields


@dataclasses.dataclass(frozen=True)
class TrialCertificate:
    gap: float = np.inf
    n_vectors: int = 7


def failing(measurement, *_):
    """Stands for `runner.measure`: every measurement fails."""
    return dataclasses.asdict(measurement) | {"status": "failed", "message": "no", "threads": 2}


def as_read(found):
    """What a task found, as it is read back from its file."""
    return json.loads(json.dumps(plain(found), allow_nan=False))
