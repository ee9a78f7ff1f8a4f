"""Decodes gzip and deflate while a body is read, never beyond the cap (failures.md row 29).

This replaces the decoder of aiohttp, which takes a gzip stream that was cut for a whole one.
"""

import asyncio
import zlib
from typing import Any

import aiohttp

ACCEPTED = "gzip, deflate"
"""The codings that requests offer to take (`Accept-Encoding`)."""

_STEP_BYTES = 1024 * 1024
"""Most bytes that are decompressed at a time, before other tasks have their turn."""

_MOST_MEMBERS = 1000
_GZIP, _ZLIB, _RAW = 31, 15, -15
_DEFLATE_METHOD = 8


def _fastest() -> Any:
    """Return zlib, or a module with the same interface that is faster on long bodies."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


ZLIB = _fastest()
"""The module to use for everything that zlib does."""


class CodingBroken(Exception):
    """The coding is unknown, or the bytes are not in it, or end too early."""


class Coded:
    """A body without its coding, block by block.

    Args:
        content: the body as it comes.

    Raises:
        CodingBroken: the coding is not one that was offered.
    """

    def __init__(self, content: aiohttp.StreamReader, coding: str) -> None:
        self._content, self._decoder = content, _Decoder(coding)
        self._rest: bytes | None = None

    async def readany(self) -> bytes:
        """Return the next bytes, at most `_STEP_BYTES`; none at the end.

        Raises:
            CodingBroken: the body can't be decoded.
        """
        while True:
            if self._rest is not None:
                await asyncio.sleep(0)
            else:
                self._rest = await self._content.readany()
                if not self._rest:
                    break
            part, self._rest = self._decoder.step(self._rest, _STEP_BYTES)
            if part:
                return part
        if not self._decoder.is_complete:
            raise CodingBroken("it ends too early")
        return b""


class _Decoder:
    """Decodes one stream; gzip may hold several members, one after the other."""

    def __init__(self, coding: str) -> None:
        self._coding = coding.strip().lower()
        if self._coding not in ("gzip", "x-gzip", "deflate"):
            raise CodingBroken("its coding is not one that was offered")
        self._member: Any = None
        self._members = 0

    @property
    def is_complete(self) -> bool:
        """Whether the stream may end here; a body without any bytes may end at once."""
        return self._member is None or bool(self._member.eof)

    def step(self, data: bytes, most: int) -> tuple[bytes, bytes | None]:
        """Return at most `most` decoded bytes, and the bytes to go on with; None: more of the body is needed.

        Raises:
            CodingBroken: the bytes are not in this coding.
        """
        if self._member is None or self._member.eof:
            if not data:
                return b"", None
            self._begin(data)
        try:
            part: bytes = self._member.decompress(data, most)
        except (zlib.error, ZLIB.error, ValueError):
            raise CodingBroken("it is not in its coding") from None
        if self._member.eof:
            return part, self._member.unused_data or None
        return part, self._member.unconsumed_tail if len(part) == most else None

    def _begin(self, data: bytes) -> None:
        is_deflate = self._coding == "deflate"
        self._members += 1
        if self._members > (1 if is_deflate else _MOST_MEMBERS):
            raise CodingBroken("something follows its end")
        # some servers send deflate without the zlib wrapper that RFC 9110 §8.4.1.2 wants
        is_wrapped = data[0] & 0xF == _DEFLATE_METHOD
        self._member = ZLIB.decompressobj(_GZIP if not is_deflate else _ZLIB if is_wrapped else _RAW)
