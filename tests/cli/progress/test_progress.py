"""Progress is shown without ever holding up or breaking the run."""

import fcntl
import io
import json
import os
import pty
import select
import struct
import subprocess
import sys
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
from bulk.errors import UsageError
from bulk.status import RunStatus, Wait
from tests.cli.progress.screen import Screen
from tests.report.ledgers import START, bucket, job_status, status

HOSTILE = "[red]x[/]\x1b]0;t\x07\u202e\nevil"


def busy(jobs: int = 3, waits: int = 2, **fields):
    """A run with so many jobs and waits."""
    return status(
        START + 60,
        jobs=tuple(
            job_status(f"job-{number}", in_flight=4, outcomes={"succeeded": 40, "failed": 2}) for number in range(jobs)
        ),
        buckets=(
            bucket(reset_at=START + 600),
            bucket("scim", remaining=0, closed_because="used up", opens_at=START + 70),
        ),
        waits=tuple(Wait(f"lane acme/r{number} 2 ahead", None, number + 1) for number in range(waits)),
        **({"requests": 99, "per_second": 8.3, "concurrency": 64, "in_flight": 61, "finish_at": START + 900} | fields),
    )


class _Heard(io.StringIO):
    """A stream that lets a test wait for words."""

    def __init__(self) -> None:
        super().__init__()
        self._more = threading.Condition()

    def write(self, text: str) -> int:
        with self._more:
            written = super().write(text)
            self._more.notify_all()
            return written

    def wait_for(self, words: str) -> str:
        with self._more:
            assert self._more.wait_for(lambda: words in self.getvalue(), timeout=10), self.getvalue()
            return self.getvalue()


def test_a_plain_line_says_it_all():
    """One line has items, what went wrong, rate, buckets, what is waited for, and the end."""
    said = plain.line(busy(waits=5))
    assert said.startswith("126/300 items · 6 failed · 8.3/s · scim 0/5,000 · core 2,000/5,000 resets ")
    assert (
        " · 61 in flight · waiting: lane acme/r4 2 ahead, lane acme/r3 2 ahead, lane acme/r2 2 ahead and 2 more" in said
    )
    assert " · done about " in said
    assert "\n" not in said


def test_a_plain_line_of_a_run_that_is_over():
    """At the end the line says how it ended and how long it took."""
    said = plain.line(busy(state="stopped", why="time limit"))
    assert said.startswith("stopped (time limit) · 126/300 items · 6 failed · in 1 min · 99 requests")
    assert "resets" not in said


def test_plain_lines_come_now_and_then():
    """The first line comes after a second, further ones every five, and the last word at the end."""
    stream = io.StringIO()
    face = plain.PlainFace(stream)
    for tick in range(80):
        face.paint(status(START + tick / 4), is_new=tick % 4 == 0, monotonic=1000 + tick / 4)
    assert stream.getvalue().count("\n") == 4  # after 1, 6, 11 and 16 s
    last = status(START + 20, state="complete")
    face.paint(last, is_new=True, monotonic=1020.0)
    face.end(last)
    face.end(last)
    assert stream.getvalue().count("\n") == 5
    assert "complete" in stream.getvalue().splitlines()[-1]


def test_json_progress_is_a_line_for_each_status():
    """Each line is a JSON object that gives the RunStatus back; notes are lines of their own; the last one is there."""
    stream = _Heard()
    with display("json", stream) as shown:
        first = busy()
        shown.update(first)
        stream.wait_for("status")
        shown.note(HOSTILE)
        shown.update(busy(state="complete"))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["type"] for line in lines] == ["status", "note", "status"]
    assert lines[2]["state"] == "complete"
    assert msgspec.convert({key: value for key, value in lines[0].items() if key != "type"}, RunStatus) == first
    assert lines[1]["text"] == HOSTILE
    assert "\x1b" not in stream.getvalue()


def test_plain_progress_ends_with_the_last_word():
    """Whatever the pace, the last status and every note are written before the display ends."""
    stream = io.StringIO()
    with display("plain", stream) as shown:
        shown.note("a\nb")
        shown.update(busy())
        shown.update(busy(state="complete"))
    assert stream.getvalue().splitlines()[0] == "a b"
    assert stream.getvalue().splitlines()[-1].startswith("complete")


def test_none_shows_nothing():
    """`--progress none` writes nothing at all."""
    stream = io.StringIO()
    with display("none", stream) as shown:
        shown.update(busy())
        shown.note("x")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("kind", ["", "fancy", "RICH"])
