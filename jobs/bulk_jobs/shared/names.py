"""The names that items carry: their types, as `bulk operations NAME` shows them, and the forms that the platform takes.

Lengths stand in the types and are refused while an item is decoded; forms are checked here, in words a person can use.
A `flaw_of_…` returns why a text can't be used, and an empty text where it can. Source: specification, Conventions and
Limits.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from bulk import urls
from bulk.operation import ItemFlaw

_is_owner = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*").fullmatch
_is_new_login = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*").fullmatch
_is_repo = re.compile(r"[A-Za-z0-9._-]+").fullmatch
_is_sha = re.compile(r"[0-9a-fA-F]{40}").fullmatch
_is_timestamp = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)").fullmatch
_not_in_branch = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//").search

Owner = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="organization or user that owns the repository; case does not matter",
        examples=["acme-eng"],
        extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"},
    ),
]
Repo = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="name of the repository, without .git; case does not matter",
        examples=["hello-world"],
        extra_json_schema={"pattern": "^[A-Za-z0-9._-]+$"},
    ),
]
Organization = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="name of the organization; case does not matter",
        examples=["acme-eng"],
        extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"},
    ),
]
NewLogin = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=39,
        description="name of the organization: letters and digits, with single hyphens between them",
        examples=["acme-web"],
        extra_json_schema={"pattern": "^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$"},
    ),
]
Ref = Annotated[
    str,
    Meta(
        min_length=1,
        description="branch, tag or commit to read; without it the default branch",
        examples=["main"],
    ),
]
Branch = Annotated[
    str,
    Meta(
        min_length=1,
        description="branch to write to; without it the default branch",
        examples=["main"],
    ),
]
BlobSha = Annotated[
    str,
    Meta(
        min_length=40,
        max_length=40,
        examples=["980a0d5f19a64b4b30a87d4206aade58726b60e3"],
        extra_json_schema={"pattern": "^[0-9a-fA-F]{40}$"},
    ),
]


class Person(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The author or committer of a change, with both name and email, as the platform insists."""

    name: Annotated[str, Meta(min_length=1, description="full name", examples=["Mona Lisa"])]
    email: Annotated[str, Meta(min_length=1, description="address", examples=["mona@example.com"])]


class DatedPerson(Person, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A person, and when it was done."""

    date: (
        Annotated[str, Meta(description="ISO 8601, as YYYY-MM-DDTHH:MM:SSZ", examples=["2026-11-21T08:00:00Z"])] | None
    ) = None


def flaws_of_repository(owner: str, repo: str) -> Sequence[ItemFlaw]:
    """Return what is wrong with `owner` and `repo`."""
    if _is_owner(owner) and _is_repo(repo) and repo not in (".", "..") and repo[-4:].lower() != ".git":
        return ()  # the usual case, made fast because it is checked for each item
    found = (("owner", flaw_of_owner(owner)), ("repo", flaw_of_repo(repo)))
    return [ItemFlaw(field, flaw) for field, flaw in found if flaw]


def flaw_of_owner(text: str) -> str:
    """Return why `text` can't be the name of an existing organization or user."""
    if _is_owner(text):
        return ""
    return f"expected letters, digits, hyphens and underscores, a letter or digit first; got {text!r}"


def flaw_of_new_login(text: str) -> str:
    """Return why no organization can be made with the name `text`."""
    if _is_new_login(text):
        return ""
    return f"expected letters and digits with single hyphens between them, none at an end; got {text!r}"


def flaw_of_repo(text: str) -> str:
    """Return why `text` can't be the name of a repository."""
    if "/" in text:
        return f"expected the repository's name alone, the owner has a field of its own; got {text!r}"
    if text[-4:].lower() == ".git":
        return f"expected the name without .git; got {text!r}"
    if not _is_repo(text) or text in (".", ".."):
        return f"expected letters, digits, hyphens, underscores and dots; got {text!r}"
    return ""


def flaw_of_text(text: str, *, allowed: str = "") -> str:
    """Return why `text` can't be sent: a control character that is not `allowed`, or half of a surrogate pair."""
    if text.isascii() and text.isprintable():
        return ""
    for char in text:
        code = ord(char)
        if (code < 32 or code == 127) and char not in allowed:
            return f"holds a control character (U+{code:04X})"
        if 0xD800 <= code <= 0xDFFF:
            return "holds a lone surrogate, which can't be sent"
    return ""


def flaw_of_branch(text: str) -> str:
    """Return why git refuses `text` as the name of a branch (`git check-ref-format`)."""
    forbidden = _not_in_branch(text)
    if forbidden:
        return f"git takes no branch name with {forbidden.group()!r} in it"
    if text[0] in "/-" or text[-1] in "/.":
        return f"git takes no branch name that begins or ends like {text!r}"
    if any(part.startswith(".") or part.endswith(".lock") for part in text.split("/")):
        return "git takes no branch name with a part that begins with a dot or ends with .lock"
    return flaw_of_text(text)


def flaw_of_file(path: str) -> str:
    """Return why no file can be written at `path`."""
    flaw = urls.flaw_of_path(path)
    if flaw:
        return flaw
    return "has a segment .git, which git refuses" if ".git" in path.lower().split("/") else ""


def flaw_of_sha(text: str) -> str:
    """Return why `text` can't be the sha of a blob."""
    return "" if _is_sha(text) else f"expected 40 hexadecimal digits; got {text!r}"


def flaw_of_timestamp(text: str) -> str:
    """Return why `text` is not a moment in ISO 8601 with a time zone."""
    if _is_timestamp(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return ""
    return f"expected ISO 8601 with a time zone, as 2026-11-21T08:00:00Z; got {text!r}"


def flaws_of_person(field: str, person: Person | None) -> Iterator[ItemFlaw]:
    """Yield what is wrong with an author or committer; flaws name dotted fields."""
    if person is None:
        return
    for name in ("name", "email"):
        text: str = getattr(person, name)
        flaw = flaw_of_text(text)
        if flaw or not text.strip() or "<" in text or ">" in text:
            yield ItemFlaw(f"{field}.{name}", flaw or "expected a text with more than blanks, and without < and >")
    if "@" not in person.email:
        yield ItemFlaw(f"{field}.email", f"expected an address with an @; got {person.email!r}")
    if isinstance(person, DatedPerson) and person.date is not None:
        flaw = flaw_of_timestamp(person.date)
        if flaw:
            yield ItemFlaw(f"{field}.date", flaw)


def flaws_of_commit(
    message: str, branch: str | None, committer: Person | None, author: Person | None
) -> Sequence[ItemFlaw]:
    """Return what is wrong with the message, the branch and the people of a commit."""
    is_plain = branch is None and committer is None and author is None and message.isascii() and message.isprintable()
    if is_plain and message.strip():
        return ()  # the usual case, made fast because it is checked for each item
    return [*_flaws_of_commit(message, branch, committer, author)]


def _flaws_of_commit(
    message: str, branch: str | None, committer: Person | None, author: Person | None
) -> Iterator[ItemFlaw]:
    flaw = flaw_of_text(message, allowed="\t\n\r")
    if flaw or not message.strip():
        yield ItemFlaw("message", flaw or "expected a text with more than blanks")
    if branch is not None:
        flaw = flaw_of_branch(branch)
        if flaw:
            yield ItemFlaw("branch", flaw)
    if committer is not None:
        yield from flaws_of_person("committer", committer)
    if author is not None:
        yield from flaws_of_person("author", author)
