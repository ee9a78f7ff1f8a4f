"""Organization webhooks, through clients that other people wrote; what is delivered goes through their checks too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import github
import pytest
from anyio import to_thread
from gidgethub import ValidationFailure, sansio
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import Connect
from tests.sandbox.receiver import Receiver

HELLO = "acme-eng/hello-world"
SECRET = "It's a secret"
NOBODY = "http://127.0.0.1:9/hook"


def hook_at(url: str, content_type: str = "json") -> dict[str, str]:
    """The configuration of a signed webhook."""
    return {"url": url, "content_type": content_type, "secret": SECRET}


def test_pygithub_reads_webhooks(pygithub: Connect) -> None:
    """PyGithub lists an organization's webhooks, and gets each of them by its number."""
    organization = pygithub().get_organization("acme-ops")
    (hook,) = organization.get_hooks()
    assert (hook.id, hook.name, hook.events, hook.active) == (4001, "web", ["push"], True)
    assert organization.get_hook(4001).raw_data == hook.raw_data


def test_pygithub_creates_edits_and_deletes(pygithub: Connect) -> None:
    """PyGithub makes a webhook, sees its secret masked, changes it, and takes it away."""
    organization = pygithub().get_organization("acme-ops")
    made = organization.create_hook("web", hook_at(NOBODY + "/1"), ["push", "organization"], active=False)
    assert made.config == {**hook_at(NOBODY + "/1"), "secret": "********", "insecure_ssl": "0"}
    made.edit("web", hook_at(NOBODY + "/2"), events=["*"])
    again = organization.get_hook(made.id)
    assert (again.config["url"], again.events, again.active) == (NOBODY + "/2", ["*"], False)
    again.delete()
    assert made.id not in [hook.id for hook in organization.get_hooks()]
    with pytest.raises(github.UnknownObjectException):
        again.edit("web", hook_at(NOBODY + "/3"))


def test_pygithub_loses_a_secret_that_it_does_not_send(pygithub: Connect) -> None:
    """An update of PyGithub's without the secret takes the secret away."""
    organization = pygithub().get_organization("acme-ops")
    made = organization.create_hook("web", hook_at(NOBODY + "/lost"), ["push"], active=False)
    assert "secret" in made.config
    made.edit("web", {"url": NOBODY + "/lost"})
    assert "secret" not in organization.get_hook(made.id).config
    made.delete()


def test_pygithub_reads_deliveries(pygithub: Connect) -> None:
    """PyGithub lists what a webhook was told, newest first."""
    deliveries = list(pygithub().get_organization("acme-ops").get_hook_deliveries(4001))
    assert [(each.id, each.event) for each in deliveries] == [(9003, "push"), (9002, "push"), (9001, "push")]
    moments = [each.delivered_at for each in deliveries if each.delivered_at is not None]
    assert len(moments) == 3
    assert moments == sorted(moments, reverse=True)


async def test_a_webhook_of_pygithub_is_pinged(pygithub: Connect, receiver: Receiver, githubkit: Any) -> None:
    """A webhook that PyGithub makes gets a ping, signed so that githubkit verifies it, and recorded as delivered."""
    organization = pygithub().get_organization("acme-eng")
    made = await to_thread.run_sync(lambda: organization.create_hook("web", hook_at(receiver.url), ["push"], True))
    (ping,) = await receiver.wait(1)
    assert (ping.headers["x-github-event"], ping.headers["x-github-hook-id"]) == ("ping", str(made.id))
    assert githubkit.webhooks.verify(SECRET, ping.body, ping.headers["x-hub-signature-256"])
    assert not githubkit.webhooks.verify("another", ping.body, ping.headers["x-hub-signature-256"])

    def recorded() -> list[Any]:
        return list(organization.get_hook_deliveries(made.id))

    with anyio.fail_after(60):
        while not (deliveries := await to_thread.run_sync(recorded)):
            pass
    (record,) = deliveries
    assert (record.event, record.status_code, record.guid) == ("ping", 200, ping.headers["x-github-delivery"])
    await to_thread.run_sync(made.delete)


@pytest.mark.parametrize("content_type", ["json", "form"])
async def test_gidgethub_accepts_a_push(
    gidget: Callable[..., GitHubAPI], receiver: Receiver, content_type: str
) -> None:
    """A write is told to a webhook in its format; gidgethub checks the signature and reads which file it was."""
    client, path = gidget(), f"told/{content_type}.txt"
    made = await client.post(
        "/orgs/acme-eng/hooks", data={"name": "web", "config": hook_at(receiver.url, content_type)}
    )
    await receiver.wait(1)
    written = await client.put(f"/repos/{HELLO}/contents/{path}", data={"message": "Tell", "content": ""})
    _, push = await receiver.wait(2)
    event = sansio.Event.from_http(push.headers, push.body, secret=SECRET)
    assert (event.event, event.data["after"], event.data["ref"]) == (
        "push",
        written["commit"]["sha"],
        "refs/heads/main",
    )
    assert event.data["head_commit"]["added"] == [path]
    with pytest.raises(ValidationFailure):
        sansio.Event.from_http(push.headers, push.body, secret="another")
    await client.delete(made["url"])


