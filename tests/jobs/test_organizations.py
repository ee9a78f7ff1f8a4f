"""`organization.create` and `organization.rename`: looks before, after, and when an answer was lost."""

import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk_jobs.organizations import RENAME_MOST_S, CreateOrganization, RenameOrganization
from tests.jobs.driver import flaws, item_of, reply, run, settle

CREATE, RENAME = CreateOrganization(), RenameOrganization()
NEW = {"login": "Acme-Web", "admin": "octoadmin"}
MOVED = {"org": "acme-labs", "login": "acme-research"}
CREATED = {"id": 9, "login": "Acme-Web", "node_id": "x", "url": "https://x/orgs/Acme-Web", "hooks_url": "https://x"}
QUEUED = {"message": "Job queued", "url": "https://x/organizations/103"}
THERE, ABSENT = reply(body=[]), reply(404)
TAKEN = {
    "message": "Validation Failed",
    "errors": [{"resource": "Organization", "field": "login", "code": "already_exists"}],
}


# -- create


def test_create_looks_first():
    """A fresh look whether it exists, then the creation, which remembers that it did not."""
    driven = run(CREATE, {**NEW, "profile_name": "Acme Web"}, ABSENT, reply(201, CREATED))
    assert driven.shown() == ["GET /orgs/Acme-Web/rulesets?per_page=1", "POST /admin/organizations"]
    look, post = driven.requests
    assert look.is_fresh
    assert post.effect is Effect.CREATE_UNIQUE
    assert post.body == {"login": "Acme-Web", "admin": "octoadmin", "profile_name": "Acme Web"}
    assert post.before is None
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result == {"login": "Acme-Web", "id": 9, "node_id": "x", "url": "https://x/orgs/Acme-Web"}


def test_a_profile_name_that_is_not_given_is_not_sent():
    """The platform has its own default."""
    assert run(CREATE, NEW, ABSENT, reply(201, CREATED)).requests[1].body == NEW


def test_one_that_exists_fails_or_is_unchanged_as_asked():
    """`if_exists` decides; nothing is sent."""
    fail = run(CREATE, NEW, THERE, ABSENT)
    assert fail.error.code is ErrorCode.CONFLICT
    kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, THERE, ABSENT)
    assert kept.outcome.kind is OutcomeKind.UNCHANGED
    assert "can't be compared" in kept.outcome.result["note"]


@pytest.mark.parametrize("if_exists", ["fail", "unchanged"])
def test_one_that_a_gateway_shows_like_any_other_does_not_exist(if_exists):
    """An empty list that comes for a name that nobody has as well says nothing, and nothing is sent."""
    driven = run(CREATE, {**NEW, "if_exists": if_exists}, THERE, THERE)
    assert driven.error.code is ErrorCode.BAD_RESPONSE


def test_one_that_was_created_between_the_two_requests():
    """Refused as taken and now visible: the same as if it had been there before."""
    fail = run(CREATE, NEW, ABSENT, reply(422, TAKEN), THERE)
    assert (fail.error.code, fail.outcome.http_status) == (ErrorCode.CONFLICT, 422)
    kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, ABSENT, reply(422, TAKEN), THERE)
    assert kept.outcome.kind is OutcomeKind.UNCHANGED


def test_a_name_that_something_hidden_has_is_a_conflict():
    """Taken by what can't be seen, a user perhaps: never unchanged."""
    driven = run(CREATE, {**NEW, "if_exists": "unchanged"}, ABSENT, reply(422, TAKEN), ABSENT)
    assert driven.error.code is ErrorCode.CONFLICT
    assert "already_exists" in driven.error.message


def test_another_422_is_what_the_platform_says():
    """An unknown admin is a failed validation."""
    driven = run(CREATE, NEW, ABSENT, reply(422, {"message": "admin is not the login of a user"}), ABSENT)
    assert driven.error.code is ErrorCode.VALIDATION_FAILED
    assert driven.error.message == "admin is not the login of a user"


def test_create_settled():
    """There now and not before: applied. Not there: not applied. There, and before is not known: undecided."""
    applied = settle(CREATE, NEW, None, THERE, ABSENT, method="POST")
    assert settle(CREATE, NEW, None, THERE, THERE, method="POST").ended.is_begun  # a gateway shows any organization
    assert applied.outcome.kind is OutcomeKind.SUCCEEDED
    assert "lost" in applied.outcome.result["note"]
    assert settle(CREATE, NEW, None, ABSENT, method="POST").is_undone
    assert settle(CREATE, NEW, UNSEEN, THERE, method="POST").is_undecided


def test_creation_is_irreversible_and_says_so():
    """The plan warns of it; a rename can be taken back."""
    assert CREATE.is_irreversible
    assert not RENAME.is_irreversible


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"login": "-acme"}, "login"),
        ({"login": "acme--web"}, "login"),
        ({"login": "acme_web"}, "login"),
        ({"login": "acme/web"}, "login"),
        ({"admin": "a b"}, "admin"),
        ({"profile_name": "a\nb"}, "profile_name"),
    ],
)
def test_create_checks(change, field):
    """Letters, digits and single hyphens make a login; each flaw names its field."""
    assert set(flaws(CREATE, {**NEW, **change})) == {field}
    assert not flaws(CREATE, NEW)


