"""The benchmarks' machinery: loading by name, measuring in a child process, writing tables."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import bvm, child, datasets, kdd, runner, speed
from benchmarks.__main__ import BENCHMARKS, listing, main
from benchmarks.papers import BVM_ACCURACY, BVM_SECONDS, BVM_VECTORS
from benchmarks.report import MISSING, beside, gap_of, markdown_table, number, sweep_figure, text_of

SVC = "sklearn.svm.SVC"
RECORD_KEYS = {
    *("label", "dataset", "estimator", "params", "rows", "repeats", "threads", "status", "message"),
    *("n_train", "n_test", "n_features", "n_classes", "data_mb", "load_seconds"),
    *("warmup_seconds", "fit_seconds", "fit_seconds_all", "predict_seconds", "peak_mb"),
    *("accuracy", "n_vectors", "certificate", "fitted_params", "warnings"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    return tmp_path


def finished(**fields):
    record = {"label": "BVM gap", "dataset": "letter", "status": "ok", "message": ""}
    record |= {"accuracy": 95.0, "fit_seconds": 2.0, "predict_seconds": 1.0, "n_vectors": 1234}
    record |= {"peak_mb": 10.0, "data_mb": 1.0, "warmup_seconds": 0.5, "point": {}}
    return record | {"certificate": {"gap": 1e-3}} | fields


# ---------------------------------------------------------------- data


def test_an_unknown_set_is_refused_with_the_known_names():
    with pytest.raises(datasets.DatasetNotFound, match=r"'no_such_set'; known: .*pendigits"):
        datasets.load("no_such_set")


def test_a_missing_file_is_named_with_the_place_to_get_it(folder):
    with pytest.raises(datasets.DatasetNotFound, match=r"ijcnn1_train\.npz.*libsvmtools"):
        datasets.load("ijcnn1")


def test_without_a_folder_a_set_that_openml_lacks_says_where_it_is(monkeypatch):
    monkeypatch.delenv("WIDEMARGIN_DATA", raising=False)
    with pytest.raises(datasets.DatasetNotFound, match=r"not on OpenML.*reuters.*WIDEMARGIN_DATA"):
        datasets.load("reuters")


def test_offline_openml_gives_a_clear_error(monkeypatch):
    def offline(**_):
        raise OSError("no route to host")

    monkeypatch.delenv("WIDEMARGIN_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(datasets.DatasetNotFound, match=r"no route to host.*optdigits\.npz"):
        datasets.load("optdigits")


def test_a_sparse_archive_becomes_float64_csr_and_is_split_the_same_way_twice(folder):
    X = sp.random(50, 7, density=0.4, format="csr", random_state=0)
    np.savez(
        folder / "w8a.npz",
        X_train_data=np.ones(X.nnz, dtype=np.uint8),
        X_train_indices=X.indices.astype(np.uint16),
        X_train_indptr=X.indptr,
        X_train_shape=X.shape,
        y_train=np.where(np.arange(50) % 2, 1, -1),
    )
    first, second = datasets.load("w8a"), datasets.load("w8a")
    assert first.X_train.shape == (40, 7) and first.X_test.shape == (10, 7)
    assert first.X_train.dtype == np.float64 and first.X_train.indices.dtype == np.int32
    np.testing.assert_array_equal(first.X_train.toarray(), second.X_train.toarray())


def test_intrusion_is_one_hot_standardised_and_binary(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)).astype(np.float32)
    X[:, 1] = np.arange(60) % 3
    np.savez(
        folder / "kddcup99_10pct.npz",
        X_train=X[:40],
        X_test=X[40:],
        y_train=np.arange(40) % 2,
        y_test=np.arange(20) % 2,
        classes=np.array(["normal", "smurf"]),
        cat_cols=np.array([1]),
        cat1=np.array(["icmp", "tcp", "udp"]),
    )
    data = datasets.load("kddcup99_10pct")
    assert data.X_train.shape == (40, 7) and data.X_train.dtype == np.float32
    assert set(data.y_train) == {-1, 1} and data.y_train[0] == -1
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(data.X_train.std(axis=0), 1.0, atol=1e-5)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_mean_distance_gamma_is_the_mean_over_all_pairs(convert):
    X = np.random.default_rng(0).standard_normal((30, 4)) + 1.0
    pairs = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert child.mean_distance_gamma(convert(X)) == pytest.approx(1.0 / pairs.mean())


# ---------------------------------------------------------------- measuring


def test_a_measurement_of_svc_gives_a_complete_record():
    params = {"C": 1.0, "gamma": "mean_distance"}
    spec = runner.Measurement("LIBSVM", "generated", SVC, params, repeats=2, rows=300)
    record = runner.measure(spec, timeout=60, threads=1)
    assert record["status"] == "ok", record["message"]
    assert record.keys() >= RECORD_KEYS
    assert record["n_train"] == 300 and record["n_classes"] == 3
    assert record["accuracy"] > 70 and 0 < record["n_vectors"] <= 300
    assert len(record["fit_seconds_all"]) == 2 and record["peak_mb"] >= 0
    assert record["certificate"] is None
    assert isinstance(record["fitted_params"]["gamma"], float)
    json.dumps(record)


@dataclasses.dataclass(frozen=True)
class TrialCertificate:
    gap: float = np.inf
    n_vectors: int = 7


class TrialMachine:
    """Stands for one of our estimators: a certificate, and a warning about an early stop."""

    def fit(self, X, y):
        warnings.warn("stopped early", RuntimeWarning, stacklevel=2)
        self.certificate_ = TrialCertificate()
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def get_params(self):
        return {}


def test_the_certificate_and_the_warnings_are_kept(monkeypatch):
    monkeypatch.setattr(child, "build", lambda *_: TrialMachine())
    spec = {"estimator": "", "params": {}, "threads": 1, "repeats": 2, "warmup_rows": 20}
    result = child.plain(child.measure(spec, datasets.load("generated")))
    assert result["certificate"] == {"gap": None, "n_vectors": 7}
    assert result["n_vectors"] == 7 and result["warnings"] == ["stopped early"]


def test_a_failing_fit_is_a_record_and_not_an_error():
    record = runner.measure(runner.Measurement("bad", "generated", SVC, {"C": -1.0}), timeout=60)
    assert record["status"] == "failed" and "'C'" in record["message"]


def test_a_fit_over_the_time_limit_is_ended_and_recorded():
    spec = runner.Measurement("slow", "generated", SVC, {})
    record = runner.measure(spec, timeout=0.05)
    assert record["status"] == "timeout" and "0.05 s" in record["message"]


def test_a_session_writes_json_and_markdown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "measure", lambda *_: finished())
    session = runner.Session("trial", timeout=1.0, threads=1, results=tmp_path)
    session.run([bvm.ours("BVM", "letter")])
    session.write("A title", [speed.speed_table(session.records, ["letter"])], ["A note."])
    document = json.loads((tmp_path / "trial.json").read_text())
    assert document.keys() >= {"command", "date", "threads", "machine", "versions", "records"}
    assert (tmp_path / "trial.md").read_text().startswith("# A title\n")
    assert "95.00 %" in capsys.readouterr().out


def test_the_papers_c_is_halved_for_ours_and_kept_for_libsvm():
    assert bvm.ours("CVM", "letter", paper_C=3.0).params["C"] == 1.5
    assert bvm.libsvm("letter", paper_C=3.0).params["C"] == 3.0


# ---------------------------------------------------------------- tables


def test_a_markdown_table_is_aligned_and_escapes_bars():
    table = markdown_table(["set", "a|b"], [["letter", "1"], ["w8a", "22.50"]])
    assert table.splitlines() == [
        "| set    |  a\\|b |",
        "| ------ | ----: |",
        "| letter |     1 |",
        "| w8a    | 22.50 |",
    ]


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="3 cells, the header 2"):
        markdown_table(["a", "b"], [["1", "2", "3"]])


def test_cells_say_what_is_missing():
    assert number(None) == MISSING and number(1234.5, 1, " s") == "1,234.5 s"
    assert beside("96.1", "96.38") == "96.1 (96.38)" and beside("96.1", MISSING) == "96.1"
    assert text_of({"status": "timeout"}, "accuracy") == "timeout"
    assert text_of(None, "accuracy") == MISSING and gap_of(finished()) == "1.0e-03"


def test_accuracy_half_a_point_below_libsvm_is_flagged():
    records = [finished(label=bvm.LIBSVM), finished(accuracy=94.4), finished(label="CVM gap")]
    row = bvm.accuracy_table(bvm.by_cell(records), ["letter"]).rows[0]
    assert row[-1] == "BVM gap" and row[-2] == "95.00 (94.25)"


def test_times_stand_beside_the_papers_as_ratios():
    records = [finished(label=bvm.LIBSVM, fit_seconds=4.0), finished(label="BVM 1e-4")]
    row = bvm.seconds_table(bvm.by_cell(records), ["letter"]).rows[0]
    assert row[1] == "2.00 s, 0.50× (19.87 s, 1.83×)"


def test_every_table_can_be_drawn_from_records_that_failed():
    failed = {"label": "BVM 1e-4", "dataset": kdd.DATASET, "status": "failed", "message": "no"}
    results = bvm.by_cell([failed])
    for table in (bvm.accuracy_table, bvm.seconds_table, bvm.vectors_table, bvm.gap_table):
        drawn = table(results, [kdd.DATASET])
        markdown_table(drawn.header, drawn.rows)
    assert "failed" in str(kdd.kdd_table([failed]).rows)


def test_a_sweep_is_drawn_as_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    records = [finished(point={"C": C}) for C in (0.1, 1.0)]
    path = sweep_figure(records, "C", "C", tmp_path / "sweep.png")
    assert path is not None and path.stat().st_size > 1000
    assert sweep_figure([], "C", "C", tmp_path / "none.png") is None


def test_the_papers_tables_name_the_same_sets():
    assert BVM_ACCURACY.keys() == BVM_SECONDS.keys() == BVM_VECTORS.keys()
    assert set(bvm.SETS) <= BVM_ACCURACY.keys()


def test_the_command_lists_its_benchmarks(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in BENCHMARKS)
    assert main(["nothing"]) == 2 and listing() in capsys.readouterr().err
