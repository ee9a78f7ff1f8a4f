"""`webhook.*` but the updates: looks before and after, and secrets that never come back."""

import json

import msgspec
import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, Lost, OutcomeKind
from bulk.operation import find
from bulk_jobs.shared.hook_settings import MASK
from bulk_jobs.webhook_deliveries import ListDeliveries
from bulk_jobs.webhooks import CreateWebhook, DeleteWebhook, GetWebhook, GetWebhookConfig, ListWebhooks
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle

CREATE, DELETE, LIST = CreateWebhook(), DeleteWebhook(), ListWebhooks()
GET, GET_CONFIG, DELIVERIES = GetWebhook(), GetWebhookConfig(), ListDeliveries()
URL = "https://hooks.example.com/bulk"
CONFIG = {"url": URL, "content_type": "json", "secret": "s3cret"}
NEW = {"org": "acme-eng", "config": CONFIG, "events": ["push"]}
HOOK = {"org": "acme-eng", "hook_id": 7}
LISTED = "GET /orgs/acme-eng/hooks?per_page=100"
TAKEN = {"message": "Validation Failed", "errors": [{"message": "Hook already exists on this organization"}]}
NAMES = ("list", "create", "get", "update", "delete", "get-config", "update-config", "deliveries")


def hook(number=7, *, secret=True, events=("push",), active=True, **config):
    """A webhook as the platform shows it."""
    found = {"url": URL, "content_type": "json", "insecure_ssl": "0", **config}
    if secret:
        found["secret"] = MASK
    return {"id": number, "name": "web", "events": list(events), "active": active, "config": found}


def hooks(*found):
    """A list of webhooks."""
    return reply(body=list(found))


@pytest.mark.parametrize("verb", NAMES)
def test_it_is_installed(verb):
    """Each operation of the interface is found by its name."""
    assert find(f"webhook.{verb}").resource == "webhook"


# -- create


def test_create_looks_first():
    """A fresh list, then the creation, which remembers the ids that were there and not a secret."""
    other = hook(3, url="https://other.example.com")
    driven = run(CREATE, {**NEW, "active": False}, hooks(other), reply(201, hook(8, active=False)))
    assert driven.shown() == [LISTED, "POST /orgs/acme-eng/hooks"]
    look, post = driven.requests
    assert look.is_fresh
    assert (post.effect, post.before) == (Effect.CREATE, [3])
    assert post.body == {"name": "web", "config": NEW["config"], "events": ["push"], "active": False}
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result == hook(8, active=False)


def test_create_sends_what_is_given_and_no_more():
    """The platform has its own defaults; all events swallow single ones; our own fields are not sent."""
    item = {"org": "acme-eng", "config": {"url": URL, "insecure_ssl": "1"}, "allow_insecure_ssl": True}
    assert run(CREATE, item, hooks(), reply(201, hook(8))).requests[1].body == {
        "name": "web",
        "config": {"url": URL, "insecure_ssl": "1"},
    }
    every = run(CREATE, {**NEW, "events": ["push", "*"]}, hooks(), reply(201, hook(8)))
    assert every.requests[1].body["events"] == ["*"]


def test_a_secret_that_is_not_shown_is_told():
    """The platform masks a secret; where it shows none, nobody can know whether it has the one that was sent."""
    told = run(CREATE, NEW, hooks(), reply(201, hook(8, secret=False))).outcome
    assert (told.kind, told.result["note"]) == (OutcomeKind.SUCCEEDED, "the platform shows no secret, and one was sent")
    without = {**NEW, "config": {"url": URL, "content_type": "json"}}
    assert "note" not in run(CREATE, without, hooks(), reply(201, hook(8, secret=False))).outcome.result


def test_a_secret_that_is_echoed_is_masked():
    """Whatever the platform answers, no result holds a secret, a user name or a password."""
    told = hook(8, secret=False)
    told["config"] |= {"secret": "s3cret", "username": "u", "password": "pa55word"}
    for driven in (run(CREATE, NEW, hooks(), reply(201, told)), run(GET, {**HOOK, "hook_id": 8}, reply(body=told))):
        assert driven.outcome.result["config"] == hook(8)["config"]
    assert run(LIST, {"org": "acme-eng"}, hooks(told)).outcome.result == [hook(8)]
    assert run(GET_CONFIG, HOOK, reply(body=told["config"])).outcome.result == hook(8)["config"]


