"""Progress is shown without ever holding up or breaking the run."""

import io
import json
import subprocess
import sys
import threading

import pytest

from bulk.cli.progress import painter, plain
from bulk.cli.progress.painter import display
from bulk.clock import Clock
from bulk.errors import UsageError
from bulk.report.render.formatting import iso
from bulk.report.render.json_data import as_data
from tests.cli.progress.pictures import busy
from tests.report.ledgers import START, job_status, status

HOSTILE = "[red]x[/]\x1b]0;t\x07\u202e\nevil"


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
            assert self._more.wait_for(lambda: words in self.getvalue(), timeout=60), self.getvalue()
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
        jobs = (job_status(outcomes={"succeeded": tick}),)
        face.paint(status(START + tick / 4, jobs=jobs), is_new=tick % 4 == 0, monotonic=1000 + tick / 4)
    assert stream.getvalue().count("\n") == 4  # after 1, 6, 11 and 16 s
    last = status(START + 20, state="complete")
    face.paint(last, is_new=True, monotonic=1020.0)
    face.end(last)
    face.end(last)
    assert stream.getvalue().count("\n") == 5
    assert "complete" in stream.getvalue().splitlines()[-1]


def test_the_same_line_comes_once_a_minute():
    """What has not changed, as of a paused run, is not said every five seconds; the last word is."""
    stream = io.StringIO()
    face = plain.PlainFace(stream)
    for second in range(130):
        face.paint(status(START, state="paused"), is_new=True, monotonic=1000.0 + second)
    assert stream.getvalue().count("\n") == 3  # after 1, 61 and 121 s
    face.end(status(START, state="paused"))
    assert stream.getvalue().count("\n") == 4


def test_json_progress_is_a_line_for_each_status():
    """Each line is an object with the RunStatus, its moments as texts; notes are lines too; the last one is there."""
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
    assert {key: value for key, value in lines[0].items() if key != "type"} == json.loads(json.dumps(as_data(first)))
    assert (lines[0]["at"], lines[0]["name"]) == (iso(first.at), first.name)
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


def test_what_is_not_shown_is_not_imported():
    """Neither the live display nor the template engine is loaded before it is needed: `--help` stays fast."""
    code = (
        "import sys, bulk.cli.progress.painter, bulk.report.fold, bulk.report.render.text, bulk.report.report_files; "
        "import bulk.report.render.tables, bulk.report.render.status_text; "
        "print(sorted({'rich.live', 'rich.console', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
