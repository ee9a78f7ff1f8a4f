"""`webhook.update` and `webhook.update-config`: a secret is sent again, or given up in so many words."""

import pytest

from bulk.model import UNSEEN, Effect, OutcomeKind
from bulk.undo import Undo
from bulk_jobs.shared.hook_settings import MASK
from bulk_jobs.webhook_updates import UpdateWebhook, UpdateWebhookConfig
from bulk_jobs.webhooks import CreateWebhook, DeleteWebhook
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle

UPDATE, CONFIGURE, CREATE, DELETE = UpdateWebhook(), UpdateWebhookConfig(), CreateWebhook(), DeleteWebhook()
URL = "https://hooks.example.com/bulk"
PLACE = "/orgs/acme-eng/hooks/7"
HOOK = {"org": "acme-eng", "hook_id": 7}
KEEPS = {**HOOK, "config": {"url": URL, "secret": "s3cret"}, "active": False}
DROPS = {**HOOK, "active": False, "drop_secret": True}


def hook(*, secret=True, active=False, **config):
    """A webhook as the platform shows it."""
    found = {"url": URL, "content_type": "json", "insecure_ssl": "0", **config}
    if secret:
        found["secret"] = MASK
    return {"id": 7, "name": "web", "events": ["push"], "active": active, "config": found}


# -- update


def test_with_a_secret_it_is_sent_whatever_is_there():
    """A secret can't be compared: after a look, which is remembered, all that was given is sent, and nothing of our
    own."""
    driven = run(UPDATE, {**KEEPS, "name": "web", "events": ["push", "push"]}, reply(body=hook()), reply(body=hook()))
    assert driven.shown() == [f"GET {PLACE}", f"PATCH {PLACE}"]
    _, patch = driven.requests
    before = {"config": {"url": URL, "secret": MASK}, "events": ["push"], "active": False}
    assert (patch.effect, patch.before) == (Effect.SET, before)
    assert patch.body == {"config": KEEPS["config"], "events": ["push"], "active": False, "name": "web"}
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, hook())


def test_without_a_secret_it_is_compared_first():
    """Already so, and no secret to drop: nothing is sent. Otherwise it is."""
    so = run(UPDATE, DROPS, reply(body=hook(secret=False)))
    assert (so.shown(), so.outcome.kind) == ([f"GET {PLACE}"], OutcomeKind.UNCHANGED)
    assert so.requests[0].is_fresh
    for before in (hook(), hook(secret=False, active=True)):
        driven = run(UPDATE, DROPS, reply(body=before), reply(body=hook(secret=False)))
        assert driven.shown() == [f"GET {PLACE}", f"PATCH {PLACE}"]
        assert driven.requests[1].body == {"active": False}


def test_a_secret_that_stays_is_told():
    """Where the platform keeps a secret that was to be dropped, the result says so."""
    driven = run(UPDATE, DROPS, reply(body=hook()), reply(body=hook()))
    assert "kept the secret" in driven.outcome.result["note"]


def test_an_echoed_secret_is_masked():
    """No result holds the secret, whatever the platform answers."""
    told = hook(secret=False)
    told["config"]["secret"] = "s3cret"
    assert run(UPDATE, KEEPS, reply(body=told), reply(body=told)).outcome.result == hook()


def test_update_settled():
    """As asked for and no secret left: applied. Different: not. A secret that was sent can't be read back."""
    applied = settle(UPDATE, DROPS, UNSEEN, reply(body=hook(secret=False)), method="PATCH")
    assert (applied.outcome.kind, "lost" in applied.outcome.result["note"]) == (OutcomeKind.SUCCEEDED, True)
    assert settle(UPDATE, DROPS, UNSEEN, reply(body=hook(secret=False, active=True)), method="PATCH").is_undone
    assert settle(UPDATE, DROPS, UNSEEN, reply(body=hook()), method="PATCH").is_undone
    assert settle(UPDATE, DROPS, UNSEEN, reply(404), method="PATCH").is_undecided
    assert settle(UPDATE, KEEPS, UNSEEN, reply(body=hook(active=True)), method="PATCH").is_undone
    assert settle(UPDATE, KEEPS, UNSEEN, reply(body=hook()), method="PATCH").is_undecided


