"""Models in files: every estimator comes back with the same bits, and a file runs nothing."""

import importlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import widemargin
from tests.reference.data import wine
from tests.reference.public_estimators import NAMES, answers, fitted
from widemargin import MarginClassifier, ReducedSetClassifier
from widemargin.kernels import Laplacian
from widemargin.model_files import trusted_types
from widemargin.span.landmarks import KMeansVectors


def _again(model, folder):
    widemargin.save(model, folder / "model.skops")
    return widemargin.load(folder / "model.skops")


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_comes_back_with_the_same_bits(name, tmp_path):
    X, _ = wine()
    model = fitted(name)
    again = _again(model, tmp_path)
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    assert set(vars(again)) == set(vars(model))
    expected = answers(model, X)
    assert expected
    for asked, found in answers(again, X).items():
        assert_array_equal(found, expected[asked], err_msg=asked)
    if hasattr(model, "certificate_"):
        assert again.certificate_ == model.certificate_


@pytest.mark.parametrize("name", NAMES)
def test_an_estimator_that_is_not_fitted_comes_back_as_it_is(name, tmp_path):
    model = getattr(widemargin, name)()
    assert repr(_again(model, tmp_path)) == repr(model)


MODELS = {
    "sparse rows": lambda X, y: MarginClassifier().fit(sparse.csr_array(X), y),
    "texts": lambda X, y: MarginClassifier().fit(X, np.array(["ä", "b", "c"])[y]),
    "a pipeline": lambda X, y: make_pipeline(StandardScaler(), MarginClassifier()).fit(X, y),
    "a kernel object": lambda X, y: MarginClassifier(kernel=Laplacian(0.1)).fit(X, y),
    "a strategy": lambda X, y: MarginClassifier(
        engine="span", vectors=KMeansVectors(), max_vectors=20
    ).fit(X, y),
    "cells": lambda X, y: MarginClassifier(engine="cells", cells=60).fit(X, y),
    "a reduced set of SVC": lambda X, y: ReducedSetClassifier(SVC(), 3).fit(X, y),
    "a seed that is a state": lambda X, y: MarginClassifier(
        random_state=np.random.RandomState(3)
    ).fit(X, y),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_of_all_kinds_come_back(kind, tmp_path):
    X, y = wine()
    model = MODELS[kind](X, y)
    again = _again(model, tmp_path)
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_list_has_every_public_estimator_and_only_classes_that_exist():
    listed = trusted_types()
    assert len(listed) == len(set(listed))
    for name in NAMES:
        found = getattr(widemargin, name)
        assert f"{found.__module__}.{found.__qualname__}" in listed
    for each in listed:
        module, _, name = each.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), name), type), each


def test_no_class_on_the_list_has_code_that_runs_when_it_is_made():
    own = [each for each in trusted_types() if each.startswith("widemargin.")]
    for each in own:
        module, _, name = each.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        for method in ("__reduce__", "__reduce_ex__", "__setstate__", "__new__"):
            where = next(c for c in (*found.__mro__, type) if method in vars(c) or c is type)
            assert not where.__module__.startswith("widemargin."), (each, method)


def _own_kernel(X, Z):
    return X @ Z.T


def test_a_model_with_a_function_is_not_written(tmp_path):
    X, y = wine()
    model = MarginClassifier(kernel=_own_kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"_own_kernel.*kernel by its name"):
        widemargin.save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


class _Trap:
    def __reduce__(self):
        return os.mkdir, ("trapped",)


def test_a_file_with_a_trap_is_refused_and_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skops.io.dump({"model": print, "other": os.path.join}, "functions.skops")
    Path("pickle.skops").write_bytes(pickle.dumps(_Trap()))
    for name in ("functions.skops", "pickle.skops"):
        with pytest.raises(ValueError, match=r"not on the list|not a model file"):
            widemargin.load(name)
    assert not Path("trapped").exists()


def test_a_file_that_asks_for_another_class_is_refused(tmp_path):
    X, y = wine()
    path = tmp_path / "model.skops"
    widemargin.save(MarginClassifier().fit(X, y), path)
    changed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                schema = json.loads(data)
                schema["__class__"], schema["__module__"] = "Popen", "subprocess"
                data = json.dumps(schema).encode()
            new.writestr(name, data)
    path.write_bytes(changed.getvalue())
    with pytest.raises(ValueError, match=r"subprocess\.Popen, which are not on the list"):
        widemargin.load(path)


def test_files_that_are_no_models_are_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        widemargin.load(tmp_path / "nothing.skops")
    empty = tmp_path / "empty.skops"
    empty.write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        widemargin.load(empty)
    X, y = wine()
    cut = tmp_path / "cut.skops"
    widemargin.save(MarginClassifier().fit(X, y), cut)
    cut.write_bytes(cut.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a model file"):
        widemargin.load(cut)


def test_an_old_file_stays_if_the_new_one_cannot_be_written(tmp_path, monkeypatch):
    X, y = wine()
    path = tmp_path / "model.skops"
    widemargin.save(MarginClassifier().fit(X, y), path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        widemargin.save(MarginClassifier(C=9).fit(X, y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_search_on_a_table_with_categories_comes_back(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "kind": pd.Categorical(["a", "b"] * 40)})
    y = (frame["x"] > 0).to_numpy().astype(int)
    model = widemargin.MarginClassifierCV(Cs=2, gammas=2, cv=2, random_state=0).fit(frame, y)
    again = _again(model, tmp_path)
    assert_array_equal(again.decision_function(frame), model.decision_function(frame))
