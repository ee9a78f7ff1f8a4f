"""`organization-configuration.attach`: what is sent, how it is followed, licenses, and a lost answer."""

import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk_jobs.configurations.configuration_attachments import AttachConfiguration
from bulk_jobs.shared import polling
from tests.jobs.driver import flaws, item_of, reply, run, settle

ATTACH = AttachConfiguration()
EVERY = {"org": "acme-eng", "configuration_id": 2002, "scope": "all"}
TWO = {**EVERY, "scope": "selected", "selected_repository_ids": [1001, 1002]}
PATH = "/orgs/acme-eng/code-security/configurations/2002"
FREE = reply(body={"id": 2002, "name": "Eng strict", "advanced_security": "disabled", "code_security": "not_set"})
PAID = reply(body={"id": 2002, "name": "Eng strict", "advanced_security": "enabled"})
ACCEPTED = reply(202, {})


def listed(**statuses):
    """A list of the configuration's repositories: `listed(r1001="attached")`."""
    return reply(body=[{"status": how, "repository": {"id": int(name[1:])}} for name, how in statuses.items()])


NONE, BOTH = listed(), listed(r1001="attached", r1002="enforced")


def test_being_accepted_is_enough():
    """One request; that the work goes on is said."""
    driven = run(ATTACH, EVERY, ACCEPTED)
    (post,) = driven.requests
    assert (post.method, post.path, post.effect) == ("POST", f"{PATH}/attach", Effect.ORDERED)
    assert post.body == {"scope": "all"}
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "background" in driven.outcome.result["note"]


def test_selected_repositories():
    """The list first; what is lacking is attached, with all the ids that were given."""
    driven = run(ATTACH, TWO, listed(r1001="attached"), ACCEPTED)
    assert driven.shown() == [f"GET {PATH}/repositories?per_page=100", f"POST {PATH}/attach"]
    assert driven.requests[1].body == {"scope": "selected", "selected_repository_ids": [1001, 1002]}


def test_what_was_there_before():
    """Which of the selected repositories have it; of other scopes nobody knows which repositories they mean."""
    assert run(ATTACH, TWO, listed(r1001="attached", r7="attached"), ACCEPTED).requests[1].before == [1001]
    assert run(ATTACH, TWO, listed(r1002="failed"), ACCEPTED).requests[1].before == []
    assert run(ATTACH, EVERY, ACCEPTED).requests[0].before is UNSEEN


@pytest.mark.parametrize("wait", [False, True])
def test_selected_repositories_that_have_it(wait):
    """Nothing is sent where all of them have it already."""
    driven = run(ATTACH, {**TWO, "wait": wait}, BOTH)
    assert driven.outcome.kind is OutcomeKind.UNCHANGED


@pytest.mark.parametrize("status", ["failed", "attaching", "removed", "detached"])
def test_a_repository_that_only_is_in_the_list(status):
    """One whose status says that it does not have the configuration is attached again."""
    driven = run(ATTACH, TWO, listed(r1001="attached", r1002=status), ACCEPTED)
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED


def test_entries_that_are_repositories():
    """What an entry looks like is not specified: a bare repository in the list has the configuration."""
    assert run(ATTACH, TWO, reply(body=[{"id": 1001}, {"id": 1002}])).outcome.kind is OutcomeKind.UNCHANGED


def test_a_configuration_that_is_not_there():
    """Not found, before anything is sent."""
    driven = run(ATTACH, TWO, reply(404))
    assert driven.error.code is ErrorCode.NOT_FOUND
    assert run(ATTACH, TWO, reply(body={})).is_disbelieved


def test_followed_until_all_are_there():
    """With `wait`: fresh looks with growing pauses until every selected repository has it."""
    looks = [NONE, listed(r1001="attaching", r1002="attached"), BOTH]
    driven = run(ATTACH, {**TWO, "wait": True}, NONE, FREE, ACCEPTED, *looks)
    followed = driven.requests[3:]
    pauses_s = [request.pause_s for request in followed]
    assert pauses_s == sorted(pauses_s)
    assert pauses_s[0] > 0
    assert all(request.is_fresh for request in followed)
    assert driven.outcome.result == {
        "configuration_id": 2002,
        "scope": "selected",
        "repositories": {"attached": 1, "enforced": 1},
    }


def test_other_scopes_are_followed_until_the_list_stands_still():
    """A list that has changed and then stays is the end; that the scope can't be verified is said."""
    looks = [NONE, listed(r1="attached"), BOTH, BOTH]
    driven = run(ATTACH, {**EVERY, "wait": True}, NONE, FREE, ACCEPTED, *looks)
    assert driven.outcome.result["repositories"] == {"attached": 1, "enforced": 1}
    assert "stood still" in driven.outcome.result["note"]


def test_a_list_that_never_changes():
    """Where nothing had to be attached, four looks that show it are enough, and it is unchanged; not without any."""
    driven = run(ATTACH, {**EVERY, "wait": True}, BOTH, FREE, ACCEPTED, BOTH, BOTH, BOTH, BOTH)
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    assert driven.outcome.result["repositories"] == {"attached": 1, "enforced": 1}
    assert "those of before" in driven.outcome.result["note"]
    for other in (NONE, listed(r1001="attached", r1002="failed")):
        driven = run(ATTACH, {**EVERY, "wait": True}, other, FREE, ACCEPTED, other, other, other, other)
        assert driven.outcome.kind is OutcomeKind.SUCCEEDED


