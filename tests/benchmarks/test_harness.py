"""Loading by name, measuring in a child process, writing tables: what all benchmarks share."""

from __future__ import annotations

import json
import runpy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.__main__ import BENCHMARKS, listing, main
from benchmarks.harness import child, datasets, fits, runner
from benchmarks.harness.records import gap_of, growth_exponent, text_of
from benchmarks.harness.report import MISSING, beside, markdown_table, number
from tests.benchmarks.trial import SVC, TrialCertificate, finished

RECORD_KEYS = {
    *("label", "dataset", "estimator", "params", "rows", "repeats", "threads", "status", "message"),
    *("n_train", "n_test", "n_features", "n_classes", "data_mb", "load_seconds"),
    *("warmup_seconds", "fit_seconds", "fit_seconds_all", "predict_seconds", "peak_mb"),
    *("accuracy", "n_vectors", "certificate", "fitted_params", "warnings"),
}


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


def test_covtype_in_parts_has_the_same_test_rows_and_is_standardised(folder, monkeypatch):
    monkeypatch.setattr(datasets, "COVTYPE_TEST_ROWS", 20)
    X = np.random.default_rng(0).integers(0, 99, size=(100, 3)).astype(np.int16)
    np.savez(folder / "covtype.npz", X=X, y=1 + np.arange(100) % 7)
    raw = {"X": X, "y": 1 + np.arange(100) % 7}
    some, more = datasets.lodgepole(30)(raw), datasets.lodgepole(60)(raw)
    np.testing.assert_array_equal(some[3], more[3])
    np.testing.assert_array_equal(some[1], more[1][:30])
    np.testing.assert_allclose(some[0].mean(axis=0), 0.0, atol=1e-12)
    assert len(datasets.load("covtype").y_train) == 80 and set(some[1]) == {-1, 1}


def test_the_mixture_is_that_of_the_demonstration():
    pytest.importorskip("matplotlib")
    task = runpy.run_path(str(runner.ROOT / "examples" / "demo.py"))["mixture"]()
    data = datasets.load("mixture")
    np.testing.assert_array_equal(data.X_train, task.X)
    np.testing.assert_array_equal(data.y_train, task.y)
    np.testing.assert_array_equal(data.X_test, task.X_test)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_mean_distance_gamma_is_the_mean_over_all_pairs(convert):
    X = np.random.default_rng(0).standard_normal((30, 4)) + 1.0
    pairs = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert fits.mean_distance_gamma(convert(X)) == pytest.approx(1.0 / pairs.mean())


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


def test_a_missing_package_skips_a_measurement():
    spec = runner.Measurement("peer", "generated", "no.Such", {}, requires="no-such-package")
    record = runner.measure(spec)
    assert record["status"] == "skipped" and "no-such-package" in record["message"]


def test_what_the_fit_gave_is_kept_before_the_prediction(monkeypatch):
    class Endless(TrialMachine):
        def predict(self, X):
            if len(X) > 10:
                raise TimeoutError
            return super().predict(X)

    monkeypatch.setattr(child, "build", lambda *_: Endless())
    spec = {"estimator": "", "params": {}, "threads": 1, "repeats": 1, "warmup_rows": 20}
    kept = []
    with pytest.raises(TimeoutError):
        child.measure(spec, datasets.load("generated"), kept.append)
    assert kept[0]["fit_seconds"] > 0 and kept[0]["n_vectors"] == 7


def test_a_half_written_file_counts_as_none(tmp_path):
    path = tmp_path / "result.json"
    assert runner.read_if_whole(path) == {}
    path.write_text('{"fit_seconds": 1')
    assert runner.read_if_whole(path) == {}
    path.write_text('{"fit_seconds": 1}')
    assert runner.read_if_whole(path) == {"fit_seconds": 1}


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


def test_a_multiple_of_the_mean_distance_gamma_is_the_same_number_for_all():
    X = np.random.default_rng(0).standard_normal((30, 4))
    expected = 8.0 * fits.mean_distance_gamma(X)
    for path in (SVC, "widemargin.CoreVectorClassifier"):
        assert fits.build(path, {"gamma": {"mean_distance": 8.0}}, X, 1).gamma == expected


def test_the_command_lists_its_benchmarks(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in BENCHMARKS)
    assert main(["nothing"]) == 2 and listing() in capsys.readouterr().err


def test_the_growth_exponent_of_a_power_is_the_power():
    rows = [1e3, 1e4, 1e6]
    assert growth_exponent(rows, [3 * n**1.2 for n in rows]) == pytest.approx(1.2)
    assert growth_exponent([1e3], [1.0]) is None
