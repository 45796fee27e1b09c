"""The contract of scikit-learn, for every estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import BallVectorClassifier, CoreVectorClassifier

ESTIMATORS = [
    CoreVectorClassifier(),
    CoreVectorClassifier(growth="one"),
    CoreVectorClassifier(kernel="linear", stopping="ball", epsilon=1e-4),
    BallVectorClassifier(),
    BallVectorClassifier(kernel="laplacian", stopping="ball", epsilon=1e-3),
]


@parametrize_with_checks(ESTIMATORS)
def test_the_estimator_meets_scikit_learns_contract(estimator, check):
    check(estimator)
