"""The relevance vector machine that the SLMC paper compares with: a plain reference.

Tipping, "Sparse Bayesian learning and the relevance vector machine" (JMLR 2001), section 3, for the
model and Laplace's approximation; Tipping and Faul, "Fast marginal likelihood maximisation for
sparse Bayesian models" (AISTATS 2003), for the order of the steps. With t in {0, 1} and

    p(t = 1 | x) = σ(Σ_m w_m k(x_m, x) + b),    w_m normal with precision α_m,

the α are those that make t most likely: α_m = ∞, and no vector, for nearly all m. One α changes in
a step, the one that promises most, so that there are never many vectors. The bias has a flat prior
and no α of its own to learn. Laplace's approximation moves with α, and a step may promise what does
not come true: a step that lowers the evidence is taken back.

With ``C``, coefficients and bias are those of the SVM on the vectors that were found, (45) of the
SLMC paper, which suggests it in its conclusions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

FLAT = 1e-6  # precision of the bias
LEAST_GAIN = 1e-3  # of a step, in logarithms of the evidence
MOST_STEPS = 3000
NEWTON_STEPS = 50
NEWTON_TOL = 1e-8
# Eigenvalues of K_z below this share of the largest are none.
RANK_TOL = 1e-10


@dataclass(frozen=True)
class State:
    """The model for given α: columns in it, their α, weights (the bias last), and the rest."""

    active: tuple[int, ...]
    alpha: np.ndarray
    weight: np.ndarray
    features: np.ndarray
    curvature: np.ndarray  # σ(1 − σ) of each row
    residual: np.ndarray  # t − σ
    root: np.ndarray  # lower triangular, of the Hessian
    evidence: float


def laplace(
    K: np.ndarray, t: np.ndarray, active: tuple[int, ...], alpha: np.ndarray, start: np.ndarray
) -> State:
    """The mode of the weights by Newton's method, and the evidence there."""
    features = np.column_stack([K[:, list(active)], np.ones(len(t))])
    prior = np.append(alpha, FLAT)

    def height(weight: np.ndarray) -> float:
        score = features @ weight
        return float(t @ score - np.logaddexp(0.0, score).sum() - 0.5 * prior @ weight**2)

    weight, value = start, height(start)
    for _ in range(NEWTON_STEPS):
        mean = expit(features @ weight)
        hessian = (features.T * (mean * (1.0 - mean))) @ features + np.diag(prior)
        slope = features.T @ (t - mean) - prior * weight
        step = cho_solve((cholesky(hessian, lower=True), True), slope)
        size = 1.0
        while (new := height(weight + size * step)) < value and size > NEWTON_TOL:
            size /= 2.0
        if new - value <= NEWTON_TOL:
            break
        weight, value = weight + size * step, new
    mean = expit(features @ weight)
    curvature = mean * (1.0 - mean)
    root = cholesky((features.T * curvature) @ features + np.diag(prior), lower=True)
    evidence = value + 0.5 * np.log(prior).sum() - np.log(np.diag(root)).sum()
    return State(active, alpha, weight, features, curvature, t - mean, root, float(evidence))


def gains(state: State, K: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the best α of every column would add to the evidence, and these α (∞: not in it)."""
    weighted = state.features.T * state.curvature
    spread = squares @ state.curvature
    spread -= (solve_triangular(state.root, weighted @ K, lower=True) ** 2).sum(axis=0)
    S, Q = np.maximum(spread, 1e-300), K @ state.residual
    inside, alpha = list(state.active), state.alpha
    s, q = S.copy(), Q.copy()
    # An active column must not explain itself; S < α holds but for rounding.
    without = alpha / np.maximum(alpha - S[inside], 1e-12 * alpha)
    s[inside], q[inside] = S[inside] * without, Q[inside] * without
    wanted = q**2 > s
    best = np.full(len(S), np.inf)
    best[wanted] = s[wanted] ** 2 / (q[wanted] ** 2 - s[wanted])
    gain = np.full(len(S), -np.inf)
    gain[wanted] = (q**2 / s - 1.0 - np.log(q**2 / s))[wanted]
    for m, old in zip(inside, alpha, strict=True):
        change = 1.0 / best[m] - 1.0 / old  # 1/∞ = 0: the column leaves
        tiny = abs(change) * old < 1e-12
        gain[m] = 0.0 if tiny else Q[m] ** 2 / (S[m] + 1.0 / change) - np.log1p(S[m] * change)
    return 0.5 * gain, best


def changed(state: State, m: int, alpha: float) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Columns, their α, and weights to start from, when column m has another α."""
    values = dict(zip(state.active, zip(state.alpha, state.weight, strict=False), strict=True))
    weight = values.pop(m, (0.0, 0.0))[1]
    if np.isfinite(alpha):
        values[m] = (alpha, weight)
    kept = np.array([*values.values()]).reshape(-1, 2)
    return tuple(values), kept[:, 0], np.append(kept[:, 1], state.weight[-1])


def relevant(K: np.ndarray, squares: np.ndarray, t: np.ndarray) -> tuple[State, list[float]]:
    """The model of most evidence that steps of one α reach, and the evidence after each."""
    start = np.array([np.log(t.mean() / (1.0 - t.mean()))])
    state = laplace(K, t, (), np.empty(0), start)
    history = [state.evidence]
    for _ in range(MOST_STEPS):
        gain, best = gains(state, K, squares)
        for m in np.argsort(-gain):
            if not gain[m] > LEAST_GAIN:
                return state, history
            new = laplace(K, t, *changed(state, int(m), best[m]))
            if new.evidence > state.evidence:
                break
        else:
            return state, history
        state = new
        history.append(state.evidence)
    return state, history


class RelevanceVectorMachine(ClassifierMixin, BaseEstimator):
    """Relevance vectors of each class against the rest (of one class, if there are two).

    Parameters
    ----------
    gamma : float
        Of the Gaussian kernel.
    C : float, default=None
        Fit coefficients and bias again, as those of the SVM on the vectors.
    """

    def __init__(self, gamma: float = 1.0, C: float | None = None) -> None:
        self.gamma = gamma
        self.C = C

    def fit(self, X: Any, y: np.ndarray) -> RelevanceVectorMachine:
        self.classes_ = np.unique(y)
        K = rbf_kernel(X, gamma=self.gamma)
        squares = K**2
        told = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.parts_, self.histories_ = [], []
        for label in told:
            state, history = relevant(K, squares, (y == label).astype(float))
            weight = state.weight
            if self.C is not None and state.active:
                weight = margin_weights(K, state.active, y == label, self.C)
            self.parts_.append((X[list(state.active)], weight[:-1], weight[-1]))
            self.histories_.append(history)
        self.n_problem_vectors_ = [len(part[0]) for part in self.parts_]
        self.n_vectors_ = sum(self.n_problem_vectors_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, a column each problem."""
        return np.column_stack(
            [
                rbf_kernel(X, vectors, gamma=self.gamma) @ weight + bias
                if len(vectors)
                else np.full(len(X), bias)
                for vectors, weight, bias in self.parts_
            ]
        )

    def predict(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]


def margin_weights(
    K: np.ndarray, active: tuple[int, ...], positive: np.ndarray, C: float
) -> np.ndarray:
    """(45): the SVM in the span of some columns; its coefficients, and the bias behind them."""
    inside = list(active)
    values, vectors = eigh(K[np.ix_(inside, inside)])
    kept = values > RANK_TOL * values[-1]
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    machine = SVC(kernel="linear", C=C).fit(K[:, inside] @ whiten, positive)
    return np.append(whiten @ machine.coef_[0], machine.intercept_)
