"""Sends messages, each at most once: a file for each event is made and synced before sending, and says afterwards how
that ended.

A process that is killed in between leaves `sending`: the message may have been sent, so it is not sent again.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bulk.audit.history import NOTIFIED, PAGES, History
from bulk.audit.notify import posting
from bulk.audit.notify.message import Message, again, events_of, message_of
from bulk.audit.result import AuditResult
from bulk.errors import UNDECODABLE
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.manifest.audit_section import EVENTS, Target
from bulk.platform.auth.credentials import child_environ
from bulk.redaction import remember
from bulk.storage.child_process import python
from bulk.storage.private_files import open_private, replacing, sync_directory

COMMAND_S = 30.0
"""How long a command may take (seconds)."""

POST_S = 60.0
"""How long it may take to post a message to an address of Apprise (seconds)."""

MOST_URL_BYTES = 64 * 1024
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://")
"""The scheme is all that is ever shown of an address; an address without a scheme is a secret as a whole."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file of one event that a target is told of; `state`: `sending`, `sent` or `failed` (`why`)."""

    state: str
    at: float
    events: tuple[str, ...]
    why: str = ""


def notify(
    targets: tuple[Target, ...],
    result: AuditResult,
    history: History,
    environ: Mapping[str, str],
    folder: Path,
    *,
    now: float,
    is_again: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """Tell every target that wants to know, and yield a warning for each that could not be told.

    Args:
        folder: the folder of the manifest, where commands run and files are looked for.
        now: UTC epoch seconds.
        is_again: whether a person asks for it: then also messages that were sent or begun before.
        tell: is called with a sentence about each target that was told.
    """
    run, folder_of_marks = result.night.run, history.path / NOTIFIED
    before = [night for night in history.nights if night.run != run]
    for number, target in enumerate(targets):
        name = _name(number, target)
        told = _told(folder_of_marks, run, name)
        sent = max((note.at for note in _notes(folder_of_marks, name) if note.state == "sent"), default=None)
        events = events_of(result, target, before, told, None if sent is None else now - sent)
        events = again(events) if is_again else tuple(event for event in events if event not in told)
        begun: dict[Path, Note] = {}
        try:
            for event in events:
                mark = history.place(NOTIFIED, f"{run}-{event}-{name}", ".json")
                note = Note(state="sending", at=now, events=(event,))
                if _begin(mark, note, is_again=is_again):
                    begun[mark] = note
        except OSError as error:  # told without a mark, it would be told again
            for mark in begun:
                mark.unlink(missing_ok=True)
            yield f"{_shown(target)} was not told: {folder_of_marks}: {error.strerror}"
            continue
        if not begun:
            continue
        events = tuple(event for note in begun.values() for event in note.events)
        page = str((history.path / PAGES / f"{run}.html").absolute())
        why = _send(target, message_of(result, target, events, page), environ, folder)
        if why:
            yield f"{_shown(target)} was not told: {why}"
        else:
            tell(f"{_shown(target)} was told: {', '.join(events)}")
        for mark, note in begun.items():
            try:
                with replacing(mark) as file:
                    state = "failed" if why else "sent"
                    file.write(msgspec.json.encode(msgspec.structs.replace(note, state=state, why=why)))
            except OSError as error:
                yield f"{mark}: {error.strerror}: what came of it can't be noted"


def unsettled(history: History, run: str) -> list[str]:
    """Return the messages of a night, and of the one before it, of which it is not known whether they were sent.

    A process that is killed while it sends can't say so any more: the next night does.
    """
    folder, nights = history.path / NOTIFIED, [night.run for night in history.nights]
    before = nights[: nights.index(run)][-1:] if run in nights else []
    marks = [mark for each in (*before, run) for mark in sorted(folder.glob(f"{each}-*.json"))]
    return [mark.stem for mark in marks if _note(mark).state == "sending"]


def _send(target: Target, message: Message, environ: Mapping[str, str], folder: Path) -> str:
    """Return why the message could not be sent; empty where it was sent."""
    if target.command:
        return _run(target.command, message, environ, folder)
    return _post(target.source, message, environ, folder)


def _run(command: tuple[str, ...], message: Message, environ: Mapping[str, str], folder: Path) -> str:
    try:
        code = _fed(command, msgspec.json.encode(message) + b"\n", environ, folder, COMMAND_S)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its name or an argument can't be used"
        return f"{command[0]} can't be started: {why}"
    if code is None:
        return f"{command[0]} took longer than {COMMAND_S:.0f} s, and was ended"
    return f"{command[0]} ended with {code}" if code else ""


def _fed(command: Sequence[str], data: bytes, environ: Mapping[str, str], folder: Path, most_s: float) -> int | None:
    """Run a program with that input, and return its exit code; None: it took longer than `most_s` seconds.

    What it prints, which may be endless, is discarded. When this returns or raises, it has ended.

    Raises:
        OSError, ValueError: it can't be started.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=child_environ(environ),
        cwd=folder,
        start_new_session=True,
    )
    with child:
        try:
            child.communicate(data, most_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.poll() is None:  # also where Ctrl-C ends the wait
                with contextlib.suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)  # ends also the processes that the command has started
    return child.returncode


def _post(source: str, message: Message, environ: Mapping[str, str], folder: Path) -> str:
    url, why = _url(source, environ, folder)
    if why:
        return why
    scheme = f"{found[1]}://…" if (found := _SCHEME.match(url)) else "without a scheme"
    if importlib.util.find_spec("apprise") is None:
        return "Apprise is missing: pip install 'bulkops[notify]'"
    post = msgspec.json.encode(posting.Post(url=url, title=message.title, body=message.text))
    try:
        code = _fed(python(posting.__name__), post, environ, folder, POST_S)
    except OSError as error:
        return f"{scheme}: {error.strerror}"
    if code is None:
        return f"{scheme} took longer than {POST_S:.0f} s, and was given up"
    if code == posting.UNKNOWN:
        return f"the address in {source}, {scheme}, is none that Apprise knows"
    return f"{scheme} did not take it" if code else ""


def _url(source: str, environ: Mapping[str, str], folder: Path) -> tuple[str, str]:
    """Return the address in a source, or why there is none; the path of a file begins at `folder`."""
    kind, _, rest = source.partition(":")
    try:
        url = environ.get(rest, "") if kind == "env" else _read(folder / rest)
    except SourceFlaw as flaw:
        return "", f"{source}: {flaw.message}"
    except UnicodeDecodeError:
        return "", f"{source} is not UTF-8"
    except OSError as error:
        return "", f"{source} can't be read: {error.strerror}"
    url = url.strip()
    if not url:
        return "", f"{source} is empty or not set"
    remember(url)
    return url, ""


def _read(path: Path) -> str:
    with open_source(path) as file:
        return file.read(MOST_URL_BYTES).decode()


def _begin(mark: Path, note: Note, *, is_again: bool) -> bool:
    """Return whether this process may send: no process began before, or a person asks for it again."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_again else os.O_EXCL)
    try:
        descriptor = open_private(mark, flags)
    except FileExistsError:
        return False
    try:
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(note))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(mark.parent)
    except OSError:
        mark.unlink(missing_ok=True)
        raise
    return True


def _notes(folder: Path, name: str) -> list[Note]:
    return [_note(path) for path in folder.glob(f"*-{name}.json")] if folder.is_dir() else []


def _told(folder: Path, run: str, name: str) -> set[str]:
    """Return the events of a night that a target was told of, or may have been."""
    told = {event for event in EVENTS if (folder / f"{run}-{event}-{name}.json").exists()}
    older = folder / f"{run}-{name}.json"  # of an older version: one mark for a night
    return told | {*(_note(older).events or EVENTS)} if older.exists() else told


def _note(path: Path) -> Note:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, *UNDECODABLE):
        return Note(state="sending", at=0.0, events=())


def _name(number: int, target: Target) -> str:
    text = json.dumps([target.source, target.command])
    return f"{number}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _shown(target: Target) -> str:
    return target.source or target.command[0]
