"""The command ``widemargin``: options, commands, and what becomes of errors."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from widemargin import __version__
from widemargin.cli.refusal import ExitCode, Refusal

__all__ = ["main"]

_COMMANDS = {
    "fit": "fit a model to a file of data",
    "predict": "say what a model makes of each row of a file",
    "evaluate": "compare a model with rows whose target is known",
    "report": "write a page about a model: one HTML file",
    "compress": "make the machine of a model smaller",
    "info": "show what is in a model file",
}


class _Parser(argparse.ArgumentParser):
    """Refuses what it does not understand, instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise Refusal(f"{message}. See `{self.prog} --help`.", ExitCode.USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What stands after the name of the command; None takes it from the process.

    Returns
    -------
    int
        The exit status, an `ExitCode`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from widemargin.cli.voice import Voice
    except ImportError as error:
        print(
            f"widemargin: the command line needs {error.name}; pip install 'widemargin[cli]'.",
            file=sys.stderr,
        )
        return ExitCode.FAULT
    voice = Voice("--json" in words, "--quiet" in words)
    try:
        return _run(words, voice)
    except Refusal as refusal:
        voice.refuse(refusal.message, refusal.code)
        return refusal.code
    except KeyboardInterrupt:
        voice.refuse("interrupted before there was a model.", ExitCode.INTERRUPTED)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough, as in `widemargin predict ... | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except MemoryError as error:
        voice.refuse(f"not enough memory ({error}); give less --memory.", ExitCode.LIMIT)
        return ExitCode.LIMIT
    except ImportError as error:
        # Ours say what to install; those of a bare import name what is not there.
        hint = "" if "pip install" in str(error) else "; pip install 'widemargin[cli]'."
        voice.refuse(f"{error}{hint}", ExitCode.USAGE)
        return ExitCode.USAGE
    except (ValueError, TypeError) as error:
        # Errors of the library name the argument, the value and the remedy.
        if "--debug" in words:
            raise
        voice.refuse(str(error), ExitCode.DATA)
        return ExitCode.DATA
    except OSError as error:
        voice.refuse(f"{error.filename or ''}: {error.strerror or error}", ExitCode.FILE)
        return ExitCode.FILE
    except Exception as error:
        if "--debug" in words:
            raise
        voice.refuse(
            f"this should not happen: {type(error).__name__}: {error}. Please report it, with what "
            "`--debug` shows.",
            ExitCode.FAULT,
        )
        return ExitCode.FAULT


def _run(words: list[str], voice: Any) -> int:
    """Parse the words and run a command."""
    parser = _parser()
    if not words:
        parser.print_help()
        return ExitCode.DONE
    try:
        arguments = parser.parse_args(words)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    with warnings.catch_warnings():
        if not arguments.debug:
            # Those of a fit are notes; others are about our own doings, not the user's.
            warnings.simplefilter("ignore")
        _command(arguments.command)(arguments, voice)
    return ExitCode.DONE


def _command(name: str) -> Any:
    """Return the function of a command; each imports what it needs only."""
    if name == "fit":
        from widemargin.cli.fit_command import fit

        return fit
    if name == "predict":
        from widemargin.cli.predict_command import predict

        return predict
    if name == "evaluate":
        from widemargin.cli.evaluate_command import evaluate

        return evaluate
    if name == "report":
        from widemargin.cli.report_command import report

        return report
    if name == "compress":
        from widemargin.cli.compress_command import compress

        return compress
    from widemargin.cli.info_command import info

    return info


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="widemargin",
        description="Kernel machines for classes, numbers and outliers, from files to files.",
        epilog="Exit codes: 2 options, 3 files, 4 data, 5 models, 6 memory or disk, 1 our fault.",
    )
    parser.add_argument("--version", action="version", version=f"widemargin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    found = {
        name: commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        for name, text in _COMMANDS.items()
    }
    _fit_options(found["fit"])
    for name in ("predict", "evaluate", "report"):
        found[name].add_argument("model", help="a file that `widemargin fit` has written")
        found[name].add_argument("data", help="a file of rows")
    found["predict"].add_argument("--out", help="where to write; standard output if left out")
    found["predict"].add_argument("--scores", action="store_true", help="also the margins")
    found["report"].add_argument("--out", required=True, help="the HTML file")
    found["report"].add_argument("--title", help="of the page")
    found["report"].add_argument(
        "--max-time", type=_seconds, default=20.0, help="seconds for what takes long (20)"
    )
    found["report"].add_argument(
        "--learning-curve", action="store_true", help="fit parts of the rows, too"
    )
    found["report"].add_argument("--image", help="rows are pictures: 28x28", metavar="SHAPE")
    found["compress"].add_argument("model", help="a file that `widemargin fit` has written")
    found["compress"].add_argument(
        "--vectors", required=True, help="of each machine: how many, or a share"
    )
    found["compress"].add_argument("--out", required=True, help="the smaller model")
    found["compress"].add_argument("--data", help="rows of the fit, to fit coefficients again")
    found["info"].add_argument("model", help="a file that `widemargin fit` has written")
    for name in ("evaluate", "report", "compress"):
        found[name].add_argument("--target", help="the column to compare with")
    for name in ("report", "compress"):
        found[name].add_argument("--seed", type=_whole, default=0, help="of random draws (0)")
    found["compress"].add_argument("--jobs", type=_jobs, help="threads")
    for name in ("fit", "predict", "evaluate", "report", "compress"):
        _reading_options(found[name])
    for each in found.values():
        each.add_argument("--json", action="store_true", help="print the result as JSON")
        each.add_argument("--quiet", action="store_true", help="no notes and no bars")
        each.add_argument("--debug", action="store_true", help="show where an error comes from")
    return parser


def _fit_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", help="CSV, Parquet, svmlight (.svm), .npy or .npz")
    add("--target", help="the column to predict")
    add("--out", required=True, help="the model file, such as model.skops")
    add("--task", choices=("classes", "numbers", "outliers"), help="found from the target if not")
    add("--estimator", help="a class of widemargin by its name")
    add("--param", action="append", default=[], help="a parameter: --param C=10", metavar="N=V")
    add("--search", action="store_true", help="choose C, kernel and width by cross-validation")
    add("--weights", help="the column of sample weights")
    add("--ignore", nargs="+", default=[], help="columns to leave out", metavar="COLUMN")
    add("--categories", nargs="+", default=[], help="columns of names", metavar="COLUMN")
    add("--scale", choices=("auto", "standard", "none"), default="auto", help="of numbers")
    add("--hold-out", type=float, default=0.0, help="share of the rows to score on", metavar="S")
    add("--max-time", type=_seconds, help="seconds at the most")
    add("--jobs", type=_jobs, help="threads")
    add("--device", help="where to fit, such as cuda")
    add("--seed", type=_whole, default=0, help="of random draws (0)")


def _reading_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--memory", help='how much may be used, such as 2GB; "auto" is half of what is free')
    add("--delimiter", help="between the fields of a CSV file; found if left out")
    add("--encoding", default="utf-8", help="of a CSV file (utf-8)")
    add("--no-header", action="store_true", help="a CSV file has no names of columns")
    add("--missing", nargs="+", default=[], help="texts for missing values", metavar="TEXT")


def _seconds(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} must be more than 0 seconds")
    return number


def _whole(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number from 0 to 4294967295")
    return number


def _jobs(text: str) -> int:
    number = int(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 threads cannot work; give 1 or more, or -1 for all")
    return number
