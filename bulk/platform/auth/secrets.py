"""Secrets: held so that nothing shows them by accident.

A `Secret` gives its text only through `reveal`, and is remembered, so that `bulk.redaction` takes it out of everything
that is written: a platform may echo what it was sent (failures.md rows 62, 63).
"""

import hmac
from collections.abc import Sequence
from typing import Never

from bulk.redaction import forget, remember
from bulk.redaction.known import MASK


class Secret:
    """A text that is never shown: not by `repr`, `str` or `format`, not by copying, pickling or encoding it.

    Making one remembers it for `redact`.

    Args:
        parts: pieces of the text that are secrets also by themselves, such as the signature of a JSON web token.
    """

    __slots__ = ("__parts", "__text")

    def __init__(self, text: str, *, parts: Sequence[str] = ()) -> None:
        self.__text, self.__parts = text, tuple(parts)
        for each in (text, *self.__parts):
            remember(each, is_deep=True)

    def reveal(self) -> str:
        """Return the text itself, for the one place that sends it."""
        return self.__text

    def forget(self) -> None:
        """Stop searching texts for this secret, because it has ended and is not used any more."""
        for each in (self.__text, *self.__parts):
            forget(each)

    def is_same(self, other: "Secret") -> bool:
        """Return whether both hold the same text; the comparison takes the same time wherever they differ."""
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
