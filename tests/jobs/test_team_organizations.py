"""`team-organization.*`: a set that is looked at before it is changed."""

import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk.undo import Undo
from bulk_jobs import team_organizations as teams
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle

LIST, GET = teams.ListTeamOrganizations(), teams.GetTeamOrganization()
ASSIGN, UNASSIGN = teams.AssignTeamOrganization(), teams.UnassignTeamOrganization()
ADD, REMOVE = teams.AddTeamOrganizations(), teams.RemoveTeamOrganizations()
TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}
ONE = {**TEAM, "org": "acme-eng"}
ALL_URL = "/enterprises/acme/teams/ent%3Aplatform/organizations"
ONE_URL = f"{ALL_URL}/acme-eng"
ENG = {"login": "Acme-Eng", "id": 101, "node_id": "x", "url": "https://x/orgs/Acme-Eng", "hooks_url": "https://x"}
SHOWN = {key: ENG[key] for key in ("login", "id", "node_id", "url")}
THERE, ABSENT, LISTED = reply(body=ENG), reply(404), reply(body=[])


def some(*slugs):
    """An item about several organizations."""
    return {**TEAM, "organization_slugs": list(slugs)}


def listed(*logins):
    """A page of organizations."""
    return reply(body=[{"login": login} for login in logins])


# -- reads


def test_list_follows_every_page():
    """The organizations of all pages are the result."""
    link = {"link": f'<https://x/api/v3{ALL_URL}?per_page=100&page=2>; rel="next"'}
    driven = run(LIST, TEAM, reply(body=[ENG], headers=link), reply(body=[{"login": "b"}]))
    assert driven.shown() == [f"GET {ALL_URL}?per_page=100", f"GET {ALL_URL}?per_page=100&page=2"]
    assert driven.outcome.result == [ENG, {"login": "b"}]


def test_get():
    """The organization as the platform shows it; unchanged where the store had it."""
    driven = run(GET, ONE, THERE)
    assert (driven.shown(), driven.outcome.result) == ([f"GET {ONE_URL}"], ENG)
    assert run(GET, ONE, reply(body=ENG, is_unchanged=True)).outcome.kind is OutcomeKind.UNCHANGED


def test_get_of_what_is_not_assigned():
    """A 404 is not found, and says what else it may mean."""
    driven = run(GET, ONE, ABSENT)
    assert (driven.error.code, driven.outcome.http_status) == (ErrorCode.NOT_FOUND, 404)
    assert "can't see it" in driven.error.message


# -- one organization


def test_assign_looks_first():
    """What is assigned is unchanged and nothing is written, even if the first of two looks is wrong; what is not is
    assigned."""
    already = run(ASSIGN, ONE, THERE)
    assert (already.shown(), already.outcome.kind) == ([f"GET {ONE_URL}"], OutcomeKind.UNCHANGED)
    second = run(ASSIGN, ONE, ABSENT, THERE)
    assert (second.shown(), second.outcome.kind) == ([f"GET {ONE_URL}"] * 2, OutcomeKind.UNCHANGED)
    driven = run(ASSIGN, ONE, ABSENT, ABSENT, reply(201, ENG))
    assert driven.shown() == [f"GET {ONE_URL}", f"GET {ONE_URL}", f"PUT {ONE_URL}"]
    assert (driven.requests[1].is_fresh, driven.requests[2].effect) == (True, Effect.SET)
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, SHOWN)


def test_assign_settled():
    """Assigned now: applied. Not assigned: not applied."""
    applied = settle(ASSIGN, ONE, UNSEEN, THERE)
    assert applied.outcome.kind is OutcomeKind.SUCCEEDED
    assert "lost" in applied.outcome.result["note"]
    assert settle(ASSIGN, ONE, UNSEEN, ABSENT).is_undone


def test_unassign():
    """What is assigned is removed."""
    driven = run(UNASSIGN, ONE, THERE, reply(204))
    assert driven.shown() == [f"GET {ONE_URL}", f"DELETE {ONE_URL}"]
    assert driven.requests[1].effect is Effect.SET
    assert driven.outcome.result == {"login": "acme-eng"}


