"""Figures printed in the MMDA-CVM paper, for the cell beside ours.

Tables II to V of Tsang, Kocsor and Kwok (IEEE Transactions on Neural Networks 2008; MATLAB, AMD
Athlon 4400+), for the five of its seven sets that are to be had: its usps (266,079 rows) and face
are not. "letter" is its "letters". None is a dash in the paper: not finished within 24 hours. The
MMDA paper (Kocsor, Kovács and Szepesvári, ECML 2004) prints pictures only.
"""

from __future__ import annotations

# What differs from how the papers did it, and how what they do not say was found.
PROTOCOL = (
    "Scaling, MMDA-CVM: it does not say that columns are scaled. With zero mean and unit variance "
    "(of the training rows) 1-NN on the columns has its figures to the digit on four sets: 96.38, "
    "89.35, 97.43 and 95.20 %; raw it has 98.00, 89.45, 97.74 and 95.65. So columns are "
    "standardised.",
    "Kernel width, MMDA-CVM: it says γ = 1/β. On standardised columns LIBSVM has its 89.60 on "
    "satimage at 2/β (89.55) and not at 1/β (87.95), and KernelPCA with 1-NN its 94.94 on "
    "optdigits at 2/β (94.99) and not at 1/β (95.83), as the BVM paper's figures are those of "
    "2/β. On optdigits, pendigits and letter no one width has its SVM figures: 96.66, 96.74 and "
    "90.95, for ours at 2/β 96.77, 97.91 and 94.30. So γ is 2/β, also of the SVM on the features, "
    "whose width the paper does not say. Raw columns at 1/β are a second block.",
    "MMDA(SVM) is run with the hinge, free bias and C = 1 of the MMDA paper; the MMDA-CVM paper "
    "does not say with which loss it ran the original.",
    "MMDA(CVM): our core sets, which sample 944 rows and solve the ball of a core set exactly, "
    "where the paper samples 59 and relaxes; its own way is the line *as printed*.",
    "KFD: the paper does not say its ridge. With 0.001 of the total variance in the feature space "
    "1-NN has 96.38 % on optdigits, with next to none 97.9, which is the paper's 97.94; so it is "
    "0.000001. KPCA and KFD have 3,500 rows with classes of one size on letter and MNIST, as in "
    "the paper. Its figures on MNIST are those of chance, ours are not.",
    "C4.5: our own program (gain ratio, penalty on thresholds, errors expected at 25 %, branches "
    "raised). With two rows a branch, its default, it has 339, 413, 305 and 2,129 nodes on the "
    "columns of the first four sets, with ten 137, 111, 167 and 769, where the paper prints 143, "
    "109, 161 and 777; so it is ten.",
    "The network is `MLPClassifier` (tanh, Adam) with ten hidden units, the mean of three starts.",
    "MNIST has 784 columns here and 780 there; the usps and face sets of the paper are not to be "
    "had. Times are compared as ratios to KernelPCA.",
    "MMDA, Figure 3: UCI's bupa has 345 rows of 6 columns, where the paper's table says 699 of 7; "
    "699 is the number of rows of Wisconsin's breast cancer set. Its kernel there is not said; "
    "ours is Gaussian with 1/β.",
    "MMDA, Figure 4: the steps of its network and the number of principal components are not "
    "said; dna has 180 columns, its table says 181.",
)

SETS = ("optdigits", "satimage", "pendigits", "letter", "mnist")
CLASSES = {"optdigits": 10, "satimage": 6, "pendigits": 10, "letter": 26, "mnist": 10}
# Directions a problem: N_c, 3N_c and 5N_c features.
DIRECTIONS = (1, 3, 5)
CLASSIFIERS = ("SVM", "1-NN", "ANN")

# The paper's name of a method, then its figures a set.
CVM = "MMDA(CVM)"
SVM = "MMDA(SVM)"
KFD = "KFD"
KPCA = "KPCA"
NONE = "no feature extraction"

Row = tuple[float | None, ...]
Cells = dict[str, float | None]


def _cells(values: Row) -> Cells:
    return dict(zip(SETS, values, strict=True))


def _by_directions(rows: tuple[Row, ...]) -> dict[int, Cells]:
    return {k: _cells(row) for k, row in zip(DIRECTIONS, rows, strict=True)}


def _by_classifier(rows: tuple[Row, ...]) -> dict[str, Cells]:
    return {name: _cells(row) for name, row in zip(CLASSIFIERS, rows, strict=True)}