def test_create_lane():
    """One organization at a time for each login."""
    assert CREATE.lanes(item_of(CREATE, **NEW)) == ("Acme-Web",)


# -- rename


def test_rename_looks_at_both_names_first():
    """The new name must be free and the old one there; the rename remembers both."""
    driven = run(RENAME, MOVED, ABSENT, THERE, reply(202, QUEUED))
    assert driven.shown() == [
        "GET /orgs/acme-research/rulesets?per_page=1",
        "GET /orgs/acme-labs/rulesets?per_page=1",
        "PATCH /admin/organizations/acme-labs",
    ]
    patch = driven.requests[2]
    assert patch.effect is Effect.MOVE
    assert patch.body == {"login": "acme-research"}
    assert patch.before == {"org": "acme-labs"}
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result["message"] == "Job queued"
    assert "background" in driven.outcome.result["note"]


def test_rename_of_what_is_not_there():
    """The old name is missing: not found; that the new one exists is a hint, never a success."""
    missing = run(RENAME, MOVED, ABSENT, ABSENT)
    renamed = run(RENAME, MOVED, THERE, ABSENT)
    assert missing.error.code is renamed.error.code is ErrorCode.NOT_FOUND
    assert "renamed before" in renamed.error.message
    assert "renamed before" not in missing.error.message


def test_rename_of_what_may_be_renamed_already():
    """With `if_renamed: unchanged` it is unchanged where only the new name is there, and nowhere else."""
    may = {**MOVED, "if_renamed": "unchanged"}
    assert run(RENAME, may, THERE, ABSENT).outcome.kind is OutcomeKind.UNCHANGED
    assert run(RENAME, may, ABSENT, ABSENT).error.code is ErrorCode.NOT_FOUND
    assert run(RENAME, may, THERE, THERE).error.code is ErrorCode.CONFLICT


def test_rename_to_a_name_that_is_taken():
    """Both exist: a conflict, and nothing is sent."""
    assert run(RENAME, MOVED, THERE, THERE).error.code is ErrorCode.CONFLICT


def test_rename_is_followed_until_it_is_done():
    """With `wait`: pauses that grow, until the new name is there and the old one is not."""
    looks = [ABSENT, ABSENT, THERE, THERE, THERE, ABSENT]
    driven = run(RENAME, {**MOVED, "wait": True}, ABSENT, THERE, reply(202, QUEUED), *looks)
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "note" not in driven.outcome.result
    followed = driven.requests[3:]
    pauses = [request.pause_s for request in followed if request.path == "/orgs/acme-research/rulesets"]
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < 1
    assert all(request.is_fresh for request in followed)


def test_rename_that_never_ends_is_unknown():
    """After ten minutes of looking with pauses of at most half a minute the outcome is unknown (failures.md row 14)."""
    steps = RENAME.steps(item_of(RENAME, **MOVED, wait=True))
    script = iter([ABSENT, THERE, reply(202, QUEUED)])
    pauses_s, request, outcome = [], next(steps), None
    while outcome is None:
        pauses_s.append(request.pause_s)
        try:
            request = steps.send(next(script, ABSENT))
        except StopIteration as end:
            outcome = end.value
    assert outcome.kind is OutcomeKind.UNKNOWN
    assert outcome.error.code is ErrorCode.UNKNOWN_OUTCOME
    assert max(pauses_s) <= 30
    assert RENAME_MOST_S <= sum(pauses_s) < RENAME_MOST_S + 30


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("old", [True, False])
def test_rename_settled(old, new):
    """Only the new name: applied. Only the old one: not applied. Both or none: undecided."""
    answers = [THERE if new else ABSENT, THERE if old else ABSENT]
    driven = settle(RENAME, MOVED, {"org": "acme-labs"}, *answers, method="PATCH")
    if new and not old:
        assert driven.outcome.kind is OutcomeKind.SUCCEEDED
        assert "lost" in driven.outcome.result["note"]
    elif old and not new:
        assert driven.is_undone
    else:  # and even one that was refused may have begun
        assert driven.is_undecided
        assert driven.ended.is_begun


@pytest.mark.parametrize(
    ("change", "field"),
    [({"org": "a/b"}, "org"), ({"login": "a--b"}, "login"), ({"login": "ACME-LABS"}, "login")],
)
def test_rename_checks(change, field):
    """Names must be names, and the new one another than the old one, whatever the case."""
    assert set(flaws(RENAME, {**MOVED, **change})) == {field}
    assert not flaws(RENAME, MOVED)


def test_rename_lanes():
    """A rename has the lanes of both names, because it writes both."""
    assert RENAME.lanes(item_of(RENAME, **MOVED)) == ("acme-labs", "acme-research")
