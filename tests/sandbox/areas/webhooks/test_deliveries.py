"""Events reach the receivers of webhooks: what they get, where they may be, and that nobody waits for them."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import anyio
import pytest
import trustme
from aiohttp import web

from bulk.sandbox import Settings, running
from bulk.sandbox.areas.contents import contents
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.organizations.organizations import RENAME_S
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.areas.webhooks import deliveries, webhooks
from bulk.sandbox.areas.webhooks.deliveries import signatures
from bulk.sandbox.areas.webhooks.delivery_addresses import Addresses, AddressRefused, LoopbackResolver, is_loopback
from bulk.sandbox.settings import SettingError
from tests.sandbox.receiver import Receiver, receiving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import HandClock, Platform, Start, Visit

TEST_AREAS = (contents.AREA, organizations.AREA, webhooks.AREA)
FILE = "/repos/acme-ops/runbook/contents/hooked.md"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Somebody who listens."""
    async with receiving() as listening:
        yield listening


async def hook(platform: Platform, url: str, org: str = "acme-ops", **body: Any) -> int:
    """Make a webhook for JSON; its id."""
    config = {"url": url, "content_type": "json", **body.pop("config", {})}
    reply = await platform.ask("POST", f"/orgs/{org}/hooks", body={"name": "web", "config": config, **body})
    assert reply.status == 201, reply.content
    return int(reply.json()["id"])


async def write(platform: Platform, text: str = "hello", **body: str) -> Any:
    """Write a file; the platform's answer."""
    body = {"message": "Write", "content": base64.b64encode(text.encode()).decode(), **body}
    reply = await platform.ask("PUT", FILE, body=body)
    assert reply.status in (200, 201), reply.content
    return reply.json()


async def records(platform: Platform, number: int, count: int, org: str = "acme-ops") -> Any:
    """The records of a webhook's deliveries, newest first, when there are `count`."""
    with anyio.fail_after(60):
        while True:
            reply = await platform.ask("GET", f"/orgs/{org}/hooks/{number}/deliveries")
            if len(reply.json()) >= count:
                return reply.json()


def test_signature_of_the_public_example() -> None:
    """The signature is that of the public test vector, under both hashes' names."""
    made = signatures("It's a Secret to Everybody", b"Hello, World!")
    expected = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert made["X-Hub-Signature-256"] == f"sha256={expected}"
    assert made["X-Hub-Signature"].startswith("sha1=")


@pytest.mark.parametrize(("vendor", "name"), [("service", "service"), ("github", "github")])
async def test_ping(start: Start, receiver: Receiver, vendor: str, name: str) -> None:
    """A new webhook is sent a ping: signed JSON, with its id and kind in headers of the vendor's name, and recorded."""
    platform = await start(vendor=vendor)
    number = await hook(platform, receiver.url, config={"secret": "s3cret"}, events=["repository"])
    (ping,) = await receiver.wait(1)
    assert ping.headers[f"x-{name}-hook-id"] == str(number)
    assert ping.headers[f"x-{name}-event"] == "ping"
    assert ping.headers[f"x-{name}-hook-installation-target-id"] == "102"
    assert ping.headers[f"x-{name}-hook-installation-target-type"] == "organization"
    assert platform.url.startswith(f"http://{ping.headers[f'x-{name}-enterprise-host']}/")
    assert ping.headers["content-type"] == "application/json"
    assert ping.headers["x-hub-signature-256"] == signatures("s3cret", ping.body)["X-Hub-Signature-256"]
    payload = json.loads(ping.body)
    assert (payload["hook_id"], payload["hook"]["config"]["secret"]) == (number, "********")
    assert payload["organization"]["login"] == "acme-ops"
    assert b"s3cret" not in ping.body
    (record,) = await records(platform, number, 1)
    assert (record["event"], record["status"], record["status_code"]) == ("ping", "OK", 200)
    assert record["guid"] == ping.headers[f"x-{name}-delivery"]


async def test_pushes(platform: Platform, receiver: Receiver) -> None:
    """Each write of a file is a push that names branch, commits and what became of the file, in order."""
    number = await hook(platform, receiver.url)
    made = await write(platform)
    changed = await write(platform, "hello again", sha=made["content"]["sha"])
    body = {"message": "Gone", "sha": changed["content"]["sha"]}
    assert (await platform.ask("DELETE", FILE, body=body)).status == 200
    pushes = [json.loads(each.body) for each in (await receiver.wait(4))[1:]]
    assert [push["after"] for push in pushes[:2]] == [made["commit"]["sha"], changed["commit"]["sha"]]
    assert [push["before"] for push in pushes[1:]] == [push["after"] for push in pushes[:2]]
    first = pushes[0]
    assert (first["ref"], first["repository"]["full_name"]) == ("refs/heads/main", "acme-ops/runbook")
    assert (first["pusher"]["name"], first["sender"]["login"]) == ("octoadmin", "octoadmin")
    assert first["repository"]["url"] == f"{platform.url}/repos/acme-ops/runbook"
    kinds = [
        next(kind for kind in ("added", "modified", "removed") if push["head_commit"][kind] == ["hooked.md"])
        for push in pushes
    ]
    assert kinds == ["added", "modified", "removed"]
    (newest, *_) = await records(platform, number, 4)
    assert (newest["event"], newest["repository_id"], newest["action"]) == ("push", 1003, None)


