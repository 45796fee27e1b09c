"""Pictures of features and of vectors, with Matplotlib.

Matplotlib is optional (``pip install 'widemargin[plot]'``) and imported when a picture is drawn.
Every function takes the ``ax`` to draw into and returns it, so that pictures can be put together,
titled and saved with Matplotlib's own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["classes", "importances", "projection", "vectors"]

# Ten colours that stay apart for most kinds of colour vision (M. A. Petroff, 2021), and ten shapes
# for those where they do not, and for print in grey.
_COLORS = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
_MARKERS = ("o", "^", "s", "X", "D", "v", "P", "*", "<", ">")
# Entries of a legend before it takes another column.
_LEGEND_ROWS = 10


def projection(
    X: ArrayLike,
    y: ArrayLike,
    *,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
    features: tuple[int, int] = (0, 1),
    size: float = 24.0,
    legend: bool = True,
) -> Axes:
    """Draw two features as a scatter plot, with a colour and a shape for each class.

    As Figure 2 of Kocsor, Kovács and Szepesvári (MMDA) and Figure 1 of Tsang, Kocsor and Kwok
    (MMDA-CVM) show what a transformation makes of the classes.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features, two or more, such as a transformer returns.
    y : array-like of shape (n_samples,)
        Class labels: numbers or strings.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure.
    names : sequence of str, default=None
        A name for each feature of X, for the axes. None takes the columns of a data frame, or
        else counts from 1.
    features : (int, int), default=(0, 1)
        The columns to draw, from left to right and from bottom to top.
    size : float, default=24.0
        Area of a marker, in square points.
    legend : bool, default=True
        Whether to draw one.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into. Each class is one collection, labelled with its name.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    ValueError
        If X has fewer than two features, or X, y, `names` and `features` do not agree.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> ax = projection(X, y, ax=Figure().subplots(), features=(0, 9))
    >>> ax.get_ylabel()
    'feature 10'
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2']
    """
    labels = _names(X, names)
    values = _values(X)
    code, classes = _classes(y, len(values))
    across, up = _columns(features, values.shape[1])
    if labels is None:
        labels = [f"feature {j + 1}" for j in range(values.shape[1])]
    elif len(labels) != values.shape[1]:
        raise ValueError(
            f"names has {len(labels)} entries and X {values.shape[1]} features; give a name for "
            "each feature of X."
        )
    ax = _axes(ax)
    for k, name in enumerate(classes):
        inside = code == k
        ax.scatter(values[inside, across], values[inside, up], s=size, label=str(name), **_style(k))
    ax.set_xlabel(labels[across])
    ax.set_ylabel(labels[up])
    if legend:
        ax.legend(ncols=-(-len(classes) // _LEGEND_ROWS))
    return ax


def vectors(
    estimator: Any,
    shape: tuple[int, int],
    *,
    ax: Axes | None = None,
    columns: int | None = None,
    cmap: str = "gray_r",
) -> Axes:
    """Draw the expansion vectors of a machine as images, side by side.

    As Figure 1 of Wu, Schölkopf and Bakır (SLMC) shows the twelve vectors that tell 3 from 8.

    Parameters
    ----------
    estimator : estimator or array-like of shape (n_vectors, n_features)
        A fitted machine with `expansion_vectors_`, or vectors.
    shape : (int, int)
        Rows and columns of pixels; their product is the number of features.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure.
    columns : int, default=None
        Images side by side; None makes about as many rows as columns.
    cmap : str, default="gray_r"
        Matplotlib's name of the colours, the same range for all images.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into: one image that holds them all.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    ValueError
        If the vectors do not have as many features as the images have pixels.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> ax = vectors(X[:6], (8, 8), ax=Figure().subplots(), columns=3)
    >>> ax.images[0].get_array().shape
    (17, 26)
    """
    found = getattr(estimator, "expansion_vectors_", estimator)
    values: NDArray[np.float64] = check_array(found, dtype=np.float64)
    height, width = (index(size) for size in shape)
    if height * width != values.shape[1]:
        raise ValueError(
            f"shape={shape!r} has {height * width} pixels, but the vectors have "
            f"{values.shape[1]} features; give rows and columns of the images."
        )
    across = columns or int(np.ceil(np.sqrt(len(values))))
    down = -(-len(values) // across)
    # A pixel between the images is left blank.
    sheet = np.full((down * (height + 1) - 1, across * (width + 1) - 1), np.nan)
    for k, vector in enumerate(values):
        top, left = (k // across) * (height + 1), (k % across) * (width + 1)
        sheet[top : top + height, left : left + width] = vector.reshape(height, width)
    ax = _axes(ax)
    ax.imshow(sheet, cmap=cmap)
    ax.set_axis_off()
    return ax


def classes(
    estimator: Any,
    *,
    ax: Axes | None = None,
    features: tuple[int, int] = (0, 1),
    n_pairs: int = 10,
    names: bool = True,
) -> Axes:
    """Draw the class means of a projection, with the closest pairs of classes joined.

    Distances are those in all features of the projection, of which the picture shows two: pairs
    that look close may be apart in another feature, but pairs that are joined are close.

    Parameters
    ----------
    estimator : MaxiMinDA
        A fitted transformer with `class_means_` and `closest_pairs`.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure.
    features : (int, int), default=(0, 1)
        The features to draw, from left to right and from bottom to top.
    n_pairs : int, default=10
        Pairs to join, at the most; the closer, the darker.
    names : bool, default=True
        Whether to write the labels beside the means.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    ValueError
        If the projection has fewer than two features, or has no class means.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import MaxiMinDA
    >>> projection = MaxiMinDA(3, sharpness=1.0, random_state=0).fit(*load_digits(return_X_y=True))
    >>> ax = classes(projection, ax=Figure().subplots(), n_pairs=5)
    >>> len(ax.lines), len(ax.texts)
    (5, 10)
    """
    if not hasattr(estimator, "class_means_") or not hasattr(estimator, "closest_pairs"):
        raise ValueError(
            f"{type(estimator).__name__} has no class means to draw; give a fitted MaxiMinDA."
        )
    # Classes without rows have no mean.
    there = np.isfinite(estimator.class_means_).all(axis=1)
    means, labels = estimator.class_means_[there], estimator.classes_[there]
    if means.shape[1] < 2:
        raise ValueError("The projection has 1 feature, and a picture needs two; fit two or more.")
    across, up = _columns(features, means.shape[1])
    pairs = estimator.closest_pairs(n_pairs)
    ax = _axes(ax)
    place = {label: k for k, label in enumerate(labels.tolist())}
    nearest = pairs["distance"][0]
    for first, second, distance in zip(
        pairs["first"].tolist(), pairs["second"].tolist(), pairs["distance"], strict=True
    ):
        ends = means[[place[first], place[second]]]
        # The closest is black; at four times its distance a line is a shadow.
        shade = 1.0 if distance <= 0 else max(0.1, float(np.sqrt(nearest / distance)) ** 2)
        ax.plot(ends[:, across], ends[:, up], color="black", alpha=shade, linewidth=1.0, zorder=1)
    ax.scatter(means[:, across], means[:, up], s=24.0, color=_COLORS[0], zorder=2)
    if names:
        for label, mean in zip(labels, means, strict=True):
            ax.annotate(
                str(label),
                (mean[across], mean[up]),
                xytext=(3, 3),
                textcoords="offset points",
            )
    ax.set_xlabel(f"feature {across + 1}")
    ax.set_ylabel(f"feature {up + 1}")
    return ax


def importances(
    metric: Any,
    *,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
    most: int = 20,
) -> Axes:
    """Draw how much features matter to a metric as bars, the largest on top.

    Parameters
    ----------
    metric : MarginMetric, or array-like of shape (n_features,)
        A fitted metric, or its `feature_importances_`.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure.
    names : sequence of str, default=None
        A name for each feature. None takes those of the data frame that the metric was fitted to,
        or else counts from 1.
    most : int, default=20
        Bars at the most.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Examples
    --------
    >>> from widemargin import plot
    >>> ax = plot.importances([0.1, 0.7, 0.2], names=["age", "height", "weight"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['height', 'weight', 'age']
    """
    values = np.asarray(getattr(metric, "feature_importances_", metric), dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"importances are of shape {values.shape}; give a fitted MarginMetric, or one number "
            "for each feature."
        )
    if names is None:
        names = getattr(metric, "feature_names_in_", None)
    if names is not None and len(names) != len(values):
        raise ValueError(f"names has {len(names)} entries for {len(values)} features.")
    shown = np.argsort(-values, kind="stable")[:most]
    labels = [f"feature {k + 1}" if names is None else str(names[k]) for k in shown.tolist()]
    ax = _axes(ax)
    ax.barh(np.arange(len(shown)), values[shown], color=_COLORS[0])
    ax.set_yticks(np.arange(len(shown)), labels)
    ax.invert_yaxis()
    ax.set_xlabel("share of the metric")
    return ax


def _axes(ax: Axes | None) -> Axes:
    """Return the axes to draw into, in a figure of their own if None."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "pictures need Matplotlib, which is not installed: pip install 'widemargin[plot]'"
        ) from error
    new: Axes = pyplot.subplots(layout="constrained")[1]
    return new


def _style(k: int) -> dict[str, Any]:
    """Return colour and shape of class k; the first hundred differ in at least one of them."""
    row, column = divmod(k, len(_COLORS))
    return {
        "color": _COLORS[column],
        "marker": _MARKERS[(column + row) % len(_MARKERS)],
        # A thin edge keeps markers apart where they lie on one another.
        "edgecolors": "white",
        "linewidths": 0.4,
    }


def _names(X: Any, names: Sequence[str] | None) -> list[str] | None:
    """Return the names that were given, or those of a data frame, or None."""
    found = getattr(X, "columns", None) if names is None else names
    return None if found is None else [str(name) for name in found]


def _values(X: ArrayLike) -> NDArray[np.float64]:
    """Return X as numbers, two columns at the least, or raise."""
    n_features = np.shape(X)[1] if np.ndim(X) == 2 else 1
    if n_features < 2:
        raise ValueError(
            f"X has {n_features} feature, and a projection needs two: extract two features or "
            "more, or draw this one with Axes.hist, class by class."
        )
    values: NDArray[np.float64] = check_array(X, dtype=np.float64)
    return values


def _classes(y: ArrayLike, n: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the class of each row as a number, and the classes in order, or raise."""
    label = np.asarray(y)
    if label.shape != (n,):
        raise ValueError(f"y has the shape {label.shape}; give ({n},), a label for each row of X.")
    classes, code = np.unique(label, return_inverse=True)
    return code, classes


def _columns(features: tuple[int, int], n_features: int) -> tuple[int, int]:
    """Return the two columns to draw, or raise."""
    chosen = [index(feature) for feature in features]
    if len(chosen) != 2 or not all(-n_features <= j < n_features for j in chosen):
        raise ValueError(
            f"features={features!r} must be two columns of X, which has {n_features}: numbers "
            f"from 0 to {n_features - 1}."
        )
    return chosen[0] % n_features, chosen[1] % n_features
