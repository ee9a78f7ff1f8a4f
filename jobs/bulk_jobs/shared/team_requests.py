"""An enterprise team's organizations: the items that name them, the requests about them, and how answers are read.

Names in lists and answers are compared without case, as the platform does. Source: specification, Enterprise team
organization assignments.
"""

from collections.abc import Collection, Container, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bulk import urls
from bulk.capabilities import ChangesThings, Combinable
from bulk.model import (
    Effect,
    ErrorCode,
    NotApplied,
    Outcome,
    Reply,
    Request,
    failed,
    succeeded,
    unchanged,
)
from bulk.operation import Item, ItemFlaw, ItemT
from bulk.proof import Proof
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.shared import enterprises, names, pages, proofs

MOST_SLUGS = 100
"""The most organizations of one request (count); more are sent in several requests."""

_SHOWN = ("login", "id", "node_id", "url", "description")
_FOUND_OR_NOT = frozenset((200, 404))
_ANSWERED = {"add": frozenset((200,)), "remove": frozenset((204,))}
_ORGANIZATION: proofs.Kinds = {"login": str}

ORGANIZATIONS = proofs.listing(_ORGANIZATION)
"""The proof that an answer is a list of organizations."""


class TeamItem(Item, frozen=True, kw_only=True, rename={"enterprise_team": "enterprise-team"}):
    """Names a team of an enterprise."""

    enterprise: enterprises.Enterprise
    enterprise_team: enterprises.Team


class AssignmentItem(TeamItem, frozen=True, kw_only=True):
    """Names a team and one organization."""

    org: names.Organization


class OrganizationsItem(TeamItem, frozen=True, kw_only=True):
    """Names a team and several organizations."""

    organization_slugs: Annotated[
        list[names.Organization],
        Meta(min_length=1, description="names of the organizations", examples=[["acme-eng", "acme-ops"]]),
    ]


class ChangesAssignments(ChangesThings[ItemT], Combinable[ItemT], Undoable[ItemT]):
    """A change of a team's assignments: one at a time for each team."""

    access = accesses.ENTERPRISE_TEAMS_WRITE
    is_read = False
    most_combined = MOST_SLUGS

    def lanes(self, item: Any) -> tuple[str, ...]:
        return (f"{item.enterprise}/{item.enterprise_team}",)

    def things(self, item: Any) -> tuple[str, ...]:
        slugs = item.organization_slugs if isinstance(item, OrganizationsItem) else (item.org,)
        return tuple(urls.place(path(item), slug) for slug in slugs)

    def narrowed(self, item: Any, things: Collection[str]) -> Any:
        if not isinstance(item, OrganizationsItem):
            return None
        slugs = [slug for slug in item.organization_slugs if urls.place(path(item), slug) in things]
        return msgspec.structs.replace(item, organization_slugs=slugs)

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        # each gives back a state, whatever is there: that of the earlier change, unless the later one has done so
        ours, theirs = _slugs(way), _slugs(later)
        left = divided(ours, _folded(theirs))[1] if _assigns(way) is not _assigns(later) else ours
        return [*_narrowed(later, divided(theirs, _folded(ours))[1]), *_narrowed(way, left)]


def _assigns(way: Undo) -> bool:
    return way.operation in ("team-organization.assign", "team-organization.add")


def _slugs(way: Undo) -> list[str]:
    """Return the organizations that an undo names."""
    return [way.item["org"]] if "org" in way.item else list(way.item["organization_slugs"])


def _narrowed(way: Undo, slugs: list[str]) -> Iterator[Undo]:
    """Yield the part of an undo that is about these organizations, if there is one."""
    if slugs:
        part = {} if "org" in way.item else {"organization_slugs": slugs}
        yield msgspec.structs.replace(way, item={**way.item, **part})


NOT_KNOWN = Irreversible("what was assigned before is not known")


def flaws_of_team(item: TeamItem) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the names of a team."""
    yield from enterprises.flaws_of_enterprise(item.enterprise)
    yield from enterprises.flaws_of_team(item.enterprise_team)


def flaws_of_assignment(item: AssignmentItem) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the names of a team and an organization."""
    yield from flaws_of_team(item)
    flaw = names.flaw_of_owner(item.org)
    if flaw:
        yield ItemFlaw("org", flaw)


def flaws_of_organizations(item: OrganizationsItem) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the names of a team and its organizations."""
    yield from flaws_of_team(item)
    for place, slug in enumerate(item.organization_slugs):
        flaw = names.flaw_of_owner(slug)
        if flaw:
            yield ItemFlaw(f"organization_slugs[{place}]", flaw)


def path(item: TeamItem) -> str:
    """Return the path of the list of the team's organizations."""
    root = enterprises.enterprise_path(item.enterprise)
    return f"{root}/teams/{urls.segment(item.enterprise_team)}/organizations"


