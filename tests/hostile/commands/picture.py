"""What an undo has to bring back of a platform's state, as separate values: changes of two people can be told apart."""

from typing import Any

from tests.hostile.http.writing import ACME_OWNER, ORG
from tests.hostile.rows import Look
from tests.hostile.store.normal import Normal

Picture = dict[tuple[Any, ...], Any]
"""Values by their places; a place without a value is not in it."""

TEAM = 701
_NOT_KEPT = ("id", "created_at", "updated_at")


def picture_of(look: Look, normal: Normal) -> Picture:
    """The picture at a moment, in the normal form of the platform.

    Webhooks go by their order, because one that comes back has another number; their secrets, which nobody can read,
    are not in it.
    """
    found: Picture = {("file", *key[2:]): data for key, data in look.all("file", 601)}
    found |= {("login", key[1]): number for key, number in look.all("login") if number == ORG}
    found |= {("assigned", key[2]): True for key, _ in look.all("assigned", TEAM)}
    hooks = sorted((hook["id"], hook) for _, hook in look.all("hook", ORG))
    for place, (_, hook) in enumerate(hooks):
        url, events = normal.url(hook["config"]["url"]), frozenset(normal.events(list(hook["events"])))
        found |= {("hook", place, "url"): url, ("hook", place, "events"): events}
        found |= {("hook", place, name): str(hook["config"].get(name)) for name in ("content_type", "insecure_ssl")}
        found["hook", place, "active"] = hook["active"]
    for key, configuration in look.all("configuration", ACME_OWNER):
        fields = configuration.items()
        found |= {
            ("configuration", key[2], name): normal.text(value) for name, value in fields if name not in _NOT_KEPT
        }
    return found | {("security", name): value for name, value in look.get("security", "corp").items()}


def differences(one: Picture, other: Picture) -> set[tuple[Any, ...]]:
    """The places that two pictures have otherwise."""
    return {place for place in one.keys() | other.keys() if one.get(place) != other.get(place)}
