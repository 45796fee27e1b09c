"""Support vector classifiers."""

from widemargin.svm.ball_vector import BallVectorClassifier
from widemargin.svm.core_vector import CoreVectorClassifier
from widemargin.svm.margin_classifier import MarginClassifier
from widemargin.svm.margin_classifier_cv import MarginClassifierCV

__all__ = ["BallVectorClassifier", "CoreVectorClassifier", "MarginClassifier", "MarginClassifierCV"]
