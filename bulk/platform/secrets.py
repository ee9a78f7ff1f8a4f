"""Secrets: held so that nothing shows them by accident, and taken out of every text that comes from outside.

A `Secret` gives its text only through `reveal`. `redact` knows every secret that was made or remembered here, also in
Base64 (at any offset) and URL-encoded, because a platform may echo what it was sent (failures.md rows 62, 63).
"""

import base64
import hmac
import re
from collections.abc import Iterator
from typing import Never
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST_CHARS = 4
"""What is shorter can't be told from ordinary text, and taking it out would spoil every message."""


class Secret:
    """A text that is never shown: not by `repr`, `str` or `format`, not by copying, pickling or encoding it.

    Making one remembers it for `redact`.
    """

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text
        remember(text)

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self.__text

    def is_same(self, other: "Secret") -> bool:
        """Whether both hold the same text; takes the same time wherever they differ."""
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _memo: object) -> "Secret":
        return self

    def __getstate__(self) -> Never:
        raise TypeError("a secret can't be pickled")

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a secret can't be pickled")


class Registry:
    """Secrets, as one pattern over all the forms in which they may come back. One of them serves the whole process."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, text: str) -> None:
        """From now on `text` is a secret."""
        if len(text) >= SHORTEST_CHARS and text not in self._texts:
            self._texts.add(text)
            self._pattern = None

    def holds(self, text: str) -> bool:
        """Whether exactly `text` is one."""
        return text in self._texts

    def redact(self, text: str) -> str:
        """`text` with `***` where a secret stands."""
        if not self._texts or not text:
            return text
        if self._pattern is None:
            forms = sorted({form for known in self._texts for form in _forms(known)}, key=len, reverse=True)
            self._pattern = re.compile("|".join(re.escape(form) for form in forms))
        return self._pattern.sub(MASK, text)


_REGISTRY = Registry()


def remember(text: str) -> None:
    """Let `redact` take `text` out from now on: a webhook's secret, a proxy's password. Meant for dozens of them."""
    _REGISTRY.add(text)


def is_secret(text: str) -> bool:
    """Whether `text` is exactly one of the secrets known so far."""
    return _REGISTRY.holds(text)


def redact(text: str) -> str:
    """`text` with every known secret replaced by `***`, in whatever form it stands there."""
    return _REGISTRY.redact(text)


def _forms(text: str) -> Iterator[str]:
    """`text` as it may be echoed: as it is, escaped for JSON, URL-encoded, within Base64."""
    yield text
    yield text.replace("\\", "\\\\").replace('"', '\\"')
    for encoded in (quote(text, safe=""), quote(text), quote_plus(text)):
        yield encoded
        yield re.sub("%..", lambda found: found[0].lower(), encoded)
    raw = text.encode("utf-8", "surrogatepass")
    for offset in range(3):
        # the characters of Base64 that hold only bits of the secret, when `offset` bytes stand before it
        whole = base64.b64encode(b"\0" * offset + raw).decode()
        core = whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
        if len(core) >= SHORTEST_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
