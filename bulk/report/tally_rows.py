"""The records of a tally: the part of a result line that it takes in, and its state as the ledger stores it."""

from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

import msgspec

from bulk.errors import UNDECODABLE
from bulk.ledger.database import Index
from bulk.model import SUCCESSFUL
from bulk.report.record import ProblemItem, SlowItem

_RESULT = b',"result":'


class LineError(msgspec.Struct):
    """The field `error` of a line."""

    code: str
    message: str = ""
    http_status: int | None = None
    attempts: int = 0


class Line(msgspec.Struct):
    """The part of a line of `results.jsonl` (interface.md §5) that the report needs; the rest is not even decoded."""

    job: str
    index: Index
    outcome: Literal["succeeded", "unchanged", "failed", "skipped", "unknown"]
    id: str | None = None
    item: msgspec.Raw = msgspec.Raw(b"{}")
    http_status: int | None = None
    attempts: int = 0
    started_at: datetime = datetime.fromtimestamp(0, UTC)
    elapsed_ms: float = 0.0
    error: LineError | None = None


_decode = msgspec.json.Decoder(Line).decode


def read_line(line: bytes) -> Line:
    """Return the part of a line that a tally needs: for a success only its head, because results may be megabytes.

    Where an item itself has a field `result`, the head is not a whole JSON object, and the line is decoded as it is.
    """
    end = line.find(_RESULT)
    if end > 0:
        try:
            found = _decode(line[:end] + b"}")
        except UNDECODABLE:
            return _decode(line)
        if found.outcome in SUCCESSFUL:
            return found
    return _decode(line)


Step: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=14_500)]
"""A class of times: its middle, in milliseconds, is still a number of floating point."""


class JobTallyRow(msgspec.Struct, array_like=True):
    """The stored state of a `JobTally`."""

    first_at: float | None
    last_at: float | None
    not_modified: int
    steps: dict[Step, int]
    slow: list[SlowItem]
    problems: dict[str, list[ProblemItem]]
    examples: dict[str, ProblemItem]


class RunTallyRow(msgspec.Struct, array_like=True):
    """The stored state of a whole `Tally`: its timeline."""

    length_s: float
    bins: list[list[int]]
