"""Progress while a run goes: one thread paints the newest status, so that no terminal holds up the run.

`update` and `note` never wait and never raise. A stream that is closed, blocked or gone ends the painting, not the run
(failures.md row 41). Which face paints is decided once: `live.py` on a terminal, `plain.py` elsewhere.
"""

import contextlib
import errno
import logging
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol, Self, TextIO, cast

import msgspec

from bulk.cli.progress.plain import JsonFace, PlainFace
from bulk.clock import Clock
from bulk.errors import UsageError
from bulk.redaction import redact, redact_json
from bulk.report.render import terminal
from bulk.status import STATES, Display, RunStatus, Silence

KINDS = ("auto", "rich", "plain", "json", "none")
"""The values of `--progress`."""

TICK_S = 0.25
"""How often a face may paint (seconds)."""

PARTING_S = 2.0
"""How long the end of a run waits for a terminal that takes no output (seconds)."""

_MOST_NOTES = 1000
_log = logging.getLogger(__name__)
_STATES = frozenset(state.encode() for state in STATES)


class Face(Protocol):
    """A look of the progress. Called from one thread only; may raise OSError or ValueError when the stream is gone."""

    def paint(self, status: RunStatus, *, is_new: bool, monotonic: float) -> None:
        """Show `status`; called every `TICK_S`, `is_new` where it differs from the last call's."""

    def say(self, text: str) -> None:
        """Show a note."""

    def end(self, status: RunStatus | None) -> None:
        """Leave the stream as it should stay."""


def display(
    kind: str,
    stream: TextIO,
    *,
    is_terminal: bool | None = None,
    environ: Mapping[str, str] | None = None,
) -> Display:
    """Return what `--progress KIND` shows on `stream`.

    Args:
        kind: one of `KINDS`; `auto` is `rich` on a terminal that can move its cursor, else `plain`.
        is_terminal: whether `stream` is a terminal; None: the stream is asked.
        environ: for `TERM` and `NO_COLOR`; None: the process's own.

    Raises:
        UsageError: `kind` is none of `KINDS`.
    """
    environ = os.environ if environ is None else environ
    if kind not in KINDS:
        raise UsageError(f"--progress {terminal.safe(kind, 40)}: expected one of {', '.join(KINDS)}")
    if kind == "auto":
        is_person = terminal.is_terminal(stream) if is_terminal is None else is_terminal
        kind = "rich" if is_person and environ.get("TERM") != "dumb" else "plain"
    if kind == "none":
        return Silence()
    taken = guarded(stream)
    face: Face
    if kind == "rich":
        from bulk.cli.progress.live import LiveFace

        face = LiveFace(taken, has_colour=not environ.get("NO_COLOR"))
    else:
        face = PlainFace(taken) if kind == "plain" else JsonFace(taken)
    return Painter(face, Clock())


class Painter:
    """Lets a face paint from a thread of its own; of statuses that come faster than it paints, it paints the newest."""

    def __init__(self, face: Face, clock: Clock) -> None:
        self._face, self._clock = face, clock
        self._status: RunStatus | None = None
        self._notes: deque[str] = deque(maxlen=_MOST_NOTES)
        self._is_over = threading.Event()
        self._painting = threading.Lock()
        self._thread = threading.Thread(target=self._paint, name="bulk-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(PARTING_S)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Take the picture away and paint nothing during the block, so that the terminal is free for a question."""
        with self._painting:
            with contextlib.suppress(OSError, ValueError):  # the stream is closed or its reader is gone
                self._face.end(None)
            yield

    def update(self, status: RunStatus) -> None:
        """Show `status` from now on. Costs the caller nothing."""
        self._status = status

    def note(self, text: str) -> None:
        """Say `text` at the next tick; of more than a thousand notes between two ticks, say the last thousand."""
        self._notes.append(text)

    def _paint(self) -> None:
        painted: RunStatus | None = None
        shown: RunStatus | None = None
        try:
            while True:
                is_over = self._is_over.wait(TICK_S)
                status = self._status
                if status is not None and (shown is None or status is not painted):
                    shown = _without_secrets(status)
                with self._painting:
                    while self._notes:
                        self._face.say(redact(self._notes.popleft()))
                    if status is not None and shown is not None:
                        self._face.paint(shown, is_new=status is not painted, monotonic=self._clock.monotonic())
                        painted = status
                    if is_over:
                        self._face.end(shown)
                        return
        except (OSError, ValueError):
            return  # the stream is closed or its reader is gone
        except Exception:  # noqa: BLE001  a bug in drawing must not end the run
            _log.exception("the progress display has stopped; the run goes on")


def _without_secrets(status: RunStatus) -> RunStatus:
    data = msgspec.json.encode(status)
    clean = redact_json(data, _STATES)
    return status if clean is data else msgspec.json.decode(clean, type=RunStatus)


def guarded(stream: TextIO) -> TextIO:
    """Return a stream that takes every character: one that its encoding lacks is replaced, and every write is flushed.

    Writing raises OSError or ValueError when `stream` is gone.
    """
    return cast(TextIO, _Guarded(stream))


class _Guarded:
    _PLAIN = str.maketrans("·…×━╸╺─–", "-~x##---")

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self._is_unicode = self.encoding.lower().replace("-", "").startswith("utf")

    def write(self, text: str) -> int:
        if not self._is_unicode:
            text = text.translate(self._PLAIN)
        try:
            self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
            self._stream.flush()
        except BrokenPipeError as error:
            # Of a BrokenPipeError, rich makes a SystemExit, after it has pointed standard output to nowhere.
            raise OSError(errno.EIO, str(error)) from error
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return terminal.is_terminal(self._stream)

    def fileno(self) -> int:
        return self._stream.fileno()
