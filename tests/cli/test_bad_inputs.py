"""Every bad input ends with a sentence and an exit code, never with a traceback."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from widemargin import KernelFisherDA, MarginClassifier, MarginRegressor, save

USAGE, FILE, DATA, MODEL, LIMIT = 2, 3, 4, 5, 6
GOOD = "a,b,label\n1,2,x\n2,1,y\n3,3,x\n4,0,y\n"
FIT = ("--target", "label", "--out", "m.skops")


def _fit(name="data.csv", *more):
    return ("fit", name, *FIT, *more)


def _text(text, name="data.csv", encoding="utf-8"):
    return lambda: Path(name).write_bytes(text.encode(encoding))


def _npz(**arrays):
    return lambda: np.savez("data.npz", **arrays)


def _npy(array):
    return lambda: np.save("data.npy", array)


def _zip_without_schema():
    with zipfile.ZipFile("m.skops", "w") as file:
        file.writestr("hello.txt", "no model")


def _skops(model):
    return lambda: skops.io.dump(model, "m.skops")


def _kernel(X, Z):
    return X @ Z.T


def _model_with_function():
    X = np.arange(8.0).reshape(4, 2)
    skops.io.dump(MarginClassifier(kernel=_kernel).fit(X, [0, 1, 0, 1]), "m.skops")


def _fitted(*, numbers=False):
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    model = MarginRegressor() if numbers else MarginClassifier()
    save(model.fit(X, y), "m.skops")


def _folder():
    Path("folder.csv").mkdir()


# What is in the folder, the words of the command, the exit code, and what is said.
CASES = {
    # files
    "no such file": (None, _fit("nothing.csv"), FILE, r"There is no file nothing\.csv"),
    "a folder": (_folder, _fit("folder.csv"), FILE, r"folder\.csv is a folder"),
    "an empty file": (_text(""), _fit(), FILE, r"data\.csv is empty"),
    "an empty first line": (_text("\n\n\n"), _fit(), FILE, "has no columns"),
    "no rows": (_text("a,b,label\n"), _fit(), DATA, "names of columns, but no rows"),
    "an unknown ending": (
        _text(GOOD, "data.xlsx"),
        _fit("data.xlsx"),
        FILE,
        r"'\.xlsx' are not known",
    ),
    "no ending": (_text(GOOD, "data"), _fit("data"), FILE, "'nothing' are not known"),
    "not Parquet": (_text(GOOD, "d.parquet"), _fit("d.parquet"), FILE, "not a Parquet file"),
    "not gzip": (_text(GOOD, "d.csv.gz"), _fit("d.csv.gz"), FILE, "cannot be read.*gzip"),
    "not npy": (_text(GOOD, "d.npy"), _fit("d.npy"), FILE, "not an array of numbers"),
    "not npz": (_text(GOOD, "d.npz"), _fit("d.npz"), FILE, "not a file of arrays"),
    # tables
    "no such column": (
        _text(GOOD),
        ("fit", "data.csv", "--target", "klass", "--out", "m.skops"),
        DATA,
        r"--target klass: data\.csv has no column 'klass'\. There are 'a', 'b', 'label'",
    ),
    "another case of letters": (
        _text(GOOD),
        ("fit", "data.csv", "--target", "Label", "--out", "m.skops"),
        DATA,
        "Did you mean 'label'",
    ),
    "ignored column is not there": (
        _text(GOOD),
        _fit("data.csv", "--ignore", "z"),
        DATA,
        "--ignore z",
    ),
    "category is not there": (
        _text(GOOD),
        _fit("data.csv", "--categories", "z"),
        DATA,
        "--categories z",
    ),
    "weights are not there": (_text(GOOD), _fit("data.csv", "--weights", "w"), DATA, "--weights w"),
    "weights are negative": (
        _text("a,w,label\n1,1,x\n2,-3,y\n"),
        _fit("data.csv", "--weights", "w"),
        DATA,
        r"data\.csv, line 3, column 'w': -3\.0 is not a weight",
    ),
    "weights are texts": (
        _text("a,w,label\n1,1,x\n2,much,y\n"),
        _fit("data.csv", "--weights", "w"),
        DATA,
        r"line 3, column 'w': 'much' is text where numbers are expected",
    ),
    "text where numbers are expected": (
        _text("a,label\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(20)) + "oops,x\n"),
        _fit(),
        DATA,
        r"data\.csv, line 22, column 'a': 'oops' is text where numbers are expected",
    ),
    "text after a record of two lines": (
        _text('t,a,label\n"one\ntwo",1,x\nq,2,y\nq,3,x\nq,4,y\nq,5,x\nq,bad,y\n'),
        _fit(),
        DATA,
        r"data\.csv, line 8, column 'a': 'bad'",
    ),
    "infinity": (
        _text("a,label\n1,x\ninf,y\n2,x\n"),
        _fit(),
        DATA,
        r"line 3, column 'a': inf is not a finite",
    ),
    "too many fields": (
        _text("a,b,label\n1,2,x\n1,2,3,x\n"),
        _fit(),
        DATA,
        r"line 3: 4 fields, but there are 3",
    ),
    "a field more than names": (
        _text("a,b,label\n1,2,3,x\n1,2,3,y\n"),
        _fit(),
        DATA,
        "line 2: 4 fields, but there are 3",
    ),
    "a quote that never closes": (
        _text('a,label\n1,"x\n2,y\n'),
        _fit(),
        DATA,
        "not a CSV file|no column to learn|same class",
    ),
    "a column twice": (_text("a,a,label\n1,2,x\n"), _fit(), DATA, "several columns are named 'a'"),
    "a column without a name": (_text("a,,label\n1,2,x\n"), _fit(), DATA, "column 2 has no name"),
    "no header": (
        _text("1,2,3\n4,5,6\n"),
        _fit(),
        DATA,
        "the names of the columns are expected.*--no-header",
    ),
    "not utf-8": (
        _text("a,label\n1,x\n2,süd\n", encoding="latin-1"),
        _fit(),
        DATA,
        r"line 3: not text in utf-8.*latin-1",
    ),
    "an unknown encoding": (
        _text(GOOD),
        _fit("data.csv", "--encoding", "klingon"),
        USAGE,
        "--encoding klingon is not known",
    ),
    "a long delimiter": (
        _text(GOOD),
        _fit("data.csv", "--delimiter", "<>"),
        USAGE,
        "must be one character",
    ),
    "nothing to learn from": (
        _text("a,label\n1,x\n1,y\n"),
        _fit(),
        DATA,
        "no column to learn from: a: it has the same value",
    ),
    "only the target": (_text("label\nx\ny\n"), _fit(), DATA, "no column to learn from"),
    "no target in any row": (
        _text("a,label\n1,\n2,\n"),
        _fit(),
        DATA,
        "'label' is missing in all 2 rows",
    ),
    "one class": (
        _text("a,label\n1,x\n2,x\n"),
        _fit(),
        DATA,
        "all rows have the same class x.*--task outliers",
    ),
    "texts as numbers": (
        _text(GOOD),
        _fit("data.csv", "--task", "numbers"),
        DATA,
        r"data\.csv, line 2, column 'label': 'x' is text where a number is expected",
    ),
    "one row of numbers": (
        _text("a,label\n1,0.5\n"),
        _fit("data.csv", "--task", "numbers"),
        DATA,
        "no column|one row",
    ),
    # arrays
    "an array of objects": (
        _npz(X=np.array([[object()]], dtype=object)),
        _fit("data.npz"),
        FILE,
        "not a file of arrays",
    ),
    "an array of texts": (
        _npz(X=np.array([["a", "b"]]), label=np.array([1])),
        _fit("data.npz"),
        DATA,
        "type <U1, but numbers",
    ),
    "no array of this name": (
        _npz(X=np.ones((3, 2))),
        _fit("data.npz"),
        DATA,
        r"no array 'label'. There are: X \(3, 2\)",
    ),
    "several arrays of rows": (
        _npz(p=np.ones((3, 2)), q=np.ones((3, 2)), label=np.ones(3)),
        _fit("data.npz"),
        DATA,
        "which array has the rows",
    ),
    "too few labels": (
        _npz(X=np.ones((3, 2)), label=np.ones(2)),
        _fit("data.npz"),
        DATA,
        "a target for each of 3 rows",
    ),
    "no columns in the array": (
        _npz(X=np.ones((3, 0)), label=np.ones(3)),
        _fit("data.npz"),
        DATA,
        "there are no values",
    ),
    "infinity in an array": (
        _npz(X=np.array([[1.0, 2.0], [np.inf, 1.0]]), label=np.arange(2)),
        _fit("data.npz"),
        DATA,
        "row 2, column 0: inf",
    ),
    "a target that is missing": (
        _npz(X=np.ones((2, 1)), label=np.array([1.0, np.nan])),
        _fit("data.npz"),
        DATA,
        "row 2: the target is missing",
    ),
    "one dimension": (
        _npy(np.arange(3)),
        ("fit", "data.npy", "--target", "0", "--out", "m.skops"),
        DATA,
        "rows and columns are expected",
    ),
    "no such column number": (
        _npy(np.ones((3, 2))),
        ("fit", "data.npy", "--target", "7", "--out", "m.skops"),
        DATA,
        "has 2 columns, which count from 0",
    ),
    "a column of an array by name": (
        _npy(np.ones((3, 2))),
        _fit("data.npy"),
        DATA,
        "columns of data.npy have no names",
    ),
    "weights of an array": (
        _npz(X=np.ones((2, 1)), label=np.arange(2)),
        _fit("data.npz", "--weights", "w"),
        USAGE,
        "--weights names columns of a table",
    ),
    # svmlight
    "svmlight without numbers": (
        _text("1 1:2\n0 1:abc\n", "d.svm"),
        ("fit", "d.svm", "--out", "m.skops"),
        DATA,
        r"d\.svm, line 2, word 2: feature:value, both numbers, expected, but it is '1:abc'",
    ),
    "svmlight with a text label": (
        _text("1 1:2\nyes 1:1\n", "d.svm"),
        ("fit", "d.svm", "--out", "m.skops"),
        DATA,
        "line 2, word 1: a label expected",
    ),
    "svmlight going down": (
        _text("1 3:2 1:1\n", "d.svm"),
        ("fit", "d.svm", "--out", "m.skops"),
        DATA,
        "features must go up, but 1 comes after 3",
    ),
    "svmlight too large": (
        _text("1 1:2\n0 1:3\n", "d.svm"),
        ("fit", "d.svm", "--out", "m.skops", "--memory", "10"),
        LIMIT,
        "read whole",
    ),
    # options
    "no target": (
        _text(GOOD),
        ("fit", "data.csv", "--out", "m.skops"),
        USAGE,
        "--target is missing",
    ),
    "no out": (_text(GOOD), ("fit", "data.csv", "--target", "label"), USAGE, "required: --out"),
    "no such command": (None, ("train", "data.csv"), USAGE, "invalid choice: 'train'"),
    "no such option": (
        _text(GOOD),
        _fit("data.csv", "--fast"),
        USAGE,
        "unrecognized arguments: --fast",
    ),
    "no such task": (
        _text(GOOD),
        _fit("data.csv", "--task", "magic"),
        USAGE,
        "invalid choice: 'magic'",
    ),
    "no such estimator": (
        _text(GOOD),
        _fit("data.csv", "--estimator", "SVC"),
        USAGE,
        "--estimator SVC is not known; there are BallVectorClassifier",
    ),
    "a projection as an estimator": (
        _text(GOOD),
        _fit("data.csv", "--estimator", "SpanMap"),
        USAGE,
        "--estimator SpanMap is not known",
    ),
    "an estimator for another task": (
        _text(GOOD),
        _fit("data.csv", "--estimator", "MarginRegressor", "--task", "classes"),
        USAGE,
        "is for numbers, but --task says classes",
    ),
    "no such parameter": (
        _text(GOOD),
        _fit("data.csv", "--param", "D=1"),
        USAGE,
        "--param D=1 is not name=value with a parameter of MarginClassifier",
    ),
    "a parameter without a value": (
        _text(GOOD),
        _fit("data.csv", "--param", "C"),
        USAGE,
        "--param C is not name=value",
    ),
    "a parameter of a wrong value": (
        _text(GOOD),
        _fit("data.csv", "--param", "C=-1"),
        DATA,
        "C=-1 must be positive",
    ),
    "search for outliers": (
        _text("a,b\n1,0.5\n2,0.7\n"),
        ["fit", "data.csv", "--task", "outliers", "--search", "--out", "m.skops"],
        USAGE,
        "--search is there for classes and numbers",
    ),
    "an amount of memory": (
        _text(GOOD),
        _fit("data.csv", "--memory", "lots"),
        USAGE,
        "--memory lots.*not an amount of memory",
    ),
    "no time at all": (
        _text(GOOD),
        _fit("data.csv", "--max-time", "0"),
        USAGE,
        "more than 0 seconds",
    ),
    "no threads": (_text(GOOD), _fit("data.csv", "--jobs", "0"), USAGE, "0 threads cannot work"),
    "a seed below zero": (_text(GOOD), _fit("data.csv", "--seed", "-1"), USAGE, "--seed"),
    "all rows held out": (
        _text(GOOD),
        _fit("data.csv", "--hold-out", "1"),
        USAGE,
        "--hold-out 1 is not a share",
    ),
    "too few rows to hold out": (
        _text(GOOD),
        _fit("data.csv", "--hold-out", "0.1"),
        DATA,
        "--hold-out 0.1 of 4 rows cannot be done",
    ),
    "no folder for the model": (
        _text(GOOD),
        ("fit", "data.csv", "--target", "label", "--out", "no/m.skops"),
        FILE,
        "there is no folder no",
    ),
    "the target is ignored": (
        _text(GOOD),
        _fit("data.csv", "--ignore", "label"),
        USAGE,
        "is the --target as well",
    ),
    "the target as weights": (
        _text(GOOD),
        _fit("data.csv", "--weights", "label"),
        USAGE,
        "is the --target as well",
    ),
    "a device it does not have": (
        _text(GOOD),
        _fit("data.csv", "--device", "cpu", "--estimator", "CoreVectorClassifier"),
        USAGE,
        "CoreVectorClassifier has no --device",
    ),
    "a device that is not there": (
        _text(GOOD),
        _fit("data.csv", "--device", "abacus"),
        USAGE,
        "abacus",
    ),
    # models
    "no such model": (
        _text(GOOD),
        ("predict", "m.skops", "data.csv"),
        FILE,
        "There is no file m.skops",
    ),
    "an empty model": (_text("", "m.skops"), ("info", "m.skops"), FILE, "m.skops is empty"),
    "a model that is a text": (
        _text(GOOD, "m.skops"),
        ("info", "m.skops"),
        MODEL,
        "not a model file of skops",
    ),
    "a zip that is no model": (
        _zip_without_schema,
        ("info", "m.skops"),
        MODEL,
        "not a model file of skops",
    ),
    "a model that is not ours": (
        _skops(LogisticRegression().fit([[0], [1]], [0, 1])),
        ("info", "m.skops"),
        MODEL,
        "holds a LogisticRegression, which is not a machine of widemargin",
    ),
    "a list as a model": (_skops([1, 2, 3]), ("info", "m.skops"), MODEL, "holds a list"),
    "a projection as a model": (
        _skops(KernelFisherDA().fit([[0.0], [1], [2], [3]], [0, 0, 1, 1])),
        ("info", "m.skops"),
        MODEL,
        "is a projection",
    ),
    "a model that is not fitted": (
        _skops(MarginClassifier()),
        ("info", "m.skops"),
        MODEL,
        "was not fitted",
    ),
    "a model with a function": (
        _model_with_function,
        ("info", "m.skops"),
        MODEL,
        "not on the list of trusted types; nothing of it was run",
    ),
    "an array that is too wide": (
        lambda: (_fitted(), _npy(np.ones((2, 5)))()),
        ("predict", "m.skops", "data.npy"),
        MODEL,
        "has 5 columns, but m.skops was fitted to 3",
    ),
    "svmlight that is too wide": (
        lambda: (_fitted(), _text("1 9:1\n", "d.svm")()),
        ("predict", "m.skops", "d.svm"),
        MODEL,
        "features up to number 9",
    ),
    "missing values that nothing fills": (
        lambda: (_fitted(), _text("a,b,c\n1,2,3\n4,,6\n")()),
        ("predict", "m.skops", "data.csv"),
        DATA,
        "line 3, column 'b': a value is missing",
    ),
    "nothing to compare with": (
        lambda: (_fitted(), _npy(np.ones((2, 3)))()),
        ("evaluate", "m.skops", "data.npy"),
        DATA,
        "no targets to compare with",
    ),
    "numbers have no scores": (
        lambda: (_fitted(numbers=True), _npy(np.ones((2, 3)))()),
        ("predict", "m.skops", "data.npy", "--scores"),
        USAGE,
        "--scores are the margins",
    ),
    "predictions of an unknown ending": (
        _text(GOOD),
        ("predict", "m.skops", "data.csv", "--out", "p.xlsx"),
        FILE,
        "predictions are written as",
    ),
    "a report that is no page": (
        _text(GOOD),
        ("report", "m.skops", "data.csv", "--out", "report.pdf"),
        FILE,
        "a report is a .html file",
    ),
    "no folder for the report": (
        _text(GOOD),
        ("report", "m.skops", "data.csv", "--out", "no/report.html"),
        FILE,
        "there is no folder no",
    ),
    "pictures of another shape": (
        lambda: (_fitted(), _npz(X=np.ones((2, 3)), y=np.arange(2))()),
        ("report", "m.skops", "data.npz", "--out", "r.html", "--image", "2x2"),
        USAGE,
        "--image 2x2 must be the shape of a row",
    ),
    "pictures without a shape": (
        lambda: (_fitted(), _npz(X=np.ones((2, 3)), y=np.arange(2))()),
        ("report", "m.skops", "data.npz", "--out", "r.html", "--image", "square"),
        USAGE,
        "--image square must be the shape",
    ),
    "a report without the truth": (
        lambda: (_fitted(), _npy(np.ones((2, 3)))()),
        ("report", "m.skops", "data.npy", "--out", "r.html"),
        DATA,
        "no targets to compare with",
    ),
    "numbers cannot be compressed": (
        lambda: _fitted(numbers=True),
        ("compress", "m.skops", "--vectors", "3", "--out", "s.skops"),
        MODEL,
        "only kernel classifiers",
    ),
    "vectors that are no number": (
        _fitted,
        ("compress", "m.skops", "--vectors", "few", "--out", "s.skops"),
        USAGE,
        "--vectors few must be a whole number",
    ),
    "a share of more than all": (
        _fitted,
        ("compress", "m.skops", "--vectors", "1.5", "--out", "s.skops"),
        USAGE,
        "--vectors 1.5",
    ),
}


def test_there_are_many_cases():
    assert len(CASES) >= 80


@pytest.mark.parametrize("case", CASES)
def test_a_bad_input_is_refused_in_a_sentence(case, command):
    made, words, code, said = CASES[case]
    if made is not None:
        made()
    found, printed, message = command(*words)
    assert message.startswith("widemargin:") or "\nwidemargin:" in message
    assert re.search(said, message), message
    assert found == code, message
    assert printed == ""
    assert not Path("s.skops").exists()


# Bad rows for a model that was fitted to a table.


def _without(wine):
    wine.drop(columns=["ash", "hue"]).to_csv("data.csv", index=False)


def _texts(wine):
    wine = wine.astype({"hue": object})
    wine.loc[4, "hue"] = "reddish"
    wine.to_csv("data.csv", index=False)


def _no_rows(wine):
    wine[:0].to_csv("data.csv", index=False)


def _other_classes(wine):
    wine.assign(label="merlot").to_csv("data.csv", index=False)


def _no_label(wine):
    wine.drop(columns="label").to_csv("data.csv", index=False)


def _infinite(wine):
    wine.assign(hue=np.inf).to_csv("data.csv", index=False)


TABLE_CASES = {
    "columns are missing": (_without, "predict", MODEL, r"lacks columns .* 'ash', 'hue'"),
    "text in a column of numbers": (
        _texts,
        "predict",
        DATA,
        r"data\.csv, line 6, column 'hue': 'reddish'",
    ),
    "no rows": (_no_rows, "predict", DATA, "but no rows"),
    "infinite": (_infinite, "predict", DATA, r"line 2, column 'hue': inf"),
    "classes of others": (_other_classes, "evaluate", MODEL, "no class of 'label' is one of"),
    "no target": (_no_label, "evaluate", DATA, "has no column 'label'"),
}


@pytest.mark.parametrize("case", TABLE_CASES)
def test_rows_that_a_model_cannot_read_are_refused(case, command, wine, wine_folder):
    made, name, code, said = TABLE_CASES[case]
    made(wine)
    found, _, message = command(name, wine_folder / "wine.skops", "data.csv")
    assert found == code, message
    assert re.search(said, message), message


def test_arrays_are_refused_by_a_model_of_a_table(command, wine_folder):
    np.save("data.npy", np.ones((2, 14)))
    code, _, said = command("predict", wine_folder / "wine.skops", "data.npy")
    assert code == MODEL
    assert "fitted to a table with the columns alcohol" in said


def test_a_refusal_is_json_where_that_is_asked_for(command):
    code, printed, said = command("info", "nothing.skops", "--json")
    assert json.loads(printed) == {
        "error": "There is no file nothing.skops.",
        "exit_code": FILE,
        "notes": [],
    }
    assert code == FILE
    assert "There is no file" in said


def test_texts_of_data_cannot_steer_a_terminal_or_the_markup(command):
    rows = "".join(f"{i},{'xy'[i % 2]}\n" for i in range(20))
    Path("data.csv").write_text("a,label\n" + rows + "[bold]\x1b[2J[/],x\n", encoding="utf-8")
    code, _, said = command(*_fit())
    assert code == DATA
    assert "\x1b" not in said
    assert "[bold]" in said


def test_a_file_that_cannot_be_written_is_named(command, wine_folder):
    Path("taken").mkdir()
    code, _, said = command("fit", wine_folder / "wine.csv", "--target", "label", "--out", "taken")
    assert code == FILE
    assert "taken is a folder" in said


def test_a_parquet_file_of_lists_says_what_it_leaves_out(command):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "l": [[1], [2], [3], [4]], "label": list("xyxy")})
    frame.to_parquet("data.parquet")
    code, _, said = command(*_fit("data.parquet"))
    assert code == 0
    assert "Column 'l' is left out: its values are lists" in said
