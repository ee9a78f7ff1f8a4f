"""The settings of a webhook, and their comparison with a webhook that exists.

The platform never shows a secret, so it is never compared, and no read can show whether a written secret arrived.
Answers of the platform are passed on with the secret masked, whether the platform masks it or not. Source:
specification, Organization webhooks; operations.md, POST org hook and PATCH hook.
"""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from bulk import urls
from bulk.operation import Item, ItemFlaw
from bulk.proof import Proof
from bulk_jobs.shared import names, normal_forms, proofs
from bulk_jobs.shared.event_names import ALL_EVENTS

MASK = "********"
"""What the platform shows in the place of a secret."""

VOLATILE = frozenset({"url", "*_url"})
"""Fields of a webhook that change by themselves: the addresses at which it lies. `config.url`, where its events go, is
not one of them."""

_is_mask = re.compile(r"[*•]+").fullmatch
_FORMS: Mapping[str, normal_forms.Form] = {
    "url": normal_forms.url,
    "content_type": normal_forms.name,
    "insecure_ssl": normal_forms.switch,
}
"""The forms that compare the fields of a configuration that can be read."""

WITHHELD = re.compile(r"(?<=[/:=])\*\*\*(?=[@&#/?]|$)")
"""What is kept in the place of a password or a token in a URL: results and before-images hold none."""
_EXACT_FORMS = {**_FORMS, "url": normal_forms.exact_url}
_DEFAULTS = {"content_type": "form", "insecure_ssl": "0"}
_PING = "ping"
"""The kind of event of which every webhook may be told, also one that was not asked for it."""
_INSECURE = (
    "would let deliveries go to whoever answers at that address, because certificates are not verified; "
    "allow_insecure_ssl: true insists on it"
)
_DROPS = (
    "is missing: the platform removes a secret that is not sent again with an update, whatever else is updated; "
    "give it (env:NAME or file:PATH), or say drop_secret: true"
)

_KEPT = "the platform kept the secret, which it should have removed"
_UNSEEN = "the platform shows no secret, and one was sent"
_OTHERWISE = {
    "events": "the platform shows more events than were asked for",
    "config.url": "the platform shows its URL with a slash more or less at the end",
}
"""What a note says of fields that an answer, which was believed, shows otherwise than they were asked for."""

HOOK: proofs.Kinds = {"id": int, "config": dict}
"""The fields that every webhook has."""

CONFIG_SHOWN = proofs.entry({"url": str})
"""The proof that an answer is the configuration of a webhook."""

HookId = Annotated[int, Meta(ge=1, le=2**53, description="id of the webhook", examples=[4001])]
Url = Annotated[
    str, Meta(min_length=1, description="where events are posted to", examples=["https://hooks.example.com/bulk"])
]
ContentType = Annotated[Literal["json", "form"], Meta(description="how a payload is written; the platform's own: form")]
InsecureSsl = Annotated[
    Literal["0", "1"],
    Meta(description="1: the receiver's certificate is not verified; the platform's own: 0"),
]
Secret = Annotated[str, Meta(min_length=1, description="key of the signature of each delivery")]
AllowInsecureSsl = Annotated[bool, Meta(description='insists on insecure_ssl: "1"')]
AllowUnknownEvents = Annotated[bool, Meta(description="insists on events whose names are not public")]
DropSecret = Annotated[bool, Meta(description="insists on an update without a secret, which removes one that is set")]
Events = Annotated[
    list[Annotated[str, Meta(min_length=1)]],
    Meta(min_length=1, description="kinds of events; * alone means all", examples=[["push"]]),
]
NewEvents = Annotated[Events, Meta(description="kinds of events; * alone means all; the platform's own: push")]


class HookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The configuration of a webhook: where its events go, and in which form."""

    url: Url
    content_type: ContentType | None = None
    secret: Secret | None = None
    insecure_ssl: InsecureSsl | None = None
    username: Annotated[str, Meta(min_length=1, description="for Basic authentication at the receiver")] | None = None
    password: Annotated[str, Meta(min_length=1, description="for Basic authentication at the receiver")] | None = None

    def __repr__(self) -> str:
        """Return the settings without their secrets."""
        return f"HookConfig(url={self.url!r})"


class OrganizationItem(Item, frozen=True, kw_only=True):
    """Names the organization whose webhooks are meant."""

    org: names.Organization


class HookItem(OrganizationItem, frozen=True, kw_only=True):
    """Names one webhook."""

    hook_id: HookId


def hooks_path(org: str) -> str:
    """Return the path of an organization's webhooks."""
    return f"/orgs/{urls.segment(org)}/hooks"


def hook_path(item: HookItem) -> str:
    """Return the path of one webhook."""
    return f"{hooks_path(item.org)}/{item.hook_id}"


def things(item: HookItem) -> tuple[str, ...]:
    """Return the place of the webhook that an item changes."""
    return (urls.place(hooks_path(item.org), item.hook_id),)


