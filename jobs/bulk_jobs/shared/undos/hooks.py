"""How changes of webhooks are taken back: without their secrets, which nobody can read."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bulk.undo import Irreversible, Undo
from bulk_jobs.shared import hook_settings
from bulk_jobs.shared.undos import settings
from bulk_jobs.shared.undos.settings import Given, Settings

_NOT_KNOWN = Irreversible("what it was before is not known")
_INSISTS = {"allow_insecure_ssl": True}
_ON_EVENTS = {"allow_unknown_events": True}
_CREATE, _DELETE, _UPDATE, _UPDATE_CONFIG = (
    f"webhook.{verb}" for verb in ("create", "delete", "update", "update-config")
)
_CONFIG = "config."


def of_creation(item: Any, result: Any) -> Undo | Irreversible:
    """Return the undo of a creation, which deletes the webhook as it was made."""
    if not isinstance(result, dict) or not isinstance(result.get("id"), int):
        return Irreversible("its number is not known")
    expect = hook_settings.image_of_hook(result)
    return Undo(operation=_DELETE, item={"org": item.org, "hook_id": result["id"], "expect": expect})


def of_deletion(item: Any, before: Any) -> Undo | Irreversible:
    """Return the undo of a deletion, which makes the webhook anew."""
    if not isinstance(before, dict):
        return Irreversible("what it was is not known")
    shown, loses = _before(before)
    fields = {"org": item.org, **shown, **_INSISTS, **_ON_EVENTS, "if_exists": "unchanged"}
    return Undo(operation=_CREATE, item=fields, loses=settings.both("its number", *loses), comes_anew=True)


def of_update(item: Any, before: Any, result: Any) -> Undo | Irreversible:
    """Return the undo of an update of a webhook."""
    if not isinstance(before, dict) or not isinstance(result, dict):
        return _NOT_KNOWN
    shown, loses = _before(before)
    fields = {name: value for name, value in shown.items() if value is not None}
    return _update(_place(item), fields, hook_settings.image_of(fields, result), settings.both(*loses))


def of_config_update(item: Any, before: Any, result: Any) -> Undo | Irreversible:
    """Return the undo of an update of a webhook's configuration."""
    if not isinstance(before, dict) or not isinstance(result, dict):
        return _NOT_KNOWN
    fields, loses = _before(before)
    expect = hook_settings.image_of_config(fields["config"], result)
    return _config_update(_place(item), fields["config"], expect, settings.both(*loses))


def joined(way: Undo, later: Undo) -> Sequence[Undo]:
    """Return what takes back two changes of a webhook: the deletion of one that was made, or one update."""
    ours, theirs = _given(way), _given(later)
    found = settings.of_settings(ours, theirs, _differences)
    if found is None:
        return [later, way]
    fields, expect = map(_nested, found)
    if way.operation == _DELETE:
        return [msgspec.structs.replace(way, item={**way.item, "expect": expect})]
    loses = way.loses if ours[1].keys() >= theirs[1].keys() else settings.both(way.loses, later.loses)
    if way.operation == later.operation == _UPDATE_CONFIG:
        return [_config_update(way.item, fields["config"], expect["config"], loses)]
    if fields["config"] and "url" not in fields["config"]:
        return [later, way]  # no update of a webhook takes a configuration without a URL
    return [_update(way.item, fields, expect, loses)]


def _update(place: Settings, fields: Settings, expect: Settings, loses: str) -> Undo:
    changed = {name: value for name, value in fields.items() if name != "config" or value}
    return Undo(operation=_UPDATE, item={**_again(place), **_ON_EVENTS, **changed, "expect": {**expect}}, loses=loses)


def _config_update(place: Settings, config: Settings, expect: Settings, loses: str) -> Undo:
    return Undo(operation=_UPDATE_CONFIG, item={**_again(place), **config, "expect": {**expect}}, loses=loses)


def _place(item: Any) -> dict[str, Any]:
    return {"org": item.org, "hook_id": item.hook_id}


def _again(place: Settings) -> dict[str, Any]:
    """Return the fields that the item of an undo has besides the settings: its webhook, and what it insists on."""
    return {"org": place["org"], "hook_id": place["hook_id"], "drop_secret": True, **_INSISTS}


def _given(way: Undo) -> Given:
    """Return the settings that an undo gives back and those that it expects, with dotted names."""
    item, expect = way.item, way.item["expect"]
    if way.operation == _UPDATE_CONFIG:
        config = {name: item[name] for name in ("url", "content_type", "insecure_ssl") if name in item}
        return _flat({"config": config}), _flat({"config": expect})
    return _flat({name: item[name] for name in ("config", "events", "active") if name in item}), _flat(expect)


def _flat(fields: Settings) -> dict[str, Any]:
    config = {f"{_CONFIG}{name}": value for name, value in (fields.get("config") or {}).items() if name != "secret"}
    return {**config, **{name: value for name, value in fields.items() if name != "config"}}


def _nested(fields: Settings) -> dict[str, Any]:
    config = {name.removeprefix(_CONFIG): value for name, value in fields.items() if name.startswith(_CONFIG)}
    return {"config": config, **{name: value for name, value in fields.items() if not name.startswith(_CONFIG)}}


def _differences(wanted: Settings, found: Settings) -> list[str]:
    return hook_settings.differences(_nested(wanted), _nested(found))


def _before(before: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the part of an earlier webhook that can be sent, and what of it is not kept. Kinds of events, which a
    platform may show in another case, are in lower case."""
    config = before["config"]
    sent = {name: value for name, value in config.items() if name != "secret"}
    loses = ["its secret"] if hook_settings.has_secret(config) else []
    if isinstance(url := sent.get("url"), str) and (plain := _without_secrets(url)) != url:
        sent["url"] = plain
        loses.append("the user name, password or token in its URL")
    if isinstance(events := before.get("events"), list):
        before = {**before, "events": [each.lower() if isinstance(each, str) else each for each in events]}
    return {**before, "config": sent}, loses


def _without_secrets(url: str) -> str:
    """Return a URL without a user, and without the parameters in whose place only a mask was kept."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    query = "&".join(part for part in parts.query.split("&") if not hook_settings.WITHHELD.search(part))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query).geturl() if "://" in url else url
