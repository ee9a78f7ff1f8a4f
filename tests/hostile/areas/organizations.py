"""Organizations, and which enterprise teams they have; licensing.

Keys: ("login", login in lower case) -> id; ("organization", id) -> its fields; ("team", enterprise, slug) -> id;
("assigned", team id, organization id) -> true; ("license",), ("committers", enterprise).
"""

from typing import Any

from tests.hostile.http.messages import Answer, nothing, refused, shown
from tests.hostile.http.turn import BASE_URL, Turn, paged, paged_part

RENAME_S = 0.8
"""How long a rename takes in the background (seconds)."""


def organization_id(turn: Turn, login: str) -> int | None:
    """The organization of that name, in any case."""
    found: int | None = turn.get("login", login.lower())
    return found


def as_shown(organization: dict[str, Any]) -> dict[str, Any]:
    """The fields that answers have."""
    login, url = organization["login"], f"{BASE_URL}/orgs/{organization['login']}"
    return {
        "login": login,
        "id": organization["id"],
        "node_id": f"O_{organization['id']}",
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": "https://git.example.test/avatars/none",
        "description": organization.get("description", ""),
        "archived_at": None,
    }


def create(turn: Turn) -> Answer:
    """Create an organization."""
    body = turn.ask.json()
    login = body.get("login")
    if not login or not body.get("admin"):
        return refused(422, "login and admin are needed")
    if organization_id(turn, login) is not None:
        return refused(422, f"the name {login} is taken")
    made = {"id": turn.state.new_id(), "login": turn.normal.login(login), "name": body.get("profile_name")}
    turn.state.set(("login", login.lower()), made["id"], turn.now)
    turn.change("organization created", ("organization", made["id"]), made)
    return shown(201, as_shown(made))


def rename(turn: Turn) -> Answer:
    """Rename an organization, in the background."""
    old, new = turn.names["org"], turn.ask.json().get("login")
    found = organization_id(turn, old)
    if found is None:
        return refused(404, f"no organization {old}")
    if not new or organization_id(turn, new) not in (None, found):
        return refused(422, f"the name {new} can't be had")
    organization = {**turn.get("organization", found), "login": turn.normal.login(new)}
    if turn.coming("login", new.lower()) != found:
        turn.change("organization renamed", ("organization", found), organization, RENAME_S)
    if old.lower() != new.lower():
        turn.state.set(("login", old.lower()), None, turn.now + RENAME_S)
        turn.state.set(("login", new.lower()), found, turn.now + RENAME_S)
    return shown(202, {"message": "the rename is under way", "url": f"{BASE_URL}/organizations/{found}"})


def _team(turn: Turn) -> int | None:
    found: int | None = turn.get("team", turn.names["enterprise"], turn.names["team"])
    return found


def _assigned(turn: Turn, team: int) -> list[dict[str, Any]]:
    ids = [key[2] for key, _ in turn.all("assigned", team)]
    return turn.normal.listed([as_shown(turn.get("organization", each)) for each in ids])


def assigned(turn: Turn) -> Answer:
    """All organizations of a team."""
    team = _team(turn)
    return refused(404, "no such team") if team is None else paged(turn, _assigned(turn, team))


def assigned_one(turn: Turn) -> Answer:
    """One of them; 404 where it is not assigned."""
    team, org = _team(turn), organization_id(turn, turn.names["org"])
    if team is None or org is None or turn.get("assigned", team, org) is None:
        return refused(404, "not assigned")
    return shown(200, as_shown(turn.get("organization", org)))


def assign(turn: Turn) -> Answer:
    """Assign one."""
    team, org = _team(turn), organization_id(turn, turn.names["org"])
    if team is None or org is None:
        return refused(404, "no such team or organization")
    _set_assigned(turn, team, org, True)
    return shown(201, as_shown(turn.get("organization", org)))


def unassign(turn: Turn) -> Answer:
    """Take one away."""
    team, org = _team(turn), organization_id(turn, turn.names["org"])
    if team is None or org is None:
        return refused(404, "no such team or organization")
    _set_assigned(turn, team, org, None)
    return nothing(204)


def assign_many(turn: Turn) -> Answer:
    """Assign several: the answer has all that the team has now."""
    team, orgs = _team(turn), _named(turn)
    if team is None or None in orgs:
        return refused(404, "no such team or organization")
    for org in orgs:
        _set_assigned(turn, team, org, True)
    turn.read_at = turn.now
    return shown(200, _assigned(turn, team))


def unassign_many(turn: Turn) -> Answer:
    """Take several away."""
    team, orgs = _team(turn), _named(turn)
    if team is None or None in orgs:
        return refused(404, "no such team or organization")
    for org in orgs:
        _set_assigned(turn, team, org, None)
    return nothing(204)


def _named(turn: Turn) -> list[int | None]:
    return [organization_id(turn, slug) for slug in turn.ask.json().get("organization_slugs", ())]


def _set_assigned(turn: Turn, team: int, org: int | None, value: bool | None) -> None:
    """Being assigned twice is being assigned: only a change is an effect."""
    if turn.state.get(("assigned", team, org), turn.now) != value:
        turn.change("assigned" if value else "unassigned", ("assigned", team, org), value)


def license_(turn: Turn) -> Answer:
    """The license."""
    return shown(200, turn.get("license"))


def committers(turn: Turn) -> Answer:
    """Who commits to repositories with advanced security."""
    found = turn.get("committers", turn.names["enterprise"])
    return refused(404, "no such enterprise") if found is None else paged_part(turn, found, "repositories")
