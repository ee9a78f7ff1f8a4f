"""The settings of a webhook in the body of a request, and their checks.

A configuration is kept as `{url, content_type, insecure_ssl, secret?, username?, password?}`, all texts. Unknown fields
are ignored. A secret is kept as it is given, also where it is the mask that answers show: a caller that sends the mask
back has it as the secret from then on.

Source: specification, Organization webhooks. The names of event kinds are not shown there: any is taken.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from bulk.sandbox.http.refusals import Refused, invalid, problem

ALL_EVENTS: Final = "*"
DEFAULT_EVENTS: Final = ("push",)
DEFAULTS: Final = {"content_type": "form", "insecure_ssl": "0"}
CONTENT_TYPES: Final = ("json", "form")
TEXTS: Final = ("secret", "username", "password")
MASK: Final = "********"
EVENT: Final = re.compile(r"[a-z][a-z_]{0,99}|\*")


def check_name(body: dict[str, object], *, is_new: bool) -> None:
    """Check that `name` is `web`, and is there for a new webhook.

    Raises:
        Refused: 422.
    """
    name = body.get("name")
    if name is None and is_new:
        raise invalid(problem("Hook", "name", "missing_field"))
    if name is not None and name != "web":
        raise _wrong("name", "name must be 'web'")


def config_in(body: dict[str, object]) -> dict[str, object] | None:
    """Return the object `config`, with a `url` in it; None where the body has no `config`.

    Raises:
        Refused: 422, `config` is not an object, or has no URL.
    """
    config = body.get("config")
    if config is None:
        return None
    if not isinstance(config, dict):
        raise _wrong("config", "config must be an object")
    if config.get("url") is None:
        raise invalid(problem("Hook", "config.url", "missing_field"))
    return config


def configuration(given: dict[str, object], prefix: str = "config.") -> dict[str, str]:
    """Return the settings in an object, without those that were not given.

    Raises:
        Refused: 422, a setting can't be used.
    """
    found: dict[str, str] = {}
    url = given.get("url")
    if url is not None:
        if not _is_url(url):
            raise _wrong(f"{prefix}url", "url must be the http or https URL of a receiver")
        found["url"] = str(url)
    content_type = given.get("content_type")
    if content_type is not None:
        if content_type not in CONTENT_TYPES:
            raise _wrong(f"{prefix}content_type", "content_type must be json or form")
        found["content_type"] = str(content_type)
    insecure = given.get("insecure_ssl")
    if insecure is not None:
        if isinstance(insecure, bool) or str(insecure) not in ("0", "1"):
            raise _wrong(f"{prefix}insecure_ssl", "insecure_ssl must be 0 or 1")
        found["insecure_ssl"] = str(insecure)
    for name in TEXTS:
        text = given.get(name)
        if text is not None:
            if not isinstance(text, str) or (name == "username" and ":" in text):
                raise _wrong(f"{prefix}{name}", f"{name} must be a string{' without :' if name == 'username' else ''}")
            if text:
                found[name] = text
    return found


def events_in(body: dict[str, object]) -> list[str] | None:
    """Return the kinds of events in `events`, each once; None where they were not given.

    Raises:
        Refused: 422.
    """
    events = body.get("events")
    if events is None:
        return None
    if not isinstance(events, list) or not events:
        raise _wrong("events", "events must be a list that names at least one event")
    if not all(isinstance(event, str) and EVENT.fullmatch(event) for event in events):
        raise _wrong("events", "events must be names of events, or * alone")
    return [ALL_EVENTS] if ALL_EVENTS in events else list(dict.fromkeys(events))


def active_in(body: dict[str, object]) -> bool | None:
    """Return `active`; None where it was not given.

    Raises:
        Refused: 422.
    """
    active = body.get("active")
    if active is not None and not isinstance(active, bool):
        raise _wrong("active", "active must be true or false")
    return active


def shown(config: dict[str, str]) -> dict[str, str]:
    """Return a configuration as answers show it: with the secret masked, without username and password."""
    found = {"url": config["url"], "content_type": config["content_type"], "insecure_ssl": config["insecure_ssl"]}
    return {**found, "secret": MASK} if "secret" in config else found


def _is_url(value: object) -> bool:
    if not isinstance(value, str) or any(ord(char) <= 32 or ord(char) == 127 for char in value):
        return False
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.hostname) and port != 0


def _wrong(field: str, message: str) -> Refused:
    return invalid(problem("Hook", field, "invalid", message))
