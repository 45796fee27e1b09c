"""Rows like those of a particle detector: two processes that end in the same particles.

Both leave one lepton, a neutrino that shows as missing momentum only, and four jets, two of them of
b quarks. In the background (label −1) two top quarks of one mass each decay to a W boson and a
b quark. In the signal (+1) a heavy particle decays to a W boson and a lighter one, that to another
W boson and a third, and that to two b quarks. All decays are two-body decays, even in every
direction; a detector blurs what comes out.

A row has 21 columns of what is measured (momenta with heavy tails, angles, noisy tags) and 7
invariant masses that are functions of them. No classifier can be right in all rows: the same jets
come from either process.

Rows come in blocks of `BLOCK_ROWS`, each with a seed of its own, so that row i is the same whatever
the number of rows is; test rows have seeds that no training row has.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Block = tuple[NDArray[np.float32], NDArray[np.int8]]

SEED = 28
BLOCK_ROWS = 50_000
# The second word of a seed.
TRAIN, TEST, SCALE = 0, 1, 2
JETS = ("jet 1", "jet 2", "jet 3", "jet 4")
MEASURED = (
    *("lepton momentum", "lepton pseudorapidity", "lepton angle"),
    *("missing momentum", "missing angle"),
    *(f"{jet} {what}" for jet in JETS for what in ("momentum", "pseudorapidity", "angle", "tag")),
)
DERIVED = ("m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb")
COLUMNS = (*MEASURED, *DERIVED)

# Masses, in GeV.
W, TOP, HEAVY, CHARGED, LIGHT = 80.4, 173.0, 425.0, 325.0, 125.0
WIDTH = 0.025
# How much of a jet's energy E the detector gets wrong: this share of it over √E, and this share.
JET_NOISE, JET_SHARE = 1.1, 0.08
LEPTON_NOISE = 0.02
# Momentum that no particle accounts for, in GeV.
UNSEEN = 12.0
TAGS_OF_B = (0.3, 0.3, 0.4)
TAGS_OF_LIGHT = (0.8, 0.13, 0.07)


# ---------------------------------------------------------------- decays


def resonance(rng: np.random.Generator, mass: float, rows: int) -> Floats:
    """Masses around one, with the wide tails of a short life."""
    return mass * (1.0 + WIDTH * np.clip(rng.standard_cauchy(rows), -6.0, 6.0))


def produced(rng: np.random.Generator, mass: Floats, recoil: float) -> Floats:
    """Particles of these masses as they leave a collision: energy and momentum, a row each."""
    across = rng.exponential(recoil, len(mass))
    angle = rng.uniform(-np.pi, np.pi, len(mass))
    rapidity = rng.normal(0.0, 0.9, len(mass))
    energy = np.hypot(mass, across)
    columns = (
        energy * np.cosh(rapidity),
        across * np.cos(angle),
        across * np.sin(angle),
        energy * np.sinh(rapidity),
    )
    return np.stack(columns, axis=1)


def mass_of(particle: Floats) -> Floats:
    squares = particle[:, 0] ** 2 - np.einsum("ij,ij->i", particle[:, 1:], particle[:, 1:])
    return np.sqrt(np.maximum(squares, 0.0))


def decay(
    rng: np.random.Generator, parent: Floats, first: Floats | float, second: Floats | float
) -> tuple[Floats, Floats]:
    """Two particles of these masses, back to back in a random direction where the parent rests."""
    mass = mass_of(parent)
    product = (mass**2 - (first + second) ** 2) * (mass**2 - (first - second) ** 2)
    momentum = np.sqrt(np.maximum(product, 0.0)) / (2.0 * mass)
    up = rng.uniform(-1.0, 1.0, len(mass))
    angle = rng.uniform(-np.pi, np.pi, len(mass))
    flat = np.sqrt(1.0 - up**2)
    direction = np.stack((flat * np.cos(angle), flat * np.sin(angle), up), axis=1)
    resting = np.column_stack((np.hypot(momentum, first), momentum[:, None] * direction))
    one = boosted(resting, parent, mass)
    return one, parent - one


def boosted(particle: Floats, parent: Floats, mass: Floats) -> Floats:
    """A particle as seen where the parent has its momentum, from where the parent rests."""
    along = np.einsum("ij,ij->i", particle[:, 1:], parent[:, 1:])
    energy = (particle[:, 0] * parent[:, 0] + along) / mass
    share = (along / (parent[:, 0] + mass) + particle[:, 0]) / mass
    return np.column_stack((energy, particle[:, 1:] + share[:, None] * parent[:, 1:]))


def background(rng: np.random.Generator, rows: int) -> tuple[Floats, ...]:
    """Lepton, neutrino, two light jets, two b jets of two top quarks."""
    tops = [resonance(rng, TOP, rows) for _ in range(2)]
    system = produced(rng, tops[0] + tops[1] + rng.exponential(110.0, rows), 45.0)
    one, two = decay(rng, system, *tops)
    w_one, b_one = decay(rng, one, resonance(rng, W, rows), 4.0)
    w_two, b_two = decay(rng, two, resonance(rng, W, rows), 4.0)
    return (*decay(rng, w_one, 0.0, 0.0), *decay(rng, w_two, 0.0, 0.0), b_one, b_two)


def signal(rng: np.random.Generator, rows: int) -> tuple[Floats, ...]:
    """The same of a heavy particle, through a charged one and a light one."""
    heavy = produced(rng, resonance(rng, HEAVY, rows), 60.0)
    w_one, charged = decay(rng, heavy, resonance(rng, W, rows), resonance(rng, CHARGED, rows))
    w_two, light = decay(rng, charged, resonance(rng, W, rows), resonance(rng, LIGHT, rows))
    # Either W boson may be the one that leaves the lepton.
    swap = rng.random(rows) < 0.5
    w_one[swap], w_two[swap] = w_two[swap], w_one[swap]
    leptons, jets = decay(rng, w_one, 0.0, 0.0), decay(rng, w_two, 0.0, 0.0)
    return (*leptons, *jets, *decay(rng, light, 4.0, 4.0))


# ---------------------------------------------------------------- the detector


def seen(particle: Floats) -> tuple[Floats, Floats, Floats]:
    """Momentum across the beam, pseudorapidity and angle."""
    across = np.maximum(np.hypot(particle[:, 1], particle[:, 2]), 1e-3)
    steep = np.clip(particle[:, 3] / across, -1e3, 1e3)
    return across, np.arcsinh(steep), np.arctan2(particle[:, 2], particle[:, 1])


def massless(across: Floats, steepness: Floats, angle: Floats) -> Floats:
    """What the detector takes for energy and momentum."""
    columns = (
        across * np.cosh(steepness),
        across * np.cos(angle),
        across * np.sin(angle),
        across * np.sinh(steepness),
    )
    return np.stack(columns, axis=-1)


def measured(rng: np.random.Generator, particles: tuple[Floats, ...]) -> Floats:
    """The 21 columns that a detector gives; jets with the largest momentum first."""
    lepton, neutrino, *jets = particles
    rows = len(lepton)
    blurred, tags = [], []
    for jet, chances in zip(jets, [TAGS_OF_LIGHT] * 2 + [TAGS_OF_B] * 2, strict=True):
        share = JET_NOISE / np.sqrt(np.maximum(jet[:, 0], 1.0)) + JET_SHARE
        factor = np.maximum(1.0 + share * rng.standard_normal(rows), 0.1)
        blurred.append(factor[:, None] * jet)
        tags.append(rng.choice(3, rows, p=chances))
    lepton = np.maximum(1.0 + LEPTON_NOISE * rng.standard_normal(rows), 0.1)[:, None] * lepton
    # What the jets are taken for too much is missing, and the other way round.
    missing = neutrino[:, 1:3] + sum(
        (true - jet)[:, 1:3] for true, jet in zip(jets, blurred, strict=True)
    )
    missing = missing + UNSEEN * rng.standard_normal((rows, 2))
    across = np.hypot(missing[:, 0], missing[:, 1])
    columns = np.array([(*seen(jet), tag) for jet, tag in zip(blurred, tags, strict=True)])
    order = np.argsort(-columns[:, 0], axis=0)
    columns = np.take_along_axis(columns, order[:, None, :], axis=0)
    towards = np.arctan2(missing[:, 1], missing[:, 0])
    return np.column_stack((*seen(lepton), across, towards, columns.reshape(16, rows).T))


def derived(columns: Floats) -> Floats:
    """The 7 invariant masses, from the measured columns alone."""
    lepton = massless(*columns[:, :3].T)
    # How steep the neutrino was nobody knows; the lepton's direction is the best guess.
    neutrino = massless(columns[:, 3], columns[:, 1], columns[:, 4])
    jets = columns[:, 5:].reshape(-1, 4, 4)
    order = np.argsort(-jets[:, :, 3], axis=1, kind="stable")
    four = massless(jets[:, :, 0], jets[:, :, 1], jets[:, :, 2])
    four = np.take_along_axis(four, order[:, :, None], axis=1)
    b_one, b_two, one, two = (four[:, place] for place in range(4))
    pair, leptons, both = one + two, lepton + neutrino, b_one + b_two
    sums = (pair, pair + b_two, leptons, leptons + b_one, both, pair + both, pair + both + leptons)
    return np.stack([mass_of(each) for each in sums], axis=1)


# ---------------------------------------------------------------- rows


def raw_block(part: int, number: int) -> tuple[Floats, NDArray[np.int8]]:
    """A block in GeV and radians."""
    rng = np.random.default_rng([SEED, part, number])
    y = np.where(rng.random(BLOCK_ROWS) < 0.5, 1, -1).astype(np.int8)
    columns = np.empty((BLOCK_ROWS, len(MEASURED)))
    for label, process in ((-1, background), (1, signal)):
        mine = y == label
        columns[mine] = measured(rng, process(rng, int(mine.sum())))
    return np.column_stack((columns, derived(columns))), y


@cache
def scale() -> tuple[Floats, Floats]:
    """Mean and deviation of each column, in a block of its own."""
    X, _ = raw_block(SCALE, 0)
    return X.mean(axis=0), X.std(axis=0)


def block(part: int, number: int) -> Block:
    """The rows of a block, of mean about zero and deviation about one, and their labels."""
    X, y = raw_block(part, number)
    mean, deviation = scale()
    return ((X - mean) / deviation).astype(np.float32), y


def blocks(part: int, rows: int) -> Iterator[Block]:
    """So many rows, block after block; the last may be cut."""
    for first in range(0, rows, BLOCK_ROWS):
        X, y = block(part, first // BLOCK_ROWS)
        yield X[: rows - first], y[: rows - first]