def test_update_settled_beside_somebody_elses():
    """As before the request: not applied. Neither as before nor as asked for: undecided, with all three, of which none
    holds a secret."""
    before = {"config": {"url": "https://hooks.example.com/old", "secret": MASK}, "active": True}
    theirs = "https://hooks.example.com/theirs"
    as_before = hook(url="https://Hooks.example.com:443/old/", active=True)
    assert settle(UPDATE, KEEPS, before, reply(body=as_before), method="PATCH").is_undone
    for shown in (hook(url=theirs), hook(active=True), hook(url=theirs, secret=False, active=True)):
        driven = settle(UPDATE, KEEPS, before, reply(body=shown), method="PATCH")
        assert driven.is_undecided
        assert driven.ended.found["before"] == before
        assert driven.ended.found["wanted"] == {"config": {"url": URL, "secret": MASK}, "active": False}
        assert driven.ended.found["found"]["config"]["url"] == shown["config"]["url"]
    unreadable = settle(UPDATE, KEEPS, before, reply(body=hook()), method="PATCH")
    assert (unreadable.is_undecided, unreadable.ended.found) == (True, None)


def test_a_platform_may_add_events():
    """A right answer with more events than were asked for is believed, and told; but one that is there before with more
    of them is not yet as asked for, and where the answer was lost it only is when something has changed."""
    item = {**HOOK, "events": ["push", "fork"], "drop_secret": True}
    plain = hook(secret=False)
    more, narrower = {**plain, "events": ["push", "fork", "star"]}, {"config": {}, "events": ["push"]}
    driven = run(UPDATE, item, reply(body=plain), reply(body=more))
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "more events" in driven.outcome.result["note"]
    settled = settle(UPDATE, item, narrower, reply(body=more), method="PATCH")
    assert "more events" in settled.outcome.result["note"]
    as_before = {"config": {}, "events": ["star", "push", "fork"]}
    assert settle(UPDATE, item, as_before, reply(body=more), method="PATCH").is_undone


def test_pings_that_nobody_asked_for_say_nothing():
    """A webhook that is told of them besides is as asked for: nothing is sent, and a look finds it as it was left."""
    item, pings = {**HOOK, "events": ["push"], "drop_secret": True}, {**hook(secret=False), "events": ["ping", "push"]}
    assert run(UPDATE, item, reply(body=pings)).outcome.kind is OutcomeKind.UNCHANGED
    driven = drive(UPDATE.steps_to_look_back(item_of(UPDATE, **item)), reply(body=pings))
    assert driven.ended.kind is OutcomeKind.UNCHANGED
    asked = run(UPDATE, {**item, "events": ["push", "ping"]}, reply(body=hook(secret=False)), reply(body=pings))
    assert "note" not in asked.outcome.result


def test_events_that_stay_are_not_removed():
    """A platform that shows what was to go, in its answer and a second time, has not removed it, or adds it by itself:
    nobody knows. What is new was added; what the second reading lacks is gone."""
    item, plain = {**HOOK, "events": ["push"], "drop_secret": True}, hook(secret=False)
    for events in (["push", "fork", "issues"], ["*"]):
        before = reply(body={**plain, "events": events})
        driven = run(UPDATE, item, before, before, before)
        assert driven.shown() == [f"GET {PLACE}", f"PATCH {PLACE}", f"GET {PLACE}"]
        assert driven.outcome.kind is OutcomeKind.UNKNOWN
        assert driven.outcome.result["found"]["events"] == events
        late = run(UPDATE, item, before, before, reply(body=plain)).outcome
        assert (late.kind, late.result) == (OutcomeKind.SUCCEEDED, plain)
    pings, fork = reply(body={**plain, "events": ["ping", "push"]}), {**plain, "events": ["ping", "push", "fork"]}
    assert run(UPDATE, item, reply(body=fork), pings).outcome.kind is OutcomeKind.SUCCEEDED
    some = {**plain, "events": ["push", "fork"]}
    assert settle(UPDATE, item, {"config": {}, "events": ["push", "fork", "issues"]}, reply(body=some)).is_undecided


