"""Figure 1 of the BVM paper: one move of the centre, from a run of Algorithm 2 in the plane."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.harness.pictures import panels, saved

CLAIM = (
    "Paper: the centre moves along the line to a point outside, until the ball touches it; "
    "the angle at the new centre towards c* is obtuse, so that each move brings it nearer to c*."
)
EPSILON = 0.001


def moved(center: np.ndarray, point: np.ndarray, radius: float) -> np.ndarray:
    """The centre after the smallest move with which the ball touches the point, (5) and (6)."""
    beta = radius / np.linalg.norm(center - point)
    return point + beta * (center - point)


def smallest_ball(points: np.ndarray, steps: int = 20_000) -> tuple[np.ndarray, float]:
    """The smallest ball by the steps of Bădoiu and Clarkson: 1/(i + 1) of the way each."""
    center = points[0].copy()
    for i in range(1, steps):
        distance = np.linalg.norm(points - center, axis=1)
        center += (points[distance.argmax()] - center) / (i + 1)
    return center, float(np.linalg.norm(points - center, axis=1).max())


def centers(
    points: np.ndarray, first: int, radius: float, epsilon: float = EPSILON
) -> list[np.ndarray]:
    """All centres of Algorithm 2 with the furthest point; the last ball holds all points."""
    found = [points[first].copy()]
    while True:
        distance = np.linalg.norm(points - found[-1], axis=1)
        if distance.max() <= (1.0 + epsilon) * radius:
            return found
        found.append(moved(found[-1], points[distance.argmax()], radius))


def one_move_figure(path: Path) -> Path:
    """The first move, its angle, and how the distance from c* falls over all of them."""
    points = np.random.default_rng(1).normal(size=(40, 2))
    best, radius = smallest_ball(points)
    found = centers(points, 0, radius)
    old, new = found[0], found[1]
    far = points[np.linalg.norm(points - old, axis=1).argmax()]
    cosine = (best - new) @ (old - new) / np.linalg.norm(best - new) / np.linalg.norm(old - new)
    figure, axes = panels(1, 2, (11, 5.6))
    plane, fall = axes[0]
    plane.scatter(*points.T, s=12, color="0.5")
    angle = np.linspace(0, 2 * np.pi, 200)
    for center, style, name in (
        (old, ":", "$c_t$"),
        (new, "-", "$c_{t+1}$"),
        (best, "--", "$c^*$"),
    ):
        ring = center[:, None] + radius * np.array([np.cos(angle), np.sin(angle)])
        plane.plot(*ring, style, linewidth=1)
        plane.plot(*center, "o", markersize=5)
        plane.annotate(name, center, xytext=(5, 5), textcoords="offset points")
    plane.plot(*np.array([old, far]).T, color="black", linewidth=1)
    plane.annotate("$z_t$", far, xytext=(5, 5), textcoords="offset points")
    degrees = np.degrees(np.arccos(cosine))
    plane.set(aspect="equal", title=f"first move: angle {degrees:.0f}° at the new centre")
    distance = [float(np.linalg.norm(center - best)) for center in found]
    fall.plot(distance, marker="o", markersize=3)
    fall.set(
        xlabel="move", ylabel="distance from c*", title=f"{len(found) - 1} moves to ε = {EPSILON}"
    )
    fall.grid(alpha=0.3)
    figure.suptitle(f"Figure 1. {CLAIM}", fontsize="small", wrap=True)
    return saved(figure, path, dpi=110)
