"""A store of validators and what is kept in it, for the tests of both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.model import Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.cache.validators import ValidatorStore

BASE = "https://code.example.com/api/v3"
RAW = b'{"name": "README.md", "size": 3}'
BODY = {"name": "README.md", "size": 3}
GET = Request(method="GET", path="/repos/acme/api/readme")


class SetClock(Clock):
    """Shows the time that a test sets."""

    def __init__(self, at: float = 1_800_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


def store(directory: Path, token: str = "tok_of_alice", **changes: Any) -> ValidatorStore:
    """A store in `directory`."""
    given = {"base_url": BASE, **changes}
    clock = given.pop("clock", SetClock())
    return ValidatorStore(directory, Platform(**given), Secret(token), clock=clock)


def reply(headers: Mapping[str, str] | None = None, **changes: Any) -> Reply:
    """A 200 with a validator."""
    given: dict[str, Any] = {
        "status": 200,
        "headers": {"etag": '"e1"'} if headers is None else headers,
        "body": BODY,
        "raw": RAW,
        **changes,
    }
    return Reply(**given)
