"""The side of a command in another terminal. It blocks and uses no event loop, so that its commands start quickly."""

import contextlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bulk.control.place import reachable
from bulk.control.protocol import Answer, Ask, answer_of, line_of
from bulk.errors import UNDECODABLE
from bulk.status import RunStatus

ANSWER_S = 2.0
"""How long an answer is waited for (seconds); it usually comes within a few milliseconds."""

_CHUNK_BYTES = 256 * 1024


class Unreached(Exception):
    """No process listens at the socket: the run has ended, was killed, or never had a socket."""


class Silent(Exception):
    """A process listens at the socket, and does not answer in time."""


def ask(run_dir: Path, verb: str, args: Mapping[str, Any] | None = None, *, who: str = "cli") -> Answer:
    """Ask the process that drives the run in `run_dir`, and return its answer.

    Args:
        who: the kind of asker, in one word.

    Raises:
        Unreached, Silent: there is no answer.
    """
    with _connected(run_dir) as connection:
        return next(_answers(connection, Ask(verb=verb, args=args or {}, who=who)))


def watch(run_dir: Path) -> Iterator[RunStatus]:
    """Yield the status of the run, four times a second, until it ends.

    Raises:
        Unreached, Silent: there is no answer.
    """
    with _connected(run_dir) as connection:
        for answer in _answers(connection, Ask(verb="watch", who="cli")):
            if answer.status is not None:
                yield answer.status


def status(run_dir: Path) -> RunStatus | None:
    """Return the status of the run now; None if there is no answer."""
    try:
        return ask(run_dir, "status").status
    except (Unreached, Silent):
        return None


@contextlib.contextmanager
def _connected(run_dir: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_S)
        try:
            with reachable(run_dir) as place:
                connection.connect(place)
        except TimeoutError:
            raise Silent from None
        except OSError as error:
            raise Unreached(error.strerror or str(error)) from None
        yield connection


def _answers(connection: socket.socket, question: Ask) -> Iterator[Answer]:
    """Yield answers until the other end closes.

    Raises:
        Unreached: the other end has closed before the first answer. Silent: no answer comes in time.
    """
    pending, is_answered = b"", False
    try:
        connection.sendall(line_of(question))
        while True:
            line, newline, rest = pending.partition(b"\n")
            if newline:
                pending, is_answered = rest, True
                yield answer_of(line)
                continue
            received = connection.recv(_CHUNK_BYTES)
            if not received:
                break
            pending += received
    except TimeoutError:
        raise Silent from None
    except (OSError, *UNDECODABLE) as error:
        if not is_answered:
            raise Unreached(str(error)) from None
    if not is_answered:
        raise Unreached("it closed the connection")
