"""What a read must show before it is believed: all operations that read, each with answers that prove nothing."""

import timeit

import pytest

from bulk.model import OutcomeKind
from bulk.operation import AnyOperation, find, names
from bulk_jobs.shared.files import blobs, file_proofs
from tests.jobs import answers
from tests.jobs.driver import item_of, reply, run

CASES = [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(answers.READS)]


@pytest.mark.parametrize(("name", "item", "right", "wrong"), CASES)
def test_only_what_was_asked_for_is_believed(name, item, right, wrong):
    """An answer that is empty, of another shape or about something else is repeated (failures.md row 27)."""
    operation: AnyOperation = find(name)
    assert run(operation, item, reply(body=right)).outcome.kind is OutcomeKind.SUCCEEDED
    for body in (*answers.NEVER, *wrong):
        assert run(operation, item, reply(body=body)).is_disbelieved, body


@pytest.mark.parametrize(("name", "item", "right", "wrong"), CASES)
def test_an_empty_list_is_a_list(name, item, right, wrong):
    """Nothing in a list is an answer, but not of a folder beside the root; nothing in place of an object is none."""
    driven = run(find(name), item, reply(body=[]))
    assert driven.is_disbelieved is (isinstance(right, dict) or bool(item.get("path")))


@pytest.mark.parametrize("body", [[], {"type": "dir", "path": "", "entries": []}])
def test_only_the_root_may_be_empty(body):
    """Git keeps no empty directory: a listing without entries is believed of the root alone."""
    get, form = find("contents.get"), {"media_type": "object"} if isinstance(body, dict) else {}
    assert run(get, {**answers.REPOSITORY, **form}, reply(body=body)).outcome.kind is OutcomeKind.SUCCEEDED
    body = {**body, "path": "docs"} if isinstance(body, dict) else body
    assert run(get, {**answers.REPOSITORY, **form, "path": "docs"}, reply(body=body)).is_disbelieved


@pytest.mark.parametrize("media_type", ["json", "object", "raw", "html"])
@pytest.mark.parametrize("is_led_elsewhere", [False, True])
def test_a_file_is_no_empty_list(media_type, is_led_elsewhere):
    """`[]` in place of a file is nobody's content and no directory, in any representation, also behind a redirect."""
    get = find("contents.get")
    item = item_of(get, **answers.REPOSITORY, path="README.md", media_type=media_type)
    request = next(get.steps(item))
    assert request.proof is not None
    proof = request.proof.elsewhere() if is_led_elsewhere else request.proof
    body = b"[]" if media_type in ("raw", "html") else []
    assert proof.flaw(reply(body=body, headers={"content-type": "application/json"}))


@pytest.mark.parametrize(("name", "item", "right", "wrong"), CASES)
def test_who_was_led_elsewhere_may_find_another_name(name, item, right, wrong):
    """After a redirect the shape counts and the identity does not: what was renamed has another name there."""
    request = next(find(name).steps(item_of(find(name), **item)))
    assert request.proof is not None
    elsewhere = request.proof.elsewhere()
    assert not elsewhere.flaw(reply(body=right))
    for body in answers.NEVER:
        assert elsewhere.flaw(reply(body=body))


def test_the_repository_is_the_first_that_a_url_names():
    """A path within another repository looked like a place in the one that was asked for."""
    request = next(find("readme.get").steps(item_of(find("readme.get"), **answers.REPOSITORY)))
    assert request.proof is not None
    place = "/repos/{owner}/{repo}/".format(**answers.REPOSITORY)
    inside = {**answers.FILE, "url": f"{answers.API}/repos/zz/evil/contents{place}README.md"}
    assert "another repository" in request.proof.flaw(reply(body=inside))


def test_a_file_without_its_size_may_be_cut():
    """The length of a content proves nothing where the size that it should have is left out."""
    request = next(find("readme.get").steps(item_of(find("readme.get"), **answers.REPOSITORY)))
    assert request.proof is not None
    body = {name: value for name, value in answers.FILE.items() if name != "size"}
    assert "no size" in request.proof.flaw(reply(body=body))


def test_a_renamed_repository_is_believed_after_a_redirect():
    """A file whose url names another repository is the file, where the platform itself led there."""
    moved = {**answers.FILE, "url": f"{answers.API}/repos/acme/moved/contents/README.md"}
    request = next(find("readme.get").steps(item_of(find("readme.get"), **answers.REPOSITORY)))
    assert request.proof is not None
    assert "another repository" in request.proof.flaw(reply(body=moved))
    assert not request.proof.elsewhere().flaw(reply(body=moved))


def test_every_read_is_in_the_table():
    """No operation reads whose answers are taken as they come."""
    assert {case[0] for case in answers.READS} == {name for name in names() if find(name).is_read and "." in name}


def test_a_flaw_never_repeats_the_answer():
    """What a foreign answer holds is not for messages: it may be a secret."""
    for name, item, _, wrong in answers.READS:
        for body in (*wrong, {"id": "tok3n", "login": "tok3n", "sha": "tok3n", "type": "tok3n"}, ["tok3n"]):
            request = next(find(name).steps(item_of(find(name), **item)))
            assert request.proof is not None
            assert "tok3n" not in request.proof.flaw(reply(body=body))


def test_a_proof_costs_little():
    """A file of 3 kB is looked at in at most 10 µs (best of many; interpreted 3, compiled 1)."""
    content = b"x" * 2_000
    body = {**answers.FILE, "content": blobs.encode(content), "size": len(content), "sha": blobs.blob_sha(content)}
    answer = reply(body=body)
    flaw = file_proofs.of_file(file_proofs.of_place("acme-eng", "hello-world", None)).flaw
    assert not flaw(answer)
    assert min(timeit.repeat(lambda: flaw(answer), number=200, repeat=20)) / 200 < 10e-6
