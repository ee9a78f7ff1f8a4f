"""One request and its answer as the network of a simulation sees them, and where their bytes are parted."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.wire.fates import FINE, Fate

SINGLY, LUMP = 16, 32
"""A dripping answer's first bytes come one by one, the others in lumps (bytes): each costs turns of the loop."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request on the wire, as the network saw it. Times are the loop's (seconds).

    Attributes:
        number: of all exchanges of the network, from 1.
        token: what its Authorization header held.
        is_conditional: it carried a validator.
        arrived_at: when the platform had all of it; None: it never did.
        answered_at: when the client had the first byte of the answer; None: it never did.
        ended_at: when the answer was complete, or its connection gone; None: it is under way.
    """

    number: int
    method: str
    path: str
    token: str
    is_conditional: bool
    at: float
    fate: Fate = FINE
    arrived_at: float | None = None
    answered_at: float | None = None
    ended_at: float | None = None
    status: int | None = None

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"


@dataclass(slots=True, eq=False)
class Course:
    """An exchange while it lasts: what of it has passed."""

    exchange: Exchange
    request_bytes: int
    sent: int = 0
    passed: int = 0
    answered: int = 0
    answer_cut: int | None = None
    is_answered_by_proxy: bool = False
    answer_head: bytes = b""


def drops(length: int) -> Iterator[tuple[int, int]]:
    """How `length` bytes drip: singly through the status line, then a few at a time, in as long a time."""
    place = 0
    while place < length:
        step = 1 if place < SINGLY else LUMP
        yield place, min(place + step, length)
        place += step


def content_length(head: bytes) -> int:
    """What the head of a request or an answer says of its body (bytes)."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def half_of_answer(data: bytes) -> int:
    """Where an answer that begins with `data` is cut in half: after its head and half of its body, or before all."""
    head, mark, _ = data.partition(b"\r\n\r\n")
    body_bytes = content_length(head)
    return len(head) + len(mark) + body_bytes // 2 if body_bytes else 0
