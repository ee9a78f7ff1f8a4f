"""The head of an answer while it arrives: how long it may be, and what is wrong with a head that can't be used.

Proxies add long cookies and policies, so the limits are far above the heads of servers; they protect memory. A head
that is beyond them, or is not valid HTTP, concerns its own request and its own connection, and no other. This is the
protocol of every connection: those that are used directly, those of aiohttp's session, and those through a proxy.
Source: RFC 9112; failures.md row 28.
"""

import asyncio
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError, LineTooLong

LINE_BYTES = 64 * 1024
"""Longest status line, name or value of a header (bytes)."""

LINES = 1_000
"""Most header lines (count)."""

HEAD_BYTES = 256 * 1024
"""Longest head: status line and all header lines (bytes)."""

INTERIM = 100
"""Most answers of the kind 1xx before the answer to a request (count)."""

WITHOUT_BODY = frozenset((204, 205, 304))
"""Statuses whose body, if one comes all the same, means nothing."""

# looking this method up for each answer, as `super` does, takes longer than most of the work there
_take_in = ResponseHandler.data_received

_AWAITED_NOT = -1
_LINE_ENDS = b"\r", b"\n"
_HEAD_ENDS = b"\n\r\n", b"\n\n"
_LAST_OF_HEAD = (b"\r\n", b"\n")


class BadHead(HttpProcessingError):
    """The head of an answer can't be used.

    Attributes:
        why: completes `what HOST answered`, for people.
        is_http: the answer began like HTTP, so the platform, or something in front of it, is in reach.
    """

    def __init__(self, why: str, *, is_http: bool) -> None:
        super().__init__(message=why)
        self.why, self.is_http = why, is_http


class AnswerProtocol(ResponseHandler):
    """One connection; `begin_request` comes before each request.

    Attributes:
        newest: request id and header lines of the newest answer, and the head of its request.
        is_longer: more came after the end of the newest answer than its length says, such as ends of lines, which
            parsers skip: its body would seem whole if its length was named too short.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.newest: tuple[str, Any, bytes] = "", (), b""
        self.begin_request()

    def begin_request(self) -> None:
        """Await the head of an answer from now on."""
        self._head_bytes = self._interim = self._chunk_bytes = 0
        self._is_http = self._is_chunked = self.is_longer = False

    def set_response_params(self, **options: Any) -> None:
        """Set aiohttp's parameters with the limits above; aiohttp calls this before each request of its session."""
        self.begin_request()
        limits = {"max_line_size": LINE_BYTES, "max_field_size": LINE_BYTES, "max_headers": LINES}
        super().set_response_params(**{**options, **limits})

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on if reading was held up; aiohttp calls this at the end of each body, and makes four calls of it."""
        if resume_parser or self._reading_paused:
            super().resume_reading(resume_parser)

    def data_received(self, data: bytes) -> None:
        """Take the bytes that the peer sends.

        Bytes that no request asked for end the connection: they could pass for the next answer.
        """
        if self._head_bytes == _AWAITED_NOT:
            payload = self._payload
            if data and (payload is None or payload.is_eof()):
                self._drop()
                self.is_longer = True
            else:
                before = 0 if payload is None else payload.total_bytes
                super().data_received(data)
                if payload is not None and payload.is_eof():
                    # of what was held up until the body was taken, only a parser's complaint tells
                    self._end(payload.total_bytes - before != len(data) or self._exception is not None)
            return
        has_begun = self._head_bytes > 0
        if data and not has_begun:
            self._is_http = data.startswith(b"HTTP/1.")
        self._chunk_bytes = len(data)
        _take_in(self, data)
        if self._head_bytes != _AWAITED_NOT:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and self._parser is not None:
                self._refuse_length()
        elif data.endswith(_LINE_ENDS) and (payload := self._payload) is not None and payload.is_eof():
            rest = data[: len(data) - payload.total_bytes]
            self._end(not (rest.endswith(_HEAD_ENDS) or (has_begun and rest in _LAST_OF_HEAD)))

    def _end(self, is_longer: bool) -> None:
        """Note that the answer is over, and whether more bytes came than its length, where they can be counted."""
        if is_longer and not self._is_chunked:
            self.is_longer = True
            self.force_close()

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take a complete head. A head that no request asked for is dropped with its connection."""
        if self._head_bytes == _AWAITED_NOT or self._exception is not None:
            self._drop()
            return
        message = data[0]
        if self._head_bytes + self._chunk_bytes > HEAD_BYTES and _bytes_of(message.raw_headers) > HEAD_BYTES:
            self._refuse_length()
            return
        if 100 <= message.code < 200 and message.code != 101:
            self._interim += 1
            self._head_bytes = 0  # the next head may be as long; the rest of this block counts for it
            if self._interim > INTERIM:
                self._refuse(f"begins with more than {INTERIM:,} interim answers (status 1xx)")
                return
        else:
            self._head_bytes = _AWAITED_NOT
            self._is_chunked = message.chunked
        # what aiohttp's own `feed_data` does, which makes two more calls for each answer
        self._buffer.append((data, size))
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """Tell the waiter that no answer will come; an error of the parser is made a `BadHead` here."""
        if isinstance(exc, HttpProcessingError) and not isinstance(exc, BadHead):
            exc = BadHead(_why(exc_cause), is_http=self._is_http)
        super().set_exception(exc, exc if exc_cause is None else exc_cause)

    def _refuse_length(self) -> None:
        self._refuse(f"has header lines of more than {HEAD_BYTES // 1024} KiB altogether")

    def _refuse(self, why: str) -> None:
        self.set_exception(BadHead(why, is_http=self._is_http))
        self._drop()

    def _drop(self) -> None:
        self.force_close()
        if self.transport is not None:
            self.transport.close()


def bad_head_of(error: BaseException) -> BadHead | None:
    """Return the `BadHead` that is the reason of `error`; None if there is none."""
    for found in (error, error.__cause__):
        if isinstance(found, BadHead):
            return found
    return None


def _why(cause: BaseException | None) -> str:
    if isinstance(cause, LineTooLong):
        return f"has a line of more than {LINE_BYTES // 1024} KiB in its head"
    if isinstance(cause, BadStatusLine):
        return "does not begin with a status line of HTTP"
    if cause is not None and "Too many headers" in str(cause):
        return f"has more than {LINES:,} header lines"
    return "is not valid HTTP"


def _bytes_of(raw_headers: tuple[tuple[bytes, bytes], ...]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in raw_headers)
