"""Data and models for the command line, in a folder that is the current one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from widemargin.cli import main


@pytest.fixture(scope="session")
def wine_folder(tmp_path_factory):
    """A folder with a table of wines and a model of it; not to be written into."""
    folder = tmp_path_factory.mktemp("wine")
    frame = load_wine(as_frame=True).frame.rename(columns={"target": "label"})
    frame["label"] = np.array(["barolo", "grignolino", "barbera"])[frame["label"]]
    frame["region"] = np.where(np.arange(len(frame)) % 3, "nord", "süd")
    frame.loc[::20, "region"] = None
    frame.loc[3:9, "ash"] = np.nan
    frame.to_csv(folder / "wine.csv", index=False)
    frame.to_parquet(folder / "wine.parquet")
    words = ["fit", folder / "wine.csv", "--target", "label", "--out", folder / "wine.skops"]
    assert main([*map(str, words), "--quiet"]) == 0
    return folder


@pytest.fixture
def wine(wine_folder):
    return pd.read_csv(wine_folder / "wine.csv")


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder: its exit code, what it prints, and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def run(*words):
        code = main([str(word) for word in words])
        printed, said = capsys.readouterr()
        assert "Traceback" not in said + printed
        return code, printed, said

    return run
