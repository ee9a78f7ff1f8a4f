"""Attaching a code security configuration to repositories: `organization-configuration.attach`.

The platform accepts an attachment (202) and does it in the background. With `wait` the list of the configuration's
repositories is read until all selected repositories are in it. It can't be read which repositories the other scopes
mean, so for these the list is read until it does not change any more. If licenses do not suffice, only the free
features are switched on, which no status shows, so with `wait` the license is read before and after. Source:
specification, Code security configurations, organization; operations.md, POST attach.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from bulk.capabilities import Returns
from bulk.model import (
    UNSEEN,
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Outcome,
    Reply,
    Request,
    Undecided,
    failed,
    succeeded,
    unchanged,
    unknown,
)
from bulk.operation import ItemFlaw, Operation, Settling, Steps
from bulk_jobs import accesses, licenses
from bulk_jobs.configurations.organization_configurations import REPOSITORIES, ConfigurationItem, lane_of
from bulk_jobs.result_types import Attachment
from bulk_jobs.shared import configuration_fields as fields
from bulk_jobs.shared import enterprises, names, pages, polling

LOOKS_STILL = 4
"""After this many reads that show the same as before (count), nothing had to be changed, and the waiting ends."""

_AS_BEFORE = "accepted; the repositories that have it are those of before, and which ones the scope means can't be read"
_UNDER_WAY = frozenset(("attaching", "updating"))
_THERE = frozenset(("attached", "enforced", "enterprise_enforced"))
_BEGUN = _UNDER_WAY | _THERE
_FOUND_OR_NOT = frozenset((200, 404))
_SEEN_OR_NOT = frozenset((200, 403, 404))
_LICENSED = ("advanced_security", "code_security", "secret_protection")
_LICENSE = ("seats", "seats_used", "seats_available")
_COMMITTERS = (
    "total_advanced_security_committers",
    "maximum_advanced_security_committers",
    "purchased_advanced_security_committers",
)

Held = Mapping[int, str]
"""Id of each repository that has the configuration -> its status (`attached` where the platform does not tell)."""


class AttachConfigurationItem(ConfigurationItem, frozen=True, kw_only=True):
    """Names a configuration, and says to which repositories it is attached.

    Attributes:
        scope: which repositories; all means all that there are at that moment.
    """

    scope: Literal["all", "all_without_configurations", "public", "private_or_internal", "selected"]
    selected_repository_ids: (
        Annotated[
            list[Annotated[int, Meta(ge=1, le=2**53)]],
            Meta(min_length=1, description="ids of the repositories, with scope selected", examples=[[1001, 1002]]),
        ]
        | None
    ) = None
    wait: Annotated[
        bool, Meta(description="follow it until it is done, for up to 10 minutes; otherwise being accepted is enough")
    ] = False
    enterprise: (
        Annotated[
            enterprises.Enterprise,
            Meta(description="with wait: the enterprise whose committers are reported instead of the license"),
        ]
        | None
    ) = None


class AttachConfiguration(Operation[AttachConfigurationItem], Returns[Attachment]):
    """Attach a code security configuration to repositories of an organization, whatever they had before.

    Requests:  1; with scope selected one more, the list of the repositories that have it, and only that where all of
               them have it already. With wait also the configuration, the license before and after, and as many more
               as it takes.
    Category:  core. Lane: the organization, and the configuration.
    Result:    configuration_id and scope; with wait also repositories (how many of each status) and license (before
               and after). It is unchanged where all that were selected have the configuration already; for the other
               scopes, with wait, where the list of those that have it stays what it was.
    Lost answer: with scope selected the list is read: where all are in it, it was attached. Otherwise the request is
               repeated, which changes nothing where it was applied.
    Source:    Code security configurations, POST …/configurations/{configuration_id}/attach.
    """

    name = "organization-configuration.attach"
    access = accesses.ORGANIZATION_WRITE
    Item = AttachConfigurationItem
    is_read = False
    most_requests = 2
    settled_by = (
        "With scope selected the configuration's repositories are listed: where all that were selected are there, it "
        "was attached. Otherwise the request is sent again, before anything later of its lane; attaching twice is "
        "attaching once."
    )
    example: ClassVar = {
        "org": "acme-eng",
        "configuration_id": 2002,
        "scope": "selected",
        "selected_repository_ids": [1001, 1002],
        "wait": True,
    }

    def check(self, item: AttachConfigurationItem) -> Iterator[ItemFlaw]:
        flaw = names.flaw_of_owner(item.org)
        if flaw:
            yield ItemFlaw("org", flaw)
        if item.scope == "selected" and item.selected_repository_ids is None:
            yield ItemFlaw("selected_repository_ids", "expected ids of repositories: the scope is selected")
        if item.scope != "selected" and item.selected_repository_ids is not None:
            yield ItemFlaw("selected_repository_ids", f"goes with scope selected only, not with {item.scope}")
        if item.enterprise is not None:
            yield from enterprises.flaws_of_enterprise(item.enterprise)
            if not item.wait:
                yield ItemFlaw("enterprise", "goes with wait: true only, because its committers are read afterwards")

    def lanes(self, item: AttachConfigurationItem) -> tuple[str, ...]:
        return (item.org, lane_of(item))

    def steps(self, item: AttachConfigurationItem) -> Steps:
        before: Held = {}
        selected = frozenset(item.selected_repository_ids or ())
        if item.wait or selected:
            listing = yield from _list(item)
            if listing.status == 404:
                return _not_there(item)
            if listing.flaw is not None:
                return listing.flaw
            before = _held(listing)
            if selected and all(before.get(number) in _THERE for number in selected):
                return unchanged(_result(item), note="all of them have it already")
        license_before: Any = None
        if item.wait and (yield from _needs_licenses(item)):
            license_before = yield from _license(item)
        yield Request(
            method="POST",
            path=f"{_path(item)}/attach",
            body=_body(item),
            effect=Effect.ORDERED,
            accept=frozenset((202,)),
            before=sorted(number for number in selected if before.get(number) in _THERE) if selected else UNSEEN,
        )
        if not item.wait:
            return succeeded(_result(item), note="accepted; the platform attaches it in the background")
        return (yield from _follow(item, before, license_before))

    def settle(self, item: AttachConfigurationItem, lost: Lost) -> Settling:
        if item.selected_repository_ids is None:
            yield from ()
            return Undecided(f"which repositories the scope {item.scope} means can't be read")
        listing = yield from _list(item, is_fresh=True)
        if listing.flaw is not None or listing.status == 404:
            return Undecided(listing.why or "the configuration can't be seen any more", is_unseen=True)
        held = _held(listing)
        statuses = {held.get(number) for number in item.selected_repository_ids}
        if statuses <= _THERE:
            return succeeded(_result(item), note="the answer was lost; all of them have the configuration")
        begun = {number for number in item.selected_repository_ids if held.get(number) in _BEGUN}
        if isinstance(lost.before, list) and begun.difference(lost.before):
            return Undecided("some of the selected repositories have the configuration since, or get it", is_begun=True)
        if None in statuses:
            return NotApplied("not all of the selected repositories have the configuration")
        return Undecided(f"some repositories are {', '.join(sorted(map(str, statuses - _THERE)))}, perhaps from before")


def _follow(item: AttachConfigurationItem, before: Held, license_before: Any) -> Steps:
    """Read the list until it has the selected repositories, or does not change any more, and return the outcome."""
    selected = frozenset(item.selected_repository_ids or ())
    last: Held | None = None
    for look, pause_s in enumerate(polling.pauses(), start=1):
        listing = yield from _list(item, is_fresh=True, pause_s=pause_s)
        if listing.flaw is not None or listing.status == 404:
            return unknown(f"accepted, and its repositories can't be read: {listing.why or 'not found'}")
        held = _held(listing)
        if _is_done(selected, before, last, held, look):
            break
        last = held
    else:
        return unknown(f"the platform accepted it and had not done it after {polling.MOST_S:.0f} seconds")
    if not selected and held and held == before and set(held.values()) <= _THERE:
        return unchanged({**_result(item), "repositories": _counts(held)}, note=_AS_BEFORE)
    license_after = None if license_before is None else (yield from _license(item))
    return _followed(item, held, license_before, license_after)


def _is_done(selected: frozenset[int], before: Held, last: Held | None, held: Held, look: int) -> bool:
    if any(status in _UNDER_WAY for status in held.values()):
        return False
    if selected:
        statuses = {held.get(number) for number in selected}
        if statuses <= _THERE:
            return True
        # a repository whose status was bad before may be about to be tried again
        return None not in statuses and (held != before or look >= LOOKS_STILL)
    return held == last and (held != before or look >= LOOKS_STILL)


def _followed(item: AttachConfigurationItem, held: Held, license_before: Any, license_after: Any) -> Outcome:
    shown = {number: held[number] for number in item.selected_repository_ids or held}
    counts = _counts(shown)
    result = {**_result(item), "repositories": counts}
    if license_before is not None:
        result["license"] = {"before": license_before, "after": license_after}
    notes = []
    if item.selected_repository_ids is None:
        notes.append("its repositories were followed until they stood still: which ones the scope means can't be read")
    lacking = sum(count for status, count in counts.items() if status not in _THERE)
    if lacking:
        reason = "licenses do not suffice, or settings contradict it"
        notes.append(f"{lacking} of the repositories have only a part of it, such as the free features: {reason}")
    return succeeded(result, note="; ".join(notes) or None)


def _counts(held: Held) -> dict[str, int]:
    """Return how many repositories have each status."""
    return dict(sorted(Counter(held.values()).items()))


def _list(
    item: ConfigurationItem, *, is_fresh: bool = False, pause_s: float = 0.0
) -> Generator[Request, Reply, pages.Listing]:
    path = f"{_path(item)}/repositories"
    return (yield from pages.read_all(path, REPOSITORIES, accept=_FOUND_OR_NOT, is_fresh=is_fresh, pause_s=pause_s))


def _held(listing: pages.Listing) -> Held:
    """Return the statuses from the entries of a list, which are `{status, repository}` or the repository itself."""
    found = {}
    for entry in listing.entries:
        repository = entry.get("repository", entry)
        number = repository.get("id") if isinstance(repository, dict) else None
        if isinstance(number, int):
            status = entry.get("status")
            found[number] = status if isinstance(status, str) else "attached"
    return found


def _needs_licenses(item: ConfigurationItem) -> Generator[Request, Reply, bool]:
    """Return whether the configuration asks for features that take licenses."""
    proof = fields.proof_in_organization(item.org, item.configuration_id)
    reply = yield Request(method="GET", path=_path(item), accept=_FOUND_OR_NOT, proof=proof)
    configuration = reply.body if reply.status == 200 else {}
    return any(configuration.get(field, "disabled") not in ("disabled", "not_set") for field in _LICENSED)


def _license(item: AttachConfigurationItem) -> Generator[Request, Reply, Any]:
    """Return the present seats of the license; None where the credential may not see them."""
    path, query, shown, proof = "/enterprise/settings/license", "", _LICENSE, licenses.LICENSE
    if item.enterprise is not None:
        path = f"{enterprises.enterprise_path(item.enterprise)}/settings/billing/advanced-security"
        query, shown, proof = "per_page=1", _COMMITTERS, licenses.COMMITTERS
    reply = yield Request(method="GET", path=path, query=query, accept=_SEEN_OR_NOT, is_fresh=True, proof=proof)
    if reply.status != 200:
        return None
    return {field: reply.body[field] for field in shown if field in reply.body}


def _body(item: AttachConfigurationItem) -> dict[str, Any]:
    body: dict[str, Any] = {"scope": item.scope}
    if item.selected_repository_ids is not None:
        body["selected_repository_ids"] = list(item.selected_repository_ids)
    return body


def _path(item: ConfigurationItem) -> str:
    return fields.path_in_organization(item.org, item.configuration_id)


def _result(item: AttachConfigurationItem) -> dict[str, Any]:
    return {"configuration_id": item.configuration_id, "scope": item.scope}


def _not_there(item: ConfigurationItem) -> Outcome:
    message = f"configuration {item.configuration_id} is not in {item.org}, or this credential can't see it"
    return failed(ErrorCode.NOT_FOUND, message, http_status=404)
