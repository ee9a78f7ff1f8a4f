"""Names in headers and media types: of the vendor, and what a caller accepts.

`Accept` may list several types, with parameters. Understood are `application/json`, `*/*`,
`application/vnd.VENDOR[.VERSION][.PARAM][+json]` where PARAM is raw, html, object, text or full; everything else
(unknown vendor types too) means plain JSON and is never refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PARAMETERS: Final = frozenset({"raw", "html", "object", "text", "full"})
JSON: Final = "json"
ACCEPTS_IN_MEMORY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Vendor:
    """The vendor's names.

    Attributes:
        name: as in media types: `service` or `github`.
        title: as in headers: `Service` or `GitHub`.
    """

    name: str
    title: str

    @classmethod
    def named(cls, name: str) -> Vendor:
        """Return the vendor of that name in the settings."""
        return cls(name, {"github": "GitHub"}.get(name, name.title()))

    def header(self, name: str) -> str:
        """Return a header of the vendor's: `X-Service-Request-Id` for `Request-Id`."""
        return f"X-{self.title}-{name}"


class Accepts:
    """Parser of `Accept` headers for one vendor, which remembers its results."""

    def __init__(self, vendor: Vendor) -> None:
        self._prefix = f"application/vnd.{vendor.name}"
        self._known: dict[str, str] = {}

    def wanted(self, accept: str) -> str:
        """Return `json`, or the parameter of the first best type listed: `raw`, `html`, `object`, `text`, `full`."""
        found = self._known.get(accept)
        if found is None:
            if len(self._known) >= ACCEPTS_IN_MEMORY:
                self._known.clear()
            found = self._known[accept] = self._parse(accept)
        return found

    def _parse(self, accept: str) -> str:
        best, best_quality = JSON, 0.0
        for entry in accept.lower().split(","):
            name, _, parameters = entry.partition(";")
            kind = self._kind(name.strip())
            quality = _quality(parameters)
            if kind is not None and quality > best_quality:
                best, best_quality = kind, quality
        return best

    def _kind(self, name: str) -> str | None:
        if name in ("application/json", "*/*", "application/*"):
            return JSON
        if not name.startswith(self._prefix):
            return None
        words = name[len(self._prefix) :].removesuffix("+json")
        if words and not words.startswith("."):
            return None
        return next((word for word in words.split(".") if word in PARAMETERS), JSON)


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
