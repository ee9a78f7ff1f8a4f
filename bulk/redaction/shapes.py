"""What looks like a secret, whether this process knows it or not: tokens by their prefix, headers, signed URLs, keys.

`is_in` is quick: each shape is looked for by a byte of it that is rare. `spans` says where the secret part is.
"""

import base64
import re
from collections.abc import Iterator

from bulk.redaction.known import places

_USERINFO = re.compile(rb"://(?:[^\s/?#@\"'<>\\:]{0,200}:([^\s/?#@\"'<>\\]+)|([^\s/?#@\"'<>\\:]{16,}))@")
"""A password in a URL, or a user name that is so long that it is a token."""

_QUICK: tuple[tuple[bytes, bytes, re.Pattern[bytes] | None], ...] = (
    (b"_", b"", re.compile(rb"_(?<=[pousrt]_)(?:(?<=gh[pousr]_)|(?<=github_pat_))")),
    (
        b"=",
        b"",
        re.compile(
            rb"=(?<=[nNgGeEtTdDyYlL]=)(?:(?<=(?i:token)=)|(?<=(?i:toke)=)|(?<=(?i:sig)=)|(?<=(?i:signature)=)"
            rb"|(?<=(?i:sigature)=)|(?<=(?i:secret)=)|(?<=(?i:password)=)|(?<=(?i:passwd)=)|(?<=(?i:apikey)=)"
            rb"|(?<=(?i:api_key)=)|(?<=(?i:credential)=)|(?<=(?i:credetial)=))"
        ),
    ),
    (b".", b"", re.compile(rb"\.(?:eyJ|[0-9a-f]{40}(?<=v1\.[0-9a-f]{40}))")),
    (b" ", b" PRIVATE KEY-----", None),
    (b" ", b"Basic ", None),
    (b" ", b"earer ", None),
    (b" ", b"BEARER ", None),
    (b" ", b"uthorizatio", None),
    (b" ", b"UTHORIZATION", None),
    (b"@", b"", re.compile(rb"://[^\s/?#@\"'<>\\]{0,200}(?::[^\s/?#@\"'<>\\:]*|[^\s/?#@\"'<>\\:]{8,})@")),
)
"""Of each shape a byte that is found most quickly, a text, and what decides; what is empty or None is not asked.
Each is also found in a text from which the small letter n was left out."""

_NAMES = (
    rb"(?:[0-9A-Za-z]+[_-])*token|sig|signature|x-amz-(?:signature|credential)|x-goog-(?:signature|credential)"
    rb"|(?:client_)?secret|password|passwd|api_?key"
)
_PARTS: tuple[tuple[bytes, re.Pattern[bytes], int], ...] = (
    (b"_", re.compile(rb"(?:gh[pousr]_[0-9A-Za-z]{10,}|github_pat_[0-9A-Za-z_]{10,})"), 0),
    (b"=", re.compile(rb"(?:^|[?&;#\s])(?i:" + _NAMES + rb")=([^&#\s\"'<>\\;]+)"), 1),
    (b".eyJ", re.compile(rb"eyJ[0-9A-Za-z_-]{6,}\.eyJ[0-9A-Za-z_-]{6,}\.[0-9A-Za-z_-]{8,}"), 0),
    (b"v1.", re.compile(rb"(?<![0-9A-Za-z])v1\.[0-9a-f]{40}(?![0-9a-f])"), 0),
    (
        b"-----BEGIN ",
        re.compile(
            rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
        ),
        0,
    ),
    (
        b"",
        re.compile(rb"(?i:\bbearer)[\s+]+((?=[^\s]{0,200}[0-9]|[0-9A-Za-z._~+/=-]{20})[0-9A-Za-z._~+/=-]{8,})"),
        1,
    ),
    (
        b"",
        re.compile(
            rb"(?i:authorization)[\"']?\s*[:=]\s*[\"']?(?:(?i:bearer|basic|token|negotiate|digest)[\s+]+)"
            rb"([^\s\"',;\\<>]{4,})"
        ),
        1,
    ),
    (b"@", _USERINFO, 0),
)
"""Of each shape what is always in it, what decides, and which group of it is the secret part."""
_BASIC = re.compile(rb"\bBasic[\s+]+([0-9A-Za-z+/]{6,}={0,2})")


def is_in(text: bytes | bytearray) -> bool:
    """Return whether `text` may hold one: quick, and sometimes wrong where it says yes."""
    for byte, words, pattern in _QUICK:
        if byte in text and words in text and (pattern is None or pattern.search(text)):
            return True
    return False


def hits(text: bytes) -> Iterator[int]:
    """Yield where `is_in` finds something, in no order."""
    for byte, words, pattern in _QUICK:
        if byte not in text or words not in text:
            continue
        if pattern is not None:
            yield from (found.start() for found in pattern.finditer(text))
        else:
            yield from places(text, words)


def spans(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the secret part of each stands in `text`."""
    for piece, pattern, group in _PARTS:
        if piece in text:
            yield from (found.span(group or found.lastindex or 0) for found in pattern.finditer(text))
    if b"Basic" in text:
        yield from (found.span(1) for found in _BASIC.finditer(text) if _is_login(found[1]))


def _is_login(text: bytes) -> bool:
    try:
        return b":" in base64.b64decode(text, validate=True)
    except ValueError:
        return False