async def test_a_form(platform: Platform, receiver: Receiver) -> None:
    """As a form, the JSON is the one field `payload`, and what is signed is the form."""
    await hook(platform, receiver.url, config={"content_type": "form", "secret": "ß"})
    (ping,) = await receiver.wait(1)
    assert ping.headers["content-type"] == "application/x-www-form-urlencoded"
    ((name, (payload,)),) = parse_qs(ping.body.decode()).items()
    assert (name, json.loads(payload)["zen"]) == ("payload", "Rehearse before you perform.")
    assert ping.headers["x-hub-signature-256"] == signatures("ß", ping.body)["X-Hub-Signature-256"]


async def test_without_a_secret(platform: Platform, receiver: Receiver) -> None:
    """Nothing is signed without a secret; a user name and password are sent as Basic credentials."""
    await hook(platform, receiver.url, config={"username": "u", "password": "p"})
    (ping,) = await receiver.wait(1)
    assert "x-hub-signature-256" not in ping.headers
    assert ping.headers["authorization"] == f"Basic {base64.b64encode(b'u:p').decode()}"


async def test_only_what_was_asked_for(platform: Platform, receiver: Receiver) -> None:
    """No event that was not selected, none while inactive, none of another organization, none of a failed write."""
    await hook(platform, receiver.url + "/other-kind", events=["organization"])
    await hook(platform, receiver.url + "/inactive", active=False)
    await hook(platform, receiver.url + "/elsewhere", org="acme-eng")
    await hook(platform, receiver.url + "/all", events=["*"])
    await write(platform)
    assert (await platform.ask("PUT", FILE, body={"message": "x", "content": "eA=="})).status == 422
    await platform.ask("DELETE", FILE, body={"message": "x", "sha": "0" * 40})
    await hook(platform, receiver.url + "/last")
    posted = await receiver.wait(5)
    events = sorted((each.path, each.headers["x-service-event"]) for each in posted)
    assert events == [
        ("/hook/all", "ping"),
        ("/hook/all", "push"),
        ("/hook/elsewhere", "ping"),
        ("/hook/last", "ping"),
        ("/hook/other-kind", "ping"),
    ]


async def test_a_rename_is_told(start: Start, clock: HandClock, receiver: Receiver) -> None:
    """When a rename is done, and not before, the organization's webhooks hear both names and who asked for it."""
    platform = await start(clock=clock, areas=AREAS)
    number = await hook(platform, receiver.url, events=["organization"])
    await receiver.wait(1)
    await platform.ask("PATCH", "/admin/organizations/acme-ops", body={"login": "acme-run"})
    assert len(receiver.posted) == 1
    clock.advance(RENAME_S)
    payload = json.loads((await receiver.wait(2))[1].body)
    assert (payload["action"], payload["changes"]["login"]["from"]) == ("renamed", "acme-ops")
    assert (payload["organization"]["login"], payload["sender"]["login"]) == ("acme-run", "octoadmin")
    (record, _) = await records(platform, number, 2, org="acme-run")
    assert (record["event"], record["action"], record["repository_id"]) == ("organization", "renamed", None)


async def test_what_became_of_it_is_recorded(platform: Platform, receiver: Receiver) -> None:
    """The receiver's status is recorded, a redirect is not followed, and nothing is sent twice."""
    for status, words in ((500, "Internal Server Error"), (302, "Found")):
        receiver.status = status
        number = await hook(platform, receiver.url)
        (record,) = await records(platform, number, 1)
        assert (record["status_code"], record["status"]) == (status, words)
    assert [each.path for each in receiver.posted] == ["/hook", "/hook"]


async def test_a_dead_receiver(platform: Platform) -> None:
    """Where nobody listens, the delivery is recorded as failed."""
    number = await hook(platform, "http://127.0.0.1:9/hook")
    (record,) = await records(platform, number, 1)
    assert (record["status_code"], record["status"]) == (502, "failed to connect to host")


async def test_a_silent_receiver_holds_up_nobody(
    platform: Platform, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither answers nor other receivers wait for one that never answers; what is too much for it is dropped."""
    monkeypatch.setattr(deliveries, "MOST_WAITING", 2)
    async with receiving() as silent:
        silent.is_silent = True
        number = await hook(platform, silent.url)
        await silent.wait(1)
        await hook(platform, receiver.url)
        sha = (await write(platform))["content"]["sha"]
        for text in "abc":
            sha = (await write(platform, text, sha=sha))["content"]["sha"]
        await receiver.wait(5)
        dropped = await records(platform, number, 2)
        assert [(each["status_code"], each["event"]) for each in dropped] == [(0, "push")] * 2
        assert "dropped" in dropped[0]["status"]
        assert len(silent.posted) == 1


async def test_time_is_limited(platform: Platform, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that takes too long is recorded as timed out, and the next event is sent."""
    receiver.is_silent = True
    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "TIMEOUT_S", 0.05)
        number = await hook(platform, receiver.url)
        (ping,) = await records(platform, number, 1)
    assert (ping["status_code"], ping["status"]) == (504, "timed out")
    # Whether a request arrives within 0.05 s depends on the machine: the next one has all of its time.
    receiver.is_silent = False
    await write(platform)
    push, _ = await records(platform, number, 2)
    assert (push["event"], push["status_code"]) == ("push", 200)


