"""Package URLs, checked as by the reference library; plain ones, which are nearly all, take a tenth of its time."""

import functools
import re

from packageurl import PackageURL

from bulk_jobs.shared import names

_SHOWN_CHARACTERS = 60
_REASON_CHARACTERS = 120

_plain = re.compile(
    r"pkg:(?:(?:npm|pypi|nuget|gem|cargo)/[A-Za-z0-9][A-Za-z0-9._-]*"
    r"|maven/[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*"
    r"|golang/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)+)(?:@[A-Za-z0-9][A-Za-z0-9._+-]*)?"
).fullmatch


def flaw_of(text: str) -> str:
    """Return why `text` is not a package URL, with the text cut to some characters; empty where it is one."""
    return "" if _plain(text) else _flaw_of_any(text)


@functools.lru_cache(maxsize=65_536)
def _flaw_of_any(text: str) -> str:
    """Return the same for any text, and remember it, because the same packages come again and again."""
    flaw = names.flaw_of_text(text)
    if flaw:
        return f"{text[:_SHOWN_CHARACTERS]!r} {flaw}"
    try:
        PackageURL.from_string(text)
    except ValueError as error:
        reason = (
            str(error).partition(repr(text))[0].rstrip(" :.")[:_REASON_CHARACTERS]
        )  # the message may repeat the whole text
        return f"expected a package URL, as pkg:npm/left-pad@1.3.0; got {text[:_SHOWN_CHARACTERS]!r}: {reason}"
    return ""
