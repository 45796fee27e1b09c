"""MMDA (Kocsor, Kovács and Szepesvári 2004): it prints pictures only."""

from __future__ import annotations

from benchmarks.papers.cell import Picture

PICTURES: tuple[Picture, ...] = ()