def path_of(item: TeamItem, org: str) -> str:
    """Return the path of one assignment."""
    return f"{path(item)}/{urls.segment(org)}"


def look(item: AssignmentItem, *, is_fresh: bool = False) -> Request:
    """Return the request that reads one assignment: its status is 200 where the team is assigned."""
    return _look_at(item, item.org, is_fresh=is_fresh)


def _look_at(item: TeamItem, org: str, *, is_fresh: bool) -> Request:
    path = path_of(item, org)
    return Request(method="GET", path=path, accept=_FOUND_OR_NOT, is_fresh=is_fresh, proof=proof_of(org))


def read_before(
    item: TeamItem, slugs: Iterable[str], most_pages: int = pages.MOST_PAGES
) -> Generator[Request, Reply, pages.Listing]:
    """Read the team's list before `slugs` are assigned. Where it lacks some of them, and is empty or has several pages,
    it is read twice: an undo would take away what a wrong answer, or a list that moved, did not show. Where it shows
    nothing at all, one of them is looked at besides, as something on the way may answer each question with nothing;
    where that one is assigned, each of the others is looked at, too."""
    listing = yield from pages.read_all(path(item), ORGANIZATIONS, most_pages=most_pages)
    assigned = by_login(listing.entries)
    lacking = divided(slugs, assigned)[1]
    if listing.flaw is not None or not lacking or (assigned and listing.pages == 1):
        return listing
    again = yield from pages.read_all(path(item), ORGANIZATIONS, is_fresh=True, most_pages=most_pages)
    entries = [*listing.entries, *again.entries]
    is_looked_at = not entries and again.flaw is None
    for org in lacking if is_looked_at else ():
        found = yield _look_at(item, org, is_fresh=True)
        if found.status == 200:
            entries.append(found.body)
        elif not entries:
            break  # nothing contradicts the lists
    return msgspec.structs.replace(again, entries=entries)


def read_assigned(
    item: TeamItem, slugs: Iterable[str], most_pages: int = pages.MOST_PAGES
) -> Generator[Request, Reply, tuple[set[str], Outcome | None]]:
    """Return which organizations the team is assigned to, case folded, and what is wrong with its list, if anything.

    It is for a caller to whom it matters which of the `slugs` are not among them: a list may lag, so that those that
    it lacks are looked at one by one.
    """
    listing = yield from pages.read_all(path(item), ORGANIZATIONS, is_fresh=True, most_pages=most_pages)
    assigned = set(by_login(listing.entries))
    if listing.flaw is None:
        for org in divided(slugs, assigned)[1]:
            if (yield _look_at(item, org, is_fresh=True)).status == 200:
                assigned.add(org.casefold())
    return assigned, listing.flaw


def lists_without(item: TeamItem, org: str) -> Generator[Request, Reply, bool]:
    """Return whether the team's list can be read (the canary), so that a 404 for an assignment means "not assigned"; a
    first page with the organization contradicts that 404."""
    reply = yield Request(
        method="GET",
        path=path(item),
        query=urls.query(per_page=pages.PER_PAGE),
        accept=_FOUND_OR_NOT,
        is_fresh=True,
        proof=ORGANIZATIONS,
    )
    return reply.status == 200 and org.casefold() not in by_login(reply.body)


def proof_of(org: str) -> Proof:
    """Return the proof that an answer is this organization."""
    return proofs.entry(_ORGANIZATION, proofs.naming(login=org))


def write(
    item: TeamItem, verb: Literal["add", "remove"], slugs: list[str], shared_by: tuple[int, ...], befores: list[Any]
) -> Request:
    """Return the POST `add` or `remove`.

    Args:
        shared_by: as in `Request`.
        befores: the before-images of the items that share the request.
    """
    return Request(
        method="POST",
        path=f"{path(item)}/{verb}",
        body={"organization_slugs": slugs},
        effect=Effect.SET,
        accept=_ANSWERED[verb],
        before=befores,
        shared_by=shared_by,
        proof=ORGANIZATIONS if verb == "add" else None,
    )


def undo_of_one(item: AssignmentItem, operation: str, *, is_known: bool) -> Undo | Irreversible:
    """Return the undo of one assignment or removal; it does no harm if it is done twice, or if others have done it."""
    return Undo(operation=operation, item={**_team(item), "org": item.org}) if is_known else NOT_KNOWN


