"""Updates of an organization's webhooks. Every update overwrites the secret: a secret that is not sent again is gone.

So an update gives the secret, or says that it shall be dropped. The webhook is read first: an update without a secret
is sent only where something differs. An update with a secret is always sent, and sent again after a lost answer,
because a secret can't be read back; sending it twice is as good as once. But where a webhook is then neither as it was
before nor as asked for, somebody else has changed it, and it is left alone. Source: specification, Organization
webhooks; operations.md, PATCH hook / hook config, third value.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from bulk.capabilities import ChangesThings, HoldsSecrets, LooksBack, Returns
from bulk.model import Effect, Lost, NotApplied, Outcome, Request, Undecided, succeeded, unchanged, unknown
from bulk.operation import ItemFlaw, Settling, Steps
from bulk.proof import Proof
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.result_types import Webhook, WebhookConfig
from bulk_jobs.shared import event_names, hook_settings, proofs, refusals
from bulk_jobs.shared.hook_settings import HookItem, hook_path
from bulk_jobs.shared.undos import hooks

_LOST = "the answer was lost; everything is as asked for"
_UNREADABLE = "secret, user name and password can't be read back"
_UNSEEN = "the webhook can't be seen"
_STAYS = (
    "the platform took the update, and the webhook still gets {events}: whether these were not removed, or are events "
    "that the platform adds, can't be told"
)
_SETTLED_BY = (
    "The webhook is read. Where it is as it was before, or where a secret was sent, which can't be read back, the "
    "request is sent again; updating twice is updating once. Where it is neither as before nor as asked for, once the "
    "settle time is over, nobody knows whether the update was made before somebody else's: it ends as unknown, with "
    "what was found, and a retry does not overwrite that."
)


class UpdateWebhookItem(HookItem, frozen=True, kw_only=True):
    """Names a webhook, and says what is changed."""

    config: hook_settings.HookConfig | None = None
    name: Annotated[Literal["web"], Meta(description="the only kind there is")] | None = None
    events: hook_settings.Events | None = None
    active: Annotated[bool, Meta(description="whether it is told of events")] | None = None
    drop_secret: hook_settings.DropSecret = False
    allow_insecure_ssl: hook_settings.AllowInsecureSsl = False
    allow_unknown_events: hook_settings.AllowUnknownEvents = False
    expect: refusals.Expect | None = None


class UpdateWebhook(
    HoldsSecrets[UpdateWebhookItem],
    LooksBack[UpdateWebhookItem],
    ChangesThings[UpdateWebhookItem],
    Undoable[UpdateWebhookItem],
    Returns[Webhook],
):
    """Change a webhook of an organization.

    Requests:  2: a look, then the update; without a secret 1 where it is already so; 3 where events that should be
               gone are shown in the answer.
    Category:  core. Lane: the webhook.
    Refused:   no secret, because the platform removes one that is not sent again, unless `drop_secret` is true;
               insecure_ssl "1", unless `allow_insecure_ssl` is true; the mask that the platform shows, as a secret; an
               event whose name is not public, unless `allow_unknown_events` is true.
    Result:    the webhook, its secret masked; a note where the platform added events to those that were asked for.
    Lost answer: the webhook is read; where it is as before, or where a secret was sent, the request is repeated; where
               it is otherwise, nobody knows.
    Source:    Organization webhooks, PATCH /orgs/{org}/hooks/{hook_id}.
    """

    name = "webhook.update"
    access = accesses.HOOKS_WRITE
    volatile = hook_settings.VOLATILE
    Item = UpdateWebhookItem
    is_read = False
    most_requests = 2
    secret_fields = frozenset(("config.secret", "config.password"))
    settled_by = _SETTLED_BY
    example: ClassVar = {"org": "acme-ops", "hook_id": 4001, "events": ["push", "repository"], "drop_secret": True}

    def check(self, item: UpdateWebhookItem) -> Iterator[ItemFlaw]:
        config = item.config
        yield from hook_settings.flaws_of_organization(item)
        if config is not None:
            texts = {"secret": config.secret, "username": config.username, "password": config.password}
            yield from hook_settings.flaws_of_config(
                config.url, config.insecure_ssl, texts, may_be_insecure=item.allow_insecure_ssl
            )
        secret = config.secret if config is not None else None
        yield from hook_settings.flaws_of_dropping(secret, drops=item.drop_secret)
        yield from event_names.flaws_of_events(item.events, may_be_unknown=item.allow_unknown_events)
        if not hook_settings.body_of(item):
            yield ItemFlaw("", "expected at least one of config, events and active: there is nothing to change")

    def lanes(self, item: UpdateWebhookItem) -> tuple[str, ...]:
        return _lanes(item)

    def things(self, item: UpdateWebhookItem) -> tuple[str, ...]:
        return hook_settings.things(item)

    def shows(self, result: Any, body: Any) -> bool:
        return hook_settings.shows(result, body)

    def steps(self, item: UpdateWebhookItem) -> Steps:
        wanted = hook_settings.body_of(item)
        found = yield _look(hook_path(item), hook_settings.proof_of_hook(item), may_be_absent=False)
        if _is_readable(wanted) and _is_so(wanted, found.body):
            return unchanged(hook_settings.shown(found.body))
        conflict = _conflict(item, item.expect, wanted, found.body)
        if conflict is not None:
            return conflict
        about = partial(hook_settings.flaw_of_hook, wanted)
        reply = yield Request(
            method="PATCH",
            path=hook_path(item),
            body=wanted if item.name is None else {**wanted, "name": item.name},
            effect=Effect.SET,
            before=hook_settings.image_of(wanted, found.body),
            proof=hook_settings.proof_of_hook(item, about),
        )
        if hook_settings.kept_events(wanted, found.body, reply.body):
            reply = yield _look(hook_path(item), hook_settings.proof_of_hook(item, about), may_be_absent=False)
            kept = hook_settings.kept_events(wanted, found.body, reply.body)
            if kept:
                told = _third_value(wanted, hook_settings.image_of(wanted, found.body), reply.body)
                return unknown(_STAYS.format(events=", ".join(kept)), http_status=200, result=told)
        note = hook_settings.note_on(wanted, reply.body, drops=item.drop_secret)
        return succeeded(hook_settings.shown(reply.body), note=note)

    def steps_to_look_back(self, item: UpdateWebhookItem) -> Steps:
        found = yield _look(hook_path(item), hook_settings.proof_of_hook(item), may_be_absent=False)
        return _looked_back(item, hook_settings.body_of(item), found.body, hook_settings.shown(found.body))

    def settle(self, item: UpdateWebhookItem, lost: Lost) -> Settling:
        found = yield _look(hook_path(item), hook_settings.proof_of_hook(item))
        if found.status == 404:
            return Undecided(_UNSEEN, is_unseen=True)
        wanted = hook_settings.body_of(item)
        trace, more = _trace(wanted, found.body, lost), hook_settings.note_on(wanted, found.body)
        note = f"{_LOST}; {more}" if more else _LOST
        return succeeded(hook_settings.shown(found.body), note=note) if trace is None else trace

    def undo(self, item: UpdateWebhookItem, before: Any, result: Any) -> Undo | Irreversible:
        return hooks.of_update(item, before, result)

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        return hooks.joined(way, later)

    def before_both(self, item: UpdateWebhookItem, first: Any, later: Any) -> Any:
        return _before_both(hook_settings.body_of(item), first, later)


class UpdateWebhookConfigItem(HookItem, frozen=True, kw_only=True):
    """Names a webhook, and says what of its configuration is changed."""

    url: hook_settings.Url | None = None
    content_type: hook_settings.ContentType | None = None
    secret: hook_settings.Secret | None = None
    insecure_ssl: hook_settings.InsecureSsl | None = None
    drop_secret: hook_settings.DropSecret = False
    allow_insecure_ssl: hook_settings.AllowInsecureSsl = False
    expect: refusals.Expect | None = None

    def __repr__(self) -> str:
        """Return the update without its secret."""
        return f"UpdateWebhookConfigItem(org={self.org!r}, hook_id={self.hook_id!r}, url={self.url!r})"


class UpdateWebhookConfig(
    HoldsSecrets[UpdateWebhookConfigItem],
    LooksBack[UpdateWebhookConfigItem],
    ChangesThings[UpdateWebhookConfigItem],
    Undoable[UpdateWebhookConfigItem],
    Returns[WebhookConfig],
):
    """Change the configuration of a webhook: where its events go, and how. What is not given stays, except the secret.

    Requests:  2: a look, then the update; without a secret 1 where it is already so.
    Category:  core. Lane: the webhook.
    Refused:   no secret, because the platform removes one that is not sent again, unless `drop_secret` is true;
               insecure_ssl "1", unless `allow_insecure_ssl` is true; the mask that the platform shows, as a secret.
    Result:    url, content_type, insecure_ssl, and secret (masked) where there is one.
    Lost answer: the configuration is read; where it is as before, or where a secret was sent, the request is repeated;
               where it is otherwise, nobody knows.
    Source:    Organization webhooks, PATCH /orgs/{org}/hooks/{hook_id}/config.
    """

    name = "webhook.update-config"
    access = accesses.HOOKS_WRITE
    volatile = frozenset[str]()
    Item = UpdateWebhookConfigItem
    is_read = False
    most_requests = 2
    secret_fields = frozenset(("secret",))
    settled_by = _SETTLED_BY
    example: ClassVar = {"org": "acme-ops", "hook_id": 4001, "content_type": "form", "drop_secret": True}

    def check(self, item: UpdateWebhookConfigItem) -> Iterator[ItemFlaw]:
        yield from hook_settings.flaws_of_organization(item)
        yield from hook_settings.flaws_of_config(
            item.url, item.insecure_ssl, {"secret": item.secret}, may_be_insecure=item.allow_insecure_ssl, prefix=""
        )
        yield from hook_settings.flaws_of_dropping(item.secret, drops=item.drop_secret, prefix="")

    def lanes(self, item: UpdateWebhookConfigItem) -> tuple[str, ...]:
        return _lanes(item)

    def things(self, item: UpdateWebhookConfigItem) -> tuple[str, ...]:
        return hook_settings.things(item)

    def shows(self, result: Any, body: Any) -> bool:
        return hook_settings.shows(result, body)

    def steps(self, item: UpdateWebhookConfigItem) -> Steps:
        path, wanted = f"{hook_path(item)}/config", {"config": _config_body(item)}
        found = yield _look(path, hook_settings.CONFIG_SHOWN, may_be_absent=False)
        if _is_readable(wanted) and _is_so(wanted, {"config": found.body}):
            return unchanged(hook_settings.shown_config(found.body))
        conflict = _conflict(item, item.expect and {"config": item.expect}, wanted, {"config": found.body})
        if conflict is not None:
            return conflict
        reply = yield Request(
            method="PATCH",
            path=path,
            body=wanted["config"],
            effect=Effect.SET,
            before=hook_settings.image_of(wanted, {"config": found.body}),
            proof=proofs.entry({"url": str}, partial(hook_settings.flaw_of_config, wanted["config"])),
        )
        note = hook_settings.note_on(wanted, {"config": reply.body}, drops=item.drop_secret)
        return succeeded(hook_settings.shown_config(reply.body), note=note)

    def steps_to_look_back(self, item: UpdateWebhookConfigItem) -> Steps:
        path, wanted = f"{hook_path(item)}/config", {"config": _config_body(item)}
        found = yield _look(path, hook_settings.CONFIG_SHOWN, may_be_absent=False)
        return _looked_back(item, wanted, {"config": found.body}, hook_settings.shown_config(found.body))

    def settle(self, item: UpdateWebhookConfigItem, lost: Lost) -> Settling:
        found = yield _look(f"{hook_path(item)}/config", hook_settings.CONFIG_SHOWN)
        if found.status == 404:
            return Undecided(_UNSEEN, is_unseen=True)
        trace = _trace({"config": _config_body(item)}, {"config": found.body}, lost)
        return succeeded(hook_settings.shown_config(found.body), note=_LOST) if trace is None else trace

    def undo(self, item: UpdateWebhookConfigItem, before: Any, result: Any) -> Undo | Irreversible:
        return hooks.of_config_update(item, before, result)

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        return hooks.joined(way, later)

    def before_both(self, item: UpdateWebhookConfigItem, first: Any, later: Any) -> Any:
        return _before_both({"config": _config_body(item)}, first, later)


def _conflict(
    item: HookItem, expect: Mapping[str, Any] | None, wanted: Mapping[str, Any], hook: Mapping[str, Any]
) -> Outcome | None:
    """Return the outcome of an item that expects another state of the webhook."""
    if expect is None:
        return None
    asked = {*(f"config.{name}" for name in wanted.get("config") or {}), *wanted}
    as_wanted = asked - {*hook_settings.differences(wanted, hook)}
    return refusals.unexpected(f"webhook {item.hook_id}", hook_settings.differences(expect, hook), as_wanted)


def _lanes(item: HookItem) -> tuple[str, ...]:
    return (f"{item.org}/{item.hook_id}",)


def _look(path: str, proof: Proof, *, may_be_absent: bool = True) -> Request:
    accept = frozenset((200, 404)) if may_be_absent else frozenset((200,))
    return Request(method="GET", path=path, accept=accept, is_fresh=True, proof=proof)


def _config_body(item: UpdateWebhookConfigItem) -> dict[str, Any]:
    fields = {name: getattr(item, name) for name in ("url", "content_type", "secret", "insecure_ssl")}
    return {name: value for name, value in fields.items() if value is not None}


def _is_readable(wanted: Mapping[str, Any]) -> bool:
    """Return whether the platform shows all fields that would be sent."""
    return not {"secret", "username", "password"}.intersection(wanted.get("config") or {})


def _is_so(wanted: Mapping[str, Any], hook: Mapping[str, Any]) -> bool:
    """Return whether a webhook is already as an update without a secret would leave it."""
    differing = hook_settings.differences(wanted, hook, is_exact=True)
    return not differing and not hook_settings.has_secret(hook.get("config"))


def _looked_back(item: HookItem, wanted: Mapping[str, Any], hook: Mapping[str, Any], result: Any) -> Outcome:
    """Return the outcome of a look whether a webhook is as an update has left it; of a secret only presence shows."""
    differing = hook_settings.differences(wanted, hook)
    if hook_settings.has_secret(hook.get("config")) is not ("secret" in (wanted.get("config") or {})):
        differing = [*differing, "config.secret"]
    return refusals.not_as_left(f"webhook {item.hook_id}", differing) if differing else unchanged(result)


def _before_both(wanted: Mapping[str, Any], first: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a webhook before two updates; see `Undoable.before_both`. Of a secret only that there was
    one is known."""
    others = {*hook_settings.differences(wanted, later)}
    config = {
        name: value if f"config.{name}" in others else first["config"].get(name, value)
        for name, value in {**first["config"], **later["config"]}.items()
    }
    rest = {name: value if name in others else first.get(name) for name, value in later.items() if name != "config"}
    return {"config": config, **rest}


