"""What is said: bars where somebody looks, nothing where nobody does."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from tests.reference.data import wine
from widemargin import MarginClassifier
from widemargin.cli.voice import Voice, plain


@pytest.fixture
def shown():
    """A voice at a terminal, and what is written there."""
    voice, screen = Voice(), io.StringIO()
    voice._console = Console(file=screen, force_terminal=True, width=140)
    return voice, screen


def test_the_steps_of_a_fit_are_shown_beside_a_bar(shown, capsys):
    voice, screen = shown
    machine = MarginClassifier(engine="span", max_vectors=20)
    with voice.fitting(machine):
        machine.fit(*wine())
    assert "gap" in screen.getvalue()
    assert machine.verbose == 0
    assert capsys.readouterr().out == ""


def test_an_error_in_a_fit_leaves_the_estimator_as_it_was(shown):
    voice, _ = shown
    machine = MarginClassifier(C=-1.0)
    with pytest.raises(ValueError, match="C=-1"), voice.fitting(machine):
        machine.fit(*wine())
    assert machine.verbose == 0


def test_rows_are_counted_on_a_terminal_and_nowhere_else(shown, capsys):
    voice, screen = shown
    for each in (voice, Voice(), Voice(quiet=True), Voice(json=True)):
        with each.counting("reading [bold]data.csv[/]", 100) as count:
            count(100)
    assert "reading [bold]data.csv[/]" in screen.getvalue()
    assert capsys.readouterr() == ("", "")


def test_every_value_of_a_result_can_be_json():
    facts = {"a": np.float32(0.5), 1: [np.int64(3), float("nan")], "b": (None, True), "c": object}
    assert json.loads(json.dumps(plain(facts))) == {
        "a": 0.5,
        "1": [3, None],
        "b": [None, True],
        "c": "<class 'object'>",
    }
