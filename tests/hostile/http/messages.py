"""What arrives at the second platform and what leaves it: one request, one answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BASE_PATH = "/api/v3"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as it arrived.

    Attributes:
        path: decoded, without the base path. query: each name with all its values.
        headers: names in lower case. token: what the client logs in with; "" where it does not.
        by: "us", or "other" where somebody else does something at the same time.
    """

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    by: str = "us"

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str], body: bytes) -> "Ask":
        """Make it of a request line's method and target."""
        parts = urlsplit(target)
        path = unquote(parts.path.removeprefix(BASE_PATH))
        return cls(method, path, parse_qs(parts.query, keep_blank_values=True), headers, body)

    @property
    def token(self) -> str:
        """The credential of `Authorization`, whatever its scheme."""
        return self.headers.get("authorization", "").rpartition(" ")[2]

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET"

    def one(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        return self.query.get(name, [default])[0]

    def json(self) -> dict[str, Any]:
        """The body's object; what is not an object is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def at(self, path: str) -> "Ask":
        """The same request to another path."""
        return replace(self, path=path)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; its framing is the wire's affair."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def with_headers(self, *more: tuple[str, str]) -> "Answer":
        """The same with more headers behind."""
        return replace(self, headers=self.headers + more)


JSON = ("content-type", "application/json; charset=utf-8")


def shown(status: int, value: Any, *headers: tuple[str, str]) -> Answer:
    """A JSON answer; keys are sorted backwards, because an object has no order."""
    return Answer(status, json.dumps(_backwards(value), ensure_ascii=False).encode(), (JSON, *headers))


def _backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _backwards(value[key]) for key in sorted(value, reverse=True)}
    if isinstance(value, (list, tuple)):
        return [_backwards(each) for each in value]
    return value


def nothing(status: int) -> Answer:
    """An answer without a body: 204, 205."""
    return Answer(status)


def refused(status: int, message: str) -> Answer:
    """A refusal. The specification does not show the shape of an error: this one has two more fields."""
    return shown(status, {"message": message, "errors": None, "documentation_url": None})
