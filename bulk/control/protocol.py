"""The messages on the control socket: JSON, an object on each line, a question and its answer. Source: interface.md §5.

    → {"v":1,"verb":"set","args":{"concurrency":16},"who":"cli"}
    ← {"ok":true,"state":"running","at":"2026-11-24T19:02:00.123Z","in_force":{"concurrency":16}}
    ← {"ok":false,"state":"running","at":"…","error":"reserve: it would leave nothing of core","exit":2}

`status` is answered with a `status`, and `watch` with one such line four times a second until the run or the connection
ends.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bulk.errors import UNDECODABLE
from bulk.status import RunStatus

VERSION = 1
VERBS = ("status", "watch", "pause", "resume", "stop", "set")

LINE_BYTES = 64 * 1024
"""Longest question (bytes, its newline included)."""
CONNECTIONS_MOST = 16
IDLE_S = 5.0
"""How long a connection may be silent until it is closed (seconds); one that watches may be silent longer."""
WATCH_S = 0.25
"""Time between two answers to `watch` (seconds)."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A question.

    Attributes:
        v: version of the protocol.
        args: for `stop`: `now`, true for at once; for `set`: new values by their names.
        who: the kind of asker, in one word: `cli`.
    """

    verb: str
    v: int = VERSION
    args: Mapping[str, Any] = {}
    who: str = "?"


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a run that can be set, as they are in force.

    Attributes:
        concurrency: most requests in flight (count).
        reserve: requests of each budget that are left for others, as a count or a share.
        failures: failed items after which the run stops, as a count or a share; None: it never stops because of them.
        max_duration: how long the run may take (seconds); None: for ever.
        priority: priority of each job, by its name; a higher one goes first.
    """

    concurrency: int
    reserve: str | int
    failures: str | int | None = None
    max_duration: str | float | None = None
    priority: Mapping[str, int] = {}


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a question.

    Attributes:
        ok: whether the verb was done, and is in force.
        state: state of the run afterwards (`status.STATES`).
        at: time of the answer (RFC 3339, UTC, milliseconds).
        in_force: for `set` and `status`: all values that can be set, as they are now.
        status: for `status` and `watch`: the status of the run.
        error: why the verb was not done, for people. exit: the exit code of the command then.
    """

    ok: bool
    state: str
    at: str
    in_force: Mapping[str, Any] = {}
    status: RunStatus | None = None
    error: str = ""
    exit: int = 0


class Refused(Exception):
    """A question can't be answered, or its verb is not done; `exit_code`: the exit code of the command then."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def ask_of(line: bytes) -> Ask:
    """Return the question on a line.

    Raises:
        Refused: the line is not a question that this version can answer.
    """
    try:
        ask = msgspec.json.decode(line, type=Ask)
    except UNDECODABLE as error:
        raise Refused(f"that is not a request: {error}", 2) from None
    if ask.v != VERSION:
        raise Refused(f"the run speaks version {VERSION} of the protocol, not {ask.v}: use the Bulk that runs it", 2)
    if ask.verb not in VERBS:
        raise Refused(f"there is no verb {ask.verb!r}: expected one of {', '.join(VERBS)}", 2)
    return ask


def line_of(said: Ask | Answer) -> bytes:
    """Return `said` as it goes over the socket."""
    return msgspec.json.encode(said) + b"\n"


def answer_of(line: bytes) -> Answer:
    """Return the answer on a line; raise one of `UNDECODABLE` if the line is not an answer."""
    return msgspec.json.decode(line, type=Answer)