# Table II: method, classifier, directions (0: the method has one number of features), set.
ACCURACY: dict[str, dict[str, dict[int, Cells]]] = {
    CVM: {
        "SVM": _by_directions(
            (
                (97.16, 89.75, 97.71, 94.85, 94.54),
                (97.10, 89.50, 97.74, 94.60, 95.73),
                (97.05, 89.30, 97.79, 94.35, 95.92),
            )
        ),
        "1-NN": _by_directions(
            (
                (97.44, 88.65, 97.74, 96.78, 93.42),
                (96.44, 89.00, 97.71, 96.53, 94.70),
                (95.94, 89.50, 97.68, 96.28, 95.18),
            )
        ),
        "ANN": _by_directions(
            (
                (96.27, 89.75, 97.22, 80.97, 92.99),
                (97.77, 89.30, 97.85, 82.45, 93.28),
                (97.36, 89.95, 98.08, 82.67, 93.34),
            )
        ),
    },
    SVM: {
        "SVM": _by_directions(
            (
                (96.93, 89.45, 97.82, 92.85, None),
                (96.93, 88.55, 97.85, 93.95, None),
                (96.93, 89.65, 97.91, 94.02, None),
            )
        ),
        "1-NN": _by_directions(
            (
                (97.16, 87.25, 97.66, 96.55, None),
                (95.66, 88.95, 97.91, 96.05, None),
                (95.38, 89.90, 98.03, 95.42, None),
            )
        ),
        "ANN": _by_directions(
            (
                (95.65, 88.95, 97.19, 80.20, None),
                (97.09, 89.65, 97.80, 82.02, None),
                (96.48, 88.70, 97.74, 82.65, None),
            )
        ),
    },
}
_ONE_NUMBER_OF_FEATURES = {
    KFD: (
        (97.77, 89.10, 98.05, 91.25, 11.35),
        (97.94, 85.85, 98.03, 91.42, 11.35),
        (97.82, 88.75, 97.68, 85.20, 10.28),
    ),
    KPCA: (
        (93.65, 84.05, 92.13, 67.92, 10.28),
        (94.94, 87.95, 97.37, 88.45, 9.58),
        (93.65, 87.70, 96.05, 76.90, 10.28),
    ),
    NONE: (
        (96.66, 89.60, 96.74, 90.95, 95.12),
        (96.38, 89.35, 97.43, 95.20, 94.34),
        (94.37, 87.40, 95.19, 70.95, 90.39),
    ),
}
ACCURACY |= {
    method: {name: {0: cells} for name, cells in _by_classifier(rows).items()}
    for method, rows in _ONE_NUMBER_OF_FEATURES.items()
}

# Table III: seconds of the extraction.
SECONDS: dict[str, dict[int, Cells]] = {
    CVM: _by_directions(
        ((41, 23, 20, 92, 1610), (181, 78, 95, 301, 4928), (332, 136, 174, 512, 8179))
    ),
    SVM: _by_directions(
        ((84, 121, 127, 1911, None), (476, 421, 570, 9646, None), (1495, 900, 1674, 20860, None))
    ),
    KFD: {0: _cells((282, 246, 298, 298, 312))},
    KPCA: {0: _cells((150, 130, 137, 147, 226))},
}

# Table IV: kernel evaluations a feature.
EVALUATIONS: dict[str, dict[int, Cells]] = {
    CVM: _by_directions(
        ((279, 308, 292, 351, 434), (359, 334, 349, 357, 434), (367, 342, 353, 360, 427))
    ),
    SVM: _by_directions(
        (
            (303, 548, 293, 870, None),
            (841, 1056, 1149, 1772, None),
            (1278, 1553, 1875, 2420, None),
        )
    ),
    KFD: {0: _cells((3823, 4435, 7494, 3500, 3500))},
    KPCA: {0: _cells((3823, 4435, 7494, 3500, 3500))},
}

# Table V: accuracy of C4.5 at 5N_c features (KFD: N_c − 1), and the size of its tree. Nearly all
# sizes are odd, so it counts all nodes of a binary tree and not its leaves.
TREES: dict[str, tuple[Cells, Cells]] = {
    CVM: (_cells((95.40, 87.80, 97.10, 90.30, 93.30)), _cells((19, 79, 19, 285, 619))),
    SVM: (_cells((94.90, 87.90, 97.20, 85.30, None)), _cells((19, 119, 19, 449, None))),
    KFD: (_cells((94.40, 88.60, 95.90, 79.30, 10.30)), _cells((19, 43, 21, 109, 23))),
    KPCA: (_cells((81.40, 87.10, 89.30, 58.90, 10.10)), _cells((117, 113, 75, 323, 197))),
    NONE: (_cells((82.80, 86.30, 89.70, 81.00, 36.20)), _cells((143, 109, 161, 777, 1631))),
}


def accuracy(method: str, classifier: str, directions: int, dataset: str) -> float | None:
    return ACCURACY.get(method, {}).get(classifier, {}).get(directions, {}).get(dataset)


def seconds(method: str, directions: int, dataset: str) -> float | None:
    return SECONDS.get(method, {}).get(directions, {}).get(dataset)


def evaluations(method: str, directions: int, dataset: str) -> float | None:
    return EVALUATIONS.get(method, {}).get(directions, {}).get(dataset)


def tree(method: str, dataset: str) -> tuple[float | None, float | None]:
    accuracies, sizes = TREES.get(method, ({}, {}))
    return accuracies.get(dataset), sizes.get(dataset)