@pytest.mark.parametrize(
    ("there", "is_equal"),
    [
        (hook(), True),
        (hook(insecure_ssl=0), True),
        (hook(events=["push", "repository"]), True),
        (hook(events=["*"]), True),
        (hook(events=["repository"]), False),
        (hook(url="HTTPS://Hooks.Example.com:443/bulk"), True),
        (hook(url=URL + "/2"), False),
        (hook(url=URL + "?a=1"), False),
        (hook(content_type="form"), False),
    ],
)
def test_an_equal_one_is_not_made_again(there, is_equal):
    """Same URL, content type and events, or more: `if_exists` decides, nothing is sent. Others are other webhooks."""
    if is_equal:
        assert run(CREATE, NEW, hooks(there)).error.code is ErrorCode.CONFLICT
        kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, hooks(there)).outcome
        assert (kept.kind, "can't be compared" in kept.result["note"]) == (OutcomeKind.UNCHANGED, True)
    else:
        assert run(CREATE, NEW, hooks(there), reply(201, hook(8))).outcome.kind is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize(
    ("there", "field"),
    [
        (hook(active=False), "active"),
        (hook(insecure_ssl="1"), "insecure_ssl"),
        (hook(url=URL + "/"), "a slash at the end of its URL"),
    ],
)
def test_an_equal_one_must_be_as_asked_for(there, field):
    """`unchanged` is not said of one that is inactive or less safe than asked for, or may be for another address."""
    driven = run(CREATE, {**NEW, "if_exists": "unchanged"}, hooks(there))
    assert (driven.error.code, field in driven.error.message) == (ErrorCode.CONFLICT, True)


def test_the_one_that_was_made_is_known_by_a_slash_more():
    """A platform that adds a slash has the webhook that an item has made. One with the very URL goes before."""
    item, made = item_of(CREATE, **NEW), hook(8, url=URL + "/")
    assert drive(CREATE.steps_to_look_back(item), hooks(made)).outcome.kind is OutcomeKind.UNCHANGED
    kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, hooks(made, hook(9))).outcome
    assert kept.result["id"] == 9


def test_defaults_of_the_platform_are_compared_as_such():
    """What is not given is what the platform makes of it: a form, and pushes."""
    item = {"org": "acme-eng", "config": {"url": URL}, "if_exists": "unchanged"}
    assert run(CREATE, item, hooks(hook(content_type="form"))).outcome.kind is OutcomeKind.UNCHANGED


def test_a_platform_that_takes_no_two_alike():
    """Refused as taken: the list is read again, and what shows up there decides."""
    kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, hooks(), reply(422, TAKEN), hooks(hook()))
    assert kept.outcome.kind is OutcomeKind.UNCHANGED
    assert run(CREATE, NEW, hooks(), reply(422, TAKEN), hooks(hook())).error.code is ErrorCode.CONFLICT
    assert run(CREATE, NEW, hooks(), reply(422, TAKEN), hooks()).error.code is ErrorCode.VALIDATION_FAILED
    by_code = {"message": "x", "errors": [{"code": "already_exists"}]}
    assert run(CREATE, NEW, hooks(), reply(422, by_code), hooks()).error.code is ErrorCode.CONFLICT
    wrong = run(CREATE, NEW, hooks(), reply(422, {"message": "url is not reachable"}), hooks())
    assert (wrong.error.code, wrong.error.message) == (ErrorCode.VALIDATION_FAILED, "url is not reachable")


def test_create_settled():
    """A new equal one is it, after two nobody knows, none is not applied; without what was before nobody knows."""
    applied = settle(CREATE, NEW, [7], hooks(hook(7), hook(8)), method="POST")
    assert (applied.outcome.kind, applied.outcome.result["id"]) == (OutcomeKind.SUCCEEDED, 8)
    assert "lost" in applied.outcome.result["note"]
    double = settle(CREATE, NEW, [], hooks(hook(7), hook(8)), method="POST")
    assert (double.is_undecided, [each["id"] for each in double.ended.found]) == (True, [7, 8])
    assert settle(CREATE, NEW, [7], hooks(hook(7)), method="POST").is_undone
    for other in (hook(8, active=False), hook(8, insecure_ssl="1")):
        assert settle(CREATE, NEW, [7], hooks(hook(7), other), method="POST").is_undecided
        assert run(CREATE, NEW, hooks(), reply(201, other)).is_disbelieved
    short = {"id": 8, "config": {"url": URL}}
    assert run(CREATE, {"org": "acme-eng", "config": {"url": URL}}, hooks(), reply(201, short)).outcome.result == short
    strange = settle(CREATE, NEW, [7], hooks(hook(7), hook(8, content_type="form")), method="POST")
    assert (strange.is_undecided, [each["id"] for each in strange.ended.found]) == (True, [8])
    lost = Lost(method="POST", path="/x", before=[7], sent_at=1_000.0, made=frozenset(("/orgs/acme-eng/hooks/8",)))
    other = hook(8, url="https://elsewhere.example.com")
    assert drive(CREATE.settle(item_of(CREATE, **NEW), lost), hooks(hook(7), other)).is_undone
    ours = drive(CREATE.settle(item_of(CREATE, **NEW), lost), hooks(hook(7), hook(8), hook(9))).outcome
    assert ours.result["id"] == 9


