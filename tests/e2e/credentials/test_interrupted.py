"""Ctrl-C while a program is asked for a token, a key or a signature: the command ends at once, and the program too."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.support.platform import Home, has_ended, wait_for

SOON_S = 15.0
"""Half of what a program may take (seconds)."""
HANGS = "command:sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000'"
CREDENTIALS: dict[str, object] = {
    "token": HANGS,
    "key": {"app": {"client_id": "Iv1.fleet", "private_key": HANGS}},
    "signature": {"app": {"client_id": "Iv1.fleet", "sign": HANGS}},
}
COMMANDS = {
    "run": ("run", "manifest.yaml", "--run-dir", "run", "--no-cache"),
    "plan": ("plan", "manifest.yaml"),
    "check": ("credentials", "check", "manifest.yaml"),
    "probe": ("credentials", "check", "manifest.yaml", "--probe"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("gives", CREDENTIALS)
def test_a_program_that_hangs_holds_up_no_interrupt(tmp_path: Path, gives: str, command: str) -> None:
    """It is not waited for until its 30 seconds are over, and nothing that it started is left."""
    home = Home(tmp_path / "home")
    about = {"base_url": "http://127.0.0.1:9/api/v3", "credentials": {"fleet": CREDENTIALS[gives]}}
    job = {"operation": "readme.get", "credential": "fleet", "items": [{"owner": "org-1", "repo": "api"}]}
    home.manifest("", {"reads": job}, platform=about)
    with home.running(*COMMANDS[command]) as process:
        wait_for((home.folder / "pid").exists, process)
        program = int((home.folder / "pid").read_text())
        process.send_signal(signal.SIGINT)
        assert has_ended(process, SOON_S)
        _, err = process.communicate()
    assert (process.returncode, "Traceback" in err) == (130, False), err
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)
