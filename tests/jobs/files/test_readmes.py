"""`readme.get`, and through it everything that reading a file has in common."""

import hashlib
import timeit

import msgspec
import pytest

from bulk.capabilities import varied
from bulk.model import RAW_BODY_BYTES, BodyFile, ErrorCode, Media, OutcomeKind
from bulk_jobs.readmes import GetReadme, ReadmeItem
from bulk_jobs.shared.files import blobs
from tests.jobs.driver import flaws, item_of, reply, run

GET = GetReadme()
ITEM = {"owner": "Acme-Eng", "repo": "hello-world"}
FILE = {
    "type": "file",
    "encoding": "base64",
    "size": 5,
    "name": "README.md",
    "path": "README.md",
    "sha": blobs.blob_sha(b"hello"),
    "content": "aGVs\nbG8=\n",
}
DATA = b"x" * 2_000_000
LARGE = {**FILE, "encoding": "none", "content": "", "size": len(DATA), "sha": blobs.blob_sha(DATA)}
TOO_LARGE = {
    "message": "This file is too large",
    "errors": [{"resource": "Blob", "field": "data", "code": "too_large"}],
}
LONG = BodyFile(name="arriving/1", size_bytes=50_000_000, sha256="ab" * 32, blob_sha="cd" * 20)


def test_json_is_one_request_and_the_file_object_the_result():
    """The platform's file object is the result, as it came; `save` writes the decoded bytes."""
    driven = run(GET, ITEM, reply(body=FILE))
    assert driven.shown() == ["GET /repos/Acme-Eng/hello-world/readme"]
    assert driven.requests[0].media is Media.JSON
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result == FILE
    assert GET.saved_bytes(driven.outcome) == b"hello"


@pytest.mark.parametrize("is_unchanged", [True, False])
def test_a_content_that_can_not_be_saved_is_no_answer(is_unchanged):
    """Where the content is saved, one that is not Base64 is asked for again, also one that was kept; only once.
    A job that saves nothing takes it as it came."""
    saving = varied(GET, is_saving=True)
    odd = reply(body={**FILE, "content": "@@@@", "size": 3}, is_unchanged=is_unchanged)
    assert run(GET, ITEM, odd).outcome.result["content"] == "@@@@"
    again = run(saving, ITEM, odd, reply(body=FILE))
    assert [request.is_fresh for request in again.requests] == [False, True]
    assert again.outcome.result == FILE
    vain = run(saving, ITEM, odd, odd).outcome.error
    assert vain is not None
    assert vain.code is ErrorCode.BAD_RESPONSE
    assert run(saving, ITEM, reply(body=FILE)).outcome.result == FILE


def test_the_ref_is_asked_for():
    """A ref goes into the query, percent-encoded."""
    driven = run(GET, {**ITEM, "ref": "feature/a b&c"}, reply(body=FILE))
    assert driven.shown() == ["GET /repos/Acme-Eng/hello-world/readme?ref=feature%2Fa+b%26c"]


@pytest.mark.parametrize("media_type", ["raw", "html"])
def test_raw_and_html_give_size_and_hash(media_type):
    """The bytes are the payload, the result says how many they are and what their SHA-256 is."""
    driven = run(GET, {**ITEM, "media_type": media_type}, reply(body=b"# Hi"))
    assert driven.requests[0].media is Media(media_type)
    assert driven.requests[0].max_bytes == RAW_BODY_BYTES
    assert driven.outcome.result == {"size": 4, "sha256": hashlib.sha256(b"# Hi").hexdigest()}
    assert driven.outcome.payload == GET.saved_bytes(driven.outcome) == b"# Hi"


@pytest.mark.parametrize("media_type", ["raw", "html"])
def test_an_answer_without_bytes_is_an_empty_file_only_where_the_object_says_so(media_type):
    """An empty 200, as to HEAD, counted as an empty file: the object has its size, and they are asked for again."""
    item, nothing = {**ITEM, "media_type": media_type}, reply(body=b"")
    empty = run(GET, item, nothing, reply(body={**FILE, "size": 0, "content": ""}))
    assert (empty.outcome.kind, empty.outcome.result["size"], empty.outcome.payload) == (OutcomeKind.SUCCEEDED, 0, b"")
    lost = run(GET, item, nothing, reply(body=FILE), reply(body=b"# Hi"))
    assert (lost.outcome.payload, lost.requests[2].is_fresh) == (b"# Hi", True)
    twice = run(GET, item, nothing, reply(body=FILE), nothing, reply(body=FILE))
    assert twice.error.code is ErrorCode.BAD_RESPONSE


