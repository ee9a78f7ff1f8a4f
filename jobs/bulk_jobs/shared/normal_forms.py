"""Normal forms, in which values are compared: a platform may keep a value in another form than it was sent.

A platform may write a host in lower case, leave out a default port, trim a text, show 0 for "0", or put a list that is
a set into another order. Each operation names the form that compares each of its fields. Normal forms are never sent:
the values of an item go to the platform as they are.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

Form = Callable[[Any], Hashable]
"""Takes a JSON value; values with equal forms are equal to the platform. It never raises."""

_NO_FORMS: Mapping[str, Form] = {}

_PORTS = {"http": 80, "https": 443}
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_find_escapes = re.compile(r"%([0-9A-Fa-f]{2})")
_KEPT = "!$&'()*+,;=:@/?%-._~"


def text(value: Any) -> Hashable:
    """Return a text without blanks around it, in Unicode's composed form, with line feeds as line ends. Case stays."""
    if not isinstance(value, str):
        return plain(value)
    words: str = value.strip()
    if words.isascii() and "\r" not in words:
        return words
    return unicodedata.normalize("NFC", words.replace("\r\n", "\n").replace("\r", "\n"))


def name(value: Any) -> Hashable:
    """Return the form of a name or an id: a text in lower case; a number becomes its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    form = text(value)
    if not isinstance(form, str):
        return form
    return form.lower() if form.isascii() else unicodedata.normalize("NFC", form.casefold())


def switch(value: Any) -> Hashable:
    """Return the form of a switch: `"0"` for `"0"`, 0 or false, and `"1"` for `"1"`, 1 or true."""
    word = str(value).strip().casefold()
    return {"false": "0", "true": "1"}.get(word, word)


def url(value: Any) -> Hashable:
    """Return the form of a URL: scheme and host in lower case and ASCII, no default port, no slash at the end of its
    path, each character escaped only where it has to be. Query and fragment stay. A text that is not a URL is compared
    as a text."""
    return _address(value, is_exact=False)


def exact_url(value: Any) -> Hashable:
    """Return the form of a URL as `url` does, but with the slash at the end of its path, which may lead elsewhere; only
    a host alone is the same with a slash and without."""
    return _address(value, is_exact=True)


def _address(value: Any, *, is_exact: bool) -> Hashable:
    if not isinstance(value, str):
        return plain(value)
    value = value.strip()
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return text(value)
    if not parts.scheme or not parts.hostname:
        return text(value)
    host = _ascii_host(parts.hostname)
    at = "" if port is None or port == _PORTS.get(parts.scheme.lower()) else f":{port}"
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    path = _escaped(parts.path)
    path = path or "/" if is_exact else path.rstrip("/")
    query = f"?{_escaped(parts.query)}" if parts.query else ""
    fragment = f"#{_escaped(parts.fragment)}" if parts.fragment else ""
    return f"{parts.scheme.lower()}://{user}{host}{at}{path}{query}{fragment}"


def _ascii_host(host: str) -> str:
    """Return a host as the domain name system has it: in lower case and ASCII, where that is possible."""
    host = unicodedata.normalize("NFKC", host).lower().rstrip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host


def _escaped(part: str) -> str:
    """Return a part of a URL with only the necessary characters percent-encoded, with digits in upper case."""

    def escape(found: re.Match[str]) -> str:
        char = chr(int(found[1], 16))
        return char if char in _UNRESERVED else found[0].upper()

    part = quote(unicodedata.normalize("NFC", part), safe=_KEPT)
    return _find_escapes.sub(escape, part)


def plain(value: Any) -> Hashable:
    """Return a JSON value as it is; lists keep their order."""
    if isinstance(value, dict):
        return frozenset((str(key), plain(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(each) for each in value)
    # to Python, True equals 1
    return ("bool", value) if isinstance(value, bool) else value


def is_within(asked: Any, shown: Any, form: Form = text, members: Mapping[str, Form] = _NO_FORMS) -> bool:
    """Return whether everything that was asked for is shown; further values that are shown are the platform's own.

    Lists must have the same length, but for what was asked for twice; their order does not matter. A null counts as not
    shown, and as an empty text. An object may leave out what is false. A switch and a number may be shown as texts, and
    a switch as 0 or 1.

    Args:
        form: the form that compares single texts.
        members: the forms of single members of objects, at any depth; others are compared by `form`.
    """
    if isinstance(asked, dict):
        if isinstance(shown, dict):
            asked = {field: value for field, value in asked.items() if field in shown or value is not False}
        shown = {} if shown is None else shown
        return isinstance(shown, dict) and all(
            is_within(value, shown.get(field), members.get(field, form), members) for field, value in asked.items()
        )
    if isinstance(asked, list):
        shown = [] if shown is None else shown
        if isinstance(shown, list) and len(shown) < len(asked):
            asked = list({plain(each): each for each in asked}.values())
        return isinstance(shown, list) and len(asked) == len(shown) and _is_paired(asked, shown, form, members)
    if isinstance(asked, bool):
        return shown is not None and switch(asked) == switch(shown)
    form = name if isinstance(asked, int) else form
    return form(_filled(asked, shown)) == form(_filled(shown, asked))


def _filled(value: Any, other: Any) -> Any:
    """Return an empty text in the place of a null that is compared with a text."""
    return "" if value is None and isinstance(other, str) else value


def _is_paired(asked: list[Any], shown: list[Any], form: Form, members: Mapping[str, Form]) -> bool:
    """Return whether the entries that were asked for can be paired with those shown, which are as many."""
    kinds = set(map(type, asked))
    if kinds in ({str}, {int}):
        form = name if kinds == {int} else form
        return Counter(map(form, asked)) == Counter(map(form, shown))
    taken: dict[int, int] = {}

    def finds_one(place: int, tried: set[int]) -> bool:
        # an entry with few fields fits many shown ones: if it has taken the only match of another, it moves on
        for other, found in enumerate(shown):
            if other not in tried and is_within(asked[place], found, form, members):
                tried.add(other)
                if other not in taken or finds_one(taken[other], tried):
                    taken[other] = place
                    return True
        return False

    return all(finds_one(place, set()) for place in range(len(asked)))


def differences(
    asked: Mapping[str, Any],
    shown: Mapping[str, Any],
    forms: Mapping[str, Form],
    members: Mapping[str, Form] = _NO_FORMS,
) -> list[str]:
    """Return the fields that were asked for and are not shown as asked for; empty: all are.

    Args:
        forms: the forms of single fields; others are compared as texts. Of objects, only the members that were asked
            for are compared.
        members: the forms of members of these objects, at any depth; others have the form of their field.
    """
    return [
        field
        for field, value in asked.items()
        if not is_within(value, shown.get(field), forms.get(field, text), members)
    ]


def unescaped(value: str) -> str:
    """Return a path of an answer without percent-encoding, in Unicode's composed form."""
    return unicodedata.normalize("NFC", unquote(value)) if not value.isascii() or "%" in value else value
