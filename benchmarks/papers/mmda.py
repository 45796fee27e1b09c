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
    Picture(
        "Figure 3",
        "mmda_folds.png",
        "on several of four sets a few features reach very good rates; sometimes more features do "
        "worse",
        "yes: with one to three features the network is as good as on all columns or better on all "
        "four sets, and K-MMDA loses 4 points on bupa and pima from the first feature to the "
        "second; the sequence goes on to 13 features (`early_end=False`) and gains nothing",
    ),
    Picture(
        "Figure 4",
        "mmda_multiclass.png",
        "K-MMDA is competitive on DNA and optdigits; on satimage every extractor is worse than "
        "none",
        "yes on optdigits, and on DNA with raw columns (93.8 % of none's 94.4 with the network; "
        "with standardised columns, whose signs a fourth power does not see, it is poor); on "
        "satimage with the network only",
    ),
)
