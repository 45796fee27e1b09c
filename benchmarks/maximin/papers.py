"""Figures printed in the Maxi-Min paper, for the cell beside ours.

Tables 1 and 2 of Xu, Huang and Liu, "Maxi-Min discriminant analysis via online learning" (Neural
Networks 2012): accuracies in percent, the best of 1, 3, 5, 7 and 9 neighbours.
"""

from __future__ import annotations

MMDA = "MMDA"
ONLINE = "MMDAOnline"
LDA = "LDA"
LPP = "LPP"
APAC = "aPAC"
LFDA = "LFDA"
PCA = "PCA"

UCI = ("tae", "wine", "balance", "satimage", "optdigits")

# Mean and deviation; the sets with a test part have no deviation.
Cell = tuple[float, float | None]


def _cells(*values: tuple[float, float] | float) -> dict[str, Cell]:
    cells = ((value, None) if isinstance(value, float) else value for value in values)
    return dict(zip(UCI, cells, strict=True))


TABLE_1: dict[str, dict[str, Cell]] = {
    MMDA: _cells((96.6, 1.6), (96.4, 1.5), (98.3, 0.6), 87.1, 96.0),
    ONLINE: _cells((97.5, 0.2), (96.7, 0.9), (98.5, 0.4), 87.9, 96.5),
    LDA: _cells((96.5, 1.6), (92.9, 1.9), (97.7, 0.8), 88.4, 95.7),
    LPP: _cells((96.4, 1.8), (87.3, 2.6), (97.8, 0.5), 88.3, 95.4),
    APAC: _cells((96.6, 1.8), (95.6, 1.7), (97.8, 0.6), 88.5, 95.0),
    LFDA: _cells((96.1, 1.9), (95.8, 1.0), (98.3, 0.7), 87.5, 95.8),
    PCA: _cells((96.4, 1.8), (77.9, 3.2), (72.1, 4.4), 88.9, 95.3),
}

DIMENSIONS = (9, 8, 7, 6, 5, 4, 3)


def _line(*values: float) -> dict[int, float]:
    return dict(zip(DIMENSIONS, values, strict=True))


TABLE_2: dict[str, dict[int, float]] = {
    ONLINE: _line(89.8, 89.6, 89.5, 87.5, 86.4, 83.6, 73.5),
    LDA: _line(89.7, 89.0, 88.3, 87.2, 84.1, 78.3, 63.9),
    LPP: _line(89.4, 88.9, 88.2, 87.0, 84.5, 78.7, 64.2),
    LFDA: _line(89.2, 88.7, 86.8, 85.4, 84.0, 78.4, 66.6),
    APAC: _line(89.7, 88.3, 88.3, 88.2, 86.3, 82.2, 72.9),
    PCA: _line(88.2, 87.4, 86.0, 82.1, 78.6, 75.6, 61.6),
}


def uci(method: str, dataset: str) -> Cell | None:
    """Mean and deviation of Table 1."""
    return TABLE_1.get(method, {}).get(dataset)


def usps(method: str, n_dimensions: int) -> float | None:
    """Accuracy of Table 2."""
    return TABLE_2.get(method, {}).get(n_dimensions)
