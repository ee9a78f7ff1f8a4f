"""Sentences in which a platform speaks of limits, lock-outs and work in progress.

A message may quote any name: of a repository `rate-limiter`, of a ruleset "work in progress". So a word alone never
decides. A limit is a sentence that is known from its first word to its last; for lock-outs and work in progress, every
word of the message has to be one that such sentences are made of. Statuses, headers and codes are looked at first.
Pure.
Source: open-points.md (limits); failures.md rows 18, 19, 23.
"""

import re
from typing import Final

SENTENCE_WORDS = 4
"""A message of fewer words may be a name (count)."""

_PLEASE = r"(?: please .{0,300}| if you reach .{0,400})*"
_PRIMARY: Final = re.compile(
    r"(?:the )?(?:api )?rate limit (?:has been |was )?exceeded"
    r"(?: for (?:(?:user|installation|app|client|site|enterprise|organization)(?: id)? )?\S{1,100})?[.!]?"
    r"(?: \(.{0,300}\))?" + _PLEASE,
    re.IGNORECASE | re.DOTALL,
)
_SECONDARY: Final = re.compile(
    r"you have (?:exceeded a secondary rate limit|triggered an abuse detection mechanism)"
    r"(?: and have been temporarily blocked from content creation)?[.!]?" + _PLEASE,
    re.IGNORECASE | re.DOTALL,
)
_SUSPENDED: Final = re.compile(
    r"(?:this installation has been suspended|(?:sorry[.,] )?your account (?:was|is|has been) suspended)[.!]?"
    + _PLEASE,
    re.IGNORECASE | re.DOTALL,
)
_SPAMMED: Final = re.compile(r"validation failed, or the endpoint has been spammed[.!]?", re.IGNORECASE)

_WORD: Final = re.compile(r"\w+")
_QUOTE: Final = re.compile(r"[\"'`/\\:<>{}\[\]]")
_TRY_AGAIN = "please try again later wait retry it until has have finished ended been is are in a few minutes"
_LOCKED_WORDS: Final = frozenset(
    f"{_TRY_AGAIN} maximum number of login log sign authentication attempts exceeded too many repeated invalid failed "
    "bad credentials your this user account temporarily rejected blocked locked out for because after with".split()
)
_LOCKED_NEEDS: Final = (
    "attempts exceeded",
    "too many invalid",
    "too many failed",
    "too many bad",
    "too many login",
    "repeated invalid",
    "repeated failed",
    "temporarily rejected",
    "temporarily blocked",
    "temporarily locked",
)
_BUSY_WORDS: Final = frozenset(
    f"{_TRY_AGAIN} an another the one of this that your for on to same other already currently still at moment "
    "enablement disablement attachment rename renaming operation action change update request job task process "
    "enterprise organization organisation configuration product setting settings repositories security "
    "progress running being processed".split()
)
_BUSY_NEEDS: Final = ("in progress", "already running", "being processed")


def is_primary_limit(message: str) -> bool:
    """Return whether the whole message says that a rate limit is used up."""
    return _PRIMARY.fullmatch(message.strip()) is not None


def is_secondary_limit(message: str) -> bool:
    """Return whether the whole message says that there were too many requests at once."""
    return _SECONDARY.fullmatch(message.strip()) is not None


def is_suspended(message: str) -> bool:
    """Return whether the whole message says that the token's installation or user was suspended."""
    return _SUSPENDED.fullmatch(message.strip()) is not None


def is_lock_out(message: str) -> bool:
    """Return whether the whole message says that credentials are rejected for a while."""
    return _is_made_of(message, _LOCKED_WORDS, _LOCKED_NEEDS)


def is_in_progress(message: str) -> bool:
    """Return whether the whole message says that an earlier request is still being worked on, and nothing else."""
    return _is_made_of(message, _BUSY_WORDS, _BUSY_NEEDS)


def is_spammed(message: str) -> bool:
    """Return whether the whole message says that the endpoint was called too often."""
    return _SPAMMED.fullmatch(message.strip()) is not None


def _is_made_of(message: str, vocabulary: frozenset[str], needs: tuple[str, ...]) -> bool:
    """Return whether a message is made only of words of `vocabulary` and holds one of the phrases of `needs`.

    A message with a character that quotes a name is not.
    """
    if len(message) > 300 or _QUOTE.search(message):
        return False
    words = _WORD.findall(message.lower())
    if len(words) < SENTENCE_WORDS or not vocabulary.issuperset(words):
        return False
    said = f" {' '.join(words)} "
    return any(f" {need} " in said for need in needs)