def test_unassign_of_what_is_not_assigned():
    """Unchanged only where the team's list can be seen beside two 404s; else not found."""
    driven = run(UNASSIGN, ONE, ABSENT, ABSENT, LISTED)
    assert driven.shown() == [f"GET {ONE_URL}", f"GET {ONE_URL}", f"GET {ALL_URL}?per_page=100"]
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    assert run(UNASSIGN, ONE, ABSENT, ABSENT, ABSENT).error.code is ErrorCode.NOT_FOUND


def test_a_list_that_shows_the_organization_contradicts_every_404():
    """Half of all looks were answered 404, and the list in between showed the organization: it counted as removed."""
    shown = reply(body=[THERE.body])
    assert run(UNASSIGN, ONE, ABSENT, ABSENT, shown).error.code is ErrorCode.NOT_FOUND
    assert settle(UNASSIGN, ONE, {"login": "acme-eng"}, ABSENT, ABSENT, shown).is_undecided


def test_a_single_404_does_not_say_that_it_is_not_assigned():
    """What a second look shows is removed."""
    driven = run(UNASSIGN, ONE, ABSENT, THERE, reply(204))
    assert [request.is_fresh for request in driven.requests[:2]] == [False, True]
    assert (driven.requests[2].method, driven.outcome.kind) == ("DELETE", OutcomeKind.SUCCEEDED)


def test_unassign_when_somebody_was_faster():
    """A 404 to the removal itself is what was wanted, if the team can be seen."""
    assert run(UNASSIGN, ONE, THERE, ABSENT, ABSENT, ABSENT, LISTED).outcome.kind is OutcomeKind.UNCHANGED
    still = run(UNASSIGN, ONE, THERE, ABSENT, THERE)
    assert (still.error.code, still.requests[2].is_fresh) == (ErrorCode.NOT_FOUND, True)


def test_unassign_settled():
    """Gone beside a list that can be seen: applied. Still there: not applied. Nothing to be seen: undecided."""
    assert settle(UNASSIGN, ONE, UNSEEN, ABSENT, ABSENT, LISTED, method="DELETE").outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(UNASSIGN, ONE, UNSEEN, THERE, method="DELETE").is_undone
    assert settle(UNASSIGN, ONE, UNSEEN, ABSENT, ABSENT, ABSENT, method="DELETE").is_undecided


# -- several organizations


def test_add_sends_what_is_lacking():
    """Names that the team has, in any case, are not sent again, and none is sent twice."""
    driven = run(ADD, some("acme-eng", "b", "c", "B"), listed("ACME-eng", "x"), listed("b", "c", "acme-eng"))
    assert driven.shown() == [f"GET {ALL_URL}?per_page=100", f"POST {ALL_URL}/add"]
    assert driven.requests[1].effect is Effect.SET
    assert [slug.lower() for slug in driven.requests[1].body["organization_slugs"]] == ["b", "c"]
    result = driven.outcome.result
    assert (driven.outcome.kind, result["present"]) == (OutcomeKind.SUCCEEDED, ["acme-eng"])
    assert [slug.lower() for slug in result["added"]] == ["b", "c"]


def test_add_of_what_is_there():
    """Nothing is written where the team has all of them."""
    driven = run(ADD, some("a", "b"), listed("b", "A"))
    assert (len(driven.requests), driven.outcome.kind) == (1, OutcomeKind.UNCHANGED)


@pytest.mark.parametrize(("operation", "fields"), [(ADD, some("a", "b")), (ASSIGN, {**TEAM, "org": "a"})])
def test_a_list_that_shows_nothing_is_read_twice_before_an_addition(operation, fields):
    """An empty list may be a wrong answer, and a list of several pages may move while it is read: what the second
    reading holds was there before, so that no undo takes it away. A list that holds all is read once."""
    item = item_of(operation, **fields)
    full = listed(*(f"org-{number}" for number in range(100)))
    for first in ([LISTED], [full, LISTED]):
        second = [listed("a", "b")] if first == [LISTED] else [full, listed("a", "b")]
        driven = drive(operation.steps_combined([item] * 2), *first, *second)
        assert [request.method for request in driven.requests] == ["GET"] * (len(first) + len(second))
        assert driven.requests[-1].is_fresh
        assert {outcome.kind for outcome in driven.ended} == {OutcomeKind.UNCHANGED}
    assert len(drive(operation.steps_combined([item] * 2), listed("a", "b")).requests) == 1