def shows(result: Any, body: Any) -> bool:
    """Return whether an answer's body, a webhook or its configuration, is as a change with that result has left it."""
    if not isinstance(result, dict) or not isinstance(body, dict):
        return False
    if "config" in result and "config" in body:
        return bool(shown(body) == result)
    return bool(shown_config(body.get("config", body)) == result.get("config", result))


def proof_of_hook(item: HookItem, *about: proofs.About) -> Proof:
    """Return the proof that an answer is this webhook, with the further checks of `about`."""
    return proofs.entry(HOOK, proofs.naming(id=item.hook_id), proofs.of_kind("orgs", item.org), *about)


def proof_of_hooks(org: str) -> Proof:
    """Return the proof that an answer is a list of webhooks, none of which is another organization's."""
    return proofs.listing(HOOK, proofs.of_kind("orgs", org))


def body_of(item: Any) -> dict[str, Any]:
    """Return the `config`, `events` and `active` of an item as they are sent, without what was not given."""
    body: dict[str, Any] = {}
    if item.config is not None:
        body["config"] = {name: value for name, value in msgspec.to_builtins(item.config).items() if value is not None}
    if item.events is not None:
        body["events"] = wanted_events(item.events)
    if item.active is not None:
        body["active"] = item.active
    return body


def wanted_events(events: Sequence[str]) -> list[str]:
    """Return the kinds of events, each once; `*` replaces all others."""
    return [ALL_EVENTS] if ALL_EVENTS in events else list(dict.fromkeys(events))


def differences(
    wanted: Mapping[str, Any], found: Mapping[str, Any], *, may_have_more_events: bool = False, is_exact: bool = False
) -> list[str]:
    """Return the dotted names of the fields that are not as wanted. Secret, user name and password are not compared.

    Args:
        wanted: those of the fields `config` (an object), `events` and `active` that matter.
        found: a webhook as the platform shows it.
        may_have_more_events: whether a webhook that gets more kinds of events than are wanted counts as wanted.
        is_exact: whether a slash at the end of a URL counts, as it must where nothing would be sent.
    """
    config = config_differences(wanted.get("config") or {}, found.get("config"), is_exact=is_exact)
    different = [f"config.{name}" for name in config]
    if "events" in wanted:
        asked, shown = _event_names(wanted_events(wanted["events"])), _event_names(found.get("events"))
        covers = ALL_EVENTS in shown or asked <= shown
        shown -= {_PING} - asked
        if not (covers if may_have_more_events else asked == ({ALL_EVENTS} if ALL_EVENTS in shown else shown)):
            different.append("events")
    if "active" in wanted and normal_forms.switch(found.get("active")) != normal_forms.switch(wanted["active"]):
        different.append("active")
    return different


def _event_names(events: Any) -> set[Hashable]:
    return {normal_forms.name(each) for each in events} if isinstance(events, list) else set()


def config_differences(wanted: Mapping[str, Any], found: Any, *, is_exact: bool = False) -> list[str]:
    """Return the names of the fields of a configuration that are not as wanted, each compared in its normal form."""
    shown = found if isinstance(found, dict) else {}
    different = []
    for name, form in (_EXACT_FORMS if is_exact else _FORMS).items():
        value = shown.get(name)
        if name in wanted and not _is_equal(form(wanted[name]), form(_DEFAULTS.get(name) if value is None else value)):
            different.append(name)
    return different


def _is_equal(wanted: Hashable, found: Hashable) -> bool:
    if wanted == found or not (isinstance(wanted, str) and isinstance(found, str) and WITHHELD.search(wanted)):
        return wanted == found
    return re.fullmatch(".+".join(map(re.escape, WITHHELD.split(wanted))), found) is not None


