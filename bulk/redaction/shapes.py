"""Texts that look like a secret, whether it is known or not: tokens by their prefix, headers, signed URLs, keys.

`is_in` is quick: each shape is searched for by a byte of it that is rare. `spans` says where the secret part is.
"""

import base64
import re
from collections.abc import Iterator

from bulk.redaction.known import places

_USERINFO = re.compile(rb"://(?:[^\s/?#@\"'<>\\:]{0,200}:([^\s/?#@\"'<>\\]+)|([^\s/?#@\"'<>\\:]{16,}))@")
"""A password in a URL, or a user name that is so long that it is a token."""

_QUICK: tuple[tuple[int, re.Pattern[bytes]], ...] = (
    (ord("_"), re.compile(rb"_(?<=[pousrt]_)(?:(?<=gh[pousr]_)|(?<=github_pat_))")),
    (
        ord("="),
        re.compile(
            rb"=(?<=[nNgGeEtTdDyYlL]=)(?:(?<=(?i:token)=)|(?<=(?i:toke)=)|(?<=(?i:sig)=)|(?<=(?i:signature)=)"
            rb"|(?<=(?i:sigature)=)|(?<=(?i:secret)=)|(?<=(?i:password)=)|(?<=(?i:passwd)=)|(?<=(?i:apikey)=)"
            rb"|(?<=(?i:api_key)=)|(?<=(?i:credential)=)|(?<=(?i:credetial)=))"
        ),
    ),
    (ord("@"), re.compile(rb"://[^\s/?#@\"'<>\\]{0,200}(?::[^\s/?#@\"'<>\\:]*|[^\s/?#@\"'<>\\:]{8,})@")),
    (ord("."), re.compile(rb"\.(?:eyJ|[0-9a-f]{40}(?<=v1\.[0-9a-f]{40}))")),
)
"""For some shapes, a byte that is found most quickly, and the pattern that decides. Each is also found in a text from
which the small letter n was left out."""

_WORDS: tuple[tuple[bytes, tuple[bytes, ...]], ...] = (
    (b" ", (b" PRIVATE KEY-----", b"Basic ", b"earer ", b"BEARER ", b"uthorizatio", b"UTHORIZATION")),
    (b"-", (b"+PRIVATE+KEY-----",)),
)
"""For the other shapes, such a byte, and words of which one must be there."""

_ENCODED_PEM = (b"UFJJVkFURSBLRVktLS0tL", b"BSSVZBVEUgS0VZLS0tLS", b"QUklWQVRFIEtFWS0tLS0t")
_ENCODED = (
    (b"LS0t", _ENCODED_PEM),
    (b"", (b"IBAAK", b"IBADANBgkqhkiG9w0BAQEFAASC", b"5052495641544520", b"020100028", b"0101010500048")),
)
"""Marks of an RSA key in Base64 and in hex: of its PEM the words before the key, at each of three offsets; of its DER
(PKCS #1 and #8) the bytes before the modulus. Each group begins with a piece that its marks imply, or with none."""

_EQUALS = ord("=")
_RARE = 64
"""A byte that is found this often in a text is not rare (count)."""

