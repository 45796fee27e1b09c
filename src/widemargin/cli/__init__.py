"""The command line: fit, predict, evaluate, report, compress and info.

It needs the extra ``[cli]``: pandas, pyarrow, rich and skops. Each command is a file; what they
share is reading (`table_files`, `matrix_files`), what columns are (`column_kinds`), and what is
said (`voice`, `refusal`).
"""

from widemargin.cli.command_line import main

__all__ = ["main"]
