"""The command line: it parses arguments, calls the engine, prints, and gives an exit code.

`app.py` puts the commands together; each has its own file in `commands/`. `errors.py` is the one place where an error
becomes a message and an exit code. A command imports what takes time to import when it runs, so that `bulk --help`
answers at once.
"""

from bulk.cli.app import main

__all__ = ["main"]