def undo_of_several(
    item: OrganizationsItem, operation: str, result: Any, done: Literal["added", "removed"], before: Any
) -> Undo | Irreversible:
    """Return the undo of assignments or removals.

    Args:
        result: the result of the item, which names those with which it failed.
        done: whether they were added or removed.
        before: the organizations of the item that were assigned before.
    """
    kept = {"added": "missing", "removed": "left"}[done]
    if not isinstance(before, list) or not isinstance(result, dict):
        return NOT_KNOWN
    had, others = divided(divided(item.organization_slugs, _folded(result.get(kept)))[1], _folded(before))
    slugs = had if done == "removed" else others
    if not slugs:
        return Irreversible("nothing was changed")
    return Undo(operation=operation, item={**_team(item), "organization_slugs": slugs})


def _team(item: TeamItem) -> dict[str, Any]:
    return {"enterprise": item.enterprise, "enterprise-team": item.enterprise_team}


def divided(slugs: Iterable[str], logins: Container[str]) -> tuple[list[str], list[str]]:
    """Return the `slugs` that are among `logins` (case folded), each once, and those that are not."""
    unique = {slug.casefold(): slug for slug in slugs}
    inside = [slug for folded, slug in unique.items() if folded in logins]
    return inside, [slug for folded, slug in unique.items() if folded not in logins]


def by_login(organizations: Any) -> dict[str, Any]:
    """Return the organizations of an answer by their names, case folded."""
    entries = organizations if isinstance(organizations, list) else []
    objects = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("login"), str)]
    return {entry["login"].casefold(): entry for entry in objects}


def chunks(slugs: list[str]) -> Iterator[list[str]]:
    """Yield the names in parts of at most `MOST_SLUGS`, the most that one request takes."""
    rest = iter(slugs)
    while chunk := list(islice(rest, MOST_SLUGS)):
        yield chunk


def shown(login: str, body: Any) -> dict[str, Any]:
    """Return the fields of an organization for a result; `login` is used where the answer had none."""
    found = {name: body[name] for name in _SHOWN if name in body} if isinstance(body, dict) else {}
    return {"login": login, **found}


def added(item: OrganizationsItem, own: set[str], assigned: set[str]) -> Outcome:
    """Return the outcome of an addition.

    Args:
        own: the organizations that were sent for this item, case folded.
        assigned: the organizations that the team is assigned to now, case folded.
    """
    there, missing = divided(item.organization_slugs, assigned)
    new, present = divided(there, own)
    result = {"added": new, "present": present}
    if missing:
        message = f"the platform did not assign {item.enterprise_team} to {', '.join(missing)}: no such organization?"
        return failed(ErrorCode.NOT_FOUND, message, http_status=200, result={**result, "missing": missing})
    return succeeded(result) if new else unchanged(result)


def removed(item: OrganizationsItem, own: set[str]) -> Outcome:
    """Return the outcome of a removal; `own`: the organizations that were sent for this item, case folded."""
    gone, absent = divided(item.organization_slugs, own)
    result = {"removed": gone, "absent": absent}
    return succeeded(result) if gone else unchanged(result)


def settled_addition(item: OrganizationsItem, before: Any, assigned: Container[str]) -> Outcome | NotApplied:
    """Return how an addition is settled whose answer was lost.

    Args:
        before: the organizations of the item that were assigned before, if that is known.
        assigned: the organizations that the team is assigned to now, case folded.
    """
    there, missing = divided(item.organization_slugs, assigned)
    present, new = divided(there, _folded(before))
    result = {"added": new, "present": present}
    if not missing:
        return succeeded(result, note="the answer was lost; the team is assigned to all of them")
    part = {**result, "missing": missing} if new and isinstance(before, list) else None
    return NotApplied(f"the team is not assigned to {', '.join(missing)}", part)


def settled_removal(item: OrganizationsItem, before: Any, assigned: Container[str]) -> Outcome | NotApplied:
    """Return how a removal is settled whose answer was lost; the arguments are those of `settled_addition`."""
    left, gone = divided(item.organization_slugs, assigned)
    done, absent = divided(gone, _folded(before)) if isinstance(before, list) else (gone, [])
    result = {"removed": done, "absent": absent}
    if not left:
        return succeeded(result, note="the answer was lost; the team is assigned to none of them")
    part = {**result, "left": left} if done and isinstance(before, list) else None
    return NotApplied(f"the team is still assigned to {', '.join(left)}", part)


def _folded(before: Any) -> frozenset[str]:
    return frozenset(org.casefold() for org in before) if isinstance(before, list) else frozenset()
