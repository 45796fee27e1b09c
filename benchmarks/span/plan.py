"""What the parts of the span benchmark share: how ours is set up and warmed up."""

from __future__ import annotations

from typing import Any

OURS = "widemargin.MarginClassifier"
MEAN_DISTANCE = {"mean_distance": 1.0}
# Fits of few rows use float64, and would leave the loops for float32 to be compiled in the timed
# fit: so many kernel values it takes.
WARMUP_VALUES = 4_500_000


def ours(**params: Any) -> dict[str, Any]:
    return {"engine": "span", "gamma": MEAN_DISTANCE, "random_state": 0, **params}


def warmup_rows(n_vectors: int) -> int:
    return WARMUP_VALUES // n_vectors
