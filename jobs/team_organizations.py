"""Which organizations an enterprise team is assigned to: read, and changed one by one or many at a time.

Assignments are a set: every write looks first, sends only what is not so yet, and may be repeated. A 404 alone proves
nothing about an assignment, because it also means that there is no such team or no permission; the team's own list
beside it does. Source: specification, Enterprise team organization assignments; operations.md, 404 rule.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from bulk import urls
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
    succeeded,
    unchanged,
)
from bulk.operation import Item, ItemFlaw, Operation, Settling, Steps
from jobs import enterprises, names, pages

MOST_SLUGS = 100
"""Organizations of one call; more are sent in several."""

_SHOWN = ("login", "id", "node_id", "url", "description")
_FOUND_OR_NOT = frozenset((200, 404))
_EXAMPLE_TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}


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


class ListTeamOrganizations(Operation[TeamItem]):
    """Read all organizations that an enterprise team is assigned to.

    Requests:  1 for every 100 organizations.
    Category:  core. Lane: none.
    Result:    the organizations, as an array.
    Lost answer: a read is repeated.
    Source:    Enterprise team organization assignments, GET …/teams/{enterprise-team}/organizations.
    """

    name = "team-organization.list"
    Item = TeamItem
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform"}

    def check(self, item: TeamItem) -> Iterator[ItemFlaw]:
        return _flaws_of_team(item)

    def steps(self, item: TeamItem) -> Steps:
        return pages.outcome_of((yield from pages.read_all(_path(item))))


class GetTeamOrganization(Operation[AssignmentItem]):
    """Read one organization that an enterprise team is assigned to; one that it is not assigned to is not found.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the organization.
    Lost answer: a read is repeated.
    Source:    Enterprise team organization assignments, GET …/teams/{enterprise-team}/organizations/{org}.
    """

    name = "team-organization.get"
    Item = AssignmentItem
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-eng"}

    def check(self, item: AssignmentItem) -> Iterator[ItemFlaw]:
        return _flaws_of_assignment(item)

    def steps(self, item: AssignmentItem) -> Steps:
        reply = yield _look(item)
        if reply.status == 404:
            message = f"{item.enterprise_team} is not assigned to {item.org}, or this credential can't see it"
            return failed(ErrorCode.NOT_FOUND, message, http_status=404)
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class AssignTeamOrganization(Operation[AssignmentItem]):
    """Assign an enterprise team to one organization.

    Requests:  1 where it is assigned already, otherwise 2.
    Category:  core. Lane: the team.
    Result:    login, id, node_id, url and description of the organization.
    Lost answer: the assignment is read; there it was made, otherwise the request is repeated.
    Source:    Enterprise team organization assignments, PUT …/teams/{enterprise-team}/organizations/{org}.
    """

    name = "team-organization.assign"
    Item = AssignmentItem
    is_read = False
    most_requests = 2
    settled_by = (
        "The assignment is read: where it is there, it was made. Where it is not, the request is sent again; assigning "
        "twice is assigning once."
    )
    example: ClassVar = {**_EXAMPLE_TEAM, "org": "acme-ops"}

    def check(self, item: AssignmentItem) -> Iterator[ItemFlaw]:
        return _flaws_of_assignment(item)

    def lanes(self, item: AssignmentItem) -> tuple[str, ...]:
        return _lanes(item)

    def steps(self, item: AssignmentItem) -> Steps:
        found = yield _look(item)
        if found.status == 200:
            return unchanged(_shown(item.org, found.body))
        reply = yield Request(
            method="PUT", path=_path_of(item), effect=Effect.SET, accept=frozenset((200, 201, 204)), memo={}
        )
        return succeeded(_shown(item.org, reply.body))

    def settle(self, item: AssignmentItem, lost: Lost) -> Settling:
        found = yield _look(item, is_fresh=True)
        if found.status == 404:
            return NotApplied("the team is not assigned to the organization")
        return succeeded(_shown(item.org, found.body), note="the answer was lost; the team is assigned")


class UnassignTeamOrganization(Operation[AssignmentItem]):
    """Remove an enterprise team from one organization.

    Requests:  2: a look, then the removal, or the team's list where it is not assigned.
    Category:  core. Lane: the team.
    Result:    login of the organization.
    Lost answer: the assignment is read; where it is gone and the team's list can be seen, it was removed.
    Source:    Enterprise team organization assignments, DELETE …/teams/{enterprise-team}/organizations/{org}.
    """

    name = "team-organization.unassign"
    Item = AssignmentItem
    is_read = False
    least_requests = 2
    most_requests = 2
    settled_by = (
        "The assignment is read: where it is gone, and the team's list can be seen, it was removed. Where it is there, "
        "the request is sent again; removing twice is removing once."
    )
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-eng"}

    def check(self, item: AssignmentItem) -> Iterator[ItemFlaw]:
        return _flaws_of_assignment(item)

    def lanes(self, item: AssignmentItem) -> tuple[str, ...]:
        return _lanes(item)

    def steps(self, item: AssignmentItem) -> Steps:
        found = yield _look(item)
        if found.status == 200:
            reply = yield Request(
                method="DELETE",
                path=_path_of(item),
                effect=Effect.SET,
                accept=frozenset((200, 204, 404)),
                memo={},
            )
            if reply.status != 404:
                return succeeded({"login": item.org})
        if (yield from _can_see(item)):
            return unchanged({"login": item.org})
        message = f"{item.enterprise_team} is not there, or this credential can't see it"
        return failed(ErrorCode.NOT_FOUND, message, http_status=404)

    def settle(self, item: AssignmentItem, lost: Lost) -> Settling:
        found = yield _look(item, is_fresh=True)
        if found.status == 200:
            return NotApplied("the team is still assigned to the organization")
        if not (yield from _can_see(item)):
            return Undecided("the team can't be seen any more")
        return succeeded({"login": item.org}, note="the answer was lost; the team is not assigned any more")


class AddTeamOrganizations(Operation[OrganizationsItem]):
    """Assign an enterprise team to several organizations at once.

    Requests:  1 for every 100 organizations of the team, and 1 more for every 100 that are not assigned yet.
    Category:  core. Lane: the team.
    Result:    added and present (names as given: assigned now, and before); missing, if any, in a failure.
    Lost answer: the team's list is read; what it lacks is sent again.
    Source:    Enterprise team organization assignments, POST …/teams/{enterprise-team}/organizations/add.
    """

    name = "team-organization.add"
    Item = OrganizationsItem
    is_read = False
    most_requests = 2
    settled_by = (
        "The team's list is read, all pages of it: where it holds all the organizations, they were added. What it "
        "lacks is sent again; assigning twice is assigning once."
    )
    example: ClassVar = {**_EXAMPLE_TEAM, "organization_slugs": ["acme-ops", "acme-labs"]}

    def check(self, item: OrganizationsItem) -> Iterator[ItemFlaw]:
        return _flaws_of_organizations(item)

    def lanes(self, item: OrganizationsItem) -> tuple[str, ...]:
        return _lanes(item)

    def steps(self, item: OrganizationsItem) -> Steps:
        listing = yield from pages.read_all(_path(item))
        if listing.flaw is not None:
            return listing.flaw
        present, lacking = _divided(item.organization_slugs, _logins(listing.entries))
        if not lacking:
            return unchanged({"added": [], "present": present})
        assigned: set[str] = set()
        for chunk in _chunks(lacking):
            reply = yield _write(item, "add", chunk, accept=frozenset((200, 201)))
            assigned |= _logins(reply.body)
        added, missing = _divided(lacking, assigned)
        if missing:
            # an answer that says less than was done is not yet a failure
            listing = yield from pages.read_all(_path(item), is_fresh=True)
            if listing.flaw is not None:
                return listing.flaw
            added, missing = _divided(lacking, assigned | _logins(listing.entries))
        return _added(item, present, added, missing)

    def settle(self, item: OrganizationsItem, lost: Lost) -> Settling:
        listing = yield from pages.read_all(_path(item), is_fresh=True)
        if listing.flaw is not None:
            return Undecided(listing.why)
        added, missing = _divided(item.organization_slugs, _logins(listing.entries))
        if missing:
            return NotApplied(f"the team is not assigned to {', '.join(missing)}")
        note = "the answer was lost; the team is assigned to all of them"
        return succeeded({"added": added, "present": []}, note=note)


class RemoveTeamOrganizations(Operation[OrganizationsItem]):
    """Remove an enterprise team from several organizations at once.

    Requests:  1 for every 100 organizations of the team, and 1 more for every 100 that are assigned.
    Category:  core. Lane: the team.
    Result:    removed and absent (names as given: removed now, and not assigned before).
    Lost answer: the team's list is read; what it still holds is sent again.
    Source:    Enterprise team organization assignments, POST …/teams/{enterprise-team}/organizations/remove.
    """

    name = "team-organization.remove"
    Item = OrganizationsItem
    is_read = False
    most_requests = 2
    settled_by = (
        "The team's list is read, all pages of it: where it holds none of the organizations, they were removed. What "
        "it still holds is sent again; removing twice is removing once."
    )
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform", "organization_slugs": ["acme-eng"]}

    def check(self, item: OrganizationsItem) -> Iterator[ItemFlaw]:
        return _flaws_of_organizations(item)

    def lanes(self, item: OrganizationsItem) -> tuple[str, ...]:
        return _lanes(item)

    def steps(self, item: OrganizationsItem) -> Steps:
        listing = yield from pages.read_all(_path(item))
        if listing.flaw is not None:
            return listing.flaw
        removed, absent = _divided(item.organization_slugs, _logins(listing.entries))
        if not removed:
            return unchanged({"removed": [], "absent": absent})
        for chunk in _chunks(removed):
            yield _write(item, "remove", chunk, accept=frozenset((200, 204)))
        return succeeded({"removed": removed, "absent": absent})

    def settle(self, item: OrganizationsItem, lost: Lost) -> Settling:
        listing = yield from pages.read_all(_path(item), is_fresh=True)
        if listing.flaw is not None:
            return Undecided(listing.why)
        left, removed = _divided(item.organization_slugs, _logins(listing.entries))
        if left:
            return NotApplied(f"the team is still assigned to {', '.join(left)}")
        note = "the answer was lost; the team is assigned to none of them"
        return succeeded({"removed": removed, "absent": []}, note=note)


def _flaws_of_team(item: TeamItem) -> Iterator[ItemFlaw]:
    yield from enterprises.flaws_of_enterprise(item.enterprise)
    yield from enterprises.flaws_of_team(item.enterprise_team)


def _flaws_of_assignment(item: AssignmentItem) -> Iterator[ItemFlaw]:
    yield from _flaws_of_team(item)
    flaw = names.flaw_of_owner(item.org)
    if flaw:
        yield ItemFlaw("org", flaw)


def _flaws_of_organizations(item: OrganizationsItem) -> Iterator[ItemFlaw]:
    yield from _flaws_of_team(item)
    for place, slug in enumerate(item.organization_slugs):
        flaw = names.flaw_of_owner(slug)
        if flaw:
            yield ItemFlaw(f"organization_slugs[{place}]", flaw)


def _lanes(item: TeamItem) -> tuple[str, ...]:
    return (f"{item.enterprise}/{item.enterprise_team}",)


def _path(item: TeamItem) -> str:
    root = enterprises.enterprise_path(item.enterprise)
    return f"{root}/teams/{urls.segment(item.enterprise_team)}/organizations"


def _path_of(item: AssignmentItem) -> str:
    return f"{_path(item)}/{urls.segment(item.org)}"


def _look(item: AssignmentItem, *, is_fresh: bool = False) -> Request:
    return Request(method="GET", path=_path_of(item), accept=_FOUND_OR_NOT, is_fresh=is_fresh)


def _can_see(item: TeamItem) -> Generator[Request, Reply, bool]:
    """The canary: whether the team's list can be read, so that a 404 beside it means "not assigned"."""
    reply = yield Request(method="GET", path=_path(item), query="per_page=1", accept=_FOUND_OR_NOT, is_fresh=True)
    return reply.status == 200


