"""The live display: what fits, what matters, and a terminal that changes or goes away."""

import fcntl
import io
import os
import pty
import select
import struct
import termios
import threading
import tty
from contextlib import contextmanager, suppress

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from bulk.cli.progress import live, painter, plain
from bulk.cli.progress.painter import display
from bulk.clock import Clock
from bulk.status import Wait, WaitKind
from tests.cli.progress.pictures import busy
from tests.cli.progress.screen import Screen
from tests.report.ledgers import START, job_status, status

HOSTILE = "[red]x[/]\x1b]0;t\x07\u202e\nevil"


@example(columns=20, rows=1, jobs=0, waits=0, names="\u1b6b")  # takes no cell
@example(columns=20, rows=9, jobs=2, waits=2, names="漢" * 20)  # two cells each
@given(
    columns=st.integers(20, 200),
    rows=st.integers(1, 60),
    jobs=st.integers(0, 60),
    waits=st.integers(0, 300),
    names=st.text(max_size=20),
)
def test_the_picture_fits(columns, rows, jobs, waits, names):
    """However many jobs, buckets and waits there are, the picture is no higher and no wider than the terminal."""
    shown = busy(jobs, waits, name=names, why=HOSTILE)
    console = Console(width=columns, height=rows, file=io.StringIO(), color_system=None)
    console.print(live.Picture(shown, START + 61, columns, rows))
    printed = console.file.getvalue().removesuffix("\n").split("\n")  # type: ignore[attr-defined]
    assert len(printed) <= rows
    assert all(cell_len(line) <= columns for line in printed)


def test_the_picture_says_what_matters():
    """Jobs with what failed first, buckets with what is left, what is waited for, and when it is done."""
    shown = busy(2, 3, retries=1, settled=2)
    console = Console(width=150, file=io.StringIO(), color_system=None)
    console.print(live.Picture(shown, START + 60, 150, 40))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for words in (
        "42/100",
        "2 failed  40 succeeded",
        "0/5,000 left  used up until",
        "2,000/5,000 left  resets",
        "done about",
    ):
        assert words in printed
    for words in ("61 of 64 in flight", "1 repeated", "2 settled", "waiting: lane acme/r2 2 ahead (3 items)", "1 min"):
        assert words in printed


def test_hidden_jobs_are_counted():
    """Jobs that find no room are summed up by their state, running ones are shown first."""
    jobs = tuple(job_status(f"done-{number}", state="complete") for number in range(30))
    jobs += (job_status("busy"), job_status("later", state="waiting", waits_for=("busy",), outcomes={}))
    console = Console(width=100, file=io.StringIO(), color_system=None)
    console.print(live.Picture(status(START, jobs=jobs), START, 100, 8))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "busy" in printed
    assert "waits for busy" in printed
    assert "and 27 more jobs: 27 complete" in printed


@contextmanager
def _terminal(columns, rows):
    """A pseudo-terminal: its side for a person (a descriptor) and its side for a program (a text stream)."""
    mine, theirs = pty.openpty()
    tty.setraw(theirs)
    _resize(theirs, columns, rows)
    stream = os.fdopen(theirs, "w", encoding="utf-8")
    try:
        yield mine, stream
    finally:
        for close in (stream.close, lambda: os.close(mine)):
            with suppress(OSError):
                close()


def _resize(descriptor, columns, rows):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _read_until(mine, words, screen):
    """Feed the screen with what comes until it shows `words`."""
    got = b""
    while words not in screen.text:
        assert select.select([mine], [], [], 10)[0], f"{words!r} never came; the screen shows:\n{screen.text}"
        got += os.read(mine, 65_536)
        try:
            text = got.decode()
        except UnicodeDecodeError:
            continue
        got = b""
        screen.feed(text)


