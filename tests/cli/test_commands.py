"""Commands do with files what the library does with arrays."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_digits
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import widemargin
from tests.reference.html_pages import Page
from widemargin import MarginClassifier, MarginRegressor


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def _by_hand(wine):
    """The model that `widemargin fit wine.csv --target label` should be."""
    numbers = [name for name in wine if name not in ("label", "region")]
    return make_pipeline(
        make_column_transformer(
            (
                make_pipeline(
                    SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
                ),
                numbers,
            ),
            (
                make_pipeline(
                    SimpleImputer(strategy="constant", fill_value="(missing)"),
                    OneHotEncoder(sparse_output=False),
                ),
                ["region"],
            ),
        ),
        MarginClassifier(random_state=0),
    ).fit(_objects(wine), wine["label"])


def _objects(wine):
    wine = wine.copy()
    wine["region"] = wine["region"].astype(object).where(wine["region"].notna(), np.nan)
    return wine


def test_the_model_of_a_table_is_the_pipeline_one_would_write(wine, wine_folder):
    model = widemargin.load(wine_folder / "wine.skops")
    expected = _by_hand(wine)
    rows = _objects(wine)
    assert_allclose(model.decision_function(rows), expected.decision_function(rows), atol=1e-8)


def test_what_is_done_to_columns_is_said(command, wine_folder):
    code, printed, said = command(
        "fit", wine_folder / "wine.csv", "--target", "label", "--out", "m.skops"
    )
    assert code == 0
    for text in (
        "Task: classes, because the target 'label' has texts",
        "178 rows; 13 columns of numbers (centred and scaled), 1 of categories",
        "Missing values: ash (7), region (9). Numbers become the median",
    ):
        assert text in said
    assert "Certificate: gap" in printed
    assert "these flatter" in printed


def test_parquet_and_csv_give_the_same_model(command, wine, wine_folder):
    code, *_ = command("fit", wine_folder / "wine.parquet", "--target", "label", "--out", "m.skops")
    assert code == 0
    rows = _objects(wine)
    a, b = widemargin.load("m.skops"), widemargin.load(wine_folder / "wine.skops")
    assert_allclose(a.decision_function(rows), b.decision_function(rows), atol=1e-8)


def test_predictions_are_those_of_the_model(command, wine, wine_folder):
    model = widemargin.load(wine_folder / "wine.skops")
    for out in ("p.csv", "p.parquet", "p.tsv"):
        words = ("predict", wine_folder / "wine.skops", wine_folder / "wine.csv", "--out", out)
        assert command(*words, "--scores")[0] == 0
    tables = [pd.read_csv("p.csv"), pd.read_parquet("p.parquet"), pd.read_csv("p.tsv", sep="\t")]
    for table in tables:
        assert_array_equal(table["prediction"], model.predict(_objects(wine)))
        assert_allclose(table.iloc[:, 1:], model.decision_function(_objects(wine)))
        assert list(table.columns[1:]) == [f"score {name}" for name in model.classes_]


def test_predictions_are_printed_where_no_file_is_named(command, wine_folder):
    code, printed, _ = command("predict", wine_folder / "wine.skops", wine_folder / "wine.csv")
    assert code == 0
    assert printed.splitlines()[0] == "prediction"
    assert len(printed.splitlines()) == 179


def test_the_order_of_columns_does_not_matter_and_others_are_not_used(command, wine, wine_folder):
    wine[wine.columns[::-1]].assign(colour="red").to_csv("other.csv", index=False)
    code, printed, said = command("predict", wine_folder / "wine.skops", "other.csv")
    assert code == 0
    assert "does not know are not used: colour" in said
    expected = command("predict", wine_folder / "wine.skops", wine_folder / "wine.csv")[1]
    assert printed == expected


def test_a_category_that_was_never_seen_is_not_an_error(command, wine, wine_folder):
    wine.assign(region="mars").to_csv("other.csv", index=False)
    assert command("predict", wine_folder / "wine.skops", "other.csv")[0] == 0


def test_numbers_as_categories_stay_what_they_are(command):
    frame = pd.DataFrame({"zip": ["01", "02"] * 30, "x": np.arange(60.0), "y": [0.5, 1.7] * 30})
    frame.to_csv("data.csv", index=False)
    code, *_ = command(
        "fit", "data.csv", "--target", "y", "--categories", "zip", "--out", "m.skops"
    )
    assert code == 0
    found = widemargin.load("m.skops").about_
    assert found["categories"] == ["zip"]
    assert "zip_01" in found["features"]


def test_evaluation_counts_what_is_right(command, wine, wine_folder):
    code, printed, _ = command(
        "evaluate", wine_folder / "wine.skops", wine_folder / "wine.csv", "--json"
    )
    facts = json.loads(printed)
    found = widemargin.load(wine_folder / "wine.skops").predict(_objects(wine))
    assert code == 0
    assert facts["scores"]["accuracy"] == (found == wine["label"]).mean()
    assert facts["classes"]["barolo"]["rows"] == 59


def test_numbers_are_predicted_and_evaluated(command):
    frame = load_diabetes(as_frame=True).frame
    frame.to_csv("data.csv", index=False, sep=";")
    code, printed, said = command(
        "fit", "data.csv", "--target", "target", "--out", "m.skops", "--json"
    )
    facts = json.loads(printed)
    assert (code, facts["task"], facts["estimator"], said) == (0, "numbers", "MarginRegressor", "")
    assert "data.csv: fields are separated by ';'." in facts["notes"]
    X = StandardScaler().fit_transform(frame.drop(columns="target"))
    expected = MarginRegressor(random_state=0).fit(X, frame["target"]).score(X, frame["target"])
    printed = command("evaluate", "m.skops", "data.csv", "--json")[1]
    assert json.loads(printed)["scores"]["R2"] == pytest.approx(expected)


def test_outliers_need_no_target(command, wine_folder):
    words = ("fit", wine_folder / "wine.csv", "--ignore", "label", "--task", "outliers")
    code, printed, said = command(*words, "--out", "m.skops")
    assert code == 0
    assert "5% of the rows are called outliers" in said
    assert "share of outliers 0.05" in printed
    printed = command("predict", "m.skops", wine_folder / "wine.csv", "--scores")[1]
    assert {line.split(",")[0] for line in printed.splitlines()[1:]} == {"inlier", "outlier"}


def _npz(X, y):
    np.savez("data.npz", X=X.reshape(-1, 8, 8), y=y)
    return "data.npz", ()


def _npy(X, y):
    np.save("data.npy", X)
    np.save("labels.npy", y)
    return "data.npy", ("--target", "labels.npy")


def _column(X, y):
    np.save("data.npy", np.column_stack([X, y]))
    return "data.npy", ("--target", "-1")


def _svmlight(X, y):
    dump_svmlight_file(X, y, "data.svm", zero_based=False)
    return "data.svm", ()


def _zipped(X, y):
    text = pd.DataFrame(X).assign(y=y).to_csv(index=False, header=False)
    Path("data.csv.gz").write_bytes(gzip.compress(text.encode()))
    return "data.csv.gz", ("--no-header", "--target", "x64", "--scale", "none")


@pytest.mark.parametrize("written", [_npz, _npy, _column, _svmlight, _zipped])
def test_every_format_gives_the_machine_of_the_array(command, digits, written):
    X, y = digits
    name, words = written(X, y)
    assert command("fit", name, *words, "--out", "m.skops")[0] == 0
    expected = MarginClassifier(random_state=0).fit(X, y)
    machine = widemargin.load("m.skops").steps[-1][1]
    # Formats that leave out columns without values have fewer features.
    width = machine.n_features_in_
    rows = X if width == 64 else X[:, X.std(axis=0) > 0]
    assert_array_equal(machine.predict(rows), expected.predict(X))
    if written is _column:
        return
    how = words[:1] if written is _zipped else words
    code, printed, _ = command("evaluate", "m.skops", name, *how, "--json")
    assert code == 0
    assert json.loads(printed)["scores"]["accuracy"] == (expected.predict(X) == y).mean()


def test_a_table_larger_than_memory_gives_the_model_of_one_that_fits(command, wine):
    large = pd.concat([wine] * 40, ignore_index=True)
    large["alcohol"] += np.random.default_rng(0).normal(size=len(large), scale=0.1)
    large.to_csv("data.csv", index=False)
    words = ("fit", "data.csv", "--target", "label", "--param", "engine=span", "--hold-out", "0.2")
    # Medians, means and categories are from a sample, which here is all rows.
    assert command(*words, "--out", "a.skops")[0] == 0
    code, _, said = command(*words, "--memory", "3MB", "--out", "b.skops")
    assert code == 0
    assert "it is read in blocks" in said
    assert "Prepared rows are written to a temporary file" in said
    rows = _objects(large)
    a, b = widemargin.load("a.skops"), widemargin.load("b.skops")
    assert (a.predict(rows) == b.predict(rows)).mean() > 0.995
    assert_allclose(a.steps[0][1].transform(rows), b.steps[0][1].transform(rows), atol=1e-9)


def test_an_array_larger_than_memory_stays_a_mapped_file(command, digits):
    X, y = digits
    np.save("data.npy", np.tile(X, (20, 1)) + np.random.default_rng(0).normal(size=(8000, 64)))
    np.save("y.npy", np.tile(y, 20))
    code, printed, _ = command(
        "fit", "data.npy", "--target", "y.npy", "--memory", "8MB", "--out", "m.skops"
    )
    assert code == 0
    assert "8,000 rows" in printed


def test_a_search_chooses_and_the_time_is_kept(command, wine_folder):
    code, printed, _ = command(
        "fit", wine_folder / "wine.csv", "--target", "label", "--search", "--out", "m.skops",
        "--param", "Cs=2", "--param", "gammas=2", "--max-time", "30", "--jobs", "1", "--json",
    )  # fmt: skip
    facts = json.loads(printed)
    assert (code, facts["estimator"]) == (0, "MarginClassifierCV")
    assert {"C", "gamma", "score"} <= set(facts["best"])
    assert facts["parameters"]["max_time"] == 30
    assert command("predict", "m.skops", wine_folder / "wine.csv")[0] == 0


def test_a_search_for_numbers_does_better_than_the_usual_parameters(command):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 6)) * [1.0, 1e3, 1.0, 1.0, 1.0, 1.0]
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["y"] = np.sin(2.0 * table["a"]) + table["b"] / 1e3 + 0.1 * rng.normal(size=240)
    table.to_csv("numbers.csv", index=False)
    found = {}
    for more in ([], ["--search", "--param", "Cs=4", "--param", "cv=3"]):
        code, printed, _ = command(
            "fit", "numbers.csv", "--target", "y", "--hold-out", "0.25", "--out", "m.skops",
            "--jobs", "1", "--json", *more,
        )  # fmt: skip
        assert code == 0
        found[len(more)] = json.loads(printed)
    usual, searched = found.values()
    assert searched["estimator"] == "MarginRegressorCV"
    assert searched["scores"]["R2"] > usual["scores"]["R2"] + 0.05
    assert command("predict", "m.skops", "numbers.csv")[0] == 0
    assert command("report", "m.skops", "numbers.csv", "--out", "r.html")[0] == 0


def test_weights_are_those_of_copies(command, wine):
    wine = wine.dropna()
    wine.assign(w=1 + np.arange(len(wine)) % 3).to_csv("weighted.csv", index=False)
    wine.loc[wine.index.repeat(1 + np.arange(len(wine)) % 3)].to_csv("copies.csv", index=False)
    more = ("--target", "label", "--scale", "none", "--param", "gamma=0.001")
    assert command("fit", "weighted.csv", *more, "--weights", "w", "--out", "a.skops")[0] == 0
    assert command("fit", "copies.csv", *more, "--out", "b.skops")[0] == 0
    a, b = widemargin.load("a.skops"), widemargin.load("b.skops")
    assert_allclose(a.decision_function(wine), b.decision_function(wine), atol=1e-5)


def test_a_model_is_compressed_with_and_without_data(command, wine_folder):
    words = ("compress", wine_folder / "wine.skops", "--vectors", "4", "--out", "s.skops", "--json")
    code, printed, _ = command(*words)
    facts = json.loads(printed)
    assert (code, facts["vectors"]) == (0, 12)  # four for each pair of classes
    assert facts["bytes"] < facts["bytes_before"]
    code, printed, _ = command(*words, "--data", wine_folder / "wine.csv")
    facts = json.loads(printed)
    assert code == 0
    assert facts["scores"]["accuracy"] > 0.95
    assert command("evaluate", "s.skops", wine_folder / "wine.csv")[0] == 0


def test_info_says_what_is_inside(command, wine_folder):
    code, printed, _ = command("info", wine_folder / "wine.skops")
    assert code == 0
    for text in ("MarginClassifier for classes", "3 classes: barbera", "categories: region", "gap"):
        assert text in printed
    facts = json.loads(command("info", wine_folder / "wine.skops", "--json")[1])
    assert facts["classes"] == ["barbera", "barolo", "grignolino"]
    assert facts["fit"]["rows"] == 178


def test_a_machine_that_was_saved_from_python_can_be_used(command, digits):
    X, y = digits
    widemargin.save(MarginClassifier().fit(X, y), "m.skops")
    np.savez("data.npz", X=X, y=y)
    code, printed, _ = command("evaluate", "m.skops", "data.npz")
    assert code == 0
    assert "accuracy: 1.0000" in printed or "accuracy: 0.99" in printed


def test_rows_without_a_target_are_left_out_and_counted(command, wine):
    wine.loc[:4, "label"] = None
    wine.to_csv("data.csv", index=False)
    code, printed, said = command("fit", "data.csv", "--target", "label", "--out", "m.skops")
    assert code == 0
    assert "5 of 178 rows have no 'label' and are left out" in said
    assert "on 173 rows" in printed
    assert (
        "5 rows have no target and are not counted" in command("evaluate", "m.skops", "data.csv")[2]
    )


def test_an_interrupt_is_no_traceback(command, wine_folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("widemargin.cli.fit_command.read_table", interrupted)
    code, _, said = command(
        "fit", wine_folder / "wine.csv", "--target", "label", "--out", "m.skops"
    )
    assert code == 130
    assert "interrupted" in said


def test_the_command_is_a_process_with_an_exit_code(tmp_path):
    words = [sys.executable, "-W", "error", "-m", "widemargin.cli", "info", "nothing.skops"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 3
    assert done.stderr.strip() == "widemargin: There is no file nothing.skops."


def test_help_names_all_commands(command):
    code, printed, _ = command("--help")
    assert code == 0
    for name in ("fit", "predict", "evaluate", "report", "compress", "info"):
        assert f"\n    {name}" in printed
    assert command()[1] == printed


def test_a_report_is_the_page_of_the_library(command, wine, wine_folder):
    words = ("report", wine_folder / "wine.skops", wine_folder / "wine.csv", "--out", "r.html")
    code, printed, _ = command(*words, "--title", "Wines", "--learning-curve", "--max-time", "3")
    assert code == 0
    assert "Open it in a browser" in printed
    page = Page(Path("r.html").read_text(encoding="utf-8"))
    assert {"confusions", "margins", "closest", "importances", "learning"} <= set(page.ids())
    assert "Wines" in page.texts
    assert "Columns of the table" in page.texts


def test_a_report_of_very_many_rows_is_on_a_sample_with_the_right_targets(
    command, digits, monkeypatch
):
    X, y = digits
    widemargin.save(MarginClassifier().fit(X, y), "m.skops")
    pd.DataFrame(X).assign(label=y).to_csv("data.csv", index=False)
    monkeypatch.setattr("widemargin.cli.report_command._MOST_ROWS", 50)
    monkeypatch.setattr("widemargin.cli.model_rows.BLOCK_ROWS", 40)
    np.savez("data.npz", X=X, y=y)
    code, _, said = command("report", "m.skops", "data.npz", "--out", "r.html", "--max-time", "1")
    assert code == 0
    rows = int(re.search(r"Looking at (\d+) rows", said)[1])
    assert 50 <= rows <= 100
    # With shuffled targets nearly all would be wrong.
    page = Path("r.html").read_text(encoding="utf-8")
    assert re.search(r"<b>(100\.00|9\d\.\d\d) %</b><span>accuracy", page)


def test_pictures_of_an_npz_file_are_shown_as_such(command, digits):
    name, _ = _npz(*digits)
    assert command("fit", name, "--out", "m.skops")[0] == 0
    assert command("report", "m.skops", name, "--out", "r.html", "--max-time", "1")[0] == 0
    assert Page(Path("r.html").read_text(encoding="utf-8")).count("img") >= 36


def test_a_name_of_the_targets_is_remembered(command, digits):
    X, y = digits
    np.savez("data.npz", X=X, kind=y)
    assert command("fit", "data.npz", "--target", "kind", "--out", "m.skops")[0] == 0
    assert command("evaluate", "m.skops", "data.npz")[0] == 0


def test_a_column_with_one_value_and_gaps_is_a_column_of_gaps(command):
    frame = pd.DataFrame({"a": [1.0, None] * 20, "b": 7.0, "y": ["p", "q"] * 20})
    frame.to_csv("data.csv", index=False)
    code, printed, said = command("fit", "data.csv", "--target", "y", "--out", "m.skops")
    assert code == 0
    assert "Column 'b' is left out" in said
    assert "accuracy 1," in printed  # where a value is missing tells all
