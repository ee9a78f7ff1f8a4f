"""What a copy of the platform that lags would say: reads that show what was true a few seconds ago."""

import math
import re
from dataclasses import dataclass, field

from tests.simulation.wire.exchanges import Exchange, content_length

VARYING = re.compile(rb"(?i)(?:X-RateLimit-[a-z]+|Date|Connection): [^\r]*\r\n")


@dataclass(slots=True)
class Memory:
    """What reads were answered, so that a later one can be shown it again: by a copy of the platform that lags.

    Attributes:
        said: path with its query -> when it was asked (the loop's seconds) and the answer so far.
    """

    said: dict[str, tuple[float, bytearray]] = field(default_factory=dict)

    def hear(self, exchange: Exchange, data: bytes) -> None:
        """Bytes of an answer."""
        if not exchange.is_write and exchange.fate.instead is None and not exchange.is_conditional:
            at, answer = self.said.get(exchange.path, (-1.0, bytearray()))
            if at != exchange.at:
                at, answer = self.said[exchange.path] = exchange.at, bytearray()
            answer += data

    def recall(self, exchange: Exchange, stale_s: float) -> bytes | None:
        """What a copy that lags by at most `stale_s` (seconds) would say; None: nothing older is known."""
        at, answer = self.said.get(exchange.path, (-math.inf, bytearray()))
        if exchange.is_write or exchange.is_conditional or exchange.path.endswith("/rate_limit"):
            return None
        if at < exchange.at - stale_s:
            return None
        head, mark, body = bytes(answer).partition(b"\r\n\r\n")
        if not mark or len(body) != content_length(head):
            return None
        return VARYING.sub(b"", head + b"\r\n") + b"Connection: close\r\n\r\n" + body
