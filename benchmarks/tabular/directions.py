"""A picture of learned directions: leading eigenvectors of the metric of digits, as images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import widemargin as wm
from benchmarks.harness.pictures import panels, saved

N_DIRECTIONS = 6
SIDE = 8


def digits_directions(path: Path) -> Path:
    """Weights of the pixels, and the directions that count most, beside those of MaxMarginDA."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    metric = wm.MarginMetric(N_DIRECTIONS, C=10.0, scale=None, random_state=0).fit(X, y)
    margins = wm.MaxMarginDA(1, kernel="linear", random_state=0).fit(X, y)
    shown = {
        "MarginMetric": [metric.feature_importances_, *metric.components_],
        "MaxMarginDA": [np.abs(margins.components_).mean(axis=0), *margins.components_],
    }
    figure, axes = panels(2, N_DIRECTIONS + 1, (1.4 * (N_DIRECTIONS + 1), 3.4))
    for line, (name, images) in zip(axes, shown.items(), strict=True):
        for k, ax in enumerate(line):
            image = images[k].reshape(SIDE, SIDE)
            most = float(np.abs(image).max())
            least, colours = (0.0, "Greys") if k == 0 else (-most, "RdBu")
            ax.imshow(image, vmin=least, vmax=most, cmap=colours)
            ax.set(xticks=[], yticks=[], title="pixels" if k == 0 else str(k))
        line[0].set_ylabel(name)
    return saved(figure, path)
