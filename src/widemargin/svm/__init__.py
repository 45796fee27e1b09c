"""Support vector classifiers."""

from widemargin.svm.ball_vector import BallVectorClassifier
from widemargin.svm.core_vector import CoreVectorClassifier

__all__ = ["BallVectorClassifier", "CoreVectorClassifier"]
