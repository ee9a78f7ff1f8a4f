"""A command that reads for long says on the terminal what it does, and leaves nothing of that behind."""

import asyncio
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bulk.cli import foreground
from bulk.cli.app import commands
from bulk.cli.progress import work
from tests.cli.progress.screen import Screen
from tests.e2e.support.platform import BULK, Home, served

README = {"owner": "acme-eng", "repo": "hello-world"}
READING = (
    (("diff", "run", "run"), "comparing run with run"),
    (("check", "manifest.yaml"), "checking manifest.yaml"),
    (("rehearse", "manifest.yaml", "--offline"), "rehearsing manifest.yaml"),
    (("verify", "run"), "verifying run"),
    (("verify", "run", "--live"), "reading run"),
    (("undo", "run", "-o", "undo.yaml"), "reading run"),
    (("undo", "run", "-o", "undo.yaml"), "writing undo.yaml"),
    (("runs", "."), "reading the runs below ."),
    (("report", "run"), "reading run"),
    (("report", "run", "--format", "html"), "reading run"),
    (("report", "run", "--format", "csv"), "writing the items of run"),
    (("report", "run", "--only", "failed"), "writing the items of run"),
    (("retry", "run", "--code", "conflict"), "reading run"),
    (("tables", "run", "--to", "sqlite", "--out", "tables.sqlite"), "writing tables.sqlite"),
    (("sql", "run", "SELECT 1"), "reading run"),
)

COUNTING = (
    (("plan", "manifest.yaml"), "planning manifest.yaml"),
    (("check", "manifest.yaml"), "checking manifest.yaml"),
    (("rehearse", "manifest.yaml", "--offline"), "checking manifest.yaml"),
    (("rehearse", "manifest.yaml", "--offline", "--seeds", "1"), "rehearsing manifest.yaml"),
    (("verify", "run"), "verifying run"),
    (("verify", "run", "--live"), "reading run"),
    (("tables", "run", "--to", "sqlite", "--out", "counted.sqlite"), "writing counted.sqlite"),
    (("report", "run", "--format", "csv"), "writing the items of run"),
)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A folder with a manifest and a run, of whose two items one failed."""
    folder = tmp_path_factory.mktemp("work")
    home = Home(folder)
    with served(folder / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, {"a": {"operation": "readme.get", "items": [README, {**README, "repo": "no"}]}})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", "--progress", "none").exit_code == 1
        yield home


def said_by(command: tuple[str, ...], home: Home, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command writes to a terminal that may not be silent for any time."""
    monkeypatch.setattr(work, "FIRST_S", 0.0)
    monkeypatch.chdir(home.folder)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("BULK_TOKEN", "sbx-site-admin")
    shown = _Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    commands.main(list(command), standalone_mode=False)
    return shown.getvalue()


@pytest.mark.parametrize(("command", "words"), COUNTING, ids=lambda each: " ".join(each) if type(each) is tuple else "")
def test_every_command_that_reads_items_counts_them(
    home: Home, command: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for many items sees how many of them are done."""
    assert re.search(rf"{words} · [12] items?", said_by(command, home, monkeypatch))


@pytest.mark.parametrize(("command", "words"), READING, ids=lambda each: " ".join(each) if type(each) is tuple else "")
def test_every_command_that_reads_says_so(
    home: Home, command: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it would take longer than it may be silent: on a terminal, never in the result, and gone at the end."""
    said = said_by(command, home, monkeypatch)
    assert f"\r\x1b[J{words}" in said
    screen = Screen(24)
    screen.feed(said)
    assert words not in "\n".join(screen.lines)


@pytest.mark.parametrize(("is_seen", "term"), [(False, "xterm"), (True, "dumb")])
def test_nothing_is_shown_where_nobody_sees_it(monkeypatch: pytest.MonkeyPatch, is_seen: bool, term: str) -> None:
    """Standard error is a file, or a terminal that can't go back in its row."""
    monkeypatch.setattr(work, "FIRST_S", 0.0)
    monkeypatch.setenv("TERM", term)
    shown = _Terminal() if is_seen else io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with work.at_work("reading") as tell:
        tell(1)
    assert shown.getvalue() == ""


def test_a_run_that_reads_for_long_before_it_has_a_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name stands on the terminal from the beginning: a retry reads a large ledger for seconds."""
    seen = threading.Event()

    class Watched(_Terminal):
        def write(self, text: str) -> int:
            if "checking" in text:
                seen.set()
            return super().write(text)

    async def begun(*_: object) -> Any:
        assert await asyncio.to_thread(seen.wait, 30)

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Watched())
    foreground.report_of(begun, tmp_path / "run", cache=None, no_cache=True, progress="auto")


def test_a_check_that_waits_for_its_items(home: Home) -> None:
    """What it does stands on the terminal after a second; standard output has nothing of it."""
    folder: Path = home.folder
    url = "https://code.example.com/api/v3"
    home.manifest(url, {"a": {"operation": "readme.get", "items": "-"}}, "waiting.yaml")
    ours, theirs = pty.openpty()
    environment = {**home.environment(), "TERM": "xterm"}
    command = [*BULK, "check", "waiting.yaml"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        while b"checking waiting.yaml" not in said:
            said += os.read(ours, 4096)
        out, _ = process.communicate(json.dumps(README).encode() + b"\n", timeout=60)
        os.close(ours)
    assert (process.returncode, b"checking" in out, out.startswith(b"job")) == (0, False, True)


HELD = """
import sys
class Held:
    def find_spec(self, name, *_):
        if name == "bulk.engine.commands":
            sys.stdin.readline()
sys.meta_path.insert(0, Held())
"""


def test_a_plan_that_is_still_being_imported(home: Home) -> None:
    """What the command needs to be loaded for counts, too: what it does is there while that lasts."""
    folder: Path = home.folder
    home.manifest("http://127.0.0.1:9/api/v3", {"a": {"operation": "readme.get", "items": []}}, "empty.yaml")
    (folder / "sitecustomize.py").write_text(HELD)
    ours, theirs = pty.openpty()
    environment = {**home.environment(), "TERM": "xterm", "PYTHONPATH": str(folder)}
    with subprocess.Popen(
        [*BULK, "plan", "empty.yaml"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        try:
            assert select.select([ours], [], [], 20.0)[0], "nothing is shown"
            assert b"planning empty.yaml" in os.read(ours, 4096)
        finally:
            process.communicate(b"\n", timeout=60)
            os.close(ours)
