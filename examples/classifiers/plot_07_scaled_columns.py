"""
Scale the columns first
=======================

The most common mistake with kernels. Distances add up columns in their own units: one in
millimetres drowns one in metres. The wine set has a column near a thousand.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from widemargin import MarginClassifier

X, y = load_wine(return_X_y=True)
names = load_wine().feature_names
ways = {
    "as it is": MarginClassifier(10),
    "RobustScaler": make_pipeline(RobustScaler(), MarginClassifier(10)),
    "MinMaxScaler": make_pipeline(MinMaxScaler(), MarginClassifier(10)),
    "StandardScaler": make_pipeline(StandardScaler(), MarginClassifier(10)),
}
scores = {name: cross_val_score(model, X, y, cv=10) for name, model in ways.items()}

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
share = X.var(axis=0) / X.var(axis=0).sum()
left.barh(names, np.maximum(share, 1e-7), color="C5")
left.set(xscale="log", xlabel="share of the squared distances, columns as they are")
right.boxplot(list(scores.values()), orientation="horizontal", tick_labels=list(scores))
right.set(xlabel="accuracy, ten folds")
plt.show()