def test_unknown_kinds_are_refused(kind):
    """Another kind than those of `--progress` is a usage error that names them."""
    with pytest.raises(UsageError, match="auto, rich, plain, json, none"):
        display(kind, io.StringIO())


@pytest.mark.parametrize(
    ("is_terminal", "environ", "face"),
    [(True, {}, "LiveFace"), (True, {"TERM": "dumb"}, "PlainFace"), (False, {}, "PlainFace")],
)
def test_auto_chooses(is_terminal, environ, face):
    """On a terminal that can move its cursor the display is live, elsewhere plain."""
    shown = display("auto", io.StringIO(), is_terminal=is_terminal, environ=environ)
    assert isinstance(shown, painter.Painter)
    assert type(shown._face).__name__ == face


@pytest.mark.parametrize("kind", ["plain", "json", "rich"])
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "EIO"), ValueError("I/O operation on closed file")])
def test_a_stream_that_is_gone_breaks_nothing(kind, error, caplog):
    """When the reader has gone away, the run goes on without a display, and nobody is told (failures.md row 41)."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    with display(kind, Gone()) as shown:
        shown.update(busy())
        shown.note("x")
    assert caplog.text == ""


def test_a_stream_without_unicode_gets_other_characters():
    """Where the stream's encoding lacks a character it is replaced, and nothing fails."""
    raw = io.BytesIO()
    with display("plain", io.TextIOWrapper(raw, encoding="ascii", write_through=True)) as shown:
        shown.note("漢")
        shown.update(busy())
        shown.note("x")
    shown_text = raw.getvalue().decode("ascii")
    assert "?" in shown_text
    assert " - " in shown_text


def test_a_bug_in_a_face_is_logged_and_breaks_nothing(caplog):
    """A face that fails is switched off, its error logged, and the run is not disturbed."""

    class Broken:
        def paint(self, status, *, is_new, monotonic):
            raise ZeroDivisionError

    with painter.Painter(Broken(), Clock()) as shown:  # type: ignore[arg-type]
        shown.update(busy())
    assert "the progress display has stopped" in caplog.text


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
    console.print(live.picture(shown, START + 61, columns, rows))
    printed = console.file.getvalue().removesuffix("\n").split("\n")  # type: ignore[attr-defined]
    assert len(printed) <= rows
    assert all(cell_len(line) <= columns for line in printed)


def test_the_picture_says_what_matters():
    """Jobs with what failed first, buckets with what is left, what is waited for, and when it is done."""
    shown = busy(2, 3, retries=1, settled=2)
    console = Console(width=150, file=io.StringIO(), color_system=None)
    console.print(live.picture(shown, START + 60, 150, 40))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for words in (
        "42/100",
        "2 failed  40 succeeded",
        "0/5,000 left  used up until",
        "2,000/5,000 left  resets",
        "done about",
    ):
        assert words in printed
    for words in ("61 of 64 in flight", "1 repeated", "2 settled", "waiting: lane acme/r2 2 ahead  (3 items)", "1 min"):
        assert words in printed


def test_hidden_jobs_are_counted():
    """Jobs that find no room are summed up by their state, running ones are shown first."""
    jobs = tuple(job_status(f"done-{number}", state="complete") for number in range(30))
    jobs += (job_status("busy"), job_status("later", state="waiting", waits_for=("busy",), outcomes={}))
    console = Console(width=100, file=io.StringIO(), color_system=None)
    console.print(live.picture(status(START, jobs=jobs), START, 100, 8))
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
            assert let_go.wait(30)
            return len(text)

    start = Clock().monotonic()
    with display("plain", Stuck()) as shown:
        shown.note("x")
        assert taken.wait(10)
        for _ in range(5000):
            shown.update(busy(0, 0))
            shown.note("y")
    assert shown._thread.is_alive()  # type: ignore[attr-defined]
    assert Clock().monotonic() - start < 5
    let_go.set()
    shown._thread.join(10)  # type: ignore[attr-defined]
    assert not shown._thread.is_alive()  # type: ignore[attr-defined]


def test_what_is_not_shown_is_not_imported():
    """Neither the live display nor the template engine is loaded before it is needed: `--help` stays fast."""
    code = (
        "import sys, bulk.cli.progress.painter, bulk.report.fold, bulk.report.render.text, bulk.report.report_files; "
        "import bulk.report.render.tables, bulk.report.render.status_text; "
        "print(sorted({'rich.live', 'rich.console', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
