"""Certificates: whose are taken, and what is told of one that is not (failures.md row 3)."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from bulk.errors import UsageError
from bulk.model import Effect, Failure, FailureKind, Reply, Request
from tests.platform.raw_server import Peer, always, answer, serving

GET = Request(method="GET", path="/x")
PUT = Request(method="PUT", path="/x", body={"a": 1}, effect=Effect.SET)


def authority_and_server(*names: str) -> tuple[trustme.CA, ssl.SSLContext]:
    """An authority, and a server's TLS with its certificate for these names."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return authority, context


async def test_a_bundle_makes_an_unknown_authority_known(open_transport, token, tmp_path):
    """With `ca_bundle`, a platform with a certificate of its own authority answers."""
    authority, context = authority_and_server("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with (
        serving(always(answer()), tls=context) as server,
        open_transport(server.base_url, ca_bundle=tmp_path / "ca.pem") as transport,
    ):
        assert isinstance(await transport.send(GET, token), Reply)


async def certificate_failure(open_transport, token, context: ssl.SSLContext, bundle: Path | None) -> Failure:
    """How a request fails whose platform shows a certificate that must not be taken."""
    async with (
        serving(always(answer()), tls=context) as server,
        open_transport(server.base_url, ca_bundle=bundle) as transport,
    ):
        failure = await transport.send(PUT, token)
        assert transport.sent == 0
    assert server.requests == []
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.is_certificate) == (FailureKind.NOT_SENT, True)
    return failure


async def test_an_unknown_authority_stops_with_the_way_to_mend_it(open_transport, token):
    """failures.md row 3: an unknown authority: nothing was sent, no repeat helps, and `ca_bundle` is named."""
    _, context = authority_and_server("127.0.0.1")
    assert "platform.ca_bundle" in (await certificate_failure(open_transport, token, context, None)).message


async def test_a_certificate_for_another_name_is_not_taken(open_transport, token, tmp_path):
    """failures.md row 3: the certificate is for another host: `base_url` is named."""
    authority, context = authority_and_server("other.example.com")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    failure = await certificate_failure(open_transport, token, context, tmp_path / "ca.pem")
    assert "platform.base_url" in failure.message


async def test_an_expired_certificate_is_not_taken(open_transport, token, tmp_path):
    """failures.md row 3: the certificate has expired: renewing and the clock are named."""

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC)).configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    failure = await certificate_failure(open_transport, token, context, tmp_path / "ca.pem")
    assert "expired" in failure.message


async def plain(peer: Peer) -> None:
    """Answer a TLS greeting as a plain HTTP server does."""
    await peer.reader.read(1)
    await peer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


async def test_a_server_without_tls_is_told_as_such(open_transport, token):
    """An https address where plain HTTP is spoken: not sent, scheme and port are named, no certificate blamed."""
    async with (
        serving(plain) as server,
        open_transport(f"https://127.0.0.1:{server.port}/api/v3") as transport,
    ):
        failure = await transport.send(PUT, token)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.is_certificate) == (FailureKind.NOT_SENT, False)
    assert "right scheme and port" in failure.message


@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
async def test_a_bundle_that_cant_be_used_is_told_before_anything(open_transport, tmp_path, content):
    """A missing, empty or foreign `ca_bundle` is an error of the user's, with its name."""
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_bytes(content)
    with pytest.raises(UsageError, match=r"ca\.pem"):
        async with open_transport("https://127.0.0.1/api/v3", ca_bundle=bundle):
            pass
