"""Before what can't be undone a person is asked, on a real pseudo-terminal, and a no leaves no trace."""

import os
import pty
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import Home, Process, Served, served, start

QUESTION = b"Begin? [y/N] "
QUIET_S = 0.8
"""Nothing is written for this time while the question stands: longer than between two pictures of the live display."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all of them."""
    with served(tmp_path_factory.mktemp("sandbox"), "--rate-limit", "core=100000/3600") as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty folder."""
    return Home(tmp_path)


def organizations(*logins: str) -> dict[str, Any]:
    """A job that can't be undone."""
    items = [{"login": login, "admin": "octoadmin", "if_exists": "unchanged"} for login in logins]
    return {"create": {"operation": "organization.create", "items": items}}


def files(count: int) -> dict[str, Any]:
    """A job that writes `count` files."""
    item = {"owner": "acme-eng", "repo": "hello-world", "content": "QQ==", "message": "m"}
    items = [{**item, "path": f"A{number}"} for number in range(count)]
    return {"files": {"operation": "contents.put", "items": items}}


@dataclass
class Terminal:
    """A command whose standard input and standard error are a terminal."""

    process: Process
    descriptor: int
    seen: bytearray = field(default_factory=bytearray)

    def read(self, timeout_s: float) -> bool:
        """Read once; False where nothing came, or nothing will."""
        if not select.select([self.descriptor], [], [], timeout_s)[0]:
            return False
        try:
            data = os.read(self.descriptor, 65_536)
        except OSError:  # the other end is closed
            return False
        self.seen += data
        return bool(data)

    def wait_question(self) -> str:
        """What was shown up to the question, behind which nothing is written."""
        while QUESTION not in self.seen:
            assert self.read(60.0), self.seen.decode()
        assert not self.read(QUIET_S), self.seen.decode()
        return self.seen.decode().replace("\r\n", "\n")

    def answer(self, text: bytes) -> None:
        """Type it."""
        os.write(self.descriptor, text)

    def end(self) -> int:
        """The exit code; what was shown meanwhile is in `seen`."""
        while self.read(60.0):
            pass
        return self.process.wait(60)


@contextmanager
def on_terminal(home: Home, *arguments: str, stderr: int | None = None) -> Iterator[Terminal]:
    """`bulk` on a terminal of its own; `stderr` may be elsewhere."""
    ours, theirs = pty.openpty()
    with start(
        arguments,
        home.folder,
        {**home.environment(), "TERM": "xterm", "NO_COLOR": "1"},
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs if stderr is None else stderr,
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            os.close(ours)


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"maybe\n", b"\x04"])
def test_a_no_leaves_no_trace(home: Home, sandbox: Served, answer: bytes) -> None:
    """Any answer but yes, and Ctrl-D: exit 8, not one request, no run directory; the summary says why it was asked."""
    home.manifest(sandbox.base_url, organizations("never-one", "never-two"))
    before = len(sandbox.journal())
    with on_terminal(home, "run", "manifest.yaml") as terminal:
        shown = terminal.wait_question()
        terminal.answer(answer)
        assert terminal.end() == 8
    assert f"manifest on {sandbox.base_url}:\n  create  organization.create  2 items  4 requests\n" in shown
    assert "2 items of create: organization.create can't be undone." in shown
    assert "not begun: nothing was sent, and no run directory was left" in terminal.seen.decode()
    assert len(sandbox.journal()) == before
    assert not (home.folder / "runs").exists()


def test_an_interrupt_is_a_no(home: Home, sandbox: Served) -> None:
    """So is Ctrl-C, the first time; a run directory that was named is not left either."""
    home.manifest(sandbox.base_url, organizations("never-three"))
    before = len(sandbox.journal())
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "run") as terminal:
        terminal.wait_question()
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 8
    assert len(sandbox.journal()) == before
    assert not (home.folder / "run").exists()


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_a_yes_begins(home: Home, sandbox: Served, answer: bytes) -> None:
    """The run goes on as without a question."""
    home.manifest(sandbox.base_url, organizations("asked-one"))
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "run") as terminal:
        terminal.wait_question()
        terminal.answer(answer)
        assert terminal.end() == 0, terminal.seen.decode()
    assert home.results("run")[0]["outcome"] in ("succeeded", "unchanged")


