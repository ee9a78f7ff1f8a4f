"""How a secret is written in Base64 and in hex, and inside of two encodings: JSON that holds Base64 of Base64.

The letters that hold nothing but the secret's own bits are a needle, which is searched for. Escapes around the outer
encoding are undone before anything is searched (`spellings.py`); escapes of the secret inside of it make needles of
their own. Of Base64 within Base64 two pieces are searched for, one behind the other: a line may end within one of them.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

NESTED_CHARS = 20
"""Shorter secrets are not looked for inside of two encodings: that would take several times as long for each text."""
PIECE_CHARS = 26
"""Length of each of the two pieces (letters of Base64 or hex): an end of a line is in one of them at most."""
LEAST_CHARS = 33
"""Least length of a needle inside of two encodings (letters)."""

_KINDS = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ")
_PERCENT = re.compile("%[0-9A-F]{2}")
_DER = b"IBADANBgkqhkiG9w0BAQEFAASC"
"""Letters that every RSA key of PKCS #8 in Base64 has at one place."""


def encoded(raw: bytes) -> Iterator[bytes]:
    """Yield `raw` in hex and in Base64: the letters that hold only its bits, with 0, 1 or 2 bytes before it."""
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + raw)
        core = whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
        yield core
        if b"+" in core or b"/" in core:
            yield core.replace(b"+", b"-").replace(b"/", b"_")


def nested(text: str) -> set[bytes]:
    """Return `text` inside of two encodings, of which the outer one is Base64 or hex."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) < NESTED_CHARS:
        return set()
    inner = {piece for form in encoded(raw) for piece in _pieces(form)}
    inner |= {form for form in _escaped(text) if form != raw}
    return {needle for form in inner for needle in encoded(form)}


def _escaped(text: str) -> Iterator[bytes]:
    """Yield `text` as it is written in URLs, JSON, HTML and UTF-16."""
    raw = text.encode("utf-8", "surrogatepass")
    quoted = quote(raw, safe="")
    for form in (quoted, quote(raw), quote_plus(raw), json.dumps(text)[1:-1]):
        yield form.encode()
    yield raw.replace(b"/", b"\\/")
    yield _PERCENT.sub(lambda found: found[0].lower(), quoted).encode()
    yield html.escape(text).encode("utf-8", "surrogatepass")
    yield text.encode("utf-16-le", "surrogatepass")[:-1]


def _pieces(form: bytes) -> tuple[bytes, bytes]:
    """Return two pieces of the end of `form`, because tokens of one kind often begin with the same letters."""
    before = form[-2 * PIECE_CHARS : -PIECE_CHARS]
    return form[-PIECE_CHARS:], before if len(before) == PIECE_CHARS else form[:PIECE_CHARS]


def encoded_keys() -> Iterator[bytes]:
    """Yield the words around a private key of any kind in Base64."""
    for title in _titles("BEGIN", "END"):
        yield from _base64(title)


def nested_keys() -> Iterator[bytes]:
    """Yield how a private key of any kind begins inside of two encodings."""
    for form in encoded(b"PRIVATE KEY-----"):
        yield from (needle for needle in encoded(form) if len(needle) >= LEAST_CHARS)
    for title in _titles("BEGIN"):
        for quoted in (quote(title), quote_plus(title)):
            yield from _base64(quoted.encode())
        for inner in _base64(title[5:]):
            yield from _base64(inner)
    yield from _base64(_DER)


def _titles(*ends: str) -> Iterator[bytes]:
    for kind in _KINDS:
        yield from (f"-----{end} {kind}PRIVATE KEY-----".encode() for end in ends)
