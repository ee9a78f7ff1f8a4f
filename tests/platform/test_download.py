"""Downloads and proxies: where a request may go beside the platform's own address, and what it carries there."""

import base64
import socket

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from bulk.errors import UsageError
from bulk.model import ErrorCode, Failure, FailureKind, Reply, Request
from bulk.platform.allowed_addresses import GuardedResolver, flaw_of_download, is_own_host, is_public
from bulk.platform.bodies.body_values import Unreadable
from bulk.redaction import redact
from tests.platform.raw_server import Peer, always, answer, serving

GET = Request(method="GET", path="/x")


async def test_a_download_from_the_own_host_carries_no_token(open_transport, token):
    """failures.md row 10: a one-use URL is fetched as it is written, without Authorization and without cookies."""
    data = answer(b"\x00file\xff", content_type="application/octet-stream", headers="Set-Cookie: a=b\r\n")
    async with serving(always(data)) as server, open_transport(server.base_url) as transport:
        await transport.send(GET, token)
        got = await transport.download(f"http://127.0.0.1:{server.port}/raw/a%2Fb?token=once%3D#part", 1000)
    assert isinstance(got, Reply)
    assert (got.status, got.body) == (200, b"\x00file\xff")
    sent = server.requests[1].decode()
    assert sent.startswith("GET /raw/a%2Fb?token=once%3D HTTP/1.1\r\n")
    assert "authorization" not in sent.lower()
    assert "cookie" not in sent.lower()