def test_many_writes_are_asked_about(home: Home, sandbox: Served) -> None:
    """More items than `--confirm-above` are asked about; as many, reads, and --yes are not."""
    home.manifest(sandbox.base_url, files(3))
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "a", "--confirm-above", "2") as terminal:
        assert "3 items would be written, which is more than 2 (--confirm-above)." in terminal.wait_question()
        terminal.answer(b"n\n")
        assert terminal.end() == 8
    for directory, options in (("b", ["--confirm-above", "3"]), ("c", ["--confirm-above", "2", "--yes"]), ("d", [])):
        with on_terminal(home, "run", "manifest.yaml", "--run-dir", directory, *options) as terminal:
            assert terminal.end() == 0
        assert QUESTION not in terminal.seen
    reads = {"operation": "readme.get", "items": [{"owner": "acme-eng", "repo": "hello-world"}] * 3}
    home.manifest(sandbox.base_url, {"reads": reads})
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "e", "--confirm-above", "0") as terminal:
        assert terminal.end() == 0
    assert QUESTION not in terminal.seen


def test_unknown_numbers_are_asked_about(home: Home, sandbox: Served) -> None:
    """Items from results, whose number nobody knows, are asked about where they are written."""
    derived = {"from": "hooks", "map": {"org": "item.org", "hook_id": "result.id"}}
    jobs = {
        "hooks": {"operation": "webhook.list", "items": [{"org": "acme-eng"}]},
        "gone": {"operation": "webhook.delete", "items": derived},
    }
    home.manifest(sandbox.base_url, jobs)
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "run") as terminal:
        assert "gone writes items from the results of hooks, nobody knows yet how many." in terminal.wait_question()
        terminal.answer(b"n\n")
        assert terminal.end() == 8


def test_a_run_that_goes_on_is_not_asked_about(home: Home, sandbox: Served) -> None:
    """What was approved once needs no second answer."""
    home.manifest(sandbox.base_url, organizations("asked-two", "asked-three"))
    first = home.run("run", "manifest.yaml", "--run-dir", "run", "--limit", "1")
    assert first.exit_code == 0, first.err
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "run") as terminal:
        assert terminal.end() == 0
    assert QUESTION not in terminal.seen
    assert len(home.results("run")) == 2


def test_without_a_terminal_nothing_is_asked(home: Home, sandbox: Served) -> None:
    """A script works as before: without a terminal, and with its standard error elsewhere."""
    home.manifest(sandbox.base_url, organizations("asked-four"))
    ran = home.run("run", "manifest.yaml", "--run-dir", "a")
    assert (ran.exit_code, "Begin?" in ran.err) == (0, False)
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "b", stderr=subprocess.DEVNULL) as terminal:
        assert terminal.end() == 0


def test_always_needs_yes(home: Home, sandbox: Served) -> None:
    """`confirm: always`: without --yes exit 8, on a terminal and without one, and nothing is sent."""
    home.manifest(sandbox.base_url, files(1), limits={"confirm": "always"})
    before = len(sandbox.journal())
    ran = home.run("run", "manifest.yaml", "--run-dir", "run")
    assert (ran.exit_code, ran.out) == (8, "")
    assert "the manifest says `confirm: always`, so that --yes is needed; nothing was sent" in ran.err
    with on_terminal(home, "run", "manifest.yaml", "--run-dir", "run") as terminal:
        assert terminal.end() == 8
    assert len(sandbox.journal()) == before
    assert not (home.folder / "run").exists()
    assert home.run("run", "manifest.yaml", "--run-dir", "run", "--yes").exit_code == 0


@pytest.mark.soak
def test_the_demo_asks_nothing(home: Home) -> None:
    """`bulk demo` goes on by itself on a terminal too: what it can't undo is in a sandbox of its own."""
    with on_terminal(home, "demo") as terminal:
        while terminal.read(60.0):
            assert QUESTION not in terminal.seen
        assert terminal.process.wait(60) == 0
