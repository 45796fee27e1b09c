"""``python -m widemargin.cli``: the command line, where the command itself is not on the path."""

import sys

from widemargin.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