async def test_a_download_is_capped_and_not_redirected(open_transport):
    """failures.md rows 10 and 29: more than was allowed is given up; a redirect comes back as one."""

    async def conversation(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            if b"/moved" in request:
                await peer.write(answer(b"", status=302, headers="Location: http://169.254.169.254/\r\n"))
            else:
                await peer.write(answer(b"x" * 1001))

    async with serving(conversation) as server, open_transport(server.base_url) as transport:
        long = await transport.download(f"http://127.0.0.1:{server.port}/long", 1000)
        moved = await transport.download(f"http://127.0.0.1:{server.port}/moved", 1000)
    assert isinstance(long, Reply)
    assert isinstance(long.body, Unreadable)
    assert isinstance(moved, Reply)
    assert (moved.status, len(server.requests)) == (302, 2)


REFUSED = [
    "file:///etc/passwd",
    "ftp://127.0.0.1/x",
    "gopher://127.0.0.1/",
    "javascript:alert(1)",
    "//127.0.0.1/x",
    "/x",
    "",
    "http://user:pass@127.0.0.1/",
    "http://127.0.0.1@169.254.169.254/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://[bad/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1/\r\nX: y",
    "http://127.0.0.1/\\evil",
    "http://exa mple.com/",
    "http://exämple.com/",
]


@pytest.mark.parametrize("url", REFUSED)
async def test_urls_that_lead_astray_are_not_followed(open_transport, url):
    """failures.md row 10: other schemes, user names, private addresses: refused before anything is sent."""
    async with open_transport("http://code.example.com/api/v3") as transport:
        failure = await transport.download(url.replace("127.0.0.1", "203.0.113.9") if "@" in url else url, 1000)
        assert isinstance(failure, Failure), failure
        assert (failure.kind, failure.code) == (FailureKind.NOT_SENT, ErrorCode.BAD_RESPONSE)
        assert transport.sent == 0
        assert "pass" not in failure.message


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST"])
async def test_a_name_that_leads_to_a_private_address_is_not_connected_to(open_transport, name):
    """failures.md row 10: what a foreign name resolves to is checked, too: nothing is connected."""
    async with serving(always(answer())) as server, open_transport("http://code.example.com/api/v3") as transport:
        failure = await transport.download(f"http://{name}:{server.port}/x", 1000)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.NOT_SENT
        assert "private address" in failure.message
    assert server.connections == 0


@pytest.mark.parametrize("number", ["2130706433", "127.1", "0x7f000001", "017700000001"])
async def test_an_address_in_disguise_is_not_connected_to(open_transport, number):
    """failures.md row 10: an IPv4 address written as one number, or in hex or octal, opens no way around the check."""
    async with serving(always(answer())) as server, open_transport("http://code.example.com/api/v3") as transport:
        failure = await transport.download(f"http://{number}:{server.port}/x", 1000)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.NOT_SENT
    assert server.connections == 0


class Fixed(AbstractResolver):
    """Every name has the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host, port=0, family=socket.AF_INET):
        entry = {"hostname": host, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
        return [{**entry, "host": address} for address in self.addresses]

    async def close(self) -> None:
        pass


async def test_only_public_addresses_of_a_name_are_left():
    """failures.md row 10: of a name with public and private addresses, only the public ones are connected to."""
    base_url = "https://code.example.com/api/v3"
    guarded = GuardedResolver(base_url, Fixed("10.0.0.1", "8.8.8.8", "169.254.169.254"))
    assert [each["host"] for each in await guarded.resolve("files.example.org")] == ["8.8.8.8"]
    assert len(await guarded.resolve("raw.code.example.com")) == 3
    await guarded.close()
    with pytest.raises(OSError, match="private"):
        await GuardedResolver(base_url, Fixed("10.0.0.1")).resolve("files.example.org")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("2606:4700::1111", True),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::808:808", True),
    ],
)
def test_which_addresses_are_public(address, expected):
    """failures.md row 10: private, shared, link-local, multicast and embedded private addresses are not public."""
    assert is_public(address) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("code.example.com", True),
        ("CODE.example.com", True),
        ("raw.code.example.com", True),
        ("evilcode.example.com", False),
        ("example.com", False),
        ("code.example.com.evil.org", False),
        ("", False),
    ],
)
def test_which_hosts_are_the_platforms_own(host, expected):
    """The platform's host and names below it are its own; what only looks alike is not."""
    assert is_own_host(host, "https://code.example.com/api/v3") is expected


def test_a_secure_platform_never_leads_to_plain_http():
    """failures.md row 10: a download of an https platform is https."""
    assert flaw_of_download("http://code.example.com/x", "https://code.example.com/api/v3")
    assert not flaw_of_download("https://code.example.com/x", "https://code.example.com/api/v3")
    assert not flaw_of_download("https://files.example.org/x", "http://code.example.com/api/v3")


# -- proxies


async def forward(peer: Peer) -> None:
    """A proxy that answers by itself."""
    while await peer.request() is not None:
        await peer.write(answer(b'{"via": "proxy"}'))


PROXY_VARIABLES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@pytest.mark.parametrize("variable", PROXY_VARIABLES)
async def test_proxies_of_the_environment_are_ignored(open_transport, token, monkeypatch, tmp_path, variable):
    """failures.md row 72: neither a proxy variable nor `.netrc` changes anything unless the manifest says so."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password netrc-password\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(forward) as proxy, serving(always(answer(b'{"via": "none"}'))) as server:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        async with open_transport(server.base_url) as transport:
            reply = await transport.send(GET, token)
    assert isinstance(reply, Reply)
    assert reply.body == {"via": "none"}
    assert proxy.requests == []


@pytest.mark.parametrize("variable", PROXY_VARIABLES)
async def test_a_proxy_is_used_where_the_manifest_says_so(open_transport, token, monkeypatch, tmp_path, variable):
    """failures.md row 72: with `trust_env` the request goes through the proxy, its password with it, `.netrc` never."""
    (tmp_path / "netrc").write_text("machine code.example.com login me password netrc-password\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(forward) as proxy:
        monkeypatch.setenv(variable, f"http://me:proxy-password@127.0.0.1:{proxy.port}")
        async with open_transport("http://code.example.com/api/v3", trust_env=True) as transport:
            reply = await transport.send(GET, token)
            outside = await transport.download("http://files.example.org/x", 100)
    assert isinstance(reply, Reply)
    assert reply.body == {"via": "proxy"}
    assert isinstance(outside, Reply)
    first, second = (request.decode() for request in proxy.requests)
    assert first.startswith("GET http://code.example.com/api/v3/x HTTP/1.1")
    assert f"Authorization: Bearer {token.reveal()}" in first
    login = base64.b64encode(b"me:proxy-password").decode()
    assert f"Proxy-Authorization: Basic {login}" in first
    assert second.startswith("GET http://files.example.org/x HTTP/1.1")
    assert "Bearer" not in second
    assert "proxy-password" not in redact(first) + redact(f"http://me:proxy-password@127.0.0.1/ {login}")
    assert login not in redact(first)


async def test_a_host_outside_the_proxy_is_reached_directly(open_transport, token, monkeypatch):
    """failures.md row 72: `NO_PROXY` is heeded."""
    async with serving(forward) as proxy, serving(always(answer(b'{"via": "none"}'))) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with open_transport(server.base_url, trust_env=True) as transport:
            reply = await transport.send(GET, token)
    assert isinstance(reply, Reply)
    assert reply.body == {"via": "none"}


async def test_a_proxy_that_refuses_means_nothing_was_sent(open_transport, token, monkeypatch):
    """failures.md row 72: a proxy that gives no tunnel: nothing reached the platform, and no password is shown."""
    async with serving(always(answer(status=407))) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:proxy-password@127.0.0.1:{proxy.port}")
        async with open_transport("https://code.example.com/api/v3", trust_env=True) as transport:
            failure = await transport.send(GET, token)
            assert transport.sent == 0
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.NOT_SENT
    assert "407" in failure.message
    assert "proxy-password" not in failure.message


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "http://", "http://[bad"])
async def test_a_proxy_of_another_kind_is_told(open_transport, monkeypatch, proxy):
    """failures.md row 72: a proxy that is not an HTTP proxy is an error of the user's, told before anything is sent."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(UsageError, match="proxy"):
        async with open_transport("http://code.example.com/api/v3", trust_env=True):
            pass


async def test_a_given_connector_serves_downloads_too(open_transport):
    """A simulation's connector is the only way out."""
    async with serving(always(answer(b"simulated"))) as server:
        connector = aiohttp.TCPConnector(resolver=Fixed("127.0.0.1"))
        async with open_transport("http://code.example.com/api/v3", connector=connector) as transport:
            got = await transport.download(f"http://files.example.org:{server.port}/x", 100)
        assert connector.closed
    assert isinstance(got, Reply)
    assert got.body == b"simulated"
