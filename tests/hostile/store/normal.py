"""The forms in which a platform may keep what it is given: the same thing, spelt otherwise.

A `Normal` is a set of names of such habits; with none, everything is kept as it came.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


def _host_in_lower_case(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower()))


def _without_default_port(url: str) -> str:
    parts = urlsplit(url)
    host, mark, port = parts.netloc.rpartition(":")
    if mark and port.isdigit() and DEFAULT_PORTS.get(parts.scheme.lower()) == int(port):
        return urlunsplit(parts._replace(netloc=host))
    return url


def _with_slash(url: str) -> str:
    parts = urlsplit(url)
    return url if parts.path.endswith("/") else urlunsplit(parts._replace(path=parts.path + "/"))


def _without_slash(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/")))


def _percent_decoded(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=quote(unquote(parts.path), safe="/:@!$&'()*+,;=-._~")))


def _percent_in_lower_case(url: str) -> str:
    parts = url.split("%")
    return parts[0] + "".join(f"%{part[:2].lower()}{part[2:]}" for part in parts[1:])


def _host_in_ascii(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.encode("idna").decode()))


URL_HABITS: dict[str, Callable[[str], str]] = {
    "host in lower case": _host_in_lower_case,
    "no default port": _without_default_port,
    "a slash more": _with_slash,
    "a slash less": _without_slash,
    "needless percents decoded": _percent_decoded,
    "percents in lower case": _percent_in_lower_case,
    "host in ASCII": _host_in_ascii,
}
TEXT_HABITS: dict[str, Callable[[str], str]] = {
    "trimmed": str.strip,
    "spaces joined": lambda text: " ".join(text.split()),
    "newline at the end": lambda text: f"{text.strip()}\n",
}
NAME_HABITS: dict[str, Callable[[str], str]] = {
    "names in lower case": str.lower,
    "names in upper case": str.upper,
}
OTHER_HABITS = (
    "reordered",
    "added defaults",
    "one event more",
    "numbers for strings",
    "nulls for nothing",
    "words in upper case",
    "switches as numbers",
)
WORDS = frozenset(
    ("enabled", "disabled", "not_set", "enforced", "unenforced", "deletion", "commit_message_pattern", "starts_with")
)
"""Words of sets, as requests have them."""
HABITS = (*URL_HABITS, *TEXT_HABITS, *NAME_HABITS, *OTHER_HABITS)


class Normal(frozenset[str]):
    """The habits of one platform, by name."""

    def url(self, url: Any) -> Any:
        """A URL as it is kept."""
        return self._apply(URL_HABITS, url)

    def text(self, text: Any) -> Any:
        """A text for people as it is kept."""
        return self._apply({name: TEXT_HABITS[name] for name in ("trimmed", "spaces joined")}, text)

    def commit_message(self, text: Any) -> Any:
        """The message of a commit as it is kept."""
        return self._apply(TEXT_HABITS, text)

    def login(self, name: Any) -> Any:
        """A name in which case does not matter, as it is kept."""
        return self._apply(NAME_HABITS, name)

    def listed(self, things: list[Any]) -> list[Any]:
        """A list in which order does not matter."""
        return list(reversed(things)) if "reordered" in self else things

    def events(self, events: list[str]) -> list[str]:
        """The events of a hook."""
        more = ["ping"] if "one event more" in self and "ping" not in events and "*" not in events else []
        return self.listed([*events, *more])

    def options(self, value: Any) -> Any:
        """Words of sets and switches, at any depth, as they are shown."""
        if isinstance(value, dict):
            return {name: self.options(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.options(each) for each in value]
        if isinstance(value, bool):
            return int(value) if "switches as numbers" in self else value
        is_word = "words in upper case" in self and isinstance(value, str) and value in WORDS
        return value.upper() if is_word else value

    def _apply(self, habits: dict[str, Callable[[str], str]], text: Any) -> Any:
        if not isinstance(text, str):
            return text
        for name, habit in habits.items():
            if name in self:
                text = habit(text)
        return text
