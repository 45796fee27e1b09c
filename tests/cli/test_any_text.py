"""Whatever a CSV file holds, it is fitted or refused; a model that comes of it can be used."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin.cli import main

CELLS = st.sampled_from(
    ["1", "2", "3.5", "-1e5", "", "NA", "?", "x", "ä", "inf", "1e400", "True", "False", '"a,b"',
     '"q', "'", " 1", "0x1F", "١", "\x00", "9" * 30, "1_000", "[b]", "2020-01-01"]
)  # fmt: skip
COLUMNS = st.one_of(
    st.just(CELLS),
    st.just(st.sampled_from(["1", "2", "3.5", "4", ""])),
    st.just(st.sampled_from(["x", "y", "z"])),
    st.just(st.sampled_from(["True", "False"])),
)
USED = (0, 2, 3, 4, 5, 6)


@st.composite
def tables(draw):
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=3))
    label = draw(COLUMNS)
    n = draw(st.sampled_from([0, 1, 2, 8, 30]))
    names = draw(st.permutations(["a", "b", "c"]))[: len(columns)]
    rows = [",".join(draw(cell) for cell in (*columns, label)) for _ in range(n)]
    return "\n".join([",".join([*names, "label"]), *rows])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=tables(), task=st.sampled_from([(), ("--task", "outliers"), ("--memory", "10MB")]))
def test_any_table_is_fitted_or_refused(text, task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(text, encoding="utf-8")
    words = ["data.csv", "--quiet"]
    code = main(["fit", *words, "--target", "label", "--out", "m.skops", *task])
    assert code in USED
    if code == 0:
        assert main(["predict", "m.skops", *words]) == 0
        assert main(["evaluate", "m.skops", *words]) == 0
        assert main(["info", "m.skops"]) == 0
