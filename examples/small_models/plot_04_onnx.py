"""
The same answer from ONNX
=========================

`export.onnx` writes any model of this library as a graph that other languages can run. Here
onnxruntime answers beside the model itself.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

from widemargin import MarginClassifier, SpanMap, export

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
models = {
    "exact": MarginClassifier(10).fit(X, y),
    "span": MarginClassifier(10, engine="span", max_vectors=200, random_state=0).fit(X, y),
    "cells": MarginClassifier(10, engine="cells", cells=300, random_state=0).fit(X, y),
    "SpanMap(100)": SpanMap(100, random_state=0).fit(X),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.7))
for place, (name, model) in enumerate(models.items()):
    graph = export.onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    ours = model.transform if hasattr(model, "transform") else model.decision_function
    begun = perf_counter()
    theirs = session.run(None, {"X": X})[-1]
    middle = perf_counter()
    difference = np.abs(theirs - ours(X)).ravel()
    ended = perf_counter()
    bins = np.geomspace(1e-10, 1e-5, 40)
    left.hist(
        np.clip(difference, 1e-10, 1e-5), bins=bins, histtype="step", label=name, density=False
    )
    times = 1e6 * np.array([middle - begun, ended - middle]) / len(X)
    right.bar(place - 0.2, times[0], 0.4, color="C0", label="onnxruntime" if not place else None)
    right.bar(place + 0.2, times[1], 0.4, color="C1", label="widemargin" if not place else None)
    print(f"{name}: {len(graph) / 1000:.0f} kB, largest difference {difference.max():.1e}")
left.set(xscale="log", xlabel="difference of decision values", ylabel="values")
left.legend()
right.set(xticks=range(len(models)), xticklabels=list(models), ylabel="µs a row, once")
right.legend()
plt.show()