def test_where_no_list_shows_anything_one_organization_is_looked_at():
    """Something on the way may answer every list with nothing: a look contradicts it, and says what was before."""
    item, there = item_of(ADD, **some("a", "b")), reply(body={**ENG, "login": "a"})
    driven = drive(ADD.steps_combined([item]), LISTED, LISTED, there, ABSENT, listed("a", "b"))
    assert driven.shown()[2:] == [f"GET {ALL_URL}/a", f"GET {ALL_URL}/b", f"POST {ALL_URL}/add"]
    assert driven.requests[2].is_fresh
    assert driven.ended[0].result == {"added": ["b"], "present": ["a"]}
    also = reply(body={**ENG, "login": "b"})
    assert drive(ADD.steps_combined([item]), LISTED, LISTED, there, also).ended[0].kind is OutcomeKind.UNCHANGED
    empty = drive(ADD.steps_combined([item]), LISTED, LISTED, ABSENT, listed("a", "b"))
    assert len(empty.requests) == 4
    assert empty.ended[0].result == {"added": ["a", "b"], "present": []}


def test_add_in_chunks():
    """At most 100 names go into one call."""
    slugs = [f"org-{number}" for number in range(250)]
    answers = (listed(*slugs[place : place + 100]) for place in (0, 100, 200))
    driven = run(ADD, some(*slugs), listed("x"), *answers)
    assert [len(request.body["organization_slugs"]) for request in driven.requests[1:]] == [100, 100, 50]
    assert driven.outcome.result == {"added": slugs, "present": []}


def test_add_believes_the_answer_not_the_status():
    """A name that a 200 does not hold, nor the team's list, nor a look at it, is a failure that names it."""
    driven = run(ADD, some("a", "typo"), listed("x"), listed("a"), listed("a"), ABSENT)
    assert (driven.error.code, "typo" in driven.error.message) == (ErrorCode.NOT_FOUND, True)
    assert driven.outcome.result == {"added": ["a"], "present": [], "missing": ["typo"]}
    assert driven.requests[2].is_fresh


def test_add_with_an_answer_that_says_too_little():
    """Where the answer lacks names, the team's list decides."""
    driven = run(ADD, some("a", "b"), listed("x"), listed(), listed("a", "b"))
    assert driven.outcome.result == {"added": ["a", "b"], "present": []}
    looked = run(ADD, some("a"), listed("x"), listed(), listed(), reply(body={**ENG, "login": "a"}))
    assert looked.outcome.kind is OutcomeKind.SUCCEEDED  # a gateway answers any request with an empty list


def test_add_settled():
    """All in the list: applied. One not: not applied. No list: undecided."""
    assert settle(ADD, some("a", "b"), {}, listed("B", "a"), method="POST").outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(ADD, some("a", "b"), {}, listed("a"), method="POST").is_undone
    assert settle(ADD, some("a", "b"), {}, reply(body={}), method="POST").is_disbelieved


def test_remove():
    """Only what the team has is sent; what it lacks is said; nothing is written where it has none of them."""
    driven = run(REMOVE, some("a", "b"), listed("A", "x"), ABSENT, reply(204))
    assert driven.shown()[1:] == [f"GET {ALL_URL}/b", f"POST {ALL_URL}/remove"]
    assert driven.requests[2].body == {"organization_slugs": ["a"]}
    assert driven.requests[2].effect is Effect.SET
    assert driven.outcome.result == {"removed": ["a"], "absent": ["b"]}
    assert run(REMOVE, some("a", "b"), listed("x"), ABSENT, ABSENT).outcome.kind is OutcomeKind.UNCHANGED


