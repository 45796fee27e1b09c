"""Graphs of nearest neighbours, and what they make of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from widemargin.arrays import Codes, IndexArray, Matrix, Vector
from widemargin.rows import Distinct
from widemargin.scatter.class_scatter import VisitFeatures
from widemargin.scatter.neighbours import FeatureRows, nearest_rows
from widemargin.threads import ordered_map


@dataclass(frozen=True)
class Edges:
    """Pairs of neighbours, each once.

    Attributes
    ----------
    first, second : ndarray of int
        The rows that they join, first < second.
    squares : ndarray
        Their squared lengths.
    """

    first: IndexArray
    second: IndexArray
    squares: Vector


def joined_neighbours(
    distinct: Distinct, features: VisitFeatures, origin: Vector, unit: float, n_neighbors: int
) -> Edges:
    """Return the pairs of rows of one class of which one is near the other.

    Parameters
    ----------
    distinct : Distinct
        The rows and their classes.
    features : callable
        Turns a block of rows into features.
    origin : ndarray of shape (n_features,)
        A point among the rows.
    unit : float
        What lengths are divided by.
    n_neighbors : int
        How many neighbours each row chooses.

    Returns
    -------
    Edges
        In an order of their own.
    """
    n = len(distinct.index)
    firsts, seconds, squares = [], [], []
    for index in by_class(distinct.code):
        points = FeatureRows(distinct.rows, index, features, origin, unit)
        near = nearest_rows(points, n_neighbors)
        row = np.repeat(index, near.index.shape[1])
        other = index[near.index.ravel()]
        firsts.append(np.minimum(row, other))
        seconds.append(np.maximum(row, other))
        squares.append(near.squares.ravel())
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    _, once = np.unique(first * n + second, return_index=True)
    return Edges(first[once], second[once], np.concatenate(squares)[once])


def by_class(code: Codes, n_classes: int = 0) -> list[IndexArray]:
    """Return the rows of each class, of `n_classes` at the least."""
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=n_classes))
    return np.split(order, ends[:-1])


@dataclass(frozen=True)
class GraphMoments:
    """What the eigenproblem needs of rows and graph; everything divided by the sum of W.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the rows with the weights D.
    smoothness : ndarray of shape (n_features, n_features)
        Xᵀ L X.
    covariance : ndarray of shape (n_features, n_features)
        Xᵀ D X about that mean.
    """

    mean: Vector
    smoothness: Matrix
    covariance: Matrix


def graph_moments(points: FeatureRows, graph: Any) -> GraphMoments:
    """Return the moments of rows on a graph; the same bits for any number of threads.

    Parameters
    ----------
    points : FeatureRows
        The rows.
    graph : sparse array of shape (n, n)
        W, symmetric.

    Returns
    -------
    GraphMoments
        Accumulated block by block.
    """
    d, total = points.width, float(graph.sum())
    share = graph.sum(axis=1) / total
    mean, smoothness, covariance = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    for where in points.slices:
        mean += share[where] @ points.at(where)
    for part in ordered_map(_GraphPart(points, graph, mean), points.slices, points.threads):
        smoothness += part[0] / total
        covariance += part[1] / total
    return GraphMoments(mean, smoothness, covariance)


@dataclass(frozen=True)
class _GraphPart:
    """Sums of x (L x)ᵀ and D x xᵀ over a slice of the rows, about a mean."""

    points: FeatureRows
    graph: Any
    mean: Vector

    def __call__(self, where: slice) -> tuple[Matrix, Matrix]:
        X = self.points.at(where) - self.mean
        W = self.graph[where]
        others, place = np.unique(W.indices, return_inverse=True)
        W = sparse.csr_array((W.data, place, W.indptr), shape=(len(X), len(others)))
        weighted = W.sum(axis=1)[:, None] * X
        away = weighted - W @ (self.points.at(others) - self.mean)
        return X.T @ away, X.T @ weighted
