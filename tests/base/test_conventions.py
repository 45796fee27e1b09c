"""scikit-learn's conventions beyond its checks: routing, outputs as tables, links."""

import inspect

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from tests.reference.data import wine
from tests.reference.public_estimators import NAMES, PROJECTIONS, answers, fitted, made


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_routed_to_every_estimator(name):
    X, y = wine()
    weight = 1.0 + np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        asking = made(name).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = make_pipeline(scaler, asking).fit(X, y, sample_weight=weight)
        rows = model[0].transform(X)
    expected = made(name).fit(rows, y, sample_weight=weight)
    for asked, found in answers(model[-1], rows).items():
        assert_array_equal(found, answers(expected, rows)[asked], err_msg=asked)


@pytest.mark.parametrize("name", ["MarginClassifier", "MarginRegressor", "CoreVectorClassifier"])
def test_weights_that_nobody_asked_for_are_refused_in_a_search(name):
    X, y = wine()
    weight = np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(made(name), {"C": [1.0, 10.0]}, cv=2)
        with pytest.raises(Exception, match="sample_weight"):
            search.fit(X, y, sample_weight=weight)
        asking = made(name).set_fit_request(sample_weight=True)
        asking = asking.set_score_request(sample_weight=True)
        found = GridSearchCV(asking, {"C": [1.0, 10.0]}, cv=2).fit(X, y, sample_weight=weight)
    expected = GridSearchCV(made(name), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_routed_weights_reach_every_fold():
    X, y = wine()
    weight = np.where(y == 0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = made("MarginClassifier").set_fit_request(sample_weight=True)
        found = cross_val_predict(asking, X, y, params={"sample_weight": weight}, cv=3)
    assert 0 not in found  # a class without weight is not there


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections_give_tables_with_named_columns(name, library):
    frames = pytest.importorskip(library)
    X, y = wine()
    model = made(name).set_output(transform=library)
    found = model.fit(X, y).transform(X[:9])
    assert isinstance(found, frames.DataFrame)
    assert list(found.columns) == list(model.get_feature_names_out())
    assert all(column.startswith(name.lower()) for column in found.columns)
    assert_array_equal(found.to_numpy(), fitted(name).transform(X[:9]))
    both = made(name).set_output(transform=library).fit_transform(X, y)
    assert isinstance(both, frames.DataFrame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_projections_take_tables_and_stand_among_other_columns(library):
    frames = pytest.importorskip(library)
    X, y = wine()
    table = frames.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])})
    parts = make_column_transformer(
        (made("MaxiMinDA"), ["c0", "c1", "c2", "c3"]), (StandardScaler(), ["c4"])
    )
    found = parts.set_output(transform=library).fit(table, y).transform(table)
    assert list(found.columns)[-1] == "standardscaler__c4"
    assert found.shape == (len(y), parts.transform(table).shape[1])
    if library == "pandas":
        assert_array_equal(found.index, table.index)


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_of_an_estimator_links_to_its_page(name):
    estimator = made(name)
    link = estimator._get_doc_link()
    assert link.endswith(f"/generated/widemargin.{name}.html")
    assert link in estimator._repr_html_()


def test_the_classes_of_users_have_no_link_of_ours():
    class Own(widemargin.MarginClassifier):
        pass

    assert Own()._get_doc_link() == ""


@pytest.mark.parametrize("name", NAMES)
def test_every_fit_takes_weights(name):
    assert "sample_weight" in inspect.signature(getattr(widemargin, name).fit).parameters
