"""What the command line cannot do, said in a sentence, with a number for scripts."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode", "Refusal"]


class ExitCode(IntEnum):
    """What the command's exit status says."""

    DONE = 0
    FAULT = 1
    """A fault of ours."""
    USAGE = 2
    """Options that do not go together, or are not known."""
    FILE = 3
    """A file that is not there, or cannot be read or written."""
    DATA = 4
    """Data that cannot be used as asked: columns, types, classes."""
    MODEL = 5
    """A file that is not a model, or a model that does not fit the data."""
    LIMIT = 6
    """Not enough memory or disk."""
    INTERRUPTED = 130
    """Ctrl-C before there was a model."""


class Refusal(Exception):
    """Bad input: the message names the file or option, what is wrong, and the remedy.

    Parameters
    ----------
    message : str
        The sentence.
    code : ExitCode
        The exit status.
    """

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
