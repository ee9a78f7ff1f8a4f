"""Webhooks of an organization: listed, read, made and removed. Updates are in `webhook_updates.py`.

Nothing in the specification says that two webhooks must differ, so a creation looks first, remembers the ids that it
saw, and after a lost answer looks for a new id. Webhooks of an OAuth application are shown to that application alone: a
webhook that is not listed may exist for another application. Source: specification, Organization webhooks;
operations.md, rows of hooks. Deliveries are in `webhook_deliveries.py`.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from bulk.capabilities import ChangesThings, HoldsSecrets, ProvesAbsence, Returns
from bulk.model import (
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Outcome,
    Reply,
    Request,
    Undecided,
    failed,
    missing,
    succeeded,
    unchanged,
)
from bulk.operation import ItemFlaw, Operation, Settling, Steps
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.result_types import Numbered, Webhook, WebhookConfig
from bulk_jobs.shared import creations, event_names, hook_settings, pages, presence, proofs, refusals
from bulk_jobs.shared.hook_settings import HookItem, OrganizationItem, hook_path, hooks_path
from bulk_jobs.shared.undos import hooks

_NOT_COMPARED = "it exists; its secret, user name and password can't be compared"


class ListWebhooks(Operation[OrganizationItem], Returns[list[Webhook]]):
    """Read all webhooks of an organization that the credential may see. Secrets are masked.

    Requests:  1 for every 100 webhooks.
    Category:  core. Lane: none.
    Result:    the webhooks, as an array.
    Lost answer: a read is repeated.
    Source:    Organization webhooks, GET /orgs/{org}/hooks.
    """

    name = "webhook.list"
    access = accesses.HOOKS_READ
    Item = OrganizationItem
    volatile = hook_settings.VOLATILE
    example: ClassVar = {"org": "acme-ops"}

    def check(self, item: OrganizationItem) -> Iterator[ItemFlaw]:
        return hook_settings.flaws_of_organization(item)

    def steps(self, item: OrganizationItem) -> Steps:
        listing = yield from pages.read_all(hooks_path(item.org), hook_settings.proof_of_hooks(item.org))
        entries = [hook_settings.shown(entry) for entry in listing.entries]
        return pages.outcome_of(msgspec.structs.replace(listing, entries=entries))


class _ReadsWebhook(ProvesAbsence[HookItem]):
    """A read of one webhook."""

    access = accesses.HOOKS_READ
    Item = HookItem
    example: ClassVar = {"org": "acme-ops", "hook_id": 4001}

    def check(self, item: HookItem) -> Iterator[ItemFlaw]:
        return hook_settings.flaws_of_organization(item)

    def place(self, item: HookItem) -> str:
        return hook_path(item)


class GetWebhook(_ReadsWebhook, Returns[Webhook]):
    """Read one webhook of an organization. Its secret is masked.

    Requests:  1. missing: ok: the first 100 webhooks as a list, and 1 more where it is not one of them.
    Category:  core. Lane: none.
    Result:    the webhook.
    Lost answer: a read is repeated.
    Source:    Organization webhooks, GET /orgs/{org}/hooks/{hook_id}.
    """

    name = "webhook.get"
    volatile = hook_settings.VOLATILE

    def steps(self, item: HookItem) -> Steps:
        reply = yield Request(method="GET", path=hook_path(item), proof=hook_settings.proof_of_hook(item))
        return _read(reply, hook_settings.shown(reply.body))

    def steps_or_absent(self, item: HookItem) -> Steps:
        return _unless_listed(item, lambda hook: hook)


class GetWebhookConfig(_ReadsWebhook, Returns[WebhookConfig]):
    """Read the configuration of a webhook: where its events go, and how. Its secret is masked.

    Requests:  1. missing: ok: the first 100 webhooks as a list, and 1 more where it is not one of them.
    Category:  core. Lane: none.
    Result:    url, content_type, insecure_ssl, and secret where there is one.
    Lost answer: a read is repeated.
    Source:    Organization webhooks, GET /orgs/{org}/hooks/{hook_id}/config.
    """

    name = "webhook.get-config"
    volatile = frozenset[str]()

    def steps(self, item: HookItem) -> Steps:
        reply = yield Request(method="GET", path=f"{hook_path(item)}/config", proof=hook_settings.CONFIG_SHOWN)
        return _read(reply, hook_settings.shown_config(reply.body))

    def steps_or_absent(self, item: HookItem) -> Steps:
        return _unless_listed(item, lambda hook: hook["config"])


class CreateWebhookItem(OrganizationItem, frozen=True, kw_only=True):
    """Names an organization, and describes its new webhook."""

    config: hook_settings.HookConfig
    name: Annotated[Literal["web"], Meta(description="the only kind there is")] = "web"
    events: hook_settings.NewEvents | None = None
    active: Annotated[bool, Meta(description="whether it is told of events; the platform's own: true")] | None = None
    allow_insecure_ssl: hook_settings.AllowInsecureSsl = False
    allow_unknown_events: hook_settings.AllowUnknownEvents = False
    if_exists: Annotated[
        Literal["fail", "unchanged"],
        Meta(description="what one that is there with the same URL, content type and events counts as"),
    ] = "fail"


class CreateWebhook(
    creations.RefusesItsLike[CreateWebhookItem],
    HoldsSecrets[CreateWebhookItem],
    Undoable[CreateWebhookItem],
    Returns[Webhook],
):
    """Create a webhook in an organization, unless an equal one is there.

    Requests:  2: the list (1 for every 100 webhooks, 2 where there are more), then the creation; 1 where an equal one
               is there.
    Category:  core. Lane: the organization.
    Refused:   insecure_ssl "1", unless `allow_insecure_ssl` is true; the mask that the platform shows, as a secret; an
               event whose name is not public, unless `allow_unknown_events` is true.
    Result:    the webhook, its secret masked.
    Lost answer: the list is read: the only new webhook in it with the same URL, content type and events, or more of
               them, is this one. Where another one is new, nobody knows.
    Source:    Organization webhooks, POST /orgs/{org}/hooks.
    """

    name = "webhook.create"
    access = accesses.HOOKS_WRITE
    volatile = hook_settings.VOLATILE
    Item = CreateWebhookItem
    is_read = False
    most_requests = 2
    secret_fields = frozenset(("config.secret", "config.password"))
    settled_by = (
        "The webhooks are listed: the only one that was not there before, with the same URL, content type and events "
        "in the platform's normal form, is the one that was created. Where none is new until the settle time is over, "
        "the request is sent again; where another one is new, or several equal ones, the outcome is unknown."
    )
    example: ClassVar = {
        "org": "acme-eng",
        "config": {"url": "http://127.0.0.1:9/hooks/eng", "content_type": "json"},
        "events": ["push", "repository"],
    }

    def check(self, item: CreateWebhookItem) -> Iterator[ItemFlaw]:
        config = item.config
        texts = {"secret": config.secret, "username": config.username, "password": config.password}
        yield from hook_settings.flaws_of_organization(item)
        yield from hook_settings.flaws_of_config(
            config.url, config.insecure_ssl, texts, may_be_insecure=item.allow_insecure_ssl
        )
        yield from event_names.flaws_of_events(item.events, may_be_unknown=item.allow_unknown_events)

    def lanes(self, item: CreateWebhookItem) -> tuple[str, ...]:
        return (item.org,)

    def collection(self, item: CreateWebhookItem) -> str:
        return hooks_path(item.org)

    def steps(self, item: CreateWebhookItem) -> Steps:
        return self._create(item, is_exact=True)

    def steps_to_look_back(self, item: CreateWebhookItem) -> Steps:
        return self._create(msgspec.structs.replace(item, if_exists="unchanged"), is_exact=False)

    def _create(self, item: CreateWebhookItem, *, is_exact: bool) -> Steps:
        before = yield from _list(item)
        if before.flaw is not None:
            return before.flaw
        found = _exists_already(item, before.entries, None, is_exact=is_exact)
        if found is not None:
            return found
        asked, ids = hook_settings.body_of(item), creations.ids(before.entries)
        about = partial(hook_settings.flaw_of_new, asked)
        reply = yield Request(
            method="POST",
            path=hooks_path(item.org),
            body={"name": item.name, **asked},
            effect=Effect.CREATE,
            accept=frozenset((201, 422)),
            before=ids,
            proof=proofs.entry(hook_settings.HOOK, proofs.of_kind("orgs", item.org), creations.new(ids), about),
        )
        if reply.status == 422:
            return (yield from _refused(item, reply))
        return succeeded(hook_settings.shown(reply.body), note=hook_settings.note_on(asked, reply.body))

    def settle(self, item: CreateWebhookItem, lost: Lost) -> Settling:
        listing = yield from _list(item)
        if listing.flaw is not None:
            return Undecided(f"the webhooks can't be listed: {listing.why}", is_unseen=True)
        asked = hook_settings.body_of(item)
        return creations.settled(
            "a webhook",
            self.collection(item),
            listing.entries,
            lost,
            partial(hook_settings.differences_of_new, asked),
            partial(hook_settings.shown_otherwise, _wanted(item)),
            hook_settings.shown,
        )

    def undo(self, item: CreateWebhookItem, before: Any, result: Any) -> Undo | Irreversible:
        return hooks.of_creation(item, result)

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        return hooks.joined(way, later)


class DeleteWebhookItem(HookItem, frozen=True, kw_only=True):
    """Names a webhook, and says how it must still be to be deleted."""

    expect: refusals.Expect | None = None


class DeleteWebhook(ChangesThings[DeleteWebhookItem], Undoable[DeleteWebhookItem], Returns[Numbered]):
    """Remove a webhook from an organization; one that is not there is unchanged.

    Requests:  2: a look, then the removal, or the list where it is not there (1 for every 100 webhooks, 2 where
               there are more).
    Category:  core. Lane: the webhook.
    Result:    id.
    Lost answer: the list is read: where the webhook is not in it any more, it was removed.
    Source:    Organization webhooks, DELETE /orgs/{org}/hooks/{hook_id}.
    """

    name = "webhook.delete"
    access = accesses.HOOKS_WRITE
    Item = DeleteWebhookItem
    is_read = False
    least_requests = 2
    most_requests = 2
    settled_by = (
        "The webhooks are listed: where this one is not among them, nor found by itself, it was removed; a 404 alone "
        "is not proof. Where it is there, the request is sent again."
    )
    example: ClassVar = {"org": "acme-ops", "hook_id": 4001}

    def check(self, item: DeleteWebhookItem) -> Iterator[ItemFlaw]:
        return hook_settings.flaws_of_organization(item)

    def lanes(self, item: DeleteWebhookItem) -> tuple[str, ...]:
        return (f"{item.org}/{item.hook_id}",)

    def things(self, item: DeleteWebhookItem) -> tuple[str, ...]:
        return hook_settings.things(item)

    def shows(self, result: Any, body: Any) -> bool:
        return hook_settings.shows(result, body)

    def steps(self, item: DeleteWebhookItem) -> Steps:
        found = yield _look(item)
        if found.status == 200:
            if item.expect is not None:
                differing = hook_settings.differences(item.expect, found.body)
                conflict = refusals.unexpected(f"webhook {item.hook_id}", differing)
                if conflict is not None:
                    return conflict
            reply = yield Request(
                method="DELETE",
                path=hook_path(item),
                effect=Effect.COMPARE_AND_SWAP,
                accept=frozenset((204, 404)),
                before=hook_settings.image_of_hook(found.body),
            )
            if reply.status == 204:
                return succeeded({"id": item.hook_id})
        listing = yield from _list(item)
        if listing.flaw is not None:
            return listing.flaw
        if _is_listed(item, listing):
            message = f"webhook {item.hook_id} of {item.org} is there, and this credential may not remove it"
            return failed(ErrorCode.NOT_FOUND, message, http_status=404)
        return unchanged({"id": item.hook_id}, note="it is not among the webhooks that this credential can see")

    def undo(self, item: DeleteWebhookItem, before: Any, result: Any) -> Undo | Irreversible:
        return hooks.of_deletion(item, before)

    def settle(self, item: DeleteWebhookItem, lost: Lost) -> Settling:
        listing = yield from _list(item)
        if listing.flaw is not None:
            return Undecided(f"the webhooks can't be listed: {listing.why}", is_unseen=True)
        # a gateway answers any request with an empty list
        if _is_listed(item, listing) or (yield from presence.look_surely(_look(item))).status == 200:
            return NotApplied("the webhook is there")
        return succeeded({"id": item.hook_id}, note="the answer was lost; the webhook is not there any more")


def _unless_listed(item: HookItem, part: Callable[[dict[str, Any]], Any]) -> Steps:
    """Return the outcome with `part` of a webhook from the first page of the list, or by itself; `missing` if neither
    shows it. That page is whole, or shows that a 404 beside it is not one of a credential that may see no webhooks."""
    listing, is_whole = yield from pages.read_first(hooks_path(item.org), hook_settings.proof_of_hooks(item.org))
    for hook in listing.entries:
        if hook.get("id") == item.hook_id:
            shown = part(hook_settings.shown(hook))
            return unchanged(shown) if listing.is_unchanged else succeeded(shown)
    if is_whole:
        return missing(is_unchanged=listing.is_unchanged)
    reply = yield replace(_look(item), is_fresh=False)
    return missing(is_unchanged=False) if reply.status == 404 else _read(reply, part(hook_settings.shown(reply.body)))


def _look(item: HookItem) -> Request:
    proof = hook_settings.proof_of_hook(item)
    return Request(method="GET", path=hook_path(item), accept=frozenset((200, 404)), is_fresh=True, proof=proof)


def _list(item: OrganizationItem) -> Generator[Request, Reply, pages.Listing]:
    return pages.read_surely(hooks_path(item.org), hook_settings.proof_of_hooks(item.org))


def _is_listed(item: HookItem, listing: pages.Listing) -> bool:
    return any(hook.get("id") == item.hook_id for hook in listing.entries)


def _wanted(item: CreateWebhookItem) -> dict[str, Any]:
    """Return the fields by which an existing webhook counts as the one that the item asks for."""
    config = {"url": item.config.url, "content_type": item.config.content_type or "form"}
    return {"config": config, "events": hook_settings.wanted_events(item.events or ["push"])}


def _differences(wanted: Mapping[str, Any], hook: Mapping[str, Any]) -> list[str]:
    # a platform may add kinds of events to those that were asked for
    return hook_settings.differences(wanted, hook, may_have_more_events=True)


def _exists_already(
    item: CreateWebhookItem, hooks: list[dict[str, Any]], refusal: Reply | None, *, is_exact: bool
) -> Outcome | None:
    """Return the outcome of an item if a webhook with its URL and content type gets its events, or more; else None.

    Args:
        is_exact: whether one whose URL has another end, with a slash or without, does not count as that webhook.
    """
    wanted = _wanted(item)
    equal = [hook for hook in hooks if not _differences(wanted, hook)]
    if not equal:
        return None
    same = [
        hook for hook in equal if not hook_settings.config_differences(wanted["config"], hook["config"], is_exact=True)
    ]
    hook = (same or equal)[0]
    rest = {"config": {"insecure_ssl": item.config.insecure_ssl or "0"}, "active": item.active is not False}
    different = hook_settings.differences(rest, hook)
    if is_exact and not same:
        different = ["a slash at the end of its URL, which the platform may drop or add", *different]
    if different or item.if_exists == "fail":
        but = f", which differs in {' and '.join(different)}" if different else ""
        message = f"webhook {hook.get('id')} of {item.org} is equal to it{but}"
        return failed(ErrorCode.CONFLICT, message, http_status=refusal.status if refusal is not None else None)
    otherwise = " and ".join(hook_settings.shown_otherwise(wanted, hook))
    form = f"; the platform shows its {otherwise} otherwise than asked for" if otherwise else ""
    return unchanged(hook_settings.shown(hook), note=f"{_NOT_COMPARED}{form}")


def _refused(item: CreateWebhookItem, reply: Reply) -> Generator[Request, Reply, Outcome]:
    """Look into a 422, and return the outcome: a platform that takes no two equal webhooks refuses one that somebody
    else, or an earlier send, has made meanwhile."""
    after = yield from _list(item)
    return _exists_already(item, after.entries, reply, is_exact=True) or refusals.refused(reply)


def _read(reply: Reply, result: Any) -> Outcome:
    return unchanged(result) if reply.is_unchanged else succeeded(result)
