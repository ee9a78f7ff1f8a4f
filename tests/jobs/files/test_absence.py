"""`missing: ok`: what is proven not to be there is no failure, and what can't be seen stays one."""

import pytest

from bulk.capabilities import ProvesAbsence, allowing_absence
from bulk.model import OutcomeKind
from bulk.operation import find
from tests.jobs import answers
from tests.jobs.driver import reply, run

ITEM = {"owner": "acme", "repo": "api"}
ROOT = "GET /repos/acme/api/contents"


def entry(name, kind="file"):
    return {"type": kind, "name": name, "path": name, "sha": "0" * 40, "size": 1}


def allowing(name):
    operation = find(name)
    assert isinstance(operation, ProvesAbsence)
    return allowing_absence(operation)


def test_a_folder_that_lists_other_things_proves_absence():
    """Each folder of the path is listed from the root on, and the first that lacks it decides, without a 404."""
    get, item = allowing("contents.get"), {**ITEM, "path": ".github/CODEOWNERS"}
    driven = run(get, item, reply(body=[entry("README.md")]))
    assert (driven.shown(), driven.outcome.is_missing, driven.outcome.kind) == ([ROOT], True, OutcomeKind.SUCCEEDED)
    driven = run(get, item, reply(body=[entry(".github", "dir")]), reply(body=[entry("x")], is_unchanged=True))
    assert driven.shown() == [ROOT, f"{ROOT}/.github"]
    assert (driven.outcome.is_missing, driven.outcome.result) == (True, None)
    unchanged = run(get, item, reply(body=[entry("README.md")], is_unchanged=True))
    assert unchanged.outcome.kind is OutcomeKind.UNCHANGED


def test_what_is_there_is_read():
    """A listing that shows it is followed by the read itself; without `missing: ok` the read is all."""
    file = {**entry("CODEOWNERS"), "encoding": "base64", "content": "eA=="}
    driven = run(allowing("contents.get"), {**ITEM, "path": "CODEOWNERS"}, reply(body=[file]), reply(body=file))
    assert (driven.shown(), driven.outcome.result) == ([ROOT, f"{ROOT}/CODEOWNERS"], file)
    assert not driven.outcome.is_missing


def test_a_404_of_what_is_listed_is_no_proof():
    """One of the two answers is wrong: both are asked for again, past what is kept. It counted as missing."""
    get, item, file = allowing("contents.get"), {**ITEM, "path": "CODEOWNERS"}, entry("CODEOWNERS")
    whole, listed = {**file, "encoding": "base64", "content": "eA=="}, reply(body=[file])
    lied = run(get, item, listed, reply(404), listed, reply(body=whole))
    assert (lied.outcome.is_missing, lied.outcome.result) == (False, whole)
    assert [request.is_fresh for request in lied.requests] == [False, False, True, False]
    deleted = run(get, item, listed, reply(404), reply(body=[entry("README.md")]))
    assert deleted.outcome.is_missing
    both = run(get, item, listed, reply(404), listed, reply(404))
    assert (both.outcome.kind, both.error.code) == (OutcomeKind.FAILED, "not_found")


def test_a_listing_that_may_be_cut_is_no_proof():
    """Of 1,000 entries more may exist: the path is asked for as well, and its 404 is absence beside the listing."""
    get, entries = allowing("contents.get"), [entry(str(number)) for number in range(1_000)]
    driven = run(get, {**ITEM, "path": "CODEOWNERS"}, reply(body=entries), reply(404))
    assert (len(driven.requests), driven.outcome.is_missing) == (2, True)


def test_a_folder_that_lists_nothing_is_no_proof():
    """A gateway answers any request with `[]`: the file was there, and counted as missing."""
    get, file = allowing("contents.get"), {**entry("CODEOWNERS"), "encoding": "base64", "content": "eA=="}
    driven = run(get, {**ITEM, "path": "CODEOWNERS"}, reply(body=[]), reply(body=file))
    assert (driven.outcome.is_missing, driven.outcome.result) == (False, file)
    driven = run(get, {**ITEM, "path": ".github/CODEOWNERS"}, reply(body=[]), reply(404))
    assert (driven.shown(), driven.outcome.is_missing) == ([ROOT, f"{ROOT}/.github/CODEOWNERS"], True)