def test_a_slash_is_written():
    """Another address may lie behind it: an update is sent, and only its answer tells whether the platform keeps it."""
    item, url = {**HOOK, "config": {"url": URL + "/"}, "drop_secret": True}, {"url": URL + "/", "drop_secret": True}
    plain, with_slash = hook(secret=False), hook(secret=False, url=URL + "/")
    assert run(UPDATE, item, reply(body=with_slash)).outcome.kind is OutcomeKind.UNCHANGED
    for found, wanted, config in ((plain, with_slash, False), (plain["config"], with_slash["config"], True)):
        operation, given = (CONFIGURE, {**HOOK, **url}) if config else (UPDATE, item)
        driven = run(operation, given, reply(body=found), reply(body=wanted))
        assert (driven.outcome.kind, "note" in driven.outcome.result) == (OutcomeKind.SUCCEEDED, False)
        kept = run(operation, given, reply(body=found), reply(body=found)).outcome
        assert (kept.kind, "slash" in kept.result["note"]) == (OutcomeKind.SUCCEEDED, True)
        assert settle(operation, given, {"config": {"url": URL}}, reply(body=found), method="PATCH").is_undone


@pytest.mark.parametrize(
    ("item", "field", "words"),
    [
        ({**HOOK, "active": False}, "config.secret", "drop_secret"),
        ({**HOOK, "config": {"url": URL}}, "config.secret", "env:NAME"),
        ({**KEEPS, "drop_secret": True}, "drop_secret", "contradicts"),
        ({**HOOK, "drop_secret": True}, "", "nothing to change"),
        ({**HOOK, "drop_secret": True, "name": "web"}, "", "nothing to change"),
        ({**HOOK, "config": {"url": URL, "secret": MASK}}, "config.secret", "mask"),
        ({**HOOK, "config": {"url": URL, "secret": "s", "insecure_ssl": "1"}}, "config.insecure_ssl", "insists"),
        ({**DROPS, "org": "a/b"}, "org", "letters"),
        ({**DROPS, "events": ["a b"]}, "events[0]", "unknown event"),
    ],
)
def test_update_checks(item, field, words):
    """Each says what is wrong, why, and how one insists."""
    found = flaws(UPDATE, item)
    assert set(found) == {field}
    assert words in found[field]


def test_what_passes():
    """With its secret, or without one on purpose."""
    assert not flaws(UPDATE, KEEPS)
    assert not flaws(UPDATE, DROPS)
    insists = {**HOOK, "config": {"url": URL, "secret": "env:HOOK", "insecure_ssl": "1"}, "allow_insecure_ssl": True}
    assert not flaws(UPDATE, insists)


# -- update-config


def test_configuration_with_a_secret():
    """A look, which is remembered, and what was given."""
    item, found = {**HOOK, "content_type": "json", "secret": "s3cret"}, reply(body=hook()["config"])
    driven = run(CONFIGURE, item, found, found)
    assert driven.shown() == [f"GET {PLACE}/config", f"PATCH {PLACE}/config"]
    assert driven.requests[1].before == {"config": {"content_type": "json", "secret": MASK}}
    assert driven.requests[1].body == {"content_type": "json", "secret": "s3cret"}
    assert driven.outcome.result == hook()["config"]


def test_configuration_without_one():
    """It is compared first, and only a difference or a secret to drop is sent."""
    item, plain = {**HOOK, "content_type": "json", "drop_secret": True}, hook(secret=False)["config"]
    assert run(CONFIGURE, item, reply(body=plain)).outcome.kind is OutcomeKind.UNCHANGED
    for before in (hook()["config"], {**plain, "content_type": "form"}):
        driven = run(CONFIGURE, item, reply(body=before), reply(body=plain))
        assert driven.shown() == [f"GET {PLACE}/config", f"PATCH {PLACE}/config"]
        assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    dropping = run(CONFIGURE, {**HOOK, "drop_secret": True}, reply(body=hook()["config"]), reply(body=plain))
    assert dropping.requests[1].body == {}
    kept = run(CONFIGURE, item, reply(body=hook()["config"]), reply(body=hook()["config"]))
    assert "kept the secret" in kept.outcome.result["note"]


