"""The engine: one run from a manifest to its report, and everything that a program or a command asks of it.

`commands.py` has what the commands do, `run.py` wires the stages of a run, and `library/` is the same for programs.
"""
