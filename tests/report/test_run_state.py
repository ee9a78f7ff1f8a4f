"""Where a run stands, asked for one run after the other of a whole fleet."""

import sqlite3
import sys
from pathlib import Path
from types import FrameType

import pytest

from bulk.report.run_state import run_state_of
from tests.report.ledgers import START, Run, finished


@pytest.mark.interpreted
def test_the_ledger_is_opened_once(tmp_path: Path) -> None:
    """Opening a ledger is most of what a look at a run costs, and a list may have thousands of runs."""
    run = Run(tmp_path / "run")
    opened = 0

    def count(_frame: FrameType, event: str, called: object) -> None:
        nonlocal opened
        opened += event == "c_call" and called is sqlite3.connect

    view = run.epoch(ended=[finished(0), finished(1, "failed")])
    sys.setprofile(count)
    try:
        run_state = run_state_of(view, START + 5)
    finally:
        sys.setprofile(None)
    assert [job.left for job in run_state.jobs] == [1]
    assert opened == 1
