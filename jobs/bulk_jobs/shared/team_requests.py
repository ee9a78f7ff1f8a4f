"""An enterprise team's organizations: the items that name them, the requests about them, and how answers are read.

What a list or an answer says is compared without case, as the platform does. Source: specification, Enterprise team
organization assignments.
"""

from collections.abc import Collection, Container, Generator, Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bulk import urls
from bulk.capabilities import ChangesThings, Combinable, Irreversible, Undo, Undoable
from bulk.model import Effect, ErrorCode, Outcome, Reply, Request, failed, succeeded, unchanged
from bulk.operation import Item, ItemFlaw, ItemT
from bulk.proof import Proof
from bulk_jobs import accesses
from bulk_jobs.shared import enterprises, names, proofs

MOST_SLUGS = 100
"""Organizations of one call; more are sent in several."""

_SHOWN = ("login", "id", "node_id", "url", "description")
_FOUND_OR_NOT = frozenset((200, 404))
_ANSWERED = {"add": frozenset((200,)), "remove": frozenset((204,))}
_ORGANIZATION: proofs.Kinds = {"login": str}

ORGANIZATIONS = proofs.listing(_ORGANIZATION)
"""What shows that an answer lists organizations."""


class TeamItem(Item, frozen=True, kw_only=True, rename={"enterprise_team": "enterprise-team"}):
    """Which team."""

    enterprise: enterprises.Enterprise
    enterprise_team: enterprises.Team


class AssignmentItem(TeamItem, frozen=True, kw_only=True):
    """Which team and which organization."""

    org: names.Organization


class OrganizationsItem(TeamItem, frozen=True, kw_only=True):
    """Which team and which organizations."""

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
    """Return where the team's list is."""
    root = enterprises.enterprise_path(item.enterprise)
    return f"{root}/teams/{urls.segment(item.enterprise_team)}/organizations"


def path_of(item: AssignmentItem) -> str:
    """Return where one assignment is."""
    return f"{path(item)}/{urls.segment(item.org)}"


def look(item: AssignmentItem, *, is_fresh: bool = False) -> Request:
    """Return the read of one assignment: 200 where it is there."""
    return Request(method="GET", path=path_of(item), accept=_FOUND_OR_NOT, is_fresh=is_fresh, proof=proof_of(item.org))


def can_see(item: TeamItem) -> Generator[Request, Reply, bool]:
    """Return the canary: whether the team's list can be read, so that a 404 beside it means "not assigned"."""
    reply = yield Request(
        method="GET",
        path=path(item),
        query="per_page=1",
        accept=_FOUND_OR_NOT,
        is_fresh=True,
        proof=ORGANIZATIONS,
    )
    return reply.status == 200


def proof_of(org: str) -> Proof:
    """Return what shows that an answer is this organization."""
    return proofs.entry(_ORGANIZATION, proofs.naming(login=org))


def write(
    item: TeamItem, verb: Literal["add", "remove"], slugs: list[str], shared_by: tuple[int, ...], befores: list[Any]
) -> Request:
    """POST `add` or `remove`. `shared_by`: as in `Request`. `befores`: what each of those items saw."""
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
    """Return what takes one assignment or removal back; that it is done twice, or by somebody else, changes nothing."""
    return Undo(operation=operation, item={**_team(item), "org": item.org}) if is_known else NOT_KNOWN


def undo_of_several(
    item: OrganizationsItem, operation: str, result: Any, done: Literal["added", "removed"], before: Any
) -> Undo | Irreversible:
    """Return what takes assignments or removals back.

    Args:
        result: of the item, of which `done` names the organizations. before: those that were assigned before.
    """
    named = result.get(done) if isinstance(result, dict) else None
    if not isinstance(before, list) or not isinstance(named, list):
        return NOT_KNOWN
    had = {org.casefold() for org in before}
    slugs = [org for org in named if (org.casefold() in had) is (done == "removed")]
    if not slugs:
        return Irreversible("nothing was changed")
    return Undo(operation=operation, item={**_team(item), "organization_slugs": slugs})


def _team(item: TeamItem) -> dict[str, Any]:
    return {"enterprise": item.enterprise, "enterprise-team": item.enterprise_team}


def divided(slugs: Iterable[str], logins: Container[str]) -> tuple[list[str], list[str]]:
    """Return which of `slugs`, each once, are among `logins` (folded), and which are not."""
    unique = {slug.casefold(): slug for slug in slugs}
    inside = [slug for folded, slug in unique.items() if folded in logins]
    return inside, [slug for folded, slug in unique.items() if folded not in logins]


def by_login(organizations: Any) -> dict[str, Any]:
    """Return an answer's organizations by their names, folded."""
    entries = organizations if isinstance(organizations, list) else []
    objects = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("login"), str)]
    return {entry["login"].casefold(): entry for entry in objects}


def chunks(slugs: list[str]) -> Iterator[list[str]]:
    """Yield not more at once than one call takes."""
    rest = iter(slugs)
    while chunk := list(islice(rest, MOST_SLUGS)):
        yield chunk


def shown(login: str, body: Any) -> dict[str, Any]:
    """Return what results show of an organization; `login` where the answer had none."""
    found = {name: body[name] for name in _SHOWN if name in body} if isinstance(body, dict) else {}
    return {"login": login, **found}


def added(item: OrganizationsItem, own: set[str], assigned: set[str]) -> Outcome:
    """Return how an addition ended. `own`: what was sent for this item. `assigned`: what the team has now. All are
    folded."""
    there, missing = divided(item.organization_slugs, assigned)
    new, present = divided(there, own)
    result = {"added": new, "present": present}
    if missing:
        message = f"the platform did not assign {item.enterprise_team} to {', '.join(missing)}: no such organization?"
        return failed(ErrorCode.NOT_FOUND, message, http_status=200, result={**result, "missing": missing})
    return succeeded(result) if new else unchanged(result)


def removed(item: OrganizationsItem, own: set[str]) -> Outcome:
    """Return how a removal ended. `own`: what was sent for this item, folded."""
    gone, absent = divided(item.organization_slugs, own)
    result = {"removed": gone, "absent": absent}
    return succeeded(result) if gone else unchanged(result)
