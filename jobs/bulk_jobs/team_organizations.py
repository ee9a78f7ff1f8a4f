"""The organizations that an enterprise team is assigned to: read, and changed one by one or many at a time.

Assignments are a set: every write looks first, sends only what is not so yet, and may be repeated. A 404 alone proves
nothing about an assignment, because it also means that there is no such team or no permission; the team's own list
beside it does. Changes of one team that stand one behind the other are sent together. Source: specification, Enterprise
team organization assignments; operations.md, 404 rule.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from bulk.capabilities import CombinedSteps, Returns
from bulk.model import Effect, ErrorCode, Lost, NotApplied, Outcome, Request, Undecided, failed, succeeded, unchanged
from bulk.operation import ItemFlaw, Operation, Settling, Steps
from bulk.undo import Irreversible, Undo
from bulk_jobs import accesses
from bulk_jobs.result_types import Organization, TeamAdditions, TeamRemovals
from bulk_jobs.shared import pages, presence
from bulk_jobs.shared import team_requests as teams
from bulk_jobs.shared.team_requests import AssignmentItem, ChangesAssignments, OrganizationsItem, TeamItem, by_login

_EXAMPLE_TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}


class ListTeamOrganizations(Operation[TeamItem], Returns[list[Organization]]):
    """Read all organizations that an enterprise team is assigned to.

    Requests:  1 for every 100 organizations.
    Category:  core. Lane: none.
    Result:    the organizations, as an array.
    Lost answer: a read is repeated.
    Source:    Enterprise team organization assignments, GET …/teams/{enterprise-team}/organizations.
    """

    name = "team-organization.list"
    access = accesses.ENTERPRISE_TEAMS_READ
    Item = TeamItem
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform"}

    def check(self, item: TeamItem) -> Iterator[ItemFlaw]:
        return teams.flaws_of_team(item)

    def steps(self, item: TeamItem) -> Steps:
        return pages.outcome_of((yield from pages.read_all(teams.path(item), teams.ORGANIZATIONS)))


class GetTeamOrganization(Operation[AssignmentItem], Returns[Organization]):
    """Read one organization that an enterprise team is assigned to; one that it is not assigned to is not found.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the organization.
    Lost answer: a read is repeated.
    Source:    Enterprise team organization assignments, GET …/teams/{enterprise-team}/organizations/{org}.
    """

    name = "team-organization.get"
    access = accesses.ENTERPRISE_TEAMS_READ
    Item = AssignmentItem
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-eng"}

    def check(self, item: AssignmentItem) -> Iterator[ItemFlaw]:
        return teams.flaws_of_assignment(item)

    def steps(self, item: AssignmentItem) -> Steps:
        reply = yield teams.look(item)
        if reply.status == 404:
            message = f"{item.enterprise_team} is not assigned to {item.org}, or this credential can't see it"
            return failed(ErrorCode.NOT_FOUND, message, http_status=404)
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class AssignTeamOrganization(ChangesAssignments[AssignmentItem], Returns[Organization]):
    """Assign an enterprise team to one organization.

    Requests:  1 where it is assigned already, otherwise 3: a second look, then the assignment.
    Category:  core. Lane: the team.
    Combined:  up to 100 items of a team, one behind the other: its list is read, what it lacks is sent in one POST
               …/add.
    Result:    login, id, node_id, url and description of the organization.
    Lost answer: the assignment is read; there it was made, otherwise the request is repeated.
    Source:    Enterprise team organization assignments, PUT …/teams/{enterprise-team}/organizations/{org}.
    """

    name = "team-organization.assign"
    Item = AssignmentItem
    most_requests = 3
    settled_by = (
        "The assignment is read: where it is there, it was made. Where it is not, the request is sent again; assigning "
        "twice is assigning once."
    )
    example: ClassVar = {**_EXAMPLE_TEAM, "org": "acme-ops"}

    def check(self, item: AssignmentItem) -> Iterator[ItemFlaw]:
        return teams.flaws_of_assignment(item)

    def steps(self, item: AssignmentItem) -> Steps:
        found = yield teams.look(item)
        if found.status == 404:
            # an undo would take away what a single wrong 404 did not show
            found = yield teams.look(item, is_fresh=True)
        if found.status == 200:
            return unchanged(teams.shown(item.org, found.body))
        reply = yield Request(
            method="PUT",
            path=teams.path_of(item, item.org),
            effect=Effect.SET,
            accept=frozenset((200, 201)),
            before=None,
            proof=teams.proof_of(item.org),
        )
        return succeeded(teams.shown(item.org, reply.body))

    def steps_combined(self, items: Sequence[AssignmentItem]) -> CombinedSteps:
        # a list of more pages than there are items is not a saving
        listing = yield from teams.read_before(items[0], [item.org for item in items], most_pages=len(items))
        if listing.flaw is not None:
            return [None] * len(items)
        before = by_login(listing.entries)
        first = _first_places(items, lambda org: org not in before)
        assigned = {}
        if first:
            slugs = [items[place].org for place in first.values()]
            reply = yield teams.write(items[0], "add", slugs, tuple(first.values()), [None] * len(first))
            assigned = by_login(reply.body)

        def outcome_of(place: int, org: str) -> Outcome | None:
            """Return the outcome of an organization; None: the item finds out the reason by itself."""
            found = before.get(org, assigned.get(org))
            if found is None:
                return None
            result = teams.shown(items[place].org, found)
            return succeeded(result) if first.get(org) == place else unchanged(result)

        return [outcome_of(place, item.org.casefold()) for place, item in enumerate(items)]

    def settle(self, item: AssignmentItem, lost: Lost) -> Settling:
        found = yield teams.look(item, is_fresh=True)
        if found.status == 404:
            return NotApplied("the team is not assigned to the organization")
        return succeeded(teams.shown(item.org, found.body), note="the answer was lost; the team is assigned")

    def undo(self, item: AssignmentItem, before: Any, result: Any) -> Undo | Irreversible:
        return teams.undo_of_one(item, "team-organization.unassign", is_known=before is None)


class UnassignTeamOrganization(ChangesAssignments[AssignmentItem], Returns[Organization]):
    """Remove an enterprise team from one organization.

    Requests:  2: a look, then the removal. Where it is not assigned 3: the team's list, and a second look.
    Category:  core. Lane: the team.
    Combined:  up to 100 items of a team, one behind the other: its list is read, what it lacks is looked at one by one,
               and what is assigned is sent in one POST …/remove.
    Result:    login of the organization.
    Lost answer: the assignment is read; where it is gone and the team's list can be seen, it was removed.
    Source:    Enterprise team organization assignments, DELETE …/teams/{enterprise-team}/organizations/{org}.
    """

    name = "team-organization.unassign"
    Item = AssignmentItem
    least_requests = 2
    most_requests = 3
    settled_by = (
        "The assignment is read: where it is gone, and the team's list can be seen, it was removed. Where it is there, "
        "the request is sent again; removing twice is removing once."
    )
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-eng"}

    def check(self, item: AssignmentItem) -> Iterator[ItemFlaw]:
        return teams.flaws_of_assignment(item)

    def steps(self, item: AssignmentItem) -> Steps:
        found = yield from presence.look_surely(teams.look(item))
        if found.status == 200:
            reply = yield Request(
                method="DELETE",
                path=teams.path_of(item, item.org),
                effect=Effect.SET,
                accept=frozenset((204, 404)),
                before={"login": item.org},
            )
            if reply.status != 404:
                return succeeded({"login": item.org})
            if (yield from presence.look_surely(teams.look(item, is_fresh=True))).status == 200:
                message = f"{item.enterprise_team} is assigned to {item.org}, and this credential may not change that"
                return failed(ErrorCode.NOT_FOUND, message, http_status=404)
        if (yield from teams.lists_without(item, item.org)):
            return unchanged({"login": item.org})
        message = f"{item.enterprise_team} is not there, or this credential can't see it"
        return failed(ErrorCode.NOT_FOUND, message, http_status=404)

    def steps_combined(self, items: Sequence[AssignmentItem]) -> CombinedSteps:
        slugs = [item.org for item in items]
        before, flaw = yield from teams.read_assigned(items[0], slugs, most_pages=len(items))
        if flaw is not None:
            return [None] * len(items)
        first = _first_places(items, lambda org: org in before)
        if first:
            slugs = [items[place].org for place in first.values()]
            befores = [{"login": slug} for slug in slugs]
            yield teams.write(items[0], "remove", slugs, tuple(first.values()), befores)
        return [
            (succeeded if first.get(item.org.casefold()) == place else unchanged)({"login": item.org})
            for place, item in enumerate(items)
        ]

    def settle(self, item: AssignmentItem, lost: Lost) -> Settling:
        found = yield from presence.look_surely(teams.look(item, is_fresh=True))
        if found.status == 200:
            return NotApplied("the team is still assigned to the organization")
        if not (yield from teams.lists_without(item, item.org)):
            return Undecided("the team can't be seen any more", is_unseen=True)
        return succeeded({"login": item.org}, note="the answer was lost; the team is not assigned any more")

    def undo(self, item: AssignmentItem, before: Any, result: Any) -> Undo | Irreversible:
        return teams.undo_of_one(item, "team-organization.assign", is_known=isinstance(before, dict))


class AddTeamOrganizations(ChangesAssignments[OrganizationsItem], Returns[TeamAdditions]):
    """Assign an enterprise team to several organizations at once.

    Requests:  1 for every 100 organizations of the team, and 1 more for every 100 that are not assigned yet. Where it
               has none or more than 100, and some are not assigned yet, its list is read twice, and where it has
               none, one organization is looked at (all of them, if that one is assigned after all).
    Category:  core. Lane: the team.
    Combined:  items of a team, one behind the other, with up to 100 names: its list is read once, what it lacks is sent
               in one POST …/add.
    Result:    added and present (names as given: assigned now, and before); missing, if any, in a failure, which may
               come when a part was done.
    Lost answer: the team's list is read; what it lacks is sent again.
    Source:    Enterprise team organization assignments, POST …/teams/{enterprise-team}/organizations/add.
    """

    name = "team-organization.add"
    Item = OrganizationsItem
    most_requests = 2
    settled_by = (
        "The team's list is read, all pages of it: where it holds all the organizations, they were added. What it "
        "lacks is sent again; assigning twice is assigning once."
    )
    example: ClassVar = {**_EXAMPLE_TEAM, "organization_slugs": ["acme-ops", "acme-labs"]}

    def check(self, item: OrganizationsItem) -> Iterator[ItemFlaw]:
        return teams.flaws_of_organizations(item)

    def size_combined(self, item: OrganizationsItem) -> int:
        return len(item.organization_slugs)

    def steps(self, item: OrganizationsItem) -> Steps:
        (outcome,) = yield from self.steps_combined([item])
        assert outcome is not None, "every item gets one"
        return outcome

    def steps_combined(self, items: Sequence[OrganizationsItem]) -> CombinedSteps:
        slugs = [slug for item in items for slug in item.organization_slugs]
        listing = yield from teams.read_before(items[0], slugs)
        if listing.flaw is not None:
            return [listing.flaw] * len(items)
        before = set(by_login(listing.entries))
        own, lacking = _shared_out(items, lambda org: org not in before)
        shared_by = tuple(place for place, slugs in enumerate(own) if slugs)
        befores = [teams.divided(items[place].organization_slugs, before)[0] for place in shared_by]
        assigned = set(before)
        for chunk in teams.chunks(lacking):
            reply = yield teams.write(items[0], "add", chunk, shared_by, befores)
            assigned |= by_login(reply.body).keys()
        if left := teams.divided(lacking, assigned)[1]:
            # an answer that says less than was done is not yet a failure
            found, flaw = yield from teams.read_assigned(items[0], left)
            if flaw is not None:  # each item finds out by itself what was done
                return [flaw if len(items) == 1 else None] * len(items)
            assigned |= found
        return [teams.added(item, set(mine), assigned) for item, mine in zip(items, own, strict=True)]

    def settle(self, item: OrganizationsItem, lost: Lost) -> Settling:
        listing = yield from pages.read_all(teams.path(item), teams.ORGANIZATIONS, is_fresh=True)
        if listing.flaw is not None:
            return Undecided(listing.why, is_unseen=True)
        return teams.settled_addition(item, lost.before, by_login(listing.entries).keys())

    def undo(self, item: OrganizationsItem, before: Any, result: Any) -> Undo | Irreversible:
        return teams.undo_of_several(item, "team-organization.remove", result, "added", before)

    def before_both(self, item: OrganizationsItem, first: Any, later: Any) -> Any:
        return teams.divided(later, {slug.casefold() for slug in first})[0]


class RemoveTeamOrganizations(ChangesAssignments[OrganizationsItem], Returns[TeamRemovals]):
    """Remove an enterprise team from several organizations at once.

    Requests:  1 for every 100 organizations of the team, 1 for each name that is not among them, and 1 more for every
               100 that are assigned.
    Category:  core. Lane: the team.
    Combined:  items of a team, one behind the other, with up to 100 names: its list is read once, what it lacks is
               looked at one by one, and what is assigned is sent in one POST …/remove.
    Result:    removed and absent (names as given: removed now, and not assigned before); left, if any, in a failure
               that came when a part was done.
    Lost answer: the team's list is read; what it still holds is sent again.
    Source:    Enterprise team organization assignments, POST …/teams/{enterprise-team}/organizations/remove.
    """

    name = "team-organization.remove"
    Item = OrganizationsItem
    most_requests = 2
    settled_by = (
        "The team's list is read, all pages of it, and what it lacks is looked at one by one: where none of the "
        "organizations is assigned, they were removed. What still is is sent again; removing twice is removing once."
    )
    example: ClassVar = {"enterprise": "acme", "enterprise-team": "ent:platform", "organization_slugs": ["acme-eng"]}

    def check(self, item: OrganizationsItem) -> Iterator[ItemFlaw]:
        return teams.flaws_of_organizations(item)

    def size_combined(self, item: OrganizationsItem) -> int:
        return len(item.organization_slugs)

    def steps(self, item: OrganizationsItem) -> Steps:
        (outcome,) = yield from self.steps_combined([item])
        assert outcome is not None, "every item gets one"
        return outcome

    def steps_combined(self, items: Sequence[OrganizationsItem]) -> CombinedSteps:
        slugs = [slug for item in items for slug in item.organization_slugs]
        before, flaw = yield from teams.read_assigned(items[0], slugs)
        if flaw is not None:
            return [flaw] * len(items)
        own, held = _shared_out(items, lambda org: org in before)
        shared_by = tuple(place for place, slugs in enumerate(own) if slugs)
        befores = [teams.divided(items[place].organization_slugs, before)[0] for place in shared_by]
        for chunk in teams.chunks(held):
            yield teams.write(items[0], "remove", chunk, shared_by, befores)
        return [teams.removed(item, set(mine)) for item, mine in zip(items, own, strict=True)]

    def settle(self, item: OrganizationsItem, lost: Lost) -> Settling:
        assigned, flaw = yield from teams.read_assigned(item, item.organization_slugs)
        if flaw is not None:
            return Undecided("the team's organizations can't be listed", is_unseen=True)
        return teams.settled_removal(item, lost.before, assigned)

    def undo(self, item: OrganizationsItem, before: Any, result: Any) -> Undo | Irreversible:
        return teams.undo_of_several(item, "team-organization.add", result, "removed", before)

    def before_both(self, item: OrganizationsItem, first: Any, later: Any) -> Any:
        return teams.divided([*first, *later], {slug.casefold() for slug in item.organization_slugs})[0]


def _first_places(items: Sequence[AssignmentItem], is_wanted: Callable[[str], bool]) -> dict[str, int]:
    """Return organization (case folded) -> the place of the first item with it, for which it is sent; only those that
    have to be sent."""
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        if is_wanted(item.org.casefold()):
            first.setdefault(item.org.casefold(), place)
    return first


def _shared_out(
    items: Sequence[OrganizationsItem], is_wanted: Callable[[str], bool]
) -> tuple[list[list[str]], list[str]]:
    """Return the organizations that have to be sent for each item, and all of them together as they were given.

    The lists of the items have names in folded case; an organization of several items is in the list of the first.
    """
    own: list[list[str]] = []
    sent: dict[str, str] = {}
    for item in items:
        new = {slug.casefold(): slug for slug in item.organization_slugs if slug.casefold() not in sent}
        own.append([org for org in new if is_wanted(org)])
        sent.update((org, new[org]) for org in own[-1])
    return own, list(sent.values())