@pytest.mark.parametrize("made", ["8", "/orgs/acme-eng/rulesets/8", "/orgs/acme-ops/hooks/8"])
def test_a_number_of_another_kind_explains_nothing(made):
    """Numbers are counted for each kind and organization: what this run has made there is not this webhook."""
    lost = Lost(method="POST", path="/x", before=[7], sent_at=1_000.0, made=frozenset((made,)))
    applied = drive(CREATE.settle(item_of(CREATE, **NEW), lost), hooks(hook(7), hook(8)))
    assert applied.outcome.result["id"] == 8
    strange = hook(8, url="https://elsewhere.example.com")
    assert drive(CREATE.settle(item_of(CREATE, **NEW), lost), hooks(hook(7), strange)).is_undecided
    assert drive(CREATE.settle(item_of(CREATE, **NEW), lost_without_look()), hooks()).is_undecided


@pytest.mark.parametrize(
    "shown",
    [
        hook(8, url="https://Hooks.example.com/bulk"),
        hook(8, url="https://hooks.example.com:443/bulk/"),
        hook(8, insecure_ssl=0),
        hook(8, events=["ping", "push"]),
    ],
)
def test_settled_in_the_platform_s_own_form(shown):
    """A host in other case, a default port, a slash or an event more: it is the same webhook, and it is new."""
    driven = settle(CREATE, NEW, [7], hooks(hook(7), shown), method="POST")
    assert (driven.outcome.kind, driven.outcome.result["id"]) == (OutcomeKind.SUCCEEDED, 8)


def test_what_is_found_holds_no_secret():
    """What nobody can explain is shown with its secret masked, as all results are."""
    told = hook(8, secret=False, url="https://elsewhere.example.com")
    told["config"] |= {"secret": "s3cret", "password": "pa55word"}
    found = settle(CREATE, NEW, [7], hooks(told), method="POST").ended.found
    assert "s3cret" not in str(found)
    assert "pa55word" not in str(found)


def lost_without_look():
    """A lost creation of which nothing is remembered."""
    return Lost(method="POST", path="/x", before=UNSEEN, sent_at=1_000.0)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"url": "ftp://hooks.example.com"}, "config.url"),
        ({"url": "https://"}, "config.url"),
        ({"url": "https://a b"}, "config.url"),
        ({"url": "https://hooks.example.com:x"}, "config.url"),
        ({"url": "https://hooks.example.com\n"}, "config.url"),
        ({"url": "https://user:word@hooks.example.com"}, "config.url"),
        ({"insecure_ssl": "1"}, "config.insecure_ssl"),
        ({"secret": "********"}, "config.secret"),
        ({"password": "***"}, "config.password"),
        ({"username": "a:b"}, "config.username"),
    ],
)
def test_create_checks(config, field):
    """Each flaw names its field, says what would help, and never what a secret is."""
    found = flaws(CREATE, {**NEW, "config": {**CONFIG, **config}})
    assert set(found) == {field}
    assert "s3cret" not in str(found)
    assert not flaws(CREATE, NEW)


def test_create_checks_names_and_events():
    """An organization's and an event's name must be one; insisting on insecure SSL is heard."""
    assert set(flaws(CREATE, {**NEW, "org": "a/b", "events": ["push", "Push now"]})) == {"org", "events[1]"}
    config = {"url": URL, "insecure_ssl": "1"}
    assert "allow_insecure_ssl" in flaws(CREATE, {**NEW, "config": config})["config.insecure_ssl"]
    assert not flaws(CREATE, {**NEW, "config": config, "allow_insecure_ssl": True, "events": ["*"]})


