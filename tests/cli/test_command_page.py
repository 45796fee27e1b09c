"""The page about the command line says what is so."""

import re
import shlex
import shutil
from pathlib import Path

from widemargin.cli.refusal import ExitCode

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page_run_in_their_order(command, wine_folder):
    shutil.copy(wine_folder / "wine.csv", "wine.csv")
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line[:10] == "widemargin"]
    assert len(lines) >= 10
    for line in lines:
        words = shlex.split(line)[1:]
        code, _, said = command(*words, *(["--param", "Cs=2"] if "--search" in words else []))
        assert code == 0, (line, said)
    assert Path("report.html").stat().st_size > 10_000


def test_the_python_of_the_page_runs():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    assert "Confusions" in names["page"]


def test_the_exit_codes_are_those_of_the_page():
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}