@pytest.mark.parametrize(
    ("name", "more", "before"),
    [
        ("contents.get", {"path": ".github/CODEOWNERS"}, ()),
        ("contents.get", {}, ()),
        ("readme.get", {}, (reply(404),)),
    ],
)
def test_an_empty_repository_has_nothing(name, more, before):
    """A 404 that says so proves that the repository can be seen."""
    empty = reply(404, {"message": "This repository is empty."})
    driven = run(allowing(name), {**ITEM, **more}, *before, empty)
    assert (driven.outcome.kind, driven.outcome.is_missing) == (OutcomeKind.SUCCEEDED, True)


@pytest.mark.parametrize(("name", "more"), [("contents.get", {"path": "CODEOWNERS"}), ("readme.get", {})])
def test_what_cannot_be_seen_is_not_missing(name, more):
    """Where the root can't be listed either, nobody knows whether it is there: `not_found`, a failure."""
    driven = run(allowing(name), {**ITEM, **more}, reply(404), reply(404))
    assert (driven.outcome.kind, driven.error.code) == (OutcomeKind.FAILED, "not_found")


def test_a_repository_without_readme_and_a_webhook_that_is_gone_are_missing():
    """A README is missing where the root can be listed, a webhook where the list of all lacks it."""
    driven = run(allowing("readme.get"), ITEM, reply(404), reply(body=[entry("a")]))
    assert driven.outcome.is_missing
    hook = {"id": 7, "config": {"url": "https://x.example.com"}}
    item = {"org": "acme", "hook_id": 8}
    for name in ("webhook.get", "webhook.get-config"):
        assert run(allowing(name), item, reply(body=[hook])).outcome.is_missing
    found = run(allowing("webhook.get-config"), {**item, "hook_id": 7}, reply(body=[hook]))
    assert found.outcome.result == hook["config"]


def test_a_404_of_a_readme_that_the_root_lists_is_no_proof():
    """One of the two answers is wrong: both are asked for again, past what is kept. It counted as missing."""
    get, listed = allowing("readme.get"), reply(body=[entry("ReadMe.md")])
    whole = {**entry("ReadMe.md"), "encoding": "base64", "content": "eA=="}
    lied = run(get, ITEM, reply(404), listed, reply(body=whole))
    assert (lied.outcome.is_missing, lied.outcome.result) == (False, whole)
    deleted = run(get, ITEM, reply(404), listed, reply(404), reply(body=[entry("a")]))
    assert deleted.outcome.is_missing
    assert deleted.requests[3].is_fresh
    both = run(get, ITEM, reply(404), listed, reply(404), listed)
    assert (both.outcome.kind, both.error.code) == (OutcomeKind.FAILED, "not_found")
    other = reply(body=[entry("readme_maker.py"), entry("readme.md", "dir")])
    assert run(get, ITEM, reply(404), other, reply(404), other).outcome.is_missing  # nobody says that it is one


def test_a_webhook_among_many_takes_two_requests():
    """All pages of the list were read, and twice more where it was none of them: for each item of an organization with
    a thousand webhooks thirty requests. A page that may not be all is followed by a look at the webhook alone."""
    get, item = allowing("webhook.get"), {"org": "acme-eng", "hook_id": answers.HOOK["id"]}
    others = [{**answers.HOOK, "id": 1_000 + number} for number in range(100)]
    following = {"link": '<https://x/api/v3/orgs/acme-eng/hooks?per_page=100&page=2>; rel="next"'}
    for first in (reply(body=others), reply(body=others[:2], headers=following), reply(body=others[:10])):
        gone = run(get, item, first, reply(404))
        assert (len(gone.requests), gone.outcome.is_missing) == (2, True)
        found = run(get, item, first, reply(body=answers.HOOK, is_unchanged=True))
        assert (len(found.requests), found.outcome.kind) == (2, OutcomeKind.UNCHANGED)
        assert found.outcome.result["id"] == item["hook_id"]
    listed = run(get, item, reply(body=[answers.HOOK, *others[1:]], is_unchanged=True, headers=following))
    assert (len(listed.requests), listed.outcome.kind) == (1, OutcomeKind.UNCHANGED)


def test_an_empty_list_of_webhooks_is_no_proof():
    """A gateway answers any request with `[]`: the webhook was there, and counted as missing."""
    get, item = allowing("webhook.get"), {"org": "acme-eng", "hook_id": 7}
    assert run(get, item, reply(body=[]), reply(body=answers.HOOK)).outcome.result["id"] == 7
    driven = run(get, item, reply(body=[]), reply(404))
    assert (len(driven.requests), driven.outcome.is_missing) == (2, True)