@pytest.mark.parametrize(
    "change",
    [
        {"name": "email"},
        {"config": {"content_type": "json"}},
        {"events": []},
        {"config": {"url": URL, "colour": "red"}},
    ],
)
def test_what_no_type_allows(change):
    """Another kind, no URL, no event, an unknown field."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**NEW, **change}, CREATE.Item)


def test_secrets_are_named():
    """The engine knows which fields hold secrets."""
    assert CREATE.secret_fields == {"config.secret", "config.password"}


# -- delete


def test_delete():
    """A look, which tells what it was, then the removal, which the platform does once at most."""
    driven = run(DELETE, HOOK, reply(body=hook()), reply(204))
    assert driven.shown() == ["GET /orgs/acme-eng/hooks/7", "DELETE /orgs/acme-eng/hooks/7"]
    assert driven.requests[1].effect is Effect.COMPARE_AND_SWAP
    assert driven.requests[1].before == {key: hook()[key] for key in ("config", "events", "active")}
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, {"id": 7})


def test_a_404_alone_is_no_proof():
    """Only a list without it says that it is gone; one with it, that it may not be removed."""
    gone = run(DELETE, HOOK, reply(404), hooks(hook(8)))
    assert gone.shown()[1] == LISTED
    assert gone.outcome.kind is OutcomeKind.UNCHANGED
    assert run(DELETE, HOOK, reply(body=hook()), reply(404), hooks(hook(7))).error.code is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("operation", [DELETE, find("webhook.update"), find("webhook.update-config")])
def test_what_somebody_else_changed_stays(operation):
    """What is expected is compared right before the write: another URL is a conflict, and nothing is written."""
    is_config = operation.name == "webhook.update-config"
    expect = {"url": URL} if is_config else {"config": {"url": URL}, "events": ["push"]}
    change = {} if operation is DELETE else {"drop_secret": True, **({"url": URL} if is_config else {"active": False})}
    for url, is_written in ((URL, True), ("https://theirs.example.com", False)):
        found = hook(secret=False, url=url, content_type="form")
        steps = operation.steps(item_of(operation, **HOOK, **change, expect=expect))
        next(steps)
        shown = found["config"] if is_config else found
        if is_config and is_written:
            continue  # it is already as asked for
        if is_written:
            assert steps.send(reply(body=shown)).method in ("DELETE", "PATCH")
            steps.close()
            continue
        with pytest.raises(StopIteration) as ended:
            steps.send(reply(body=shown))
        assert (ended.value.value.error.code, "config.url" in ended.value.value.error.message) == ("conflict", True)


def test_delete_settled():
    """Not in the list any more: applied. Still there: not applied. A list that can't be used: undecided."""
    applied = settle(DELETE, HOOK, UNSEEN, hooks(), reply(404), reply(404), method="DELETE")
    shown = settle(DELETE, HOOK, UNSEEN, hooks(), reply(404), reply(body=hook(7)), method="DELETE")
    assert shown.is_undone  # a gateway answers any request with an empty list
    assert applied.outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(DELETE, HOOK, UNSEEN, hooks(hook(7)), method="DELETE").is_undone
    assert settle(DELETE, HOOK, UNSEEN, reply(body={"odd": 1}), method="DELETE").is_disbelieved


# -- reads


def test_list_follows_every_page():
    """All pages are one result."""
    link = {"link": '<https://x/orgs/acme-eng/hooks?per_page=100&page=2>; rel="next"'}
    driven = run(LIST, {"org": "acme-eng"}, reply(body=[hook(1)], headers=link), hooks(hook(2)))
    assert driven.shown() == [LISTED, f"{LISTED}&page=2"]
    assert [each["id"] for each in driven.outcome.result] == [1, 2]


def test_reads():
    """One request each; an answer that did not change is unchanged, one that is not an object can't be used."""
    assert run(GET, HOOK, reply(body=hook())).shown() == ["GET /orgs/acme-eng/hooks/7"]
    config = run(GET_CONFIG, HOOK, reply(body=hook()["config"], is_unchanged=True))
    assert config.shown() == ["GET /orgs/acme-eng/hooks/7/config"]
    assert config.outcome.kind is OutcomeKind.UNCHANGED
    assert run(GET, HOOK, reply(body=[])).is_disbelieved


def test_deliveries_go_on_by_cursor():
    """The filter stays, and the cursor of `Link` leads on."""
    link = {"link": '<https://x/orgs/acme-eng/hooks/7/deliveries?status=failure&cursor=v1_5>; rel="next"'}
    first, second = reply(body=[{"id": 6}], headers=link), reply(body=[{"id": 5}])
    driven = run(DELIVERIES, {**HOOK, "status": "failure"}, first, second)
    place = "GET /orgs/acme-eng/hooks/7/deliveries?"
    assert driven.shown()[0] == f"{place}status=failure&per_page=100"
    assert sorted(driven.shown()[1].removeprefix(place).split("&")) == ["cursor=v1_5", "per_page=100", "status=failure"]
    assert driven.outcome.result == [{"id": 6}, {"id": 5}]


@pytest.mark.parametrize("operation", [LIST, GET, GET_CONFIG, DELIVERIES, DELETE])
def test_reads_check_the_name(operation):
    """The organization's name must be one."""
    fields = {"org": "a/b"} if operation is LIST else {**HOOK, "org": "a/b"}
    assert set(flaws(operation, fields)) == {"org"}


def test_lanes():
    """Creations go one at a time in an organization, removals of one webhook likewise."""
    assert CREATE.lanes(item_of(CREATE, **NEW)) == ("acme-eng",)
    assert DELETE.lanes(item_of(DELETE, **HOOK)) == ("acme-eng/7",)
    assert json.dumps(CREATE.example)