def test_the_live_display_on_a_terminal(monkeypatch):
    """It follows the run, fits after a resize, prints notes above itself, and leaves nothing behind but those."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    screen = Screen(24)
    with _terminal(100, 24) as (mine, stream):
        with display("auto", stream, environ={"TERM": "xterm"}) as shown:
            shown.update(busy(40, 200, name="first"))
            _read_until(mine, "first  running", screen)
            assert not screen.is_cursor_shown
            shown.note(f"note {HOSTILE}")
            shown.update(busy(1, 0, name="second"))
            _read_until(mine, "second  running", screen)
            assert "first" not in screen.text
            _resize(stream.fileno(), 100, 6)
            shown.update(busy(40, 200, name="third"))
            _read_until(mine, "third  running", screen)
            assert len(screen.text.splitlines()) <= 6  # the note, and a picture of at most five rows
        _read_until(mine, "note [red]x[/] evil", screen)
        while select.select([mine], [], [], 0.05)[0]:
            screen.feed(os.read(mine, 65_536).decode())
        assert screen.text == "note [red]x[/] evil"
        assert vars(screen)["is_cursor_shown"]
        assert screen.highest_climb < 24


WAITS = (
    Wait("platform unreachable", START + 70, 61, WaitKind.UNREACHABLE, "can't connect to code:443 (refused)", 12),
    Wait("lane acme/api 37 ahead", None, 37, WaitKind.LANE),
)


def _full(**fields):
    """A run with something of everything, each word of which must be seen."""
    jobs = (
        job_status(
            "codeowners",
            operation="contents.put",
            items=12_000,
            outcomes={"succeeded": 3_100, "unchanged": 40, "failed": 12},
            failure="conflict: somebody else changed it",
            failures=12,
        ),
        job_status("dependency-snapshots", items=100_000, outcomes={"succeeded": 88_000}),
        job_status("readmes", state="waiting", outcomes={}, waits_for=("codeowners", "dependency-snapshots")),
    )
    return msgspec.structs.replace(busy(0, 0), jobs=jobs, waits=WAITS, **fields)


WORDS = (
    "codeowners", "dependency-snapshots", "3,152/12,000", "12 failed", "3,100 succeeded", "40 unchanged",
    "waits for codeowners, dependency-snapshots", "used up until", "resets", "done about", "8.3/s",
    "61 of 64 in flight",
    "99 requests", "12 × conflict: somebody else changed it (codeowners)", "platform unreachable until", "(12 times)",
    "can't connect to code:443 (refused) (61 items)", "lane acme/api 37 ahead (37 items)",
)  # fmt: skip


def _words(shown: str) -> str:
    """What is shown, however it was broken into rows and columns: the letters alone."""
    return "".join(shown.split())


def _is_all_there(shown: str) -> list[str]:
    """The words that are missing. A cell that is broken into rows has other cells between: then each word counts."""
    letters = _words(shown)
    return [each for each in WORDS if _words(each) not in letters and not all(word in shown for word in each.split())]


@pytest.mark.parametrize("columns", [110, 80, 60])
def test_nothing_is_cut_that_has_room(columns):
    """On a terminal of 24 rows everything is told, whatever its width: no ellipsis, and no word is missing."""
    console = Console(width=columns, height=24, file=io.StringIO(), color_system=None)
    console.print(live.Picture(_full(), START + 61, columns, 23))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in printed
    assert _is_all_there(printed) == []


def test_nothing_is_cut_where_there_is_no_terminal():
    """A line for a log has all of it too, however long it becomes."""
    said = plain.line(_full())
    assert "…" not in said
    for words in ("12 × conflict: somebody else changed it", "(12 times): can't connect to code:443 (refused)"):
        assert words in said


def test_nothing_is_left_behind_when_the_terminal_becomes_narrower(monkeypatch, figure):
    """110 columns, then 80, then 60 and back: after each redraw the screen shows one picture, and no rest of another.

    The terminal breaks the rows that stand there when it becomes narrower, as terminals do."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    screen = Screen(40, 110)
    with _terminal(110, 40) as (mine, stream):
        with display("auto", stream, environ={"TERM": "xterm"}) as shown:
            shown.note("a note above")
            for number, columns in enumerate((110, 80, 60, 110)):
                _resize(stream.fileno(), columns, 40)
                screen.resize(columns)
                broken = screen.text
                shown.update(_full(name=f"picture-{number}"))
                _read_until(mine, f"picture-{number}  running", screen)
                _read_until(mine, "37 ahead (37 items)", screen)
                figure(f"{columns} columns, before:\n{broken}\nafter:\n{screen.text}")
                assert screen.text.startswith(f"a note above\npicture-{number}  running")
                assert screen.text.count("running") == screen.text.count("done about") == 1
                assert screen.text.endswith("37 ahead (37 items)")
                assert all(len(row) <= columns for row in screen.rows)
                assert _is_all_there(screen.text) == ["resets"]  # that was in the past
        while select.select([mine], [], [], 0.05)[0]:
            screen.feed(os.read(mine, 65_536).decode())
        assert screen.text == "a note above"


def test_a_terminal_that_goes_away_breaks_nothing():
    """The terminal is closed in the middle of the run: the run does not notice."""
    screen = Screen(24)
    with _terminal(80, 24) as (mine, stream):
        with display("rich", stream, environ={}) as shown:
            shown.update(busy(name="first"))
            _read_until(mine, "first  running", screen)
            os.close(mine)
            shown.update(busy(name="second"))
        assert not shown._thread.is_alive()  # type: ignore[attr-defined]


def test_a_terminal_that_takes_nothing_holds_nothing_up(monkeypatch):
    """Somebody has stopped the terminal's output: updates cost nothing, and the end waits only for a moment."""
    monkeypatch.setattr(painter, "PARTING_S", 0.1)
    taken, let_go = threading.Event(), threading.Event()

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            taken.set()
            assert let_go.wait(120)
            return len(text)

    start = Clock().monotonic()
    with display("plain", Stuck()) as shown:
        shown.note("x")
        assert taken.wait(60)
        for _ in range(5000):
            shown.update(busy(0, 0))
            shown.note("y")
    assert shown._thread.is_alive()  # type: ignore[attr-defined]
    assert Clock().monotonic() - start < 20, "nobody waits until it is let go"
    let_go.set()
    shown._thread.join(60)  # type: ignore[attr-defined]
    assert not shown._thread.is_alive()  # type: ignore[attr-defined]
