"""The commands: they parse, call, print and give an exit code; what they do is done elsewhere.

One file for each group of commands: `running` (run, retry), `planning` (plan, check), `looking` (status, report, diff),
`catalog` (operations, rate-limit, completion), `rehearsing` (sandbox, demo). `app` puts them together, and `ending` is
the one place where an error becomes a message and an exit code. What costs time to import is imported inside a command,
so that `bulk --help` answers at once.
"""

from bulk.cli.app import main

__all__ = ["main"]