def test_a_failure_of_before_is_not_taken_for_one_of_now():
    """A repository that was listed as failed gets time to be tried again; then the failure is reported."""
    was = listed(r1001="attached", r1002="failed")
    mended = run(ATTACH, {**TWO, "wait": True}, was, FREE, ACCEPTED, was, BOTH)
    assert "note" not in mended.outcome.result
    still = run(ATTACH, {**TWO, "wait": True}, was, FREE, ACCEPTED, was, was, was, was)
    assert still.outcome.result["repositories"] == {"attached": 1, "failed": 1}


def test_too_few_licenses():
    """Where features are licensed, the license is read before and after; what failed is a note, not a failure."""
    seats = {"seats": 5, "seats_used": 5, "seats_available": 0, "kind": "standard"}
    failing = listed(r1001="failed", r1002="failed")
    driven = run(ATTACH, {**TWO, "wait": True}, NONE, PAID, reply(body=seats), ACCEPTED, failing, reply(body=seats))
    assert driven.shown()[2] == driven.shown()[5] == "GET /enterprise/settings/license"
    assert driven.requests[5].is_fresh
    result = driven.outcome.result
    shown = {"seats": 5, "seats_used": 5, "seats_available": 0}
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert result["license"] == {"before": shown, "after": shown}
    assert "2 of the repositories" in result["note"]
    assert "licenses" in result["note"]


def test_committers_instead_of_the_license():
    """With the enterprise's slug, its committers are what is read."""
    counts = {
        "total_advanced_security_committers": 3,
        "purchased_advanced_security_committers": 10,
        "total_count": 2,
        "repositories": [],
    }
    fields = {**TWO, "wait": True, "enterprise": "acme"}
    driven = run(ATTACH, fields, NONE, PAID, reply(body=counts), ACCEPTED, BOTH, reply(body=counts))
    assert driven.shown()[2] == "GET /enterprises/acme/settings/billing/advanced-security?per_page=1"
    assert driven.outcome.result["license"]["after"] == {
        "total_advanced_security_committers": 3,
        "purchased_advanced_security_committers": 10,
    }


@pytest.mark.parametrize("status", [403, 404])
def test_a_license_that_can_t_be_seen(status):
    """Who may not read the license attaches all the same, and it is not read a second time."""
    driven = run(ATTACH, {**TWO, "wait": True}, NONE, PAID, reply(status, {}), ACCEPTED, BOTH)
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "license" not in driven.outcome.result


def test_never_done_is_unknown():
    """After ten minutes of looking the outcome is unknown
    (failures.md row 14); so it is where the list can't be read."""
    steps = ATTACH.steps(item_of(ATTACH, **{**TWO, "wait": True}))
    script = iter([NONE, FREE, ACCEPTED])
    pauses_s, request, outcome = [], next(steps), None
    while outcome is None:
        pauses_s.append(request.pause_s)
        try:
            request = steps.send(next(script, NONE))
        except StopIteration as end:
            outcome = end.value
    assert outcome.error.code is ErrorCode.UNKNOWN_OUTCOME
    assert polling.MOST_S <= sum(pauses_s) < polling.MOST_S + polling.LONGEST_S
    gone = run(ATTACH, {**TWO, "wait": True}, NONE, FREE, ACCEPTED, reply(404))
    assert gone.outcome.kind is OutcomeKind.UNKNOWN


def test_settled():
    """All selected are there: applied. One is missing: not applied. A failure may be older; other scopes: undecided."""
    applied = settle(ATTACH, TWO, UNSEEN, BOTH, method="POST")
    assert applied.outcome.kind is OutcomeKind.SUCCEEDED
    assert "lost" in applied.outcome.result["note"]
    assert settle(ATTACH, TWO, UNSEEN, listed(r1001="attached"), method="POST").is_undone
    assert settle(ATTACH, TWO, UNSEEN, listed(r1001="attached", r1002="failed"), method="POST").is_undecided
    for begun in ({"r1001": "attached"}, {"r1002": "attaching"}, {"r1001": "updating", "r1002": "failed"}):
        assert settle(ATTACH, TWO, [], listed(**begun), method="POST").ended.is_begun  # even one that was refused
    assert settle(ATTACH, TWO, [1001], listed(r1001="attached"), method="POST").is_undone
    assert settle(ATTACH, TWO, UNSEEN, reply(404), method="POST").is_undecided
    assert settle(ATTACH, TWO, UNSEEN, reply(body={}), method="POST").is_disbelieved
    assert settle(ATTACH, EVERY, UNSEEN, method="POST").is_undecided


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"selected_repository_ids": None}, "selected_repository_ids"),
        ({"scope": "public"}, "selected_repository_ids"),
        ({"org": "a/b"}, "org"),
        ({"enterprise": "acme"}, "enterprise"),
        ({"enterprise": "a/b", "wait": True}, "enterprise"),
    ],
)
def test_checks(change, field):
    """Ids and the scope selected go together; the enterprise goes with wait."""
    assert set(flaws(ATTACH, {**TWO, **change})) == {field}
    assert not flaws(ATTACH, TWO)
    assert not flaws(ATTACH, {**TWO, "wait": True, "enterprise": "acme"})


def test_lanes():
    """One attachment at a time in an organization, and in order with other writes to the configuration."""
    assert ATTACH.lanes(item_of(ATTACH, **EVERY)) == ("acme-eng", "acme-eng/2002")