def test_configuration_settled():
    """As the update: what can be read decides, what can't be is undecided, and so is repeated."""
    item, plain = {**HOOK, "url": URL, "drop_secret": True}, hook(secret=False)["config"]
    assert settle(CONFIGURE, item, UNSEEN, reply(body=plain), method="PATCH").outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(CONFIGURE, item, UNSEEN, reply(body=hook()["config"]), method="PATCH").is_undone
    assert settle(CONFIGURE, item, UNSEEN, reply(body={**plain, "url": "https://x"}), method="PATCH").is_undone
    assert settle(CONFIGURE, item, UNSEEN, reply(404), method="PATCH").is_undecided
    before = {"config": {"url": "https://hooks.example.com/old", "secret": MASK}}
    assert settle(CONFIGURE, item, before, reply(body={**plain, "url": "https://x"}), method="PATCH").is_undecided
    secret = {**HOOK, "url": URL, "secret": "s3cret"}
    assert settle(CONFIGURE, secret, UNSEEN, reply(body=hook()["config"]), method="PATCH").is_undecided


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"url": URL}, "secret"),
        ({"url": URL, "secret": "*****"}, "secret"),
        ({"secret": "s", "drop_secret": True}, "drop_secret"),
        ({"secret": "s", "insecure_ssl": "1"}, "insecure_ssl"),
        ({"secret": "s", "url": "nowhere"}, "url"),
    ],
)
def test_configuration_checks(item, field):
    """The same protections, with the fields' own names."""
    assert set(flaws(CONFIGURE, {**HOOK, **item})) == {field}
    assert not flaws(CONFIGURE, {**HOOK, "url": URL, "secret": "file:secret", "insecure_ssl": "0"})


def test_secrets_and_lanes():
    """The engine knows which fields hold secrets, and that one webhook is changed by one at a time."""
    assert CONFIGURE.secret_fields == {"secret"}
    assert UPDATE.secret_fields == {"config.secret", "config.password"}
    assert UPDATE.lanes(item_of(UPDATE, **DROPS)) == CONFIGURE.lanes(item_of(CONFIGURE, **HOOK)) == ("acme-eng/7",)


# -- undo


KEPT_URL = "https://ci:***@h.example.com/a?b=1&token=***"
"""What results and before-images have of the URL of a webhook that was made elsewhere."""
REAL_URL = KEPT_URL.replace("***", "hunter2")


@pytest.mark.parametrize(
    ("kept", "sent"),
    [
        (KEPT_URL, "https://h.example.com/a?b=1"),
        ("https://***@h.example.com/?sig=***#x", "https://h.example.com/#x"),
        ("https://me@h.example.com", "https://h.example.com"),
    ],
)
def test_what_a_url_held_is_given_again_by_hand(kept, sent):
    """failures.md row 62: secrets of a URL are not kept, so that an undo sends the URL without them, and says so."""
    config = {"url": kept, "content_type": "json"}
    after = {"url": "https://new.example.com/", "content_type": "form", "insecure_ssl": "0"}
    lost = "the user name, password or token in its URL"
    changed = UPDATE.undo(item_of(UPDATE, **DROPS), {"config": config}, hook(secret=False, **after))
    assert isinstance(changed, Undo)
    assert (changed.item["config"], changed.loses) == ({**config, "url": sent}, lost)
    assert not flaws(UPDATE, changed.item)
    changed = CONFIGURE.undo(item_of(CONFIGURE, **HOOK, drop_secret=True), {"config": config}, after)
    assert isinstance(changed, Undo)
    assert (changed.item["url"], changed.loses) == (sent, lost)
    again = DELETE.undo(item_of(DELETE, **HOOK), {"config": {**config, "secret": MASK}, "events": ["push"]}, {"id": 7})
    assert isinstance(again, Undo)
    assert (again.item["config"]["url"], again.loses) == (sent, f"its number and its secret and {lost}")
    assert not flaws(CREATE, again.item)


def test_a_url_of_which_part_was_kept_is_compared_by_that_part():
    """After a resume the webhook is as before, and an undo finds what the run has left, whatever was withheld."""
    as_before = {"config": {"url": KEPT_URL, "content_type": "json"}}
    asked = {**HOOK, "config": {"url": "https://new.example.com/"}, "drop_secret": True}
    for shown, is_as_before in ((REAL_URL, True), (REAL_URL.replace("/a", "/b"), False)):
        found = settle(UPDATE, asked, as_before, reply(body=hook(secret=False, url=shown)), method="PATCH")
        assert found.is_undone is is_as_before
    expecting = {**DROPS, "expect": {"config": {"url": KEPT_URL}}}
    so = run(UPDATE, expecting, reply(body=hook(active=True, url=REAL_URL)), reply(body=hook(url=REAL_URL)))
    assert so.shown() == [f"GET {PLACE}", f"PATCH {PLACE}"]
