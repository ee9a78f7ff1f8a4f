"""The events of a run as JSON lines: items that ended and actions of people, for `bulk watch --events`.

Each line carries the position after it, from which another process goes on without missing anything. When the results
were written anew, as at the end of a retry, a line says so, and every item is reported again. Blocking, read only.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self

import msgspec

from bulk.ledger.view import LedgerView
from bulk.redaction import redact_json
from bulk.report.render.json_data import as_data

STEP_BYTES = 256 * 1024


class ItemEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An item has ended.

    Attributes:
        kind: tells the lines from each other.
        position: `--after` this, the next line follows.
        line: as in `results.jsonl`.
    """

    kind: Literal["item"]
    position: str
    line: dict[str, Any]


class ActionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A person did something to the run.

    Attributes:
        kind: tells the lines from each other.
        position: `--after` this, the next line follows.
        at: when it was done.
        who: the user, and by what: `alice (web)`.
        verb: `pause`, `resume`, `stop`, `set`, `retry`.
        args: what it was given.
        result: the state of the run then, or why it was refused.
    """

    kind: Literal["action"]
    position: str
    at: float
    who: str
    verb: str
    args: dict[str, Any]
    result: str


class AgainEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The results were written anew: all items are told again.

    Attributes:
        kind: tells the lines from each other.
        position: `--after` this, the next line follows.
    """

    kind: Literal["again"]
    position: str


class EndEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody drives the run any more: the last line.

    Attributes:
        kind: tells the lines from each other.
        position: `--after` this, the next line follows, should the run be resumed.
        exit_code: what the command exited with.
    """

    kind: Literal["end"]
    position: str
    state: str
    exit_code: int


_ANOTHER = sys.maxsize
"""A generation of no results: what was reported was not of this run, and everything is told again."""


class Position(NamedTuple):
    """How much of a run was reported: the generation of the results, the bytes of it, and the actions (count)."""

    generation: int = -1
    item_bytes: int = 0
    actions: int = 0

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the position that an event carries.

        Raises:
            ValueError: the text is not a position.
        """
        parts = [int(part) for part in text.split(":")]
        if len(parts) != len(cls._fields) or min(parts[1:]) < 0:
            raise ValueError(text)
        return cls(*parts)

    def __str__(self) -> str:
        return ":".join(map(str, self))


def since(view: LedgerView, position: Position) -> Iterator[tuple[bytes, Position]]:
    """Yield each event after `position`, as a line of JSON with its newline, and the position after that event.

    Raises:
        RunDirectoryError: the run can't be read.
    """
    actions = view.actions()
    looked = view.appended(position.generation, position.item_bytes, 1)
    is_moved = looked.generation == position.generation and looked.start != position.item_bytes
    if is_moved or position.actions > len(actions):  # of another run, or edited
        position = Position(_ANOTHER)
    for action in actions[position.actions :]:
        position = position._replace(actions=position.actions + 1)
        fields: Mapping[str, Any] = {"at": action.at, "who": action.who, "verb": action.verb, "result": action.result}
        event = ActionEvent(kind="action", position=str(position), args=dict(action.args), **fields)
        yield encoded(event), position
    while True:
        new = view.appended(position.generation, position.item_bytes, STEP_BYTES)
        if new.generation != position.generation:
            was_told = position.generation >= 0
            position = position._replace(generation=new.generation, item_bytes=0)
            if was_told:
                yield encoded(AgainEvent(kind="again", position=str(position))), position
        if not new.lines:
            return
        for line in new.lines.splitlines(keepends=True):
            position = position._replace(item_bytes=position.item_bytes + len(line))
            head = f'{{"kind":"item","position":"{position}","line":'.encode()
            yield head + line.rstrip(b"\n") + b"}\n", position


def encoded(event: ActionEvent | AgainEvent | EndEvent) -> bytes:
    """Return an event as a line of JSON, with its newline and without secrets."""
    return redact_json(msgspec.json.encode(as_data(event))) + b"\n"
