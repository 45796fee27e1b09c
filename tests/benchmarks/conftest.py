"""A folder of data sets for each test that asks for one."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    return tmp_path