def _trace(wanted: Mapping[str, Any], hook: Mapping[str, Any], lost: Lost) -> NotApplied | Undecided | None:
    """Return how an update is settled whose answer was lost; None: the webhook is as asked for."""
    before = lost.before
    if not isinstance(before, dict) or not isinstance(before.get("config"), dict) or _is_as_before(before, hook):
        if hook_settings.differences(wanted, hook, is_exact=True):
            return NotApplied("the webhook is not as asked for")
    elif hook_settings.flaw_of_hook(wanted, hook) or hook_settings.kept_events(wanted, before, hook):
        return Undecided(
            f"the answer of the {lost.method} was lost, and the webhook is neither as before nor as asked for: whether "
            "it was changed before somebody else changed it can't be told",
            found=_third_value(wanted, before, hook),
        )
    if not _is_readable(wanted):
        return Undecided(_UNREADABLE)
    return NotApplied("the secret is still there") if hook_settings.has_secret(hook["config"]) else None


def _third_value(wanted: Mapping[str, Any], before: Mapping[str, Any], hook: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for, what was there before, and what was found instead."""
    asked = hook_settings.image_of(wanted, {**wanted, "config": wanted.get("config") or {}})
    return {"wanted": asked, "before": before, "found": hook_settings.image_of(wanted, hook)}


def _is_as_before(before: Mapping[str, Any], hook: Mapping[str, Any]) -> bool:
    had_secret, has_secret = (hook_settings.has_secret(each["config"]) for each in (before, hook))
    return had_secret is has_secret and not hook_settings.differences(before, hook)
