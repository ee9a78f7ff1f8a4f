"""`contents.get`: files, directories and what is neither. What it shares with `readme.get` is tested there."""

import msgspec
import pytest

from bulk.model import BodyFile, Media, OutcomeKind
from bulk_jobs.contents import GetContents
from bulk_jobs.shared.files import blobs
from tests.jobs.driver import flaws, reply, run

GET = GetContents()
ITEM = {"owner": "acme-eng", "repo": "hello-world"}
DOCS = {**ITEM, "path": "docs"}
ENTRY = {"type": "file", "name": "a", "path": "a", "sha": "0" * 40, "size": 1}
A_B = {**ENTRY, "path": "docs/a b?#%20.md", "sha": blobs.blob_sha(b"x"), "encoding": "base64", "content": "eA=="}


LONG = BodyFile(name="arriving/1", size_bytes=50_000_000, sha256="ab" * 32, blob_sha="cd" * 20)


def _entries(count):
    return [{**ENTRY, "name": str(number)} for number in range(count)]


def test_the_path_is_encoded_once_and_the_root_needs_none():
    """Slashes stay, everything else is percent-encoded; without a path the root is listed."""
    assert run(GET, {**ITEM, "path": "docs/a b?#%20.md", "ref": "v1"}, reply(body=A_B)).shown() == [
        "GET /repos/acme-eng/hello-world/contents/docs/a%20b%3F%23%2520.md?ref=v1"
    ]
    assert run(GET, ITEM, reply(body=[])).shown() == ["GET /repos/acme-eng/hello-world/contents"]


@pytest.mark.parametrize("count", [1, 999, 1001])
def test_a_listing_is_given_as_it_came(count):
    """An array for json, an object for object; nothing is marked below 1,000 entries."""
    assert run(GET, ITEM, reply(body=_entries(count))).outcome.result == _entries(count)
    as_object = {"type": "dir", "path": "docs", "entries": _entries(count)}
    assert run(GET, {**DOCS, "media_type": "object"}, reply(body=as_object)).outcome.result == as_object


@pytest.mark.parametrize("media_type", ["json", "object"])
def test_a_listing_with_a_name_twice_is_disbelieved(media_type):
    """No directory has two entries of one name: the doubled one was a part of a result that counted as right."""
    doubled = [*_entries(3), *_entries(1)]
    body = {"type": "dir", "entries": doubled} if media_type == "object" else doubled
    assert run(GET, {**ITEM, "media_type": media_type}, reply(body=body)).is_disbelieved


def test_exactly_1000_entries_may_have_been_cut():
    """A listing at the platform's limit says `maybe_truncated`, as an object in every media type."""
    as_array = run(GET, ITEM, reply(body=_entries(1000))).outcome.result
    assert as_array == {"type": "dir", "entries": _entries(1000), "maybe_truncated": True}
    as_object = {"type": "dir", "path": "docs", "entries": _entries(1000)}
    shown = run(GET, {**DOCS, "media_type": "object"}, reply(body=as_object)).outcome.result
    assert shown == {**as_object, "maybe_truncated": True}


@pytest.mark.parametrize("media_type", ["raw", "html"])
def test_a_directory_has_no_raw_form(media_type):
    """Where the platform answers JSON to raw or html, it is a listing and not a file; a JSON file stays a file."""
    listing = msgspec.json.encode(_entries(2))
    plain = {"content-type": "application/json; charset=utf-8"}
    driven = run(GET, {**ITEM, "media_type": media_type}, reply(body=listing, headers=plain))
    assert driven.outcome.result == _entries(2)
    assert driven.outcome.payload is None
    marked = reply(body=b"\xef\xbb\xbf" + listing, headers=plain)
    assert run(GET, {**ITEM, "media_type": media_type}, marked).outcome.result == _entries(2)
    full = reply(body=msgspec.json.encode(_entries(1000)), headers=plain)
    assert run(GET, {**ITEM, "media_type": media_type}, full).outcome.result["maybe_truncated"]
    vendor = {"content-type": "application/vnd.service.raw; charset=utf-8"}
    as_file = run(GET, {**ITEM, "path": "a.json", "media_type": media_type}, reply(body=listing, headers=vendor))
    assert as_file.outcome.result["size"] == len(listing)
    assert as_file.outcome.result["path"] == "a.json"


@pytest.mark.parametrize("media_type", ["raw", "html"])
def test_json_that_describes_nothing_is_not_the_file(media_type):
    """Plain JSON as the answer to raw or html says what stands there, or it is somebody else's answer."""
    plain = {"content-type": "application/json"}
    for body in (b"3", b"not json", b"\xff", b"[" * 100_000, b"{}", b"[1]", b'{"message": "x"}', b"null", LONG):
        driven = run(GET, {**ITEM, "path": "a", "media_type": media_type}, reply(body=body, headers=plain))
        assert driven.is_disbelieved


def test_html_is_not_the_raw_file():
    """A page of HTML in place of a file's bytes is a gateway's; the file itself has the vendor's content type."""
    page = {"content-type": "text/html; charset=utf-8"}
    assert run(GET, {**ITEM, "path": "a", "media_type": "raw"}, reply(body=b"<p>", headers=page)).is_disbelieved
    as_html = run(GET, {**ITEM, "path": "a", "media_type": "html"}, reply(body=b"<p>", headers=page))
    assert as_html.outcome.payload == b"<p>"


@pytest.mark.parametrize("kind", ["symlink", "submodule"])
def test_symlinks_and_submodules_are_described(kind):
    """What is not a file is given as the platform describes it, and saved as JSON."""
    body = {**ENTRY, "type": kind}
    driven = run(GET, {**ITEM, "path": "a"}, reply(body=body))
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert GET.saved_bytes(driven.outcome) is None
    assert driven.outcome.result == body


def test_a_listing_is_saved_as_json():
    """`save` writes a listing as JSON."""
    driven = run(GET, ITEM, reply(body=_entries(2)))
    assert GET.saved_bytes(driven.outcome) is None
    assert driven.outcome.result == _entries(2)


def test_a_file_above_1_mb_keeps_its_path():
    """The result of a file that came as raw bytes names its path."""
    refusal = reply(403, {"message": "This file is larger than 1 MB", "errors": [{"code": "too_large"}]})
    driven = run(GET, {**ITEM, "path": "big.bin"}, refusal, reply(body=b"b" * 1_200_000))
    assert driven.outcome.result["path"] == "big.bin"
    assert driven.requests[1].media is Media.RAW


def test_checks():
    """A path that leads out of its place and a ref that can't be sent are refused."""
    assert not flaws(GET, {**ITEM, "path": "docs", "ref": "refs/heads/main"})
    assert set(flaws(GET, {**ITEM, "path": "../etc", "ref": "\x00"})) == {"path", "ref"}
    assert set(flaws(GET, {**ITEM, "path": "/etc"})) == {"path"}
