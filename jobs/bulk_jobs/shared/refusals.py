"""The contents of a refusal. The shape of error bodies is not specified, so every part of them may be missing or odd.

Messages are for people: they may quote the names of repositories, users and files, so that no decision depends on a
word in them. Decisions depend on the status, the code of a single error, a sentence of the platform that stands alone
and names nothing, and most of all on a read of the present state. Source: open-points.md, Error body.
"""

import re
from collections.abc import Container, Iterator, Sequence
from typing import Annotated, Any

from msgspec import Meta

from bulk.model import ErrorCode, Outcome, Reply, failed

_EMPTY = re.compile(r"This repository is empty\.?", re.IGNORECASE)
_TOO_LARGE = re.compile(
    r"This API returns blobs up to \d{1,4} MB in size\.(?: The requested blob is too large to fetch via the API, but "
    r"you can use the Git Data API to request blobs up to \d{1,4} MB in size\.)?"
)
_RULES = re.compile(r"Repository rule violations found\n.*", re.IGNORECASE | re.DOTALL)
_PROTECTED = "about-protected-branches"
"""The page of the documentation to which a refusal leads that a protected branch makes."""

Expect = Annotated[
    dict[str, Any],
    Meta(
        description="fields as they must be shown right before the write, unless one is as the item wants it already; "
        "else it is a conflict and nothing is written"
    ),
]
"""The field `expect` of items: `bulk undo` fills it with the state that the run has left. Files have `sha` for that."""

MESSAGE_CHARS = 500
"""The most characters of a platform's message that are passed on (count)."""


def message_of(reply: Reply) -> str:
    """Return the message of the platform, with those of its single errors; the status where there is no message."""
    body = reply.body if isinstance(reply.body, dict) else {}
    message = body.get("message")
    parts = [message] if isinstance(message, str) and message else []
    parts.extend(text for text in _details(reply) if text and text not in parts)
    said = " ".join("; ".join(parts).split())
    return (said or f"the platform answered {reply.status} and gave no reason")[:MESSAGE_CHARS]


def has_code(reply: Reply, code: str) -> bool:
    """Return whether one of the single errors has this code, such as `too_large` or `already_exists`."""
    return any(isinstance(entry, dict) and entry.get("code") == code for entry in _errors(reply))


def is_too_large(reply: Reply) -> bool:
    """Return whether a file was refused because of its size in the representation that was asked for."""
    return has_code(reply, "too_large") or _says(reply, _TOO_LARGE)


def refused(reply: Reply) -> Outcome:
    """Return the outcome of a creation that was refused, while no thing as asked for exists. Only the status or the
    code makes it a `conflict`."""
    is_conflict = reply.status == 409 or has_code(reply, "already_exists")
    code = ErrorCode.CONFLICT if is_conflict else ErrorCode.VALIDATION_FAILED
    return failed(code, message_of(reply), http_status=reply.status, gives_codes=_gives_codes(reply))


def _gives_codes(reply: Reply) -> bool:
    """Return whether each single error has a telling code; `custom` only says that its message tells the reason."""
    codes = [entry.get("code") if isinstance(entry, dict) else None for entry in _errors(reply)]
    return bool(codes) and all(isinstance(code, str) and code not in ("", "custom") for code in codes)


def is_empty_repository(reply: Reply) -> bool:
    """Return whether a 404 says that the repository has no commit yet; the credential can see the repository then."""
    return reply.status == 404 and _says(reply, _EMPTY)


def is_against_rules(reply: Reply) -> bool:
    """Return whether rules of the repository or the protection of its branch refuse a write (409), which no repeat
    changes. No path has a line end, so that none can look like that message."""
    page = reply.body.get("documentation_url") if isinstance(reply.body, dict) else None
    return _says(reply, _RULES) or (isinstance(page, str) and page.partition("#")[0].endswith(_PROTECTED))


def _says(reply: Reply, sentence: re.Pattern[str]) -> bool:
    """Return whether the whole message of a refusal is that sentence of the platform."""
    message = reply.body.get("message") if isinstance(reply.body, dict) else None
    return isinstance(message, str) and sentence.fullmatch(message.strip()) is not None


def bad_answer(reply: Reply, expected: str) -> Outcome:
    """Return the outcome of a read whose answer is not what the specification says."""
    shown = type(reply.body).__name__ if reply.body is not None else "nothing"
    return failed(ErrorCode.BAD_RESPONSE, f"expected {expected}, the platform sent {shown}", http_status=reply.status)


def _errors(reply: Reply) -> list[object]:
    errors = reply.body.get("errors") if isinstance(reply.body, dict) else None
    return errors if isinstance(errors, list) else [] if errors is None else [errors]


def _details(reply: Reply) -> Iterator[str]:
    for entry in _errors(reply):
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            if isinstance(entry.get("message"), str):
                yield entry["message"]
            else:
                words = (entry.get("resource"), entry.get("field"), entry.get("code"))
                yield " ".join(word for word in words if isinstance(word, str))


def unexpected(what: str, differing: Sequence[str], as_wanted: Container[str] = ()) -> Outcome | None:
    """Return the outcome of an item whose thing has these fields not as expected; None where they are not in the way.

    Args:
        what: the thing, for the message.
        as_wanted: fields that have the wanted value already, so that no change of somebody else gets lost. An item
            right behind another one may have seen the state before both, and is undone to that, as the other item is.
    """
    in_the_way = [field for field in differing if field not in as_wanted]
    if not in_the_way:
        return None
    fields = ", ".join(in_the_way)
    return failed(ErrorCode.CONFLICT, f"{what} is not as expected ({fields}): somebody else changed it, so it stays")


def not_as_left(what: str, differing: Sequence[str]) -> Outcome:
    """Return the outcome of a look at a thing that an item has changed, and whose fields `differing` are others now."""
    return failed(ErrorCode.CONFLICT, f"{what} is not as it was left ({', '.join(differing)})")