async def test_githubkit_creates_edits_and_deletes(kit: Callable[..., Any], githubkit: Any) -> None:
    """githubkit makes a webhook, changes it, and takes it away; every answer fits its models."""
    orgs = (await kit()).rest.orgs
    created = await orgs.async_create_webhook("acme-ops", name="web", config=hook_at(NOBODY), events=["push"])
    made = created.parsed_data
    assert (created.status_code, made.active, made.config.secret) == (201, True, "********")
    changed = await orgs.async_update_webhook("acme-ops", made.id, active=False, config=hook_at(NOBODY + "/2"))
    assert (changed.parsed_data.active, changed.parsed_data.config.url) == (False, NOBODY + "/2")
    assert (await orgs.async_get_webhook("acme-ops", made.id)).parsed_data == changed.parsed_data
    assert (await orgs.async_delete_webhook("acme-ops", made.id)).status_code == 204
    with pytest.raises(githubkit.exception.RequestFailed):
        await orgs.async_get_webhook("acme-ops", made.id)


async def test_githubkit_changes_a_configuration(kit: Callable[..., Any]) -> None:
    """githubkit reads and changes the configuration of a webhook alone."""
    orgs = (await kit()).rest.orgs
    made = (await orgs.async_create_webhook("acme-ops", name="web", config=hook_at(NOBODY))).parsed_data
    read = (await orgs.async_get_webhook_config_for_org("acme-ops", made.id)).parsed_data
    assert (read.url, read.content_type, read.insecure_ssl, read.secret) == (NOBODY, "json", "0", "********")
    changed = await orgs.async_update_webhook_config_for_org("acme-ops", made.id, content_type="form", secret="new")
    assert (changed.parsed_data.content_type, changed.parsed_data.url) == ("form", NOBODY)
    await orgs.async_delete_webhook("acme-ops", made.id)


async def test_githubkit_reads_deliveries(kit: Callable[..., Any]) -> None:
    """The records of deliveries fit githubkit's model."""
    deliveries = (await (await kit()).rest.orgs.async_list_webhook_deliveries("acme-ops", 4001)).parsed_data
    assert [(each.id, each.event, each.redelivery) for each in deliveries] == [
        (number, "push", False) for number in (9003, 9002, 9001)
    ]


async def test_githubkit_parses_what_is_delivered(
    kit: Callable[..., Any], githubkit: Any, receiver: Receiver, gidget: Callable[..., GitHubAPI]
) -> None:
    """A ping, pushes that add and remove a file, and a rename fit the models of their events, as they are signed."""
    orgs, client = (await kit()).rest.orgs, gidget()
    await client.post("/admin/organizations", data={"login": "told-before", "admin": "alice"})
    every = {"org": "told-before", "name": "web", "config": hook_at(receiver.url), "events": ["*"]}
    await orgs.async_create_webhook(**every)
    told = "/repos/told-before/notes/contents/told/models.txt"
    written = await client.put(told, data={"message": "Tell", "content": ""})
    gone = {"message": "Remove", "sha": written["content"]["sha"]}
    await client.delete(told, data=gone)
    await client.patch("/admin/organizations/told-before", data={"login": "told-after"})
    events = []
    for request in await receiver.wait(4):
        event = sansio.Event.from_http(request.headers, request.body, secret=SECRET)
        events.append((event.event, githubkit.webhooks.parse(event.event, request.body)))
    (_, ping), (_, push), (_, removal), (_, renamed) = events
    assert [name for name, _ in events] == ["ping", "push", "push", "organization"]
    assert ping.hook_id == ping.hook.id
    repository = push.repository
    assert (repository.full_name, repository.default_branch, repository.visibility) == (
        "told-before/notes",
        "main",
        "private",
    )
    assert repository.clone_url.endswith("/told-before/notes.git")
    assert (push.sender.login, push.pusher.name, push.head_commit.added) == ("octoadmin", "octoadmin", [told[-15:]])
    assert push.sender.received_events_url == f"{push.sender.url}/received_events"
    assert (removal.before, removal.head_commit.removed) == (push.after, [told[-15:]])
    assert (renamed.action, renamed.changes.login.from_) == ("renamed", "told-before")
    assert renamed.organization.login == "told-after"