def kept_events(wanted: Mapping[str, Any], before: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return the kinds of events that a webhook got before an update, should not get any more, and still gets; every
    webhook may be told of pings."""
    if "events" not in wanted:
        return []
    more = _event_names(found.get("events")) - _event_names([*wanted_events(wanted["events"]), _PING])
    return sorted(map(str, more & _event_names(before.get("events"))))


def differences_of_new(asked: Mapping[str, Any], hook: Mapping[str, Any]) -> list[str]:
    """Return the fields of a webhook that are not as a creation asked for. What it did not give has the platform's
    default, if the webhook shows it; a platform may add kinds of events."""
    more = {name: value for name, value in {"events": ["push"], "active": True}.items() if name in hook}
    wanted = {**more, **asked, "config": {**_DEFAULTS, **asked["config"]}}
    return differences(wanted, hook, may_have_more_events=True)


def flaw_of_new(asked: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    """Return which fields of the answer to a creation are not as asked for; empty: all are."""
    return _flaw_of(differences_of_new(asked, hook))


def flaw_of_hook(asked: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    """Return which fields of an answer are not as asked for; empty: all are. A platform may add kinds of events."""
    return _flaw_of(differences(asked, hook, may_have_more_events=True))


def flaw_of_config(asked: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Return which fields of a configuration in an answer are not as asked for; empty: all are."""
    return _flaw_of(config_differences(asked, config))


def _flaw_of(differing: list[str]) -> str:
    return f"its {' and '.join(differing)} are not what was asked for" if differing else ""


def note_on(asked: Mapping[str, Any], hook: Mapping[str, Any], *, drops: bool = False) -> str | None:
    """Return a note on settings that an answer shows otherwise than they were asked for; None: there are none."""
    was_sent, is_shown = "secret" in (asked.get("config") or {}), has_secret(hook["config"])
    notes = [_KEPT] if drops and is_shown else [_UNSEEN] if was_sent and not is_shown else []
    otherwise = differences(asked, hook, is_exact=True)
    notes += [note for name, note in _OTHERWISE.items() if name in otherwise]
    return "; ".join(notes) or None


def image_of_config(wanted: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted fields of a configuration as it shows them, and the mask of a secret where it has one."""
    shown = {
        name: value if name == "url" else form(value)  # a switch may be shown as a number, and is sent as a text
        for name, form in _FORMS.items()
        if name in wanted and (value := config.get(name)) is not None
    }
    # a field that is not shown has the platform's default
    image = {**{name: value for name, value in _DEFAULTS.items() if name in wanted}, **shown}
    return {**image, "secret": MASK} if config.get("secret") else image


def image_of(wanted: Mapping[str, Any], hook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a webhook that an update changes: those that the update gives, and whether there is a
    secret."""
    config = image_of_config(wanted.get("config") or {}, hook["config"])
    return {"config": config, **{name: hook.get(name) for name in ("events", "active") if name in wanted}}


def image_of_hook(hook: Mapping[str, Any]) -> dict[str, Any]:
    """Return all fields of a webhook that can be read and compared, and the mask of a secret where it has one."""
    config = image_of_config(_FORMS, hook["config"])
    return {"config": config, **{name: hook[name] for name in ("events", "active") if name in hook}}


def shown_otherwise(wanted: Mapping[str, Any], hook: Mapping[str, Any]) -> list[str]:
    """Return the fields of an equal webhook that the platform writes otherwise than they were asked for."""
    config = wanted.get("config") or {}
    found = [f"config.{name}" for name in _FORMS if name in config and hook["config"].get(name) != config[name]]
    return [*found, "events"] if "events" in wanted and wanted["events"] != hook.get("events") else found


def has_secret(config: Any) -> bool:
    """Return whether a configuration as the platform shows it has a secret."""
    return isinstance(config, dict) and bool(config.get("secret"))


def shown(hook: Any) -> Any:
    """Return a webhook of an answer with its secret masked, without user name and password."""
    if isinstance(hook, dict) and isinstance(hook.get("config"), dict):
        return {**hook, "config": shown_config(hook["config"])}
    return hook


def shown_config(config: Any) -> Any:
    """Return a configuration of an answer with its secret masked, without user name and password."""
    if not isinstance(config, dict):
        return config
    kept = {name: value for name, value in config.items() if name not in ("secret", "username", "password")}
    return {**kept, "secret": MASK} if config.get("secret") else kept


def flaws_of_organization(item: OrganizationItem) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the name of the organization."""
    flaw = names.flaw_of_owner(item.org)
    if flaw:
        yield ItemFlaw("org", flaw)


def flaws_of_config(
    url: str | None,
    insecure_ssl: str | None,
    texts: Mapping[str, str | None],
    *,
    may_be_insecure: bool,
    prefix: str = "config.",
) -> Iterator[ItemFlaw]:
    """Yield what is wrong with a configuration. No message holds a secret.

    Args:
        texts: secret, username and password, by name.
    """
    if url is not None:
        flaw = flaw_of_url(url)
        if flaw:
            yield ItemFlaw(f"{prefix}url", flaw)
    if insecure_ssl == "1" and not may_be_insecure:
        yield ItemFlaw(f"{prefix}insecure_ssl", _INSECURE)
    for name, text in texts.items():
        if text is None:
            continue
        if name != "username" and _is_mask(text):
            yield ItemFlaw(f"{prefix}{name}", "is the mask that the platform shows instead of it, not the real one")
        elif name == "username" and ":" in text:
            yield ItemFlaw(f"{prefix}{name}", "expected a user name without a colon")
        elif any(0xD800 <= ord(char) <= 0xDFFF for char in text):
            yield ItemFlaw(f"{prefix}{name}", "holds a lone surrogate, which can't be sent")


def flaws_of_dropping(secret: str | None, *, drops: bool, prefix: str = "config.") -> Iterator[ItemFlaw]:
    """Yield what is wrong with the secret of an update: it must be given, or `drop_secret` must say to drop it."""
    if secret is None and not drops:
        yield ItemFlaw(f"{prefix}secret", _DROPS)
    if secret is not None and drops:
        yield ItemFlaw("drop_secret", f"contradicts {prefix}secret; give one of them")


def flaw_of_url(url: str) -> str:
    """Return why events can't be posted to `url`."""
    flaw = names.flaw_of_text(url)
    if flaw:
        return flaw
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "expected a URL; this one can't be read"
    if " " in url or parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "expected the http or https URL of a receiver, as https://hooks.example.com/bulk"
    if "@" in parts.netloc:
        return "holds a user name or password, which would be shown; they have fields of their own"
    return ""
