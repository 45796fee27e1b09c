"""MMDA (Kocsor, Kovács and Szepesvári 2004): it prints pictures only."""

from __future__ import annotations

from benchmarks.papers.cell import Picture

PICTURES: tuple[Picture, ...] = (
    Picture(
        "Figure 1",
        "mmda_far.png",
        "rows of two classes are separable, but not when projected onto PCA's or LDA's direction; "
        "along MMDA's they are",
        "yes: along PCA's direction 93 % are separated, along LDA's 50 %, along MMDA's all, with "
        "the whole margin of the plane",
    ),
    Picture(
        "Figure 2",
        "mmda_wine.png",
        "wine is separable in two features of LDA and of MMDA, not of PCA; the margin is larger "
        "with MMDA",
        "yes, like with like: in an orthonormal basis of the plane of projection the margins of "
        "the three pairs of classes are 0.94, 1.57 and 0.50 with MMDA, 0.62, 1.50 and 0.48 with "
        "LDA. In units of the features' deviation the smallest is 0.172 against LDA's 0.221, "
        "because LDA scales its features by the variance within classes and the two directions "
        "of MMDA, of two problems, are at 129 degrees",
    ),
)
