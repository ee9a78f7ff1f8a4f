"""How wide results are printed: as the terminal is, and elsewhere without a limit."""

import os
import pty
import sys

import pytest

from bulk.cli.output import look
from bulk.report.render.terminal import UNLIMITED
from tests.cli.progress.test_live import _resize


def test_the_width_is_the_terminals_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe cuts nothing unless COLUMNS says so; a terminal is as wide as it is, above 120 columns too."""
    monkeypatch.delenv("COLUMNS", raising=False)
    read, write = os.pipe()
    with open(read), open(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert look()["columns"] == UNLIMITED
        for given, columns in (("77", 77), ("0", UNLIMITED), ("x", UNLIMITED), ("-5", UNLIMITED)):
            monkeypatch.setenv("COLUMNS", given)
            assert look()["columns"] == columns
    monkeypatch.delenv("COLUMNS")
    mine, theirs = pty.openpty()
    with open(mine, "rb", buffering=0), open(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        for columns in (60, 200):
            _resize(theirs, columns, 24)
            assert look()["columns"] == columns