_NAMES = (
    rb"(?:[0-9A-Za-z]+[_-])*token|sig|signature|x-amz-(?:signature|credential)|x-goog-(?:signature|credential)"
    rb"|(?:client_)?secret|password|passwd|api_?key"
)
_BASE64, _PEM = rb"[0-9A-Za-z+/=_-]", b"|".join(_ENCODED_PEM)
_KEY_PARTS: tuple[tuple[bytes, re.Pattern[bytes], int], ...] = (
    (
        b"-----BEGIN",
        re.compile(
            rb"-----BEGIN[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY-----.*?"
            rb"(?:-----END[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY-----|\Z)",
            re.DOTALL,
        ),
        0,
    ),
    (b"", re.compile(rb"(?:%s)(?:%s*(?:%s)|%s*)" % (_PEM, _BASE64, _PEM, _BASE64)), 0),
    (
        b"MII",
        re.compile(rb"MII[A-Za-z][0-9A-Za-z+/_-][AQgw]IB(?:AAK[BC]|ADANBgkqhkiG9w0BAQEFAASC)%s*" % _BASE64),
        0,
    ),
    (b"5052495641544520", re.compile(rb"(?i:50524956415445204b45592d2d2d2d2d)[0-9A-Fa-f]*"), 0),
    (
        b"3082",
        re.compile(rb"(?i:3082[0-9a-f]{4}020100(?:028[12]|300d06092a864886f70d01010105000482))[0-9A-Fa-f]*"),
        0,
    ),
)
"""Private keys, in the form of `_PARTS`."""
_PARTS: tuple[tuple[bytes, re.Pattern[bytes], int], ...] = (
    (b"_", re.compile(rb"(?:gh[pousr]_[0-9A-Za-z]{10,}(?:[._-][0-9A-Za-z_-]{8,})*|github_pat_[0-9A-Za-z_]{10,})"), 0),
    (b"=", re.compile(rb"(?:^|[?&;#\s])(?i:" + _NAMES + rb")=([^&#\s\"'<>\\;]+)"), 1),
    (b".eyJ", re.compile(rb"eyJ[0-9A-Za-z_-]{6,}\.eyJ[0-9A-Za-z_-]{6,}\.[0-9A-Za-z_-]{8,}"), 0),
    (b"v1.", re.compile(rb"(?<![0-9A-Za-z])v1\.[0-9a-f]{40}(?![0-9a-f])"), 0),
    *_KEY_PARTS,
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
"""For each shape, bytes that are always in it, the pattern that decides, and the group that is the secret part."""
_BASIC = re.compile(rb"\bBasic[\s+]+([0-9A-Za-z+/]{6,}={0,2})")


def is_in(text: bytes | bytearray) -> bool:
    """Return whether `text` may hold something that looks like a secret: quick, but a yes is sometimes wrong."""
    for byte, pattern in _QUICK:
        if byte in text and _stands_in(pattern, byte, text):
            return True
    return _holds_one_of(_WORDS, text)


def _holds_one_of(groups: tuple[tuple[bytes, tuple[bytes, ...]], ...], text: bytes | bytearray) -> bool:
    """Return whether a word of any group stands in `text`; the words of a group stand only with its piece."""
    for piece, words in groups:
        if text.find(piece) >= 0:
            for word in words:
                if text.find(word) >= 0:
                    return True
    return False


def _stands_in(pattern: re.Pattern[bytes], byte: int, text: bytes | bytearray) -> bool:
    """Return whether `pattern`, which begins with `byte`, is found in `text`.

    If that byte is rare, as at the ends of Base64, it alone is searched for, which takes a fifth of the time.
    """
    at = -1
    for _ in range(_RARE if byte == _EQUALS else 0):
        at = text.find(byte, at + 1)
        if at < 0:
            return False
        if pattern.match(text, at):
            return True
    return pattern.search(text, at + 1) is not None


def is_encoded_in(text: bytes | bytearray, *, is_content: bool = False) -> bool:
    """Return whether `text`, which has no breaks of lines any more, may hold a private key in Base64 or hex.

    Args:
        is_content: `text` is a file in Base64 that does not begin as a key does: it could only hold a PEM, which
            `known.py` has searched for by the words around it.
    """
    return not is_content and _holds_one_of(_ENCODED, text)


def has_key_in(text: bytes, whole: bytes) -> bool:
    """Return whether a private key stands in `text` as it is written; `whole` is the same without breaks."""
    is_there = b"PRIVATE" in text or is_encoded_in(whole)
    return is_there and any(pattern.search(each) for each in (text, whole) for _, pattern, _ in _KEY_PARTS)


def hits(text: bytes) -> Iterator[int]:
    """Yield where `is_in` finds something, in no order."""
    for byte, pattern in _QUICK:
        if byte in text:
            yield from (found.start() for found in pattern.finditer(text))
    for piece, words in (*_WORDS, *_ENCODED):
        for word in words if piece in text else ():
            if word in text:  # hardly ever, and beginning to look for places takes longer
                yield from places(text, word)


def spans(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the secret part of each text that looks like a secret stands in `text`."""
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