@pytest.mark.parametrize("media_type", ["raw", "html"])
def test_a_long_body_stays_in_its_file(media_type):
    """A body that came by way of a file gives the same result, and the file is the payload."""
    answer = reply(body=LONG, headers={"content-type": "application/vnd.service.raw+json"})
    driven = run(GET, {**ITEM, "media_type": media_type}, answer)
    assert driven.requests[0].takes_file
    assert driven.outcome.result == {"size": LONG.size_bytes, "sha256": LONG.sha256}
    assert driven.outcome.payload is LONG


def test_a_long_body_after_the_object_form_stays_in_its_file():
    """The same where the file object came first, without content: its blob sha is that of the bytes."""
    driven = run(GET, ITEM, reply(body={**LARGE, "sha": LONG.blob_sha}), reply(body=LONG))
    result = driven.outcome.result
    assert (result["size"], result["sha"], result["sha256"]) == (LONG.size_bytes, LONG.blob_sha, LONG.sha256)
    assert driven.outcome.payload is LONG


@pytest.mark.parametrize(("media_type", "body"), [("json", FILE), ("object", FILE), ("raw", b"# Hi"), ("html", b"<p>")])
def test_a_304_is_unchanged_and_has_its_result(media_type, body):
    """An answer from the store ends as unchanged, with the same result as the first time."""
    fresh = run(GET, {**ITEM, "media_type": media_type}, reply(body=body)).outcome
    stored = run(GET, {**ITEM, "media_type": media_type}, reply(body=body, is_unchanged=True)).outcome
    assert (fresh.kind, stored.kind) == (OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED)
    assert fresh.result == stored.result
    assert GET.saved_bytes(fresh) == GET.saved_bytes(stored)


@pytest.mark.parametrize("media_type", ["json", "object"])
def test_above_1_mb_the_bytes_come_as_raw(media_type):
    """`encoding: none` is not an empty file: the bytes are asked for, and the result keeps the platform's fields."""
    driven = run(GET, {**ITEM, "media_type": media_type}, reply(body=LARGE), reply(body=DATA))
    assert [request.media for request in driven.requests] == [Media(media_type), Media.RAW]
    assert driven.outcome.result == {**LARGE, "sha256": hashlib.sha256(DATA).hexdigest()}
    assert GET.saved_bytes(driven.outcome) == DATA


def test_bytes_of_another_blob_are_asked_for_again():
    """A file that changed between the two answers is read anew, past the store; bytes that are cut are not a file."""
    cut = run(GET, ITEM, *(reply(body=body) for body in (LARGE, DATA[:-1], LARGE, DATA)))
    assert [request.is_fresh for request in cut.requests] == [False, False, True, True]
    assert cut.outcome.result["sha"] == LARGE["sha"]
    assert GET.saved_bytes(cut.outcome) == DATA
    again = run(GET, ITEM, *(reply(body=body) for body in (LARGE, DATA[:-1], LARGE, DATA[:-1])))
    assert again.outcome.error is not None
    assert (again.outcome.kind, again.outcome.error.code) == (OutcomeKind.FAILED, ErrorCode.BAD_RESPONSE)
    assert str(LARGE["sha"]) in again.outcome.error.message


def test_a_json_refused_as_too_large_comes_as_raw():
    """A 403 `too_large` leads to raw, and sha and size are computed from the bytes."""
    data = b"y" * 1_500_000
    driven = run(GET, ITEM, reply(403, TOO_LARGE), reply(body=data))
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    result = driven.outcome.result
    assert (result["type"], result["size"], result["sha"], result["encoding"]) == (
        "file",
        len(data),
        blobs.blob_sha(data),
        "none",
    )


