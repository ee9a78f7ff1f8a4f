"""The command line: it parses arguments, calls the engine, prints, and gives an exit code.

`app.py` puts the commands together; each has its own file in `commands/`. `errors.py` is the one place where an error
becomes a message and an exit code. A command imports what takes time to import when it runs, so that `bulk --help`
answers at once.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line as `app.main` does; Ctrl-C ends it cleanly also while the commands are still imported, and
    while it is told of an earlier Ctrl-C."""
    try:
        from bulk.cli.app import main as run

        return run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("bulk: interrupted by SIGINT\n")
        return 130