async def test_the_server_ends_with_deliveries_under_way(
    visit: Visit, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent receiver does not keep the server from ending."""
    monkeypatch.setattr(deliveries, "TIMEOUT_S", 300.0)
    receiver.is_silent = True
    with anyio.fail_after(60):
        async with running(Settings()) as sandbox:
            await hook(visit(sandbox), receiver.url)
            await receiver.wait(1)


async def test_one_that_is_gone_hears_nothing_more(
    platform: Platform, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a webhook that was deleted meanwhile is not sent."""
    monkeypatch.setattr(deliveries, "TIMEOUT_S", 1.5)  # the file is written and the webhook deleted within this time
    receiver.is_silent = True
    number = await hook(platform, receiver.url)
    await receiver.wait(1)
    await write(platform)
    await platform.ask("DELETE", f"/orgs/acme-ops/hooks/{number}")
    later = await hook(platform, receiver.url + "/later")
    # Its time is over after that of the first one, and what waited behind that had its turn.
    await records(platform, later, 1)
    assert [each.path for each in receiver.posted] == ["/hook", "/hook/later"]


async def test_without_webhooks(start: Start) -> None:
    """A sandbox that serves no webhooks writes files all the same."""
    platform = await start(areas=(contents.AREA,))
    await write(platform)


# Where deliveries may go


@pytest.mark.parametrize("host", ["hooks.example.com", "10.0.0.1", "fd00::1", "a_b"])
def test_the_option(host: str) -> None:
    """`--deliver-to` takes names and addresses, several of them."""
    assert Settings.from_options(deliver_to=(host, "other.test")).deliver_to == (host, "other.test")


@pytest.mark.parametrize("host", ["", "https://hooks.example.com", "hooks.example.com:80", "a b", "*", "a/b"])
def test_the_option_refused(host: str) -> None:
    """What is more than a host is an error that shows how it is written."""
    with pytest.raises(SettingError, match=r"hooks\.example\.com"):
        Settings(deliver_to=(host,))


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "[fd00::1]", "[::ffff:10.0.0.1]", "[::]"]
)
async def test_addresses_outside_loopback(platform: Platform, host: str) -> None:
    """Nothing is sent to an address outside loopback; the record says why, and how to allow it."""
    number = await hook(platform, f"http://{host}:9/hook")
    (record,) = await records(platform, number, 1)
    assert record["status_code"] == 0
    assert "--deliver-to" in record["status"]


async def test_a_name_is_judged_by_where_it_leads(
    platform: Platform, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a name's addresses only those on loopback are connected to; a name without one is refused."""
    await hook(platform, receiver.url.replace("127.0.0.1", "localhost"))
    await receiver.wait(1)
    found = {"inside.test": ["10.0.0.1", "127.0.0.1"], "outside.test": ["10.0.0.1"]}

    async def lookup(_: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, object]]:
        return [{"hostname": host, "host": address, "port": port} for address in found[host]]

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", lookup)
    number = await hook(platform, "http://outside.test:9/hook")
    (record,) = await records(platform, number, 1)
    assert (record["status_code"], "outside.test is not on loopback" in record["status"]) == (0, True)
    resolver = LoopbackResolver(Addresses(()))
    assert [each["host"] for each in await resolver.resolve("inside.test")] == ["127.0.0.1"]
    with pytest.raises(AddressRefused):
        await resolver.resolve("outside.test")
    allowed = LoopbackResolver(Addresses(["Outside.test"]))
    assert [each["host"] for each in await allowed.resolve("outside.test")] == ["10.0.0.1"]


def test_allowed_addresses() -> None:
    """What the command line names is allowed in any spelling, and nothing else."""
    addresses = Addresses(["10.0.0.1", "FD00::1"])
    addresses.check("10.0.0.1")
    addresses.check("[fd00:0::1]")
    addresses.check("127.8.8.8")
    addresses.check("a-name.test")
    with pytest.raises(AddressRefused):
        addresses.check("10.0.0.2")
    assert [is_loopback(each) for each in ("::1", "::ffff:127.0.0.1", "127.0.0.2", "1.1.1.1", "localhost")] == [
        True,
        True,
        True,
        False,
        False,
    ]


async def test_certificates(platform: Platform, tmp_path: Path) -> None:
    """A certificate that nobody vouches for is refused, unless the webhook says that it need not be verified."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/hook"
        for insecure, code in (("0", 502), ("1", 200)):
            number = await hook(platform, url, config={"insecure_ssl": insecure})
            (record,) = await records(platform, number, 1)
            assert record["status_code"] == code
        assert len(receiver.posted) == 1
    finally:
        await runner.cleanup()