def test_a_large_file_is_unchanged_when_both_answers_are():
    """Two answers from the store are unchanged; one that is new is a success."""
    data = DATA
    both = run(GET, ITEM, reply(body=LARGE, is_unchanged=True), reply(body=data, is_unchanged=True))
    one = run(GET, ITEM, reply(body=LARGE), reply(body=data, is_unchanged=True))
    refused_first = run(GET, ITEM, reply(403, TOO_LARGE), reply(body=data, is_unchanged=True))
    kinds = [driven.outcome.kind for driven in (both, one, refused_first)]
    assert kinds == [OutcomeKind.UNCHANGED, OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED]


def test_above_100_mb_is_too_large_and_not_asked_for():
    """A size above 100 MB ends the item before its bytes are requested."""
    driven = run(GET, ITEM, reply(body={**LARGE, "size": RAW_BODY_BYTES + 1}))
    assert driven.error.code is ErrorCode.TOO_LARGE


@pytest.mark.parametrize("media_type", ["raw", "html"])
def test_raw_and_html_refused_as_too_large(media_type):
    """What raw or html refuses because of its size ends as too_large, in the platform's words."""
    driven = run(GET, {**ITEM, "media_type": media_type}, reply(403, TOO_LARGE))
    assert driven.error.code is ErrorCode.TOO_LARGE
    assert "too large" in driven.error.message
    assert driven.outcome.http_status == 403


def test_too_large_in_every_form():
    """Where raw is refused as well, after JSON was, the item is too_large."""
    driven = run(GET, ITEM, reply(403, TOO_LARGE), reply(403, TOO_LARGE))
    assert driven.error.code is ErrorCode.TOO_LARGE


@pytest.mark.parametrize("media_type", ["json", "raw"])
def test_another_403_is_forbidden(media_type):
    """A 403 that is not about size stays what it is."""
    driven = run(GET, {**ITEM, "media_type": media_type}, reply(403, {"message": "Resource not accessible"}))
    assert driven.error.code is ErrorCode.FORBIDDEN
    assert driven.error.message == "Resource not accessible"
    late = run(GET, ITEM, reply(403, TOO_LARGE), reply(403, {"message": "Resource not accessible"}))
    assert late.error.code is ErrorCode.FORBIDDEN


@pytest.mark.parametrize(("media_type", "body"), [("json", "text"), ("json", None), ("raw", {"a": 1}), ("raw", None)])
def test_an_answer_of_another_kind_is_a_bad_response(media_type, body):
    """Neither an object nor bytes: it is not believed, nothing crashes."""
    assert run(GET, {**ITEM, "media_type": media_type}, reply(body=body)).is_disbelieved


def test_a_large_file_without_bytes_is_a_bad_response():
    """The second answer must be bytes."""
    assert run(GET, ITEM, reply(body=LARGE), reply(body=None)).is_disbelieved


def test_content_that_is_no_base64_is_saved_as_json():
    """`save` never crashes on what the platform sent."""
    assert run(GET, ITEM, reply(body={**FILE, "content": "%%%"})).is_disbelieved
    driven = run(GET, ITEM, reply(body={**FILE, "content": "%%%"}, is_unchanged=True))
    assert GET.saved_bytes(driven.outcome) is None
    assert driven.outcome.result["content"] == "%%%"


def test_checks():
    """Every field that the platform would refuse is named."""
    assert not flaws(GET, {**ITEM, "ref": "main"})
    found = flaws(GET, {"owner": "a/b", "repo": "x.git", "ref": "a\nb"})
    assert set(found) == {"owner", "repo", "ref"}


def test_reads_have_no_lane():
    """Reads go in any order."""
    assert GET.lanes(item_of(GET, **ITEM)) == ()


def test_an_item_is_decoded_within_a_microsecond():
    """A line of an items file is decoded and its types checked in at most 1 µs (best of many, on an idle core 0.3)."""
    decode = msgspec.json.Decoder(ReadmeItem).decode
    line = b'{"owner":"acme-eng","repo":"hello-world"}'
    best_s = min(timeit.repeat(lambda: decode(line), number=200, repeat=500)) / 200
    assert best_s < 1e-6