def _write(item: TeamItem, verb: str, slugs: list[str], *, accept: frozenset[int]) -> Request:
    return Request(
        method="POST",
        path=f"{_path(item)}/{verb}",
        body={"organization_slugs": slugs},
        effect=Effect.SET,
        accept=accept,
        memo={},
    )


def _added(item: TeamItem, present: list[str], added: list[str], missing: list[str]) -> Outcome:
    if not missing:
        return succeeded({"added": added, "present": present})
    message = f"the platform did not assign {item.enterprise_team} to {', '.join(missing)}: no such organization?"
    result = {"added": added, "present": present, "missing": missing}
    return failed(ErrorCode.NOT_FOUND, message, http_status=200, result=result)


def _divided(slugs: Iterable[str], logins: set[str]) -> tuple[list[str], list[str]]:
    """Which of `slugs`, each once, are among `logins` (folded), and which are not."""
    unique = {slug.casefold(): slug for slug in slugs}
    inside = [slug for folded, slug in unique.items() if folded in logins]
    return inside, [slug for folded, slug in unique.items() if folded not in logins]


def _logins(organizations: Any) -> set[str]:
    """The names of an answer's organizations, folded; none where it is no list of them."""
    entries = organizations if isinstance(organizations, list) else []
    logins = (entry.get("login") for entry in entries if isinstance(entry, dict))
    return {login.casefold() for login in logins if isinstance(login, str)}


def _chunks(slugs: list[str]) -> Iterator[list[str]]:
    rest = iter(slugs)
    while chunk := list(islice(rest, MOST_SLUGS)):
        yield chunk


def _shown(login: str, body: Any) -> dict[str, Any]:
    found = {name: body[name] for name in _SHOWN if name in body} if isinstance(body, dict) else {}
    return {"login": login, **found}
