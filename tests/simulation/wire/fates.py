"""What befalls one exchange on the network of a simulation, and what a proxy says in the platform's place."""

from dataclasses import dataclass

TRIP_S = 0.002
"""How long bytes are under way, where a fate says nothing else (seconds)."""
HTML = "text/html; charset=utf-8"
PAGE = b"<!DOCTYPE html><html><body><h1>It is not you, it is us</h1></body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What befalls one exchange.

    Attributes:
        kind: its name in the trace.
        request_s, answer_s: how long the bytes are under way (seconds).
        request_cut: this many bytes of the request arrive, then the connection is reset; None: all of it.
        answer_cut: this many bytes of the answer arrive, then the connection is closed; None: all of it.
        is_halved: the answer's head and half of its body arrive, then the connection is closed; an answer without a
            body is lost altogether.
        is_reset: a cut answer ends in a reset.
        drip_s: the answer comes a byte at a time, with this between two (seconds).
        instead: what a proxy answers; `is_passed_on`: after the platform did (its own answer is thrown away).
        is_mute: the answer never comes, and the connection stays open.
        stale_s: a read shows what it showed when it was last asked, unless that is older than this (seconds).
    """

    kind: str = "fine"
    request_s: float = TRIP_S
    answer_s: float = TRIP_S
    request_cut: int | None = None
    answer_cut: int | None = None
    is_halved: bool = False
    is_reset: bool = False
    drip_s: float = 0.0
    instead: bytes | None = None
    is_passed_on: bool = False
    is_mute: bool = False
    stale_s: float = 0.0


FINE = Fate()
DROP_BEFORE = Fate(kind="drop-before", request_cut=0)
DROP_AFTER = Fate(kind="drop-after", answer_cut=0)
TRUNCATE = Fate(kind="truncate", is_halved=True)
MUTE = Fate(kind="mute", is_mute=True)


def late(seconds: float) -> Fate:
    """The request arrives so late that the client has given up; it is carried out all the same."""
    return Fate(kind="late", request_s=seconds)


def answer(
    status: int, body: bytes = PAGE, content_type: str = HTML, *, is_passed_on: bool = False, **headers: str
) -> Fate:
    """A proxy answers in the platform's place; `is_passed_on`: after the platform has done what was asked."""
    lines = [f"HTTP/1.1 {status} Said By A Proxy", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines.append("Connection: close")
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    when = "after" if is_passed_on else "before"
    return Fate(kind=f"{status}-{when}", instead=head + body, is_passed_on=is_passed_on)