def test_what_a_list_lacks_is_looked_at():
    """That an organization is not assigned is believed of the list and of a look at it: a list may lag."""
    there = reply(body={"login": "a"})
    wrong = run(REMOVE, some("a"), listed(), there, reply(204))
    assert (wrong.requests[1].is_fresh, wrong.outcome.result) == (True, {"removed": ["a"], "absent": []})
    both = [item_of(UNASSIGN, **{**TEAM, "org": org}) for org in ("a", "b")]
    driven = drive(UNASSIGN.steps_combined(both), listed("x"), there, ABSENT, reply(204))
    assert driven.shown() == [
        f"GET {ALL_URL}?per_page=100",
        f"GET {ALL_URL}/a",
        f"GET {ALL_URL}/b",
        f"POST {ALL_URL}/remove",
    ]
    assert driven.requests[3].body == {"organization_slugs": ["a"]}
    assert [outcome.kind for outcome in driven.ended] == [OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED]


def test_what_was_done_of_several():
    """Where a part is there that was not before, the read-back says which; and what takes it back is that part."""
    part = settle(ADD, some("a", "b", "c"), ["a"], listed("a", "B"), method="POST").ended
    assert part.part == {"added": ["b"], "present": ["a"], "missing": ["c"]}
    assert settle(ADD, some("a", "b"), ["a"], listed("a"), method="POST").ended.part is None
    undone = ADD.undo(item_of(ADD, **some("a", "b", "c")), ["a"], part.part)
    assert isinstance(undone, Undo)
    assert undone.item["organization_slugs"] == ["b"]
    part = settle(REMOVE, some("a", "b", "c"), ["A", "b"], listed("b"), ABSENT, ABSENT, method="POST").ended
    assert part.part == {"removed": ["a"], "absent": ["c"], "left": ["b"]}
    undone = REMOVE.undo(item_of(REMOVE, **some("a", "b", "c")), ["A", "b"], part.part)
    assert isinstance(undone, Undo)
    assert undone.item["organization_slugs"] == ["a"]


def test_remove_settled():
    """None in the list, nor found by itself: applied. One still there: not applied. No list: undecided."""
    gone = settle(REMOVE, some("a", "b"), {}, listed("x"), ABSENT, ABSENT, method="POST")
    assert gone.outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(REMOVE, some("a", "b"), {}, listed("B"), ABSENT, method="POST").is_undone
    still = settle(REMOVE, some("a"), {}, listed(), reply(body={**ENG, "login": "a"}), method="POST")
    assert still.is_undone  # a gateway answers any request with an empty list
    assert settle(REMOVE, some("a", "b"), {}, reply(body={}), method="POST").is_disbelieved


@pytest.mark.parametrize("operation", [ADD, REMOVE])
def test_a_list_that_can_not_be_read(operation):
    """Without the team's list nothing is written."""
    driven = run(operation, some("a"), reply(body={}))
    assert (len(driven.requests), driven.is_disbelieved) == (1, True)


# -- all of them


@pytest.mark.parametrize("operation", [LIST, GET, ASSIGN, UNASSIGN, ADD, REMOVE])
def test_checks(operation):
    """A team is `ent:` and a slug, or an id; an organization is a name; each flaw names its field."""
    fields = dict(operation.example)
    assert not flaws(operation, fields)
    assert not flaws(operation, {**fields, "enterprise-team": "501"})
    for team in ("platform", "ent:", "ent:a/b", "5a", "ent:a b"):
        assert set(flaws(operation, {**fields, "enterprise-team": team})) == {"enterprise-team"}
    assert set(flaws(operation, {**fields, "enterprise": "a/b"})) == {"enterprise"}
    if "org" in fields:
        assert set(flaws(operation, {**fields, "org": "a/b"})) == {"org"}
    if "organization_slugs" in fields:
        bad = {**fields, "organization_slugs": ["a", "b/c"]}
        assert set(flaws(operation, bad)) == {"organization_slugs[1]"}


@pytest.mark.parametrize("operation", [ASSIGN, UNASSIGN, ADD, REMOVE])
def test_lanes(operation):
    """One change at a time for each team, whichever way it is made."""
    assert operation.lanes(item_of(operation, **{**operation.example, **TEAM})) == ("acme/ent:platform",)
