"""From the options of the command line to the values that commands work with."""

from __future__ import annotations

from argparse import Namespace

from widemargin.cli.refusal import ExitCode, Refusal
from widemargin.cli.table_files import ReadOptions
from widemargin.cli.training_rows import Columns
from widemargin.rows import parse_memory

__all__ = ["columns_of", "memory_of", "read_options_of"]


def memory_of(arguments: Namespace) -> int:
    """Return the bytes that ``--memory`` stands for."""
    try:
        return parse_memory(arguments.memory or "auto")
    except (ValueError, TypeError) as error:
        raise Refusal(f"--memory {arguments.memory}: {error}", ExitCode.USAGE) from None


def read_options_of(arguments: Namespace) -> ReadOptions:
    """Return how files are to be read."""
    delimiter = arguments.delimiter
    if delimiter is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(delimiter, delimiter)
        if len(delimiter) != 1:
            raise Refusal(
                f"--delimiter {arguments.delimiter!r} must be one character, or 'tab' or 'space'.",
                ExitCode.USAGE,
            )
    return ReadOptions(
        delimiter, arguments.encoding, not arguments.no_header, tuple(arguments.missing)
    )


def columns_of(arguments: Namespace) -> Columns:
    """Return which columns are what."""
    if arguments.target is not None and arguments.target in arguments.ignore:
        raise Refusal(
            f"--ignore {arguments.target} is the --target as well; leave one of them out.",
            ExitCode.USAGE,
        )
    if arguments.weights is not None and arguments.weights == arguments.target:
        raise Refusal(
            f"--weights {arguments.weights} is the --target as well; name another column.",
            ExitCode.USAGE,
        )
    return Columns(
        arguments.target, arguments.weights, tuple(arguments.ignore), tuple(arguments.categories)
    )
